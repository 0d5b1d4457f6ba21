"""Tuning: run a plan a random number of times and keep the best run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from dptally import checks
from dptally.accounting import certified
from dptally.accounting.certified.contour import many
from dptally.accounting.certified.tuning import STANDARD
from dptally.checks import Floats
from dptally.errors import InvalidArgument, InvalidType
from dptally.law import Composition, Law
from dptally.laws.atoms import AtomicLaw
from dptally.laws.tuning.attained import attained_law
from dptally.laws.tuning.law import MOMENT_ORDERS, TUNING_THEOREM, TunedLaw, moments_at, tuned_table
from dptally.laws.tuning.runs import NegativeBinomialRuns, PoissonRuns, Runs
from dptally.mechanisms.assumption import Assumption, joined
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared
from dptally.numerics.rounding import EPS, down, up

__all__ = ["BestOf", "law_of_runs"]

Reach = Callable[[Composition], float]
Bounds = Callable[[Composition, Floats, Floats], "tuple[Floats, Floats] | None"]

LAWS = ("tnb", "geometric", "poisson")
_MOST_RUNS, _LARGEST_SHAPE, _LEAST_SHAPE = 1e12, 100.0, 1e-9  # the charge of Poisson numbers grows with their mean
_DEPTH = 36.0  # nats: how small a delta of one run the table follows; beyond it Renyi divergences answer
_USUAL = math.log(1e-6)
_MANY, _FEW, _EDGES, _FEW_EDGES = 160, 24, 16, 4  # guarantees of one run: shared work, or each dear
_TUNING = replace(STANDARD, routes=replace(STANDARD.routes, sharp_contour=1e-6))
_NOTHING = AtomicLaw(((0.0, 1.0),), cited=TUNING_THEOREM)  # what a direction attains of which nothing is known
_ASKED = np.log1p(1.0 / MOMENT_ORDERS[(MOMENT_ORDERS > 3) & (MOMENT_ORDERS < 100)])  # by the bounds of those orders


def _example() -> dict[str, object]:
    from dptally.mechanisms.gaussian import Gaussian

    return {"plan": Gaussian(4.0), "mean": 10.0}


@declared(
    section="selection",
    plan="best_of",
    example=_example,
    zero=("shape",),
    refuses={"plan": (1.0, None), "mean": (0.5,), "shape": (-1.0, 1e3), "law": ("fixed", "binomial", None)},
    choices={"law": LAWS},
)
@dataclass(frozen=True, slots=True, repr=False)
class BestOf(Mechanism):
    """Run ``plan`` K times, publish the best run alone; K is drawn before the search and independent of the data.

    law "tnb": truncated negative binomial of this ``mean`` and ``shape`` > -1 (0: logarithmic, 1: geometric);
    "geometric": the same with shape 1; "poisson": no shape, K may be 0. How runs are ranked is free, as long as the
    score is part of what the plan accounts for. A fixed number of runs is no such law: it costs ``k * plan``.

    >>> from dptally.mechanisms.gaussian import Gaussian
    >>> Gaussian(4.0).best_of(mean=10).epsilon(1e-6) < (2 * Gaussian(4.0)).epsilon(1e-6)
    True
    """

    plan: Mechanism
    mean: float
    law: str = "tnb"
    shape: float = 0.0
    json_name: ClassVar[str] = "best_of"

    def __post_init__(self) -> None:
        if not isinstance(self.plan, Mechanism):
            raise InvalidType("plan", "a mechanism or a plan", self.plan)
        mean, law, shape = checked_runs(self.mean, self.law, self.shape)
        for name, value in (("mean", mean), ("law", law), ("shape", shape)):
            object.__setattr__(self, name, value)

    def parameters(self) -> dict[str, Any]:
        given = {"plan": self.plan, "mean": self.mean, "law": self.law}
        return {**given, "shape": self.shape} if self.law == "tnb" else given

    @property
    def runs(self) -> Runs:
        """The law of the number of runs."""
        return law_of_runs(self.mean, self.law, self.shape)

    def laws(self) -> tuple[Law, ...]:
        inner = self.plan.directions()
        if not any(composition.parts for composition in inner):
            return ()
        law = _tuned(inner, self.runs)
        return (law if math.isfinite(law.mean) else law.table,)  # no Renyi divergence is finite: the table alone

    def laws_below(self) -> tuple[Law, ...] | None:
        below = self.plan._below()
        attained = self.plan.directions() if below is None else below[0]
        return _attained(attained, self.runs) if all(composition.parts for composition in attained) else ()

    def why_wide(self) -> str:
        return "upper end: every ranking of the runs; lower end: ranked by their privacy loss"

    def assumptions(self) -> tuple[Assumption, ...]:
        text = (
            "tuning: the number of runs is drawn from its law ({}) before the search and told nobody; every run, score "
            "included, is the plan with fresh noise, chosen without looking at other runs; the best one alone is "
            "published"
        )
        shown = f"{self.law}, shape {self.shape:g}" if self.law == "tnb" else self.law
        return joined(
            (*self.plan.assumptions(), Assumption("other", text, (f"mean {self.mean:g}, {shown}",))),
        )

    def theorems(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((TunedLaw.theorem, *self.plan.theorems())))

    def grouped(self, size: int) -> Mechanism:
        """A group meets the best of as many runs, each of which answers for the group."""
        return BestOf(self.plan.group(size), self.mean, self.law, self.shape)


def checked_runs(mean: object, law: object, shape: object) -> tuple[float, str, float]:
    """Checked parameters of the law of K; 0 is also the shape of a law that has none to choose."""
    if not isinstance(law, str) or law not in LAWS:
        raise InvalidArgument(
            "law",
            'a law of the number of runs, "tnb", "geometric" or "poisson"',
            law,
            "a fixed number k of runs, or one chosen during the search, is composed: k * plan",
        )
    number = checks.positive("mean", mean)
    if number > _MOST_RUNS:
        raise InvalidArgument("mean", f"at most {_MOST_RUNS:g} runs", number)
    if law == "poisson":
        if checks.real("shape", shape) != 0:
            raise InvalidArgument("shape", 'left out: law="poisson" has none', shape)
        return number, law, 0.0
    if number < 1:
        raise InvalidArgument("mean", 'at least 1: there is always a run (law="poisson" may have none)', number)
    stated = checks.real("shape", shape)
    if law == "geometric" and stated not in (0.0, 1.0):
        raise InvalidArgument("shape", 'left out: law="geometric" is shape 1', shape)
    if law == "geometric":
        return number, law, 1.0
    if not -1 < stated <= _LARGEST_SHAPE or 0 < abs(stated) < _LEAST_SHAPE:
        wanted = f"above -1 and at most {_LARGEST_SHAPE:g}, 0 or at least {_LEAST_SHAPE:g} away from it"
        raise InvalidArgument("shape", wanted, stated)
    law_of_runs(number, law, stated)
    return number, law, stated


def law_of_runs(mean: float, law: str, shape: float) -> Runs:
    """The law of K for checked parameters."""
    if law == "poisson":
        return PoissonRuns(mean)
    return NegativeBinomialRuns.of_mean(mean, 1.0 if law == "geometric" else shape)


# -- the profile of one run --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Profiles:
    """Bounds of delta of each direction at ``epsilon``, and about ``edges``: three rows, at edges -step, +0, +step."""

    epsilon: Floats
    edges: Floats
    step: float
    lower: tuple[Floats, ...]
    upper: tuple[Floats, ...]

    def around(self, direction: int) -> tuple[Floats, Floats]:
        size = len(self.epsilon)
        return self.lower[direction][size:].reshape(3, -1), self.upper[direction][size:].reshape(3, -1)


@lru_cache(maxsize=32)
def _profiles(inner: tuple[Composition, ...]) -> _Profiles:
    """All questions at once, since neighbours share their work; fewer where that is not so."""
    ways = ((_reach, _MANY, 1, _EDGES, _quick_bounds), (_near_reach, _FEW, 20, _FEW_EDGES, _bounds))
    return next(found for found in (_profiles_by(inner, *way) for way in ways) if found is not None)


def _profiles_by(
    inner: tuple[Composition, ...], reached: Reach, number: int, every: int, places: int, bounds: Bounds
) -> _Profiles | None:
    """The largest direction counts, so each is told what those before it need."""
    reach = max(reached(composition) for composition in inner)
    whole = reach * (np.arange(number + 1) / number) ** 0.75
    epsilon = np.union1d(whole, _ASKED[reach > _ASKED][::every])
    edges, step = reach * (np.arange(places) + 0.25) / places, 1e-3 * reach / places
    asked = np.concatenate((epsilon, edges - step, edges, edges + step))
    lower, upper, largest = [], [], np.zeros_like(asked)
    for composition in inner:
        ends = bounds(composition, asked, largest)
        if ends is None:
            return None
        lower.append(ends[0])
        upper.append(ends[1])
        largest = np.maximum(largest, ends[1])
    return _Profiles(epsilon, edges, step, tuple(lower), tuple(upper))


@lru_cache(maxsize=32)
def _tuned(inner: tuple[Composition, ...], runs: Runs) -> TunedLaw:
    known = _profiles(inner)
    size = len(known.epsilon)
    delta = np.minimum.accumulate(np.max([upper[:size] for upper in known.upper], axis=0))
    profile = tuple(zip(known.epsilon.tolist(), delta.tolist(), strict=True))
    return TunedLaw(inner, runs, profile, tuned_table(known.epsilon, delta, runs))


@lru_cache(maxsize=32)
def _attained(inner: tuple[Composition, ...], runs: Runs) -> tuple[AtomicLaw, ...]:
    """The laws of the winner under one ranking; none where a lower end of the plan is not that of a pair.

    Ranked by the loss, or not at all (a run as any other), whichever reveals more at delta 1e-6.
    """
    if not all(composition.determined for composition in inner):
        return ()
    known = _profiles(inner)
    chosen = []
    for direction in range(len(inner)):
        about = known.edges, known.step, *known.around(direction)
        laws = (attained_law(*about, runs), attained_law(*about, runs, ranked=False))
        chosen.append(max((law for law in laws if law is not None), key=_revealed, default=_NOTHING))
    return tuple(chosen) if any(law is not _NOTHING for law in chosen) else ()


def _revealed(law: AtomicLaw) -> float:
    """About the epsilon at delta 1e-6."""
    at = np.linspace(0.0, max(law.supremum, 0.0), 50)
    return float(np.max(at[law.log_profile(at)[0] > _USUAL], initial=-1.0))


def _reach(composition: Composition) -> float:
    """The largest eps of the table: about where delta is e^-_DEPTH, by Chernoff's bound, or the largest loss."""
    with np.errstate(over="ignore", invalid="ignore"):
        bound = (moments_at(composition) + _DEPTH) / MOMENT_ORDERS
    reach = min(composition.supremum_interval.upper, float(np.nanmin(bound, initial=math.inf)))
    if reach == math.inf:  # no moment is known to be finite
        reach = certified.epsilon_interval((composition,), math.exp(-_DEPTH)).upper
    return reach if 0 < reach < math.inf else 1.0 if reach <= 0 else 64.0


