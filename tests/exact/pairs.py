"""The two distributions of every mechanism with finitely many outcomes, from its definition alone.

A pair is a list of outcomes (probability under P, probability under Q) in balls. P is the dataset with the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from flint import arb, ctx, fmpq

BITS = 2048  # e^-1000 beside 1
Outcome = tuple[arb, arb]
Pair = list[Outcome]
Number = int | float | Fraction


def exact(value: Number) -> arb:
    """The number itself: a float is its double."""
    ctx.prec = BITS
    fraction = Fraction(value)
    return arb(fmpq(fraction.numerator, fraction.denominator))


def mirrored(pair: Pair) -> Pair:
    """The other direction."""
    return [(q, p) for p, q in pair]


def guarantee(epsilon: Number, delta: Number = 0) -> Pair:
    """What dominates every (epsilon, delta)-DP mechanism: with chance delta the dataset is told, else a coin."""
    e, d = exact(epsilon), exact(delta)
    heads, tails = (1 - d) / (1 + (-e).exp()), (1 - d) / (1 + e.exp())
    coin = [(heads, tails), (tails, heads)]
    return coin if delta == 0 else [(d, arb(0)), *coin, (arb(0), d)]


def response(p: Number, categories: int) -> Pair:
    """The true answer of one, of the other, or of nobody."""
    truth = Fraction(p)
    lie = (1 - truth) / (categories - 1)
    pair = [(exact(truth), exact(lie)), (exact(lie), exact(truth))]
    rest = exact(lie * (categories - 2))
    return pair if categories == 2 else [*pair, (rest, rest)]


def discrete_laplace(scale: Number, shift: int) -> Pair:
    """P(k) = (1 - r)/(1 + r) r^|k| against the same about ``shift``; both tails have one ratio each."""
    r = (-1 / exact(scale)).exp()
    unit = (1 - r) / (1 + r)
    inner = [(unit * r**k, unit * r ** (shift - k)) for k in range(1, shift)]
    tail = 1 / (1 + r)
    return [(tail, tail * r**shift), *inner, (tail * r**shift, tail)]


def profile(points: Sequence[tuple[float, float]]) -> Pair:
    """The lower convex envelope, in x = e^eps, of the guarantees and of what they say in the other direction."""
    knots = [(arb(0), arb(1))]
    knots += [(1 / (x := exact(e).exp()), 1 - (1 - exact(d)) / x) for e, d in reversed(points) if e > 0]
    knots += [(exact(e).exp(), exact(d)) for e, d in points]
    hull: list[Outcome] = []
    for x, y in knots:
        while len(hull) > 1 and not _turns(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    last = min((y for _, y in hull), key=lambda y: float(y))
    while len(hull) > 1 and float(hull[-2][1]) <= float(last):
        hull.pop()
    out = [(last, arb(0)), (arb(0), last)] if float(last) > 0 else []
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(hull)] + [arb(0)]
    # a bend of the profile at x is a Q-mass there, the P-mass is x times that
    for (x, _), before, after in zip(hull[1:], slopes, slopes[1:], strict=False):
        out.append((x * (after - before), after - before))
    return out


def _turns(a: Outcome, b: Outcome, c: Outcome) -> bool:
    """Whether b lies certainly below the chord from a to c."""
    return bool((b[1] - a[1]) * (c[0] - a[0]) < (c[1] - a[1]) * (b[0] - a[0]))


def sampled(pair: Pair, rate: Number) -> Pair:
    """Present with chance ``rate`` against absent: the remove direction."""
    q = exact(rate)
    return [((1 - q) * b + q * a, b) for a, b in pair]


def sampled_replace(pair: Pair, rate: Number) -> Pair:
    """Densities 1 - q + q F^-1(u) against 1 - q + q F^-1(1 - u), and what only one of the two can give."""
    q = exact(rate)
    ratios = sorted(((a / b, b) for a, b in pair if b != 0), key=lambda row: _key(row[0]))
    alone = sum((a for a, b in pair if b == 0), arb(0))
    ends = [arb(0)]
    for _, weight in ratios:
        ends.append(ends[-1] + weight)
    cuts = sorted([*ends[1:-1], *(1 - end for end in ends[1:-1])], key=_key)
    out: Pair = [(q * alone, arb(0)), (arb(0), q * alone)] if alone != 0 else []
    i, j, start = 0, len(ratios) - 1, arb(0)
    for cut in [*cuts, arb(1)]:
        length = cut - start
        if length > exact(Fraction(1, 2**1900)):
            out.append((length * (1 - q + q * ratios[i][0]), length * (1 - q + q * ratios[j][0])))
            start = cut
        while i + 1 < len(ratios) and not cut < ends[i + 1]:
            i += 1
        while j > 0 and not cut < 1 - ends[j]:
            j -= 1
    return out


def _key(value: arb) -> int:
    """The number as an integer in units of 2^-2000."""
    return int((value.mid() * arb(2) ** 2000).floor().unique_fmpz())
