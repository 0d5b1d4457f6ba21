"""Whether the tables of a store are those that dptally lays: constraints and columns in their place, and
nothing that acts behind the ledger's back.
"""

from __future__ import annotations

from functools import lru_cache

import sqlalchemy as sa
from sqlalchemy.pool import StaticPool

from dptally.errors import ChainBroken
from dptally.ledger import schema

__all__ = ["check_structure"]

_ROOT = ""
_CONSTRAINTS = ("CHECK", "CONSTRAINT", "FOREIGN KEY", "PRIMARY KEY", "UNIQUE")
_TRIGGERS = sa.text(
    "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgname NOT LIKE 'dptally%' AND tgrelid = ANY "
    "(ARRAY(SELECT to_regclass(name)::oid FROM unnest(CAST(:names AS text[])) AS name))"
)
_RULES = sa.text("SELECT rulename FROM pg_rules WHERE schemaname = current_schema() AND tablename = ANY (:names)")
_CHECKS = sa.text(
    "SELECT conname FROM pg_constraint WHERE convalidated AND conrelid = ANY "
    "(ARRAY(SELECT to_regclass(name)::oid FROM unnest(CAST(:names AS text[])) AS name))"
)


def check_structure(connection: sa.Connection) -> None:
    """Raise ChainBroken where a constraint, a column or a table was changed, or a trigger or rule was added."""
    if connection.dialect.name == "sqlite":
        _check_sqlite(connection)
    else:
        _check_postgres(connection)


def _check_sqlite(connection: sa.Connection) -> None:
    verdict = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
    if verdict != "ok":
        raise ChainBroken(_ROOT, None, f"SQLite finds the file damaged ({verdict.splitlines()[0]})")
    found: dict[str, str] = {}
    for kind, name, sql in connection.exec_driver_sql("SELECT type, name, sql FROM sqlite_master"):
        if kind not in ("table", "index"):
            raise ChainBroken(_ROOT, None, f"the file has a {kind} that dptally did not make")
        found[name] = sql or ""
    for name, (lines, columns) in _expected().items():
        present = {line.strip().rstrip(",") for line in found.get(name, "").splitlines()}
        info = {row[1] for row in connection.exec_driver_sql(f"PRAGMA table_info({name})")}
        if not all(line in present or _formerly(line) in present for line in lines) or info != columns:
            raise ChainBroken(_ROOT, None, f"the columns or constraints of table {name} were changed")


def _formerly(line: str) -> str | None:
    """The constraint as an earlier version wrote it, where its words have changed."""
    start, name = line.split(maxsplit=2)[:2]
    return f"{start} {name} {schema.FORMERLY[name]}" if start == "CONSTRAINT" and name in schema.FORMERLY else None


@lru_cache(maxsize=1)
def _expected() -> dict[str, tuple[frozenset[str], set[str]]]:
    """The constraint lines and the columns of each table, as SQLite keeps them."""
    engine = sa.create_engine("sqlite://", poolclass=StaticPool)
    found = {}
    with engine.connect() as connection:
        schema.metadata.create_all(connection)
        for table in schema.metadata.sorted_tables:
            question = f"SELECT sql FROM sqlite_master WHERE name = '{table.name}'"
            lines = [
                line.strip().rstrip(",") for line in connection.exec_driver_sql(question).scalar_one().splitlines()
            ]
            kept = frozenset(line for line in lines if line.startswith(_CONSTRAINTS))
            found[table.name] = kept, set(table.columns.keys())
    engine.dispose()
    return found


def _check_postgres(connection: sa.Connection) -> None:
    names = {"names": [table.name for table in schema.metadata.sorted_tables]}
    for question, what in ((_TRIGGERS, "trigger"), (_RULES, "rule")):
        stranger = connection.execute(question, names).scalar()
        if stranger is not None:
            raise ChainBroken(_ROOT, None, f"the tables have a {what} that dptally did not make")
    wanted = {
        str(constraint.name)
        for table in schema.metadata.sorted_tables
        for constraint in table.constraints
        if constraint.name is not None
    }
    missing = wanted - set(connection.execute(_CHECKS, names).scalars())
    if missing:
        raise ChainBroken(_ROOT, None, f"the constraint {min(missing)} was removed")
