"""``dptally release``: private answers from a table, paid from a ledger, with error bars and a statement."""

from __future__ import annotations

import json
import os
import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dptally.cli.files import by_ending
from dptally.cli.output import emit, facts, heading, progress, prose, table, title
from dptally.cli.plans import PLAN, Plan
from dptally.errors import InvalidArgument

if TYPE_CHECKING:
    from dptally.ledger import Ledger
    from dptally.mechanisms import Mechanism
    from dptally.tables import Query, Result, Session, Table
    from dptally.tables.kinds import Column

__all__ = ["release"]


@click.command()
@click.argument("source")
@click.option("--person", help="The column that says whose row it is; without it the unit of privacy is a row.")
@click.option("--max-groups", type=int, help="In how many groups a person may count.")
@click.option("--max-rows", type=int, help="How many rows of a person may count in a group.")
@click.option("--where", "filters", multiple=True, help='A filter, such as "age >= 65".')
@click.option("--by", "groups", multiple=True, help="A column to group by.")
@click.option("--keys", multiple=True, help="The public groups, A,B,C or COLUMN=A,B,C, or @FILE with one on each line.")
@click.option("--private", "threshold", type=int, help="Publish groups with at least about so many persons instead.")
@click.option("--count", is_flag=True, help="How many persons (rows without --person).")
@click.option("--sum", "sums", multiple=True, metavar="COLUMN", help="The sum of a column (needs --each).")
@click.option("--mean", "means", multiple=True, metavar="COLUMN", help="The mean of a column (needs --each).")
@click.option("--variance", "variances", multiple=True, metavar="COLUMN", help="The variance (needs --each).")
@click.option("--median", "medians", multiple=True, metavar="COLUMN", help="The median of a column (needs --bins).")
@click.option("--each", type=(str, float, float), multiple=True, metavar="COLUMN LOW HIGH", help="Bounds.")
@click.option("--bins", type=(str, float, float, float), multiple=True, metavar="COLUMN LOW HIGH WIDTH", help="Bins.")
@click.option("--budget", type=PLAN, required=True, help='What this release may spend, such as "zcdp(0.002)".')
@click.option("--dataset", help="The account in the ledger; by default the file's name.")
@click.option("--open-account", "account", type=PLAN, help="The whole budget of a new account, if there is none.")
@click.option("--analyst", default="", help="Who asks.")
@click.option("--why", default="", help="What for.")
@click.option("--key", help="A retry with the same key returns the stored answer and costs nothing.")
@click.option("--preview", is_flag=True, help="Only price and error bars: reads no data, spends nothing.")
@click.option("--sql", "show_sql", is_flag=True, help="Only the explanation, with the SQL.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="The statement's file (.md, .html or .json); by default ACCOUNT-ENTRY.md, and none with --json.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--ledger",
    "url",
    envvar="DPTALLY_LEDGER",
    default="sqlite:///budget.db",
    show_default=True,
    help="The ledger's database URL (or the variable DPTALLY_LEDGER).",
)
def release(source: str, **options: Any) -> None:
    """Answer questions about SOURCE (Parquet or CSV files) privately: debit the ledger, run the SQL, add exact
    noise, print each answer with its 95 % error bar.

    Exit codes: 0 answered, 2 bad input, 3 the budget does not allow it.

    \b
    Example:
      dptally release visits.parquet --person patient_id --max-groups 3 --by ward --keys A,B,C \\
        --count --mean los_days --each los_days 0 60 --median age --bins age 0 110 5 \\
        --budget "zcdp(0.01)" --open-account "zcdp(0.5)"
    """
    from dptally.ledger import Ledger
    from dptally.tables import Session, Table

    opened = Table(source, person=options["person"], max_groups=options["max_groups"], max_rows=options["max_rows"])
    dataset = options["dataset"] or opened.name
    with Ledger.open(options["url"], create=True) as ledger:
        _account(ledger, dataset, opened, options["account"])
        session = Session(opened, ledger=ledger, dataset=dataset, by=options["analyst"])
        query = _asked(session, options).cost(options["budget"].mechanism)
        _writable(options["output"])
        if options["preview"] or options["show_sql"]:
            _before(query, options)
            return
        with progress("asking", opened.source.engine.progress):
            result = query.release(why=options["why"], key=options["key"])
        _after(result, session, options)


def _writable(page: Path | None) -> None:
    """A statement that could not be written is refused before anything is paid."""
    if page is not None and not os.access(page if page.exists() else page.absolute().parent, os.W_OK):
        raise InvalidArgument("--output", "a file in a folder that can be written to", str(page))


def _account(ledger: Ledger, dataset: str, opened: Table, account: Plan | None) -> None:
    """The account must be there, or be opened now with the table's unit."""
    if dataset in ledger.datasets():
        return
    if account is None:
        raise InvalidArgument(
            "--open-account",
            f"given: the ledger has no account {dataset!r} yet",
            None,
            'write --open-account "zcdp(0.5)"',
        )
    ledger.create(dataset, budget=_guarantee(account), unit=opened.unit)


