"""The samplers for arrays: 64-bit integers, exact rejection, every product's width known before it is formed.

The algorithms are those of ``scalar.py``; here a whole array takes each step together and only the undecided
elements go on. No float appears. Callers hand over parameters that fit (``laplace_fits``, ``gaussian_fits``);
rare wide elements are finished in Python integers, so a width never changes a distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dptally.noise import scalar
from dptally.noise.source import ByteSource
from dptally.numerics.compiled import kernel

__all__ = ["below", "bernoulli", "bernoulli_exp", "gaussian", "gaussian_fits", "laplace", "laplace_fits"]

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Coin = Callable[[NDArray[np.intp]], Flags]  # one toss for each of these elements

BLOCK = 1 << 15  # elements at a time: the working arrays stay in the processor's cache
WIDEST = (1 << 63) - 1
_ROOT = math.isqrt(WIDEST)
_KERNEL_SCALE, _KERNEL_RUNS = 1 << 38, 1 << 23  # kernel/noise.h
_KERNEL_BYTES = 16  # of randomness fetched for each draw: about what one takes
_HEAD_BITS = 62  # of a wide fraction, compared in 64-bit integers


def _words(source: ByteSource, count: int, dtype: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
    return np.frombuffer(source.take(count * np.dtype(dtype).itemsize), dtype=dtype)


def below(source: ByteSource, bound: int, count: int) -> Integers:
    """Uniform on {0, ..., bound - 1}, 1 <= bound <= 2^63."""
    if bound == 1:
        return np.zeros(count, dtype=np.int64)
    out = np.empty(count, dtype=np.int64)
    filled = 0
    while filled < count:
        drawn = _attempt(source, bound, count - filled)
        out[filled : filled + len(drawn)] = drawn
        filled += len(drawn)
    return out


def _attempt(source: ByteSource, bound: int, count: int) -> NDArray[Any]:
    """Uniform draws below the bound: those of ``count`` proposals that were not rejected."""
    if bound > 1 << 32:
        words = _words(source, count, np.uint64) >> np.uint64(64 - (bound - 1).bit_length())
        return words[words < np.uint64(bound)].view(np.int64)
    if bound <= 1 << 10:
        return _scaled(_words(source, count, np.uint16).astype(np.uint32), bound, 16)
    return _scaled(_words(source, count, np.uint32).astype(np.uint64), bound, 32)


def _scaled(words: NDArray[Any], bound: int, bits: int) -> NDArray[Any]:
    """The high half of word * bound, redrawn where the low half is among the 2^bits mod bound left over.

    [Lemire 2019, Fast random integer generation in an interval, Alg. 5]: each result has the same number of
    words. The product is below 2^(2 bits): bound <= 2^10 with 16-bit words, bound <= 2^32 with 32-bit words.
    """
    kind = words.dtype.type
    product = words * kind(bound)
    high = product >> kind(bits)
    left_over = (1 << bits) % bound
    if left_over:
        high = high[(product & kind((1 << bits) - 1)) >= kind(left_over)]
    return np.asarray(high)


def bernoulli(source: ByteSource, numerators: Integers, denominator: int) -> Flags:
    """True with probability numerator / denominator, elementwise."""
    return below(source, denominator, len(numerators)) < numerators


def _exp_of_fraction(source: ByteSource, count: int, coin: Coin) -> Flags:
    """True with probability exp(-x), x in [0, 1], where ``coin`` tosses coins of bias x; see the scalar twin."""
    result = np.zeros(count, dtype=np.bool_)
    active = np.arange(count)
    k = 1
    while len(active):
        alive = active if k == 1 else active[below(source, k, len(active)) == 0]
        alive = alive[coin(alive)]
        if k % 2 == 1:  # those that stop here are True
            result[active] = True
            result[alive] = False
        active = alive
        k += 1
    return result


def _coin(source: ByteSource, numerators: Integers, denominator: int) -> Coin:
    return lambda at: bernoulli(source, numerators[at], denominator)


def _exp_of_one(source: ByteSource, count: int) -> Flags:
    """True with probability exp(-1)."""
    result = np.zeros(count, dtype=np.bool_)
    active = np.arange(count)
    k = 2
    while len(active):
        alive = active[below(source, k, len(active)) == 0]
        if k % 2 == 1:
            result[active] = True
            result[alive] = False
        active = alive
        k += 1
    return result


def _runs_of_exp_of_one(source: ByteSource, count: int) -> Integers:
    """How many coins of bias exp(-1) succeed before the first that fails."""
    result = np.zeros(count, dtype=np.int64)
    active = np.arange(count)
    while len(active):
        active = active[_exp_of_one(source, len(active))]
        result[active] += 1
    return result


def bernoulli_exp(source: ByteSource, wholes: Integers, rests: Integers, denominator: int) -> Flags:
    """True with probability exp(-(whole + rest / denominator)), elementwise."""
    return _exp_of_sum(source, wholes, _coin(source, rests, denominator))


def _exp_of_sum(source: ByteSource, wholes: Integers, coin: Coin) -> Flags:
    """True with probability exp(-(whole + x)), elementwise, where ``coin`` tosses coins of bias x."""
    result = _exp_of_fraction(source, len(wholes), coin)
    active = np.flatnonzero(result & (wholes > 0))
    left = wholes[active]
    while len(active):
        alive = _exp_of_one(source, len(active))
        result[active[~alive]] = False
        going_on = alive & (left > 1)
        active, left = active[going_on], left[going_on] - 1
    return result


def _compiled(source: ByteSource, count: int, draw: Callable[[bytes, Integers], tuple[int, int]]) -> Integers:
    """Draws of the compiled kernel: it says how many it made of these bytes and how many bytes they took.

    A draw that the bytes did not suffice for is made again from the same bytes and more behind them: to drop it would
    prefer draws that take few.
    """
    out = np.empty(count, dtype=np.int64)
    filled, pool = 0, b""
    while filled < count:
        part = out[filled : filled + BLOCK]
        pool += source.take(max(256, _KERNEL_BYTES * len(part) - len(pool)))
        made, used = draw(pool, part)
        filled, pool = filled + made, pool[used:]
    return out


def _kernel_takes(numerator: int, scale: int, step: int, bottom: int) -> bool:
    """Whether every product of the kernel's stays in 64 bits: runs are at most 2^23 long there."""
    return max(numerator, bottom) <= WIDEST and scale <= _KERNEL_SCALE and step <= WIDEST // scale // (_KERNEL_RUNS + 1)


