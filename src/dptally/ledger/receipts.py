"""Receipts: proof of a durable debit, and the one place where a spend is settled."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

from dptally.errors import LedgerError, NotReleasable
from dptally.ledger.entries import Entry, State, stored_value

__all__ = ["Batch", "Receipt"]

Settle = Callable[[Sequence[tuple[Entry, State, Any]]], None]


class Receipt:
    """A debit that is durable. Use it as a context manager: the body touches the data and publishes the
    answer.

    Leaving the body normally marks the entry as released; an exception marks it as burnt. Either way, and
    also after a crash, what was debited stays spent.

    ``replayed`` is True where the idempotency key had been used before: the body must then not touch the data
    again, but answer with ``value`` (:meth:`dptally.Ledger.answer` does exactly that).
    """

    __slots__ = ("_settle", "entry", "replayed")

    def __init__(self, entry: Entry, replayed: bool, settle: Settle) -> None:
        self.entry = entry
        self.replayed = replayed
        self._settle = settle

    @property
    def dataset(self) -> str:
        return self.entry.dataset

    @property
    def number(self) -> int:
        return self.entry.number

    @property
    def key(self) -> str | None:
        return self.entry.key

    @property
    def hash(self) -> str:
        return self.entry.hash

    @property
    def cost(self) -> float:
        """What was charged, rounded up, in the units of the budget (epsilon, rho, mu^2)."""
        return self.entry.cost

    @property
    def state(self) -> State:
        return self.entry.state

    @property
    def value(self) -> Any:
        """The released value, if it was stored."""
        return self.entry.value

    def __repr__(self) -> str:
        shown = f"{self.entry.symbol}={self.cost:.6g}, {self.state}{', replayed' if self.replayed else ''}"
        return f"Receipt({self.dataset!r}, number={self.number}, {shown})"

    def release(self, value: Any = None) -> None:
        """Mark as released, and keep the released value (JSON) with the receipt if one is given."""
        self._finish("released", stored_value(value))

    def burn(self) -> None:
        """Mark as burnt: nothing was published. What was debited stays spent."""
        self._finish("burnt", None)

    def _finish(self, state: State, value: Any) -> None:
        if self.replayed:
            raise NotReleasable(
                f"key {self.key!r} had been used before; only the caller who was charged may release it"
            )
        if self.state != "reserved":
            raise NotReleasable(f"entry {self.number} of dataset {self.dataset!r} is {self.state} already")
        self._settle([(self.entry, state, value)])
        self.entry = dataclasses.replace(self.entry, state=state, value=value)

    def __enter__(self) -> Receipt:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _leave([self], error)


class Batch(Sequence[Receipt]):
    """The receipts of one batch: debited together, and settled together on leaving the body."""

    __slots__ = ("_receipts",)

    def __init__(self, receipts: Sequence[Receipt]) -> None:
        self._receipts = tuple(receipts)

    def __getitem__(self, index: Any) -> Any:
        return self._receipts[index]

    def __len__(self) -> int:
        return len(self._receipts)

    def __iter__(self) -> Iterator[Receipt]:
        return iter(self._receipts)

    def __enter__(self) -> Batch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _leave(self._receipts, error)


def _leave(receipts: Sequence[Receipt], error: BaseException | None) -> None:
    """Settle what is still open: released after a normal end, burnt after an exception, which goes on."""
    still_open = [receipt for receipt in receipts if receipt.state == "reserved" and not receipt.replayed]
    if not still_open:
        return
    state: State = "released" if error is None else "burnt"
    try:
        still_open[0]._settle([(receipt.entry, state, None) for receipt in still_open])
    except LedgerError as failure:
        if error is None:
            raise
        error.add_note(f"dptally: the debit stands, but could not be marked as burnt: {failure}")
        return
    for receipt in still_open:
        receipt.entry = dataclasses.replace(receipt.entry, state=state)
