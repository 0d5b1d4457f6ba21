"""Groups of commands that guess what was meant."""

from __future__ import annotations

from difflib import get_close_matches

import click

__all__ = ["Suggesting"]

#: words that people try, and the command that does it
ELSEWHERE = {
    "compare": "dptally epsilon PLAN --delta DELTA --compare",
    "frameworks": "dptally epsilon PLAN --delta DELTA --compare",
    "noise": "dptally calibrate PLAN --epsilon EPSILON --delta DELTA",
    "sigma": "dptally calibrate PLAN --epsilon EPSILON --delta DELTA",
    "tradeoff": "dptally plot tradeoff PLAN",
    "web": "dptally serve",
    "page": "dptally serve",
    "prove": 'dptally check "epsilon EPSILON at delta DELTA: PLAN" --proof FILE',
    "spend": "dptally ledger spend DATASET PLAN",
}


class Suggesting(click.Group):
    """A group that answers an unknown name with the nearest of its commands."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            raise click.UsageError(f"no command {args[0][:40]!r}; {self._hint(ctx, args[0][:40], names)}")
        return super().resolve_command(ctx, args)

    def _hint(self, ctx: click.Context, word: str, names: list[str]) -> str:
        near = get_close_matches(word, names, 1)
        if ctx.parent is None and word in ELSEWHERE:
            return f"write: {ELSEWHERE[word]}"
        return f"did you mean {near[0]}?" if near else f"see {ctx.command_path} --help"
