"""Ways in which records take part in a stream at random, and what that amplifies."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from dptally import checks
from dptally.errors import InvalidArgument, Unanswerable
from dptally.law import Law
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.mechanisms.gaussian import Gaussian
from dptally.mechanisms.matrices.strategy import Strategy, certified_sensitivity
from dptally.mechanisms.poisson_sampled import PoissonSampled
from dptally.mechanisms.registry import declared
from dptally.mechanisms.sampling.balls_in_bins import BallsInBins
from dptally.mechanisms.sampling.cyclic import Cyclic
from dptally.mechanisms.sampling.sampler import Step
from dptally.mechanisms.value import Value

__all__ = ["FixedBins", "PoissonParts", "RandomParticipation"]

_MOST_PARTS = 10**6


class RandomParticipation(Value):
    """The steps of a record are drawn at random, in secret, and the strategy keeps them apart."""

    __slots__ = ()

    #: the adjacency for which it is stated
    adjacency: ClassVar[Adjacency] = ADD_REMOVE
    #: why the laws dominate the mechanism
    theorem: ClassVar[str] = ""
    #: the sentence under "sampling" among the assumptions of an answer
    assumption: ClassVar[str] = ""

    @abstractmethod
    def norm(self, strategy: Strategy) -> float:
        """The sensitivity of one unit, rounded up; refused where the strategy does not keep the steps apart."""

    @abstractmethod
    def units(self, strategy: Strategy) -> int:
        """How many units the mechanism is the composition of."""

    @abstractmethod
    def laws(self, noise: Gaussian) -> tuple[Law, ...]:
        """The laws of one unit with that noise."""

    @abstractmethod
    def alone(self) -> RandomParticipation:
        """The participation in a strategy of one step that stands for a unit."""


@declared(
    section="matrices",
    plan="poisson_parts",
    example={"rate": 0.1, "parts": 4},
    refuses={"rate": (1.5,), "parts": (0,)},
    zero=("rate",),
)
@dataclass(frozen=True, slots=True, repr=False)
class PoissonParts(RandomParticipation):
    """The data are cut into ``parts`` fixed parts; step t samples part t mod parts, each record with probability
    ``rate``.

    For strategies of at most ``parts`` bands: ceil(steps / parts) Poisson-sampled Gaussian steps. ``rate`` is relative
    to the part, not to all data [Choquette-Choo, Ganesh, McKenna et al. 2023, Thm. 4; proof in docs/matrices.md].
    """

    rate: float
    parts: int
    json_name: ClassVar[str] = "poisson_parts"
    theorem: ClassVar[str] = "Choquette-Choo, Ganesh, McKenna et al. 2023, Thm. 4 (banded strategies, Poisson batches)"
    assumption: ClassVar[str] = (
        "sampling: the parts are fixed before the data are seen; in its steps each record of a part is included "
        "independently, at a rate that is relative to the part"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checks.probability("rate", self.rate))
        PoissonSampled(Gaussian(1.0), self.rate)  # the same rates are too small
        object.__setattr__(self, "parts", _number("parts", self.parts))

    def norm(self, strategy: Strategy) -> float:
        width = strategy.bandwidth()
        if width is None or width > self.parts:
            found = "not lower triangular" if width is None else f"of {width} bands"
            raise Unanswerable(
                f"batches of {self!r} are amplified by strategies of at most {self.parts} bands only, and this one is "
                f"{found}: no theorem covers it; take more parts, or a participation without amplification, (k, b)"
            )
        return certified_sensitivity(strategy, 1).upper

    def units(self, strategy: Strategy) -> int:
        return -(-strategy.length // self.parts)

    def laws(self, noise: Gaussian) -> tuple[Law, ...]:
        if self.rate == 1.0:
            return noise.laws()
        return PoissonSampled(noise, self.rate).laws() if self.rate > 0 else ()

    def alone(self) -> PoissonParts:
        return PoissonParts(self.rate, 1)


@declared(section="matrices", plan="fixed_bins", example={"bins": 4}, refuses={"bins": (0,)})
@dataclass(frozen=True, slots=True, repr=False)
class FixedBins(RandomParticipation):
    """Each record draws one of ``bins`` bins once, in secret, and takes part in the steps t with t mod bins its bin.

    For strategies whose columns of different bins have no common row: one random allocation of ``bins`` steps of the
    largest norm, an upper bound. Elsewhere no certified answer is known, and none is given.
    """

    bins: int
    json_name: ClassVar[str] = "fixed_bins"
    theorem: ClassVar[str] = (
        "Choquette-Choo, Ganesh, Haque et al. 2024 (balls in bins; here for columns without a common row, by the "
        "largest norm: an upper bound)"
    )
    assumption: ClassVar[str] = (
        "sampling: each record draws its bin uniformly, independently and in secret, once for all epochs"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", _number("bins", self.bins))

    def norm(self, strategy: Strategy) -> float:
        if not strategy.keeps_apart(self.bins):
            raise Unanswerable(
                f"{self!r} is answered for strategies whose columns of different bins have no common row; for others "
                "only estimates by simulation are known, which are not certain. Take PoissonParts for a banded "
                f"strategy, or Cyclic({self.bins}), which does without amplification"
            )
        return certified_sensitivity(strategy, Cyclic(self.bins)).upper

    def units(self, strategy: Strategy) -> int:
        del strategy
        return 1

    def laws(self, noise: Gaussian) -> tuple[Law, ...]:
        return BallsInBins(self.bins).laws(Step(noise), ADD_REMOVE)

    def alone(self) -> FixedBins:
        return self


def _number(name: str, value: object) -> int:
    number = checks.count(name, value, 1)
    if number > _MOST_PARTS:
        raise InvalidArgument(name, f"at most {_MOST_PARTS}", number)
    return number
