"""The Poisson-sampled Gaussian under REPLACE for the inversion: M(z) = E A(t)^{1+z} A(-t)^{-z}, t ~ N(0, 1).

A = 1 - q + q e^w, w = t/s - 1/(2 s^2). In the strip |Im t| <= a < pi s, A(t) cos(a / 2s) <= |A(t+ia)| <= A(t) and the
argument of A(t+ia) lies between 0 and a/s, that of A(-t-ia) between -a/s and 0. So with z = theta + iu, theta >= 0, the
trapezoid rule of step h errs by at most
    M(theta) e^{a^2/2} (1 + e^{2 |u| a/s}) cos(a / 2s)^{-theta} / (e^{2 pi a/h} - 1),
and since A(-t) >= 1 - q and A(t)^{1+theta} <= 1 + e^{(1+theta) w}, what its ends leave out is at most (1-q)^-theta
times two normal tails on either side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from flint import arb, ctx

from .balls import Number, ball, floats, precision
from .pieces import MOST_QUADRATURE, SampledPiece, _beyond, _Rule


@dataclass(frozen=True)
class SampledReplacePiece(SampledPiece):
    """``count`` steps; the same in both directions."""

    sigma: Number
    q: Number
    direction: str = "replace"
    count: int = 1

    def _rule(self, theta: arb, most_u: arb, bits: int = 0) -> _Rule:
        return _rule(self.sigma, self.q, floats(theta)[0], floats(theta)[1], floats(most_u)[1], bits or int(ctx.prec))

    def power_law(self, theta: arb, u: arb) -> tuple[arb, arb]:
        """|phi(u)| <= 1 - pi + V / u: pi the tilted mass of any interval of t, V the variation of the density there."""
        shares, variations = _intervals(self, float(theta))
        best = int(np.argmin(1 - shares + variations / float(u)))
        one = (1 - arb(shares[best]) + arb(variations[best]) / u).min(arb(1))
        return one**self.count, arb(0)

    def _float_logs(self, s: float) -> tuple[np.ndarray, np.ndarray, float]:
        t, up, down = _float_grid(float(ball(self.sigma)), float(ball(self.q)))
        logs = (1 + s) * up - s * down - t * t / 2
        return up - down, logs, math.log(t[1] - t[0]) - 0.5 * math.log(2 * math.pi)

    def float_cumulants(self, s: float) -> tuple[float, float]:
        loss, logs, _ = self._float_logs(s)
        weights = np.exp(logs - logs.max())
        mean = float(np.average(loss, weights=weights))
        return mean, float(np.average((loss - mean) ** 2, weights=weights))

    def float_log_phi(self, theta: float, u: float) -> float:
        sigma, q = float(ball(self.sigma)), float(ball(self.q))
        end = (1 + 2 * theta) / sigma + 14
        t = np.linspace(-14 - 2 / sigma, end, int(4000 + 12 * u / sigma) if u < 1e6 else 4000)
        up, down = (np.logaddexp(np.log1p(-q), math.log(q) + x / sigma - 0.5 / sigma**2) for x in (t, -t))
        x = (1 + theta) * up - theta * down - t * t / 2
        w = np.exp(x - x.max())
        return math.log(max(abs(np.sum(w * np.exp(1j * u * (up - down)))) / np.sum(w), 1e-14))


@lru_cache(maxsize=64)
def _float_grid(sigma: float, q: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    t = np.arange(-40.0, 40.0 + 120 / sigma, 0.05 * min(1.0, sigma))
    up, down = (np.logaddexp(np.log1p(-q), math.log(q) + x / sigma - 0.5 / sigma**2) for x in (t, -t))
    return t, up, down


def _log_a(s: arb, q: arb, t: arb) -> arb:
    return (q * (t / s - 1 / (2 * s * s)).expm1()).log1p()


@lru_cache(maxsize=40)
def _rule(sigma: Number, rate: Number, theta: float, theta_upper: float, most_u: float, bits: int) -> _Rule:
    s, q = ball(sigma), ball(rate)
    tilt = arb(theta).union(arb(theta_upper)) if theta != theta_upper else arb(theta)
    if not (tilt >= 0 and 0 < q < 1):
        raise ArithmeticError("a tilt of zero or more and a rate strictly between 0 and 1")
    sf, want = float(s), bits * math.log(2)
    best, a = 0.0, 0.1
    for b in np.linspace(0.02, 0.98, 60) * math.pi * sf:
        need = b * b / 2 + 2 * most_u * b / sf + want - theta * math.log(math.cos(min(b / (2 * sf), 1.57)))
        if b / need > best:
            best, a = b / need, float(b)
    h, strip, r = arb(2 * math.pi * best), arb(a), 1 + tilt
    relative = (strip**2 / 2).exp() / (strip / (2 * s)).cos() ** tilt / ((2 * arb.pi() * strip / h).exp() - 1)
    more = max(0.0, (1 + theta) * theta / (2 * sf**2)) - theta * math.log1p(-float(q))
    reach = math.sqrt(2 * (want + 10 + more))
    low, high = math.floor(-reach / float(h)) - 1, math.ceil(((1 + theta) / sf + reach) / float(h)) + 1
    if high - low > MOST_QUADRATURE:
        raise ArithmeticError(f"needs {high - low} quadrature nodes")
    losses, weights, total = [], [], arb(0)
    norm = h / (2 * arb.pi()).sqrt()
    for j in range(low, high + 1):
        t = j * h
        up, down = _log_a(s, q, t), _log_a(s, q, -t)
        weight = norm * (r * up - tilt * down - t * t / 2).exp()
        losses.append(up - down)
        weights.append(weight)
        total += weight
    centre = r / s
    cut = _beyond(-(low * h)) + _beyond(high * h)
    cut += (r * (r - 1) / (2 * s * s)).exp() * (_beyond(centre - low * h) + _beyond(high * h - centre))
    cut /= (1 - q) ** tilt
    # positive sum: M(theta) = total +- errors; solve |M - total| <= 2 relative M + cut
    twice = 2 * relative
    enclosure = ((total - cut) / (1 + twice)).union((total + cut) / (1 - twice))
    return _Rule(losses, weights, enclosure, relative.upper(), 2 * strip / s, cut.upper())


@lru_cache(maxsize=256)
def _intervals(piece: SampledReplacePiece, theta: float) -> tuple[np.ndarray, np.ndarray]:
    """For intervals [t0, top] of growing length: the tilted mass (lower bounds), and the total variation of the density
    of one tilted loss that is cut off outside (upper bounds).

    In t the density is f = phi(t) A(t)^{1+theta} A(-t)^-theta / (M l'(t)), l' = (S(t) + S(-t)) / s with the logistic
    S = q e^w / A, S' = S (1 - S) / s. TV = int |f'| + the two ends, every cell a ball, with
    f' / f = -t + ((1+theta) S(t) + theta S(-t)) / s - l'' / l'.
    """
    with precision(64):
        s, q, tilt = ball(piece.sigma), ball(piece.q), arb(theta)
        log_norm = piece.log_moment(tilt) + (2 * arb.pi()).log() / 2
        top, low = (1 + 2 * theta) / float(s) + 12, -12 - 2 / float(s)
        width = 2.0 ** math.floor(math.log2(min(2.0**-6, 0.3 * float(s) / (1 + 2 * theta))))
        top = math.ceil(top / width) * width  # the ends of all cells are doubles
        cells = math.ceil((top - low) / width)

        def share(t: arb) -> arb:
            return 1 / (1 + (1 - q) / q * (1 / (2 * s * s) - t / s).exp())

        def density(t: arb) -> arb:
            """An upper bound of f over the ball t: each factor at its own worst point."""
            right = arb(t.upper())
            square = t.abs_lower() ** 2
            power = (1 + tilt) * _log_a(s, q, right) - tilt * _log_a(s, q, -right)
            slope = (share(t) + share(-t)) / s
            return ((power - square / 2 - log_norm).exp() / slope.lower()).upper()

        mass, variation = arb(0), arb(0)
        end = density(arb(top))
        shares, variations = [0.0], [1.0]
        for i in range(cells):
            b = arb(top - i * width)
            a = b - width
            cell = a.union(b)
            plus, minus = share(cell), share(-cell)
            bend = (plus * (1 - plus) - minus * (1 - minus)) / (plus + minus) / s
            rate = -cell + ((1 + tilt) * plus + tilt * minus) / s - bend
            variation += (width * density(cell) * abs(rate)).upper()
            least = (1 + tilt) * _log_a(s, q, a) - tilt * _log_a(s, q, -a) - cell.abs_upper() ** 2 / 2 - log_norm
            mass += (width * least.exp()).lower()
            if i % 16 == 15 or i == cells - 1:
                shares.append(floats(mass)[0])
                variations.append(floats(variation + end + density(a))[1])
        # of the whole interval the mass is better known from outside
        r, first = 1 + tilt, arb(top) - cells * width
        out = _beyond(-first) + _beyond(arb(top))
        out += (r * (r - 1) / (2 * s * s)).exp() * (_beyond(r / s - first) + _beyond(arb(top) - r / s))
        out = out / (1 - q) ** tilt / piece.log_moment(tilt).exp()
        shares.append(floats(1 - out)[0])
        variations.append(variations[-1])
        return np.array(shares), np.array(variations)
