"""Each record is used in exactly k of the t steps of an epoch, chosen uniformly: random allocation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.law import Law
from dptally.law.adjacency import Adjacency
from dptally.mechanisms.registry import declared
from dptally.mechanisms.sampling.allocation import allocation_laws, allocation_laws_below
from dptally.mechanisms.sampling.sampler import Sampler, Step, epoch_length

__all__ = ["RandomAllocation"]


@declared(
    section="sampling",
    plan="random_allocation",
    aliases=("allocation",),
    example={"steps": 10, "times": 2},
    refuses={"steps": (0, 1), "times": (0, 11)},
)
@dataclass(frozen=True, slots=True, repr=False)
class RandomAllocation(Sampler):
    """Each record is used in ``times`` of the ``steps`` steps of an epoch, a uniform subset, independently of the
    others.

    Exact for ``times`` = 1 under ADD_REMOVE; else bounded, by one use in each of ``times`` blocks of steps [Feldman,
    Shenfeld 2025, arXiv 2502.08202] and, under REPLACE, by both directions together; proofs in docs/batching.md.

    >>> RandomAllocation(steps=100, times=5)
    RandomAllocation(steps=100, times=5)
    """

    steps: int
    times: int = 1
    json_name: ClassVar[str] = "random_allocation"
    unit: ClassVar[str] = "epochs"
    assumption: ClassVar[str] = (
        "sampling: every epoch each record is used in a uniform subset of the steps, of fixed size, of its own"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", epoch_length("steps", self.steps))
        object.__setattr__(self, "times", checks.count("times", self.times, 1))
        if self.times > self.steps:
            raise InvalidArgument("times", f"at most the number of steps {self.steps}", self.times)

    @property
    def steps_per_unit(self) -> int:
        return self.steps

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """(length of a block, number of such blocks): as equal as can be."""
        short, longer = divmod(self.steps, self.times)
        return tuple((size, number) for size, number in ((short, self.times - longer), (short + 1, longer)) if number)

    def laws(self, step: Step, adjacency: Adjacency) -> tuple[Law, ...]:
        return allocation_laws(self, step, self.blocks, adjacency)

    def laws_below(self, step: Step, adjacency: Adjacency) -> tuple[Law, ...] | None:
        return allocation_laws_below(self, step, self.steps, self.times, adjacency)

    def why(self) -> str:
        return (
            "upper end: a bounding pair, for several uses one in each of as many blocks of steps; lower end: the sum "
            "of all steps, or under REPLACE a record that contributes nothing"
        )
