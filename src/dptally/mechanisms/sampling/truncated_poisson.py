"""Poisson batches of at most a given size: what does not fit is dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.law import Law
from dptally.law.adjacency import ADD_REMOVE, Adjacency, Direction
from dptally.mechanisms.registry import declared
from dptally.mechanisms.sampling.sampler import Sampler, Step, refused

__all__ = ["TruncatedPoisson"]


@declared(
    section="sampling",
    plan="truncated_poisson",
    example={"rate": 0.5, "dataset_size": 4, "cap": 2},
    refuses={"rate": (0.0, 1.0, 1.5), "cap": (0,), "dataset_size": (0,)},
)
@dataclass(frozen=True, slots=True, repr=False)
class TruncatedPoisson(Sampler):
    """Each of ``dataset_size`` records joins with probability ``rate``; of more than ``cap`` a uniform ``cap`` are
    kept.

    Gaussian noise [Ganesh 2025, arXiv 2508.15089, for ADD_REMOVE; proofs in docs/batching.md]: a bounding pair. The
    upper end is certified; the lower end is that of a record among records that contribute nothing.

    >>> TruncatedPoisson(rate=0.01, dataset_size=10_000, cap=150)
    TruncatedPoisson(rate=0.01, dataset_size=10000, cap=150)
    """

    rate: float
    dataset_size: int
    cap: int
    json_name: ClassVar[str] = "truncated_poisson"
    assumption: ClassVar[str] = (
        "sampling: every record joins every step by its own coin and a uniform part of a batch that is too large is "
        "dropped; the number of records is public"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checks.open_probability("rate", self.rate))
        object.__setattr__(self, "dataset_size", checks.count("dataset_size", self.dataset_size, 1))
        object.__setattr__(self, "cap", checks.count("cap", self.cap, 1))
        if self.rate < 1e-100:
            raise InvalidArgument("rate", "at least 1e-100", self.rate)
        if self.dataset_size > 10**12:
            raise InvalidArgument("dataset_size", "at most 10^12", self.dataset_size)

    def laws(self, step: Step, adjacency: Adjacency) -> tuple[Law, ...]:
        from dptally.laws.sampled.truncated import Overflow, truncated_poisson_law, truncated_replace_law

        sigma = step.noise
        if sigma is None:
            raise refused(self, step, adjacency, "Gaussian noise")
        overflow = Overflow.of(self.rate, self.dataset_size, self.cap)
        if adjacency is not ADD_REMOVE:
            return (truncated_replace_law(self.rate, sigma, overflow),)
        return tuple(truncated_poisson_law(self.rate, sigma, overflow, side) for side in Direction)

    def laws_below(self, step: Step, adjacency: Adjacency) -> tuple[Law, ...] | None:
        from dptally.laws.sampled.truncated import NEVER, least_rate, truncated_poisson_law, truncated_replace_law

        sigma = step.noise
        if sigma is None or self.cap >= self.dataset_size:
            return None
        rate = least_rate(self.rate, self.dataset_size, self.cap)
        if not rate > 1e-100:
            return ()
        if adjacency is not ADD_REMOVE:
            return (truncated_replace_law(rate, sigma, NEVER),)
        return tuple(truncated_poisson_law(rate, sigma, NEVER, side) for side in Direction)

    def why(self) -> str:
        return "upper end: a bounding pair; lower end: a record among records that contribute nothing"
