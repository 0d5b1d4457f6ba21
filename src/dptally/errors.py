"""What dptally raises.

    DptallyError
    ├── InvalidArgument (ValueError)      an argument is out of its domain; nothing was computed
    │   └── InvalidType (TypeError too)   an argument is of the wrong type or shape
    ├── Unanswerable (ValueError)         the question has no answer from what is known; says the nearest one that has
    ├── CannotCalibrate (ValueError)      no parameter value meets the target
    ├── MissingExtra (ImportError)        an optional dependency is needed; says what to install
    └── LedgerError                       the account could not be opened, read or debited
        └── BudgetExceeded                a spend would pass the cap; nothing was debited
"""

from __future__ import annotations

__all__ = [
    "BudgetExceeded",
    "CannotCalibrate",
    "DptallyError",
    "InvalidArgument",
    "InvalidType",
    "LedgerError",
    "MissingExtra",
    "Unanswerable",
]


def _shown(value: object) -> str:
    """A short, one-line rendering of a value; never the whole of a large one."""
    text = " ".join(repr(value).split())
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


class Unanswerable(DptallyError, ValueError):
    """What is known does not determine the answer; the text gives the reason and the nearest question that has one."""


class CannotCalibrate(DptallyError, ValueError):
    """No value of the parameter certainly meets the target."""


class MissingExtra(DptallyError, ImportError):
    """An optional dependency is missing; the text says what to install."""

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(f"{package} is not installed; write: pip install 'dptally[{extra}]'")


class LedgerError(DptallyError):
    """The ledger could not be opened, read or debited. Nothing was released."""


class BudgetExceeded(LedgerError):
    """A spend would pass the cap. Raised before any data is touched; nothing was debited."""
