"""Gauss-Legendre nodes and weights, each within one unit in the last place.

Library routines lose the weights next to the ends of the interval (a hundred million ulps at 1500 points). Here the
Legendre polynomials are summed in integers of 160 bits and more, in t = 1 - x, by

    P_{k+1} = P_k + E_{k+1} / (k + 1),     E_{k+1} = E_k - (2k + 1) t P_k:

n roundings of 2^-160 each, where t itself is at least 1/n^2.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dptally.numerics.rounding import Floats

__all__ = ["gauss_legendre"]

_BITS = 160
_ONE = 1 << _BITS


@lru_cache(maxsize=64)
def gauss_legendre(number: int) -> tuple[Floats, Floats]:
    """(nodes, weights) on [-1, 1], in increasing order; read-only."""
    half = (number + 1) // 2
    rows = [_refined(number, t) for t in _guessed(number).tolist()]
    if number % 2:
        rows[-1] = _at(number, _ONE)
    node = np.array([float(Fraction(_ONE - t, _ONE)) for t, _ in rows])
    weight = np.array([w for _, w in rows])
    once = half - number % 2  # the middle node of an odd number is there once
    nodes = np.concatenate((-node, node[:once][::-1]))
    weights = np.concatenate((weight, weight[:once][::-1]))
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


def _guessed(number: int) -> Floats:
    """t = 1 - x of the nodes x >= 0, from the largest x on: three Newton steps in doubles, relative to t."""
    angle = math.pi * (4 * np.arange(1, (number + 1) // 2 + 1) - 1) / (4 * number + 2)
    t = 2 * np.sin(0.5 * angle) ** 2
    for _ in range(3):
        before, value, change = np.ones_like(t), np.ones_like(t), np.zeros_like(t)
        for k in range(number):
            change = change - (2 * k + 1) * t * value
            before, value = value, value + change / (k + 1)
        t = t + value * t * (2 - t) / (number * (before - (1 - t) * value))
    return t


def _refined(number: int, guess: float) -> tuple[int, float]:
    """(t in units of 2^-160, the weight) of the node next to the guess: one Newton step squares 1e-14."""
    t = int(Fraction(guess) * _ONE)
    value, before = _legendre(number, t)
    # P' = n (P_{n-1} - x P_n) / (1 - x^2), and t grows by P / P'
    slope = number * (before - ((_ONE - t) * value >> _BITS))
    return _at(number, t + value * (t * (2 * _ONE - t) >> _BITS) // slope)


def _at(number: int, t: int) -> tuple[int, float]:
    """The node and its weight 2 (1 - x^2) / (n P_{n-1})^2."""
    before = _legendre(number, t)[1]
    return t, float(Fraction(2 * t * (2 * _ONE - t), (number * before) ** 2))


def _legendre(number: int, t: int) -> tuple[int, int]:
    """(P_n, P_{n-1}) at 1 - t."""
    before, value, change = _ONE, _ONE, 0
    for k in range(number):
        change -= (2 * k + 1) * (t * value >> _BITS)
        before, value = value, value + change // (k + 1)
    return value, before
