"""DP-SGD in one line: the Gaussian case of sampling, from the numbers that people have."""

from __future__ import annotations

import math
import operator
import warnings
from fractions import Fraction

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType, Unanswerable
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.mechanisms.composed import Composed
from dptally.mechanisms.gaussian import Gaussian
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.poisson_sampled import PoissonSampled
from dptally.mechanisms.registry import declared
from dptally.mechanisms.sampling.poisson import Poisson
from dptally.mechanisms.sampling.sampled import Sampled
from dptally.mechanisms.sampling.sampler import Sampler
from dptally.numerics.exact import between

__all__ = ["dpsgd", "training"]

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
    PoissonSampled(Gaussian(noise_multiplier), sample_rate, adjacency)``. Instead of the rate, batch_size and
    dataset_size; instead of the steps, epochs.

    >>> dpsgd(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
    1000 * PoissonSampled(mechanism=Gaussian(sigma=1.0, sensitivity=1.0), rate=0.01, adjacency=ADD_REMOVE)
    """
    noise = checks.positive("noise_multiplier", noise_multiplier)
    sized = batch_size is not None or dataset_size is not None
    if (sample_rate is None) != sized:
        raise InvalidArgument("sample_rate", "given, or batch_size and dataset_size instead", sample_rate)
    if (steps is None) == (epochs is None):
        raise InvalidArgument("steps, epochs", "exactly one of the two", (steps, epochs))
    rate = _rate(batch_size, dataset_size) if sized else checks.probability("sample_rate", sample_rate)
    if epochs is None:
        number = checks.count("steps", steps)
    else:
        share = Fraction(operator.index(batch_size), operator.index(dataset_size)) if sized else Fraction(rate)  # type: ignore[arg-type]
        number = _steps(checks.positive("epochs", epochs), share)
    if noise <= _LITTLE_NOISE and rate >= _LARGE_RATE:
        warnings.warn(
            f"noise_multiplier {noise:g} with sample_rate {rate:g} is hardly private: were the two swapped? "
            "The order is dpsgd(noise_multiplier, sample_rate, steps)",
            stacklevel=2,
        )
    return number * PoissonSampled(Gaussian(noise), rate, adjacency)


@declared(
    section="sampling",
    plan="training",
    example={"noise_multiplier": 2.0, "dataset_size": 1000, "batch_size": 10, "epochs": 1},
    zero=("steps", "epochs"),
)
def training(
    noise_multiplier: float,
    sampler: Sampler | None = None,
    steps: int | None = None,
    epochs: float | None = None,
    dataset_size: int | None = None,
    batch_size: int | None = None,
    adjacency: Adjacency = ADD_REMOVE,
    per_user: int = 1,
) -> Mechanism:
    """A training run with Gaussian noise, batches from ``sampler``; without one, Poisson batches of the expected
    batch size.

    noise_multiplier: the noise's standard deviation per unit of the clipping norm. Length: steps or epochs; epochs of
    fresh batches need dataset_size and batch_size (ceil(epochs dataset_size / batch_size) steps). per_user: how many
    records a person has at most, all of them protected together (Poisson batches, ADD_REMOVE).

    >>> training(noise_multiplier=1.0, dataset_size=60_000, batch_size=256, epochs=10).epsilon(1e-5) < 1.2
    True
    """
    noise = Gaussian(checks.positive("noise_multiplier", noise_multiplier))
    if sampler is not None and not isinstance(sampler, Sampler):
        raise InvalidType("sampler", "a sampler, such as Poisson(0.01) or BallsInBins(100)", sampler)
    if not isinstance(adjacency, Adjacency):
        raise InvalidType("adjacency", "ADD_REMOVE or REPLACE", adjacency)
    users = checks.count("per_user", per_user, 1)
    if (steps is None) == (epochs is None):
        raise InvalidArgument("steps, epochs", "exactly one of the two", (steps, epochs))
    if sampler is None:
        sampler = Poisson(_rate(batch_size, dataset_size))
    if epochs is None:
        plan = Sampled(noise, sampler, checks.count("steps", steps), None, adjacency)
    elif sampler.unit == "steps":
        plan = Sampled(noise, sampler, _steps(epochs, _share(sampler, batch_size, dataset_size)), None, adjacency)
    else:
        plan = Sampled(noise, sampler, None, _whole(epochs), adjacency)
    return plan if users == 1 else _grouped(plan, users)


def _grouped(plan: Sampled, users: int) -> Mechanism:
    if not isinstance(plan.sampler, Poisson) or plan.adjacency is not ADD_REMOVE:
        raise Unanswerable(
            f"several records of one person are answered for Poisson batches under ADD_REMOVE, not for "
            f"{plan.sampler!r} under {plan.adjacency!r}: no theorem covers that"
        )
    return plan.grouped(users)


def _rate(batch_size: int | None, dataset_size: int | None) -> float:
    if batch_size is None or dataset_size is None:
        raise InvalidArgument(
            "batch_size, dataset_size", "both given where no sampler or rate is", (batch_size, dataset_size)
        )
    batch, records = checks.count("batch_size", batch_size, 1), checks.count("dataset_size", dataset_size, 1)
    if batch > records:
        raise InvalidArgument("batch_size", f"at most the dataset size {records}", batch)
    return between(Fraction(batch, records))[1]  # more sampling reveals more


def _share(sampler: Sampler, batch_size: int | None, dataset_size: int | None) -> Fraction:
    """The expected share of the records in a batch."""
    if batch_size is not None and dataset_size is not None:
        return Fraction(checks.count("batch_size", batch_size, 1), checks.count("dataset_size", dataset_size, 1))
    given = sampler.parameters()
    if "batch_size" in given and "dataset_size" in given:
        return Fraction(given["batch_size"], given["dataset_size"])
    rate = given.get("rate", 0.0)
    if not rate > 0:
        raise InvalidArgument("epochs", "steps instead, where the rate is 0", sampler)
    return Fraction(rate)


def _steps(epochs: float, share: Fraction) -> int:
    """ceil(epochs / share), exactly."""
    passes = checks.nonnegative("epochs", epochs)
    if share == 0:
        raise InvalidArgument("epochs", "steps instead, where the rate is 0", epochs)
    return math.ceil(Fraction(passes) / share)


def _whole(epochs: float) -> int:
    """A number of whole epochs, rounded up."""
    return math.ceil(checks.nonnegative("epochs", epochs))
