r"""The privacy loss of a whole plan as a random variable: L = log dP/dQ under P, with certified bounds.

Everything is read off the certified profile H(e) = E[(1 - exp(e - L))+]. In x = e^e it is convex and falls, and

    P(L > e) = H(e) + x S(e),     S(e) = E_P[exp(-L); L > e] = -H'(x+)

[the dual of Dong, Roth, Su 2022, Prop. 2.12]. A convex function lies above its tangents, so for h > 0

    (H(e) - H(e + h)) / (x_{e+h} - x_e)  <=  S(e)  <=  (H(e - h) - H(e)) / (x_e - x_{e-h}).

Below zero the other direction of the pair is read instead: with L' = -L under Q and H' its profile,
P(L <= -e) = E_Q[exp(-L'); L' >= e] lies between the same two quotients of H'. Any h proves a bound, and h = sqrt(w)
deviations is about the best where w is the relative width of the profile's bounds: w = 1e-12 gives 1e-6 here.

The variance is a sum over the steps. With A(t) = E[2 cosh(t L) - 2] = e^K(t) + e^K(-t) - 2, all of whose terms
2 (t L)^(2k) / (2k)! are positive, the differences of order 6 and 8 bound the second moment from both sides:

    (8/5 A(t) - 1/5 A(2t) + 8/315 A(3t) - 1/560 A(4t)) / t^2 <= E[L^2],
    E[L^2] <= (3/2 A(t) - 3/20 A(2t) + 1/90 A(3t)) / t^2,

since in each the later terms have one sign: 3/2 - 3/20 4^k + 9^k/90 > 0 for k >= 4 and 8/5 - 4^k/5 + 8/315 9^k -
16^k/560 < 0 for k >= 5. Laws that only bound their moments from above (``Law.moments_from_above``) have an upper bound
of the variance, and of the mean the least Renyi divergence above and 2 H(0)^2 below  [Pinsker's inequality].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dptally import checks
from dptally.accounting import certified
from dptally.accounting.crossing import Crossing, Target, Valley
from dptally.accounting.draws import drawn
from dptally.accounting.moments import MOMENT_TRUST, infinity_mass
from dptally.checks import Floats
from dptally.errors import Unanswerable
from dptally.interval import Interval
from dptally.law import Composition, Law
from dptally.numerics.rounding import EPS, down, up

__all__ = ["Loss"]

_LEAST_STEP, _MOST_STEP = 3e-7, 0.05  # of h, in units of the standard deviation (at most of 1)
_TILTS = 2.0 ** np.arange(-3.0, -24.0, -1.5)  # t

Profile = Callable[[float], Interval]


@dataclass(frozen=True, slots=True, eq=False)
class Loss:
    """The loss of one direction of a plan. Made by ``plan.loss(direction)``.

    ``cdf``, ``tail`` and ``quantile`` answer certified intervals, ``mean`` and ``variance`` are intervals;
    ``density`` and ``sample`` are estimates, for plots and simulations.
    """

    composition: Composition
    reverse: Composition | None
    direction: str
    _profiles: dict[bool, Profile] = field(default_factory=dict, repr=False)
    _kept: dict[str, Interval] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self.composition.determined:
            raise Unanswerable(
                "the plan bounds Renyi divergences only and does not determine the distribution of its privacy loss; "
                "ask epsilon(delta=...), or renyi(order) for its moments"
            )

    def __repr__(self) -> str:
        return f"Loss(direction={self.direction!r}, mean={self.mean}, variance={self.variance})"

    # -- moments -----------------------------------------------------------------------------------------------

    @property
    def infinite(self) -> Interval:
        """P(L = inf)."""
        return Interval(*infinity_mass(self.composition), "mass at infinity")

    @property
    def mean(self) -> Interval:
        """E[L], the KL divergence; inf where the loss may be infinite."""
        if self.infinite.upper > 0:
            return Interval(math.inf, math.inf, "the loss may be infinite")
        total = self._mean()
        if any(law.moments_from_above for law, _ in self.composition.parts):
            least = self._full(0.0)[0]  # the total variation
            method = "Pinsker's inequality, and the least Renyi divergence"
            return Interval(max(0.0, down(2.0 * least * least, 4)), _above(total), method)
        return Interval(max(0.0, _below(total)), _above(total), "sum of the steps' means")

    @property
    def variance(self) -> Interval:
        """Var L; inf where the loss may be infinite."""
        if self.infinite.upper > 0:
            return Interval(math.inf, math.inf, "the loss may be infinite")
        if "variance" not in self._kept:
            parts = [(_variance(law), n) for law, n in self.composition.parts]
            lower = max(0.0, down(math.fsum(n * box.lower for box, n in parts), 4))
            upper = math.fsum(n * box.upper for box, n in parts)
            self._kept["variance"] = Interval(lower, up(upper, 4) if upper > 0 else 0.0, "differences of moments")
        return self._kept["variance"]

    # -- probabilities -----------------------------------------------------------------------------------------

    def cdf(self, loss: float) -> Interval:
        """P(L <= loss)."""
        at = checks.real("loss", loss)
        if math.isinf(at):
            tail = self.tail(at)
        elif at < 0:
            low, high = self._below_zero(at)
            return Interval(low, high, "slopes of the reverse profile")
        else:
            tail = self.tail(at)
        low, high = max(0.0, down(1.0 - tail.upper)), min(1.0, up(1.0 - tail.lower))
        return Interval(0.0 if tail.lower == 1 else low, 1.0 if tail.upper == 0 else high, tail.method)

    def tail(self, loss: float) -> Interval:
        """P(L > loss), with the mass at infinity."""
        at = checks.real("loss", loss)
        if math.isinf(at):
            mass = self.infinite
            return Interval(1.0, 1.0, "everything") if at < 0 else Interval(mass.lower, mass.upper, mass.method)
        if at < 0:
            low, high = self._below_zero(at)
            return Interval(max(0.0, down(1.0 - high)), min(1.0, up(1.0 - low)), "slopes of the reverse profile")
        low, high = self._beyond(at)
        return Interval(low, high, "slopes of the profile")

    def quantile(self, probability: float) -> Interval:
        """The smallest x with P(L <= x) >= probability; -inf at 0, inf where the mass at infinity is in the way."""
        p = checks.probability("probability", probability)
        if p == 0:
            return Interval(-math.inf, -math.inf, "every loss")
        if p == 1 or 1 - p < self.infinite.lower:
            return self._last() if p == 1 else Interval(math.inf, math.inf, "the mass at infinity")
        return self._crossing(p, rising=True)

    def exceeded_with(self, probability: float) -> Interval:
        """The smallest x with P(L > x) <= probability: the epsilon of probabilistic DP, for small probabilities.

        [Liu, Wang 2025, Def. 2.] It is quantile(1 - probability), without the rounding of 1 - probability.
        """
        p = checks.probability("probability", probability)
        if p >= 1:
            return Interval(-math.inf, -math.inf, "every loss")
        if p < self.infinite.lower:
            return Interval(math.inf, math.inf, "the mass at infinity")
        if p == 0:
            return self._last()
        return self._crossing(p, rising=False)

    def density(self, loss: Floats | float) -> Floats | float:
        """The density of the finite loss: an estimate, for plots. Of one step it is that of the continuous part; of
        several it is smoothed over a hundredth of the deviation, point masses with it.
        """
        given = checks.reals("loss", loss)
        if self.composition.steps == 1:
            values = np.asarray(self.composition.parts[0][0].density(np.atleast_1d(given)), dtype=np.float64)
            values = values.reshape(given.shape)
        else:
            h = 0.01 * self._deviation()
            flat = [self._estimate(x + h) - self._estimate(x - h) for x in given.ravel().tolist()]
            values = np.maximum(np.array(flat) / (2 * h), 0.0).reshape(given.shape)
        return float(values) if given.ndim == 0 else values

    def sample(self, n: int, seed: int | None = None) -> Floats:
        """``n`` independent draws of the loss (an estimate of its law: doubles, tables), inf where it is infinite."""
        return drawn(self.composition, checks.count("n", n, 1), seed)

    # -- slopes ------------------------------------------------------------------------------------------------

    def _full(self, epsilon: float) -> tuple[float, float]:
        """Bounds of H at any real epsilon; below 0 by H(1/x) = 1 - 1/x + H'(x)/x of the other direction."""
        if epsilon >= 0:
            box = self._profile(True)(epsilon)
            return box.lower, box.upper
        shrink = math.exp(epsilon)
        if self.reverse is None:
            return max(0.0, down(-math.expm1(epsilon), 4)), 1.0
        box = self._profile(False)(-epsilon)
        return max(0.0, down(-math.expm1(epsilon) + shrink * box.lower, 8)), min(
            1.0, up(-math.expm1(epsilon) + shrink * box.upper, 8)
        )

    def _profile(self, forward: bool) -> Profile:
        if forward not in self._profiles:
            composition = self.composition if forward or self.reverse is None else self.reverse
            self._profiles[forward] = certified.delta_profile(composition)
        return self._profiles[forward]

    def _beyond(self, at: float) -> tuple[float, float]:
        """Bounds of P(L > at), at >= 0."""
        mass = self.infinite
        if at >= self.composition.supremum:
            return mass.lower, mass.upper
        exact = self._closed(at)
        if exact is not None:
            return exact
        low, high = self._full(at)
        h = self._step(at, low, high)
        ahead, behind = at + h, at - h  # rounded: the steps are what lies between the doubles that are asked
        after, before = self._full(ahead)[1], self._full(behind)[1]
        least = low + (low - after) / math.expm1(ahead - at) * (1 - 8 * EPS) - 4 * EPS * low
        most = high + (before - low) / -math.expm1(behind - at) * (1 + 8 * EPS) + 4 * EPS * high
        least = min(max(least, low, 0.0), 1.0)
        return least, max(min(most, 1.0), least)

    def _closed(self, at: float) -> tuple[float, float] | None:
        """The law's own bounds, where one step is all and it has some."""
        if self.composition.steps != 1:
            return None
        found = self.composition.parts[0][0].log_tail(at)
        return None if found is None else (max(0.0, down(math.exp(found[0]), 4)), min(1.0, up(math.exp(found[1]), 4)))

    def _below_zero(self, at: float) -> tuple[float, float]:
        """Bounds of P(L <= at), at < 0."""
        if at < self.composition.infimum:
            return 0.0, 0.0
        exact = self._closed(at)
        if exact is not None:
            return max(0.0, down(1.0 - exact[1])), min(1.0, up(1.0 - exact[0]))
        if self.reverse is None:
            return 0.0, min(1.0, up(1.0 - self._beyond(0.0)[0]))
        y, profile = -at, self._profile(False)
        here = profile(y)
        h = self._step(y, here.lower, here.upper)
        scale = math.exp(-y)
        ahead, behind = y + h, max(y - h, 0.0)
        least = (here.lower - profile(ahead).upper) / math.expm1(ahead - y) * scale * (1 - 8 * EPS)
        least, most = min(max(least, 0.0), 1.0), 1.0
        if behind < y:
            most = (profile(behind).upper - here.lower) / -math.expm1(behind - y) * scale * (1 + 8 * EPS)
        return least, max(min(most, 1.0), least)

    def _step(self, at: float, low: float, high: float) -> float:
        """About the h that balances the rounding of the profile and its curvature."""
        width = (high - low) / high if high > 0 else 0.0
        h = min(max(math.sqrt(width), _LEAST_STEP), _MOST_STEP) * min(self._deviation(), 1.0)
        return max(h, 4 * math.ulp(max(at, 1.0)))

    # -- searches ----------------------------------------------------------------------------------------------

    def _last(self) -> Interval:
        """The largest loss; inf where it is unbounded or may be infinite."""
        top = self.composition.supremum_interval
        if self.infinite.upper > 0 or math.isinf(top.upper):
            return Interval(math.inf, math.inf, "the largest loss")
        return Interval(top.lower, top.upper, "the largest loss")

    def _crossing(self, target: float, rising: bool) -> Interval:
        """Where a monotone probability crosses the target: both ends are certified by values of their own."""
        left = down(1.0 - target) if rising else target
        # where the target equals the mass at infinity to rounding, the crossing may be at infinity
        top = self.composition.supremum if left >= self.infinite.upper else math.inf
        low, unit = self.composition.infimum, self._deviation()
        mean = self.mean.midpoint if math.isfinite(self.mean.upper) else 0.0
        closed = Crossing(self.cdf if rising else self.tail, target, rising, unit, low, top)
        start = mean + closed.score(target) * unit
        if self._closed(min(max(start, low), top)) is not None:
            return closed.found(start)
        backward = None if self.reverse is None else self._bounds_of(False)
        aim = Target.reached(target) if rising else Target.exceeded(target)
        return Valley(self._bounds_of(True), backward, aim, unit, low, top).found(start)

    def _bounds_of(self, forward: bool) -> Callable[[float], tuple[float, float]]:
        def bounds(epsilon: float) -> tuple[float, float]:
            box = self._profile(forward)(epsilon)
            return box.lower, box.upper

        return bounds

    def _mean(self) -> float:
        if "mean" not in self._kept:
            found = self.composition.mean
            self._kept["mean"] = Interval(found, found, "computed")
        return self._kept["mean"].upper

    def _deviation(self) -> float:
        """A length to measure losses by: about the standard deviation of the finite loss; no bound rests on it."""
        if "deviation" not in self._kept:
            square = 2.0 * self._mean()  # as for a normal loss: the mean is half the variance
            if not 0 < square < math.inf:
                spread = self.composition.supremum - max(self.composition.infimum, -self.composition.supremum)
                square = spread * spread if 0 < spread < math.inf else 1.0
            found = max(math.sqrt(square), 1e-150)
            self._kept["deviation"] = Interval(found, found, "estimate")
        return self._kept["deviation"].upper

    def _estimate(self, x: float) -> float:
        return self.cdf(x).midpoint


