"""For which adjacency a mechanism is stated: what it names, or what the mechanisms inside it name.

A bare mechanism names none: its sensitivity is the caller's statement. One that mixes datasets (a sample) names the one
it was written for; one that is known for a single adjacency (a way of taking part, the shuffle model) has it as a class
attribute ``adjacency``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from dptally.law.adjacency import Adjacency
from dptally.mechanisms.composed import Composed
from dptally.mechanisms.mechanism import Mechanism

__all__ = ["adjacencies", "fixed_adjacency"]


def adjacencies(value: Any) -> frozenset[Adjacency]:
    """Every adjacency that a mechanism, or one inside it, names."""
    if isinstance(value, Adjacency):
        return frozenset({value})
    if isinstance(value, Mechanism):
        return _of_mechanism(value)
    if isinstance(value, (tuple, list)):
        return frozenset().union(*map(adjacencies, value))
    return _only(value)


def fixed_adjacency(value: Any) -> Adjacency | None:
    """The one adjacency under which a mechanism or a way of taking part is known at all."""
    found = getattr(type(value), "adjacency", None)
    return found if isinstance(found, Adjacency) else None


def _only(value: Any) -> frozenset[Adjacency]:
    fixed = fixed_adjacency(value)
    return frozenset() if fixed is None else frozenset({fixed})


@lru_cache(maxsize=4096)
def _of_mechanism(mechanism: Mechanism) -> frozenset[Adjacency]:
    if isinstance(mechanism, Composed):
        return frozenset().union(*(adjacencies(part) for part, _ in mechanism.parts))
    return _only(mechanism).union(*map(adjacencies, mechanism.parameters().values()))
