"""Where the rows are: files, frames, DuckDB relations, Spark, any database with a DB-API connection, Ibis.

Opening a source reads its schema and never a row. CSV files have no schema but their header: all their columns
are text, and a text that is used as a number is read as one (what is none is missing).
"""

from __future__ import annotations

import csv
import hashlib
import os
import re
import secrets
import threading
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dptally.errors import InvalidArgument, InvalidType, MissingExtra
from dptally.tables.dialect import DUCKDB, POSTGRES, SPARK, Dialect
from dptally.tables.engine import Engine, run
from dptally.tables.kinds import Column, Kind, Schema

__all__ = ["Source", "open_source"]


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A relation as it stands in FROM, on an engine, with its columns. ``label`` says what it is in reports."""

    engine: Engine
    relation: str
    schema: Schema
    label: str
    name: str
    given: object = None

    @property
    def dialect(self) -> Dialect:
        return self.engine.dialect

    def fingerprint(self) -> str:
        """Which table this is, as far as its name, place and columns tell."""
        place = str(self.given) if isinstance(self.given, (str, Path)) else self.label
        columns = [(column.name, column.kind.value) for column in self.schema.columns]
        return hashlib.sha256(repr((place, self.name, columns)).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def open_source(source: object, name: str | None) -> Source:
    """The source that a user's object is."""
    if isinstance(source, Source):
        return source
    if isinstance(source, (str, Path)):
        return _files(str(source), name)
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], str):
        return _connection(source[0], source[1], name)
    module = type(source).__module__.split(".")[0]
    for known, opened in _OPENERS.items():
        if module == known:
            return opened(source, name)
    if hasattr(source, "cursor") and hasattr(source, "commit"):
        if name is None:
            raise InvalidArgument("name", "given: the table to read on this connection", name)
        return _connection(source, name, name)
    raise InvalidType(
        "source",
        "a path of Parquet or CSV files, a DuckDB relation, a pandas, polars or Arrow frame, a Spark DataFrame, an "
        "Ibis table, or (connection, 'table')",
        type(source).__name__,
    )


# -- DuckDB --------------------------------------------------------------------------------------------------


class DuckEngine(Engine):
    """DuckDB: inside this process, or a relation on a connection of the user's."""

    def __init__(self, connection: Any, query: Callable[[str], Any] | None = None, dialect: Dialect = DUCKDB) -> None:
        import duckdb

        super().__init__()
        self.dialect = dialect
        self.name = f"DuckDB {duckdb.__version__}"
        self._connection = connection
        self._query = query
        self._lock = threading.Lock()

    def rows(self, sql: str) -> Sequence[Sequence[Any]]:
        """A relation holds its own rows: a connection would give those of whatever was asked on it last.

        A cursor would not see registered frames.
        """
        with self._lock:
            return (self._query or self._connection.query)(sql).fetchall()  # type: ignore[no-any-return]

    def progress(self) -> float | None:
        percent = -1.0 if self._connection is None else self._connection.query_progress()
        return percent / 100 if 0 <= percent <= 100 else None

    def same(self, other: Engine) -> bool:
        return isinstance(other, DuckEngine) and self._connection is not None and other._connection is self._connection

    def adopt(self, other: Source) -> Source:
        """The same table, read on this connection."""
        if self._connection is None:
            raise InvalidArgument("source", "joined in DuckDB itself where the table is a relation", other.label)
        given = other.given
        if given is None:
            raise InvalidArgument("source", "on the same DuckDB connection", other.label)
        if isinstance(given, (str, Path)):
            return Source(self, other.relation, other.schema, other.label, other.name, given)
        return Source(self, self.register(given), other.schema, other.label, other.name, given)

    def register(self, frame: object) -> str:
        """A frame under a name of its own."""
        name = f"dptally_{secrets.token_hex(6)}"
        self._connection.register(name, frame)
        return name


def _duck() -> DuckEngine:
    """A private in-memory database: no extension is fetched, and nothing of a frame's type is guessed."""
    try:
        import duckdb
    except ModuleNotFoundError:
        raise MissingExtra("duckdb", "tables") from None
    connection = duckdb.connect(":memory:")
    for setting in (
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "enable_progress_bar = true",  # it is counted, for progress(), and never printed
        "enable_progress_bar_print = false",
        "pandas_analyze_sample = 0",
        "preserve_insertion_order = false",
        "TimeZone = 'UTC'",
    ):
        try:
            connection.execute(f"SET {setting}")
        except duckdb.Error:  # TimeZone needs an extension in some builds
            if not setting.startswith("TimeZone"):
                raise
    # files and frames have no collation: their texts are compared by bytes as they are, which is faster
    # nobody else asks this connection, so its last answer is ours: a relation would be planned twice
    return DuckEngine(connection, connection.execute, replace(DUCKDB, binary="{}"))


