"""``serve``: the page on an address of this machine."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Iterable

import uvicorn

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.web.application import application
from dptally.web.queries import session
from dptally.web.settings import LOOPBACK, Declared, Settings

__all__ = ["look", "serve", "settings_for"]


def settings_for(
    host: str,
    names: Iterable[str] = (),
    ledger: str | None = None,
    allow_spend: bool = False,
    token: str | None = None,
    table: Declared | None = None,
) -> Settings:
    """The settings of a server at ``host``: it answers to loopback names, to its own, and to ``names``."""
    own = {host.strip("[]").lower()} if not _everywhere(host) else set()
    known = LOOPBACK | own | {name.lower() for name in names}
    if allow_spend and ledger is None:
        raise InvalidArgument("allow_spend", "given with a ledger: dptally serve --ledger URL --allow-spend", None)
    if table is not None and ledger is None:
        raise InvalidArgument("table", "given with a ledger: dptally serve --ledger URL --table FILE", None)
    chosen = (token or secrets.token_urlsafe(24)) if allow_spend else None
    return Settings(names=frozenset(known), ledger=ledger, table=table, token=chosen)


def look(settings: Settings) -> None:
    """Open the ledger and the table once: who starts a server hears of a wrong name, not its first reader."""
    if settings.ledger is not None:
        from dptally.ledger import Ledger

        with Ledger.open(settings.ledger, read_only=settings.token is None) as ledger:
            if settings.table is not None:
                session(ledger, settings.table, "")


def _everywhere(host: str) -> bool:
    """Whether a host stands for every address of the machine, and so is the name of none."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


def serve(settings: Settings, host: str = "127.0.0.1", port: int = 8000) -> None:
    """Answer until interrupted."""
    if not 0 <= checks.count("port", port) <= 65535:
        raise InvalidArgument("port", "between 0 and 65535", port)
    # no headers of a proxy are believed, and no version is told
    uvicorn.run(
        application(settings),
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=100,
        timeout_keep_alive=10,
    )
