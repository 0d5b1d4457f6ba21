"""Statistical: batches follow their sampler, with a power check; loaders are recognised without torch."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

import dptally as dp
from dptally.release import batches

N = 12
ALL = [
    dp.Poisson(0.25),
    dp.TruncatedPoisson(0.5, N, 4),
    dp.FixedSize(3, N),
    dp.BallsInBins(4),
    dp.RandomAllocation(4, 2),
    dp.Cyclic(4),
    dp.ShuffledBatches(4),
]


def counts(sampler: object, rounds: int) -> np.ndarray:
    """How often each record was in each place of an epoch."""
    drawn = batches(sampler, N, epochs=1)
    table = np.zeros((len(drawn), N))
    for _ in range(rounds):
        for place, batch in enumerate(drawn):
            assert len(set(batch)) == len(batch)
            assert all(0 <= index < N for index in batch)
            table[place, batch] += 1
    return table


@pytest.mark.parametrize("sampler", ALL, ids=lambda s: type(s).__name__)
def test_lengths_and_passes(sampler: dp.Mechanism) -> None:
    drawn = batches(sampler, N, epochs=3)
    assert len(list(drawn)) == len(drawn)
    assert list(drawn) is not list(drawn)
    if sampler.unit == "epochs":
        times = 2 if isinstance(sampler, dp.RandomAllocation) else 1
        assert Counter(i for batch in batches(sampler, N) for i in batch) == dict.fromkeys(range(N), times)


@pytest.mark.parametrize(
    ("sampler", "share"),
    [
        (dp.Poisson(0.25), 0.25),
        (dp.FixedSize(3, N), 0.25),
        (dp.BallsInBins(4), 0.25),
        (dp.RandomAllocation(4, 2), 0.5),
        (dp.ShuffledBatches(4), 0.25),
    ],
    ids=lambda s: type(s).__name__,
)
def test_every_record_is_as_likely_in_every_place(sampler: dp.Mechanism, share: float) -> None:
    rounds = 1500
    found = counts(sampler, rounds) / rounds
    error = np.sqrt(share * (1 - share) / rounds)
    assert np.abs(found - share).max() < 5 * error
    assert 5 * error < 0.25 * share  # a share that is 30 % off would be seen


def test_sizes_tell_the_samplers_apart() -> None:
    """Fixed sizes are fixed, coins are not, and a cap is kept."""
    assert {len(b) for b in batches(dp.FixedSize(3, N), N, 20)} == {3}
    assert {len(b) for b in batches(dp.ShuffledBatches(4), N, 20)} == {3}
    assert len({len(b) for b in batches(dp.Poisson(0.25), N, 50)}) > 3
    capped = Counter(len(b) for b in batches(dp.TruncatedPoisson(0.5, N, 4), N, 100))
    assert max(capped) == 4
    assert capped[4] > 0.7 * sum(capped.values())
    pairs = Counter(tuple(b) for b in batches(dp.BallsInBins(2), 2, 400))
    assert {(0, 1), (0,), (1,), ()} <= set(pairs)  # records choose on their own


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(dp.InvalidArgument, match="dataset_size"):
        batches(dp.FixedSize(3, N), N + 1)
    with pytest.raises(dp.InvalidType, match="sampler"):
        batches("shuffled", N)
    with pytest.raises(dp.InvalidArgument, match="rate"):
        batches(dp.Poisson(0.0), N)


# -- loaders ---------------------------------------------------------------------------------------------------------


def made(name: str, length: int = 4, **attributes: object) -> object:
    body = {"__len__": lambda self: length, **attributes}
    return type(name, (), body)()


def loader(sampler: object, length: int = 5) -> SimpleNamespace:
    return SimpleNamespace(
        dataset=range(20), sampler=sampler, batch_sampler=made("BatchSampler", length, sampler=sampler, drop_last=False)
    )


def test_loaders_are_recognised() -> None:
    shuffled = made("RandomSampler", replacement=False, num_samples=20, data_source=range(20))
    assert dp.inspect_loader(loader(shuffled)) == dp.ShuffledBatches(5)
    assert dp.inspect_loader(loader(made("SequentialSampler"))) == dp.Cyclic(5)
    assert dp.inspect_loader(loader(made("SubsetRandomSampler", indices=[1, 2, 3]))) == dp.ShuffledBatches(5)
    coins = made("UniformWithReplacementSampler", sample_rate=0.1)
    assert dp.inspect_loader(SimpleNamespace(dataset=None, sampler=None, batch_sampler=coins)) == dp.Poisson(0.1)
    own = batches(dp.BallsInBins(4), N)
    assert dp.inspect_loader(SimpleNamespace(batch_sampler=own, sampler=None)) == dp.BallsInBins(4)
    even = made("DistributedSampler", total_size=20, dataset=range(20), shuffle=True)
    assert dp.inspect_loader(loader(even)) == dp.ShuffledBatches(5)
    assert dp.inspect_loader(
        loader(made("DistributedSampler", total_size=20, dataset=range(20), shuffle=False))
    ) == dp.Cyclic(5)


@pytest.mark.parametrize(
    ("sampler", "reason"),
    [
        (made("RandomSampler", replacement=True, num_samples=20, data_source=range(20)), "replacement"),
        (made("RandomSampler", replacement=False, num_samples=40, data_source=range(20)), "several times"),
        (made("WeightedRandomSampler"), "weights"),
        (made("DistributedSampler", total_size=22, dataset=range(20), shuffle=True), "repeats 2"),
        (made("SubsetRandomSampler", indices=[1, 1]), "twice"),
        (made("Custom"), "Custom"),
    ],
)
def test_loaders_that_no_theorem_covers(sampler: object, reason: str) -> None:
    with pytest.raises(dp.Unanswerable, match=reason):
        dp.inspect_loader(loader(sampler))


def test_an_order_of_its_own_is_not_the_inherited_one() -> None:
    """A subclass that draws otherwise is not what it inherits from."""

    class RandomSampler:
        data_source, replacement, num_samples = range(20), False, 20

        def __iter__(self) -> object:
            return iter(range(20))

    class Renamed(RandomSampler):
        pass

    class Hard(RandomSampler):
        def __iter__(self) -> object:
            return iter([0] * 20)

    assert dp.inspect_loader(loader(Renamed())) == dp.ShuffledBatches(5)
    with pytest.raises(dp.Unanswerable, match="Hard"):
        dp.inspect_loader(loader(Hard()))


def test_coins_of_a_known_seed_are_refused() -> None:
    for seed, fine in ((67280421310721, False), (2**60 + 1, True)):
        generator = SimpleNamespace(initial_seed=lambda seed=seed: seed)
        coins = made("UniformWithReplacementSampler", sample_rate=0.1, generator=generator)
        box = SimpleNamespace(dataset=None, sampler=None, batch_sampler=coins)
        if fine:
            assert dp.inspect_loader(box) == dp.Poisson(0.1)
        else:
            with pytest.raises(dp.Unanswerable, match="secret"):
                dp.inspect_loader(box)


def test_other_things_are_no_loaders() -> None:
    with pytest.raises(dp.InvalidType, match="loader"):
        dp.inspect_loader([1, 2])
    with pytest.raises(dp.Unanswerable, match="batch_size=None"):
        dp.inspect_loader(SimpleNamespace(dataset=range(3), sampler=made("SequentialSampler"), batch_sampler=None))
    with pytest.raises(dp.Unanswerable, match="batch sampler"):
        dp.inspect_loader(SimpleNamespace(dataset=range(3), sampler=None, batch_sampler=made("Odd")))
    with pytest.raises(dp.Unanswerable, match="iterable"):
        dp.inspect_loader(
            SimpleNamespace(dataset=made("IterableDataset"), sampler=None, batch_sampler=made("BatchSampler"))
        )
