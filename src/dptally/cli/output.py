"""What the commands share: the options, and how answers are printed."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import Any, TypeVar

import click

from dptally.cli.plans import PLAN
from dptally.interval import Interval
from dptally.numerics.shown import shown_down, shown_up

__all__ = [
    "both_ends",
    "delta_option",
    "emit",
    "epsilon_option",
    "facts",
    "heading",
    "json_option",
    "plan_argument",
    "table",
    "title",
    "working",
]

_NARROW = 60  # columns, below which a table that would break words becomes a list

F = TypeVar("F", bound=Callable[..., Any])


def plan_argument(command: F) -> F:
    return click.argument("plan", type=PLAN)(command)


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def delta_option(required: bool = True) -> Callable[[F], F]:
    return click.option("--delta", type=float, required=required, help="The delta, in [0, 1].")


def epsilon_option(required: bool = True) -> Callable[[F], F]:
    return click.option("--epsilon", type=float, required=required, help="The epsilon, at least 0.")


def emit(value: object) -> None:
    """JSON; infinity is the string "inf", as in plan documents."""
    click.echo(json.dumps(_plain(value), indent=2, allow_nan=False))


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, Interval):
        return {"lower": _plain(value.lower), "upper": _plain(value.upper), "method": value.method}
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def title(text: str) -> None:
    """The answer itself."""
    click.secho(text, bold=True)


def heading(text: str) -> None:
    click.echo()
    click.secho(text, fg="cyan")


def facts(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(f"  {line}")


def both_ends(name: str, box: Interval, digits: int = 10) -> str:
    method = f"  ({box.method})" if box.method else ""
    return f"{shown_down(box.lower, digits)} <= {name} <= {shown_up(box.upper, digits)}{method}"


def table(columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]]) -> None:
    """A table by rich; a column is (title, "left" or "right"). Where a narrow terminal would break words, a list."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    rows = [tuple(row) for row in rows]
    console = Console(highlight=False, markup=False)
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        console = Console(highlight=False, markup=False, width=140)
    names = [name for name, _ in columns]
    if console.width < _NARROW and _width(names, rows) > console.width:
        click.echo("\n".join(_listed(names, rows, console.width)))
        return
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, side in columns:
        made.add_column(name, justify="right" if side == "right" else "left", overflow="fold", no_wrap=side == "right")
    for row in rows:
        made.add_row(*row)
    console.print(made)


def _width(names: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Of a table without broken words."""
    columns = zip(names, *rows, strict=True)
    words = [max(len(word) for cell in column for word in cell.split() or [""]) for column in columns]
    return sum(words) + 3 * (len(words) - 1) + 2  # between columns, and at the edges


def _listed(names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Each row as its first cell and, below it, the others with their names."""
    for first, *others in rows:
        yield from wrap(first, width) or [""]
        for name, cell in zip(names[1:], others, strict=True):
            yield from wrap(f"{name}: {cell}" if name else cell, width, initial_indent="  ", subsequent_indent="    ")


@contextmanager
def working(text: str) -> Iterator[None]:
    """A moving sign on a terminal's stderr while something may take longer than a second."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


@contextmanager
def progress(text: str, share: Callable[[], float | None]) -> Iterator[None]:
    """A bar on a terminal's stderr; ``share`` says how much is done, or None where nobody knows."""
    if not sys.stderr.isatty():
        yield
        return
    import threading

    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as shown:
        task, ended = shown.add_task(text, total=None), threading.Event()

        def follow() -> None:
            while not ended.wait(0.1):
                done = share()
                if done is not None:
                    shown.update(task, total=1.0, completed=done)

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        try:
            yield
        finally:
            ended.set()
            follower.join()
