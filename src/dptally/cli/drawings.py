"""``dptally plot`` and ``dptally card``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dptally.cli.files import by_ending
from dptally.cli.output import emit, json_option, plan_argument, working
from dptally.cli.plans import Plan, load
from dptally.errors import InvalidArgument

__all__ = ["card", "plot"]

Options = dict[str, Any]


def _points(options: Options) -> Options:
    return {} if options["points"] is None else {"points": options["points"]}


def _steps(text: str, options: Options) -> Any:
    from dptally.report import plot_steps

    steps = options["steps"] or 1000
    return plot_steps(load(text).mechanism, steps, options["delta"], options["budget"], **_points(options))


def _profile(text: str, options: Options) -> Any:
    from dptally.report import plot_profile

    del options
    return plot_profile(load(text).mechanism)


def _tradeoff(text: str, options: Options) -> Any:
    from dptally.report import plot_tradeoff

    return plot_tradeoff(load(text).mechanism, **_points(options))


def _renyi(text: str, options: Options) -> Any:
    from dptally.report import plot_renyi

    return plot_renyi(load(text).mechanism, options["delta"], **_points(options))


def _gdpt(text: str, options: Options) -> Any:
    from dptally.report import plot_gdpt

    return plot_gdpt(load(text).mechanism, options["head"], options["steps"] or 20, **_points(options))


def _loss(text: str, options: Options) -> Any:
    from dptally.report import plot_loss

    return plot_loss(load(text).mechanism, **_points(options))


def _noise(text: str, options: Options) -> Any:
    from dptally.cli.language import template
    from dptally.report import plot_noise

    make = template(text)
    return plot_noise(make, options["delta"], name=make.name)


def _compare(text: str, options: Options) -> Any:
    from dptally.report import plot_compare

    return plot_compare(load(text).mechanism, options["delta"])


PICTURES: dict[str, Callable[[str, Options], Any]] = {
    "steps": _steps,
    "profile": _profile,
    "tradeoff": _tradeoff,
    "renyi": _renyi,
    "gdpt": _gdpt,
    "loss": _loss,
    "noise": _noise,
    "compare": _compare,
}


@click.command()
@click.argument("picture", type=click.Choice(list(PICTURES)))
@click.argument("plan")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="A .png or .svg file.")
@click.option("--delta", type=float, default=1e-5, show_default=True, help="For steps, renyi, noise and compare.")
@click.option("--steps", type=click.IntRange(1), help="For steps (1000) and for the stairs of gdpt (20).")
@click.option("--budget", type=float, help="For steps: a budget line and the stopping point.")
@click.option("--head", type=float, help="For gdpt: the largest epsilon.")
@click.option("--points", type=click.IntRange(4, 5000), help="How many points are asked for.")
@json_option
def plot(picture: str, plan: str, output: Path | None, as_json: bool, **options: Any) -> None:
    """Draw a PICTURE of PLAN, by default in dptally-PICTURE.png. For noise, PLAN has one open value.

    \b
    Examples:
      dptally plot compare "50*laplace(scale=5) + 10*gaussian(sigma=10)" --delta 1e-15 -o bars.svg
      dptally plot tradeoff "1000 * poisson(gaussian(1.0), 0.01)"
    """
    from dptally.report.figure import saved

    path = output or Path(f"dptally-{picture}.png")
    if path.suffix.lower() not in (".png", ".svg"):
        raise InvalidArgument("output", "a file that ends in .png or .svg", str(path))
    with working("drawing"):
        saved(PICTURES[picture](plan, options), path)
    if as_json:
        emit({"picture": picture, "plan": plan, "file": str(path)})
    else:
        click.echo(f"drawn in {path}")


@click.command()
@plan_argument
@click.option("--delta", "deltas", type=float, multiple=True, help="A delta (may be repeated).")
@click.option("--title", default="", help="The title of the page.")
@click.option("--unit", default="", help='What one record stands for, such as "one patient".')
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "html", "json"]),
    help="By default as --output ends, or markdown.",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="A file instead of the screen.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def card(
    plan: Plan,
    deltas: tuple[float, ...],
    title: str,
    unit: str,
    form: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """One page about PLAN: unit, adjacency, sampling, mechanisms, epsilon, mu, rho, risk, theorems, citation.

    \b
    Example:
      dptally card "50 * laplace(scale=20)" --unit "one patient" --delta 1e-9 --output card.html
    """
    from dptally.report.card import DELTAS
    from dptally.report.card import card as made

    with working("accounting"):
        found = made(plan.mechanism, deltas or DELTAS, title or plan.title, unit or plan.unit)
    kind = "json" if as_json else form or by_ending(output)
    text = {"markdown": found.to_markdown, "html": found.to_html, "json": found.to_json}[kind]()
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
        click.echo(f"written to {output}", err=True)
