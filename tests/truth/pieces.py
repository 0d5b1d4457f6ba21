"""What the inversion needs of one loss in one direction: moments as balls, proved bounds of the
characteristic function.

Every piece stands for ``count`` independent copies. The ``float_*`` methods only propose parameters.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from flint import acb, acb_mat, arb, ctx

from .balls import Number, ball, floats, precision

MOST_QUADRATURE, MOST_WORK = 40_000, 100_000_000  # what is worth waiting for: some ten seconds


class Piece(ABC):
    count: int

    def infinity_mass(self) -> arb:
        """P(L = inf) of one copy."""
        return arb(0)

    @abstractmethod
    def moment(self, z: acb) -> acb:
        """M(z) = E[e^{zL}; L < inf] of one copy."""

    def log_moment(self, s: arb) -> arb:
        return self.moment(acb(s)).real.log()

    def phis(self, theta: arb, step: arb, nodes: int) -> tuple[list[acb], arb]:
        """M(theta + i k step) / M(theta) for k = 0 .. nodes, and log M(theta)."""
        base = self.moment(acb(theta)).real
        return [self.moment(acb(theta, k * step)) / base for k in range(nodes + 1)], base.log()

    @abstractmethod
    def bound(self, theta: arb, u: arb) -> arb:
        """Upper bound of |phi(u')|^count for every u' >= u."""

    def bounds(self, theta: arb, u: arb, width: arb, cells: int) -> list[arb]:
        """Upper bounds of |phi|^count on [u + k width, u + (k+1) width], k = 0 .. cells-1."""
        return [self.bound(theta, u + k * width) for k in range(cells)]

    @abstractmethod
    def power_law(self, theta: arb, u: arb) -> tuple[arb, arb]:
        """(c, r) with |phi(u')|^count <= c / u'^r for every u' >= u."""

    def cell(self, theta: arb, u: arb, log_tolerance: float) -> float:
        """How wide a cell ``bounds`` likes at u, where |phi|^count should stay below that tolerance."""
        return float(u) / 8

    @abstractmethod
    def float_log_moment(self, s: float) -> float: ...

    def float_cumulants(self, s: float) -> tuple[float, float]:
        """Mean and variance of the loss tilted by s, roughly."""
        k, d = self.float_log_moment, 1e-4 * max(s, 1e-2)
        low, mid, high = k(s - d), k(s), k(s + d)
        return (high - low) / (2 * d), (high - 2 * mid + low) / d**2

    @abstractmethod
    def float_log_phi(self, theta: float, u: float) -> float: ...


@dataclass(frozen=True)
class GaussianPiece(Piece):
    """mu = sensitivity / sigma; M(z) = e^{mu^2 z (z+1) / 2}."""

    mu: Number
    count: int = 1

    def moment(self, z: acb) -> acb:
        return (ball(self.mu) ** 2 * z * (z + 1) / 2).exp()

    def phis(self, theta: arb, step: arb, nodes: int) -> tuple[list[acb], arb]:
        v = ball(self.mu) ** 2
        values = []
        for k in range(nodes + 1):
            u = k * step
            values.append(acb(-v * u * u / 2, v * u * (2 * theta + 1) / 2).exp())
        return values, v * theta * (theta + 1) / 2

    def bound(self, theta: arb, u: arb) -> arb:
        return (-self.count * (ball(self.mu) * u) ** 2 / 2).exp()

    def power_law(self, theta: arb, u: arb) -> tuple[arb, arb]:
        return self.bound(theta, u), arb(0)

    def float_log_moment(self, s: float) -> float:
        return float(ball(self.mu)) ** 2 * s * (s + 1) / 2

    def float_log_phi(self, theta: float, u: float) -> float:
        return -((float(ball(self.mu)) * u) ** 2) / 2


@dataclass(frozen=True)
class AtomsPiece(Piece):
    """P = p[i], Q = q[i] on finitely many outputs; q = 0 is a loss of infinity, p = 0 has no loss."""

    p: tuple[Number, ...]
    q: tuple[Number, ...]
    count: int = 1

    def _atoms(self) -> list[tuple[arb, arb]]:
        pairs = [(ball(a), ball(b)) for a, b in zip(self.p, self.q, strict=True)]
        return [((a / b).log(), a) for a, b in pairs if not a.is_zero() and not b.is_zero()]

    def infinity_mass(self) -> arb:
        return sum((ball(a) for a, b in zip(self.p, self.q, strict=True) if ball(b).is_zero()), arb(0))

    def moment(self, z: acb) -> acb:
        return sum((a * (z * loss).exp() for loss, a in self._atoms()), acb(0))

    def bound(self, theta: arb, u: arb) -> arb:
        return arb(1)

    def power_law(self, theta: arb, u: arb) -> tuple[arb, arb]:
        return arb(1), arb(0)

    def float_log_moment(self, s: float) -> float:
        logs = [math.log(float(a)) + s * float(loss) for loss, a in self._atoms()]
        top = max(logs)
        return top + math.log(sum(math.exp(x - top) for x in logs))

    def float_log_phi(self, theta: float, u: float) -> float:
        return 0.0


@dataclass(frozen=True)
class LaplacePiece(Piece):
    """t = sensitivity / scale: half the mass at loss t, e^{-t}/2 at -t, density e^{-(t-l)/2}/4 between."""

    t: Number
    count: int = 1

    def moment(self, z: acb) -> acb:
        t, w = ball(self.t), z + acb(0.5)
        body = ((w * t).exp() - (-w * t).exp()) / (4 * w)
        return (-t / 2).exp() * (((w * t).exp() + (-w * t).exp()) / 2 + body)

    def bound(self, theta: arb, u: arb) -> arb:
        """Tilted atoms, plus the total variation 2 f(t) of the tilted density (it rises, then drops) over
        u.
        """
        t = ball(self.t)
        top = (theta * t).exp()
        one = (top / 2 + (-(1 + theta) * t).exp() / 2 + top / (2 * u)) / self.moment(acb(theta)).real
        return one.min(arb(1)) ** self.count

    def power_law(self, theta: arb, u: arb) -> tuple[arb, arb]:
        return self.bound(theta, u), arb(0)

    def float_log_moment(self, s: float) -> float:
        t, w = float(ball(self.t)), s + 0.5
        return w * t - t / 2 + math.log(0.5 * (1 + math.exp(-2 * w * t)) - math.expm1(-2 * w * t) / (4 * w))

    def float_log_phi(self, theta: float, u: float) -> float:
        t = float(ball(self.t))
        atoms = 0.5 + 0.5 * math.exp(-(1 + 2 * theta) * t) + 0.5 / u
        return min(0.0, math.log(atoms) + theta * t - self.float_log_moment(theta))


@dataclass(frozen=True)
class SampledPiece(Piece):
    """Poisson-sampled Gaussian: M(z) = E A(t)^zeta, t ~ N(0,1), A = 1 - q + q e^{t/s - 1/(2 s^2)}.

    remove: zeta = 1 + z, L = log A; add: zeta = -z, L = -log A.

    Trapezoid rule of step h in t. A has no zero for |Im t| < pi s, A(t) cos(a / 2s) <= |A(t+ia)| <= A(t) and
    |arg A(t+ia)| <= a/s, so with zeta = r + iu the error is at most, for every 0 < a < pi s,
        M(r) e^{a^2/2} (1 + e^{|u| a/s}) cos(a / 2s)^{-max(0,-r)} / (e^{2 pi a/h} - 1).
    """

    sigma: Number
    q: Number
    direction: str
    count: int = 1

    def _zeta(self, z: acb) -> acb:
        return 1 + z if self.direction == "remove" else -z

    def _real_zeta(self, theta: arb) -> arb:
        return self._zeta(acb(theta)).real

    def moment(self, z: acb) -> acb:
        values, log_m = self.phis(z.real, arb(0), 0, start=z.imag)
        return values[0] * log_m.exp()

    def log_moment(self, s: arb) -> arb:
        return self._rule(s, arb(0)).total.log()

    def phis(self, theta: arb, step: arb, nodes: int, start: arb | None = None, bits: int = 0) -> tuple[list[acb], arb]:
        """Baby steps and giant steps: e^{iu_k l} as products of two tables, summed by a matrix product.

        From u = ``start`` (0), to ``bits`` of accuracy (the working precision).
        """
        first = arb(0) if start is None else start
        rule = self._rule(theta, (first + nodes * step).upper(), bits)
        n = len(rule.losses)
        if n * (nodes + 1) > MOST_WORK:
            raise ArithmeticError(f"needs {n} quadrature nodes for each of {nodes} frequencies")
        baby = max(1, math.isqrt(nodes + 1))
        giant = -(-(nodes + 1) // baby)
        sums = acb_mat(giant, baby)
        for j in range(0, n, 400):
            losses, weights = rule.losses[j : j + 400], rule.weights[j : j + 400]
            turns = [acb(0, step * loss).exp() for loss in losses]
            leaps = [acb(0, step * baby * loss).exp() for loss in losses]
            row, columns = [acb(1)] * len(losses), []
            for _ in range(baby):
                columns.append(row)
                row = [a * b for a, b in zip(row, turns, strict=True)]
            right = [columns[b][i] for i in range(len(losses)) for b in range(baby)]
            row, left = [w * acb(0, first * loss).exp() for w, loss in zip(weights, losses, strict=True)], []
            for _ in range(giant):
                left += row
                row = [a * b for a, b in zip(row, leaps, strict=True)]
            sums += acb_mat(giant, len(losses), left) * acb_mat(len(losses), baby, right)
        entries = sums.entries()
        base = rule.total
        slack = arb(0, 1)
        out = []
        for k in range(nodes + 1):
            error = rule.error(first + k * step) * slack
            out.append((entries[k] + acb(error, error)) / base)
        if start is None:
            out[0] = acb(1)
        return out, base.log()

    def _rule(self, theta: arb, most_u: arb, bits: int = 0) -> _Rule:
        return _rule(
            ball(self.sigma),
            ball(self.q),
            self._real_zeta(theta),
            self.direction == "remove",
            most_u,
            bits or int(ctx.prec),
        )

    # -- proved bounds of the characteristic function ----------------------------------------------------

    def bounds(self, theta: arb, u: arb, width: arb, cells: int) -> list[arb]:
        """|phi|^2 = E cos(u (L - L')) has second derivative at most 2 Var.

        So within a cell it exceeds its larger end by at most Var width^2 / 4.
        """
        with precision(64):
            values, _ = self.phis(theta, width, cells, start=u, bits=40)
            squares = [(abs(value) ** 2).upper() for value in values]
            bump = self._variance(theta) * width**2 / 4
            out = [(a.max(b) + bump).min(arb(1)) for a, b in pairwise(squares)]
            return [(square.sqrt() ** self.count).upper() for square in out]

    def bound(self, theta: arb, u: arb) -> arb:
        c, r = self.power_law(theta, u)
        return (c / u**r).min(arb(1))

    def power_law(self, theta: arb, u: arb) -> tuple[arb, arb]:
        """|phi(u)| <= 1 - pi + V / u: pi the tilted mass of any half line t > t0, V the variation of its
        density.

        The whole line (pi = 1) gives a power law; a part of it a constant, since the bound decreases in u.
        """
        shares, variations = _half_lines(self, float(theta))
        if variations[-1] < 0.5 * float(u):
            return arb(variations[-1]) ** self.count, arb(self.count)
        best = int(np.argmin(1 - shares + variations / float(u)))
        one = (1 - arb(shares[best]) + arb(variations[best]) / u).min(arb(1))
        return one**self.count, arb(0)

    def cell(self, theta: arb, u: arb, log_tolerance: float) -> float:
        here = abs(self.phis(theta, u, 0, start=u, bits=40)[0][0])
        now, enough = float(here) ** 2, math.exp(max(2 * log_tolerance / self.count, -60.0))
        bump = max(2 * now / self.count, 0.8 * (enough - now))
        return math.sqrt(4 * bump / float(self._variance(theta)))

    def _variance(self, theta: arb) -> arb:
        """Tilted: Var <= E (L-m)^2 <= (E e^{b(L-m)} + E e^{-b(L-m)} - 2) / b^2, for every b and m."""
        return _variance(self, float(theta))

    # -- floats ------------------------------------------------------------------------------------------

    def _float_logs(self, s: float) -> tuple[np.ndarray, np.ndarray, float]:
        t, loss = _float_grid(float(ball(self.sigma)), float(ball(self.q)))
        zeta = 1 + s if self.direction == "remove" else -s
        return loss, zeta * loss - t * t / 2, math.log(t[1] - t[0]) - 0.5 * math.log(2 * math.pi)

    def float_log_moment(self, s: float) -> float:
        _, logs, norm = self._float_logs(s)
        return float(np.logaddexp.reduce(logs) + norm)

    def float_cumulants(self, s: float) -> tuple[float, float]:
        loss, logs, _ = self._float_logs(s)
        weights = np.exp(logs - logs.max())
        mean = float(np.average(loss, weights=weights))
        return mean if self.direction == "remove" else -mean, float(np.average((loss - mean) ** 2, weights=weights))

    def float_log_phi(self, theta: float, u: float) -> float:
        sigma, q = float(ball(self.sigma)), float(ball(self.q))
        zeta = 1 + theta if self.direction == "remove" else -theta
        centre = max(zeta, 0) / sigma
        t = np.linspace(-14 - 12 / sigma, centre + 14, int(4000 + 6 * u / sigma) if u < 1e6 else 4000)
        loss = np.logaddexp(np.log1p(-q), math.log(q) + t / sigma - 0.5 / sigma**2)
        x = zeta * loss - t * t / 2
        w = np.exp(x - x.max())
        value = abs(np.sum(w * np.exp(1j * u * loss))) / np.sum(w)
        return math.log(max(value, 1e-14))


@lru_cache(maxsize=64)
def _float_grid(sigma: float, q: float) -> tuple[np.ndarray, np.ndarray]:
    t = np.arange(-40.0, 40.0 + 60 / sigma, 0.05 * min(1.0, sigma))
    return t, np.logaddexp(np.log1p(-q), math.log(q) + t / sigma - 0.5 / sigma**2)


@dataclass(frozen=True)
class _Rule:
    """Trapezoid nodes: losses l_j, weights h phi(t_j) A_j^r > 0; ``total`` encloses M(r), ``error(u)``
    bounds |sum - M|.
    """

    losses: list[arb]
    weights: list[arb]
    total: arb
    relative: arb  # e^{a^2/2} cos^{-..} / (e^{2 pi a/h} - 1)
    reach: arb  # a / s
    cut: arb  # what the two ends leave out

    def error(self, u: arb) -> arb:
        return (self.total * self.relative * (1 + (u * self.reach).exp()) + self.cut).upper()


_RULES: dict[tuple[object, ...], _Rule] = {}


def _rule(s: arb, q: arb, r: arb, remove: bool, most_u: arb, bits: int) -> _Rule:
    key = (s.str(40), q.str(40), r.str(40, radius=False), remove, float(most_u), bits)
    if key in _RULES:
        return _RULES[key]
    if not 0 < q < 1:
        raise ValueError("a rate strictly between 0 and 1; rate 1 is a plain Gaussian")
    sf, rf, uf = float(s), float(r), float(most_u)
    want = bits * math.log(2)
    best, a = 0.0, 0.1
    for b in np.linspace(0.02, 0.98, 60) * math.pi * sf:
        need = b * b / 2 + uf * b / sf + want + max(0.0, -rf) * -math.log(math.cos(min(b / (2 * sf), 1.57)))
        if b / need > best:
            best, a = b / need, float(b)
    h = arb(2 * math.pi * best)
    strip = arb(a)
    flat = (strip / (2 * s)).cos() ** (-r if r < 0 else arb(0))
    relative = (strip**2 / 2).exp() / flat / ((2 * arb.pi() * strip / h).exp() - 1)
    # ends: for r >= 0, A^r <= max(1, e^{w r}) <= 1 + e^{r w}; for r < 0, A^r <= (1-q)^r
    centre = max(rf, 0.0) / sf
    reach = math.sqrt(2 * (want + 10 + max(0.0, rf * (rf - 1) / (2 * sf**2)) + max(0.0, -rf) * -math.log1p(-float(q))))
    low = math.floor(-reach / float(h)) - 1
    high = math.ceil((centre + reach) / float(h)) + 1
    if high - low > MOST_QUADRATURE:
        raise ArithmeticError(f"needs {high - low} quadrature nodes")
    losses, weights, total = [], [], arb(0)
    norm = h / (2 * arb.pi()).sqrt()
    for j in range(low, high + 1):
        t = j * h
        log_a = (q * (t / s - 1 / (2 * s * s)).expm1()).log1p()
        weight = norm * (r * log_a - t * t / 2).exp()
        losses.append(log_a if remove else -log_a)
        weights.append(weight)
        total += weight
    cut = _beyond(-(low * h)) + _beyond(high * h)
    if r >= 0:
        c = r / s
        cut += (r * (r - 1) / (2 * s * s)).exp() * (_beyond(c - low * h) + _beyond(high * h - c))
    else:
        cut *= (1 - q) ** r
    # positive sum: M(r) = total +- errors; solve |M - total| <= 2 relative M + cut
    twice = 2 * relative
    enclosure = ((total - cut) / (1 + twice)).union((total + cut) / (1 - twice))
    rule = _Rule(losses, weights, enclosure, relative.upper(), strip / s, cut.upper())
    if len(_RULES) > 40:
        _RULES.clear()
    _RULES[key] = rule
    return rule


def _beyond(x: arb) -> arb:
    """sum over j > J of h phi(t_j) <= integral of phi beyond t_J = x, for x > 0 (phi decreases there)."""
    return (x / arb(2).sqrt()).erfc() / 2


@lru_cache(maxsize=256)
def _variance(piece: Piece, theta: float) -> arb:
    with precision(200):
        t = arb(theta)
        mean, spread = piece.float_cumulants(theta)
        b = arb(1e-3 * min(1.0, 1 / math.sqrt(spread)))  # small: far tilts may be enormous
        base = piece.log_moment(t)
        up = (piece.log_moment(t + b) - base - b * mean).exp()
        down = (piece.log_moment(t - b) - base + b * mean).exp()
        return ((up + down - 2) / b**2).upper()


@lru_cache(maxsize=256)
def _half_lines(piece: SampledPiece, theta: float) -> tuple[np.ndarray, np.ndarray]:
    """For many t0 from right to left, the last being -inf: the tilted mass beyond t0 (lower bounds), and the
    total variation of the density f of one tilted loss cut off at t0 (upper bounds).

    In t: f = s phi(t) A^{r+1} e^{-w} / (q M(r)), zero at both ends. Its log-derivative is -t + ((r+1) S -
    1)/s with S = q e^w / A a logistic function of t, so it has at most 3 zeros: f has at most 2 maxima. A
    cut where f falls has a maximum to its left; so the cut density goes up, down, up, down at most: TV <= 4
    sup f. Where (r+1) S' <= s always there is one zero: TV <= 2 sup f; as S' <= 1/(4s), r+1 <= 4 s^2
    suffices.
    """
    with precision(64):
        s, q = ball(piece.sigma), ball(piece.q)
        r = piece._real_zeta(arb(theta))
        power = r + 1
        log_m = piece.log_moment(arb(theta))
        factor = 2 if power <= 4 * s * s else 4

        def log_a(t: arb) -> arb:
            return (q * (t / s - 1 / (2 * s * s)).expm1()).log1p()

        reach = 12 + 6 / float(s) + math.sqrt(2 * max(0.0, float(power) * math.log1p(-float(q))))
        top = max(float(power), 0.0) / float(s) + reach
        width = 2.0**-6
        cells = math.ceil((top + reach) / width)
        right, left = arb(top), arb(top - cells * width)
        log_scale = (
            1 / (2 * s * s) - log_m + (s / q).log() - (2 * arb.pi()).log() / 2
        )  # f = exp(log_scale + (r+1) log A - t^2/2 - t/s)
        # beyond the range: A <= max(1, e^w), or A >= 1-q under a negative power; both exponents fall there
        sup_log = (-right * right / 2 - right / s) + (power * (1 - q).log() if power < 0 else arb(0))
        if power > 0:
            sup_log = sup_log.max(-right * right / 2 + (power - 1) * right / s - power / (2 * s * s))
        mass = arb(0)
        shares, variations = [], []
        b, log_b = right, log_a(right)
        for i in range(1, cells + 1):
            a = arb(top - i * width)
            log_low = log_a(a)
            small, large = a.abs_lower().min(b.abs_lower()), a.abs_upper().max(b.abs_upper())
            square = arb(0) if a < 0 < b else small**2
            sup_log = sup_log.max((power * (log_b if power > 0 else log_low)) - square / 2 - a / s)
            least = r * (log_low if r > 0 else log_b) - large**2 / 2 - log_m
            mass += (width / (2 * arb.pi()).sqrt() * least.exp()).lower()
            if i % 8 == 0:
                shares.append(floats(mass)[0])
                variations.append(floats(factor * (sup_log + log_scale).exp())[1])
            b, log_b = a, log_low
        sup_log = sup_log.max(-left * left / 2 - left / s + (power * (1 - q).log() if power < 0 else arb(0)))
        shares.append(1.0)
        variations.append(floats(factor * (sup_log + log_scale).exp())[1])
        return np.array(shares), np.array(variations)
