"""``dptally check``: a second opinion on somebody's claim."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dptally.cli.output import emit, heading, json_option, prose, table, title, working
from dptally.errors import InvalidArgument

if TYPE_CHECKING:
    from dptally.opinion import Verdict
    from dptally.opinion.page import Page

__all__ = ["check"]

_CODES = {"true": 0, "loose": 0, "refuted": 1, "undetermined": 3}
_FORMS = {".html": "html", ".htm": "html", ".json": "json"}


@click.command()
@click.argument("claim", required=False)
@click.option("--epsilon", type=float, help="The claimed epsilon, where CLAIM only describes a run.")
@click.option("--delta", type=float, help="The claimed delta, where CLAIM only describes a run.")
@click.option("--brief", is_flag=True, help="Only the verdict, in at most three lines.")
@click.option("--samplers", is_flag=True, help="Add the same run under every sampler (may take a minute).")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="A page: .html, .json or text.")
@click.option("--proof", type=click.Path(dir_okay=False, path_type=Path), help="Write a proof file for others.")
@click.option("--verify", type=click.Path(dir_okay=False, path_type=Path), help="Run a proof file again instead.")
@json_option
@click.pass_context
def check(
    ctx: click.Context,
    claim: str | None,
    epsilon: float | None,
    delta: float | None,
    brief: bool,
    samplers: bool,
    output: Path | None,
    proof: Path | None,
    verify: Path | None,
    as_json: bool,
) -> None:
    """Is CLAIM true? A sentence, - for the standard input, or a file.

    A file may be a plan, a checkpoint, a registry YAML, a CSV of claims, JSON, or a printed statement.

    Exit codes: 0 true (or true but loose), 1 refuted, 3 not determined, 2 the claim cannot be read.

    \b
    Examples:
      dptally check "epsilon 1.83 at delta 1e-5: DP-SGD noise 1, rate 0.01, 1000 steps"
      dptally check "epsilon 10 at delta 0: 50 * laplace(scale=5)" --proof proof.json
    """
    if (claim is None) == (verify is None):
        raise click.UsageError("give a CLAIM, or --verify and a proof file")
    if claim is None:
        ctx.exit(_verified(verify, as_json))
    from dptally.opinion import check_all

    claim = sys.stdin.read(1_000_001) if claim == "-" else claim
    with working("judging"):
        verdicts = check_all(claim, epsilon, delta)
    if proof is not None:
        if len(verdicts) != 1:
            raise InvalidArgument("proof", "of one claim", f"{len(verdicts)} claims")
        verdicts[0].save_proof(proof)
    with working("writing"):
        _shown(verdicts, brief, samplers, output, as_json)
    ctx.exit(max(_CODES[verdict.status] for verdict in verdicts) if not _refuted(verdicts) else 1)


def _refuted(verdicts: tuple[Verdict, ...]) -> bool:
    return any(verdict.status == "refuted" for verdict in verdicts)


def _shown(verdicts: tuple[Verdict, ...], brief: bool, samplers: bool, output: Path | None, as_json: bool) -> None:
    if len(verdicts) != 1:
        if output is not None:
            raise InvalidArgument("output", "for one claim", f"{len(verdicts)} claims")
        emit(_several(verdicts)) if as_json else _table(verdicts)
        return
    one = verdicts[0]
    if output is not None:
        _write(one.page(samplers), output)
    if brief:
        _shown_briefly(one, as_json)
        return
    page = one.page(samplers)
    if as_json:
        emit(page.to_dict())
        return
    title(one.headline)
    prose(page.to_text().split("\n", 1)[1])


def _shown_briefly(verdict: Verdict, as_json: bool) -> None:
    if as_json:
        emit(verdict.to_dict())
        return
    title(verdict.headline)
    click.echo(f"  {verdict.reasons[0]}")


def _several(verdicts: tuple[Verdict, ...]) -> object:
    worst = "refuted" if _refuted(verdicts) else max((v.status for v in verdicts), key=_CODES.__getitem__)
    return {"status": worst, "claims": [verdict.to_dict() for verdict in verdicts]}


def _write(page: Page, output: Path) -> None:
    import json

    form = _FORMS.get(output.suffix.lower(), "text")
    text = page.to_html() if form == "html" else page.to_text()
    if form == "json":
        text = json.dumps(page.to_dict(), indent=2, allow_nan=False) + "\n"
    output.write_text(text, encoding="utf-8")
    click.echo(f"written to {output}", err=True)


def _table(verdicts: tuple[Verdict, ...]) -> None:
    from dptally.numerics.shown import shown_up
    from dptally.opinion.verdict import STATUSES

    heading(f"{len(verdicts)} claims")
    rows = [
        (
            v.claim.source,
            f"{v.claimed.epsilon:g}",
            f"{v.claimed.delta:g}",
            shown_up(v.interval.upper),
            STATUSES[v.status],
        )
        for v in verdicts
    ]
    columns = [
        ("claim", "left"),
        ("epsilon", "right"),
        ("delta", "right"),
        ("certified, at most", "right"),
        ("", "left"),
    ]
    table(columns, rows)


def _verified(path: Path | None, as_json: bool) -> int:
    from dptally.opinion import verify

    if path is None:
        raise InvalidArgument("verify", "a proof file", path)
    with working("running the proof again"):
        found = verify(path)
    if as_json:
        emit(found.to_dict())
    else:
        title(found.text)
    return 0 if found.confirmed else 1
