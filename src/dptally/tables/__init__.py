"""Private tables: people, not rows. DuckDB inside; Spark and PostgreSQL where the data already is."""

from dptally.tables.keys import PrivateKeys as PrivateKeys
from dptally.tables.keys import private as private
from dptally.tables.preview import Preview as Preview
from dptally.tables.preview import Price as Price
from dptally.tables.query import Query as Query
from dptally.tables.result import Result as Result
from dptally.tables.session import Session as Session
from dptally.tables.table import Table as Table
