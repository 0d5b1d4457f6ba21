"""Contract: loaders of torch itself (make interop), and training on the batches that dptally draws."""

from __future__ import annotations

from typing import Any

import pytest

import dptally as dp

torch = pytest.importorskip("torch")
data = pytest.importorskip("torch.utils.data")

RECORDS = data.TensorDataset(torch.arange(1000.0).reshape(-1, 1))


@pytest.mark.parametrize(
    ("settings", "sampler"),
    [
        ({"batch_size": 10}, dp.Cyclic(100)),
        ({"batch_size": 30, "shuffle": True}, dp.ShuffledBatches(34)),
        ({"batch_size": 30, "shuffle": True, "drop_last": True}, dp.ShuffledBatches(33)),
        ({"batch_size": 10, "shuffle": True, "generator": torch.Generator()}, dp.ShuffledBatches(100)),
        ({"batch_size": 10, "sampler": data.SubsetRandomSampler(range(500))}, dp.ShuffledBatches(50)),
        (
            {"batch_size": 10, "sampler": data.DistributedSampler(RECORDS, num_replicas=2, rank=0)},
            dp.ShuffledBatches(50),
        ),
        ({"batch_sampler": data.BatchSampler(data.SequentialSampler(RECORDS), 10, False)}, dp.Cyclic(100)),
    ],
)
def test_what_torch_loaders_are(settings: dict[str, Any], sampler: object) -> None:
    assert dp.inspect_loader(data.DataLoader(RECORDS, **settings)) == sampler


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"batch_size": 10, "sampler": data.RandomSampler(RECORDS, replacement=True)}, "with replacement"),
        ({"batch_size": 10, "sampler": data.RandomSampler(RECORDS, num_samples=2000)}, "several times"),
        ({"batch_size": 10, "sampler": data.WeightedRandomSampler([1.0] * 1000, 1000)}, "by weights"),
        ({"batch_size": 10, "sampler": data.DistributedSampler(RECORDS, num_replicas=3, rank=0)}, "drop_last=True"),
        ({"batch_size": None}, "has no batches"),
    ],
)
def test_what_no_theorem_covers(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(dp.Unanswerable, match=reason):
        dp.inspect_loader(data.DataLoader(RECORDS, **settings))


@pytest.mark.parametrize(
    "sampler",
    [
        dp.Poisson(0.01),
        dp.TruncatedPoisson(0.01, 1000, 30),
        dp.FixedSize(10, 1000),
        dp.BallsInBins(100),
        dp.RandomAllocation(100, 3),
        dp.Cyclic(100),
        dp.ShuffledBatches(100),
    ],
)
def test_our_batches_run_in_a_loader(sampler: Any) -> None:
    loader = data.DataLoader(RECORDS, batch_sampler=dp.release.batches(sampler, 1000))
    assert dp.inspect_loader(loader) == sampler
    sizes = [len(batch) for (batch,) in loader]
    assert len(sizes) == len(loader) == 100
    assert 500 < sum(sizes) <= 3000
