"""Index batches drawn as the sampler says, from the system's randomness: run what is accounted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dptally import checks, noise
from dptally.errors import InvalidArgument, InvalidType
from dptally.mechanisms.sampling.balls_in_bins import BallsInBins
from dptally.mechanisms.sampling.cyclic import Cyclic
from dptally.mechanisms.sampling.fixed_size import FixedSize
from dptally.mechanisms.sampling.poisson import Poisson
from dptally.mechanisms.sampling.random_allocation import RandomAllocation
from dptally.mechanisms.sampling.sampler import Sampler
from dptally.mechanisms.sampling.shuffled_batches import ShuffledBatches
from dptally.mechanisms.sampling.truncated_poisson import TruncatedPoisson
from dptally.noise.source import SYSTEM, ByteSource, forget

__all__ = ["Batches", "batches"]

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batches:
    """An iterable of lists of record numbers, each pass drawn afresh; ``len`` is the number of batches.

    It serves as ``batch_sampler`` of a torch DataLoader. Which records are in a batch, and how many, is as secret as
    the
    data. Poisson batches may be empty: the step is then noise alone, and must not be skipped.
    """

    sampler: Sampler
    dataset_size: int
    epochs: int = 1

    def __len__(self) -> int:
        return self.epochs * _per_epoch(self.sampler)

    def __iter__(self) -> Iterator[list[int]]:
        return self._drawn(SYSTEM)

    def _drawn(self, source: ByteSource) -> Iterator[list[int]]:
        draw = _DRAWS[type(self.sampler)]
        for _ in range(self.epochs):
            for batch in draw(self.sampler, self.dataset_size, source):
                yield batch.tolist()


def batches(sampler: Sampler, dataset_size: int, epochs: int = 1) -> Batches:
    """Batches of record numbers 0 .. dataset_size - 1 for that many passes over the data.

    Samplers that count steps have ceil(1 / share of the records in a batch) steps in a pass.

    >>> drawn = batches(Cyclic(steps_per_epoch=2), dataset_size=5)
    >>> list(drawn), len(drawn)
    ([[0, 1, 2], [3, 4]], 2)
    """
    if type(sampler) not in _DRAWS:
        raise InvalidType("sampler", f"one of {sorted(kind.__name__ for kind in _DRAWS)}", sampler)
    records = checks.count("dataset_size", dataset_size, 1)
    if isinstance(sampler, (FixedSize, TruncatedPoisson)) and sampler.dataset_size != records:
        raise InvalidArgument("dataset_size", f"that of the sampler, {sampler.dataset_size}", records)
    if isinstance(sampler, Poisson) and sampler.rate == 0:
        raise InvalidArgument("sampler", "a rate above 0: a pass over the data would not end", sampler)
    return Batches(sampler, records, checks.count("epochs", epochs))


def _per_epoch(sampler: Sampler) -> int:
    if sampler.unit == "epochs":
        return sampler.steps_per_unit
    given = sampler.parameters()
    share = Fraction(given["batch_size"], given["dataset_size"]) if "batch_size" in given else Fraction(given["rate"])
    return math.ceil(1 / share)


# -- how each is drawn ---------------------------------------------------------------------------------------------


def _permutation(number: int, source: ByteSource) -> Indices:
    """A uniform permutation: the order of random keys that all differ."""
    while True:
        keys = np.frombuffer(source.take(8 * number), dtype=np.uint64)
        forget(source)  # no random byte outlives its draw
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        if not (ranked[1:] == ranked[:-1]).any():
            return np.asarray(order, dtype=np.int64)


def _subset(number: int, size: int, source: ByteSource) -> Indices:
    return np.sort(_permutation(number, source)[:size])


def _poisson(sampler: Sampler, number: int, source: ByteSource) -> Iterator[Indices]:
    rate = Fraction(sampler.parameters()["rate"])
    for _ in range(_per_epoch(sampler)):
        yield np.flatnonzero(noise.bernoulli(rate, number, _source=source))


def _truncated(sampler: Sampler, number: int, source: ByteSource) -> Iterator[Indices]:
    cap = sampler.parameters()["cap"]
    for batch in _poisson(sampler, number, source):
        yield batch if len(batch) <= cap else batch[_subset(len(batch), cap, source)]


def _fixed(sampler: Sampler, number: int, source: ByteSource) -> Iterator[Indices]:
    for _ in range(_per_epoch(sampler)):
        yield _subset(number, sampler.parameters()["batch_size"], source)


def _bins(sampler: Sampler, number: int, source: ByteSource) -> Iterator[Indices]:
    steps = sampler.steps_per_unit
    chosen = np.asarray(noise.uniform_below(steps, number, _source=source))
    order = np.argsort(chosen, kind="stable")
    ends = np.searchsorted(chosen[order], np.arange(steps + 1))
    for step in range(steps):
        yield order[ends[step] : ends[step + 1]]


def _allocated(sampler: Sampler, number: int, source: ByteSource) -> Iterator[Indices]:
    steps, times = sampler.steps_per_unit, sampler.parameters()["times"]
    chosen: list[list[int]] = [[] for _ in range(steps)]
    for record in range(number):
        for step in _subset(steps, times, source).tolist():
            chosen[step].append(record)
    for batch in chosen:
        yield np.array(batch, dtype=np.int64)


def _cut(order: Indices, steps: int) -> Iterator[Indices]:
    """Consecutive parts whose sizes differ by at most one, the larger ones first."""
    yield from np.array_split(order, steps)


def _cyclic(sampler: Sampler, number: int, source: ByteSource) -> Iterator[Indices]:
    del source
    return _cut(np.arange(number, dtype=np.int64), sampler.steps_per_unit)


def _shuffled(sampler: Sampler, number: int, source: ByteSource) -> Iterator[Indices]:
    return _cut(_permutation(number, source), sampler.steps_per_unit)


_DRAWS: dict[type[Sampler], Callable[[Sampler, int, ByteSource], Iterator[Indices]]] = {
    Poisson: _poisson,
    TruncatedPoisson: _truncated,
    FixedSize: _fixed,
    BallsInBins: _bins,
    RandomAllocation: _allocated,
    Cyclic: _cyclic,
    ShuffledBatches: _shuffled,
}
