"""``dptally ledger``: init, create, spend, status, history, verify, report, export, backup.

Exit codes: 0 done, 1 the ledger could not do it, 2 wrong usage, 3 the budget does not allow it, 4 the ledger
was edited.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dptally.cli.exits import code_of, refused
from dptally.cli.files import by_ending
from dptally.cli.suggestions import Suggesting
from dptally.errors import DptallyError, InvalidArgument
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.ledger.reading import read_object
from dptally.mechanisms import ZCDP, ApproxDP, GaussianDP, PureDP, from_json
from dptally.mechanisms.mechanism import Mechanism
from dptally.numerics.shown import shown_down, shown_up

if TYPE_CHECKING:
    from dptally.ledger import Entry, Ledger, Status

__all__ = ["group"]

F = TypeVar("F", bound=Callable[..., Any])


def _refused(error: DptallyError) -> SystemExit:
    return SystemExit(refused(str(error), code_of(error), click.get_current_context().params.get("as_json", False)))


@contextmanager
def _opened(
    url: str, head: Path | None = None, read_only: bool = False, create: bool = False, key: str | None = None
) -> Iterator[Ledger]:
    from dptally.ledger import Ledger

    signer, witness = os.environ.get("DPTALLY_LEDGER_SIGNER"), os.environ.get("DPTALLY_LEDGER_WITNESS")
    try:
        known = None if head is None else _text_of(head)
        with Ledger.open(
            url, read_only=read_only, head=known, create=create, key=key, signer=signer or None, witness=witness or None
        ) as ledger:
            yield ledger
    except DptallyError as error:
        raise _refused(error) from None


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidArgument("head", "a file of the JSON text that a head was written as", str(file)) from None


def _ledger_option(command: F) -> F:
    command = click.option(
        "--head",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A saved head; refuse a ledger that no longer contains it.",
    )(command)
    return click.option(
        "--ledger",
        "url",
        envvar="DPTALLY_LEDGER",
        default="sqlite:///budget.db",
        show_default=True,
        help="The ledger's database URL (or the variable DPTALLY_LEDGER).",
    )(command)


def _json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


@click.group("ledger", cls=Suggesting, invoke_without_command=True)
@click.pass_context
def group(ctx: click.Context) -> None:
    """Keep a privacy budget that cannot be overspent, lost or quietly edited.

    \b
    Examples:
      dptally ledger create ehr-2026 --zcdp 0.5 --delta 1e-9
      dptally ledger spend ehr-2026 "10 * gaussian(sigma=40)" --by alice --why "ward counts"
      dptally ledger status
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@group.command()
@click.option("--analyst", "analysts", multiple=True, help="A PostgreSQL role that may spend as itself (repeatable).")
@click.option("--auditor", "auditors", multiple=True, help="A PostgreSQL role that may only read (repeatable).")
@_json_option
@_ledger_option
def init(analysts: tuple[str, ...], auditors: tuple[str, ...], as_json: bool, url: str, head: Path | None) -> None:
    """Make a new ledger, or open the one that is there.

    On PostgreSQL, run it as the owner of the tables: --analyst and --auditor grant rights to existing roles.

    \b
    Example:
      dptally ledger init
    """
    with _opened(url, head, create=head is None) as ledger:
        if analysts or auditors:
            ledger.grant(analysts, auditors)
        found = ledger.head()
    if as_json:
        click.echo(json.dumps({"ledger": found.ledger, "analysts": list(analysts), "auditors": list(auditors)}))
    else:
        click.echo(f"ledger {found.ledger}: ready")


@group.command()
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@_json_option
@_ledger_option
def backup(path: Path, as_json: bool, url: str, head: Path | None) -> None:
    """Copy a SQLite ledger to PATH while others spend, and print the head that the copy holds.

    \b
    Example:
      dptally ledger backup budget-2026-11-15.db
    """
    del as_json  # the head is JSON in any case
    with _opened(url, head) as ledger:
        click.echo(ledger.backup(path).to_json())


