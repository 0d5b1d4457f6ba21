"""A route: one numerical method that bounds the finite part of delta, as a value that the engine can walk over."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np

from dptally.accounting.certified.bounds import NOTHING_KNOWN, BoundedProfile, Ends, LogBounds, LogTarget
from dptally.accounting.certified.plan import Plan
from dptally.accounting.certified.solve import epsilon_ends
from dptally.accounting.certified.tuning import Tuning
from dptally.errors import Unanswerable

__all__ = ["Route", "RouteFailed", "Trail", "Visit", "answers_of", "bounds_at"]

Answer = TypeVar("Answer")


class Visit(NamedTuple):
    """One route that was asked, what it gave, and why the walk went on or stopped."""

    route: str
    lower: float
    upper: float
    outcome: str


Trail = list[Visit]


class RouteFailed(RuntimeWarning):
    """A route died of something unexpected. The answer comes from the others; in tests it is an error."""


class Route(ABC):
    """Abstract; every route is final. All bounds are for finite losses: the engine adds the mass at infinity."""

    name: ClassVar[str]
    #: what makes its bounds true
    theorem: ClassVar[str]
    #: whether no other route is asked, however wide its answer is
    final: ClassVar[bool] = False

    def label(self, plan: Plan) -> str:
        """How answers name it for this plan."""
        del plan
        return self.name

    def sharp(self, tuning: Tuning) -> float:
        """The relative width at which no other route is asked; 0: only where nothing is left to be known."""
        del tuning
        return 0.0

    def applies(self, plan: Plan) -> bool:
        """Whether this plan is of the kind that the route can bound; cheap. Every plan, unless it says otherwise."""
        del plan
        return True

    @abstractmethod
    def near_epsilon(self, plan: Plan, epsilon: float) -> Iterator[BoundedProfile]:
        """Bounded profiles made for this eps, better ones later."""

    @abstractmethod
    def near_delta(self, plan: Plan, target: LogTarget) -> Iterator[BoundedProfile]:
        """Bounded profiles made for the eps at which delta takes the target, better ones later."""

    def epsilon(self, plan: Plan, target: LogTarget) -> Iterator[Ends]:
        """Ends of the smallest eps >= 0 whose finite delta is at most the target, better ones later.

        Where delta at the floor is at most the target, eps is at most the floor, and no more need be known.
        """
        for profile in self.near_delta(plan, target):
            if plan.floor > 0 and bounds_at(profile, plan.floor).upper <= target.low:
                yield Ends(0.0, plan.floor)
            else:
                yield epsilon_ends(profile, target, plan.tuning.search)


def answers_of(route: str, answers: Iterator[Answer], trail: Trail) -> Iterator[Answer]:
    """The answers of a route until it has no more; how it ended otherwise is written into the trail.

    Overflow, memory and questions that a law cannot answer end a route as they may; anything else is a bug: the other
    routes answer, and a warning says so.
    """
    while True:
        try:
            with np.errstate(all="ignore"):
                answer = next(answers)
        except StopIteration:
            return
        except (OverflowError, MemoryError, Unanswerable) as end:
            trail.append(Visit(route, math.nan, math.nan, f"ended by {type(end).__name__}"))
            return
        except (ArithmeticError, ValueError, LookupError) as failure:
            trail.append(Visit(route, math.nan, math.nan, f"failed: {type(failure).__name__}: {failure}"))
            warnings.warn(RouteFailed(f"{route}: {type(failure).__name__}: {failure}"), stacklevel=4)
            return
        yield answer


def bounds_at(profile: BoundedProfile, epsilon: float) -> LogBounds:
    """Its bounds of log delta, the trivial ones where its numbers overflow."""
    try:
        with np.errstate(all="ignore"):
            bounds = profile.log_delta(epsilon)
    except OverflowError:
        return NOTHING_KNOWN
    return NOTHING_KNOWN if math.isnan(bounds.lower) or math.isnan(bounds.upper) else bounds
