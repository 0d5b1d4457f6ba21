"""DP-SGD in one line."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.mechanisms.composed import Composed
from dptally.mechanisms.gaussian import Gaussian
from dptally.mechanisms.poisson_sampled import PoissonSampled
from dptally.mechanisms.registry import declared

__all__ = ["dpsgd"]

_LITTLE_NOISE, _LARGE_RATE = 0.1, 0.3  # a step with both is hardly private: most likely the arguments are swapped


@declared(
    section="sampling",
    plan="dpsgd",
    example={"noise_multiplier": 2.0, "sample_rate": 0.1, "steps": 3},
    zero=("sample_rate", "steps"),
)
def dpsgd(
    noise_multiplier: float,
    sample_rate: float | None = None,
    steps: int | None = None,
    adjacency: Adjacency = ADD_REMOVE,
    *,
    epochs: float | None = None,
    batch_size: int | None = None,
    dataset_size: int | None = None,
) -> Composed:
    """``steps`` rounds of clipping, summing a Poisson sample and adding Gaussian noise.

    [Abadi et al. 2016, Deep learning with differential privacy, Alg. 1]

    noise_multiplier is the noise's standard deviation per unit of the clipping norm; sample_rate the
    probability with which a record joins a round (expected batch size / records). The same as ``steps *
    PoissonSampled(Gaussian(noise_multiplier), sample_rate, adjacency)``. Instead of the rate and the steps,
    batch_size with dataset_size and epochs may be given: rate batch_size / dataset_size, and epochs / rate
    steps, rounded up.

    >>> dpsgd(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
    1000 * PoissonSampled(mechanism=Gaussian(sigma=1.0, sensitivity=1.0), rate=0.01, adjacency=ADD_REMOVE)
    >>> dpsgd(1.1, epochs=15, batch_size=256, dataset_size=60000).parts[0][1]
    3516
    """
    noise = checks.positive("noise_multiplier", noise_multiplier)
    rate = _rate(sample_rate, batch_size, dataset_size)
    number = _steps(steps, epochs, sample_rate, batch_size, dataset_size)
    if noise <= _LITTLE_NOISE and rate >= _LARGE_RATE:
        warnings.warn(
            f"noise_multiplier {noise:g} with sample_rate {rate:g} is hardly private: were the two swapped? "
            "The order is dpsgd(noise_multiplier, sample_rate, steps)",
            stacklevel=2,
        )
    return number * PoissonSampled(Gaussian(noise), rate, adjacency)


def _rate(sample_rate: float | None, batch_size: int | None, dataset_size: int | None) -> float:
    if (sample_rate is None) == (batch_size is None and dataset_size is None):
        raise InvalidArgument(
            "sample_rate", "given, or batch_size with dataset_size", (sample_rate, batch_size, dataset_size)
        )
    if sample_rate is not None:
        return checks.probability("sample_rate", sample_rate)
    batch, records = _sizes(batch_size, dataset_size)
    return batch / records


def _sizes(batch_size: int | None, dataset_size: int | None) -> tuple[int, int]:
    if batch_size is None or dataset_size is None:
        raise InvalidArgument("batch_size, dataset_size", "given together", (batch_size, dataset_size))
    batch, records = checks.count("batch_size", batch_size, 1), checks.count("dataset_size", dataset_size, 1)
    if batch > records:
        raise InvalidArgument("batch_size", f"at most dataset_size, {records}", batch)
    return batch, records


def _steps(
    steps: int | None, epochs: float | None, sample_rate: float | None, batch_size: int | None, dataset_size: int | None
) -> int:
    """The steps as given, or what the epochs need: a pass over the data is 1 / rate steps, rounded up."""
    if (steps is None) == (epochs is None):
        raise InvalidArgument("steps", "given, or epochs instead", (steps, epochs))
    if steps is not None:
        return checks.count("steps", steps)
    passes = Fraction(repr(checks.positive("epochs", epochs)))
    if sample_rate is None:
        batch, records = _sizes(batch_size, dataset_size)
        return math.ceil(passes * records / batch)
    if sample_rate == 0:
        raise InvalidArgument("sample_rate", "positive where the length is given in epochs", sample_rate)
    return math.ceil(passes / Fraction(repr(float(sample_rate))))
