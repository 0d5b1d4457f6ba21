"""Which sampler a torch DataLoader is, seen by its attributes; torch itself is never imported."""

from __future__ import annotations

from typing import Any

from dptally.errors import InvalidType, Unanswerable
from dptally.mechanisms.sampling.cyclic import Cyclic
from dptally.mechanisms.sampling.poisson import Poisson
from dptally.mechanisms.sampling.sampler import Sampler
from dptally.mechanisms.sampling.shuffled_batches import ShuffledBatches
from dptally.release.batches import Batches

__all__ = ["inspect_loader"]

_FIXED_SEED = 67280421310721  # of every torch.Generator() that was given none
_POISSON = ("UniformWithReplacementSampler", "DistributedUniformWithReplacementSampler")


def inspect_loader(loader: Any) -> Sampler:
    """The sampler that a data loader is; where no theorem covers it, ``Unanswerable`` with the reason.

    Understood: batch samplers made by ``dp.release.batches``; the Poisson samplers of opacus; shuffled and sequential
    loaders, with or without ``drop_last``; subsets in random order; distributed samplers that repeat no record. A
    shuffled loader is ShuffledBatches, for which no amplification is proved, not Poisson; where it leaves some records
    out of an epoch, the upper ends of ShuffledBatches hold, the lower ends are those of a loader that does not.
    """
    if not hasattr(loader, "batch_sampler") and not hasattr(loader, "sampler"):
        raise InvalidType("loader", "a torch DataLoader", type(loader).__name__)
    batch_sampler = getattr(loader, "batch_sampler", None)
    if isinstance(batch_sampler, Batches):
        return batch_sampler.sampler
    for candidate in (batch_sampler, getattr(loader, "sampler", None)):
        if candidate is not None and _kind(candidate) in _POISSON:
            if _seed(candidate) == _FIXED_SEED:
                raise _uncovered("its generator was given no seed and has torch's fixed one: no coin is secret")
            return Poisson(float(candidate.sample_rate))
    if (
        _kind(getattr(loader, "dataset", None)) == "IterableDataset"
        or _kind(batch_sampler) == "_InfiniteConstantSampler"
    ):
        raise _uncovered("an iterable dataset hands out its records itself, so their order is not known")
    if batch_sampler is None:
        raise _uncovered("it has no batches (batch_size=None), so how records form a step is not known")
    if _kind(batch_sampler) != "BatchSampler":
        raise _uncovered(f"its batch sampler is a {_kind(batch_sampler)}, which is not known")
    return _ordered(batch_sampler.sampler, _length(batch_sampler))


def _ordered(sampler: Any, steps: int) -> Sampler:
    """What the order of single records is, cut into batches."""
    kind = _kind(sampler)
    if kind == "SequentialSampler":
        return Cyclic(steps)
    if kind == "RandomSampler":
        if getattr(sampler, "replacement", False):
            raise _uncovered("it draws with replacement, so a record may be in a batch several times")
        drawn, records = getattr(sampler, "num_samples", None), len(sampler.data_source)
        if drawn is not None and drawn > records:
            raise _uncovered(f"it draws {drawn} times from {records} records, so an epoch uses a record several times")
        return ShuffledBatches(steps)
    if kind == "SubsetRandomSampler":
        if len(set(sampler.indices)) < len(sampler.indices):
            raise _uncovered("its list of records names some of them twice")
        return ShuffledBatches(steps)
    if kind == "WeightedRandomSampler":
        raise _uncovered("it draws by weights, so records are used at different rates that depend on the data")
    if kind == "DistributedSampler":
        if sampler.total_size > len(sampler.dataset):
            raise _uncovered(
                f"it repeats {sampler.total_size - len(sampler.dataset)} records to make the parts equal; use "
                f"drop_last=True"
            )
        return ShuffledBatches(steps) if sampler.shuffle else Cyclic(steps)
    raise _uncovered(f"its sampler is a {kind}, which is not known")


def _kind(value: Any) -> str:
    """The name of the known class whose order a value has, its own or inherited; else that of its own class."""
    own = type(value)
    for cls in own.__mro__:
        overridden = getattr(own, "__iter__", None) is not getattr(cls, "__iter__", None)
        if cls.__name__ in _KNOWN and (cls.__name__ == "IterableDataset" or not overridden):
            return cls.__name__
    return own.__name__


def _seed(sampler: Any) -> int | None:
    """The seed of a sampler's own generator, where it has one."""
    generator: Any = getattr(sampler, "generator", None)
    return int(generator.initial_seed()) if hasattr(generator, "initial_seed") else None


_KNOWN = (
    *_POISSON,
    "BatchSampler",
    "RandomSampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
    "DistributedSampler",
    "IterableDataset",
    "_InfiniteConstantSampler",
)


def _length(batch_sampler: Any) -> int:
    try:
        return max(1, len(batch_sampler))
    except TypeError:
        raise _uncovered("the number of its batches is not known") from None


def _uncovered(reason: str) -> Unanswerable:
    return Unanswerable(
        f"no theorem covers this loader: {reason}; draw its batches by dptally.release.batches(...) and give "
        f"them to the "
        "loader as batch_sampler"
    )
