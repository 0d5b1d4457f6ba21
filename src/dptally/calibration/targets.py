"""What a calibration can aim at: each target is a number of a plan that must not exceed a bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType
from dptally.mechanisms import Mechanism

__all__ = ["Target", "target"]


@dataclass(frozen=True, slots=True)
class Target:
    """``measure(plan)``, a certified upper bound, must be at most ``bound``."""

    text: str
    bound: float
    measure: Callable[[Mechanism], float]


def target(
    epsilon: float | None,
    delta: float | None,
    mu: float | None,
    tpr: float | None,
    fpr: float | None,
    advantage: float | None,
    rho: float | None = None,
    renyi: tuple[float, float] | None = None,
    alpha: tuple[float, float] | None = None,
) -> Target:
    """The one target that was asked for."""
    given = {"epsilon": epsilon, "mu": mu, "tpr": tpr, "advantage": advantage, "rho": rho, "renyi": renyi}
    given["alpha"] = alpha
    asked = [name for name, value in given.items() if value is not None]
    if len(asked) != 1:
        raise InvalidArgument(
            "target",
            "exactly one of epsilon= (with delta=), mu=, rho=, renyi=(order, epsilon), alpha=(order, epsilon), "
            "tpr= (with fpr=), advantage=",
            asked or None,
        )
    for name, value, wanted in (("delta", delta, "epsilon"), ("fpr", fpr, "tpr")):
        if value is not None and asked != [wanted]:
            raise InvalidArgument(name, f"left out unless {wanted}= is given", value)
    if rho is not None:
        most = checks.nonnegative("rho", rho)
        return Target(f"rho <= {most:g}", most, lambda plan: plan.rho())
    if renyi is not None:
        order, most = _order_and_epsilon("renyi", renyi)
        return Target(f"Renyi epsilon <= {most:g} of order {order:g}", most, lambda plan: plan.renyi(order))
    if alpha is not None:
        order, most = _order_and_epsilon("alpha", alpha)
        if math.isinf(order):
            raise InvalidArgument("alpha", "a pair with a finite order", alpha)
        return Target(f"alpha divergence <= {most:g} of order {order:g}", most, lambda p: p.alpha_divergence(order))
    if epsilon is not None:
        if delta is None:
            raise InvalidArgument("delta", "given together with epsilon", None, "write epsilon=1.0, delta=1e-6")
        bound, at = checks.nonnegative("epsilon", epsilon), checks.probability("delta", delta)
        return Target(f"epsilon <= {bound:g} at delta {at:g}", bound, lambda plan: plan.epsilon(at))
    if tpr is not None:
        if fpr is None:
            raise InvalidArgument("fpr", "given together with tpr", None, "write tpr=0.05, fpr=0.01")
        bound, rate = checks.probability("tpr", tpr), checks.probability("fpr", fpr)
        if not bound > rate:
            raise InvalidArgument("tpr", f"above fpr = {rate:g} (a coin reaches that)", tpr)
        return Target(
            f"true-positive rate <= {bound:g} at false-positive rate {rate:g}",
            bound,
            lambda plan: 1.0 - plan.tradeoff(rate),
        )
    if advantage is not None:
        bound = checks.probability("advantage", advantage)
        return Target(f"advantage <= {bound:g}", bound, lambda plan: plan.delta(0.0))
    bound = checks.nonnegative("mu", mu)
    return Target(f"mu <= {bound:g}", bound, _mu)


def _order_and_epsilon(name: str, given: object) -> tuple[float, float]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence) or len(given) != 2:
        raise InvalidType(name, "a pair (order, epsilon)", given)
    return checks.order(f"{name} (order)", given[0]), checks.nonnegative(f"{name} (epsilon)", given[1])


def _mu(plan: Mechanism) -> float:
    from dptally import gdp

    return float(gdp.measure(plan, tolerance=1e-8).mu.upper)
