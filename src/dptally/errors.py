"""What dptally raises.

DptallyError
├── InvalidArgument (ValueError)      an argument is out of its domain; nothing was computed
│   ├── InvalidType (TypeError too)   an argument is of the wrong type or shape
│   └── RefusedExpression             a text in SQL holds what no private query may; says where and why
├── InvalidLaw (ValueError)           a law of a privacy loss contradicts itself; says where
├── Unanswerable (ValueError)         what is known does not answer the question; says the nearest one
├── CannotCalibrate (ValueError)      no parameter value meets the target
├── MissingExtra (ImportError)        an optional dependency is needed; says what to install
├── EngineFailed                      a database did not answer; its own words are not repeated
└── LedgerError                       the account could not be opened, read or debited
    ├── BudgetExceeded                a spend would pass the cap; nothing was debited
    ├── CannotPrice                   the budget's kind cannot pay for this mechanism; says which can
    │   └── TermsMismatch             it is stated for another adjacency or privacy unit (InvalidArgument too)
    ├── UnknownDataset                no account of that name
    ├── DatasetExists                 an account of that name is there already
    ├── KeyReused                     the idempotency key belongs to another request
    ├── NotReleasable                 the reservation has expired, is settled, or is another caller's
    ├── ChainBroken                   an entry or a total was edited, removed or moved; says which
    ├── RolledBack                    the ledger is older than the head it was opened with
    ├── SchemaTooNew                  the ledger was written by a later dptally
    └── LedgerUnavailable             locked, read-only, corrupt, not durable, or the connection is lost
"""

from __future__ import annotations

from dptally.later import later

__all__ = [
    "BudgetExceeded",
    "CannotCalibrate",
    "CannotPrice",
    "ChainBroken",
    "DatasetExists",
    "DptallyError",
    "EngineFailed",
    "InvalidArgument",
    "InvalidLaw",
    "InvalidType",
    "KeyReused",
    "LedgerError",
    "LedgerUnavailable",
    "MissingExtra",
    "NotReleasable",
    "RefusedExpression",
    "RolledBack",
    "SchemaTooNew",
    "TermsMismatch",
    "Unanswerable",
    "UnknownDataset",
]


def _shown(value: object) -> str:
    """A short, one-line rendering of a value; never the whole of a large one."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # the value's own method
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 80 else text[:77] + "..."


class DptallyError(Exception):
    """The root of every error that dptally raises on purpose."""


class InvalidArgument(DptallyError, ValueError):
    """An argument is outside its domain. Nothing was computed."""

    def __init__(self, argument: str, requirement: str, value: object, instead: str = "") -> None:
        self.argument = argument
        self.requirement = requirement
        self.value = value
        text = f"{argument} must be {requirement}, got {_shown(value)}"
        super().__init__(f"{text}; {instead}" if instead else text)


class InvalidType(InvalidArgument, TypeError):
    """An argument has the wrong type or shape. Nothing was computed."""


class InvalidLaw(DptallyError, ValueError):
    """What a law says of itself does not fit together, so no answer from it would be sound. Nothing was computed."""

    def __init__(self, law: str, failures: tuple[str, ...]) -> None:
        self.law = law
        self.failures = failures
        super().__init__(f"{law} is not the law of a privacy loss: {'; '.join(failures)}. Nothing was computed")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.law, self.failures)


class Unanswerable(DptallyError, ValueError):
    """What is known does not determine the answer; the text gives the reason and the nearest question."""


class CannotCalibrate(DptallyError, ValueError):
    """No value of the parameter certainly meets the target."""


class MissingExtra(DptallyError, ImportError):
    """An optional dependency is missing; the text says what to install."""

    def __init__(self, package: str, extra: str = "") -> None:
        self.package = package
        self.extra = extra
        wanted = f"'dptally[{extra}]'" if extra else package  # without an extra: the other tool itself
        super().__init__(f"{package} is not installed; write: pip install {wanted}")


class RefusedExpression(InvalidArgument):
    """A text in SQL holds something outside the closed list. ``place`` counts characters from 0."""

    def __init__(self, argument: str, text: str, place: int, reason: str) -> None:
        self.text = text
        self.place = place
        self.reason = reason
        DptallyError.__init__(self, f"{argument}, character {place + 1}: {reason}")
        self.argument, self.requirement, self.value = argument, reason, text

    def pointed(self) -> str:
        """The text with a mark below the place."""
        start = self.text.rfind("\n", 0, self.place) + 1
        line = self.text[start:].split("\n", 1)[0]
        return f"  {line}\n  {' ' * (self.place - start)}^"


class EngineFailed(DptallyError):
    """The database failed, was stopped or lost its connection. What it said may quote data and is dropped.

    Nothing was released. A debit that was made stands, and the same key may be tried again without another.
    """


class LedgerError(DptallyError):
    """The ledger could not be opened, read or debited. Nothing was released."""

    def __reduce__(self) -> tuple[object, ...]:  # errors with fields cross process borders unharmed
        return _restored, (type(self), self.args, dict(self.__dict__))


def _restored(cls: type[LedgerError], args: tuple[object, ...], fields: dict[str, object]) -> LedgerError:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(fields)
    return error


class BudgetExceeded(LedgerError):
    """A spend would pass the cap. Raised before any data is touched; nothing was debited.

    ``kind`` is what the cap is counted in (epsilon, rho, mu^2); ``cap``, ``spent``, ``requested`` and
    ``left`` are in it. ``holder`` names the analyst whose own cap was met, or is empty where it was the
    dataset's. ``dataset`` is empty where it was the budget of an Accountant.
    """

    def __init__(
        self,
        *,
        dataset: str,
        kind: str,
        cap: float,
        spent: float,
        requested: float,
        left: float,
        holder: str = "",
        hint: str = "",
    ) -> None:
        self.dataset = dataset
        self.holder = holder
        self.kind = kind
        self.cap = cap
        self.spent = spent
        self.requested = requested
        self.left = left
        self.hint = hint
        shown_down, shown_up = later("shown_down"), later("shown_up")
        if not dataset:
            super().__init__(
                f"this step would bring {kind} to {shown_up(spent + requested)}, above the budget of {cap:.6g} "
                f"({shown_down(left, 4)} is left). Nothing was recorded. {hint}"
            )
            return
        who = f"dataset {dataset!r}" if not holder else f"analyst {holder!r} in dataset {dataset!r}"
        super().__init__(
            f"{who} has {kind} {shown_down(left, 4)} left of {shown_down(cap, 4)}; this release needs {kind} "
            f"{shown_up(requested, 4)}. "
            f"Nothing was released and nothing was debited. {hint or 'Ask the owner for a new budget.'}"
        )


class CannotPrice(LedgerError):
    """The budget's kind cannot pay for this mechanism. Nothing was debited."""


