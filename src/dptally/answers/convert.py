"""``dp.convert``: what a guarantee, a mechanism or a whole plan is worth in another definition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dptally import checks
from dptally.accounting import concentrated, gaussian, pure, renyi
from dptally.accounting.answer import Answer
from dptally.accounting.moments import infinity_mass, log_moment_upper
from dptally.conversions import EDGES
from dptally.conversions.alpha import alpha_to_renyi
from dptally.conversions.renyi import renyi_to_alpha, renyi_to_lower_order
from dptally.errors import InvalidArgument, InvalidType, Unanswerable
from dptally.later import later
from dptally.law import Composition
from dptally.mechanisms import registry
from dptally.mechanisms.alpha_dp import AlphaDP
from dptally.mechanisms.approx_dp import ApproxDP
from dptally.mechanisms.gaussian_dp import GaussianDP
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.pure_dp import PureDP
from dptally.mechanisms.renyi_dp import RenyiDP
from dptally.mechanisms.zcdp import ZCDP
from dptally.numerics.rounding import up

__all__ = ["TARGETS", "convert"]

#: the definitions, and what must be said to get there
TARGETS: dict[str, tuple[str, ...]] = {
    "pure": (),
    "approx": ("delta", "epsilon"),
    "renyi": ("order",),
    "alpha": ("order",),
    "zcdp": (),
    "gaussian": (),
}


def convert(
    guarantee: Mechanism,
    to: str,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    order: float | Sequence[float] | None = None,
) -> Mechanism:
    """The strongest guarantee of another definition that is known to follow, rounded to the safe side.

    ``to`` is "pure", "approx" (say ``delta`` or ``epsilon``), "renyi" or "alpha" (say ``order``), "zcdp" or
    "gaussian" (where no closed form is exact mu is measured, see ``dp.gdp.measure``); the names of these guarantees in
    JSON and in plan texts (such as "gdp") mean the same. The edges and their theorems are
    ``dptally.conversions.EDGES``, which says where they are the best possible; a plan is converted whole. What does
    not follow is refused with the reason. Of several orders those without a finite divergence are left out (Gaussian
    noise has none of order inf), unless none is left.

    >>> convert(PureDP(0.5), to="zcdp").rho() < 0.125
    True
    >>> round(convert(GaussianDP(1.0), to="approx", epsilon=1.0).delta(1.0), 12)
    0.126936737507
    """
    if not isinstance(guarantee, Mechanism):
        raise InvalidType("guarantee", "a declared guarantee, a mechanism or a plan", guarantee)
    to = _definition(to)
    _check_asked(to, {"delta": delta, "epsilon": epsilon, "order": order})
    try:
        if to == "approx":
            return _approx(guarantee, delta, epsilon)
        if to == "renyi":
            return _renyi_curve(guarantee, np.atleast_1d(checks.reals("order", order)).ravel().tolist())
        if to == "alpha":
            single = checks.finite("order", order)
            return AlphaDP(single, renyi_to_alpha(single, _renyi(guarantee, single)))
        if to == "pure":
            return PureDP(pure.epsilon(guarantee.directions()).value)
        if to == "zcdp":
            return ZCDP(_bounded(concentrated.rho, guarantee, "zero-concentrated DP for any rho"))
        return GaussianDP(_mu(guarantee))
    except Unanswerable as refusal:
        raise Unanswerable(f"{refusal}; {_what_works(guarantee, to)}") from None


def _definition(name: object) -> str:
    """The definition that a target names: by itself, or by a name of its guarantee in JSON or in plan texts."""
    if isinstance(name, str):
        if name in TARGETS:
            return name
        declared = registry.find_json(name) or registry.find_plan(name)
        if declared is not None and declared.definition in TARGETS:
            return str(declared.definition)
    raise InvalidArgument("to", f"one of {sorted(TARGETS)}", name)


def _edge_name(guarantee: Mechanism) -> str:
    """What the edges call the definition of a declared guarantee; the mechanism's own name where it declares none."""
    declared = registry.find_declared(type(guarantee))
    if declared is None or declared.definition is None:
        return type(guarantee).__name__
    return "gdp" if declared.definition == "gaussian" else declared.definition


def _check_asked(to: str, given: dict[str, object]) -> None:
    """Exactly one of what the target needs, and nothing that it would ignore."""
    said = [name for name, value in given.items() if value is not None]
    needed = TARGETS[to]
    for name in said:
        if name not in needed:
            raise InvalidArgument(name, f'left out when converting to "{to}"', given[name])
    if needed and len(said) != 1:
        raise InvalidArgument(" or ".join(needed), f'given (one of them) when converting to "{to}"', said)


def _approx(guarantee: Mechanism, delta: float | None, epsilon: float | None) -> ApproxDP:
    if epsilon is not None:
        epsilon = checks.nonnegative("epsilon", epsilon)
        known = [guarantee.delta(epsilon), *_by_edges(guarantee, "delta", epsilon)]
        return ApproxDP(epsilon, min(known + _by_orders(guarantee, renyi.delta, epsilon)))
    delta = checks.probability("delta", delta)
    known = [guarantee.epsilon(delta), *_by_edges(guarantee, "epsilon", delta)]
    found = min(known + _by_orders(guarantee, renyi.epsilon, delta))
    if math.isinf(found):
        raise Unanswerable(f"no finite epsilon exists at delta {delta!r}")
    return ApproxDP(found, delta)