def laplace_fits(numerator: int, denominator: int) -> bool:
    """Whether the scale numerator / denominator is narrow enough for ``laplace``."""
    return numerator <= 1 << 54 and denominator <= 1 << 62


def laplace(source: ByteSource, numerator: int, denominator: int, count: int) -> NDArray[Any]:
    """``count`` discrete Laplace draws of scale numerator / denominator.  [CKS 2020, Alg. 2]"""
    module = kernel()
    if module is not None and numerator <= _KERNEL_SCALE and denominator <= WIDEST:
        return _compiled(source, count, lambda pool, out: module.laplace(numerator, denominator, pool, out))
    kept: list[NDArray[Any]] = []
    missing = count
    while missing > 0:
        drawn = _laplace_attempt(source, numerator, denominator, min(BLOCK, int(1.75 * missing) + 16))
        kept.append(drawn[:missing])
        missing -= len(kept[-1])
    return np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)


def _laplace_attempt(source: ByteSource, numerator: int, denominator: int, count: int) -> NDArray[Any]:
    low = below(source, numerator, count)
    low = low[_exp_of_fraction(source, len(low), _coin(source, low, numerator))]
    high = _runs_of_exp_of_one(source, len(low))
    if (int(high.max(initial=0)) + 1) * numerator <= WIDEST:
        size: NDArray[Any] = _floor_divide(low + numerator * high, denominator)
    else:  # less likely than exp(-500), and still exact
        size = (low.astype(object) + numerator * high.astype(object)) // denominator
        size = size if max(size) > WIDEST else size.astype(np.int64)
    negative = below(source, 2, len(size)) == 1
    keep = ~(negative & (size == 0))  # zero has one sign only
    return np.asarray(np.where(negative, -size, size)[keep])


def _floor_divide(values: Integers, divisor: int) -> Integers:
    if divisor & (divisor - 1) == 0:
        return values >> (divisor.bit_length() - 1)
    return values // divisor


