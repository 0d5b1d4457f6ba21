"""The arithmetic of an account: who has spent what, and what a spend would do to it. No storage, no clock.

A dataset and each of its analysts is a holder with totals of its own. Spends on the parts of one partition
touch disjoint records, so a holder owes the largest of them, not the sum: total = unpartitioned + sum over
partitions of the largest part. The same code runs when a spend is made and when the history is verified.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dptally.ledger.units import Amount

__all__ = ["DATASET", "EVERYONE", "Books", "Running", "Slot"]

DATASET = ""  # the holder that is the dataset itself
EVERYONE = "*"  # the holder whose cap every analyst without one of their own gets
WHOLE = ""  # the part that holds a partition's maximum

Slot = tuple[str, str, str]  # holder, partition, part


@dataclass(slots=True)
class Books:
    """Totals in units. Only the holders and slots that matter need to be loaded."""

    zero: Amount
    spent: dict[str, Amount] = field(default_factory=dict)
    caps: dict[str, Amount | None] = field(default_factory=dict)
    slots: dict[Slot, Amount] = field(default_factory=dict)

    def copy(self) -> Books:
        return Books(self.zero, dict(self.spent), dict(self.caps), dict(self.slots))

    def after(self, holder: str, cost: Amount, partition: str, part: str) -> tuple[Amount, dict[Slot, Amount]]:
        """The holder's total after a spend, and the slots that change. Nothing is changed yet."""
        total = self.spent.get(holder, self.zero)
        if not partition:
            return total + cost, {}
        of_part, of_whole = (holder, partition, part), (holder, partition, WHOLE)
        in_part = self.slots.get(of_part, self.zero) + cost
        before = self.slots.get(of_whole, self.zero)
        whole = before.larger(in_part)
        return total + (whole - before), {of_part: in_part, of_whole: whole}

    def holders(self, by: str) -> tuple[str, ...]:
        """Whom a spend by this analyst is charged to."""
        return (DATASET, by) if by else (DATASET,)

    def cap(self, holder: str) -> Amount | None:
        """The cap of a holder; an analyst who was given none has everyone's, if there is one."""
        own = self.caps.get(holder)
        return own if own is not None or holder == DATASET else self.caps.get(EVERYONE)

    def refused_by(self, by: str, cost: Amount, partition: str = "", part: str = "") -> str | None:
        """The first holder whose cap the spend would pass, or None if it fits."""
        for holder in self.holders(by):
            cap = self.cap(holder)
            if cap is not None and not self.after(holder, cost, partition, part)[0].within(cap):
                return holder
        return None

    def charge(self, by: str, cost: Amount, partition: str = "", part: str = "") -> str | None:
        """Record the spend on every holder, or nothing at all: then the holder whose cap refuses it."""
        changes = []
        for holder in self.holders(by):
            total, slots = self.after(holder, cost, partition, part)
            cap = self.cap(holder)
            if cap is not None and not total.within(cap):
                return holder
            changes.append((holder, total, slots))
        for holder, total, slots in changes:
            self.spent[holder] = total
            self.slots.update(slots)
        return None


class Running:
    """Spends on everything, of one meter and without failures, which is most of them: what ``Books.charge`` does, in
    plain integers. Only :meth:`close` writes the sums into the books, so close before anything else reads them.
    """

    __slots__ = ("_books", "_lines")

    def __init__(self, books: Books) -> None:
        self._books = books
        self._lines: dict[str, _Line] = {}

    def add(self, by: str, units: int) -> str | None:
        """Record the spend, or nothing: then the holder whose cap refuses it."""
        lines = self._lines
        whole = lines.get(DATASET) or self._line(DATASET)
        if whole.total + units > whole.cap:
            return DATASET
        if by:
            own = lines.get(by) or self._line(by)
            if own.total + units > own.cap:
                return by
            own.total += units
            lines[by] = own
        whole.total += units
        lines[DATASET] = whole
        return None

    def _line(self, holder: str) -> _Line:
        cap = self._books.cap(holder)
        total = self._books.spent.get(holder, self._books.zero).meters[0]
        return _Line(total, math.inf if cap is None else cap.meters[0])

    def close(self) -> None:
        """Write the sums into the books."""
        spent, zero = self._books.spent, self._books.zero
        for holder, line in self._lines.items():
            spent[holder] = Amount((line.total,), spent.get(holder, zero).failure)
        self._lines.clear()


@dataclass(slots=True)
class _Line:
    """The sum of one holder, and the cap, which is infinite where there is none."""

    total: int
    cap: float
