"""``dptally completion``: the script that makes a shell complete commands, options and plan names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

__all__ = ["completion"]


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def completion(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print the completion script of a shell.

    \b
    Example:
      dptally completion zsh > _dptally
    """
    kind = get_completion_class(shell)
    assert kind is not None  # click knows these three
    script = kind(ctx.find_root().command, {}, "dptally", "_DPTALLY_COMPLETE").source()
    if as_json:
        from dptally.cli.output import emit

        emit({"shell": shell, "script": script})
    else:
        click.echo(script)
