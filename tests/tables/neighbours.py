"""Random neighbouring tables, many at once: each world is a table of its own inside one frame.

Worlds have their own persons and their own groups (the key is "world|group"), so one query answers all of them,
and the answers of two frames are compared world by world.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

GROUPS = ("A", "B", "C", "D", "E")


@dataclass(frozen=True, slots=True)
class Row:
    person: int | None
    group: str | None
    value: float | None


@dataclass(frozen=True, slots=True)
class Drawer:
    """Draws rows that try everything: missing and extreme values, bounds and their neighbours, foreign groups."""

    rng: random.Random
    low: float
    high: float
    groups: int

    def value(self) -> float | None:
        width = self.high - self.low
        pool = (None, math.nan, math.inf, -math.inf, 1e300, -1e300, -0.0, 0.0, self.low, self.high, 5e-324)
        near = (math.nextafter(self.low, -math.inf), math.nextafter(self.high, math.inf), -self.high, -self.low)
        draw = self.rng.random()
        if draw < 0.3:
            return self.rng.choice(pool)
        if draw < 0.4:
            return self.rng.choice(near)
        if draw < 0.7:
            return self.rng.choice((self.low, self.high))
        return self.rng.uniform(self.low - width, self.high + width)

    def group(self) -> str | None:
        draw = self.rng.random()
        if draw < 0.05:
            return None
        return "Z" if draw < 0.1 else self.rng.choice(GROUPS[: self.groups])

    def rows(self, person: int | None, most: int = 10) -> list[Row]:
        kept = self.rng.choice((1, 2, 3, most))
        return [Row(person, self.group(), self.value()) for _ in range(self.rng.randint(1, kept))]


def pair(drawer: Drawer, world: int, by_person: bool, replaced: bool) -> tuple[list[Row], list[Row]]:
    """A table and a neighbour of it: one person (or row) is added, removed or replaced."""
    rng, first = drawer.rng, 1000 * world
    others = [row for i in range(rng.randint(0, 6)) for row in drawer.rows(first + i)]
    if rng.random() < 0.1:
        others = drawer.rows(first, 40)  # one person has all rows
    others += drawer.rows(None) if rng.random() < 0.1 else []
    if by_person:
        old = drawer.rows(first + 900)
        new = drawer.rows(first + rng.choice((900, 901))) if replaced else []
    else:
        someone = rng.choice(others).person if others else first
        old = [Row(someone, drawer.group(), drawer.value())]
        new = [replace(old[0], group=drawer.group(), value=drawer.value())] if replaced else []
    tables = [others + old, others + new]
    for table in tables:
        rng.shuffle(table)
    return (tables[0], tables[1]) if rng.random() < 0.5 else (tables[1], tables[0])


def frame(worlds: list[list[Row]]) -> Any:
    """All worlds in one Arrow table."""
    rows = [(world, row) for world, table in enumerate(worlds) for row in table]
    return pa.table(
        {
            "person": pa.array([row.person for _, row in rows], pa.int64()),
            "grp": pa.array(
                [None if row.group is None else f"{world}|{row.group}" for world, row in rows], pa.string()
            ),
            "value": pa.array([row.value for _, row in rows], pa.float64()),
            "label": pa.array([None if row.value is None else f"{row.value:.1f}" for _, row in rows], pa.string()),
        }
    )


def keys(worlds: int, groups: int) -> list[str]:
    return [f"{world}|{group}" for world in range(worlds) for group in GROUPS[:groups]]