_DUCK_KINDS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), Kind.INTEGER),
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT"), Kind.WIDE),
    **dict.fromkeys(("FLOAT", "DOUBLE"), Kind.REAL),
    **dict.fromkeys(("VARCHAR", "UUID"), Kind.TEXT),
    "BOOLEAN": Kind.BOOLEAN,
    "DATE": Kind.DATE,
    "TIMESTAMP": Kind.TIMESTAMP,
    "TIMESTAMP_S": Kind.TIMESTAMP,
    "TIMESTAMP_MS": Kind.TIMESTAMP,
    "TIMESTAMP_NS": Kind.TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": Kind.INSTANT,
}


def _duck_column(name: str, type_: str) -> Column:
    kind = _DUCK_KINDS.get(type_, Kind.OTHER)
    if type_.startswith("DECIMAL"):
        kind = Kind.REAL
    if type_.startswith("ENUM"):
        kind = Kind.TEXT
    plain = type_ in ("DOUBLE", "VARCHAR", "TIMESTAMP") or kind in (
        *(Kind.INTEGER, Kind.BOOLEAN, Kind.DATE, Kind.INSTANT),
    )
    return Column(name, kind, plain)


def _described(engine: Engine, relation: str, coarse: Container[str] = ()) -> Schema:
    """The columns; ``coarse`` times are scaled as they are read, which fails on those beyond microseconds."""
    rows = run(engine, f"DESCRIBE SELECT * FROM {relation}")
    columns = (_duck_column(str(row[0]), str(row[1])) for row in rows)
    return Schema.of(replace(column, kind=Kind.COARSE) if column.name in coarse else column for column in columns)


def _files(path: str, name: str | None) -> Source:
    engine = _duck()
    folder = os.path.isdir(path)
    pattern = os.path.join(path, "*.parquet") if folder else path
    quoted = _quoted(pattern)
    found = [] if "://" in path else sorted(str(file) for (file,) in run(engine, f"SELECT file FROM glob({quoted})"))
    if not found:
        raise InvalidArgument("source", "a path or pattern of Parquet or CSV files that exist", path)
    stem = re.sub(r"\W+", "_", Path(path).stem.replace("*", "")).strip("_") or Path(path).resolve().parent.name
    endings = {Path(file).suffix.lower() for file in found}
    coarse: frozenset[str] = frozenset()
    if endings <= {".parquet", ".pq"}:
        # what the folders' names say stays text: types guessed from them would change with a file more or less
        relation = f"read_parquet({quoted}, hive_types_autocast = false)"
        _check_alike(engine, quoted)
        coarse = _milliseconds(engine, quoted)
    elif endings in ({".csv"}, {".tsv"}):
        relation = _csv(found, quoted, "\t" if endings == {".tsv"} else ",")
    else:
        raise InvalidArgument("source", "Parquet (.parquet) files alone, or CSV (.csv, .tsv) files alone", path)
    label = f"{len(found)} file{'s' * (len(found) > 1)}: {path}"
    return Source(engine, relation, _described(engine, relation, coarse), label, name or stem, path)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _check_alike(engine: Engine, quoted: str) -> None:
    """Where a column has another type in another file its values would be cast, which fails on some of them."""
    columns: dict[str, set[tuple[str, str]]] = {}
    for file, name, type_ in run(engine, f"SELECT file_name, name, duckdb_type FROM parquet_schema({quoted})"):
        columns.setdefault(str(file), set()).add((str(name), str(type_)))
    first, *others = sorted(columns)
    for file in others:
        differs = columns[file] ^ columns[first]
        if differs:
            name = min(differs)[0]
            raise InvalidArgument("source", f"files with the same columns and types ({name!r} differs)", file)


def _milliseconds(engine: Engine, quoted: str) -> frozenset[str]:
    """The columns of times in milliseconds."""
    rows = run(
        engine,
        f"SELECT DISTINCT name FROM parquet_schema({quoted}) WHERE converted_type = 'TIMESTAMP_MILLIS' "
        "OR (logical_type LIKE 'Timestamp%' AND logical_type LIKE '%MILLIS=Milli%')",
    )
    return frozenset(str(name) for (name,) in rows)


