"""Every way to choose the next step after each history, played out exactly: no code is shared with the library."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from mpmath import mp, mpf

mp.dps = 40

Pair = tuple[tuple[mpf, mpf], ...]  # (p, q) of each outcome
History = tuple[int, ...]


def pure(epsilon: float) -> Pair:
    odds = mp.e ** mpf(epsilon)
    return ((odds / (1 + odds), 1 / (1 + odds)), (1 / (1 + odds), odds / (1 + odds)))


def leak(delta: float) -> Pair:
    return ((mpf(delta), mpf(0)), (mpf(0), mpf(delta)), (1 - mpf(delta), 1 - mpf(delta)))


def response(p: float, categories: int) -> Pair:
    lie = (1 - mpf(p)) / (categories - 1)
    rest = lie * (categories - 2)
    return ((mpf(p), lie), (lie, mpf(p)), *(((rest, rest),) if categories > 2 else ()))


def transcripts(menu: list[Pair], uses: int) -> Iterator[list[tuple[mpf, mpf]]]:
    """For every function from histories to items: (P, Q) of every transcript."""
    most = max(map(len, menu))
    histories = [h for j in range(uses) for h in product(range(most), repeat=j)]
    for choice in product(range(len(menu)), repeat=len(histories)):
        chosen = dict(zip(histories, choice, strict=True))
        yield list(_played(menu, chosen, uses, (), mpf(1), mpf(1)))


def _played(
    menu: list[Pair], chosen: dict[History, int], left: int, history: History, p: mpf, q: mpf
) -> Iterator[tuple[mpf, mpf]]:
    if not left:
        yield p, q
        return
    for outcome, (a, b) in enumerate(menu[chosen[history]]):
        yield from _played(menu, chosen, left - 1, (*history, outcome), p * a, q * b)


def delta(rows: list[tuple[mpf, mpf]], epsilon: float) -> mpf:
    a = mp.e ** mpf(epsilon)
    forward = sum((max(p - a * q, mpf(0)) for p, q in rows), mpf(0))
    backward = sum((max(q - a * p, mpf(0)) for p, q in rows), mpf(0))
    return max(forward, backward)
