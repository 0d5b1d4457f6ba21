"""Group privacy: what a guarantee for one record says about ``size`` records, in every framework.

Each result names the constant it used. Where the papers' constants are wrong or loose the corrected and the
sharper one are here; a printed, unsafe one is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dptally import checks
from dptally.accounting import alpha as alpha_units
from dptally.accounting import certified
from dptally.accounting import renyi as renyi_units
from dptally.accounting.moments import Asked, checked
from dptally.checks import Floats
from dptally.divergences.inequalities import triangle_orders, weak_triangle
from dptally.errors import InvalidArgument, Unanswerable
from dptally.numerics.rounding import down, up
from dptally.numerics.search import minimise

__all__ = [
    "GroupGuarantee",
    "alpha",
    "approximate",
    "concentrated",
    "gaussian",
    "profile",
    "pure",
    "renyi",
    "renyi_factor",
    "stable",
    "two_records",
]


class Groupable(Protocol):
    """A mechanism or a plan."""

    def group(self, size: int) -> Any: ...


@dataclass(frozen=True, slots=True)
class GroupGuarantee:
    """``value`` is epsilon (pure, approximate, renyi, alpha), rho or mu for the group; ``order`` and
    ``delta`` go with it.
    """

    value: float
    theorem: str
    order: float | None = None
    delta: float = 0.0

    def __float__(self) -> float:
        return self.value


def pure(epsilon: float, size: int) -> GroupGuarantee:
    """epsilon-DP gives (size * epsilon)-DP for groups.  [Dwork, Roth 2014, Thm. 2.2]

    >>> float(pure(0.5, 4))
    2.0
    """
    epsilon, size = checks.nonnegative("epsilon", epsilon), checks.count("size", size, 1)
    return GroupGuarantee(_times(size, epsilon), "Dwork, Roth 2014, Thm. 2.2: size * epsilon")


def approximate(epsilon: float, delta: float, size: int) -> GroupGuarantee:
    """(epsilon, delta)-DP gives (size epsilon, delta (1 + e^eps + ... + e^((size-1) eps)))-DP, rounded up.

    The delta is (e^(size eps) - 1)/(e^eps - 1) times the single one.  [Vadhan 2017, Lemma 2.2]

    >>> group = approximate(0.5, 1e-6, 2)
    >>> group.value, round(group.delta, 12)
    (1.0, 2.648721e-06)
    """
    epsilon, delta = checks.nonnegative("epsilon", epsilon), checks.probability("delta", delta)
    size = checks.count("size", size, 1)
    total = _times(size, epsilon)
    if delta == 0 or size == 1:
        factor = 1.0
    elif total > 700:
        factor = math.inf
    else:
        factor = up(math.expm1(total) / math.expm1(epsilon), 8) if epsilon > 0 else float(size)
    group_delta = 0.0 if delta == 0 else min(up(delta * factor) if size > 1 else delta, 1.0)
    return GroupGuarantee(total, "Vadhan 2017, Lemma 2.2: delta times (e^(k eps) - 1)/(e^eps - 1)", None, group_delta)


def profile(plan: Asked, size: int, points: int = 256) -> list[tuple[float, float]]:
    """Guarantees (epsilon, delta) for groups of ``size``, from the plan's own profile, at many epsilons.

    At e for one record: (size e, delta(e) (1 + e^e + ... + e^((size-1) e)))  [Vadhan 2017, Lemma 2.2]. Only those that
    improve on the ones before are kept.
    """
    size, directions = checks.count("size", size, 1), checked(plan)
    if not all(composition.determined for composition in directions):
        raise Unanswerable("the plan bounds Renyi divergences only; ask for the group of each declared guarantee")
    asked = [certified.delta_profile(composition) for composition in directions]
    top = max(composition.supremum for composition in directions)
    end = min(top, certified.epsilon_interval(directions, 1e-30).upper, 700.0)
    if not math.isfinite(end):
        end = min(top, 50.0)
    found: list[tuple[float, float]] = []
    for i in range(points + 1):
        e = end * (i / points) ** 2
        single = max(one(e).upper for one in asked)
        group = approximate(e, min(single, 1.0), size)
        if not found or group.delta < found[-1][1]:
            found.append((group.value, group.delta))
    return found


def stable(plan: Groupable, c: int) -> Any:
    """A c-stable transformation of the data before the plan: one record becomes at most ``c``, so it is plan.group(c).

    g is c-stable if neighbours A, B have g(A), g(B) at distance at most c  [McSherry 2009; Mironov 2017, Sec. III.B,
    whose wording is reversed].

    >>> from dptally import PureDP
    >>> stable(PureDP(0.5), 2)
    PureDP(epsilon=1.0)
    """
    return plan.group(checks.count("c", c, 1))


def concentrated(rho: float, size: int) -> GroupGuarantee:
    """rho-zCDP gives (size^2 rho)-zCDP for groups.  [Bun, Steinke 2016, Prop. 1.9]

    >>> float(concentrated(0.5, 3))
    4.5
    """
    rho, size = checks.nonnegative("rho", rho), checks.count("size", size, 1)
    return GroupGuarantee(_times(size * size, rho), "Bun, Steinke 2016, Prop. 1.9: size^2 * rho")


def gaussian(mu: float, size: int) -> GroupGuarantee:
    """mu-GDP gives (size * mu)-GDP for groups.  [Dong, Roth, Su 2022, Thm. 2.14]

    >>> float(gaussian(0.5, 3))
    1.5
    """
    mu, size = checks.nonnegative("mu", mu), checks.count("size", size, 1)
    return GroupGuarantee(_times(size, mu), "Dong, Roth, Su 2022, Thm. 2.14: size * mu")


def _times(size: int, value: float) -> float:
    """size * value, exact where it is a power of two times the value or rounds to itself, else rounded up."""
    product = size * value
    if math.isinf(product):
        raise InvalidArgument("size", "small enough for the product to be a double", size)
    numerator, denominator = value.as_integer_ratio()
    exact_numerator, exact_denominator = product.as_integer_ratio()
    return product if exact_numerator * denominator == size * numerator * exact_denominator else up(product)


# -- Renyi and alpha-divergence DP: the order halves with each doubling of the group -------------------------


def renyi(order: float, epsilon: float, size: int, constant: str = "sharp") -> GroupGuarantee:
    """(order, epsilon)-RDP for one record gives, with c = ceil(log2 size) doublings, for groups of at most
    ``size``:

    "mironov":     (order/2^c, 3^c epsilon), order >= 2^(c+1)                   [Mironov 2017, Prop. 2]
    "sharp":       (order/2^c, prod (2a-3)/(a-2) epsilon), order > 2^c           [the same proof, unrounded]
    "equal-order": a -> a^2/(2a-1), epsilon times (2a-1)/(a-1) at each doubling  [Mironov 2017, Cor. 4 (4),
    corrected]

    >>> group = renyi(8.0, 0.1, size=2)
    >>> group.order, round(group.value, 12)
    (4.0, 0.216666666667)
    """
    epsilon = checks.nonnegative("epsilon", epsilon)
    new_order, factor, theorem = renyi_factor(order, size, constant)
    return GroupGuarantee(up(factor * epsilon) if size > 1 and epsilon > 0 else epsilon, theorem, new_order)


def renyi_factor(order: float, size: int, constant: str = "sharp") -> tuple[float, float, str]:
    """(order for the group, factor of epsilon rounded up, theorem): see :func:`renyi`."""
    order, rule = checks.order("order", order), _CONSTANTS.get(constant) if isinstance(constant, str) else None
    if rule is None:
        raise InvalidArgument("constant", 'one of "sharp", "mironov", "equal-order"', constant)
    doublings = _doublings(size)
    if math.isinf(order):
        return order, float(size), "Mironov 2017, Table I: order inf is pure DP, size * epsilon"
    return rule(order, size, doublings)


def _mironov(order: float, size: int, doublings: int) -> tuple[float, float, str]:
    if doublings and order < 2.0 ** (doublings + 1):
        raise InvalidArgument("order", f"at least {2 ** (doublings + 1)} for groups of {size}", order)
    return order / 2**doublings, float(3**doublings), "Mironov 2017, Prop. 2: factor 3 for each doubling"


def _sharp(order: float, size: int, doublings: int) -> tuple[float, float, str]:
    factor, current = 1.0, order
    for _ in range(doublings):
        if not current > 2:
            required = f"above {2**doublings} for groups of {size}"
            raise InvalidArgument("order", required, order, 'try "equal-order"')
        factor, current = factor * ((2 * current - 3) / (current - 2)), current / 2
    theorem = "Mironov 2017, proof of Prop. 2 without rounding: (2a-3)/(a-2) for each doubling"
    return current, _rounded(factor, doublings), theorem


def _equal_order(order: float, size: int, doublings: int) -> tuple[float, float, str]:
    factor, current = 1.0, order
    for _ in range(doublings):
        if not current > 1:
            raise InvalidArgument("order", f"large enough for groups of {size}", order)
        # the order is rounded down: a guarantee at an order holds at every smaller one
        factor *= (2 * current - 1) / (current - 1)
        current = down(current * current / (2 * current - 1), 2)
    if doublings and not current > 1:
        raise InvalidArgument("order", f"large enough for groups of {size}", order)
    theorem = "Mironov 2017, Cor. 4 (4), corrected: a -> a^2/(2a-1), factor (2a-1)/(a-1)"
    return current, _rounded(factor, doublings), theorem


def _rounded(factor: float, doublings: int) -> float:
    return up(factor, 4 * doublings) if doublings else 1.0


_CONSTANTS = {"sharp": _sharp, "mironov": _mironov, "equal-order": _equal_order}


def two_records(plan: Asked, order: float) -> GroupGuarantee:
    """The Renyi divergence of ``order`` for two records, through the data set between them: the weak triangle at its
    best split p, from the plan's own divergences of the orders p a and q (a - 1/p), 1/p + 1/q = 1.

    ``plan.group(2)`` is as good or better where more than the divergences is known.  [Mironov 2017, Prop. 11]

    >>> from dptally import Gaussian
    >>> round(two_records(Gaussian(2.0), 2.0).value, 6)  # the truth is 2^2 a mu^2/2 = 1
    1.0
    """
    order = checks.order("order", order)
    if not 1 < order < math.inf:
        raise InvalidArgument("order", "above 1 and finite; for order inf ask group.pure", order)
    directions = checked(plan)

    def through(excess: Floats) -> Floats:
        splits = (1.0 + excess).tolist()
        orders = np.array([triangle_orders(order, p) for p in splits])
        first, second = renyi_units.divergence(directions, orders.T.ravel()).reshape(2, -1)
        usable = np.isfinite(first) & np.isfinite(second)
        told = [
            weak_triangle(order, p, float(a), float(b)) if use else math.inf
            for p, a, b, use in zip(splits, first, second, usable, strict=True)
        ]
        return np.array(told)

    split, value = minimise(through, 1e-6, 1e6)
    if math.isinf(value):
        raise Unanswerable("the divergences of higher orders are infinite, so none for two records follows")
    return GroupGuarantee(value, f"Mironov 2017, Prop. 11: the weak triangle at p = {1 + split:.6g}", order)


def alpha(order: float, epsilon: float, size: int, constant: str = "sharp") -> GroupGuarantee:
    """(order, epsilon)-ADP for one record gives, with k = ceil(log2 size), for groups of at most ``size``,
    order > 2^k:

    "proof": (order/2^k, 2^k (a-1)/(a/2^k - 1) epsilon)  [Liu, Wang 2025, proof of Prop. 3; its statement is
    unsafe, see docs/errata.md]
    "sharp": through Renyi DP, I_{a/2} <= (1 + a(a-1) epsilon)^((2a-3)/(2a-2)) at each halving

    >>> group = alpha(8.0, 0.001, size=2, constant="proof")
    >>> group.order, round(group.value, 12)
    (4.0, 0.004666666667)
    """
    epsilon, doublings = checks.nonnegative("epsilon", epsilon), _doublings(size)
    order = checks.real("order", order)
    if not 2**doublings < order < math.inf:
        raise InvalidArgument("order", f"above {2**doublings} and finite for groups of {size}", order)
    new_order = order / 2**doublings
    if constant == "proof":
        factor = 2**doublings * (order - 1) / (new_order - 1)
        value = up(factor * epsilon, 4) if doublings and epsilon > 0 else epsilon
        return GroupGuarantee(value, "Liu, Wang 2025, proof of Prop. 3 (eq. 61)", new_order)
    if constant != "sharp":
        raise InvalidArgument("constant", 'one of "sharp", "proof"', constant)
    if not doublings:
        return GroupGuarantee(epsilon, "Liu, Wang 2025, Def. 8", order)
    through = renyi(order, alpha_units.to_renyi(order, epsilon), size, "sharp")
    return GroupGuarantee(
        alpha_units.from_renyi(new_order, through.value), f"through Renyi DP: {through.theorem}", new_order
    )


def _doublings(size: int) -> int:
    """ceil(log2 size)."""
    return (checks.count("size", size, 1) - 1).bit_length()
