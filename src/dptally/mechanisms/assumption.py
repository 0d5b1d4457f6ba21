"""What a mechanism takes for granted, stated by the mechanism itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["DECLARED", "SENSITIVITY", "Assumption", "joined"]

TOPICS = ("sensitivity", "adjacency", "sampling", "guarantees", "other")  #: in the order in which they are printed


@dataclass(frozen=True, slots=True)
class Assumption:
    """One sentence about a ``topic`` (one of TOPICS); ``{}`` in the text stands for the ``values`` of the plan's parts.

    >>> Assumption("sampling", "every record is included with probability {}", (0.5, 0.25)).sentence
    'every record is included with probability 0.25, 0.5'
    """

    topic: str
    text: str
    values: tuple[float | str, ...] = ()

    @property
    def sentence(self) -> str:
        shown = (value if isinstance(value, str) else repr(value) for value in sorted(self.values))
        return self.text.format(", ".join(shown))


SENSITIVITY = Assumption(
    "sensitivity", "sensitivity: neighbouring datasets change each query by at most that much (not checked)"
)
DECLARED = Assumption("guarantees", "declared guarantees are taken as true")


def joined(stated: Iterable[Assumption]) -> tuple[Assumption, ...]:
    """Each assumption once, with the values of all, in the order of the topics."""
    values: dict[tuple[str, str], set[float | str]] = {}
    for one in stated:
        values.setdefault((one.topic, one.text), set()).update(one.values)
    found = (Assumption(topic, text, tuple(given)) for (topic, text), given in values.items())
    return tuple(sorted(found, key=lambda one: TOPICS.index(one.topic)))
