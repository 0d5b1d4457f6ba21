"""The declared table's page: what may be asked, what it would cost and how wide its error bars are, and its release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dptally.tables import pages
from dptally.web import queries
from dptally.web.accounts import Accounts
from dptally.web.settings import Declared, Settings
from dptally.web.workers import Refusal, Runner

if TYPE_CHECKING:
    from dptally.tables import Result, Table

__all__ = ["Desk"]

_DRAWN = 60  # groups in a picture
_SHOWN = 2_000  # groups in the table of the page
_SAID = {
    "persons": "how many persons",
    "rows": "how many rows",
    "quantile": "quantiles",
    "distinct": "different values",
    "within": "within ± (95 %)",
    "sigma": "Gaussian, sigma",
    "scale": "Laplace, scale",
}


class Desk:
    """Questions to the table that the server was started with; a request names none."""

    def __init__(self, settings: Settings, accounts: Accounts, runner: Runner) -> None:
        self._settings, self._accounts, self._runner = settings, accounts, runner
        self._table: Table | None = None

    @property
    def declared(self) -> Declared:
        """The table; 404 where the server has none."""
        if self._settings.table is None:
            raise Refusal(
                404, "this server was started without a table; write: dptally serve --ledger URL --table FILE"
            )
        return self._settings.table

    def about(self) -> dict[str, Any]:
        """The account, the table's columns, and what a form may choose from."""
        declared = self.declared
        if self._table is None:
            self._table = queries.session(self._accounts.ledger, declared, "").table
        table = self._table
        return {
            "account": self._accounts.standing(declared.dataset),
            "dataset": declared.dataset,
            "name": table.name,
            "person": table.person,
            "bounds": _bounds(declared),
            "columns": [(column.name, column.kind.value) for column in table.schema.columns],
            "groups": [(column.name, column.name) for column in table.schema.columns if column.kind.groups],
            "measures": [(what, _SAID.get(what, what)) for what in queries.MEASURES],
            "noises": [(noise, _SAID[noise]) for noise in queries.NOISES],
        }

    def preview(self, given: Mapping[str, str]) -> dict[str, Any]:
        """What the question costs and how wide its answers will be; free, and from its parameters alone."""
        declared, ledger = self.declared, self._settings.ledger
        found = self._runner.ask("preview", ledger, declared, queries.fields_of(given))
        return {**found, "fields": queries.fields_of(given)}

    def release(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Debit, read, add noise. It was priced once more before, where work is budgeted."""
        if self._settings.token is None:
            raise Refusal(403, "this server only reads; write: dptally serve --ledger URL --table FILE --allow-spend")
        self.preview(given)
        fields = dict(queries.fields_of(given))
        session = queries.session(self._accounts.ledger, self.declared, fields.get("by", ""))
        key = given.get("key", "").strip() or None
        return _shown(queries.query(session, fields).release(why=given.get("why", "").strip(), key=key))


def _bounds(declared: Declared) -> str:
    groups = "" if declared.max_groups is None else f"at most {declared.max_groups} groups"
    rows = "" if declared.max_rows is None else f"at most {declared.max_rows} rows in each"
    return ", ".join(part for part in (groups, rows) if part)


def _shown(result: Result) -> dict[str, Any]:
    rows, drawn = result.rows(), result.columns[:8]
    keys = [", ".join(map(str, key)) or "all" for key in result.keys]
    return {
        "receipt": repr(result.receipt),
        "number": result.receipt.number,
        "replayed": result.receipt.replayed,
        "columns": result.columns,
        "rows": [(key, [_cell(row, name) for name in result.columns]) for key, row in zip(keys, rows, strict=True)][
            :_SHOWN
        ],
        "left_out": max(0, len(rows) - _SHOWN),
        "pictures": [(name, pages.picture(keys, rows, name)) for name in drawn] if len(rows) <= _DRAWN else [],
    }


def _cell(row: Mapping[str, Any], name: str) -> tuple[str, str]:
    return pages.number(row[name]), f"{pages.number(row[f'{name}_low'])} to {pages.number(row[f'{name}_high'])}"
