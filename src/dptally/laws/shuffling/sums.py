r"""E (X_1 + .. + X_n)+ for independent X that take few values: certified, down to any size.

X = b_j with probability p_j, and 0 otherwise; a mean of at most 0 and a largest value above 0. With M(z) = E e^{zX}
and Re z = t > 0

    E (S)+ = (1/2 pi i) int M(z)^n / z^2 dz,

but |M| need not fall along the line. So a Gaussian of deviation s = _PRICE / t (or less) is added: by Jensen
E (S + sG)+ >= E (S)+, the integrand gains e^{s^2 z^2 / 2}, and the price is about (st)^2/2 of the answer. The trapezoid
sum with step h is

    h/(2 pi) sum_k I(t + ihk) = sum_m e^{t m T} E (S + sG - mT)+,      T = 2 pi / h,                     [Poisson]

all of whose terms are >= 0: the sum is an **upper bound** whatever the step. Its remainder beyond |u| = U is at most
(1/pi) I(t) t^2 e^{-(sU)^2/2} / (s^2 U^3). Cells of u in which every part of |M| is certainly small are bounded instead
of summed:

    |M(t + iu)|^2 = M(t)^2 (1 - 2 sum_{j<k} q_j q_k (1 - cos u(b_j - b_k))),      q the tilted probabilities.

From below: E (S + sG)+ - E (S)+ = E s psi(S/s) <= E s phi(S/s), which is the same kind of sum with s^2 e^{s^2 z^2/2}
in the place of 1/z^2 (again its trapezoid sum is an upper bound), and the terms m != 0 are subtracted by Chernoff's
bound.
Proofs in docs/shuffling.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dptally.checks import Floats
from dptally.numerics.rounding import EPS

__all__ = ["FewValues", "LogBounds", "log_positive_part"]

_PRICE, _SMALL_PRICE = 8e-3, 2e-3  # s t: the smaller one where the line is short, as it is for many summands
_REACH = 9.5  # deviations of the Gaussian: what lies beyond is below e^-45
_NEGLIGIBLE = 36.0  # nats
_MOST_CELLS = 1 << 18


class LogBounds(NamedTuple):
    """Bounds of a logarithm."""

    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class FewValues:
    """Values, each within ``slip`` of the exact one, and probabilities, ``rest`` that of 0, each within 4 ulps."""

    values: Floats
    slip: Floats
    probabilities: Floats
    rest: float
    number: int

    def log_moment(self, t: float) -> float:
        """log E e^{tX}, within a few ulps of 1 + |log M|; infinite where an exponent is too large."""
        rows = list(zip(self.values.tolist(), self.probabilities.tolist(), strict=True))
        if t * max(b for b, _ in rows) > 700.0:
            return math.inf
        change = math.fsum(p * math.expm1(t * b) for b, p in rows)
        if change > -0.5:
            return math.log1p(change)
        return math.log(math.fsum([self.rest, *(p * math.exp(t * b) for b, p in rows)]))

    def saddle(self) -> float:
        """About the t > 0 with the least n log M(t) - 2 log t: where n t M'(t) = 2 M(t)."""
        rows = list(zip(self.values.tolist(), self.probabilities.tolist(), strict=True))
        highest = max(b for b, _ in rows)

        def excess(x: float) -> float:
            t = math.exp(x)
            terms = [(b, p * math.exp(t * b)) for b, p in rows]
            moment = self.rest + sum(weight for _, weight in terms)
            return float(self.number * t * sum(b * weight for b, weight in terms) / moment - 2.0)

        spread = math.sqrt(self.number * sum(p * b * b for b, p in rows))
        end = math.log(600.0 / highest)
        low = high = min(math.log(1.0 / spread), end)
        while excess(low) > 0 and low > -300.0:
            low -= 1.0
        while excess(high) < 0 and high < end:
            high = min(high + 1.0, end)
        for _ in range(12):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if excess(middle) < 0 else (low, middle)
        return math.exp(0.5 * (low + high))


