"""``dptally epsilon`` and ``dptally delta``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dptally.cli.meanings import assumptions, meaning, meaning_lines
from dptally.cli.output import (
    both_ends,
    delta_option,
    emit,
    epsilon_option,
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
from dptally.interval import Interval
from dptally.mechanisms import Mechanism
from dptally.numerics.shown import shown_up

if TYPE_CHECKING:
    from dptally.answers.compare import Comparison

__all__ = ["delta", "epsilon", "print_epsilon"]


@click.command()
@plan_argument
@delta_option()
@click.option("--compare", "comparing", is_flag=True, help="Add the table of all frameworks.")
@click.option("--brief", is_flag=True, help="Only the answer, in at most three lines.")
@click.option("--budget", type=float, help="Exit with 1 if epsilon is above this.")
@json_option
def epsilon(plan: Plan, delta: float, comparing: bool, brief: bool, budget: float | None, as_json: bool) -> None:
    """The smallest epsilon of PLAN at --delta, rounded up, with both certified ends.

    \b
    Examples:
      dptally epsilon "1000 * poisson(gaussian(1.0), 0.01)" --delta 1e-5
      dptally epsilon "50*laplace(scale=5) + 10*gaussian(sigma=10)" --delta 1e-15 --compare
    """
    print_epsilon(plan.mechanism, delta, comparing, brief, budget, as_json)


def print_epsilon(
    plan: Mechanism, delta: float, comparing: bool, brief: bool, budget: float | None, as_json: bool
) -> None:
    """The answer first; the slower meaning after it."""
    _checked(budget)
    with working("accounting"):
        box = plan.epsilon_interval(delta)
    over = budget is not None and box.upper > budget
    if as_json:
        out: dict[str, Any] = {"plan": repr(plan), "delta": delta, "epsilon": box}
        out |= {} if budget is None else {"budget": budget, "within_budget": not over}
        out |= {} if brief else {"meaning": meaning(plan)}
        out |= {"comparison": _compared(plan, delta).to_dict()["rows"]} if comparing else {}
        emit(out | {"assumptions": assumptions(plan)})
    else:
        _print_box("epsilon", box, f"at delta = {delta:g}", budget)
        _print_rest(plan, brief)
        if comparing and not brief:
            with working("comparing"):
                found = _compared(plan, delta)
            heading("every framework")
            table(
                [("framework", "left"), ("epsilon", "right"), ("order", "right"), ("theorem", "left")],
                [_row(row) for row in found.rows],
            )
    click.get_current_context().exit(1 if over else 0)


def _compared(plan: Mechanism, delta: float) -> Comparison:
    from dptally.answers.compare import compare  # loads every framework: only when it is asked for

    return compare(plan, delta)


def _row(row: Any) -> tuple[str, str, str, str]:
    if row.epsilon is None:
        return row.framework, "-", "-", f"no answer: {row.reason}"
    return (
        row.framework,
        shown_up(row.epsilon, 8),
        "-" if row.order is None else f"{row.order:.6g}",
        row.theorem,
    )


@click.command()
@plan_argument
@epsilon_option()
@click.option("--brief", is_flag=True, help="Only the answer, in at most three lines.")
@click.option("--budget", type=float, help="Exit with 1 if delta is above this.")
@json_option
def delta(plan: Plan, epsilon: float, brief: bool, budget: float | None, as_json: bool) -> None:
    """The smallest delta of PLAN at --epsilon, rounded up, with both certified ends.

    \b
    Example:
      dptally delta "10 * laplace(scale=5)" --epsilon 1
    """
    _checked(budget)
    with working("accounting"):
        box = plan.mechanism.delta_interval(epsilon)
    over = budget is not None and box.upper > budget
    if as_json:
        out = {"plan": repr(plan.mechanism), "epsilon": epsilon, "delta": box}
        out |= {} if budget is None else {"budget": budget, "within_budget": not over}
        out |= {} if brief else {"meaning": meaning(plan.mechanism)}
        emit(out | {"assumptions": assumptions(plan.mechanism)})
    else:
        _print_box("delta", box, f"at epsilon = {epsilon:g}", budget)
        _print_rest(plan.mechanism, brief)
    click.get_current_context().exit(1 if over else 0)


def _checked(budget: float | None) -> None:
    if budget is not None and not budget >= 0:
        raise InvalidArgument("budget", "at least 0", budget)


def _print_box(name: str, box: Interval, where: str, budget: float | None) -> None:
    title(f"{name} = {shown_up(box.upper, 8)} {where}")
    click.echo(f"  certified: {both_ends(name, box)}")  # these lines are all of --brief: none is folded
    if budget is not None:
        click.echo(f"  {'OVER the budget' if box.upper > budget else 'within the budget'} of {budget:g}")


def _print_rest(plan: Mechanism, brief: bool) -> None:
    if brief:
        return
    heading("what it means")
    with working("asking what it means"):
        lines = meaning_lines(meaning(plan))
    facts(lines)
    heading("assumptions")
    facts(assumptions(plan))
