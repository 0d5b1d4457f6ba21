"""``dptally convert`` and ``dptally gdp``: one guarantee in the words of another definition."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

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
from dptally.errors import InvalidArgument
from dptally.mechanisms import to_json
from dptally.numerics.shown import shown_down, shown_up

if TYPE_CHECKING:
    from dptally.gdp import Identification, Measurement, Rate, Rectified

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
@click.option(
    "--delta", type=float, default=1e-15, show_default=True, help="The head ends at the epsilon of this delta."
)
@click.option("--whole", is_flag=True, help="Look at every epsilon.")
@click.option("--tolerance", type=float, default=1e-4, show_default=True, help="The width to aim at.")
@click.option("--identify", is_flag=True, help="Only say whether some mu is enough, and why.")
@click.option(
    "--rectify", nargs=2, type=float, metavar="LOW HIGH", help="Clip to LOW..HIGH and add noise: needs --head."
)
@click.option("--rate", "target", type=float, metavar="MU", help="The largest Poisson sampling rate that reaches MU.")
@json_option
def gdp(
    plan: Plan,
    head: float | None,
    delta: float,
    whole: bool,
    tolerance: float,
    identify: bool,
    rectify: tuple[float, float] | None,
    target: float | None,
    as_json: bool,
) -> None:
    """The smallest mu for which PLAN is mu-Gaussian-DP, with both certified ends.

    Without --head it is measured up to PLAN's own epsilon at --delta, as on the card, and what is left out is said.

    \b
    Examples:
      dptally gdp "laplace(scale=0.5)"
      dptally gdp "10 * laplace(scale=5)" --head 20
      dptally gdp "zcdp(0.5)" --identify
      dptally gdp "approx(1, 1e-6)" --rectify 0 10 --head 5
      dptally gdp "laplace(scale=0.5)" --rate 0.5
    """
    from dptally import gdp as toolkit

    if identify + (rectify is not None) + (target is not None) > 1:
        raise InvalidArgument("--identify, --rectify, --rate", "at most one of the three", "several")
    if identify:
        _identified(plan, toolkit.identify(plan.mechanism), as_json)
        return
    if rectify is not None:
        if head is None:
            raise InvalidArgument("--head", "given with --rectify: the head that keeps its mu", None)
        with working("measuring mu"):
            mended = toolkit.rectify(plan.mechanism, *rectify, head, tolerance)
        _rectified(plan, mended, as_json)
        return
    if target is not None:
        with working("looking for a rate"):
            rate = toolkit.rate_for(plan.mechanism, target, head)
        _rate(plan, rate, target, as_json)
        return
    with working("measuring mu"):
        kind = toolkit.identify(plan.mechanism)
        if head is None and not whole:
            found = toolkit.measure_until(plan.mechanism, delta, tolerance)
        else:
            found = toolkit.measure(plan.mechanism, head=head, tolerance=tolerance)
    _measured(plan, kind, found, as_json)


def _measured(plan: Plan, kind: Identification, found: Measurement, as_json: bool) -> None:
    closed = kind.enough
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
                "closed_mu": closed if math.isfinite(closed) else None,
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
        if math.isfinite(closed):
            facts([f"for every epsilon: mu = {shown_up(closed)} (closed form)"])
    heading("assumptions")
    facts(assumptions(plan.mechanism))


def _identified(plan: Plan, kind: Identification, as_json: bool) -> None:
    limit = kind.tail_limit
    if as_json:
        known = {"verdict": str(kind.verdict), "reason": kind.reason, "tail_limit": limit, "head": kind.head}
        emit({"plan": repr(plan.mechanism)} | known)
        return
    title(str(kind))
    if limit is not None:
        facts([f"every mu is at least {shown_down(limit.lower)}, the tail's own (necessary, not sufficient)"])


def _rectified(plan: Plan, found: Rectified, as_json: bool) -> None:
    if as_json:
        made = {"scale": found.scale, "mu": found.mu, "head": found.head, "noise_deviation": found.noise_deviation}
        emit({"plan": repr(plan.mechanism), "low": found.low, "high": found.high} | made)
        return
    title(f"clip to [{found.low:g}, {found.high:g}] and add Laplace noise of scale {shown_up(found.scale)}")
    facts([f"then it is Gaussian DP with mu = {shown_up(found.mu.upper)} for every epsilon"])
    facts([f"the noise has standard deviation {found.noise_deviation:.6g}"])


def _rate(plan: Plan, found: Rate, mu: float, as_json: bool) -> None:
    if as_json:
        emit({"plan": repr(plan.mechanism), "mu": mu, "rate": found.rate, "head": found.head, "lost": found.lost})
        return
    title(f"rate = {found.rate!r}")
    where = "" if math.isinf(found.head) else f" for epsilon up to {found.head:g}"
    facts(
        [
            f"the largest Poisson sampling rate with mu <= {mu:g}{where}",
            f"{100 * found.lost:.4g} % of the data is not used",
        ]
    )
