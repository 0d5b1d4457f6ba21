"""Which method answers which plan: the closed form for one step, else the numerical methods beside this file."""

from __future__ import annotations

from collections.abc import Sequence

from dptally.interval import Interval
from dptally.law import Composition


def delta_interval(directions: Sequence[Composition], epsilon: float) -> Interval:
    raise NotImplementedError


def epsilon_interval(directions: Sequence[Composition], delta: float) -> Interval:
    raise NotImplementedError
