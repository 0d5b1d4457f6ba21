"""``dptally audit``: try to refute what an implementation claims."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dptally.cli.output import emit, facts, json_option, title
from dptally.cli.plans import PLAN, Plan
from dptally.documents import read_json
from dptally.errors import InvalidArgument

__all__ = ["audit"]

_LONGEST = 1 << 24  # characters of a dataset on the command line


@click.command()
@click.argument("target", required=False)
@click.option("--claim", type=PLAN, help="What TARGET claims, as a plan.")
@click.option("--d0", default="0", show_default=True, help="The first dataset, as JSON.")
@click.option("--d1", default="1", show_default=True, help="The neighbouring dataset, as JSON.")
@click.option("--samples", type=click.IntRange(8), default=20_000, show_default=True, help="Runs on each.")
@click.option("--delta", type=float, help="Audit epsilon at this delta.")
@click.option("--self", "own", is_flag=True, help="Audit dptally's own samplers and releases instead.")
@click.option("--only", default="", help="With --self: only the cases whose name contains this.")
@json_option
def audit(
    target: str | None,
    claim: Plan | None,
    d0: str,
    d1: str,
    samples: int,
    delta: float | None,
    own: bool,
    only: str,
    as_json: bool,
) -> None:
    """Run TARGET (module:function of one dataset) often on two neighbouring datasets, and try to refute
    --claim. Exit code 1 if it is refuted.

    An audit can refute a claim; it can never prove one. TARGET's module is imported, from the current folder
    too: audit only code that you trust.

    \b
    Examples:
      dptally audit mymodule:noisy_count --claim "pure(1.0)" --d0 "[1, 2]" --d1 "[1, 2, 3]"
      dptally audit --self --only noise.discrete_laplace
    """
    if own == (target is not None) or (target is not None and claim is None):
        raise click.UsageError("say TARGET and --claim, or --self")
    if target is not None and claim is not None:
        from dptally import audit as auditing

        run = _function(target)
        pair = _data("d0", d0), _data("d1", d1)
        with _progress(target) as moved:
            results = [
                (
                    target,
                    auditing.run(run, *pair, claim.mechanism, samples=samples, delta=delta, progress=moved),
                )
            ]
    else:
        results = _own(only)
    if as_json:
        emit([_plain(name, result) for name, result in results])
    else:
        for name, result in results:
            title(f"{name}: {result.verdict}")
            facts([str(result)])
    click.get_current_context().exit(1 if any(result.refuted for _, result in results) else 0)


def _own(only: str) -> list[tuple[str, Any]]:
    from dptally.audit import suite

    cases = [case for case in suite() if only in case.name]
    if not cases:
        raise InvalidArgument("only", "a part of the name of some case", only)
    results = []
    for case in cases:
        with _progress(case.name) as moved:
            results.append((case.name, case.run(progress=moved)))
    return results


def _plain(name: str, result: Any) -> dict[str, object]:
    kept = ("verdict", "quantity", "delta", "lower", "claimed", "confidence", "samples", "event")
    return {"target": name, "claim": repr(result.claim), **{key: getattr(result, key) for key in kept}}


def _data(name: str, text: str) -> Any:
    return read_json(text, name, longest=_LONGEST)


def _function(target: str) -> Callable[..., Any]:
    module, _, name = target.partition(":")
    if not module or not name.isidentifier():
        raise InvalidArgument("target", "of the form module:function", target)
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidArgument("target", "a function that can be imported", target, str(error)) from None
    if not callable(found):
        raise InvalidArgument("target", "a function", target)

    def guarded(data: Any) -> Any:
        try:
            return found(data)
        except Exception as error:  # whatever foreign code raises; exit code 1 would mean "refuted"
            said = f"it raised {type(error).__name__}: {error}"
            raise InvalidArgument("target", "a function that runs on both datasets", target, said) from error

    return guarded


@contextmanager
def _progress(name: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on a terminal's stderr."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
