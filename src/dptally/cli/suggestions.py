"""Groups of commands that guess what was meant."""

from __future__ import annotations

from difflib import get_close_matches

import click

__all__ = ["Suggesting"]


class Suggesting(click.Group):
    """A group that answers an unknown name with the nearest of its commands."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            near = get_close_matches(args[0][:40], names, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; see {ctx.command_path} --help"
            raise click.UsageError(f"no command {args[0][:40]!r}{hint}")
        return super().resolve_command(ctx, args)