def _csv(files: Sequence[str], quoted: str, separator: str) -> str:
    """All columns as text, rows that do not fit left out: nothing is guessed from rows, nothing fails on them.

    Columns are told by their place, so every file must have the same header. One thread reads: several would
    fail on a quoted field of two lines.
    """
    first, *others = files
    header = _header(first, separator)
    if not header or len({name.lower() for name in header}) != len(header):
        raise InvalidArgument("source", "a CSV file with a header of different names", first)
    for file in others:
        if _header(file, separator) != header:
            raise InvalidArgument("source", f"files with one header ({separator.join(header)})", file)
    named = ", ".join(f"'{name.replace(chr(39), 2 * chr(39))}': 'VARCHAR'" for name in header)
    return (
        f"read_csv({quoted}, auto_detect = false, header = true, delim = '{separator}', quote = '\"', escape = '\"', "
        f"nullstr = '', ignore_errors = true, strict_mode = false, null_padding = true, parallel = false, "
        f"columns = {{{named}}})"
    )


def _header(file: str, separator: str) -> list[str]:
    with open(file, encoding="utf-8-sig", errors="replace", newline="") as lines:  # only the first is looked at
        return next(csv.reader(lines, delimiter=separator), [])


def _arrow(frame: object, name: str | None) -> Source:
    """Readers and scanners are used up by the first query."""
    kinds = {base.__name__ for base in type(frame).__mro__}
    if not kinds & {"Table", "RecordBatch", "Dataset"}:
        raise InvalidType("source", "an Arrow table, record batch or dataset (reader.read_all())", type(frame).__name__)
    return _frame(frame, name)


def _frame(frame: object, name: str | None) -> Source:
    engine = _duck()
    relation = engine.register(frame)
    label = f"{type(frame).__module__.split('.')[0]} {type(frame).__name__}"
    schema = _described(engine, relation, _coarse_instants(frame))
    return Source(engine, relation, schema, label, name or "data", frame)


def _coarse_instants(frame: Any) -> frozenset[str]:
    """The columns of times with a zone in seconds or milliseconds (those without have types of their own)."""
    if hasattr(frame, "collect_schema"):  # polars
        types = [(name, kind) for name, kind in frame.collect_schema().items() if getattr(kind, "time_zone", None)]
        return frozenset(name for name, kind in types if kind.time_unit == "ms")
    if hasattr(frame, "dtypes"):  # pandas
        types = [(name, getattr(kind, "pyarrow_dtype", kind)) for name, kind in frame.dtypes.items()]
    else:
        types = [(field.name, field.type) for field in frame.schema]
    zoned = ((str(name), kind) for name, kind in types if getattr(kind, "tz", None) is not None)
    return frozenset(name for name, kind in zoned if kind.unit in ("s", "ms"))


def _duck_object(given: Any, name: str | None) -> Source:
    """A relation (it brings its connection), or a connection with a table's name."""
    if not hasattr(given, "query") or hasattr(given, "cursor"):
        if name is None:
            raise InvalidArgument("name", "given: the table to read on this connection", name)
        return _connection(given, name, name)
    alias = f"dptally_{secrets.token_hex(6)}"
    engine = DuckEngine(None, lambda sql: given.query(alias, sql))
    columns = zip(given.columns, map(str, given.types), strict=True)
    schema = Schema.of(_duck_column(column, type_) for column, type_ in columns)
    return Source(engine, alias, schema, "DuckDB relation", name or "data")


# -- Spark ---------------------------------------------------------------------------------------------------


class SparkEngine(Engine):
    """A Spark session: local, a cluster, or Connect. It gets one text of SQL and returns integers."""

    dialect = SPARK

    def __init__(self, session: Any) -> None:
        super().__init__()
        self.name = f"Spark {session.version}"
        self._session = session

    def rows(self, sql: str) -> Sequence[Sequence[Any]]:
        return self._session.sql(sql).collect()  # type: ignore[no-any-return]

    def same(self, other: Engine) -> bool:
        return isinstance(other, SparkEngine) and other._session is self._session


_SPARK_KINDS = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), Kind.INTEGER),
    **dict.fromkeys(("float", "double"), Kind.REAL),
    "string": Kind.TEXT,
    "boolean": Kind.BOOLEAN,
    "date": Kind.DATE,
    "timestamp": Kind.INSTANT,
    "timestamp_ntz": Kind.TIMESTAMP,
}


def _spark_column(name: str, type_: str) -> Column:
    kind = Kind.REAL if type_.startswith("decimal") else _SPARK_KINDS.get(type_, Kind.OTHER)
    return Column(name, kind, not type_.startswith("decimal") and type_ != "float")


