"""What an answer takes for granted, in words: sensitivity, adjacency, sampling, adaptivity, noise."""

from __future__ import annotations

from collections.abc import Iterator

from dptally.mechanisms.assumption import Assumption, joined
from dptally.mechanisms.mechanism import Mechanism

__all__ = ["assumptions", "stated"]

_ADJACENCY = Assumption("adjacency", "adjacency: the one under which the sensitivities and guarantees were stated")


def stated(plan: Mechanism) -> tuple[Assumption, ...]:
    """What the mechanisms of a plan say of themselves, and the adjacency where they say nothing of it."""
    own = joined(one for mechanism, _ in plan.parts for one in mechanism.assumptions())
    return own if any(one.topic == "adjacency" for one in own) else joined((*own, _ADJACENCY))


def assumptions(plan: Mechanism) -> Iterator[str]:
    """What the caller stated and the library cannot check.

    >>> from dptally.mechanisms.laplace import Laplace
    >>> next(assumptions(Laplace(scale=5)))
    'sensitivity: neighbouring datasets change each query by at most that much (not checked)'
    """
    yield from (one.sentence for one in stated(plan))
    yield "steps may be chosen adaptively, but their list is fixed before the first (else use a ledger)"
    yield "the noise is drawn exactly and its random bits are secret"
