"""``dptally calibrate`` and ``dptally curve``: the right noise, and the right moment to stop."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from dptally.cli.language import template
from dptally.cli.meanings import assumptions
from dptally.cli.output import (
    both_ends,
    delta_option,
    emit,
    facts,
    heading,
    json_option,
    plan_argument,
    table,
    title,
    working,
)
from dptally.cli.plans import Plan
from dptally.errors import InvalidArgument
from dptally.numerics.shown import shown_up

__all__ = ["calibrate", "curve"]


@click.command()
@click.argument("plan")
@click.option("--epsilon", type=float, help="Target: this epsilon, with --delta.")
@click.option("--delta", type=float, help="Target: at this delta, with --epsilon.")
@click.option("--mu", type=float, help="Target: mu-Gaussian-DP.")
@click.option("--tpr", type=float, help="Target: an attacker's true-positive rate, with --fpr.")
@click.option("--fpr", type=float, help="Target: at this false-positive rate, with --tpr.")
@click.option("--advantage", type=float, help="Target: an attacker's membership advantage.")
@click.option("--rho", type=float, help="Target: rho-zero-concentrated DP.")
@click.option("--renyi", nargs=2, type=float, metavar="ORDER EPSILON", help="Target: Renyi DP of this order.")
@click.option("--alpha", nargs=2, type=float, metavar="ORDER EPSILON", help="Target: alpha-divergence DP.")
@click.option("--low", type=float, help="Lower end of the search.")
@click.option("--high", type=float, help="Look for no larger value.")
@json_option
def calibrate(plan: str, as_json: bool, **target: Any) -> None:
    """The value of the one open name in PLAN (in UPPER CASE) that is guaranteed to meet the target.

    The smallest such value where more of it means more privacy (noise), the largest where less does (rates,
    steps). Exit code 1 if no value meets the target.

    \b
    Example:
      dptally calibrate "1000*poisson(gaussian(SIGMA), 0.01)" --epsilon 1 --delta 1e-6
    """
    import dptally

    make = template(plan)
    given = {name: value for name, value in target.items() if value is not None}
    with working(f"looking for {make.name}"):
        value = dptally.calibrate(make, **given)
    found = make(value)
    box = found.epsilon_interval(given["delta"]) if "delta" in given else None
    if as_json:
        out: dict[str, Any] = {"plan": plan, "name": make.name, "value": value, "target": given}
        out |= {"epsilon": box} if box is not None else {}
        emit(out | {"calibrated": repr(found), "assumptions": assumptions(found)})
        return
    title(f"{make.name} = {value!r}")
    facts([f"certainly meets {', '.join(f'{name} = {_said(value)}' for name, value in given.items())}"])
    if box is not None:
        facts([f"certified: {both_ends('epsilon', box)} at delta = {given['delta']:g}"])
    heading("calibrated plan")
    facts([repr(found)])
    heading("assumptions")
    facts(assumptions(found))


def _said(value: Any) -> str:
    return ", ".join(f"{one:g}" for one in value) if isinstance(value, tuple) else f"{value:g}"


@click.command()
@plan_argument
@click.option("--steps", default="1..1000", show_default=True, metavar="FROM..TO", help="How often PLAN is run.")
@delta_option()
@click.option("--budget", type=float, help="A budget for epsilon: says after which step to stop.")
@click.option("--points", type=click.IntRange(2, 2000), default=12, show_default=True, help="Rows of the table.")
@click.option("--plot", "output", type=click.Path(dir_okay=False, path_type=Path), help="A picture too.")
@json_option
def curve(
    plan: Plan,
    steps: str,
    delta: float,
    budget: float | None,
    points: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """Epsilon after every number of runs of PLAN, and where a budget stops it (then exit code 1).

    \b
    Example:
      dptally curve "poisson(gaussian(1.0), 0.01)" --steps 1..20000 --delta 1e-5 --budget 5
    """
    from dptally.report.steps import epsilon_curve

    first, last = _range(steps)
    with working("accounting"):
        asked = [first + (last - first) * i // (points - 1) for i in range(points)]
        found = epsilon_curve(plan.mechanism, asked, delta, budget)
    if output is not None:
        from dptally.report import plot_steps, saved

        with working("drawing"):
            saved(plot_steps(plan.mechanism, last, delta, budget), output)
    if as_json:
        rows = [{"steps": n, "epsilon": e} for n, e in zip(found.steps, found.epsilons, strict=True)]
        out: dict[str, Any] = {"plan": repr(plan.mechanism), "delta": delta, "curve": rows}
        out |= {} if budget is None else {"budget": budget, "stop_after": found.stop}
        emit(out | {"assumptions": assumptions(plan.mechanism)})
    else:
        title(f"epsilon = {shown_up(found.epsilons[-1], 8)} after {last} steps, at delta = {delta:g}")
        if budget is not None:
            facts([_stopping(found.stop, last, budget)])
        if output is not None:
            facts([f"drawn in {output}"])
        table(
            [("steps", "right"), ("epsilon at most", "right")],
            [(str(n), shown_up(e, 8)) for n, e in zip(found.steps, found.epsilons, strict=True)],
        )
        facts(assumptions(plan.mechanism))
    click.get_current_context().exit(1 if budget is not None and found.epsilons[-1] > budget else 0)


def _stopping(stop: int | None, last: int, budget: float) -> str:
    if stop == last:
        return f"all {last} steps are within the budget of {budget:g}"
    return (
        f"stop after step {stop}: one more would pass the budget of {budget:g}"
        if stop
        else f"the first step passes the budget of {budget:g}"
    )


def _range(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(?:(\d{1,15})\.\.)?(\d{1,15})", text)
    first, last = (int(match[1] or 1), int(match[2])) if match else (0, 0)
    if not 1 <= first <= last:
        raise InvalidArgument("steps", "a range such as 1..20000", text)
    return first, last