def _spark(frame: Any, name: str | None) -> Source:
    if not hasattr(frame, "createOrReplaceTempView"):
        raise InvalidType("source", "a Spark DataFrame such as spark.table('visits')", type(frame).__name__)
    alias = f"dptally_{secrets.token_hex(6)}"
    frame.createOrReplaceTempView(alias)
    schema = Schema.of(_spark_column(column, type_) for column, type_ in frame.dtypes)
    return Source(SparkEngine(frame.sparkSession), alias, schema, "Spark DataFrame", name or "data")


# -- other databases -----------------------------------------------------------------------------------------


class ConnectionEngine(Engine):
    """A DB-API connection; every query is read-only and ends its transaction."""

    def __init__(self, connection: Any, dialect: Dialect, name: str) -> None:
        super().__init__()
        self.dialect = dialect
        self.name = name
        self._connection = connection

    def rows(self, sql: str) -> Sequence[Sequence[Any]]:
        cursor = self._connection.cursor()
        try:
            cursor.execute(sql)
            return cursor.fetchall()  # type: ignore[no-any-return]
        finally:
            self._connection.rollback()

    def same(self, other: Engine) -> bool:
        return isinstance(other, ConnectionEngine) and other._connection is self._connection

    def described(self, relation: str) -> list[tuple[str, Any]]:
        cursor = self._connection.cursor()
        try:
            cursor.execute(f"SELECT * FROM {relation} AS dptally_t WHERE 1 = 0")
            return [(column[0], column[1]) for column in cursor.description]
        finally:
            self._connection.rollback()


_POSTGRES_KINDS = {
    **dict.fromkeys((20, 21, 23), Kind.INTEGER),
    **dict.fromkeys((700, 701, 1700), Kind.REAL),
    **dict.fromkeys((25, 1042, 1043, 2950), Kind.TEXT),
    16: Kind.BOOLEAN,
    1082: Kind.DATE,
    1114: Kind.TIMESTAMP,
    1184: Kind.INSTANT,
}


def _postgres_column(name: str, code: Any) -> Column:
    kind = _POSTGRES_KINDS.get(int(code), Kind.OTHER)
    return Column(
        name, kind, code in (25, 701) or kind in (Kind.INTEGER, Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP, Kind.INSTANT)
    )


def _relation(dialect: Dialect, table: str) -> str:
    """schema.table, quoted."""
    return ".".join(dialect.name_of(part) for part in table.split("."))


def _connection(connection: Any, table: str, name: str | None) -> Source:
    module = type(connection).__module__.split(".")[0]
    shown = name or table.split(".")[-1]
    if module in ("duckdb", "_duckdb"):
        engine: Engine = DuckEngine(connection)
        relation = _relation(DUCKDB, table)
        return Source(engine, relation, _described(engine, relation), f"DuckDB table {table}", shown)
    if module == "pyspark":
        return _spark(connection.table(_relation(SPARK, table)), shown)
    if module in ("psycopg", "psycopg2", "pg8000"):
        postgres = ConnectionEngine(connection, POSTGRES, "PostgreSQL")
        _check_encoding(postgres)
        relation = _relation(POSTGRES, table)
        columns = _quietly(lambda: postgres.described(relation))
        if columns is None:
            raise InvalidArgument("source", "a table that this connection can read", table)
        schema = Schema.of(_postgres_column(column, code) for column, code in columns)
        return Source(postgres, relation, schema, f"PostgreSQL table {table}", shown)
    raise InvalidType("source", "a connection of psycopg, psycopg2, pg8000 or DuckDB, or a Spark session", module)


def _check_encoding(engine: Engine) -> None:
    """In another encoding than UTF-8 one text that it does not hold would make the answer fail."""
    for setting in ("client_encoding", "server_encoding"):
        ((encoding,),) = run(engine, f"SHOW {setting}")
        if encoding != "UTF8" and (setting == "client_encoding" or encoding == "SQL_ASCII"):
            raise InvalidArgument("source", f"a connection whose {setting} is UTF8", encoding)


def _quietly(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception:  # the driver's words are dropped, as in engine.run
        return None


def _ibis(table: Any, name: str | None) -> Source:
    """A plain Ibis table: what else it would do belongs to the session, where it is checked."""
    operation = type(table.op()).__name__
    if operation != "DatabaseTable":
        raise InvalidArgument("source", "an Ibis table without operations (filter in the session)", operation)
    backend = table.get_backend()
    handle = getattr(backend, "_session", None) if backend.name == "pyspark" else backend.con
    return _connection(handle, table.get_name(), name)


_OPENERS: dict[str, Callable[[Any, str | None], Source]] = {
    "pandas": _frame,
    "polars": _frame,
    "pyarrow": _arrow,
    "duckdb": _duck_object,
    "_duckdb": _duck_object,
    "pyspark": _spark,
    "ibis": _ibis,
}