def _gaussian_constants(numerator: int, denominator: int) -> tuple[int, int, int]:
    scale = math.isqrt(numerator // denominator) + 1
    return scale, denominator * scale, 2 * numerator * denominator * scale * scale


def gaussian_fits(numerator: int, denominator: int) -> bool:
    """Whether this variance is narrow enough for ``gaussian``: the Laplace draws behind it stay in 64 bits."""
    return laplace_fits(_gaussian_constants(numerator, denominator)[0], 1)


def _products_fit(numerator: int, denominator: int) -> bool:
    """Whether squares up to 40 scales stay in 64 bits."""
    scale, step, bottom = _gaussian_constants(numerator, denominator)
    return bottom <= WIDEST and 40 * scale * step + numerator <= _ROOT


def gaussian(source: ByteSource, numerator: int, denominator: int, count: int) -> NDArray[Any]:
    """``count`` discrete Gaussian draws of variance numerator / denominator.  [CKS 2020, Alg. 3]"""
    scale, step, bottom = _gaussian_constants(numerator, denominator)
    module = kernel()
    if module is not None and _kernel_takes(numerator, scale, step, bottom):
        return _compiled(source, count, lambda pool, out: module.gaussian(numerator, scale, step, bottom, pool, out))
    accepts = _accepts_narrow if _products_fit(numerator, denominator) else _accepts_wide
    kept: list[NDArray[Any]] = []
    missing = count
    while missing > 0:
        drawn = laplace(source, scale, 1, min(BLOCK, 2 * missing + 16))
        kept.append(drawn[accepts(source, drawn, numerator, denominator)][:missing])
        missing -= len(kept[-1])
    return np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)


def _accepts_narrow(source: ByteSource, drawn: NDArray[Any], numerator: int, denominator: int) -> Flags:
    _, step, bottom = _gaussian_constants(numerator, denominator)
    narrow = np.abs(drawn) <= (_ROOT - numerator) // step
    squares = np.square(np.abs(drawn[narrow].astype(np.int64)) * step - numerator)
    accepted = np.zeros(len(drawn), dtype=np.bool_)
    accepted[narrow] = bernoulli_exp(source, squares // bottom, squares % bottom, bottom)
    for i in np.flatnonzero(~narrow):  # beyond 40 scales: exp(-40) and less
        accepted[i] = scalar.bernoulli_exp(source, (abs(int(drawn[i])) * step - numerator) ** 2, bottom)
    return accepted


def _accepts_wide(source: ByteSource, drawn: NDArray[Any], numerator: int, denominator: int) -> Flags:
    """Each exponent is formed once for each distinct size, in Python integers; the coins are tossed in 64 bits."""
    _, step, bottom = _gaussian_constants(numerator, denominator)
    sizes, which = np.unique(np.abs(drawn), return_inverse=True)
    exponents = [divmod((int(size) * step - numerator) ** 2, bottom) for size in sizes]
    if exponents[-1][0] > WIDEST or exponents[0][0] > WIDEST:  # they fall, then rise; less likely than exp(-2^30)
        return np.array([scalar.bernoulli_exp(source, (abs(int(y)) * step - numerator) ** 2, bottom) for y in drawn])
    wholes = np.array([whole for whole, _ in exponents], dtype=np.int64)
    return _exp_of_sum(source, wholes[which], _wide_coin(source, [rest for _, rest in exponents], bottom, which))


def _wide_coin(source: ByteSource, rests: list[int], denominator: int, which: NDArray[np.intp]) -> Coin:
    """Coins of bias rest / denominator for fractions of any width.

    A uniform number in [0, 1) lies below the fraction if its first 62 bits lie below the fraction's, and does not if
    they lie above. If they are the same (once in 2^62 tosses) the remaining bits decide: a coin whose bias is what
    remains of the fraction.
    """
    split = [divmod(rest << _HEAD_BITS, denominator) for rest in rests]
    heads = np.array([head for head, _ in split], dtype=np.int64)

    def toss(at: NDArray[np.intp]) -> Flags:
        kinds = which[at]
        bits = below(source, 1 << _HEAD_BITS, len(at))
        result = bits < heads[kinds]
        for i in np.flatnonzero(bits == heads[kinds]):
            result[i] = scalar.bernoulli(source, split[kinds[i]][1], denominator)
        return result

    return toss