def _near_reach(composition: Composition) -> float:
    """Where delta is e^-_DEPTH: the bound by Chernoff may lie far beyond."""
    exact = certified.epsilon_interval((composition,), math.exp(-_DEPTH)).upper
    return min(_reach(composition), exact) if exact > 0 else _reach(composition)


def _bounds(composition: Composition, epsilon: Floats, largest: Floats) -> tuple[Floats, Floats]:
    """Certified bounds of delta of one direction, each asked by itself, unless Chernoff's is below ``largest``."""
    lower, upper = np.zeros_like(epsilon), _by_chernoff(composition, epsilon)
    rows = np.nonzero(upper > largest)[0]
    boxes = certified.delta_intervals((composition,), epsilon[rows].tolist())
    lower[rows], upper[rows] = [box.lower for box in boxes], [box.upper for box in boxes]
    return lower, upper


def _quick_bounds(composition: Composition, epsilon: Floats, largest: Floats) -> tuple[Floats, Floats] | None:
    """The same where one step has a closed form, or contours answer most of the questions together; else None.

    What no contour answers, and what only bounds Renyi divergences, is bounded by those. Contours need not be sharp
    where delta is certainly below ``largest``, that of another direction.
    """
    firm = composition if composition.determined else composition.dominating()
    if firm is None:
        return np.zeros_like(epsilon), _by_chernoff(composition, epsilon)
    if firm.optimistic() is not firm:
        return None
    if firm.steps == 1:
        low, high = firm.parts[0][0].log_profile(epsilon)
    elif firm.infinity_mass_interval.upper == 0:
        low, high = np.full_like(epsilon, -np.inf), _chernoff(firm, epsilon)
        with np.errstate(divide="ignore"):
            known = np.log(largest)
        rows = np.nonzero(high > known)[0]
        sharp = many.deltas_by_contours(firm, epsilon[rows], _TUNING, known[rows])
        found = ~np.isnan(sharp[1])
        if found.sum() < 0.5 * len(rows):
            return None
        low[rows[found]], high[rows[found]] = sharp[0][found], sharp[1][found]
    else:
        return None
    mass = firm.infinity_mass_interval
    with np.errstate(under="ignore"):
        upper = up(mass.upper + np.where(np.isneginf(high), 0.0, up(np.exp(high), 4)))
        lower = np.maximum(mass.lower, down(mass.lower + np.maximum(down(np.exp(low), 4), 0.0)))
    return (lower if composition.determined else np.zeros_like(lower)), np.minimum(upper, 1.0)


def _by_chernoff(composition: Composition, epsilon: Floats) -> Floats:
    """Upper bounds of delta, infinite losses included."""
    with np.errstate(under="ignore"):
        finite = up(np.exp(_chernoff(composition, epsilon)), 4)
    return np.minimum(up(composition.infinity_mass_interval.upper + finite), 1.0)


def _chernoff(composition: Composition, epsilon: Floats) -> Floats:
    """log delta of finite losses, at most K(t) - t eps + t log t - (1 + t) log(1 + t), the least over t.

    [Canonne, Kamath, Steinke 2020]
    """
    t = MOMENT_ORDERS[:, None]
    payoff = -t * np.log1p(1.0 / t) - np.log1p(t)
    with np.errstate(invalid="ignore", over="ignore"):
        bound = moments_at(composition)[:, None] - t * epsilon
        bound = bound + payoff + 8 * EPS * (np.abs(bound) + np.abs(payoff) + t * epsilon)
    return np.asarray(np.nanmin(bound, axis=0, initial=0.0))
