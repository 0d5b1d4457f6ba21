"""Asking one route by itself, as the engine's walk does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from dptally.accounting.certified.bounds import BoundedProfile
from dptally.accounting.certified.plan import Plan
from dptally.accounting.certified.route import Route, answers_of
from dptally.law import Composition

Answer = TypeVar("Answer")


def until_overflow(answers: Iterator[Answer]) -> Iterator[Answer]:
    """The answers of a route until its numbers overflow; anything unexpected is an error in tests."""
    return answers_of("the route under test", answers, [])


def profiles_near(route: Route, composition: Composition, epsilon: float) -> Iterator[BoundedProfile]:
    """What this route makes for one eps, nothing where it does not apply."""
    plan = Plan(composition)
    return until_overflow(route.near_epsilon(plan, epsilon)) if route.applies(plan) else iter(())
