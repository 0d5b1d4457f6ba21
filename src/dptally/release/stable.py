"""The median and the mean of real numbers by their local sensitivity: propose, test, release.

One record can move the median from one end of the range to the other, but hardly moves it where the records around
the middle lie close together. The caller proposes a bound on how far one record may move the answer; a private test
finds whether the data are far from every dataset on which it may move further; if so the answer is released with noise
for the proposed bound, else nothing. The distances and their proofs are in docs/release.md.  [zCDP notes, Remark 7.2;
Dwork, Lei 2009; the local sensitivity of the median: Nissim, Raskhodnikova, Smith 2007]
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dptally import checks, mechanisms
from dptally.errors import InvalidArgument
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.mechanisms import Mechanism
from dptally.noise import grid as grids
from dptally.noise import parameters
from dptally.noise.parameters import Exact
from dptally.numerics.rounding import down
from dptally.release import column
from dptally.release.additive import Additive, additive
from dptally.release.column import DROP, Rule
from dptally.release.function import Stated, checked_unit, release_function
from dptally.release.propose import passes
from dptally.release.records import (
    Range,
    checked_adjacency,
    checked_bounds,
    grid_for,
    missing_value,
    range_of,
    steps_of,
)
from dptally.release.released import ROW, Released

__all__ = ["distance_of_mean", "distance_of_median", "stable_mean", "stable_median"]

_EVERYWHERE = 1 << 62  # the distance to a dataset that does not exist
_SPAN = 1 << 60  # above every distance between two records in steps of their grid

Steps = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Stable:
    """A release as its arguments state it."""

    stated: Stated
    noise: Additive
    low: Fraction
    high: Fraction
    proposed: Fraction
    missing: float | Rule

    @property
    def size_changes(self) -> bool:
        """Whether a neighbour may hold another number of values: one of a replaced record may be missing."""
        return self.stated.adjacency is ADD_REMOVE or self.missing is DROP

    def sorted_steps(self, data: object) -> tuple[Steps, Range]:
        """The values in order, as steps of a fine grid, between the bounds at both ends: one step more each."""
        records = column.numeric("data", data, self.missing)
        inside = range_of(self.low, self.high, integers=records.dtype.kind != "f")
        steps = np.sort(steps_of(records, inside))
        low, high = min(inside.lower, inside.upper), inside.upper
        return np.concatenate([[low], steps, [high]]).astype(np.int64), inside

    def released(self, exact: Fraction, passed: bool) -> Released:
        if not passed:
            return self.stated.released(None)
        noisy = self.noise.add(
            grids.floor_steps(exact + parameters.two_to(self.noise.exponent) / 2, self.noise.exponent)
        )
        value = noisy * parameters.two_to(self.noise.exponent)
        return self.stated.released(float(min(max(value, self.low), self.high)))


def _prepared(
    query: str,
    *,
    lower: Exact,
    upper: Exact,
    local_sensitivity: Exact,
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    scale: Exact | None = None,
    sigma: Exact | None = None,
    grid: Exact | None = None,
    missing: Exact | Rule = DROP,
    unit: str = ROW,
) -> _Stable:
    epsilon, delta = checks.positive("epsilon", epsilon), checks.open_probability("delta", delta)
    chosen, which = additive(scale, sigma), checked_adjacency(adjacency)
    low, high = checked_bounds(lower, upper)
    proposed = parameters.positive("local_sensitivity", local_sensitivity)
    if not proposed < high - low:
        required = f"below upper - lower = {float(high - low):g}: a bound as wide as the range needs no test"
        instead = "write release.answer(value, sensitivity=upper - lower, ...)"
        raise InvalidArgument("local_sensitivity", required, local_sensitivity, instead)
    chosen = grid_for(chosen, proposed, grid)
    base = chosen.mechanism(grids.ceil_steps(proposed, chosen.exponent))
    mechanism = _test(epsilon) + base + mechanisms.ApproxDP(0.0, delta)
    stated = Stated(mechanism, query, which, checked_unit(unit))
    return _Stable(stated, chosen, low, high, proposed, missing_value(missing, low, high))


def _test(epsilon: float) -> Mechanism:
    """The noisy distance: discrete Laplace noise of scale 1 / epsilon, rounded to the safe side."""
    scale = 1 / epsilon
    return mechanisms.DiscreteLaplace(scale if Fraction(scale) * Fraction(epsilon) <= 1 else down(scale))


# -- the median ----------------------------------------------------------------------------------------------------


def _median_stated(**arguments: Any) -> Stated:
    return _prepared("median", **arguments).stated


@release_function(_median_stated)
def stable_median(
    data: object,
    *,
    lower: Exact,
    upper: Exact,
    local_sensitivity: Exact,
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    scale: Exact | None = None,
    sigma: Exact | None = None,
    grid: Exact | None = None,
    missing: Exact | Rule = DROP,
    unit: str = ROW,
) -> Released:
    """The median of the records clipped to [lower, upper] with noise, where one record hardly moves it; else None.

    ``local_sensitivity`` is what you propose: how far one record may move the median. ``epsilon`` and ``delta`` pay for
    the test whether that is so here and around; ``scale`` or ``sigma`` is for the noise on the median, in the data's
    units. The test passes, but for a chance of about delta, where 2 log(1/delta)/epsilon records around the median lie
    within the bound of each other. Of an even number of records it is the lower median; of nothing, ``lower``.

    >>> ages = [40 + i / 100 for i in range(200)]
    >>> found = stable_median(ages, lower=0, upper=120, local_sensitivity=1, epsilon=1, delta=1e-6, scale=1,
    ...                       adjacency=ADD_REMOVE)
    >>> found.query, found.value is None
    ('median', False)
    """
    plan = _prepared(
        "median", lower=lower, upper=upper, local_sensitivity=local_sensitivity, epsilon=epsilon, delta=delta,
        adjacency=adjacency, scale=scale, sigma=sigma, grid=grid, missing=missing, unit=unit,
    )  # fmt: skip
    values, inside = plan.sorted_steps(data)
    limit = grids.floor_steps(plan.proposed, inside.exponent)
    away = distance_of_median(values, min(limit, _SPAN), plan.stated.adjacency is ADD_REMOVE)
    exact = int(values[(len(values) - 1) // 2]) * parameters.two_to(inside.exponent)
    return plan.released(exact, passes(away, epsilon, delta))


def distance_of_median(values: Steps, limit: int, added_or_removed: bool) -> int:
    """How many records must change before one more may move the median by more than ``limit``.

    ``values`` are x_0 <= x_1 <= ... <= x_n <= x_(n+1): the n records in order between the bounds of the range. The
    median is x_m, m = ceil(n/2). For i < j with x_j - x_i > limit the j - i - 1 records between are in the way; and
    the two must come to stand around the middle. One added or removed record moves the middle by half a place:

        min of (j - i - 1) + dist(n + 1 - i - j, {0, 1})     over all i < j with x_j - x_i > limit.

    One replaced record moves a record past the middle at once: min of j - i - 1 over such i <= m <= j.
    """
    n = len(values) - 2
    middle = (n + 1) // 2
    first = np.arange(len(values) if added_or_removed else middle + 1)
    second = np.searchsorted(values, values[first] + limit, side="right")
    first, second = first[second < len(values)], second[second < len(values)]
    if not len(first):
        return _EVERYWHERE
    if not added_or_removed:
        return int((np.maximum(second, middle) - first - 1).min())
    balance = n + 1 - first - second
    return int((second - first - 1 + np.maximum(np.maximum(-balance, balance - 1), 0)).min())


# -- the mean ------------------------------------------------------------------------------------------------------


def _mean_prepared(*, trim: int = 0, **arguments: Any) -> tuple[_Stable, int]:
    cut = checks.count("trim", trim, 0)
    return _prepared("trimmed mean" if cut else "mean", **arguments), cut


def _mean_stated(**arguments: Any) -> Stated:
    return _mean_prepared(**arguments)[0].stated


@release_function(_mean_stated)
def stable_mean(
    data: object,
    *,
    lower: Exact,
    upper: Exact,
    local_sensitivity: Exact,
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    trim: int = 0,
    scale: Exact | None = None,
    sigma: Exact | None = None,
    grid: Exact | None = None,
    missing: Exact | Rule = DROP,
    unit: str = ROW,
) -> Released:
    """The mean of all but the ``trim`` least and the ``trim`` largest records with noise, where one hardly moves it.

    ``local_sensitivity`` is what you propose: how far one record may move the mean; None where the test does not
    pass. With ``trim=0`` it is about (upper - lower)/n, and the test is whether there are enough records: one noise
    where :func:`mean` pays for a noisy count as well. With a larger ``trim`` it is about (x_(n-trim) - x_trim)/(n -
    2 trim): the range of what is left, however wide the bounds are. The rest is as in :func:`stable_median`; the mean
    of nothing is the middle of the bounds.

    >>> incomes = [30_000 + 100 * i for i in range(200)] + [10**7]
    >>> found = stable_mean(incomes, lower=0, upper=10**8, trim=40, local_sensitivity=400, epsilon=1, delta=1e-6,
    ...                     scale=400, adjacency=ADD_REMOVE)
    >>> found.query, found.value is None
    ('trimmed mean', False)
    """
    plan, cut = _mean_prepared(
        trim=trim, lower=lower, upper=upper, local_sensitivity=local_sensitivity, epsilon=epsilon, delta=delta,
        adjacency=adjacency, scale=scale, sigma=sigma, grid=grid, missing=missing, unit=unit,
    )  # fmt: skip
    values, inside = plan.sorted_steps(data)
    limit = plan.proposed / parameters.two_to(inside.exponent)
    away = distance_of_mean(values, cut, limit, plan.size_changes)
    kept = values[1 + cut : len(values) - 1 - cut].tolist()
    exact = Fraction(sum(kept), len(kept)) * parameters.two_to(inside.exponent) if kept else (plan.low + plan.high) / 2
    return plan.released(exact, passes(away, epsilon, delta))


def distance_of_mean(values: Steps, trim: int, limit: Fraction, size_changes: bool) -> int:
    """How many records may certainly change before one more may move the trimmed mean by more than ``limit``.

    With x_0 <= ... <= x_(n+1) as in :func:`distance_of_median`, t = trim and w = n - 2t records kept, one record
    moves the mean by at most W(0)/w, where

        W(k) = max of x_(i+w+k) - x_i over t - k <= i <= t + 1        (places beyond the bounds are the bounds),

    and k changed records make W(0) at most W(k) and w at least w - k (w itself where the size cannot change). So the
    distance is at least the first k with W(k) > limit (w - k), and that is returned; where the size may change it is at
    most w - 1, for the mean of nothing is elsewhere.
    """
    n = len(values) - 2
    kept = n - 2 * trim
    if size_changes and kept <= 1:
        return 0
    if kept <= 0:  # for every dataset of this size
        return _EVERYWHERE

    def moved_further(k: int) -> bool:
        left = kept - k if size_changes else kept
        return (size_changes and left <= 1) or _widest(values, trim, kept, k) > min(limit * left // 1, _SPAN)

    low, high = -1, kept - 1 if size_changes else n + 1
    if not moved_further(high):
        return _EVERYWHERE
    while high - low > 1:  # moved_further is false up to the distance, and true from there on
        middle = (low + high) // 2
        low, high = (low, middle) if moved_further(middle) else (middle, high)
    return high


def _widest(values: Steps, trim: int, kept: int, k: int) -> int:
    """W(k). Of the places beyond a bound only the one next to it counts: the other end is further in for the rest."""
    last = len(values) - 1
    first, beyond = max(trim - k, 0), min(trim + 1, last - kept - k) + 1
    if beyond <= first:
        return int(values[last] - values[0])
    return int((values[first + kept + k : beyond + kept + k] - values[first:beyond]).max())
