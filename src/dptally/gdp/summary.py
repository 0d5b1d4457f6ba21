"""One mu for a whole composition, and what the summary costs: how far its curve lies above the true
profile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from dptally import checks
from dptally.accounting.gaussian import epsilon_mu
from dptally.checks import Floats
from dptally.errors import InvalidType, Unanswerable
from dptally.gdp.measure import Measurement, checked_tolerance, measured
from dptally.gdp.view import View, view_of
from dptally.interval import Interval
from dptally.mechanisms import GaussianDP, Mechanism
from dptally.numerics.normal import log_gaussian_delta
from dptally.numerics.rounding import EPS

__all__ = ["Summary", "summary"]

_FINE = 1e-3  # of the regret: where its bounds are this close the search ends
_ROUNDS = 12
_LITTLE = math.log(1e-5)  # of the Gaussian curve: where the profile is certainly below it is not looked at closely


@dataclass(frozen=True, slots=True)
class Summary:
    """``mu`` with the measurement behind it; ``regret`` bounds the largest delta_mu(eps) - delta(eps) over every
    eps >= 0 (beyond the head too), at mu.upper.

    ``regret_at`` is an epsilon where the gap is at least regret.lower.
    """

    measurement: Measurement
    regret: Interval
    regret_at: float
    plan: Mechanism = field(repr=False)

    @property
    def mu(self) -> Interval:
        return self.measurement.mu

    @property
    def head(self) -> float:
        return self.measurement.head

    @property
    def left_out(self) -> float:
        return self.measurement.left_out

    def epsilon(self, delta: float) -> float:
        """The epsilon that the summary alone gives at ``delta``; refused below ``left_out``, which it does
        not cover.
        """
        delta = checks.probability("delta", delta)
        if delta < self.left_out:
            raise Unanswerable(
                f"the summary holds up to a failure probability {self.left_out:.3g}, which is above delta "
                f"{delta:.3g}; summarise on a larger head"
            )
        return epsilon_mu(self.mu.upper, delta)

    def epsilon_regret(self, delta: float) -> float:
        """How much larger the summary's epsilon is at ``delta`` than the plan's own (upper bounds of
        both).
        """
        return self.epsilon(delta) - self.plan.epsilon(delta)

    def tradeoff(self, fpr: Floats) -> tuple[Floats, Floats]:
        """For a plot: the smallest false-negative rates of the plan and of its summary at these false-positive
        rates; the summary's is the lower curve, beyond a failure probability of ``left_out``.
        """
        return self.plan.tradeoff(fpr), GaussianDP(self.mu.upper).tradeoff(fpr)


def summary(plan: Mechanism, head: float | None = None, tolerance: float = 1e-6) -> Summary:
    """The smallest mu whose Gaussian curve covers the composed profile, with its regret.

    Composing the parts' own mu (sqrt of the sum of squares) is larger: the summary measures the composition
    itself. [Liu et al. 2022, Sec. 5.2]

    >>> from dptally import Gaussian, Laplace
    >>> round(summary(Gaussian(sigma=1.0) + Gaussian(sigma=1.0)).mu.upper, 9)
    1.414213562
    """
    if not isinstance(plan, Mechanism):
        raise InvalidType("plan", "a mechanism or a plan", plan)
    head = None if head is None else checks.positive("head", head)
    view = view_of(plan)
    measurement = measured(plan, view, head, checked_tolerance(tolerance))
    mu = measurement.mu.upper
    if mu == 0 or math.isinf(mu):
        return Summary(measurement, Interval(0.0, min(mu, 1.0)), 0.0, plan)
    # beyond, delta_mu itself is below 1e-12
    regret, at = _regret(view, mu, max(epsilon_mu(mu, 1e-12), 1e-9))
    return Summary(measurement, regret, at, plan)


def _regret(view: View, mu: float, end: float) -> tuple[Interval, float]:
    """Bounds of the largest gap delta_mu - delta on [0, end], and where a gap of at least the lower end lies.

    On a cell [a, b] the gap is at most delta_mu(a) - delta(b), since both fall. The cells that may hold the
    largest are halved until the bounds agree to a thousandth or the rounds are spent; both ends are
    certified throughout.
    """
    first, more = (48, 96) if view.cheap else (14, 4)
    x = end * np.linspace(0.0, 1.0, first) ** 1.5
    low, high = _bounds(view, mu, x)
    for _ in range(_ROUNDS):
        order = np.argsort(x)
        x, low, high = x[order], low[order], high[order]
        gauss_low, gauss_high = (np.exp(part) for part in log_gaussian_delta(mu, x, 0.0))
        gap = gauss_low * (1 - 4 * EPS) - np.exp(high) * (1 + 4 * EPS)
        most = _most(x, np.exp(low) * (1 - 4 * EPS), np.exp(high) * (1 + 4 * EPS), gauss_high * (1 + 4 * EPS))
        best, limit = max(float(gap.max()), 0.0), max(float(most.max()), 0.0)
        if limit - best <= _FINE * limit + 1e-15:
            break
        split = np.flatnonzero(most > best + 0.5 * _FINE * limit)
        split = split[np.argsort(most[split])[::-1][:more]]
        fresh = 0.5 * (x[split] + x[split + 1])
        fresh_low, fresh_high = _bounds(view, mu, fresh)
        x, low, high = np.append(x, fresh), np.append(low, fresh_low), np.append(high, fresh_high)
    return Interval(best, max(best, limit, 1e-12)), float(x[int(np.argmax(gap))])  # pyright: ignore[reportPossiblyUnboundVariable]


def _bounds(view: View, mu: float, x: Floats) -> tuple[Floats, Floats]:
    """Bounds of log delta, rough ones where it is next to nothing beside delta_mu."""
    return view.log_delta_above(x, log_gaussian_delta(mu, x, 0.0)[0] + _LITTLE)


def _most(x: Floats, low: Floats, high: Floats, gauss: Floats) -> Floats:
    """An upper bound of the gap on every cell.

    In e^eps the Gaussian curve lies below its chord, and the profile above the chords of the neighbouring
    cells, continued: the gap is at most the largest of chord - continued chord at the cell's ends and where
    the two continued chords cross. The plain bound delta_mu(a) - delta(b) is taken where it is smaller.
    """
    plain = gauss[:-1] - low[1:]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        width = np.expm1(np.diff(x))  # of the cell in e^eps, in units of its left end
        out = plain.copy()
        for i in range(1, x.size - 2):
            # s in [0, 1] is the position inside the cell; both continued chords are linear in s
            before = width[i] / -np.expm1(x[i - 1] - x[i])  # cell width over that of the cell before
            after = width[i] / (np.exp(x[i + 1] - x[i]) * width[i + 1])
            from_left = low[i], low[i] - before * (high[i - 1] - low[i])
            from_right = low[i + 1] + after * (low[i + 1] - high[i + 2]), low[i + 1]
            rise = (from_right[1] - from_left[1]) - (from_right[0] - from_left[0])
            cross = float(np.clip((from_left[0] - from_right[0]) / rise, 0.0, 1.0)) if rise != 0 else 0.5
            gaps = []
            for s in (0.0, cross, 1.0):
                floor = max(
                    from_left[0] + s * (from_left[1] - from_left[0]),
                    from_right[0] + s * (from_right[1] - from_right[0]),
                )
                gaps.append(gauss[i] + s * (gauss[i + 1] - gauss[i]) - floor)
            bound = max(gaps) + 1e-14
            out[i] = min(out[i], bound) if np.isfinite(bound) else out[i]
    return out
