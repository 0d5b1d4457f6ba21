"""The exact samplers: integers and Fractions decide every outcome, no float does.

Arrays are drawn in 64-bit integers where every product provably fits (``vector.py``), otherwise, and for a
few draws, in Python integers (``scalar.py``). Results are int64 arrays, or arrays of Python integers where 64
bits may not hold them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.noise import parameters, scalar, vector
from dptally.noise.parameters import Exact
from dptally.noise.source import SYSTEM, ByteSource, forget

__all__ = ["bernoulli", "bernoulli_exp", "discrete_gaussian", "discrete_laplace", "uniform_below"]

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

FEW = 16  # fewer draws than this are quicker one by one


class _draw:
    """The scope of one draw: what it left in the source's buffer is forgotten at its end."""

    __slots__ = ("_source",)

    def __init__(self, source: ByteSource) -> None:
        self._source = source

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        forget(self._source)


def _integers(size: int, fits: bool, many: Callable[[], NDArray[Any]], one: Callable[[], int]) -> Integers:
    if fits and size >= FEW:
        return many()
    drawn = [one() for _ in range(size)]
    narrow = all(-(1 << 63) <= x < 1 << 63 for x in drawn)
    return np.array(drawn, dtype=np.int64 if narrow else object)


@overload
def uniform_below(bound: int, size: None = ..., *, _source: ByteSource = ...) -> int: ...
@overload
def uniform_below(bound: int, size: int, *, _source: ByteSource = ...) -> Integers: ...
def uniform_below(bound: int, size: int | None = None, *, _source: ByteSource = SYSTEM) -> int | Integers:
    """Uniform integers on {0, ..., bound - 1}, for any bound >= 1.

    >>> bool((uniform_below(6, size=100) < 6).all())
    True
    """
    bound = checks.count("bound", bound, least=1)
    number = parameters.size_of(size)
    with _draw(_source):
        if number is None:
            return scalar.below(_source, bound)
        return _integers(
            number,
            bound <= vector.WIDEST,
            lambda: vector.below(_source, bound, number),
            lambda: scalar.below(_source, bound),
        )


@overload
def bernoulli(p: Exact, size: None = ..., *, _source: ByteSource = ...) -> bool: ...
@overload
def bernoulli(p: Exact, size: int, *, _source: ByteSource = ...) -> Flags: ...
def bernoulli(p: Exact, size: int | None = None, *, _source: ByteSource = SYSTEM) -> bool | Flags:
    """True with probability exactly ``p``, a rational in [0, 1].

    >>> bernoulli(1), bernoulli(0)
    (True, False)
    """
    ratio = parameters.probability("p", p)
    number = parameters.size_of(size)
    if number is None:
        with _draw(_source):
            return scalar.bernoulli(_source, ratio.numerator, ratio.denominator)
    drawn = uniform_below(ratio.denominator, number, _source=_source)
    return np.asarray(drawn < ratio.numerator, dtype=np.bool_)


@overload
def bernoulli_exp(x: Exact, size: None = ..., *, _source: ByteSource = ...) -> bool: ...
@overload
def bernoulli_exp(x: Exact, size: int, *, _source: ByteSource = ...) -> Flags: ...
def bernoulli_exp(x: Exact, size: int | None = None, *, _source: ByteSource = SYSTEM) -> bool | Flags:
    """True with probability exactly exp(-x), for a rational x >= 0.  [Canonne, Kamath, Steinke 2020, Alg. 1]

    >>> bernoulli_exp(0)
    True
    """
    exponent = parameters.rational("x", x)
    if not exponent >= 0:
        raise InvalidArgument("x", "at least 0", x)
    number = parameters.size_of(size)
    top, bottom = exponent.numerator, exponent.denominator
    with _draw(_source):
        if number is None:
            return scalar.bernoulli_exp(_source, top, bottom)
        whole, rest = divmod(top, bottom)
        if number >= FEW and bottom <= vector.WIDEST and whole <= vector.WIDEST:
            return vector.bernoulli_exp(_source, np.full(number, whole), np.full(number, rest), bottom)
        return np.array([scalar.bernoulli_exp(_source, top, bottom) for _ in range(number)], dtype=np.bool_)


@overload
def discrete_laplace(scale: Exact, size: None = ..., *, _source: ByteSource = ...) -> int: ...
@overload
def discrete_laplace(scale: Exact, size: int, *, _source: ByteSource = ...) -> Integers: ...
def discrete_laplace(scale: Exact, size: int | None = None, *, _source: ByteSource = SYSTEM) -> int | Integers:
    """Integers with P(x) = (1 - a) / (1 + a) a^|x|, a = exp(-1 / scale), for a rational scale > 0.

    [Canonne, Kamath, Steinke 2020, Alg. 2]

    >>> discrete_laplace(10, size=1000).shape
    (1000,)
    """
    ratio = parameters.positive("scale", scale)
    number = parameters.size_of(size)
    top, bottom = ratio.numerator, ratio.denominator
    with _draw(_source):
        if number is None:
            return scalar.laplace(_source, top, bottom)
        return _integers(
            number,
            vector.laplace_fits(top, bottom),
            lambda: vector.laplace(_source, top, bottom, number),
            lambda: scalar.laplace(_source, top, bottom),
        )


@overload
def discrete_gaussian(sigma: Exact, size: None = ..., *, _source: ByteSource = ...) -> int: ...
@overload
def discrete_gaussian(sigma: Exact, size: int, *, _source: ByteSource = ...) -> Integers: ...
def discrete_gaussian(sigma: Exact, size: int | None = None, *, _source: ByteSource = SYSTEM) -> int | Integers:
    """Integers with P(x) proportional to exp(-x^2 / (2 sigma^2)), for a rational sigma > 0.

    [Canonne, Kamath, Steinke 2020, Alg. 3]. Any sigma up to 2^53 is drawn in arrays; a square of more than about 40
    bits (most doubles that are not short, and sigmas above about 7000) takes a few times as long.

    >>> discrete_gaussian(10, size=1000).shape
    (1000,)
    """
    variance = parameters.positive("sigma", sigma) ** 2
    number = parameters.size_of(size)
    top, bottom = variance.numerator, variance.denominator
    with _draw(_source):
        if number is None:
            return scalar.gaussian(_source, top, bottom)
        return _integers(
            number,
            vector.gaussian_fits(top, bottom),
            lambda: vector.gaussian(_source, top, bottom, number),
            lambda: scalar.gaussian(_source, top, bottom),
        )
