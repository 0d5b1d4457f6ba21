"""``dptally convert`` and ``dptally gdp``: one guarantee in the words of another definition."""

from __future__ import annotations

import json
import math

import click

from dptally.answers.convert import TARGETS
from dptally.answers.convert import convert as converted
from dptally.cli.meanings import assumptions
from dptally.cli.output import (
    both_ends,
    delta_option,
    emit,
    epsilon_option,
    facts,
    heading,
    json_option,
    plan_argument,
    title,
    working,
)
from dptally.cli.plans import Plan
from dptally.mechanisms import to_json
from dptally.numerics.decimals import shown_up

__all__ = ["convert", "gdp"]


@click.command()
@plan_argument
@click.option("--to", type=click.Choice(list(TARGETS)), required=True, help="The other definition.")
@delta_option(required=False)
@epsilon_option(required=False)
@click.option("--order", type=float, help="The order, for renyi and alpha.")
@json_option
def convert(
    plan: Plan, to: str, delta: float | None, epsilon: float | None, order: float | None, as_json: bool
) -> None:
    """The strongest guarantee of another definition that PLAN implies, rounded to the safe side.

    \b
    Example:
      dptally convert "zcdp(0.5)" --to approx --delta 1e-6
    """
    with working("converting"):
        found = converted(plan.mechanism, to, delta=delta, epsilon=epsilon, order=order)
    if as_json:
        emit({"plan": repr(plan.mechanism), "to": to, "guarantee": json.loads(to_json(found))["mechanism"]})
        return
    title(f"{plan.mechanism!r} is")
    title(f"  {found!r}")
    heading("assumptions")
    facts(assumptions(plan.mechanism))


@click.command()
@plan_argument
@click.option("--head", type=float, help="Look only at epsilon up to here (says what is left out).")
@click.option("--tolerance", type=float, default=1e-4, show_default=True, help="The width to aim at.")
@json_option
def gdp(plan: Plan, head: float | None, tolerance: float, as_json: bool) -> None:
    """The smallest mu for which PLAN is mu-Gaussian-DP, with both certified ends.

    \b
    Examples:
      dptally gdp "laplace(scale=0.5)"
      dptally gdp "10 * laplace(scale=5)" --head 20
    """
    from dptally import gdp as toolkit

    with working("measuring mu"):
        kind = toolkit.identify(plan.mechanism)
        found = toolkit.measure(plan.mechanism, head=head, tolerance=tolerance)
    if as_json:
        emit(
            {
                "plan": repr(plan.mechanism),
                "verdict": str(kind.verdict),
                "reason": kind.reason,
                "mu": found.mu,
                "head": found.head,
                "left_out": found.left_out,
                "attained_at": found.attained_at,
                "assumptions": assumptions(plan.mechanism),
            }
        )
        return
    title(f"mu = {shown_up(found.mu.upper, 8)}" if math.isfinite(found.mu.upper) else "no mu is enough")
    facts([f"certified: {both_ends('mu', found.mu)}", str(kind)])
    if math.isfinite(found.mu.upper) and math.isfinite(found.attained_at):
        facts([f"the Gaussian curve touches the plan's at epsilon {found.attained_at:.6g}"])
    if not found.covered:
        left_out = shown_up(found.left_out, 3)
        facts([f"measured for epsilon <= {found.head:g} only; beyond, delta is at most {left_out}"])
    heading("assumptions")
    facts(assumptions(plan.mechanism))
