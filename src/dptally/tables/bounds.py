"""How far one person, or one row, can move what a query counts: the whole sensitivity analysis.

**Theorem (bound last).** Let D_p be the rows of person p, and t a function of D_p alone such that t(D_p) has at
most k keys, each with an integer between L and U. Then q(D) = sum over p of t(D_p) moves in at most k
coordinates when a person is added or removed, each by at most M = max(|L|, |U|): all other terms are equal.

**Replaced.** A person's old and new life touch at most k keys each. A key of both moves by at most the width of
[min(L, 0), max(U, 0)]; a key of one life by at most M. If all contributions have one sign, that width is M: at
most min(2k, n) keys of n move, each by at most M. Otherwise let W = U - L >= M. With j keys in both lives there
are j moves of at most W, and at most min(2(k - j), n - j) of at most M. *These are covered by k moves of W and
min(2k, n) - k of M:* put the j on W's, then k - j of the others on the W's that are left (W >= M); what remains
is at most min(k - j, n - k), for which there is room.

**Account.** Coordinates get independent noise whose law is log-concave, so a full shift dominates a smaller
one, and products of dominating pairs dominate: `a` moves of `s` steps cost exactly a * DiscreteGaussian(sigma,
s) or a * DiscreteLaplace(scale, s).

A row unit is the case k = 1 with t a function of one row.
"""

from __future__ import annotations

from dataclasses import dataclass

from dptally.law.adjacency import ADD_REMOVE, Adjacency

__all__ = ["Move", "moves"]


@dataclass(frozen=True, slots=True)
class Move:
    """At most ``count`` coordinates move, each by at most ``shift``."""

    count: int
    shift: int

    def __str__(self) -> str:
        return f"{self.count} x {self.shift}"


def moves(low: int, high: int, k: int, cells: int | None, adjacency: Adjacency) -> tuple[Move, ...]:
    """The moves of a sum of contributions in [low, high] (or none) in at most ``k`` of ``cells`` coordinates.

    ``cells`` is None where keys are private and their number has no bound.

    >>> from dptally.law.adjacency import REPLACE
    >>> [str(move) for move in moves(-50, 100, 3, 50, REPLACE)]
    ['3 x 150', '3 x 100']
    """
    k = k if cells is None else min(k, cells)
    far = max(abs(low), abs(high))
    if adjacency is ADD_REMOVE:
        return (Move(k, far),)
    both = 2 * k if cells is None else min(2 * k, cells)
    if low >= 0 or high <= 0:
        return (Move(both, far),)
    wide = Move(k, high - low)
    return (wide, Move(both - k, far)) if both > k else (wide,)
