"""What a calibration can aim at: each target is a number of a plan that must not exceed a bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType
from dptally.mechanisms import Mechanism
from dptally.numerics.rounding import up

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
    aims: dict[str, Callable[[], Target]] = {
        "epsilon": lambda: _epsilon(epsilon, delta),
        "mu": lambda: _mu(mu),
        "tpr": lambda: _tpr(tpr, fpr),
        "advantage": lambda: _advantage(advantage),
        "rho": lambda: _rho(rho),
        "renyi": lambda: _renyi(renyi),
        "alpha": lambda: _alpha(alpha),
    }
    return aims[asked[0]]()


def _epsilon(epsilon: object, delta: object) -> Target:
    if delta is None:
        raise InvalidArgument("delta", "given together with epsilon", None, "write epsilon=1.0, delta=1e-6")
    bound, at = checks.nonnegative("epsilon", epsilon), checks.probability("delta", delta)
    return Target(f"epsilon <= {bound:g} at delta {at:g}", bound, lambda plan: plan.epsilon(at))


def _mu(mu: object) -> Target:
    def measured(plan: Mechanism) -> float:
        from dptally import gdp

        return float(gdp.measure(plan, tolerance=1e-8).mu.upper)

    bound = checks.nonnegative("mu", mu)
    return Target(f"mu <= {bound:g}", bound, measured)


def _tpr(tpr: object, fpr: object) -> Target:
    if fpr is None:
        raise InvalidArgument("fpr", "given together with tpr", None, "write tpr=0.05, fpr=0.01")
    bound, rate = checks.probability("tpr", tpr), checks.probability("fpr", fpr)
    if not bound > rate:
        raise InvalidArgument("tpr", f"above fpr = {rate:g} (a coin reaches that)", tpr)
    text = f"true-positive rate <= {bound:g} at false-positive rate {rate:g}"
    return Target(text, bound, lambda plan: min(1.0, up(1.0 - plan.tradeoff(rate))))


def _advantage(advantage: object) -> Target:
    bound = checks.probability("advantage", advantage)
    return Target(f"advantage <= {bound:g}", bound, lambda plan: plan.delta(0.0))


def _rho(rho: object) -> Target:
    bound = checks.nonnegative("rho", rho)
    return Target(f"rho <= {bound:g}", bound, lambda plan: plan.rho())


def _renyi(renyi: object) -> Target:
    order, bound = _order_and_epsilon("renyi", renyi)
    return Target(f"Renyi epsilon <= {bound:g} of order {order:g}", bound, lambda plan: plan.renyi(order))


def _alpha(alpha: object) -> Target:
    order, bound = _order_and_epsilon("alpha", alpha)
    if math.isinf(order):
        raise InvalidArgument("alpha", "a pair with a finite order", alpha)
    return Target(f"alpha divergence <= {bound:g} of order {order:g}", bound, lambda p: p.alpha_divergence(order))


def _order_and_epsilon(name: str, given: object) -> tuple[float, float]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence) or len(given) != 2:
        raise InvalidType(name, "a pair (order, epsilon)", given)
    return checks.order(f"{name} (order)", given[0]), checks.nonnegative(f"{name} (epsilon)", given[1])
