"""A fixed order: each record is used once in every epoch, in a step that an attacker may know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dptally import checks
from dptally.law import Law
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.mechanisms.registry import declared
from dptally.mechanisms.sampling.sampler import Sampler, Step

__all__ = ["Cyclic"]


@declared(section="sampling", plan="cyclic", example={"steps_per_epoch": 10}, refuses={"steps_per_epoch": (0,)})
@dataclass(frozen=True, slots=True, repr=False)
class Cyclic(Sampler):
    """Batches in a fixed order, one pass per epoch: no amplification. Each epoch costs the mechanism once.

    >>> Cyclic(steps_per_epoch=100)
    Cyclic(steps_per_epoch=100)
    """

    steps_per_epoch: int
    json_name: ClassVar[str] = "cyclic"
    unit: ClassVar[str] = "epochs"
    assumption: ClassVar[str] = "batches: every epoch each record is used once; nothing is gained from their order"

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps_per_epoch", checks.count("steps_per_epoch", self.steps_per_epoch, 1))

    @property
    def steps_per_unit(self) -> int:
        return self.steps_per_epoch

    def laws(self, step: Step, adjacency: Adjacency) -> tuple[Law, ...]:
        return step.laws() if adjacency is ADD_REMOVE else step.doubled().laws()
