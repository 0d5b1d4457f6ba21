"""The certified epsilon of everything an account has paid for, taken as one plan."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable

from dptally.errors import Unanswerable
from dptally.ledger.entries import Entry, plan_from_json
from dptally.mechanisms.composed import Composed
from dptally.mechanisms.mechanism import Mechanism

__all__ = ["epsilon", "plans"]

_MOST_PLANS = 64


def plans(spends: Iterable[Entry]) -> tuple[Mechanism, ...]:
    """The plans that one record can have met: what ran on all records, and one part of each partition.

    A record is in one part of each partition, so its loss is that of one of these plans.
    """
    everywhere: Counter[str] = Counter()
    parts: dict[str, dict[str, Counter[str]]] = {}
    for entry in spends:
        place = (
            parts.setdefault(entry.partition, {}).setdefault(entry.part, Counter()) if entry.partition else everywhere
        )
        place[entry.plan_json] += 1
    choices = [{frozenset(counts.items()) for counts in group.values()} for group in parts.values()]
    number = 1
    for choice in choices:
        number *= len(choice)
    if number > _MOST_PLANS:
        raise Unanswerable(
            f"{number} combinations of parts would have to be accounted for; ask odometer(dataset, delta) instead"
        )
    found = []
    for chosen in itertools.product(*choices):
        counts = everywhere.copy()
        for part in chosen:
            counts.update(dict(part))
        found.append(
            Composed.of(
                (mechanism, n * times) for text, times in counts.items() for mechanism, n in plan_from_json(text).parts
            )
        )
    return tuple(found)


def epsilon(spends: Iterable[Entry], delta: float) -> float:
    """The largest epsilon of these plans at ``delta``, rounded up."""
    return max((plan.epsilon(delta) if plan.parts else 0.0 for plan in plans(spends)), default=0.0)
