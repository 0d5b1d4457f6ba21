"""``dptally serve``: the page."""

from __future__ import annotations

import os

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
@json_option
def serve(host: str, port: int, names: tuple[str, ...], ledger: str | None, allow_spend: bool, as_json: bool) -> None:
    """The page: explore plans, check claims, look at a ledger and at the papers, in a browser.

    It listens on this machine alone unless --host says otherwise, asks no other machine for anything, and only reads
    the ledger unless --allow-spend is given.

    \b
    Examples:
      dptally serve
      dptally serve --ledger sqlite:///budget.db --port 8080
    """
    token = os.environ.get(_TOKEN) or None
    if "\n" in host or not host:
        raise InvalidArgument("host", "an address", host)
    settings = later("settings_for")(host, names, ledger, allow_spend, token)
    shown = f"[{host}]" if ":" in host else host
    made = settings.token if token is None else None  # one that was given is not repeated
    if as_json:
        emit({"address": f"http://{shown}:{port}/", "token": made})
    else:
        click.echo(f"dptally is at http://{shown}:{port}/ (Ctrl-C ends it)")
        if made is not None:
            click.echo(f"the token of this run, for those who may spend: {made}")
    later("serve")(settings, host, port)
