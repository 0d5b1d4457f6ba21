"""Every record is included independently in every batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dptally import checks
from dptally.law import Law
from dptally.law.adjacency import Adjacency
from dptally.mechanisms.poisson_sampled import PoissonSampled
from dptally.mechanisms.registry import declared
from dptally.mechanisms.sampling.sampler import Sampler, Step

__all__ = ["Poisson"]


@declared(section="sampling", example={"rate": 0.01}, zero=("rate",), refuses={"rate": (1.5,)})
@dataclass(frozen=True, slots=True, repr=False)
class Poisson(Sampler):
    """Each record is in each batch with probability ``rate``, independently: the same as ``PoissonSampled``.

    >>> Poisson(rate=0.01)
    Poisson(rate=0.01)
    """

    rate: float
    json_name: ClassVar[str] = "poisson"
    assumption: ClassVar[str] = "sampling: every record is included independently in every step; not shuffled batches"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checks.probability("rate", self.rate))

    def laws(self, step: Step, adjacency: Adjacency) -> tuple[Law, ...]:
        return PoissonSampled(step.mechanism, self.rate, adjacency).laws()