class TermsMismatch(CannotPrice, InvalidArgument):
    """The plan or release is stated for another adjacency or privacy unit than the account. Nothing was debited.

    ``stated`` is what it holds for, ``account`` what the account promises.
    """

    def __init__(self, dataset: str, argument: str, stated: str, account: str, instead: str) -> None:
        self.dataset = dataset
        self.argument = argument
        self.requirement = f"stated for {account}"
        self.value = stated
        self.instead = instead
        self.stated = stated
        self.account = account
        DptallyError.__init__(
            self,
            f"the account of dataset {_shown(dataset)} is kept for {account}, and {argument} is stated for {stated}. "
            f"Nothing was debited. {instead}",
        )


class UnknownDataset(LedgerError):
    """The ledger has no account of that name. Nothing was debited."""

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        super().__init__(
            f"the ledger has no dataset {_shown(dataset)}; "
            f"create it first: ledger.create({_shown(dataset)}, budget=...)"
        )


class DatasetExists(LedgerError):
    """An account of that name is there already; its budget was not changed."""

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        super().__init__(f"dataset {_shown(dataset)} exists already; its budget was not changed")


class KeyReused(LedgerError):
    """The idempotency key belongs to another request. Nothing was debited and nothing may be released."""

    def __init__(self, dataset: str, key: str, differs: tuple[str, ...]) -> None:
        self.dataset = dataset
        self.key = key
        self.differs = differs
        super().__init__(
            f"key {_shown(key)} of dataset {_shown(dataset)} was used for another request "
            f"(it differs in {', '.join(differs)}). Nothing was debited; choose a new key for a new request"
        )


class NotReleasable(LedgerError):
    """The reservation cannot be released: do not publish the answer. What was debited stays spent.

    ``value`` is set where an answer was computed and paid for but cannot be kept: hand it over in another form
    under the same key, which charges nothing.
    """

    def __init__(self, text: str, value: object = None) -> None:
        self.value = value
        super().__init__(text)


class ChainBroken(LedgerError):
    """The ledger does not agree with its own hash chain. ``entry`` is the first bad one, None for a total."""

    def __init__(self, dataset: str, entry: int | None, reason: str) -> None:
        self.dataset = dataset
        self.entry = entry
        self.reason = reason
        where = f"dataset {_shown(dataset)}" if dataset else "the register of datasets"
        super().__init__(f"{where}: {reason}" if entry is None else f"entry {entry} of {where}: {reason}")


class RolledBack(LedgerError):
    """The ledger no longer holds the head it was opened with: an old copy was restored, or another one."""


class SchemaTooNew(LedgerError):
    """The ledger was written by a later dptally; this one does not touch it."""


class LedgerUnavailable(LedgerError):
    """Locked, read-only, corrupt, not durable, or the connection is lost. Nothing was released."""