@group.command()
@click.argument("dataset")
@click.option("--pure", type=float, metavar="EPSILON", help="A pure budget.")
@click.option("--zcdp", type=float, metavar="RHO", help="A zero-concentrated budget.")
@click.option("--gdp", type=float, metavar="MU", help="A Gaussian budget.")
@click.option("--approx", type=float, nargs=2, metavar="EPSILON DELTA", help="An approximate budget (Renyi filter).")
@click.option("--delta", type=float, help="The delta at which status and reports state an epsilon.")
@click.option("--unit", default="row", show_default=True, help="Whom it protects: row, or person:COLUMN.")
@click.option(
    "--adjacency",
    type=click.Choice([one.value for one in Adjacency]),
    default=ADD_REMOVE.value,
    show_default=True,
    help="How neighbouring datasets differ.",
)
@click.option("--part", "parts", multiple=True, metavar="PARTITION=PART", help="A disjoint part (may be repeated).")
@click.option("--failure", type=float, default=0.0, help="A probability set apart for mechanisms that may fail.")
@click.option("--about", default="", help="What the dataset is, for reports.")
@_json_option
@_ledger_option
def create(
    dataset: str,
    pure: float | None,
    zcdp: float | None,
    gdp: float | None,
    approx: tuple[float, float] | None,
    delta: float | None,
    unit: str,
    adjacency: str,
    parts: tuple[str, ...],
    failure: float,
    about: str,
    as_json: bool,
    url: str,
    head: Path | None,
) -> None:
    """Open an account for DATASET with one kind of budget.

    \b
    Example:
      dptally ledger create survey --approx 3 1e-6 --about "the survey of 2026"
      dptally ledger create wards --zcdp 0.5 --unit person:patient --part ward=A1 --part ward=A2
    """
    kinds = ((PureDP, pure), (ZCDP, zcdp), (GaussianDP, gdp))
    try:
        budgets: list[Mechanism] = [kind(value) for kind, value in kinds if value is not None]
        budgets += [ApproxDP(*approx)] if approx is not None else []
    except InvalidArgument as error:
        raise click.UsageError(str(error)) from None
    if len(budgets) != 1:
        raise click.UsageError("give exactly one of --pure, --zcdp, --gdp, --approx")
    with _opened(url, head, create=head is None) as ledger:
        ledger.create(
            dataset,
            budget=budgets[0],
            delta=delta,
            unit=unit,
            adjacency=Adjacency(adjacency),
            parts=[tuple(part.split("=", 1)) if "=" in part else part for part in parts],
            failure=failure,
            about=about,
        )
        made = ledger.status(dataset)
        click.echo(json.dumps(made.to_dict()) if as_json else f"created {dataset!r}: {made.budget}")


@group.command(context_settings={"ignore_unknown_options": True})
@click.argument("dataset")
@click.argument("plan")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--by", default="", help="Analyst.")
@click.option("--why", default="", help="Purpose, kept in the history.")
@click.option("--key", help="An idempotency key: a retry with the same key is not charged again.")
@click.option("--label", "labels", multiple=True, help="A label (may be repeated).")
@click.option("--partition", default="", help="A partition into disjoint parts, with --part.")
@click.option("--part", default="", help="The only part that is touched.")
@_json_option
@_ledger_option
def spend(
    dataset: str,
    plan: str,
    command: tuple[str, ...],
    by: str,
    why: str,
    key: str | None,
    labels: tuple[str, ...],
    partition: str,
    part: str,
    as_json: bool,
    url: str,
    head: Path | None,
) -> None:
    """Debit PLAN, then run COMMAND (after --). The data may be touched only after the debit, so only by
    COMMAND.

    PLAN is a plan text such as "10 * gaussian(sigma=40)", or a plan as JSON. If COMMAND fails, what was
    debited stays spent. Without a COMMAND the spend counts as released at once. With a known --key nothing is
    charged and COMMAND is not run again.

    \b
    Example:
      dptally ledger spend ehr-2026 "gaussian(sigma=40)" --by alice --key q-17 -- echo released
    """
    if command and shutil.which(command[0]) is None:
        raise click.UsageError(f"there is no program {command[0]!r} to run; nothing was debited")
    with _opened(url, head) as ledger:
        receipt = ledger.spend(
            dataset, _plan(plan), by=by, why=why, key=key, labels=labels, partition=partition, part=part
        )
        status = 0
        if not receipt.replayed:
            status = subprocess.run(command, check=False).returncode if command else 0
            receipt.release() if status == 0 else receipt.burn()
        _show_receipt(receipt.entry, receipt.replayed, as_json)
    sys.exit(status)


def _plan(text: str) -> Mechanism:
    try:
        if text.lstrip().startswith("{"):
            return from_json(text)
        from dptally.cli.language import parse

        return parse(text)
    except InvalidArgument as error:
        raise click.BadParameter(str(error), param_hint="PLAN") from None


def _show_receipt(entry: Entry, replayed: bool, as_json: bool) -> None:
    if as_json:
        shown = {"dataset": entry.dataset, "entry": entry.number, "cost": entry.cost, "in": entry.symbol}
        click.echo(json.dumps({**shown, "state": entry.state, "replayed": replayed, "hash": entry.hash}))
        return
    again = " (known key: nothing was charged now)" if replayed else ""
    click.echo(
        f"entry {entry.number} of {entry.dataset!r}: {entry.symbol} {shown_up(entry.cost)}, {entry.state}{again}"
    )
    click.echo(f"receipt {entry.hash}")


