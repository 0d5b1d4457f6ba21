"""Stores to test against: a SQLite file, and a private PostgreSQL server from the system's packages."""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dptally.ledger import Ledger

SOAK = bool(os.environ.get("DPTALLY_SOAK"))


def _binaries() -> Path | None:
    """Where initdb and pg_ctl live: on the PATH, or where Debian puts them."""
    candidates = [
        shutil.which("initdb") or "",
        *sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), reverse=True),
    ]
    found = next((Path(path).resolve().parent for path in candidates if path), None)
    return found if found is not None and (found / "pg_ctl").exists() else None


def _unprivileged() -> str | None:
    """PostgreSQL refuses to run as root: the user to run it as, or None for the present one."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in known)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The directory of the socket of a running server; fsync stays on, as the ledger demands."""
    binaries = _binaries()
    if binaries is None:
        if os.environ.get("CI"):
            pytest.fail("PostgreSQL is not installed: CI must run these tests (package: postgresql)")
        pytest.skip("PostgreSQL IS NOT INSTALLED: the ledger's PostgreSQL tests did not run")
    user = _unprivileged()
    folder = tempfile.mkdtemp(prefix="dptally-pg-")
    if user is not None:
        shutil.chown(folder, user)

    def run(*command: str) -> None:
        done = subprocess.run(command, user=user, cwd=folder, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr

    data = f"{folder}/data"
    options = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c max_connections=64"
    try:
        run(f"{binaries}/initdb", "-D", data, "-U", "ledger", "-A", "trust", "-E", "UTF8", "--no-sync")
        run(f"{binaries}/pg_ctl", "-D", data, "-o", options, "-l", f"{folder}/log", "-w", "start")
        try:
            yield folder
        finally:
            run(f"{binaries}/pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """A new schema on the private server (cheaper than a new database)."""
    import psycopg

    name = f"ledger_{uuid.uuid4().hex}"
    with psycopg.connect(f"host={postgres_server} user=ledger dbname=postgres", autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"postgresql+psycopg://ledger@/postgres?host={postgres_server}&options=-csearch_path%3D{name}"


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/budget.db"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def opened(url: str) -> Iterator[Callable[..., Ledger]]:
    """Open ledgers at the url; all are closed at the end."""
    ledgers: list[Ledger] = []

    def open_(**options: object) -> Ledger:
        ledger = Ledger.open(url, **{"create": not options.get("read_only"), **options})  # type: ignore[arg-type]
        ledgers.append(ledger)
        return ledger

    yield open_
    for ledger in ledgers:
        ledger.close()