def log_positive_part(law: FewValues) -> LogBounds:
    """Bounds of log E (X_1 + .. + X_n)+."""
    if not float(law.values.max()) > 0:
        return LogBounds(-math.inf, -math.inf)
    t = law.saddle()
    frame = _Frame.of(law, t)
    total, error, bump = frame.sums()
    scale = frame.log_scale
    missing = bump + error + frame.aliases()
    # log M(t) is within its doubt, and the logarithms are within an ulp of themselves
    slack = law.number * (frame.doubt + 8 * EPS * (1.0 + abs(frame.log_m))) + 8 * EPS * (1.0 + abs(scale))
    lower = scale + math.log(total - missing) - slack if total > missing else -math.inf
    return LogBounds(lower, scale + math.log(total + error) + slack)


@dataclass(frozen=True, slots=True)
class _Frame:
    """The line Re z = t: everything relative to I(t) t^2 = M(t)^n."""

    law: FewValues
    t: float
    tilted: Floats  # probabilities of the values under the tilt, 0 (what is left) first
    values: Floats  # with 0 first
    log_m: float
    blur: float  # s
    period: float  # T

    @classmethod
    def of(cls, law: FewValues, t: float) -> _Frame:
        values = np.append(0.0, law.values)
        weights = np.append(law.rest, law.probabilities) * np.exp(t * values)
        m = math.fsum(weights.tolist())
        tilted = weights / m
        mean = float(tilted @ values)
        deviation = math.sqrt(law.number * float(tilted @ (values - mean) ** 2))
        short = t * float(values.max() - values.min()) < 0.5
        blur = (_SMALL_PRICE if short else _PRICE) / t
        return cls(law, t, tilted, values, law.log_moment(t), blur, 14.0 * deviation + 60.0 / t)

    @property
    def log_scale(self) -> float:
        return self.law.number * self.log_m

    @property
    def doubt(self) -> float:
        """How far a computed M(t)/M(t) may be from 1: probabilities, exponents t b, sums."""
        exponents = self.t * (np.append(0.0, self.law.slip) + 2 * EPS * np.abs(self.values))
        return 2.0 * float(self.tilted @ exponents) + 48 * EPS

    @property
    def turning(self) -> float:
        """The same for each unit of u: what is lost in u b."""
        return 2.0 * float(self.tilted @ (np.append(0.0, self.law.slip) + 2 * EPS * np.abs(self.values)))

    def sums(self) -> tuple[float, float, float]:
        """(the sum for 1/z^2, a bound of its error, an upper bound of that for s^2), all relative to M(t)^n.

        A computed w = M(t + iu)/M(t) is off by d = doubt + turning u, its power by n (|w| + d)^{n-1} d.
        """
        step, end = 2 * math.pi / self.period, _REACH / self.blur
        nodes, skipped = self._nodes(step, end)
        u, n = step * nodes, self.law.number
        w = self._ratio(u)
        modulus = np.abs(w)
        weight = np.where(nodes == 0, 1.0, 2.0) * step / (2 * math.pi)
        off = self.doubt + self.turning * u
        with np.errstate(under="ignore", divide="ignore"):
            gauss = np.exp(0.5 * self.blur**2 * (self.t - u) * (self.t + u))
            grown = gauss * np.exp((n - 1) * np.log(modulus + off))
            angle = (n * np.angle(w)) % (2 * math.pi) + self.blur**2 * self.t * u
            size = gauss * np.exp(n * np.log(modulus))
        far = self.t**2 + u**2
        # 1/z^2 = (t - iu)^2 / |z|^4
        turned = np.exp(1j * angle) * ((self.t - 1j * u) / far) ** 2
        payoff = math.fsum((weight * size * turned.real).tolist())
        # the angle is rounded by n pi ulps, the modulus by n, everything else by a few hundred
        wrong = grown * n * off * 2.0 + size * EPS * (512.0 + 8.0 * n)
        top = 1.1 * math.exp(0.5 * (self.blur * self.t) ** 2 - 0.5 * _REACH**2) / math.pi
        error = 1.1 * math.fsum((weight * wrong / far).tolist())
        error += top / (self.blur**2 * end**3) + skipped / self.t**2
        bump = 1.1 * math.fsum((weight * wrong).tolist()) + math.fsum((weight * size).tolist()) + skipped
        return payoff, error, self.blur**2 * bump + top / end

    def _ratio(self, u: Floats) -> Any:
        """M(t + iu)/M(t) = 1 + sum q_j (e^{iu b_j} - 1)."""
        turned = np.zeros(u.shape, dtype=np.complex128)
        for q, b in zip(self.tilted[1:].tolist(), self.values[1:].tolist(), strict=True):
            turned += q * (-2.0 * np.sin(0.5 * b * u) ** 2 + 1j * np.sin(b * u))
        return 1.0 + turned

    def _nodes(self, step: float, end: float) -> tuple[Floats, float]:
        """The k >= 0 that are summed, and a bound of what the others contribute to h/(2 pi) sum |(M/M(t))^n| e^{..}."""
        widest = float(np.max(self.values) - np.min(self.values))
        width = max(0.25 / widest, 8 * step)
        edges = np.arange(0.0, end + width, width)
        if len(edges) > _MOST_CELLS:
            edges = np.linspace(0.0, end * (1 + 1e-12), _MOST_CELLS)
            width = float(edges[1] - edges[0]) * (1 + 1e-12)
        log_bound = self._log_cells(edges)
        least = -_NEGLIGIBLE - math.log(len(edges))
        keep = log_bound > least
        keep[0] = True
        cells = np.flatnonzero(keep)
        first, last = np.ceil(edges[cells] / step), np.ceil(edges[cells + 1] / step)
        nodes = np.concatenate([np.arange(a, b) for a, b in zip(first.tolist(), last.tolist(), strict=True)])
        with np.errstate(under="ignore"):
            skipped = float(np.exp(log_bound[~keep]).sum()) * (width + step) / math.pi * 1.01
        return nodes, skipped

    def _log_cells(self, edges: Floats) -> Floats:
        """Upper bounds of log |(M/M(t))^n e^{s^2 z^2/2}| on the cells between edges.

        1 - cos(x) >= 2 sin^2(y/2) - |x - y| (|sin y| + |x - y|/2) about the middle y of a cell.
        """
        middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
        fall = np.zeros(len(middle))
        for j in range(len(self.values)):
            for k in range(j):
                gap = abs(float(self.values[j] - self.values[k]))
                y, reach = gap * middle, gap * half * (1 + 1e-12)
                # between the ends of the cell the sine of half the angle is at least its middle value less the reach
                least = np.maximum(np.abs(np.sin(0.5 * y)) - 0.5 * reach, 0.0)
                fall += 2.0 * float(self.tilted[j] * self.tilted[k]) * 2.0 * least**2
        log_m = -0.5 * self.law.number * fall * (1 - 1e-9)  # log(1 - x) <= -x
        gauss = 0.5 * self.blur**2 * (self.t**2 - edges[:-1] ** 2)
        return np.asarray(log_m + gauss + 1e-9)

    def aliases(self) -> float:
        """An upper bound of the terms m != 0, relative to M(t)^n: E (Y - x)+ <= e^{-rx} E e^{rY}/(er), Y = S + sG.

        For m > 0 with r = t (1 + f), for m < 0 with r = t (1 - f): geometric in |m|.
        """
        total = 0.0
        for sign in (1.0, -1.0):
            best = math.inf
            for share in (0.5, 0.2, 0.05):
                r = self.t * (1 + sign * share)
                log = self.law.number * (self.law.log_moment(r) - self.log_m) + 0.5 * (r * self.blur) ** 2
                log += self.law.number * self._moment_doubt(r) - share * self.t * self.period - 1.0 - math.log(r)
                ratio = math.exp(-share * self.t * self.period)
                best = min(best, math.exp(min(log, 700.0)) / (1.0 - ratio))
            total += best
        return total

    def _moment_doubt(self, r: float) -> float:
        """Twice what log M may be off at r and at t."""
        largest = float(np.max(self.law.slip + 4 * EPS * np.abs(self.law.values)))
        return 4.0 * r * largest + 128 * EPS
