"""Tuning: run a plan a random number of times and keep the best run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from dptally import checks
from dptally.accounting import certified
from dptally.accounting.certified.contour import many
from dptally.checks import Floats
from dptally.errors import InvalidArgument, InvalidType
from dptally.law import Composition, Law
from dptally.laws.atoms import AtomicLaw
from dptally.laws.tuning.attained import attained_law
from dptally.laws.tuning.law import TunedLaw, moment_upper, tuned_table
from dptally.laws.tuning.runs import NegativeBinomialRuns, PoissonRuns, Runs
from dptally.mechanisms.assumption import Assumption, joined
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared
from dptally.numerics.rounding import EPS, down, up

__all__ = ["BestOf", "law_of_runs"]

LAWS = ("tnb", "geometric", "poisson")
_MOST_RUNS, _LARGEST_SHAPE, _LEAST_SHAPE = 1e9, 100.0, 1e-9
_DEPTH = 45.0  # nats: how small a delta of one run the table follows; beyond it Renyi divergences answer
_MANY, _FEW = 320, 24  # guarantees of one run, where they share their work and where each is dear
_ORDERS = np.geomspace(1e-3, 1e5, 65)


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
    shape: float | None = None
    json_name: ClassVar[str] = "best_of"

    def __post_init__(self) -> None:
        if not isinstance(self.plan, Mechanism):
            raise InvalidType("plan", "a mechanism or a plan", self.plan)
        mean, law, shape = checked_runs(self.mean, self.law, self.shape)
        for name, value in (("mean", mean), ("law", law), ("shape", shape)):
            object.__setattr__(self, name, value)

    def parameters(self) -> dict[str, Any]:
        given = {"plan": self.plan, "mean": self.mean, "law": self.law}
        return given if self.shape is None else {**given, "shape": self.shape}

    @property
    def runs(self) -> Runs:
        """The law of the number of runs."""
        return law_of_runs(self.mean, self.law, self.shape)

    def laws(self) -> tuple[Law, ...]:
        inner = self.plan.directions()
        return (_tuned(inner, self.runs),) if any(composition.parts for composition in inner) else ()

    def laws_below(self) -> tuple[Law, ...] | None:
        below = self.plan._below()
        attained = self.plan.directions() if below is None else below[0]
        found = [_attained(composition, self.runs) for composition in attained if composition.parts]
        return tuple(law for law in found if law is not None) if all(found) else ()

    def why_wide(self) -> str:
        return "upper end: every ranking of the runs; lower end: ranked by their privacy loss"

    def assumptions(self) -> tuple[Assumption, ...]:
        text = (
            "tuning: the number of runs is drawn from its law ({}) before the search and told nobody; every run, score "
            "included, is the plan with fresh noise, chosen without looking at other runs; the best one alone is "
            "published"
        )
        shown = self.law if self.shape is None else f"{self.law}, shape {self.shape:g}"
        return joined(
            (*self.plan.assumptions(), Assumption("other", text, (f"mean {self.mean:g}, {shown}",))),
        )

    def theorems(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((TunedLaw.theorem, *self.plan.theorems())))

    def grouped(self, size: int) -> Mechanism:
        """A group meets the best of as many runs, each of which answers for the group."""
        return BestOf(self.plan.group(size), self.mean, self.law, self.shape)


def checked_runs(mean: object, law: object, shape: object) -> tuple[float, str, float | None]:
    """Checked parameters of the law of K; the shape that is meant where none is given."""
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
        if shape is not None and checks.real("shape", shape) != 0:
            raise InvalidArgument("shape", 'left out: law="poisson" has none', shape)
        return number, law, None
    if number < 1:
        raise InvalidArgument("mean", 'at least 1: there is always a run (law="poisson" may have none)', number)
    stated = (1.0 if law == "geometric" else 0.0) if shape is None else checks.real("shape", shape)
    if law == "geometric" and stated not in (0.0, 1.0):
        raise InvalidArgument("shape", 'left out: law="geometric" is shape 1', shape)
    if law == "geometric":
        return number, law, None
    if not -1 < stated <= _LARGEST_SHAPE or 0 < abs(stated) < _LEAST_SHAPE:
        wanted = f"above -1 and at most {_LARGEST_SHAPE:g}, 0 or at least {_LEAST_SHAPE:g} away from it"
        raise InvalidArgument("shape", wanted, stated)
    law_of_runs(number, law, stated)
    return number, law, stated


def law_of_runs(mean: float, law: str, shape: float | None) -> Runs:
    """The law of K for checked parameters."""
    if law == "poisson":
        return PoissonRuns(mean)
    return NegativeBinomialRuns.of_mean(mean, 1.0 if law == "geometric" else float(shape or 0.0))


# -- the profile of one run --------------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def _tuned(inner: tuple[Composition, ...], runs: Runs) -> TunedLaw:
    reach = max(_reach(composition) for composition in inner)

    def grid(number: int) -> Floats:
        return np.concatenate(([0.0], reach * (np.arange(1, number + 1) / number) ** 0.75))

    epsilon = grid(_MANY)
    found = [_quick_bounds(composition, epsilon) for composition in inner]
    upper = [bounds[1] for bounds in found if bounds is not None]
    if len(upper) < len(inner):
        epsilon = grid(_FEW)
        upper = [_bounds(composition, epsilon)[1] for composition in inner]
    delta = np.minimum.accumulate(np.max(upper, axis=0))
    profile = tuple(zip(epsilon.tolist(), delta.tolist(), strict=True))
    return TunedLaw(inner, runs, profile, tuned_table(epsilon, delta, runs))


@lru_cache(maxsize=64)
def _attained(composition: Composition, runs: Runs) -> AtomicLaw | None:
    """The law of the winner under one ranking; None where the plan's own lower end is not that of a pair."""
    if not composition.determined:
        return None
    reach = _reach(composition)

    def asked(number: int) -> tuple[Floats, float]:
        return reach * (np.arange(number) + 0.25) / number, 1e-3 * reach / number

    edges, step = asked(_MANY // 8)
    found = _quick_bounds(composition, np.concatenate((edges - step, edges, edges + step)))
    if found is None:
        edges, step = asked(_FEW // 6)
        found = _bounds(composition, np.concatenate((edges - step, edges, edges + step)))
    lower, upper = found
    return attained_law(edges, step, lower.reshape(3, -1), upper.reshape(3, -1), runs)


def _reach(composition: Composition) -> float:
    """The largest eps of the table: about where delta is e^-_DEPTH, by Chernoff's bound, or the largest loss."""
    with np.errstate(over="ignore", invalid="ignore"):
        bound = (moment_upper(composition, _ORDERS) + _DEPTH) / _ORDERS
    reach = min(composition.supremum_interval.upper, float(np.nanmin(bound, initial=math.inf)))
    return reach if 0 < reach < math.inf else 1.0 if reach <= 0 else 64.0


def _bounds(composition: Composition, epsilon: Floats) -> tuple[Floats, Floats]:
    """Certified bounds of delta of one direction, each asked by itself."""
    boxes = certified.delta_intervals((composition,), epsilon.tolist())
    return np.array([box.lower for box in boxes]), np.array([box.upper for box in boxes])


def _quick_bounds(composition: Composition, epsilon: Floats) -> tuple[Floats, Floats] | None:
    """The same where one step has a closed form, or contours answer most of the questions together; else None.

    What no contour answers is bounded by Chernoff: (1 - e^-x)+ <= e^{tx} for every t > 0.
    """
    firm = composition if composition.determined else composition.dominating()
    if firm is None or firm.optimistic() is not firm:
        return None
    if firm.steps == 1:
        low, high = firm.parts[0][0].log_profile(epsilon)
    elif firm.infinity_mass_interval.upper == 0:
        low, high = many.deltas_by_contours(firm, epsilon)
        unknown = np.isnan(high)
        if unknown.sum() > 0.5 * len(epsilon):
            return None
        with np.errstate(invalid="ignore", over="ignore"):
            chernoff = moment_upper(firm, _ORDERS)[:, None] - np.multiply.outer(_ORDERS, epsilon)
            chernoff = np.nanmin(chernoff + 4 * EPS * np.abs(chernoff) + 1e-12, axis=0, initial=0.0)
        low, high = np.where(unknown, -np.inf, low), np.where(unknown, chernoff, high)
    else:
        return None
    mass = firm.infinity_mass_interval
    with np.errstate(under="ignore"):
        upper = up(mass.upper + np.where(np.isneginf(high), 0.0, up(np.exp(high), 4)))
        lower = np.maximum(mass.lower, down(mass.lower + np.maximum(down(np.exp(low), 4), 0.0)))
    return (lower if composition.determined else np.zeros_like(lower)), np.minimum(upper, 1.0)
