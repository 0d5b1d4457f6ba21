"""DP-SGD in one line."""

from __future__ import annotations

from dptally import checks
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.mechanisms.composed import Composed
from dptally.mechanisms.gaussian import Gaussian
from dptally.mechanisms.poisson_sampled import PoissonSampled
from dptally.mechanisms.registry import declared

__all__ = ["dpsgd"]


@declared(
    section="sampling",
    plan="dpsgd",
    example={"noise_multiplier": 2.0, "sample_rate": 0.1, "steps": 3},
    zero=("sample_rate", "steps"),
)
def dpsgd(noise_multiplier: float, sample_rate: float, steps: int, adjacency: Adjacency = ADD_REMOVE) -> Composed:
    """``steps`` rounds of clipping, summing a Poisson sample and adding Gaussian noise.

    [Abadi et al. 2016, Deep learning with differential privacy, Alg. 1]

    noise_multiplier is the noise's standard deviation per unit of the clipping norm; sample_rate the
    probability with which a record joins a round (expected batch size / records). The same as ``steps *
    PoissonSampled(Gaussian(noise_multiplier), sample_rate, adjacency)``.

    >>> dpsgd(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
    1000 * PoissonSampled(mechanism=Gaussian(sigma=1.0, sensitivity=1.0), rate=0.01, adjacency=ADD_REMOVE)
    """
    noise = checks.positive("noise_multiplier", noise_multiplier)
    rate = checks.probability("sample_rate", sample_rate)
    return checks.count("steps", steps) * PoissonSampled(Gaussian(noise), rate, adjacency)
