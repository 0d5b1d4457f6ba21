"""``dptally risk`` and ``dptally explain``; what a plan means, for every command."""

from __future__ import annotations

import math
from typing import Any

import click

from dptally.accounting import gaussian
from dptally.answers.assumptions import assumptions as stated
from dptally.cli.output import (
    delta_option,
    emit,
    facts,
    heading,
    json_option,
    plan_argument,
    prose,
    table,
    title,
    working,
)
from dptally.cli.plans import Plan
from dptally.meaning import attacks
from dptally.mechanisms import Mechanism
from dptally.numerics.shown import shown_up

__all__ = ["assumptions", "explain", "meaning", "meaning_lines", "risk"]

_RATES = (0.001, 0.01, 0.1)


def assumptions(plan: Mechanism) -> list[str]:
    """What the caller stated and the library cannot check."""
    return list(stated(plan))


def meaning(plan: Mechanism, fpr: float = 0.01) -> dict[str, Any]:
    """The most that an attacker can do at one false-positive rate, and mu where a closed form is known."""
    directions = plan.directions()
    mu = gaussian.mu(directions)
    return {
        "fpr": fpr,
        "true_positive_rate": attacks.true_positive_rate(directions, fpr),
        "advantage": attacks.advantage(directions),
        "gaussian_mu": mu if math.isfinite(mu) else None,
    }


def meaning_lines(found: dict[str, Any]) -> list[str]:
    power = shown_up(100 * found["true_positive_rate"], 4)
    lines = [
        f"an attacker with {100 * found['fpr']:g} % false positives finds at most {power} % of the members",
        f"no attacker's TPR - FPR (membership advantage) is above {shown_up(found['advantage'], 4)}",
    ]
    if found["gaussian_mu"] is not None:
        lines.append(f"Gaussian DP with mu = {shown_up(found['gaussian_mu'])} (closed form; dptally gdp measures)")
    return lines


@click.command()
@plan_argument
@click.option("--fpr", type=float, multiple=True, help="A false-positive rate (may be repeated).")
@json_option
def risk(plan: Plan, fpr: tuple[float, ...], as_json: bool) -> None:
    """What an attacker can achieve who must tell whether one record was in the data.

    \b
    Example:
      dptally risk "1000 * poisson(gaussian(1.0), 0.01)" --fpr 0.001
    """
    directions = plan.mechanism.directions()
    with working("asking the attacker"):
        rows = [(x, attacks.true_positive_rate(directions, x)) for x in fpr or _RATES]
        advantage, accuracy = attacks.advantage(directions), attacks.accuracy(directions)
    if as_json:
        rates = [{"fpr": x, "true_positive_rate": power} for x, power in rows]
        out = {"plan": repr(plan.mechanism), "rates": rates, "advantage": advantage, "accuracy": accuracy}
        emit(out | {"assumptions": assumptions(plan.mechanism)})
        return
    title(f"membership advantage (TPR - FPR) at most {shown_up(advantage)}")
    facts([f"a fair coin flip is guessed right with probability at most {shown_up(accuracy)}"])
    table(
        [
            ("false-positive rate", "right"),
            ("true-positive rate at most", "right"),
            ("times a blind guess", "right"),
        ],
        [(f"{x:g}", shown_up(power), shown_up(power / x, 4) if x > 0 else "-") for x, power in rows],
    )
    heading("assumptions")
    facts(assumptions(plan.mechanism))


@click.command()
@plan_argument
@delta_option()
@click.option("--bibtex", is_flag=True, help="Print the sources as BibTeX instead.")
@json_option
def explain(plan: Plan, delta: float, bibtex: bool, as_json: bool) -> None:
    """The answer with its route, its theorems, its assumptions and what to cite.

    \b
    Example:
      dptally explain "10 * gaussian(sigma=5)" --delta 1e-5
    """
    with working("accounting"):
        found = plan.mechanism.explain(delta)
    if as_json:
        emit(found.to_dict())
    elif bibtex:
        click.echo(found.bibtex())
    else:
        prose(str(found))
