"""Each record is used in one batch of every epoch, chosen uniformly and on its own: balls and bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dptally.law import Law
from dptally.law.adjacency import Adjacency
from dptally.mechanisms.registry import declared
from dptally.mechanisms.sampling.allocation import allocation_laws, allocation_laws_below
from dptally.mechanisms.sampling.sampler import Sampler, Step, epoch_length

__all__ = ["BallsInBins"]


@declared(
    section="sampling",
    plan="balls_in_bins",
    aliases=("bins",),
    example={"steps_per_epoch": 10},
    refuses={"steps_per_epoch": (0,)},
)
@dataclass(frozen=True, slots=True, repr=False)
class BallsInBins(Sampler):
    """Every epoch each record is put into one of ``steps_per_epoch`` batches, uniformly and independently of the
    others.

    [Chua et al. 2025, arXiv 2412.16802; Feldman, Shenfeld 2025, arXiv 2502.08202; proof in docs/batching.md]

    >>> BallsInBins(steps_per_epoch=100)
    BallsInBins(steps_per_epoch=100)
    """

    steps_per_epoch: int
    json_name: ClassVar[str] = "balls_in_bins"
    unit: ClassVar[str] = "epochs"
    assumption: ClassVar[str] = (
        "sampling: every epoch each record goes to one batch, chosen uniformly and independently of the other records; "
        "not consecutive parts of one shuffle"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps_per_epoch", epoch_length("steps_per_epoch", self.steps_per_epoch))

    @property
    def steps_per_unit(self) -> int:
        return self.steps_per_epoch

    def laws(self, step: Step, adjacency: Adjacency) -> tuple[Law, ...]:
        return allocation_laws(self, step, ((self.steps_per_epoch, 1),), adjacency)

    def laws_below(self, step: Step, adjacency: Adjacency) -> tuple[Law, ...] | None:
        return allocation_laws_below(self, step, self.steps_per_epoch, 1, adjacency)

    def why(self) -> str:
        return "upper end: a bounding pair; lower end: a record that contributes nothing, or the sum of all steps"
