"""``dptally group``, ``dptally outcomes`` and ``dptally adp``: statements of the papers that people ask for."""

from __future__ import annotations

import json
import math
from typing import Any

import click

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
from dptally.errors import InvalidArgument, Unanswerable
from dptally.numerics.shown import shown_down, shown_up

__all__ = ["adp", "group", "outcomes"]


@click.command()
@plan_argument
@click.option("--size", type=int, required=True, help="How many records change together.")
@delta_option()
@json_option
def group(plan: Plan, size: int, delta: float, as_json: bool) -> None:
    """What PLAN guarantees to a group of records together (a household, all records of one person).

    \b
    Example:
      dptally group "10 * gaussian(sigma=20)" --size 4 --delta 1e-6
    """
    from dptally.mechanisms import to_json

    with working("accounting"):
        found = plan.mechanism.group(size)
        box, single = found.epsilon_interval(delta), plan.mechanism.epsilon_interval(delta)
    if as_json:
        out: dict[str, Any] = {"plan": repr(plan.mechanism), "size": size, "delta": delta}
        out |= {"epsilon": box, "epsilon_of_one": single, "group": json.loads(to_json(found))["mechanism"]}
        emit(out | {"assumptions": assumptions(plan.mechanism)})
        return
    title(f"epsilon = {shown_up(box.upper, 8)} for {size} records together, at delta = {delta:g}")
    facts([f"certified: {both_ends('epsilon', box)}", f"for one record: {shown_up(single.upper, 8)}"])
    heading("the plan for the group")
    facts([repr(found)])
    heading("assumptions")
    facts(assumptions(plan.mechanism))


@click.command()
@plan_argument
@click.option(
    "--before", type=float, multiple=True, help="The event's probability without the record (may be repeated)."
)
@click.option("--factor", type=float, multiple=True, help="How often the odds can move by more (may be repeated).")
@json_option
def outcomes(plan: Plan, before: tuple[float, ...], factor: tuple[float, ...], as_json: bool) -> None:
    """How much likelier or rarer an outcome can become by one record: bad events, and the odds of a Bayesian.

    \b
    Examples:
      dptally outcomes "50 * laplace(scale=20)" --before 0.01
      dptally outcomes "10 * gaussian(sigma=10)" --factor 10
    """
    from dptally.meaning import bayes
    from dptally.meaning import outcomes as meant

    asked = before or (1e-6, 0.001, 0.01, 0.1, 0.5)
    with working("asking"):
        rows = [(q, meant.of_plan(plan.mechanism, q)) for q in asked]
        odds = _odds(plan)
        moved = [(beta, bayes.factor_exceeds(plan.mechanism, beta)) for beta in factor]
    if as_json:
        out = [{"before": q, "lower": box.lower, "upper": box.upper} for q, box in rows]
        emit(
            {
                "plan": repr(plan.mechanism),
                "outcomes": out,
                "bayes_factor": odds,
                "factors": [{"factor": beta, "lower": box.lower, "upper": box.upper} for beta, box in moved],
                "assumptions": assumptions(plan.mechanism),
            }
        )
        return
    if math.isfinite(odds):
        largest = shown_up(bayes.factor(odds))
        title(f"no output moves the odds of a belief about one record by more than a factor {largest}")
    else:
        title("outcomes exist that move the odds without bound, however rarely")
    table(
        [("probability without", "right"), ("at least with", "right"), ("at most with", "right"), ("times", "right")],
        [
            (f"{q:g}", shown_down(box.lower), shown_up(box.upper), shown_up(box.upper / q, 4) if q > 0 else "-")
            for q, box in rows
        ],
    )
    if moved:
        heading("the odds of a belief")
        facts(f"move by more than {beta:g} times with probability at most {shown_up(box.upper)}" for beta, box in moved)
    heading("assumptions")
    facts(assumptions(plan.mechanism))


def _odds(plan: Plan) -> float:
    """The largest loss, the logarithm of the largest Bayes factor; inf where there is none."""
    from dptally.accounting import pure

    try:
        return pure.epsilon(plan.mechanism).value
    except Unanswerable:
        return math.inf


@click.command()
@click.option("--count", type=int, required=True, help="The number of Gaussian queries.")
@click.option("--sigma", type=float, help="Their noise: gives the smallest epsilon (Algorithm 1).")
@click.option("--epsilon", type=float, help="A bound of epsilon: gives the smallest noise (Algorithm 2).")
@delta_option()
@click.option("--sensitivity", type=float, default=1.0, show_default=True, help="L2 sensitivity of a query.")
@click.option("--integers", is_flag=True, help="Orders 2 to 300 only, as in the paper.")
@json_option
def adp(
    count: int,
    sigma: float | None,
    epsilon: float | None,
    delta: float,
    sensitivity: float,
    integers: bool,
    as_json: bool,
) -> None:
    """The two algorithms of alpha-divergence DP for Gaussian noise, corrected, beside the exact answer.

    \b
    Examples:
      dptally adp --count 50 --sigma 100 --delta 1e-5
      dptally adp --count 1000 --epsilon 1 --delta 1e-5
    """
    from dptally.accounting import alpha, gaussian

    if (sigma is None) == (epsilon is None):
        raise InvalidArgument("sigma, epsilon", "exactly one of the two", (sigma, epsilon))
    orders = range(2, 301) if integers else None
    if sigma is not None:
        found = alpha.smallest_epsilon(count, sigma, delta, sensitivity, orders)
        exact = gaussian.epsilon_mu(math.sqrt(count) * sensitivity / sigma * (1 + 1e-15), delta)
        name = "epsilon"
    else:
        assert epsilon is not None
        found = alpha.smallest_sigma(count, epsilon, delta, sensitivity, orders)
        exact = gaussian.sigma_for(epsilon, delta, sensitivity * math.sqrt(count) * (1 + 1e-15))
        name = "sigma"
    if as_json:
        emit({name: found.value, "order": found.order, "theorem": found.theorem, "exact": exact, "delta": delta})
        return
    title(f"{name} = {shown_up(found.value, 8)} at order {found.order:.6g}, delta = {delta:g}")
    facts([found.theorem, f"the exact {name} is {shown_up(exact, 8)}: the conversion gives away the rest"])