def _by_edges(guarantee: Mechanism, gives: str, asked: float) -> list[float]:
    """What the edges say of a declared order: exact, where a search over all orders stops a little short."""
    parameters = _declared_orders(guarantee)
    source = _edge_name(guarantee)
    edges = [e for e in EDGES if (e.source, e.target, e.gives) == (source, "approx", gives)]
    return [e.function(*stated, asked) for e in edges for stated in parameters]


def _by_orders(guarantee: Mechanism, question: Callable[..., Answer], asked: float) -> list[float]:
    """All that bounded Renyi divergences prove, where a plan's own answer spends less time on the search."""
    if all(composition.determined for composition in guarantee.directions()):
        return []
    return [question(guarantee, asked, "optimal").value]


def _declared_orders(guarantee: Mechanism) -> list[tuple[float, float]]:
    """(order, epsilon) as they were declared, in the units of the guarantee."""
    if isinstance(guarantee, RenyiDP):
        return list(zip(guarantee.orders, guarantee.epsilons, strict=True))
    return [(guarantee.alpha, guarantee.declared_epsilon)] if isinstance(guarantee, AlphaDP) else []


def _from_higher_orders(guarantee: Mechanism, order: float) -> list[float]:
    """What each declared order at or above this one implies by itself."""
    stated = _declared_orders(guarantee)
    if isinstance(guarantee, AlphaDP):
        stated = [(a, alpha_to_renyi(a, e)) for a, e in stated]
    return [renyi_to_lower_order(a, e, order) for a, e in stated if a >= order]


def _renyi(guarantee: Mechanism, order: float) -> float:
    """An upper bound of the Renyi divergence of one order in (1, inf], the larger direction."""
    if not order > 1:
        raise InvalidArgument("order", "in (1, inf]", order)
    directions = guarantee.directions()
    if any(infinity_mass(composition)[1] > 0 for composition in directions):
        raise Unanswerable("the loss may be infinite, so every Renyi divergence is infinite")
    if order == math.inf:
        return pure.epsilon(directions).value
    t = np.array([order - 1.0])  # exact up to 2^53
    found = max((float(log_moment_upper(composition, t)[0]) / float(t[0]) for composition in directions), default=0.0)
    if not math.isfinite(found):
        raise Unanswerable(f"the Renyi divergence of order {order!r} is not known to be finite")
    by_law = float(renyi.divergence(directions, np.array([order]))[0]) if directions else 0.0
    return min([up(found, 2) if found > 0 else 0.0, by_law, *_from_higher_orders(guarantee, order)])


def _renyi_curve(guarantee: Mechanism, orders: list[float]) -> RenyiDP:
    """One order must have a finite divergence; of several those without are left out, if any is left."""
    found: list[tuple[float, float]] = []
    refusal = None
    for order in orders:
        try:
            found.append((order, _renyi(guarantee, order)))
        except Unanswerable as error:
            refusal = error
    if refusal is not None and not found:
        raise refusal
    return RenyiDP(tuple(order for order, _ in found), tuple(epsilon for _, epsilon in found))


def _mu(guarantee: Mechanism) -> float:
    """The closed form of one step, or of Gaussian noise alone, is exact; anything else is measured."""
    directions = guarantee.directions()
    known = gaussian.mu(directions)
    exact = all(c.steps <= 1 for c in directions) and len(directions) == 1 and math.isfinite(known)
    if exact and all(composition.determined for composition in directions):
        return known
    try:
        measured = float(later("measure")(guarantee).mu.upper)
    except Unanswerable as refusal:
        if math.isinf(known):
            raise Unanswerable(f"{guarantee!r} is not known to be Gaussian DP for any mu ({refusal})") from None
        return known
    if math.isinf(min(known, measured)):
        raise Unanswerable(f"{guarantee!r} is not known to be Gaussian DP for any mu")
    return min(known, measured)


def _bounded(question: Callable[[Sequence[Composition]], float], guarantee: Mechanism, what: str) -> float:
    value = question(guarantee.directions())
    if math.isinf(value):
        raise Unanswerable(f"{guarantee!r} is not {what}")
    return value


def _what_works(guarantee: Mechanism, to: str) -> str:
    """The definitions that this kind of guarantee does imply."""
    source = _edge_name(guarantee)
    targets = {e.target.replace("gdp", "gaussian") for e in EDGES if e.source == source}
    targets = (targets | ({"gaussian"} if source == "zcdp" else set())) - {to, source}  # measured: no edge of its own
    if not targets:
        return 'what works: to="approx", with epsilon= or with a delta above the mass at infinity'
    return "what follows from it: " + ", ".join(f'to="{name}"' for name in sorted(targets | {"approx"}))
