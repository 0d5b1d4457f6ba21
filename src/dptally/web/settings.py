"""How a server was started: all that a request cannot change."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from dptally import checks
from dptally.errors import InvalidArgument

__all__ = ["LOOPBACK", "Declared", "Settings"]

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_SHORTEST_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Declared:
    """The one table that the page may ask: its files, its account, and how much of a person counts.

    Whose rows they are is the account's to say: its unit of privacy names the column.
    """

    source: str
    dataset: str
    max_groups: int | None = None
    max_rows: int | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """``names`` are the host names that a request may use; ``ledger`` is a database URL, ``table`` a table to ask.

    ``token`` lets those who know it spend from the ledger; without one the ledger is opened read-only. A question may
    use ``seconds`` of work, a body may have ``largest`` bytes, a client ``rate`` requests in a second.
    """

    names: frozenset[str] = LOOPBACK
    ledger: str | None = None
    table: Declared | None = None
    token: str | None = field(default=None, repr=False)
    seconds: float = 20.0
    largest: int = 20_000_000
    rate: float = 400.0
    workers: int = 2
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)  # of forms: see guard

    def __post_init__(self) -> None:
        checks.positive("seconds", self.seconds)
        checks.positive("rate", self.rate)
        checks.count("largest", self.largest, 1)
        checks.count("workers", self.workers, 1)
        if self.token is not None and self.ledger is None:
            raise InvalidArgument("allow_spend", "given with a ledger", self.ledger)
        if self.table is not None and self.ledger is None:
            raise InvalidArgument("table", "given with a ledger", self.ledger)
        if self.token is not None and len(self.token) < _SHORTEST_TOKEN:
            raise InvalidArgument("token", f"at least {_SHORTEST_TOKEN} characters long", f"{len(self.token)} of them")
