"""Receipts: proof of a durable debit, and the ways in which a spend is settled, once.

A spend made by ``Ledger.spend`` is settled by the process that was charged: its receipt is entered once, and
whoever tries a second time (with a copy, in a forked child, after the end) is refused before the body runs. A
spend made by ``Ledger.reserve`` is settled by compare-and-set: its value leaves only after it was stored, so
several may compute and one value gets out.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, NoReturn, Protocol

from dptally.errors import LedgerError, NotReleasable
from dptally.ledger.entries import Entry, Fresh, Spend, State, entry_in
from dptally.ledger.values import decoded
from dptally.numerics.shown import shown_up

__all__ = ["Bank", "Batch", "Ending", "Receipt", "Reservation"]

Ending = tuple[Spend, State, Any]  # the value as JSON


class Bank(Protocol):
    """Where receipts are settled: a ledger."""

    def _keep(self, entry: Entry, value: Any) -> Any:
        """The value as JSON, if it may be released on this debit and can be kept."""
        ...

    def _settle(self, endings: Sequence[Ending]) -> None:
        """Settle open spends of this process, or raise NotReleasable."""
        ...

    def _settle_once(self, entry: Entry, state: State, value: Any) -> tuple[State, Any]:
        """Settle a reservation unless it is settled; how it ended, by us or by another."""
        ...


_Life = list[None]  # what all copies of one receipt share: one element while its body may be entered


class Receipt:
    """A debit that is durable. Use it as a context manager: the body touches the data and publishes the
    answer.

    Leaving the body normally marks the entry as released; an exception marks it as burnt. Either way, and
    also after a crash, what was debited stays spent.

    ``replayed`` is True where the idempotency key had been used before. Such a receipt cannot be entered: the
    data must not be touched again. Answer with ``value`` (:meth:`dptally.Ledger.answer` does exactly that), or
    ask for it with ``spend(..., stored=True)``.
    """

    __slots__ = ("_bank", "_life", "_process", "_replayed", "_spend", "_stored")

    def __init__(self, spend: Spend, replayed: bool, bank: Bank, stored: bool = False) -> None:
        self._spend = spend
        self._replayed = replayed
        self._bank = bank
        self._stored = stored
        self._life: _Life = [None]
        self._process = os.getpid()

    @property
    def entry(self) -> Entry:
        """The spend as the ledger holds it."""
        self._spend = made = entry_in(self._spend)
        return made

    @entry.setter
    def entry(self, entry: Entry) -> None:
        self._spend = entry

    @property
    def replayed(self) -> bool:
        """Whether an earlier call was charged, and this one was not."""
        return self._replayed

    @property
    def dataset(self) -> str:
        return self._spend.dataset

    @property
    def number(self) -> int:
        return self._spend.number

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
        return self._spend.state

    @property
    def value(self) -> Any:
        """The released value, if it was stored."""
        return self.entry.value

    def __repr__(self) -> str:
        shown = f"{self.entry.symbol}={shown_up(self.cost)}, {self.state}{', replayed' if self.replayed else ''}"
        return f"Receipt({self.dataset!r}, number={self.number}, {shown})"

    def release(self, value: Any = None) -> None:
        """Mark as released, and keep the released value with the receipt if one is given.

        A ``Released`` (or several in a list or dictionary) that cost more than the debit is refused.
        """
        self._check_open()
        self._finish("released", None if value is None else self._bank._keep(self.entry, value))

    def burn(self) -> None:
        """Mark as burnt: nothing was published. What was debited stays spent."""
        self._check_open()
        self._finish("burnt", None)

    def _finish(self, state: State, value: Any) -> None:
        self._bank._settle([(self._spend, state, value)])
        self._ended(state, value)

    def _ended(self, state: State, value: Any = None) -> None:
        if value is None and isinstance(self._spend, Fresh):
            self._spend = Fresh(*self._spend[:-1], state)
        else:
            self._spend = self.entry.ended(state, decoded(value), value is not None)

    def _check_open(self) -> None:
        if self._replayed:
            raise NotReleasable(
                f"key {self.key!r} had been used before; only the caller who was charged may release it"
            )
        if self._process != os.getpid():
            raise NotReleasable(
                f"entry {self.number} of dataset {self.dataset!r} was charged to process {self._process}; a receipt "
                "that was inherited by a fork cannot be used"
            )
        if self.state != "reserved":
            raise NotReleasable(f"entry {self.number} of dataset {self.dataset!r} is {self.state} already")

    def __enter__(self) -> Receipt:
        if self._replayed and self._stored and self.state == "released" and self.entry.kept:
            return self  # to read the stored value, as the caller said
        if self._replayed:
            raise NotReleasable(
                f"key {self.key!r} was charged before (entry {self.number} is {self.state}): the data must not be "
                "touched again. Answer with receipt.value, or write ledger.answer(...), which does; a new release "
                "needs a new key"
            )
        self._check_open()
        try:
            self._life.pop()  # of several threads one gets it
        except IndexError:
            raise NotReleasable(
                f"the body of entry {self.number} of dataset {self.dataset!r} was entered before"
            ) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _leave([self], error)

    def __copy__(self) -> Receipt:
        twin = Receipt(self._spend, self._replayed, self._bank, self._stored)
        twin._life, twin._process = self._life, self._process
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Receipt:
        return self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a receipt belongs to the process that was charged; keep its dataset, number and hash instead")


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
        """Enter every receipt that was charged; a key that was charged before this batch is refused."""
        charged = {receipt.number for receipt in self._receipts if not receipt.replayed}
        entered = [receipt for receipt in self._receipts if not (receipt.replayed and receipt.number in charged)]
        for receipt in [one for one in entered if one.replayed] + [one for one in entered if not one.replayed]:
            receipt.__enter__()  # those that may refuse come first
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
        for receipt in still_open:
            receipt._check_open()
        still_open[0]._bank._settle([(receipt._spend, state, None) for receipt in still_open])
    except LedgerError as failure:
        if error is None:
            raise
        for receipt in still_open:
            receipt._life.append(None)  # nothing was settled: it may be tried again
        error.add_note(f"dptally: the debit stands, but could not be marked as burnt: {failure}")
        return
    for receipt in still_open:
        receipt._ended(state)


class Reservation:
    """A debit whose value leaves only after it was stored. What :meth:`Ledger.answer`, :meth:`Ledger.release`
    and the tables are built on.

    ``settled`` says that there is a ``value``: give it out and leave the data alone. Otherwise compute, and
    give out what :meth:`settle` returns and nothing else. It is ours, or that of another caller who settled
    the same key first: one debit, one value. A key whose caller died before settling may run again, as often
    as it takes, for nothing has left.
    """

    __slots__ = ("_bank", "_entry", "_replayed")

    def __init__(self, entry: Entry, replayed: bool, bank: Bank) -> None:
        self._entry = entry
        self._replayed = replayed
        self._bank = bank

    @property
    def entry(self) -> Entry:
        return self._entry

    @property
    def settled(self) -> bool:
        return self._entry.state == "released"

    @property
    def value(self) -> Any:
        """The stored value, once it is settled."""
        if not self.settled:
            raise NotReleasable(f"entry {self._entry.number} of dataset {self._entry.dataset!r} has no value yet")
        return self._entry.value

    @property
    def receipt(self) -> Receipt:
        """The receipt of the debit, as it stands. It cannot be settled: the reservation is."""
        return Receipt(dataclasses.replace(self._entry, call=""), self._replayed, self._bank, stored=True)

    def settle(self, value: Any) -> Any:
        """Store the value unless another was stored for this debit; the one that is stored.

        Raises InvalidArgument (and settles nothing) for a value that a ledger cannot keep, NotReleasable for
        a ``Released`` that cost more than the debit, and NotReleasable where it was burnt or has expired.
        """
        return self._end("released", self._bank._keep(self._entry, value))

    def close(self) -> None:
        """Mark as released without a value that could be given out again."""
        state, value = self._bank._settle_once(self._entry, "released", None)
        self._ended(state, value)

    def burn(self) -> None:
        """Mark as burnt, unless it is settled: nothing will be released for this debit."""
        state, value = self._bank._settle_once(self._entry, "burnt", None)
        self._ended(state, value)

    def _ended(self, state: State, made: Any) -> None:
        self._entry = self._entry.ended(state, decoded(made), made is not None)

    def _end(self, state: State, made: Any) -> Any:
        state, made = self._bank._settle_once(self._entry, state, made)
        self._ended(state, made)
        if state != "released":
            raise NotReleasable(
                f"entry {self._entry.number} of dataset {self._entry.dataset!r} is {state}: do not publish the answer; "
                "what it cost stays spent"
            )
        return self._entry.value

    def __repr__(self) -> str:
        return f"Reservation({self._entry.dataset!r}, number={self._entry.number}, {self._entry.state})"
