"""Batches of fixed size, drawn without replacement, afresh for every step."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.law import Law
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.mechanisms.poisson_sampled import PoissonSampled
from dptally.mechanisms.registry import declared
from dptally.mechanisms.sampling.sampler import Sampler, Step, refused
from dptally.numerics.exact import between

__all__ = ["FixedSize"]


@declared(
    section="sampling",
    plan="fixed_size",
    example={"batch_size": 10, "dataset_size": 1000},
    refuses={"batch_size": (0, 1001), "dataset_size": (0,)},
)
@dataclass(frozen=True, slots=True, repr=False)
class FixedSize(Sampler):
    """Each batch is a uniform subset of ``batch_size`` of the ``dataset_size`` records, drawn afresh for each step.

    Under ADD_REMOVE too a batch of fixed size has one record instead of another, so the change is twice one record's
    contribution; ``dataset_size`` is then that of the larger dataset. Proofs in docs/batching.md.

    >>> FixedSize(batch_size=256, dataset_size=60_000)
    FixedSize(batch_size=256, dataset_size=60000)
    """

    batch_size: int
    dataset_size: int
    json_name: ClassVar[str] = "fixed_size"
    assumption: ClassVar[str] = (
        "sampling: every batch is a fresh uniform subset of fixed size; not consecutive parts of one shuffle"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_size", checks.count("batch_size", self.batch_size, 1))
        object.__setattr__(self, "dataset_size", checks.count("dataset_size", self.dataset_size, 1))
        if self.batch_size > self.dataset_size:
            raise InvalidArgument("batch_size", f"at most the dataset size {self.dataset_size}", self.batch_size)
        if self.dataset_size > 10**90:
            raise InvalidArgument("dataset_size", "at most 10^90", self.dataset_size)

    @property
    def share(self) -> float:
        """batch_size / dataset_size, rounded up: more sampling tells more."""
        return between(Fraction(self.batch_size, self.dataset_size))[1]

    def laws(self, step: Step, adjacency: Adjacency) -> tuple[Law, ...]:
        from dptally.laws.sampled.fixed_size import FixedSizeLaw
        from dptally.laws.sampled.gaussian.fixed_size import FixedSizeGaussianLaw

        double = step.doubled()
        if adjacency is ADD_REMOVE or self.share == 1.0:
            return PoissonSampled(double.mechanism, self.share, ADD_REMOVE).laws() if self.share < 1 else double.laws()
        sigma = double.noise
        if sigma is not None:
            return (FixedSizeGaussianLaw(self.share, sigma),)
        laws = double.laws()
        if len(laws) != 1:
            raise refused(self, step, adjacency, "Gaussian and Laplace noise")
        return (FixedSizeLaw(laws[0], self.share),)
