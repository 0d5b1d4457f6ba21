"""Composition: a plan is a multiset of mechanisms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from dptally.errors import InvalidType
from dptally.law import Law
from dptally.mechanisms.mechanism import Mechanism

__all__ = ["Composed"]


@dataclass(frozen=True, slots=True)
class Composed(Mechanism):
    """Independent (or adaptively chosen) mechanisms on the same data. Built by ``+`` and ``k *``.

    Canonical: equal mechanisms merge their counts and the order is forgotten, so equal plans compare, hash, print and
    answer alike. Gaussian parts collapse into one Gaussian when the law is formed (see :class:`dptally.law.Composition`).
    """

    parts: tuple[tuple[Mechanism, int], ...]  # type: ignore[assignment]
    json_name: ClassVar[str] = "composed"

    @classmethod
    def of(cls, parts: Iterable[tuple[Mechanism, int]]) -> Composed:
        counts: Counter[Mechanism] = Counter()
        for mechanism, n in parts:
            counts[mechanism] += n
        return cls(tuple(sorted(((m, n) for m, n in counts.items() if n > 0), key=lambda part: (type(part[0]).__name__, repr(part[0])))))

    def laws(self) -> tuple[Law, ...]:
        raise InvalidType("mechanism", "a single mechanism (a composition has one law for each of its parts)", self)

    def __repr__(self) -> str:
        if not self.parts:
            return "0 * Mechanism()"
        return " + ".join(f"{n} * {m!r}" if n != 1 else repr(m) for m, n in self.parts)
