"""``dptally dpsgd``: a training run from the numbers that a training script knows."""

from __future__ import annotations

import math

import click

from dptally import checks
from dptally.cli.answers import print_epsilon
from dptally.cli.output import delta_option, json_option
from dptally.errors import InvalidArgument
from dptally.mechanisms import Adjacency, Mechanism
from dptally.mechanisms import dpsgd as made

__all__ = ["dpsgd"]


@click.command()
@click.option("--noise-multiplier", type=float, required=True, help="Noise per unit of the clipping norm.")
@click.option("--sample-rate", type=float, help="The probability with which a record joins a step.")
@click.option("--batch-size", type=int, help="The expected batch size, with --dataset-size.")
@click.option("--dataset-size", type=int, help="The number of records.")
@click.option("--steps", type=int, help="The number of steps.")
@click.option("--epochs", type=float, help="Passes over the data: steps = epochs / sample rate, rounded up.")
@click.option(
    "--adjacency",
    type=click.Choice([a.value for a in Adjacency]),
    default="add-remove",
    show_default=True,
    help="Which datasets are neighbours.",
)
@click.option(
    "--sampler",
    type=click.Choice(["poisson", "truncated-poisson", "balls-in-bins", "fixed-size", "shuffled-batches", "cyclic"]),
    default="poisson",
    show_default=True,
    help="How batches are drawn; all but poisson need --batch-size and --dataset-size.",
)
@delta_option()
@click.option("--compare", "comparing", is_flag=True, help="Add the table of all frameworks.")
@click.option("--brief", is_flag=True, help="Only the answer, in at most three lines.")
@click.option("--budget", type=float, help="Exit with 1 if epsilon is above this.")
@json_option
def dpsgd(
    noise_multiplier: float,
    sample_rate: float | None,
    batch_size: int | None,
    dataset_size: int | None,
    steps: int | None,
    epochs: float | None,
    adjacency: str,
    sampler: str,
    delta: float,
    comparing: bool,
    brief: bool,
    budget: float | None,
    as_json: bool,
) -> None:
    """Epsilon of a DP-SGD run: batches, clipping, Gaussian noise.

    Say the sampling once (--sample-rate, or --batch-size and --dataset-size) and the length once (--steps or
    --epochs); what is said twice is refused.

    \b
    Examples:
      dptally dpsgd --noise-multiplier 1.0 --sample-rate 0.01 --steps 1000 --delta 1e-5
      dptally dpsgd --noise-multiplier 1.1 --batch-size 256 --dataset-size 60000 --epochs 15 --delta 1e-5
    """
    if sampler != "poisson":
        plan = _batched(noise_multiplier, sampler, batch_size, dataset_size, steps, epochs, Adjacency(adjacency))
        print_epsilon(plan, delta, comparing, brief, budget, as_json)
        return
    rate = _rate(sample_rate, batch_size, dataset_size)
    plan = made(noise_multiplier, rate, _steps(steps, epochs, rate), Adjacency(adjacency))
    print_epsilon(plan, delta, comparing, brief, budget, as_json)


def _batched(
    noise_multiplier: float,
    sampler: str,
    batch_size: int | None,
    dataset_size: int | None,
    steps: int | None,
    epochs: float | None,
    adjacency: Adjacency,
) -> Mechanism:
    """A run on batches that are not Poisson."""
    from dptally.answers.batching import named_sampler
    from dptally.mechanisms import training

    if batch_size is None or dataset_size is None:
        raise click.UsageError(f"--sampler {sampler} needs --batch-size and --dataset-size")
    if (steps is None) == (epochs is None):
        raise click.UsageError("say the length once: --steps or --epochs")
    drawn = named_sampler(sampler, dataset_size, batch_size)
    return training(noise_multiplier, drawn, steps, epochs, dataset_size, batch_size, adjacency)


def _rate(sample_rate: float | None, batch_size: int | None, dataset_size: int | None) -> float:
    sized = batch_size is not None or dataset_size is not None
    if (sample_rate is not None) == sized:
        raise click.UsageError("say the sampling once: --sample-rate, or --batch-size with --dataset-size")
    if sample_rate is not None:
        return checks.probability("sample-rate", sample_rate)
    if batch_size is None or dataset_size is None:
        raise click.UsageError("--batch-size and --dataset-size go together")
    batch, records = checks.count("batch-size", batch_size, 1), checks.count("dataset-size", dataset_size, 1)
    if batch > records:
        raise InvalidArgument("batch-size", f"at most the dataset size {records}", batch)
    return batch / records


def _steps(steps: int | None, epochs: float | None, rate: float) -> int:
    if (steps is None) == (epochs is None):
        raise click.UsageError("say the length once: --steps or --epochs")
    if steps is not None:
        return checks.count("steps", steps)
    passes = checks.positive("epochs", epochs)
    if rate == 0:
        raise InvalidArgument("sample-rate", "positive when the length is given in epochs", rate)
    return math.ceil(passes / rate)
