"""``dptally serve``: the page."""

from __future__ import annotations

import os
from typing import Any

import click

from dptally.cli.output import emit, json_option
from dptally.errors import InvalidArgument
from dptally.later import later

__all__ = ["serve"]

_TOKEN = "DPTALLY_TOKEN"


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="The port to listen on.")
@click.option("--name", "names", multiple=True, help="A further host name that requests may use (may be repeated).")
@click.option("--ledger", envvar="DPTALLY_LEDGER", help="A ledger to show, as sqlite:///budget.db.")
@click.option("--allow-spend", is_flag=True, help=f"Let who has the token spend (from {_TOKEN}, or made and printed).")
@click.option("--table", metavar="FILE", help="Parquet or CSV files to ask: priced and previewed before release.")
@click.option("--dataset", help="The account that the table is asked on; its unit says whose rows they are.")
@click.option("--max-groups", type=click.IntRange(1), help="How many groups a person counts in.")
@click.option("--max-rows", type=click.IntRange(1), help="How many of a person's rows count in a group.")
@json_option
def serve(
    host: str,
    port: int,
    names: tuple[str, ...],
    ledger: str | None,
    allow_spend: bool,
    table: str | None,
    dataset: str | None,
    max_groups: int | None,
    max_rows: int | None,
    as_json: bool,
) -> None:
    """The page: explore plans, check claims, look at a ledger and at the papers, ask a table, in a browser.

    It listens on this machine alone unless --host says otherwise, asks no other machine for anything, and only reads
    the ledger unless --allow-spend is given.

    \b
    Examples:
      dptally serve
      dptally serve --ledger sqlite:///budget.db --port 8080
      dptally serve --ledger sqlite:///budget.db --table visits.parquet --dataset ehr-2026 --max-groups 3
    """
    token = os.environ.get(_TOKEN) or None
    if "\n" in host or not host:
        raise InvalidArgument("host", "an address", host)
    declared = _declared(table, dataset, max_groups, max_rows)
    settings = later("settings_for")(host, names, ledger, allow_spend, token, declared)
    later("look")(settings)
    shown = f"[{host}]" if ":" in host else host
    made = settings.token if token is None else None  # one that was given is not repeated
    if as_json:
        emit({"address": f"http://{shown}:{port}/", "token": made})
    else:
        click.echo(f"dptally is at http://{shown}:{port}/ (Ctrl-C ends it)")
        if made is not None:
            click.echo(f"the token of this run, for those who may spend: {made}")
    later("serve")(settings, host, port)


def _declared(table: str | None, dataset: str | None, max_groups: int | None, max_rows: int | None) -> Any:
    """The table to ask, if one was named."""
    if table is None:
        if dataset or max_groups or max_rows:
            raise InvalidArgument("table", "given with --dataset, --max-groups and --max-rows", None)
        return None
    if dataset is None:
        raise InvalidArgument("dataset", "given with --table: the account that pays", None)
    return later("Declared")(table, dataset, max_groups, max_rows)
