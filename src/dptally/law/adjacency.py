"""Which datasets are neighbours, and on which side of the pair the record stands. Printed in every report."""

from __future__ import annotations

from enum import Enum

__all__ = ["ADD_REMOVE", "REPLACE", "Adjacency", "Direction"]


class Adjacency(Enum):
    """Neighbouring datasets differ by one record added or removed, or by one record replaced by another."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"

    def __repr__(self) -> str:
        return self.name


class Direction(Enum):
    """REMOVE: the loss of (with the record, without it). ADD: the loss of (without it, with it)."""

    REMOVE = "remove"
    ADD = "add"

    def __repr__(self) -> str:
        return self.name


ADD_REMOVE = Adjacency.ADD_REMOVE
REPLACE = Adjacency.REPLACE
