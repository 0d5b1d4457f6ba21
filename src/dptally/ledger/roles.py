"""Roles on PostgreSQL: what an analyst and an auditor may do, granted by the owner of the tables.

The owner makes datasets and limits. An analyst spends and settles, as nobody but the database role that is
logged in: row security compares ``by`` with it. An analyst cannot change terms or caps, rewrite or remove
entries, or spend as another. An auditor reads.

An analyst's client prices its own plans and adds them to the totals, so one that lies can book a false price or
break the totals: ``verify(prices=True)`` by the owner or an auditor finds the first, the next spend the second.
"""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from dptally.errors import InvalidArgument, LedgerUnavailable
from dptally.ledger import schema
from dptally.ledger.entries import name

__all__ = ["grant_roles"]

_KNOWN = sa.text("SELECT rolname FROM pg_roles WHERE rolname = ANY (:names)")
_POLICIES = (
    ("dptally_entries", "SELECT", "USING (true)"),
    (
        "dptally_entries",
        "INSERT",
        "WITH CHECK (\"by\" = current_user AND body::jsonb ->> 'by' = current_user AND (type = 'spend' OR "
        "(type = 'settle' AND EXISTS (SELECT 1 FROM dptally_entries AS paid WHERE paid.dataset = "
        "dptally_entries.dataset AND paid.seq = dptally_entries.settles AND paid.type = 'spend' AND "
        'paid."by" = current_user))))',
    ),
    ("dptally_datasets", "SELECT", "USING (true)"),
    ("dptally_datasets", "UPDATE", "USING (name <> '') WITH CHECK (name <> '')"),
    ("dptally_accounts", "SELECT", "USING (true)"),
    ("dptally_accounts", "INSERT", "WITH CHECK (holder = current_user AND caps IS NULL)"),
    ("dptally_accounts", "UPDATE", "USING (holder IN ('', current_user)) WITH CHECK (holder IN ('', current_user))"),
    ("dptally_slots", "SELECT", "USING (true)"),
    ("dptally_slots", "INSERT", "WITH CHECK (holder IN ('', current_user))"),
    ("dptally_slots", "UPDATE", "USING (holder IN ('', current_user)) WITH CHECK (holder IN ('', current_user))"),
)
_ANALYST = (
    "INSERT ON dptally_entries",
    "UPDATE (length, head, peaks, books) ON dptally_datasets",
    "INSERT ON dptally_accounts",
    "UPDATE (amounts, cap, spent, failure_cap, failure_spent) ON dptally_accounts",
    "INSERT ON dptally_slots",
    "UPDATE (amounts) ON dptally_slots",
)


def grant_roles(connection: sa.Connection, analysts: Iterable[str], auditors: Iterable[str]) -> None:
    """Give existing database roles the rights of an analyst or of an auditor; others lose nothing."""
    spenders = [name("analysts", one) for one in analysts]
    readers = [name("auditors", one) for one in auditors]
    if connection.dialect.name != "postgresql":
        raise LedgerUnavailable("SQLite has no roles: whoever can write the file is the owner. Nothing was changed")
    both = set(spenders) & set(readers)
    if both:
        raise InvalidArgument("auditors", "other roles than the analysts", min(both))
    wanted = {*spenders, *readers}
    missing = wanted - set(connection.execute(_KNOWN, {"names": sorted(wanted)}).scalars())
    if missing:
        raise InvalidArgument("analysts, auditors", "roles that the database has (CREATE ROLE ... LOGIN)", min(missing))
    tables = ", ".join(table.name for table in schema.metadata.sorted_tables)
    where = connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
    connection.exec_driver_sql(f"REVOKE ALL ON {tables} FROM PUBLIC")
    _secure(connection)
    for role in sorted(wanted):
        quoted = connection.dialect.identifier_preparer.quote_identifier(role)
        connection.exec_driver_sql(f"REVOKE ALL ON {tables} FROM {quoted}")
        connection.exec_driver_sql(f"GRANT USAGE ON SCHEMA {where} TO {quoted}")
        connection.exec_driver_sql(f"GRANT SELECT ON {tables} TO {quoted}")
        for right in _ANALYST if role in spenders else ():
            connection.exec_driver_sql(f"GRANT {right} TO {quoted}")


def _secure(connection: sa.Connection) -> None:
    """Row security for everybody but the owner of the tables."""
    for table, action, rule in _POLICIES:
        policy = f"{table}_{action.lower()}"
        connection.exec_driver_sql(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        connection.exec_driver_sql(f"DROP POLICY IF EXISTS {policy} ON {table}")
        connection.exec_driver_sql(f"CREATE POLICY {policy} ON {table} FOR {action} {rule}")
