"""What loaders do: shuffle, then cut into batches. No theorem says that it amplifies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dptally.law import Law
from dptally.law.adjacency import ADD_REMOVE, Adjacency, Direction
from dptally.mechanisms.registry import declared
from dptally.mechanisms.sampling.sampler import Sampler, Step, epoch_length

__all__ = ["ShuffledBatches"]


@declared(
    section="sampling",
    plan="shuffled_batches",
    aliases=("shuffled",),
    example={"steps_per_epoch": 10},
    refuses={"steps_per_epoch": (0,)},
)
@dataclass(frozen=True, slots=True, repr=False)
class ShuffledBatches(Sampler):
    """Every epoch the records are shuffled and cut into ``steps_per_epoch`` batches of equal size.

    Upper end: no amplification, one mechanism per epoch. Lower end, Gaussian noise: what the largest of the outputs
    of one
    epoch reveals [Chua et al. 2024, How private are DP-SGD implementations?, arXiv 2403.17673].

    >>> ShuffledBatches(steps_per_epoch=1000)
    ShuffledBatches(steps_per_epoch=1000)
    """

    steps_per_epoch: int
    json_name: ClassVar[str] = "shuffled_batches"
    unit: ClassVar[str] = "epochs"
    assumption: ClassVar[str] = (
        "batches: shuffled every epoch and cut into equal parts; no amplification is claimed for that"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps_per_epoch", epoch_length("steps_per_epoch", self.steps_per_epoch))

    @property
    def steps_per_unit(self) -> int:
        return self.steps_per_epoch

    def laws(self, step: Step, adjacency: Adjacency) -> tuple[Law, ...]:
        return step.laws() if adjacency is ADD_REMOVE else step.doubled().laws()

    def laws_below(self, step: Step, adjacency: Adjacency) -> tuple[Law, ...] | None:
        """Others that contribute -1, and a record that contributes 1 or else nothing; under REPLACE 1 or else -1."""
        from dptally.laws.sampled.shuffled import shuffled_lower_law

        sigma = step.noise
        if sigma is None:
            return ()
        if self.steps_per_epoch == 1:
            return None
        without = 1.0 if adjacency is ADD_REMOVE else 0.0
        return tuple(shuffled_lower_law(sigma, self.steps_per_epoch, side, without) for side in Direction)

    def why(self) -> str:
        return (
            "upper end: no amplification, the only proved bound for shuffling; lower end: an attack on the "
            "largest output of "
            "each epoch"
        )
