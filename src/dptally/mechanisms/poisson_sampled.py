"""Poisson sampling: every record joins the sample by its own coin, then the mechanism runs on the sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dptally import checks
from dptally.errors import InvalidType, Unanswerable
from dptally.law import Law
from dptally.law.adjacency import ADD_REMOVE, Adjacency, Side
from dptally.mechanisms.gaussian import Gaussian
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.sampled_gaussian import SampledGaussianLaw
from dptally.numerics.rounding import down

__all__ = ["PoissonSampled"]


@dataclass(frozen=True, slots=True)
class PoissonSampled(Mechanism):
    """Run ``mechanism`` on a sample that each record joins independently with probability ``rate``."""

    mechanism: Mechanism
    rate: float
    adjacency: Adjacency = ADD_REMOVE
    json_name: ClassVar[str] = "poisson_sampled"

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise InvalidType("mechanism", "a mechanism", self.mechanism)
        object.__setattr__(self, "rate", checks.probability("rate", self.rate))
        if not isinstance(self.adjacency, Adjacency):
            raise InvalidType("adjacency", "ADD_REMOVE or REPLACE", self.adjacency)

    def laws(self) -> tuple[Law, ...]:
        if self.rate == 0.0:
            return ()
        if self.rate == 1.0 and self.adjacency is ADD_REMOVE:
            return self.mechanism.laws()
        if self.adjacency is ADD_REMOVE and isinstance(self.mechanism, Gaussian):
            sigma = self.mechanism.sigma / self.mechanism.sensitivity
            if self.mechanism.sensitivity != 1.0:
                sigma = down(sigma)
            return tuple(SampledGaussianLaw(self.rate, sigma, side) for side in (Side.REMOVE, Side.ADD))
        raise Unanswerable(f"no dominating pair is known for {self!r}")
