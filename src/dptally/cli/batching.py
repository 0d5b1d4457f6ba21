"""``dptally batching``: what each way of drawing batches costs."""

from __future__ import annotations

import click

from dptally.cli.output import delta_option, emit, json_option, prose, table, title, working
from dptally.mechanisms import Adjacency
from dptally.numerics.shown import shown_down, shown_up

__all__ = ["batching"]

_NAMES = ("poisson", "truncated-poisson", "balls-in-bins", "fixed-size", "shuffled-batches", "cyclic")


@click.command()
@click.option("--noise-multiplier", type=float, required=True, help="Noise per unit of the clipping norm.")
@click.option("--dataset-size", type=int, required=True, help="The number of records.")
@click.option("--batch-size", type=int, required=True, help="The (expected) batch size.")
@click.option("--epochs", type=int, required=True, help="Passes over the data.")
@delta_option(required=False)
@click.option(
    "--adjacency",
    type=click.Choice([a.value for a in Adjacency]),
    default="add-remove",
    show_default=True,
    help="Which datasets are neighbours.",
)
@click.option("--sampler", "samplers", type=click.Choice(_NAMES), multiple=True, help="Only these (may be repeated).")
@click.option("--out", type=click.Path(dir_okay=False), help="Draw the table to this file (PNG or SVG).")
@json_option
def batching(
    noise_multiplier: float,
    dataset_size: int,
    batch_size: int,
    epochs: int,
    delta: float | None,
    adjacency: str,
    samplers: tuple[str, ...],
    out: str | None,
    as_json: bool,
) -> None:
    """One table: what each way of drawing batches costs, the cheapest first, and which loader to use.

    Without --delta, one over the number of records.

    \b
    Example:
      dptally batching --noise-multiplier 0.8 --dataset-size 60000 --batch-size 600 --epochs 1 --delta 1e-5
    """
    from dptally.answers.batching import NAMES
    from dptally.answers.batching import batching as compared

    at = 1.0 / max(dataset_size, 1) if delta is None else delta
    with working("accounting for every way of batching"):
        rows = compared(
            noise_multiplier, dataset_size, batch_size, epochs, at, Adjacency(adjacency), samplers or _NAMES
        )
    if out is not None:
        from dptally.report.batching import plot_batching

        axes = plot_batching(rows)
        axes.figure.savefig(out, bbox_inches="tight")
    if as_json:
        emit({"delta": at, "adjacency": adjacency, "rows": [row.to_dict() for row in rows]})
        return
    title(f"epsilon at delta = {at:g}, noise multiplier {noise_multiplier:g}, {epochs} epochs")
    shown = []
    for row in rows:
        box = row.epsilon
        ends = ("-", row.reason) if box is None else (shown_down(box.lower, 6), shown_up(box.upper, 6))
        shown.append((row.name, *ends, NAMES[row.name]))
    table((("batches", "left"), ("at least", "right"), ("at most", "right"), ("how", "left")), shown)
    prose("run what is accounted: dptally.release.batches(sampler, dataset_size, epochs) draws them")
