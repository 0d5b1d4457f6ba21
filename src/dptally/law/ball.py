"""One loss in ball arithmetic: what a proof needs of a law.

A ball loss stands for ``count`` independent copies. Its parameters are balls that contain the exact ones, so
the enclosure speaks of the mechanism as it was declared, not of its rounded law. A law that has such a form
says so in ``Law.ball``. python-flint is imported by whoever calls.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dptally.errors import MissingExtra

__all__ = ["Ball", "BallLoss", "ends", "flint", "working"]

Ball = Any  # flint.arb: a real ball; flint.acb: a complex one


def flint() -> Any:
    """The python-flint module, or an error that says what to install."""
    try:
        import flint as module
    except ImportError:
        raise MissingExtra("python-flint", "proof") from None
    return module


@contextmanager
def working(bits: int) -> Iterator[None]:
    """Work with that many bits, then restore."""
    context = flint().ctx
    before = context.prec
    context.prec = bits
    try:
        yield
    finally:
        context.prec = before


def ends(value: Ball) -> tuple[float, float]:
    """Doubles around a ball: conversion rounds to nearest, so each end moves one step outwards."""
    return math.nextafter(float(value.lower()), -math.inf), math.nextafter(float(value.upper()), math.inf)


class BallLoss(ABC):
    """``count`` copies of one loss, in balls. phi is the characteristic function of one copy tilted by
    theta.
    """

    __slots__ = ()
    count: int

    @abstractmethod
    def moment(self, z: Ball) -> Ball:
        """E[e^{zL}; L < inf] of one copy, z complex."""

    def infinity_mass(self) -> Ball:
        """P(L = inf) of one copy."""
        return flint().arb(0)

    def log_moment(self, s: Ball) -> Ball:
        return self.moment(flint().acb(s)).real.log()

    def phis(self, theta: Ball, step: Ball, nodes: int) -> list[Ball]:
        """phi(k step), k = 0 .. nodes."""
        acb = flint().acb
        base = self.moment(acb(theta)).real
        return [self.moment(acb(theta, k * step)) / base for k in range(nodes + 1)]

    @abstractmethod
    def beyond(self, theta: Ball, u: Ball) -> tuple[Ball, Ball]:
        """(c, r) with |phi(u')|^count <= c / u'^r for every u' >= u > 0."""

    def bounds(self, theta: Ball, u: Ball, width: Ball, cells: int) -> list[Ball]:
        """Upper bounds of |phi|^count on the cells [u + k width, u + (k+1) width]; here c of each left end
        (r = 0).
        """
        return [self.beyond(theta, u + k * width)[0] for k in range(cells)]

    def cell(self, theta: Ball, u: Ball, log_tolerance: float) -> float:
        """The width of cells that ``bounds`` likes at u, where |phi|^count should stay below that
        tolerance.
        """
        del theta, log_tolerance
        return float(u) / 8
