"""Paying and running as one act: what was released is compared with what was debited."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from fractions import Fraction
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from dptally.errors import CannotPrice, InvalidArgument, InvalidType, LedgerError, NotReleasable
from dptally.ledger.chain import canonical
from dptally.ledger.entries import Entry
from dptally.ledger.reading import VALUE_LIMIT
from dptally.ledger.receipts import Receipt, Reservation
from dptally.ledger.stated import check_plan, check_release
from dptally.ledger.terms import Terms
from dptally.ledger.values import encoded, releases_in
from dptally.mechanisms.composed import Composed
from dptally.mechanisms.mechanism import Mechanism
from dptally.release.function import ReleaseFunction, Stated
from dptally.release.released import Released

if TYPE_CHECKING:
    from dptally.ledger.ledger import Ledger

__all__ = ["PaidRelease", "answered", "check_paid", "released"]

_DIGITS = 24  # characters that one released number takes as JSON, or fewer


@dataclass(frozen=True, slots=True)
class PaidRelease(Released):
    """A release that a ledger paid for, with the ``receipt`` of its debit."""

    receipt: Receipt = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type[Released], tuple[Any, ...]]:
        """Another process gets the answer; the receipt stays with the process that was charged."""
        return Released, tuple(getattr(self, field.name) for field in fields(Released))

    def __copy__(self) -> PaidRelease:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PaidRelease:
        return self


def released(
    ledger: Ledger,
    dataset: str,
    function: ReleaseFunction[Any],
    data: Any,
    request: Mapping[str, Any],
    arguments: Mapping[str, Any],
) -> PaidRelease:
    """Debit what the arguments state, run the release on the data, store it. The data come last."""
    if type(function) is not ReleaseFunction:
        raise InvalidType("release", "a function of dptally.release, such as release.count", function)
    stated = function.stated(**arguments)
    terms = ledger.terms(dataset)
    check_release(dataset, terms, stated.query, stated.adjacency, stated.unit)
    _check_storable(stated)
    labels = (f"release: {stated.query}", f"arguments: {_digest(function.stating(arguments))}")
    reservation = ledger.reserve(dataset, stated.mechanism, labels=labels, **request)
    value = answered(ledger, reservation, lambda: function.run(data, arguments))
    if not isinstance(value, Released):
        raise NotReleasable(
            f"key {reservation.entry.key!r} holds the value of another kind of request; choose a new key"
        )
    stored = {field.name: getattr(value, field.name) for field in fields(Released)}
    return PaidRelease(**stored, receipt=reservation.receipt)


def _digest(arguments: Mapping[str, Any]) -> str:
    """What tells two releases of one mechanism apart (other categories, other bounds), so that a key is one release.

    Numbers count by their value. An argument that a ledger cannot write down is not compared.
    """
    known = {}
    for name, value in arguments.items():
        with suppress(InvalidArgument, ValueError, OverflowError):
            known[name] = encoded(Fraction(value) if isinstance(value, (int, float)) else value)
    return sha256(canonical(known).encode()).hexdigest()[:16]


def _check_storable(stated: Stated) -> None:
    """Refuse before the debit what a ledger could not keep after it."""
    try:
        encoded(list(stated.labels))
    except InvalidArgument as error:
        raise InvalidType("categories", f"values that a ledger keeps ({error.requirement})", error.value) from None
    if stated.numbers * _DIGITS > VALUE_LIMIT:
        most = VALUE_LIMIT // _DIGITS
        raise InvalidArgument("release", f"of at most {most} numbers, so that a ledger keeps it", stated.numbers)


def answered(ledger: Ledger, reservation: Reservation, compute: Callable[[], Any]) -> Any:
    """The stored value of a reservation; if there is none yet, what ``compute`` returns, once it is stored."""
    if reservation.settled:
        return reservation.value
    try:
        value = compute()
    except BaseException as error:
        _burn(reservation, error)
        raise
    try:
        try:
            return reservation.settle(value)
        except InvalidArgument as error:
            problem = error
        check_paid(reservation.entry, ledger.terms(reservation.entry.dataset), value)
    except NotReleasable as error:
        _burn(reservation, error)
        raise
    raise _unkept(ledger, reservation, value, problem)


def _burn(reservation: Reservation, error: BaseException) -> None:
    try:
        reservation.burn()
    except LedgerError as failure:
        error.add_note(f"dptally: the debit stands, but could not be marked as burnt: {failure}")


def _unkept(ledger: Ledger, reservation: Reservation, value: Any, error: InvalidArgument) -> NotReleasable:
    """The answer was computed and paid for, but cannot be kept. It is handed out with the error, once: a second
    one would be a second release on one debit. That it left is recorded as a spend of nothing.
    """
    entry = reservation.entry
    said = f"the answer of entry {entry.number} of dataset {entry.dataset!r} cannot be kept: {error}. The debit stands"
    if entry.key is None:
        reservation.close()
        return NotReleasable(f"{said}; the value is in this error. With a key it could be handed over again", value)
    why = f"the value of entry {entry.number} left without being kept"
    mark = ledger.spend(entry.dataset, Composed(()), by=entry.by, why=why, key=f"value of entry {entry.number}")
    if mark.replayed:
        return NotReleasable(f"{said}, and the value of an earlier attempt left already: this one is withheld")
    mark.release()
    again = "hand it over in a form that can be kept under the same key, which charges nothing"
    return NotReleasable(f"{said}. The value is in this error: {again}", value)


def check_paid(entry: Entry, terms: Terms, value: Any) -> None:
    """Refuse a value whose releases cost more than the debit, or hold for other terms than the account's."""
    found = releases_in(value)
    if not found:
        return
    plan = _plan_of(found)
    try:  # a mismatch of terms is a CannotPrice too
        for one in found:
            check_release(entry.dataset, terms, str(one.query), one.adjacency, one.unit)
        check_plan(entry.dataset, terms, plan)
        cost = terms.price(plan)
    except CannotPrice as error:
        raise NotReleasable(f"{_REFUSED.format(entry=entry)}: {error}") from None
    room = Fraction(terms.allowance) / 100  # prices are rounded up, and not always alike
    paid = (*entry.amount.meters, entry.amount.failure)
    if any(units > limit + limit * room for units, limit in zip((*cost.meters, cost.failure), paid, strict=True)):
        raise NotReleasable(
            f"{_REFUSED.format(entry=entry)}: it costs more than was debited for {entry.plan!r}. Debit the release's "
            "own mechanism: ledger.release(...) does"
        )


_REFUSED = "the release on entry {entry.number} of dataset {entry.dataset!r} is not released and the debit stands"


def _plan_of(found: list[Released]) -> Mechanism:
    plans = [one.mechanism for one in found]
    if not all(isinstance(plan, Mechanism) for plan in plans):
        raise NotReleasable("a Released without a mechanism is not released; the debit stands")
    return Composed.of(part for plan in plans for part in plan.parts)
