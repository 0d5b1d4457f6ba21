"""What each way of drawing batches costs for the same noise, batch size and number of epochs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dptally import checks
from dptally.errors import InvalidArgument, Unanswerable
from dptally.interval import Interval
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.mechanisms.sampling.balls_in_bins import BallsInBins
from dptally.mechanisms.sampling.cyclic import Cyclic
from dptally.mechanisms.sampling.fixed_size import FixedSize
from dptally.mechanisms.sampling.poisson import Poisson
from dptally.mechanisms.sampling.sampler import Sampler
from dptally.mechanisms.sampling.shuffled_batches import ShuffledBatches
from dptally.mechanisms.sampling.truncated_poisson import TruncatedPoisson
from dptally.mechanisms.training_runs import training
from dptally.numerics.exact import between

__all__ = ["BatchingRow", "batching", "named_sampler"]

#: name on the command line -> what it is, and how to run it
NAMES = {
    "poisson": "each record is included independently in each batch",
    "truncated-poisson": "coins, and of a batch six deviations too large a part is dropped",
    "balls-in-bins": "each epoch every record goes to one batch, chosen by itself",
    "fixed-size": "each batch is a fresh subset of fixed size",
    "shuffled-batches": "shuffle each epoch and cut: what loaders do",
    "cyclic": "a fixed order",
}


@dataclass(frozen=True, slots=True)
class BatchingRow:
    """One way of batching: certified bounds of epsilon, or the reason why there are none."""

    name: str
    sampler: Sampler
    epsilon: Interval | None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        box = self.epsilon
        found = None if box is None else {"lower": box.lower, "upper": box.upper, "method": box.method}
        return {"name": self.name, "sampler": repr(self.sampler), "epsilon": found, "reason": self.reason}


def named_sampler(name: str, dataset_size: int, batch_size: int) -> Sampler:
    """The sampler of this name for batches of about that size."""
    records, size = checks.count("dataset_size", dataset_size, 1), checks.count("batch_size", batch_size, 1)
    if size > records:
        raise InvalidArgument("batch_size", f"at most the dataset size {records}", size)
    steps = math.ceil(records / size)
    rate, cap = between(Fraction(size, records))[1], min(records, size + math.ceil(6 * math.sqrt(size)))
    made: dict[str, Sampler] = {
        "poisson": Poisson(rate),
        "truncated-poisson": TruncatedPoisson(rate, records, cap),
        "balls-in-bins": BallsInBins(steps),
        "fixed-size": FixedSize(size, records),
        "shuffled-batches": ShuffledBatches(steps),
        "cyclic": Cyclic(steps),
    }
    if name not in made:
        raise InvalidArgument("sampler", f"one of {', '.join(made)}", name)
    return made[name]


def batching(
    noise_multiplier: float,
    dataset_size: int,
    batch_size: int,
    epochs: int,
    delta: float,
    adjacency: Adjacency = ADD_REMOVE,
    names: tuple[str, ...] = tuple(NAMES),
) -> list[BatchingRow]:
    """One row for each way of batching, the cheapest upper end first.

    >>> rows = batching(2.0, dataset_size=1000, batch_size=100, epochs=1, delta=1e-5, names=("cyclic", "poisson"))
    >>> [row.name for row in rows]
    ['poisson', 'cyclic']
    """
    rows = []
    for name in names:
        sampler = named_sampler(name, dataset_size, batch_size)
        try:
            plan = training(
                noise_multiplier,
                sampler,
                epochs=checks.count("epochs", epochs),
                dataset_size=dataset_size,
                batch_size=batch_size,
                adjacency=adjacency,
            )
            rows.append(BatchingRow(name, sampler, plan.epsilon_interval(delta)))
        except Unanswerable as error:
            rows.append(BatchingRow(name, sampler, None, str(error)))
    return sorted(rows, key=lambda row: math.inf if row.epsilon is None else row.epsilon.upper)