def _guarantee(plan: Plan) -> Mechanism:
    mechanism: Mechanism = plan.mechanism
    return mechanism


def _asked(session: Session, options: dict[str, Any]) -> Query:
    query = session._query()
    for text in options["filters"]:
        query = query.where(text)
    if options["groups"]:
        query = query.group_by(*options["groups"], keys=_keys(session, options))
    if options["count"]:
        query = query.persons() if options["person"] else query.rows()
    each = {column: (low, high) for column, low, high in options["each"]}
    for column in options["sums"]:
        query = query.sum(column, _given("each", each, column))
    for column in options["means"]:
        query = query.mean(column, _given("each", each, column))
    for column in options["variances"]:
        query = query.variance(column, _given("each", each, column))
    bins = {column: _edges(*rest) for column, *rest in options["bins"]}
    for column in options["medians"]:
        query = query.median(column, _given("bins", bins, column))
    return query


def _given(option: str, known: dict[str, Any], column: str) -> Any:
    if column not in known:
        wanted = "LOW HIGH" if option == "each" else "LOW HIGH WIDTH"
        raise InvalidArgument(f"--{option}", f"given for {column}", None, f"write --{option} {column} {wanted}")
    return known[column]


def _edges(low: float, high: float, width: float) -> list[float]:
    if not (width > 0 and 1 <= (high - low) / width <= 1024):
        raise InvalidArgument("--bins", "LOW HIGH WIDTH with 1 to 1024 bins", (low, high, width))
    steps = round((high - low) / width)
    return [low + i * width for i in range(steps)] + [high]


def _keys(session: Session, options: dict[str, Any]) -> Any:
    from dptally.tables import private

    if options["person"] is not None and options["max_groups"] is None:
        raise InvalidArgument(
            "--max-groups", "given: in how many groups a person may count", None, "write --max-groups 3"
        )
    if options["threshold"] is not None:
        return private(options["threshold"])
    if not options["keys"]:
        raise InvalidArgument(
            "--keys",
            "given: the groups to publish",
            None,
            "write --keys A,B,C, or --private 60 for groups of many persons",
        )
    schema = session.table.schema
    columns = [schema.get("--by", name) for name in options["groups"]]
    by_name = {column.name: column for column in columns}
    listed: dict[str, list[Any]] = {}
    for text in options["keys"]:
        name, found, rest = text.partition("=")
        named = bool(found) and name in by_name
        column = by_name[name] if named else columns[0]
        listed[column.name] = [_key(column, value) for value in _values(rest if named else text)]
    return listed


def _values(text: str) -> list[str]:
    if text.startswith("@"):
        return Path(text[1:]).read_text(encoding="utf-8").splitlines()
    return text.split(",")


def _key(column: Column, text: str) -> Any:
    from dptally.tables.kinds import Kind

    try:
        if column.kind is Kind.INTEGER:
            return int(text)
        if column.kind is Kind.DATE:
            return date.fromisoformat(text)
    except ValueError:
        raise InvalidArgument("--keys", f"of the kind of {column.name}, {column.kind.value}", text) from None
    if column.kind is Kind.BOOLEAN and text in ("true", "false"):
        return text == "true"
    return text


def _before(query: Query, options: dict[str, Any]) -> None:
    if options["show_sql"]:
        prose(query.explain())
        return
    price, preview = query.price(), query.preview()
    if options["as_json"]:
        emit({"price": price.to_dict(), "preview": preview.to_dict()})
        return
    title(str(price))
    facts(str(preview).splitlines())


def _after(result: Result, session: Session, options: dict[str, Any]) -> None:
    page = options["output"]
    if page is None and not options["as_json"]:
        page = Path(re.sub(r"\W+", "_", session.dataset) + f"-{result.receipt.number}.md")
    if page is not None:
        page.write_text(result.report(by_ending(page)), encoding="utf-8")
    if options["as_json"]:
        click.echo(json.dumps(result.to_dict() | {"left": session.left()}, indent=2))
        return
    from dptally.tables.explanation import unit_said
    from dptally.tables.pages import bar

    names = [column.name for column in result.compiled.frame.columns]
    rows = result.rows()
    shown = [[*(str(row[name]) for name in names), *(bar(row, name) for name in result.columns)] for row in rows]
    table([*((name, "left") for name in names), *((name, "right") for name in result.columns)], shown)
    heading("paid")
    entry, left = result.receipt, session.left()
    facts(
        [
            f"{entry.entry.symbol} {entry.cost:.6g} from {session.dataset}, entry {entry.number}; {left:.6g} left",
            f"unit of privacy: {unit_said(result.compiled.frame)}",
            "error bars hold 95 % of the noise, not what the bounds cut off",
            f"statement: {page}",
        ]
    )
