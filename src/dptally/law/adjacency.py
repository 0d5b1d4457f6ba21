"""Which datasets are neighbours. One enum, printed in every report."""

from __future__ import annotations

from enum import Enum

__all__ = ["ADD_REMOVE", "REPLACE", "Adjacency"]


class Adjacency(Enum):
    """Neighbouring datasets differ by one record added or removed, or by one record replaced by another."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"

    def __repr__(self) -> str:
        return self.name


ADD_REMOVE = Adjacency.ADD_REMOVE
REPLACE = Adjacency.REPLACE
