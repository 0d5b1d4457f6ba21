"""The loss of a Poisson-sampled Gaussian step in ball arithmetic.

A(t) = 1 - q + q e^{t/s - 1/(2 s^2)}, t ~ N(0, 1), M(z) = E A^zeta with zeta = 1 + z (remove: L = log A) or
-z (add: L = -log A).

Trapezoid rule of step h in t: with zeta = r + iu, A has no zero for |Im t| < pi s, and for every 0 < a < pi s
    |error| <= 2 e^{a^2/2} G / (e^{2 pi a/h} - 1),  G = int phi(t) |A(t+ia)|^r e^{|u| arg A(t+ia)} dt
[Trefethen, Weideman 2014, Thm. 5.1]; G is bounded in balls by ``_growth``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dptally.checks import Floats
from dptally.errors import Unanswerable
from dptally.laws.ball.losses import Ball, BallLoss, ends, flint, working

__all__ = ["SampledGaussianBall"]

_MOST_QUADRATURE = 60_000
_CHUNK = 400  # nodes per matrix product: bounds the memory
_COARSE = 40  # bits that a bound of |phi| needs
_CELL = 2.0**-6  # width of the cells on which densities are bounded
_EXACT = 4000  # bits that hold any sum of two doubles


@dataclass(frozen=True, slots=True)
class _Rule:
    """Nodes of the trapezoid rule: ``losses`` l_j and ``weights`` h phi(t_j) A_j^r; ``total`` encloses
    M(r).
    """

    losses: list[Ball]
    weights: list[Ball]
    total: Ball
    error: Ball  # of the sum at every |u| within the reach of the rule, ends included


@dataclass(frozen=True, slots=True)
class SampledGaussianBall(BallLoss):
    """One step at rate 0 < q < 1 with noise sigma = ``variance``^(-1/2): exact rationals, enclosed where they enter."""

    rate: Fraction
    variance: Fraction
    remove: bool
    count: int

    def moment(self, z: Ball) -> Ball:
        return self._grid(z.real, flint().arb(0), 0, z.imag, 0)[0] * self.log_moment(z.real).exp()

    def log_moment(self, s: Ball) -> Ball:
        return self._rule(s, 0.0, 0).total.log()

    def phis(self, theta: Ball, step: Ball, nodes: int) -> list[Ball]:
        return [flint().acb(1), *self._grid(theta, step, nodes, flint().arb(0), 0)[1:]]

    def _rule(self, theta: Ball, reach: float, bits: int) -> _Rule:
        """Rules are kept by their exact exponent: theta is an exact ball."""
        wanted = bits or int(flint().ctx.prec)
        with working(_EXACT):
            exponent = 1 + theta if self.remove else -theta
        return _rule(self.rate, self.variance, exponent, self.remove, reach, wanted)

    def _grid(self, theta: Ball, step: Ball, nodes: int, first: Ball, bits: int) -> list[Ball]:
        """phi(first + k step), k = 0 .. nodes: e^{iul} from two tables of about sqrt(nodes) rows and one
        matrix product.
        """
        acb, acb_mat, arb = flint().acb, flint().acb_mat, flint().arb
        rule = self._rule(theta, float((abs(first) + nodes * step).upper()), bits)
        baby = max(1, math.isqrt(nodes + 1))
        giant = -(-(nodes + 1) // baby)
        sums = acb_mat(giant, baby)
        for at in range(0, len(rule.losses), _CHUNK):
            losses, weights = rule.losses[at : at + _CHUNK], rule.weights[at : at + _CHUNK]
            rows = _powers([acb(1)] * len(losses), [acb(0, step * loss).exp() for loss in losses], baby)
            start = [w * acb(0, first * loss).exp() for w, loss in zip(weights, losses, strict=True)]
            leaps = _powers(start, [acb(0, step * baby * loss).exp() for loss in losses], giant)
            left = acb_mat(giant, len(losses), [x for row in leaps for x in row])
            sums += left * acb_mat(baby, len(losses), [x for row in rows for x in row]).transpose()
        entries = sums.entries()
        slack = arb(0, 1) * rule.error
        return [(entry + acb(slack, slack)) / rule.total for entry in entries[: nodes + 1]]

    # -- bounds of |phi| ------------------------------------------------------------------------------------

    def bounds(self, theta: Ball, u: Ball, width: Ball, cells: int) -> list[Ball]:
        """|phi|^2 = E cos(u (L - L')) has |second derivative| <= 2 Var: a cell exceeds its larger end by
        <= Var width^2 / 4.
        """
        arb = flint().arb
        with working(64):
            squares = [(abs(value) ** 2).upper() for value in self._grid(theta, width, cells, u, _COARSE)]
            bump = _variance(self, theta) * width**2 / 4
            return [((a.max(b) + bump).min(arb(1)).sqrt() ** self.count).upper() for a, b in pairwise(squares)]

    def beyond(self, theta: Ball, u: Ball) -> tuple[Ball, Ball]:
        """|phi(u)| <= 1 - p + V/u: p the tilted mass of a half line t > t0, V the total variation of its
        density of losses.

        The whole line (p = 1) gives a power law, a part of it a constant, as the bound falls with u.
        """
        arb = flint().arb
        shares, variations = _half_lines(self, theta)
        if variations[-1] < 0.5 * float(u):
            return arb(variations[-1]) ** self.count, arb(self.count)
        best = int(np.argmin(1 - shares + variations / float(u)))
        one = 1 - arb(float(shares[best])) + arb(float(variations[best])) / u
        return one.min(arb(1)) ** self.count, arb(0)

    def cell(self, theta: Ball, u: Ball, log_tolerance: float) -> float:
        now = float(abs(self._grid(theta, flint().arb(0), 0, u, _COARSE)[0])) ** 2
        enough = math.exp(max(2 * log_tolerance / self.count, -60.0))
        return math.sqrt(4 * max(2 * now / self.count, 0.8 * (enough - now)) / float(_variance(self, theta)))

    def closed_delta(self, epsilon: Ball) -> Ball:
        """One step: the event L > eps is a half line of the noise."""
        arb = flint().arb
        s, q, price = *_enclosed(self.rate, self.variance), epsilon.exp()
        share = ((epsilon if self.remove else -epsilon).expm1() + q) / q  # e^w at the end of the half line
        if share <= 0:
            return (1 - price) if self.remove else arb(0)
        t = s * share.log() + 1 / (2 * s)
        root = arb(2).sqrt()
        if self.remove:
            plain, shifted = (t / root).erfc() / 2, ((t - 1 / s) / root).erfc() / 2
            return (1 - q) * plain + q * shifted - price * plain
        plain, shifted = (-t / root).erfc() / 2, ((1 / s - t) / root).erfc() / 2
        return plain - price * ((1 - q) * plain + q * shifted)


def _powers(first: list[Ball], factor: list[Ball], rows: int) -> list[list[Ball]]:
    out, row = [], first
    for _ in range(rows):
        out.append(row)
        row = [a * b for a, b in zip(row, factor, strict=True)]
    return out


def _enclosed(rate: Fraction, variance: Fraction) -> tuple[Ball, Ball]:
    """(sigma, q) in balls of the working precision."""
    arb, fmpq = flint().arb, flint().fmpq
    mu_square, q = (arb(fmpq(x.numerator, x.denominator)) for x in (variance, rate))
    return 1 / mu_square.sqrt(), q


def _near(rate: Fraction, variance: Fraction) -> tuple[float, float]:
    """(rate, sigma) as floats, for choices that any number may serve."""
    return min(float(rate), math.nextafter(1.0, 0.0)), 1.0 / math.sqrt(variance)


@lru_cache(maxsize=32)
def _rule(rate: Fraction, variance: Fraction, power: Ball, remove: bool, reach: float, bits: int) -> _Rule:
    """The rule for zeta = r + iu, |u| <= reach, to about 2^-bits: step and range from floats, what they
    cost in balls.
    """
    arb = flint().arb
    (s, q), r = _enclosed(rate, variance), float(power)
    want, near = bits * math.log(2), _near(rate, variance)
    ends = _range(*near, r, want)
    height, spacing = _strip(*near, r, reach, want)
    a, h = arb(height), arb(spacing)
    strip = 2 * (a**2 / 2).exp() * _growth(rate, variance, power, height, reach, want)
    strip = strip / ((2 * arb.pi() * a / h).exp() - 1)
    low, high = math.floor(ends[0] / spacing) - 1, math.ceil(ends[1] / spacing) + 1
    if high - low > _MOST_QUADRATURE:
        raise Unanswerable(
            f"the proof would need {high - low} quadrature nodes; ask epsilon_interval or delta_interval, "
            "which certify it in floating point"
        )
    losses, weights, total = [], [], arb(0)
    norm = h / (2 * arb.pi()).sqrt()
    for j in range(low, high + 1):
        t = j * h
        log_a = _log_a(s, q, t)
        weight = norm * (power * log_a - t * t / 2).exp()
        losses.append(log_a if remove else -log_a)
        weights.append(weight)
        total += weight
    cut = _left_out(s, q, power, -low * h, high * h)
    error = (strip + cut).upper()
    return _Rule(losses, weights, (total - error).union(total + error), error)


def _range(rate: float, sigma: float, r: float, want: float) -> tuple[float, float]:
    """Where phi(t) A^r matters to e^-want, by the bounds of ``_left_out``."""
    room = want + 10 + max(0.0, r) * math.log(2) + max(0.0, -r) * -math.log1p(-rate)
    far = want + 10 + r * math.log(2 * rate) + r * (r - 1) / (2 * sigma**2)
    end = math.sqrt(2 * room)
    return -end, max(end, r / sigma + math.sqrt(2 * far)) if r > 0 and far > 0 else end


def _left_out(s: Ball, q: Ball, power: Ball, left: Ball, right: Ball) -> Ball:
    """Bound of int phi A^r over t < -left and t > right, and of the trapezoid sum (step at most 1) over the
    nodes there.

    For r < 0, A^r <= (1-q)^r. For r >= 0, A <= 2 max(1-q, q e^w) gives A^r <= 2^r (1 + q^r e^{rw}), and
    phi(t) e^{rw} is e^{r(r-1)/(2s^2)} times a normal density about r/s; a sum over its rising side is at
    most one term above the integral.
    """
    arb = flint().arb
    plain = _outside(left) + _outside(right)
    if power < 0:
        return plain * (1 - q) ** power
    shift = power / s
    bump = _outside(left + shift) + _outside(right - shift) + (arb(0) if right > shift else arb(1))
    return arb(2) ** power * (plain + q**power * (power * (power - 1) / (2 * s * s)).exp() * bump)


def _strip(rate: float, sigma: float, r: float, reach: float, want: float) -> tuple[float, float]:
    """The height a of the strip and the step h it allows, from floats: any choice is valid, this one is
    efficient.
    """
    angle = np.linspace(0.02, 0.98, 17)[:, None] * math.pi
    ends = _range(rate, sigma, r, want + reach * math.pi)
    t = np.linspace(_range(rate, sigma, r, want)[0], ends[1], 1500)[None, :]
    w = math.log(rate) + t / sigma - 0.5 / sigma**2
    log_a = np.logaddexp(math.log1p(-rate), w)
    share = np.exp(w - log_a)
    turn = np.arctan2(share * np.sin(angle), 1 - share + share * np.cos(angle))
    shrink = 0.5 * np.log(np.maximum(1 - 2 * share * (1 - share) * (1 - np.cos(angle)), np.cos(angle / 2) ** 2))
    plain = r * log_a - 0.5 * t * t
    growth = np.logaddexp.reduce(plain + min(r, 0.0) * shrink + reach * turn, axis=1)
    height = sigma * angle[:, 0]
    need = 0.5 * height**2 + growth - np.logaddexp.reduce(plain, axis=1) + want + 5
    best = int(np.argmax(height / need))
    return float(height[best]), float(2 * math.pi * height[best] / need[best])


def _growth(rate: Fraction, variance: Fraction, power: Ball, height: float, reach: float, want: float) -> Ball:
    """Upper bound of the integral of phi(t) |A(t+ia)|^r e^{u arg A(t+ia)} over t, for every 0 <= u <= reach.

    With S = q e^w / A and b = a/s: |A(t+ia)|^2 / A^2 = 1 - 2 S (1-S) (1 - cos b) >= cos^2(b/2), and arg
    A(t+ia) = atan2(S sin b, 1 - S + S cos b) grows with t and stays below b. Cells in t, and both ends by
    Gaussian tails.
    """
    arb = flint().arb
    with working(64):
        near = _near(rate, variance)
        s, q = _enclosed(rate, variance)
        b = arb(height) / s
        r, u, cos, sin = float(power), arb(reach), b.cos(), b.sin()
        negative = min(r, 0.0) < 0
        need = want + max(0.0, -r) * -math.log(math.cos(float(b) / 2))  # so that the ends, times ``worst``, vanish
        left, width = _range(*near, r, need)[0], 0.05 * min(1.0, near[1])
        cells = math.ceil((_range(*near, r, need + reach * float(b))[1] - left) / width)
        total, worst = arb(0), ((b / 2).cos() ** power if negative else arb(1))
        x, log_x, turn = arb(left), _log_a(s, q, arb(left)), arb(0)
        first = None
        for i in range(1, cells + 1):
            y = arb(left + i * width)
            log_y = _log_a(s, q, y)
            share = (q.log() + y / s - 1 / (2 * s * s) - log_y).exp()
            turn = arb.atan2(share * sin, 1 - share + share * cos).upper()
            first = turn if first is None else first
            tall = power * (log_x if negative else log_y)
            inner = arb(0) if x < 0 < y else abs(x).min(abs(y))
            lift = arb(1)
            if negative:  # S (1-S) <= S(y) (1 - S(x)) on the cell
                rest = (1 - (q.log() + x / s - 1 / (2 * s * s) - log_x).exp()).min(arb(1))
                ratio = (1 - 2 * share * rest * (1 - cos)).max((b / 2).cos() ** 2)
                lift = ratio ** (power / 2)
            total += ((tall - inner**2 / 2 + u * turn).exp() * lift * (y - x)).upper()
            x, log_x = y, log_y
        value = total / (2 * arb.pi()).sqrt()
        below = _left_out(s, q, power, -arb(left), arb("inf")) * worst * (u * first).exp()
        above = _left_out(s, q, power, arb("inf"), x) * worst * (u * b).exp()
        return (value + below + above).upper()


def _outside(x: Ball) -> Ball:
    """The mass of N(0, 1) beyond x; for x > 0 also a bound of the sum of h phi(t) over the nodes beyond x."""
    arb = flint().arb
    return arb(0) if x > 1e300 else (x / arb(2).sqrt()).erfc() / 2


@lru_cache(maxsize=64)
def _variance(loss: SampledGaussianBall, theta: Ball) -> Ball:
    """Of the tilted loss: Var <= E (L-m)^2 <= (E e^{b(L-m)} + E e^{-b(L-m)} - 2) / b^2 for every b and m."""
    arb = flint().arb
    with working(240):
        d = arb(1e-6 * max(float(theta), 1e-3))
        low, mid, high = (loss.log_moment(_plus(theta, x)) for x in (-d, arb(0), d))
        mean = arb(float((high - low) / (2 * d)))
        # a small b: the moments at far tilts may be enormous
        b = arb(1e-3 * min(1.0, 1 / math.sqrt(max(float((high - 2 * mid + low) / d**2), 1e-300))))
        up = (loss.log_moment(_plus(theta, b)) - mid - b * mean).exp()
        down = (loss.log_moment(_plus(theta, -b)) - mid + b * mean).exp()
        return ((up + down - 2) / b**2).upper()


def _plus(x: Ball, y: Ball) -> Ball:
    with working(_EXACT):
        return x + y


@lru_cache(maxsize=64)
def _half_lines(loss: SampledGaussianBall, theta: Ball) -> tuple[Floats, Floats]:
    """For t0 from right to left, the last -inf: lower bounds of the tilted mass beyond t0, and upper bounds
    of the total variation of the density f of the tilted loss cut off at t0.

    In t, f = s phi(t) A^{r+1} e^{-w} / (q M(r)), zero at both ends. Its log-derivative -t + ((r+1) S - 1)/s,
    with S = q e^w / A logistic in t, has at most 3 zeros, so f at most 2 maxima; a cut where f falls has one
    of them to its left, so a cut f goes up, down, up, down at most: V <= 4 sup f. Where r+1 <= 4 s^2 the
    derivative of that expression is negative (S' <= 1/(4s)): one maximum, V <= 2 sup f.
    """
    arb = flint().arb
    with working(64):
        (s, q), sigma = _enclosed(loss.rate, loss.variance), _near(loss.rate, loss.variance)[1]
        r = 1 + theta if loss.remove else -theta
        power, log_m, log_stay = r + 1, loss.log_moment(theta), (1 - q).log()
        factor = 2 if power <= 4 * s * s else 4
        reach = 12 + 6 / sigma + math.sqrt(2 * max(0.0, float(power * log_stay)))
        top = _CELL * math.ceil((max(float(power), 0.0) / sigma + reach) / _CELL)  # so that every cell ends at a double
        cells = math.ceil((top + reach) / _CELL)
        right, left = arb(top), arb(top - cells * _CELL)
        # f = exp(scale + (r+1) log A - t^2/2 - t/s); outside [left, right] A <= max(1, e^w), or A >= 1-q
        # where r+1 < 0, and the exponents so bounded fall outwards
        scale = 1 / (2 * s * s) - log_m + (s / q).log() - (2 * arb.pi()).log() / 2
        floor = power * log_stay if power < 0 else arb(0)
        sup = floor - right * right / 2 - right / s
        if power > 0:
            sup = sup.max(-right * right / 2 + (power - 1) * right / s - power / (2 * s * s))
        mass, shares, variations = arb(0), [], []
        b, log_b = right, _log_a(s, q, right)
        for i in range(1, cells + 1):
            a = arb(top - i * _CELL)
            log_below = _log_a(s, q, a)
            far = max(abs(float(a)), abs(float(b)))
            near = 0.0 if a < 0 < b else min(abs(float(a)), abs(float(b)))
            sup = sup.max(power * (log_b if power > 0 else log_below) - arb(near) ** 2 / 2 - a / s)
            least = r * (log_below if r > 0 else log_b) - arb(far) ** 2 / 2 - log_m
            mass += (_CELL / (2 * arb.pi()).sqrt() * least.exp()).lower()
            if i % 8 == 0:
                shares.append(ends(mass)[0])
                variations.append(ends(factor * (sup + scale).exp())[1])
            b, log_b = a, log_below
        sup = sup.max(floor - left * left / 2 - left / s)
        shares.append(1.0)
        variations.append(ends(factor * (sup + scale).exp())[1])
        return np.array(shares), np.array(variations)


def _log_a(s: Ball, q: Ball, t: Ball) -> Ball:
    return (q * (t / s - 1 / (2 * s * s)).expm1()).log1p()