@group.command()
@click.argument("dataset", required=False)
@_json_option
@_ledger_option
def status(dataset: str | None, as_json: bool, url: str, head: Path | None) -> None:
    """Show what is spent and left, of DATASET or of all.

    \b
    Example:
      dptally ledger status ehr-2026
    """
    with _opened(url, head, read_only=True) as ledger:
        found = [ledger.status(name) for name in ([dataset] if dataset else ledger.datasets())]
    if as_json:
        click.echo(json.dumps([one.to_dict() for one in found], indent=2))
        return
    for one in found:
        _show_status(one)
    if not found:
        click.echo("the ledger has no datasets")


def _show_status(one: Status) -> None:
    from dptally.cli.output import prose
    from dptally.ledger.statement import bar, visible

    click.echo(f"{visible(one.dataset)}  {one.budget}")
    total = one.balance
    cap, left = shown_down(total.cap or 0.0), shown_down(total.left or 0.0)
    prose(f"  {bar(total)} {total.symbol} {shown_up(total.spent)} of {cap}, {left} left")
    for person in one.analysts:
        limit = "" if person.cap is None else f" of {shown_down(person.cap)}"
        click.echo(f"    {visible(person.holder)}: {shown_up(person.spent)}{limit}")
    if one.epsilon is not None:
        prose(f"  epsilon spent so far at delta {one.delta:.3g}: {shown_up(one.epsilon)} (odometer)")


@group.command()
@click.argument("dataset")
@click.option("--by", help="Only this analyst.")
@click.option("--label", help="Only this label.")
@click.option("--after", type=int, default=0, show_default=True, help="Only entries after this number.")
@click.option("--limit", type=int, help="At most so many.")
@_json_option
@_ledger_option
def history(
    dataset: str,
    by: str | None,
    label: str | None,
    after: int,
    limit: int | None,
    as_json: bool,
    url: str,
    head: Path | None,
) -> None:
    """List the spends of DATASET.

    \b
    Example:
      dptally ledger history ehr-2026 --by alice
    """
    with _opened(url, head, read_only=True) as ledger:
        found = ledger.history(dataset, by=by, label=label, after=after, limit=limit)
    from dptally.ledger.statement import visible

    for entry in found:
        if as_json:
            facts = {
                "entry": entry.number,
                "at": entry.at,
                "by": entry.by,
                "why": entry.why,
                "key": entry.key,
            }
            plan = read_object(entry.plan_json)
            click.echo(
                json.dumps({**facts, "plan": plan, "cost": entry.cost, "state": entry.state, "hash": entry.hash})
            )
        else:
            who = f" {visible(entry.by)}:" if entry.by else ""
            cost = f"{entry.symbol} {shown_up(entry.cost)}"
            click.echo(f"{entry.number:>6} {entry.at[:19]}{who} {entry.plan!r}  {cost}  {entry.state}")


@group.command()
@click.option("--prices", is_flag=True, help="Price each different plan again.")
@click.option("--key", help="The public key that must have signed the head given with --head.")
@_json_option
@_ledger_option
def verify(prices: bool, key: str | None, as_json: bool, url: str, head: Path | None) -> None:
    """Follow every hash chain and replay its sums; say the first entry that is wrong.

    \b
    Example:
      dptally ledger verify --prices
    """
    with _opened(url, head, read_only=True, key=key) as ledger:
        found = ledger.verify(prices=prices)
    if as_json:
        facts = {"entries": found.entries, "datasets": found.datasets, "plans": found.plans}
        click.echo(json.dumps({**facts, "head": json.loads(found.head.to_json())}))
        return
    from dptally.cli.output import prose

    prose(f"checked {found.entries} entries and {found.datasets} datasets: all agree with their hash chains")
    if prices:
        prose(f"priced {found.plans} different plans again: none was charged less than it costs")


@group.command()
@click.argument("dataset")
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "html", "json"]),
    help="By default as --output ends, or markdown.",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="A file instead of the screen.")
@_json_option
@_ledger_option
def report(dataset: str, form: str | None, output: Path | None, as_json: bool, url: str, head: Path | None) -> None:
    """Write the statement of DATASET: what was spent by whom, what is left, and where it stops.

    \b
    Example:
      dptally ledger report ehr-2026 --output statement.html
    """
    with _opened(url, head, read_only=True) as ledger:
        text = ledger.report(dataset, "json" if as_json else form or by_ending(output))
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")


@group.command()
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write all entries as JSON lines.")
@_json_option
@_ledger_option
def export(output: Path | None, as_json: bool, url: str, head: Path | None) -> None:
    """Print the head of the ledger as JSON, to give back with --head; with --output export all entries too.

    \b
    Example:
      dptally ledger export > head.json
    """
    del as_json  # the head is JSON in any case
    with _opened(url, head, read_only=True) as ledger:
        found = ledger.head() if output is None else ledger.export(output)
    click.echo(found.to_json())


if __name__ == "__main__":
    group()
