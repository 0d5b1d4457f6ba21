"""Composition: a plan is a multiset of mechanisms."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType
from dptally.law import Law
from dptally.mechanisms.assumption import Assumption, joined
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared

__all__ = ["MOST_COPIES", "Composed"]

MOST_COPIES = 2**53  #: counts up to here are exact as doubles
_FEW = 8  # up to so many parts are put in their places one by one, so that a sum of many plans is not quadratic


def _example() -> dict[str, object]:
    from dptally.mechanisms.laplace import Laplace
    from dptally.mechanisms.pure_dp import PureDP

    return {"parts": ((Laplace(5.0), 3), (PureDP(0.5), 1))}


@declared(section="composition", example=_example)
@dataclass(frozen=True, slots=True, repr=False)
class Composed(Mechanism):
    """Independent (or adaptively chosen) mechanisms on the same data. Built by ``+`` and ``k *``.

    Canonical: equal mechanisms merge their counts, compositions inside are opened, and the order is
    forgotten, so equal plans compare, hash, print and answer alike. Gaussian parts collapse into one
    Gaussian when the law is formed (see :class:`dptally.law.Composition`).
    """

    parts: tuple[tuple[Mechanism, int], ...]  # pyright: ignore[reportIncompatibleMethodOverride]  # a field is read like a property
    json_name: ClassVar[str] = "composed"

    def __post_init__(self) -> None:
        counts: Counter[Mechanism] = Counter()
        for part, count in _pairs(self.parts):
            for mechanism, n in part.parts:
                counts[mechanism] += count * n
        for mechanism, n in counts.items():
            _require_countable(mechanism, n)
        kept = ((mechanism, n) for mechanism, n in counts.items() if n > 0)
        object.__setattr__(self, "parts", tuple(sorted(kept, key=lambda part: _order(part[0]))))

    @classmethod
    def of(cls, parts: Iterable[tuple[Mechanism, int]]) -> Composed:
        return cls(tuple(parts))

    def __add__(self, other: Mechanism) -> Composed:
        if not isinstance(other, Mechanism):
            return NotImplemented
        if len(other.parts) > _FEW:
            return Composed.of((*self.parts, *other.parts))
        parts = list(self.parts)
        for mechanism, n in other.parts:
            _insert(parts, mechanism, n)
        whole = object.__new__(Composed)
        object.__setattr__(whole, "parts", tuple(parts))
        return whole

    def assumptions(self) -> tuple[Assumption, ...]:
        return joined(one for part, _ in self.parts for one in part.assumptions())

    def theorems(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(theorem for part, _ in self.parts for theorem in part.theorems()))

    def unsampled(self) -> Mechanism:
        return Composed.of((part.unsampled(), n) for part, n in self.parts)

    def laws(self) -> tuple[Law, ...]:
        raise InvalidType("mechanism", "a single mechanism (a composition has one law for each of its parts)", self)

    def grouped(self, size: int) -> Composed:
        """Each step is answered for the group, and the answers compose."""
        return Composed.of((mechanism.group(size), n) for mechanism, n in self.parts)

    def __repr__(self) -> str:
        if not self.parts:
            return "Composed(parts=())"
        bare = len(self.parts) > 1  # a lone part keeps its count, so that the text evaluates to a composition
        return " + ".join(repr(m) if n == 1 and bare else f"{n} * {m!r}" for m, n in self.parts)


@lru_cache(maxsize=1 << 12)  # plans of many parts are built one by one
def _order(mechanism: Mechanism) -> tuple[str, str]:
    return type(mechanism).__name__, repr(mechanism)


def _require_countable(mechanism: Mechanism, n: int) -> None:
    if n > MOST_COPIES:
        raise InvalidArgument("count", f"at most 2^53 copies of {mechanism!r}", n)


def _insert(parts: list[tuple[Mechanism, int]], mechanism: Mechanism, n: int) -> None:
    """Put ``n`` copies where they belong among parts in their order; equal mechanisms merge."""
    key = _order(mechanism)
    at = bisect_left(parts, key, key=lambda part: _order(part[0]))
    while at < len(parts) and _order(parts[at][0]) == key:
        if parts[at][0] == mechanism:
            _require_countable(mechanism, parts[at][1] + n)
            parts[at] = (parts[at][0], parts[at][1] + n)
            return
        at += 1
    parts.insert(at, (mechanism, n))


def _pairs(parts: object) -> Iterable[tuple[Mechanism, int]]:
    if isinstance(parts, (str, bytes, Mechanism)) or not isinstance(parts, Iterable):
        raise InvalidType("parts", "pairs (mechanism, count)", parts)
    for part in parts:
        if not (isinstance(part, (tuple, list)) and len(part) == 2 and isinstance(part[0], Mechanism)):
            raise InvalidType("parts", "pairs (mechanism, count)", part)
        yield part[0], checks.count("count", part[1])
