"""What the toolkit needs of a mechanism or a curve: certified bounds of log delta, and whether chords bound
it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dptally.accounting import certified, renyi
from dptally.accounting.moments import infinity_mass, log_moment_upper, supremum
from dptally.checks import Floats
from dptally.errors import InvalidType
from dptally.gdp.curve import Curve
from dptally.interval import Interval
from dptally.law import Composition
from dptally.mechanisms import Mechanism
from dptally.numerics.rounding import EPS, down, up
from dptally.numerics.search import minimise

__all__ = ["Profiled", "View", "view_of"]

Profiled = Mechanism | Curve

_TINY = 1e-290  # below, the double delta is replaced by a bound of its logarithm


@dataclass(frozen=True, slots=True)
class View:
    """``log_delta(eps)``: certified (lower, upper) bounds, elementwise. ``zero_from``: delta is 0 from there
    on.

    ``convex``: delta is convex in e^eps. ``most_points``: how
    many epsilons a search may look at. ``cheap``: many at once cost little. ``two_sided``: the lower bounds mean
    something.
    """

    log_delta: Callable[[Floats], tuple[Floats, Floats]]
    zero_from: float
    convex: bool
    most_points: int
    cheap: bool
    two_sided: bool = True
    above: Callable[[Floats, Floats], tuple[Floats, Floats]] | None = None

    def log_delta_above(self, epsilon: Floats, log_floor: Floats) -> tuple[Floats, Floats]:
        """:attr:`log_delta` where it may be above the floor; below, any bounds will do."""
        return self.log_delta(epsilon) if self.above is None else self.above(epsilon, log_floor)


def view_of(subject: Profiled) -> View:
    """The view of a mechanism, a plan or a curve. What bounds Renyi divergences only has upper bounds of delta alone:
    every profile that it allows is convex in e^eps, so the chords between such bounds cover it too.
    """
    if isinstance(subject, Curve):
        return View(subject.log_delta, subject.zero_from, subject.convex, 200_000, True)
    if not isinstance(subject, Mechanism):
        raise InvalidType("m", "a mechanism, a plan or a dptally.gdp.Curve", subject)
    directions = subject.directions()
    if not all(composition.determined for composition in directions):
        end = max(composition.supremum for composition in directions)
        return View(_refined(_Engine(directions).log_delta), end, True, 1_000, False, False)
    leaks = any(infinity_mass(composition)[1] > 0 for composition in directions)
    zero_from = math.inf if leaks else max(supremum(composition) for composition in directions)
    one_step = all(composition.steps <= 1 for composition in directions)
    if one_step:
        return View(_by_laws(directions), zero_from, True, 200_000, True)
    engine = _Engine(directions)
    return View(engine.log_delta, zero_from, True, 4_000, False, above=engine.above)


def _by_laws(directions: Sequence[Composition]) -> Callable[[Floats], tuple[Floats, Floats]]:
    """One step: each law's own certified profile, vectorised; the larger direction counts."""

    def log_delta(epsilon: Floats) -> tuple[Floats, Floats]:
        lower, upper = np.full(epsilon.shape, -np.inf), np.full(epsilon.shape, -np.inf)
        for composition in directions:
            for law, _ in composition.parts:
                low, high = law.log_profile(epsilon)
                beyond = epsilon >= law.supremum
                low, high = np.where(beyond, -np.inf, low), np.where(beyond, -np.inf, high)
                if law.infinity_mass == 1:
                    low, high = np.zeros(epsilon.shape), np.zeros(epsilon.shape)
                elif law.infinity_mass > 0:
                    log_mass = math.log(law.infinity_mass)
                    low, high = down(np.logaddexp(log_mass, low), 8), up(np.logaddexp(log_mass, high), 8)
                lower, upper = np.maximum(lower, low), np.maximum(upper, np.minimum(high, 0.0))
        return np.minimum(lower, upper), upper

    return log_delta


class _Engine:
    """A composition: one certified interval for each epsilon, remembered as long as the view lives."""

    def __init__(self, directions: Sequence[Composition]) -> None:
        self._directions = directions
        self._profile = certified.Profile(directions)
        self._seen: dict[float, tuple[float, float]] = {}

    def log_delta(self, epsilon: Floats) -> tuple[Floats, Floats]:
        return self.above(epsilon, np.full(epsilon.shape, -np.inf))

    def above(self, epsilon: Floats, log_floor: Floats) -> tuple[Floats, Floats]:
        asked = dict(zip(epsilon.tolist(), np.exp(np.minimum(log_floor, 0.0)).tolist(), strict=True))
        asked = {e: floor for e, floor in asked.items() if e not in self._seen}
        found = dict(zip(asked, self._profile(list(asked), list(asked.values())), strict=True))
        logs = {e: self._logged(e, box) for e, box in found.items()}
        # what is below its floor may be asked for again, with a lower one
        self._seen |= {e: pair for e, pair in logs.items() if found[e].upper >= asked[e]}
        pairs = [self._seen[e] if e in self._seen else logs[e] for e in epsilon.tolist()]
        return np.array([low for low, _ in pairs]), np.array([high for _, high in pairs])

    def _logged(self, epsilon: float, box: Interval) -> tuple[float, float]:
        lower = down(math.log(box.lower), 2) if box.lower > 0 else -math.inf
        upper = min(up(math.log(box.upper), 2), 0.0) if box.upper > 0 else -math.inf
        if 0 < box.upper < _TINY:  # near or below the smallest double: Chernoff in log space goes on
            upper = min(upper, max(_chernoff(composition, epsilon) for composition in self._directions))
        return min(lower, upper), upper


def _refined(bounds: Callable[[Floats], tuple[Floats, Floats]]) -> Callable[[Floats], tuple[Floats, Floats]]:
    """The bounds with what the best of them implies at smaller epsilons.  [Liu et al. 2022, Thm. 2.1]"""

    def share(epsilon: Floats) -> Floats:
        with np.errstate(over="ignore"):
            delta = np.minimum(np.exp(bounds(epsilon)[1]) * (1 + 8 * EPS), 1.0)
            return np.asarray(-(1.0 - delta) / (1.0 + np.exp(epsilon)) * (1 - 8 * EPS), dtype=np.float64)

    best = functools.cache(lambda: minimise(share, 1e-3, 64.0, start=(1e-2, 16.0)))

    def log_delta(epsilon: Floats) -> tuple[Floats, Floats]:
        (at, least), (low, high) = best(), bounds(epsilon)
        with np.errstate(divide="ignore", over="ignore"):
            line = 1.0 + (1.0 + np.exp(np.minimum(epsilon, at))) * least
            implied = np.log(np.maximum(up(line, 4), 0.0)) + 8 * EPS
        return low, np.where(epsilon <= at, np.minimum(high, implied), high)

    return log_delta


def _chernoff(composition: Composition, epsilon: float) -> float:
    """An upper bound of log delta for a composition without mass at infinity; 0 where there is some."""
    if infinity_mass(composition)[1] > 0:
        return 0.0
    if epsilon >= composition.supremum:
        return -math.inf
    return renyi.best_delta(lambda t: log_moment_upper(composition, t), epsilon)[0]
