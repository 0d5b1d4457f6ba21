"""How each engine spells the few words of the core query: quotes, type names, md5, integer division.

Identifiers come from the schema and are quoted by doubling the quote. Texts whose characters mean something
in some engine's literals (quotes, backslashes, Spark's ``${...}``) are written as the hexadecimal digits of
their UTF-8 bytes; so no literal can end early.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from dptally.errors import InvalidArgument
from dptally.tables.kinds import Column, Kind

__all__ = ["BIGQUERY", "DIALECTS", "DUCKDB", "POSTGRES", "SNOWFLAKE", "SPARK", "Dialect"]

_HARMLESS = re.compile(r"[A-Za-z0-9 _.,:;+*/()<>=?!%&@#~^|-]*\Z")
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words of one engine. ``tested`` says that its SQL is run in this project's tests."""

    name: str
    quote: str
    real: str
    integer: str
    text: str
    md5: str  # of a text
    divide: str  # integers of at least 0 and 1: the floor of the quotient
    utf8: str  # a text from hexadecimal digits
    binary: str  # a text that is compared by its bytes
    tested: bool
    to_real: str = ""  # a wider number as a double, where a cast would fail on what does not fit
    try_moment: str = "{}"  # a time of another resolution, NULL where it does not fit
    try_real: str = ""  # a number from a text, NULL where it is none
    native_hash: str = ""  # of two or more values: faster than md5
    rows: bool = True  # whether VALUES may stand in FROM
    moment: str = "TIMESTAMP"  # a time without zone
    instant: str = "TIMESTAMP WITH TIME ZONE"
    forbidden: str = ""  # characters that no identifier may have
    codes: tuple[tuple[int, str], ...] = ()  # narrow types for the codes of so many groups: less to group by
    real_sums: bool = False  # whether adding up doubles is faster than adding up integers

    def name_of(self, identifier: str) -> str:
        """The identifier, quoted."""
        bad = [c for c in identifier if ord(c) < 32 or ord(c) == 127 or c in self.forbidden]
        if bad or not identifier or len(identifier) > 255 or identifier.lower().startswith("dptally_"):
            raise InvalidArgument(
                "column", f"a name that {self.name} can quote, not one that starts with dptally_", identifier
            )
        return self.quote + identifier.replace(self.quote, 2 * self.quote) + self.quote

    def cast(self, sql: str, kind: Kind) -> str:
        words = {Kind.REAL: self.real, Kind.INTEGER: self.integer, Kind.TEXT: self.text}
        return f"CAST({sql} AS {words[kind]})"

    def column(self, column: Column, table: str = "dptally_t") -> str:
        """A column of the source in its canonical type; texts are compared by their bytes."""
        sql = f"{table}.{self.name_of(column.name)}"
        if column.kind is Kind.TEXT:
            return self.binary.format(sql if column.plain else self.cast(sql, Kind.TEXT))
        if column.plain:
            return sql
        if column.kind is Kind.TIMESTAMP:
            return self.try_moment.format(sql)
        return self.to_real.format(sql) if self.to_real else self.cast(sql, Kind.REAL)

    def identity(self, column: Column, table: str = "dptally_t") -> str:
        """A person's id: what is equal here is one person. A wide integer is its digits; a double would merge ids."""
        if column.kind is not Kind.WIDE:
            return self.column(column, table)
        return self.binary.format(self.cast(f"{table}.{self.name_of(column.name)}", Kind.TEXT))

    def literal(self, value: object) -> str:
        """A constant: text, integer, real, truth value, date or time."""
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, int):
            return self.cast(str(value), Kind.INTEGER)
        if isinstance(value, float):
            return self.number(value)
        if isinstance(value, datetime):
            return f"{self.moment} '{value.isoformat(sep=' ')}'"
        if isinstance(value, date):
            return f"DATE '{value.isoformat()}'"
        return self._text(str(value))

    def number(self, value: float) -> str:
        if not math.isfinite(value):
            raise InvalidArgument("number", "finite", value)
        digits = repr(value)
        return self.cast(digits if "e" in digits else f"{digits}E0", Kind.REAL)

    def _text(self, value: str) -> str:
        if len(value) > _LONGEST:
            raise InvalidArgument("text", f"at most {_LONGEST} characters", value)
        if _HARMLESS.match(value):
            return f"'{value}'"
        if "\0" in value:
            raise InvalidArgument("text", "free of NUL characters", value)
        try:
            return self.utf8.format(value.encode("utf-8").hex())
        except UnicodeEncodeError:
            raise InvalidArgument("text", "one that UTF-8 can hold", value) from None

    def hashed(self, parts: Sequence[str], stable: bool) -> str:
        """A hash of values that are never NULL; ``stable`` asks for the one that all engines share."""
        if self.native_hash and not stable:
            return self.native_hash.format(", ".join(parts))
        return self.md5.format(" || '|' || ".join(self.cast(part, Kind.TEXT) for part in parts))

    def code(self, number: int, codes: int) -> str:
        """The number of one of so many groups, in the narrowest type that has a name here."""
        narrow = next((name for most, name in self.codes if codes <= most), None)
        return str(number) if narrow is None else f"CAST({number} AS {narrow})"

    def values(self, alias: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        """A small table of constants as it stands in FROM."""
        if self.rows:
            listed = ", ".join(f"({', '.join(row)})" for row in rows)
            return f"(VALUES {listed}) AS {alias}({', '.join(columns)})"
        selects = [
            "SELECT " + ", ".join(f"{sql} AS {name}" for name, sql in zip(columns, row, strict=True)) for row in rows
        ]
        return f"({' UNION ALL '.join(selects)}) AS {alias}"


DUCKDB = Dialect(
    name="DuckDB",
    quote='"',
    real="DOUBLE",
    integer="BIGINT",
    text="VARCHAR",
    md5="md5({})",
    divide="({0} // {1})",
    utf8="decode(unhex('{}'))",
    binary="{} COLLATE C",
    tested=True,
    try_moment="TRY_CAST({} AS TIMESTAMP)",
    try_real="TRY_CAST({} AS DOUBLE)",
    native_hash="hash({})",
    codes=((1 << 8, "UTINYINT"), (1 << 16, "USMALLINT")),
    real_sums=True,
)
SPARK = Dialect(
    name="Spark",
    quote="`",
    real="DOUBLE",
    integer="BIGINT",
    text="STRING",
    md5="md5({})",
    divide="({0} div {1})",
    utf8="CAST(X'{}' AS STRING)",
    binary="{}",  # columns with a collation are refused when the schema is read
    tested=True,
    try_real="TRY_CAST({} AS DOUBLE)",
    moment="TIMESTAMP_NTZ",
    instant="TIMESTAMP",
    forbidden="$",
)
POSTGRES = Dialect(
    name="PostgreSQL",
    quote='"',
    real="DOUBLE PRECISION",
    integer="BIGINT",
    text="TEXT",
    md5="md5({})",
    divide="({0} / {1})",
    utf8="convert_from(decode('{}', 'hex'), 'UTF8')",
    binary='{} COLLATE "C"',
    tested=True,
    to_real=(
        "CAST(CASE WHEN {0} > -1e300 AND {0} < 1e300 AND ({0} >= 1e-300 OR {0} <= -1e-300) THEN {0} "
        "WHEN {0} > -1 AND {0} < 1 THEN 0 END AS DOUBLE PRECISION)"
    ),
)
BIGQUERY = Dialect(
    name="BigQuery",
    quote="`",
    real="FLOAT64",
    integer="INT64",
    text="STRING",
    md5="TO_HEX(MD5({}))",
    divide="DIV({0}, {1})",
    utf8="SAFE_CONVERT_BYTES_TO_STRING(FROM_HEX('{}'))",
    binary="COLLATE({}, '')",
    tested=False,
    try_real="SAFE_CAST({} AS FLOAT64)",
    rows=False,
    forbidden="`\\$",
)
SNOWFLAKE = Dialect(
    name="Snowflake",
    quote='"',
    real="DOUBLE",
    integer="BIGINT",
    text="VARCHAR",
    md5="MD5({})",
    divide="FLOOR({0} / {1})",
    utf8="HEX_DECODE_STRING('{}')",
    binary="COLLATE({}, '')",
    tested=False,
    try_real="TRY_TO_DOUBLE({})",
)
DIALECTS = {dialect.name: dialect for dialect in (DUCKDB, SPARK, POSTGRES, BIGQUERY, SNOWFLAKE)}