def _variance(law: Law) -> Interval:
    """Bounds of the variance of one step's loss, from its moments at several t."""
    return _variance_below(law) if law.moments_from_above else _variance_between(law)


def _variance_below(law: Law) -> Interval:
    """Var L <= E[L^2] <= E[2 cosh(t L) - 2] / t^2 <= (e^K(t) - 1) / t^2 for 0 < t <= 1, where K(-t) <= 0: K is convex,
    K(0) = 0 and K(-1) <= 0. An upper bound of K will do.
    """
    tilts = np.linspace(0.05, 1.0, 20)
    with np.errstate(over="ignore"):
        upper = up(np.expm1(np.asarray(law.log_moment(tilts), dtype=np.float64)) / tilts**2, 16)
    return Interval(0.0, max(0.0, float(np.nanmin(upper))))


def _variance_between(law: Law) -> Interval:
    with np.errstate(over="ignore", invalid="ignore"):
        grid = np.concatenate([k * _TILTS for k in (1.0, 2.0, 3.0, 4.0)])
        forward, backward = (np.asarray(law.log_moment(t), dtype=np.float64) for t in (grid, -grid))
        size = np.abs(np.expm1(forward)) + np.abs(np.expm1(backward))
        a = (np.expm1(forward) + np.expm1(backward)).reshape(4, -1)
        doubt = law.log_moment_and_error(grid)[1]  # of K at t, and of the same sums at -t
        error = (MOMENT_TRUST * (1 + np.abs(forward)) * size + doubt * (2 + size)).reshape(4, -1)
        lows, highs = np.array([8 / 5, -1 / 5, 8 / 315, -1 / 560]), np.array([3 / 2, -3 / 20, 1 / 90, 0.0])
        second_low = (lows @ a - 2 * np.abs(lows) @ error) / _TILTS**2
        second_high = (highs @ a + 2 * np.abs(highs) @ error) / _TILTS**2
    lower = float(np.nanmax(np.where(np.isfinite(second_low), second_low, 0.0), initial=0.0))
    upper = float(np.nanmin(np.where(np.isfinite(second_high), second_high, np.inf), initial=math.inf))
    mean = law.mean
    least, most = _below(mean), _above(mean)
    return Interval(max(0.0, down(lower - most * most, 4)), max(0.0, up(upper - least * least, 4)))


def _below(value: float) -> float:
    return value - MOMENT_TRUST * abs(value) - 5e-324


def _above(value: float) -> float:
    return value + MOMENT_TRUST * abs(value) + 5e-324
