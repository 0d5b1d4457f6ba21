"""What the commands share: the options, and how answers are printed."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size
from textwrap import TextWrapper, wrap
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
    "prose",
    "table",
    "title",
    "working",
]

_WIDE = 100  # columns, from which lines of words are left as they are

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
        prose(f"  {line}")


def prose(text: str) -> None:
    """Lines of words; on a narrow terminal none is broken inside a word, and what goes on is indented further."""
    room = _room()
    for line in text.splitlines():
        if room is None or len(line) <= room:
            click.echo(line)
            continue
        start = " " * (len(line) - len(line.lstrip()))
        whole = TextWrapper(
            room, initial_indent=start, subsequent_indent=f"{start}  ", break_long_words=False, break_on_hyphens=False
        )
        click.echo(whole.fill(line.strip()))


def _room() -> int | None:
    """The columns of a narrow terminal; None where lines are as long as they are: wide terminals, files and pipes."""
    said = os.environ.get("COLUMNS", "")
    if not said.isdigit() and not sys.stdout.isatty():
        return None
    width = get_terminal_size().columns  # which COLUMNS overrules
    return width if 20 <= width < _WIDE else None


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
    room = console.width - 3 * (len(names) - 1) - 2  # beside what stands between columns and at the edges
    widths = _widths(list(zip(names, *rows, strict=True)), room)
    if widths is None:
        click.echo("\n".join(_listed(names, rows, console.width)))
        return
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for (name, side), width in zip(columns, widths, strict=True):
        made.add_column(name, justify="right" if side == "right" else "left", overflow="fold", width=width)
    for row in rows:
        made.add_row(*row)
    console.print(made)


def _widths(columns: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """Of columns that break no word, the widest narrowed first; None where there is no room for them."""
    least = [max(len(word) for cell in cells for word in _whole(cell)) for cells in columns]
    widths = [max(len(line) for cell in cells for line in cell.splitlines() or [""]) for cells in columns]
    if sum(least) > room:
        return None
    while sum(widths) > room:
        spare = [width - word for width, word in zip(widths, least, strict=True)]
        widths[spare.index(max(spare))] -= 1
    return widths


def _whole(cell: str) -> list[str]:
    """What may not be broken apart; rich breaks at spaces that say so too, hence all of a cell that has one."""
    return [cell] if "\N{NO-BREAK SPACE}" in cell else cell.split() or [""]


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
