"""What every way of drawing batches is: a value that knows the laws of a mechanism run on its batches."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from dptally import checks
from dptally.errors import InvalidArgument, Unanswerable
from dptally.law import Law
from dptally.law.adjacency import Adjacency
from dptally.laws.gaussian import GaussianLaw
from dptally.mechanisms.gaussian import Gaussian
from dptally.mechanisms.laplace import Laplace
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.value import Value
from dptally.numerics.exact import between

__all__ = ["Sampler", "Step", "epoch_length", "refused"]

_LONGEST = 10**9  # steps of an epoch that lattices and order statistics are made for


@dataclass(frozen=True, slots=True)
class Step:
    """One run of the mechanism inside, seen by a sampler."""

    mechanism: Mechanism

    def laws(self) -> tuple[Law, ...]:
        """One law for each direction, of one record present or absent; none where nothing leaks."""
        found = []
        for composition in self.mechanism.directions():
            if not composition.parts:
                return ()
            if not composition.determined:
                raise Unanswerable(
                    f"sampling amplifies a privacy profile, and {self.mechanism!r} bounds divergences "
                    f"only; sample "
                    "what it stands for (Gaussian, Laplace, ...), or state it as ApproxDP or GaussianDP"
                )
            if len(composition.parts) != 1 or composition.parts[0][1] > 1:
                raise Unanswerable(
                    f"one batch used by several mechanisms is not answered: {self.mechanism!r} has no single "
                    f"loss; sample "
                    "each part by itself, or state the whole as one ApproxDP, GaussianDP or Profile guarantee"
                )
            found.append(composition.parts[0][0])
        return tuple(found)

    @property
    def noise(self) -> float | None:
        """Gaussian noise per unit of one record's contribution, rounded down; None for other mechanisms."""
        if isinstance(self.mechanism, Gaussian):
            return between(Fraction(self.mechanism.sigma) / Fraction(self.mechanism.sensitivity))[0]
        laws = self.laws()
        if laws and isinstance(laws[0], GaussianLaw):
            return math.nextafter(1.0 / laws[0].mu, 0.0)
        return None

    def doubled(self) -> Step:
        """The same for a change of twice one record's contribution: a replacement."""
        if isinstance(self.mechanism, (Gaussian, Laplace)):
            return Step(replace(self.mechanism, sensitivity=2.0 * self.mechanism.sensitivity))
        raise Unanswerable(
            f"a replaced record moves {self.mechanism!r} by twice one contribution, which is known for Gaussian "
            f"and Laplace "
            "noise only; use one of these, or PoissonSampled"
        )


class Sampler(Value):
    """A way of drawing batches. ``unit`` is what it is counted in: "steps", or "epochs" (passes over the data)."""

    __slots__ = ()

    unit: ClassVar[str] = "steps"
    #: the sentence under "sampling" among the assumptions of an answer
    assumption: ClassVar[str] = ""

    @abstractmethod
    def laws(self, step: Step, adjacency: Adjacency) -> tuple[Law, ...]:
        """The laws of one unit, remove and add (or one for both): dominating pairs, so that answers are upper
        bounds.
        """

    def laws_below(self, step: Step, adjacency: Adjacency) -> tuple[Law, ...] | None:
        """Laws of pairs that the mechanism attains, where ``laws`` is only a bound; None where it is attained
        itself.
        """
        del step, adjacency
        return None

    def why(self) -> str:
        """Where ``laws_below`` answers: why the ends differ."""
        return ""

    @property
    def steps_per_unit(self) -> int:
        return 1


def epoch_length(name: str, value: object) -> int:
    """A number of steps in one epoch."""
    steps = checks.count(name, value, 1)
    if steps > _LONGEST:
        raise InvalidArgument(name, "at most 10^9", steps)
    return steps


def refused(sampler: Sampler, step: Step, adjacency: Adjacency, known: str) -> Unanswerable:
    """No theorem covers the combination."""
    return Unanswerable(
        f"no theorem covers {step.mechanism!r} on batches of {sampler!r} under {adjacency!r}; it is known for {known}"
    )
