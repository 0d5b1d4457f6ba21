"""The exit codes of every command, in one place.

0  answered
1  a target is missed, a claim is refuted
2  the input cannot be used
3  a claim is undetermined, or a ledger's budget does not allow it
4  a ledger was edited
"""

from __future__ import annotations

import json

import click

from dptally.errors import BudgetExceeded, CannotCalibrate, ChainBroken, DptallyError, RolledBack

__all__ = ["code_of", "refused"]


def code_of(error: DptallyError) -> int:
    """The code of an error that a command ends with."""
    if isinstance(error, BudgetExceeded):
        return 3
    if isinstance(error, (ChainBroken, RolledBack)):
        return 4
    return 1 if isinstance(error, CannotCalibrate) else 2


def refused(text: str, code: int, as_json: bool) -> int:
    """One line on stderr, where a place is pointed at another two; with --json one object on stdout, too."""
    first, *rest = text.split("\n  ", 1)
    if as_json:
        click.echo(json.dumps({"error": " ".join(first.split()), "exit_code": code}, ensure_ascii=True))
    click.echo("\n  ".join([f"Error: {' '.join(first.split())}", *rest]), err=True)
    return code
