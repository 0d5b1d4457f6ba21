"""From zero-concentrated DP."""

from __future__ import annotations

import math

from dptally import checks
from dptally.accounting import renyi
from dptally.accounting.alpha import from_renyi
from dptally.accounting.concentrated import delta_from_rho, epsilon_from_rho
from dptally.accounting.moments import Checked
from dptally.errors import InvalidArgument
from dptally.law import Composition
from dptally.laws.moment_bound import ZCDPBound
from dptally.numerics.rounding import up

__all__ = [
    "zcdp_to_alpha",
    "zcdp_to_approx",
    "zcdp_to_approx_bun_steinke",
    "zcdp_to_approx_cks",
    "zcdp_to_approx_delta",
    "zcdp_to_renyi",
]


def zcdp_to_renyi(rho: float, order: float) -> float:
    """rho-zCDP is (order, rho * order)-RDP for every finite order > 1, rounded up; inf at order inf.

    [Bun, Steinke 2016, Def. 1.1]

    >>> zcdp_to_renyi(0.5, 8.0) >= 4.0
    True
    """
    rho, order = checks.nonnegative("rho", rho), checks.order("order", order)
    return 0.0 if rho == 0 else up(rho * order)


def zcdp_to_alpha(rho: float, order: float) -> float:
    """rho-zCDP in alpha-divergence units at one order in (1, inf): (exp((a-1) a rho) - 1)/(a (a-1)), rounded
    up.

    >>> round(zcdp_to_alpha(0.125, 2.0), 12)
    0.142012708344
    """
    if not math.isfinite(checks.order("order", order)):
        raise InvalidArgument("order", "an order in (1, inf)", order)
    return from_renyi(order, zcdp_to_renyi(rho, order))


def zcdp_to_approx(rho: float, delta: float) -> float:
    """rho-zCDP implies (epsilon, delta)-DP: all that the best order proves, in both directions, rounded up.

    [Asoodeh et al. 2021; accounting/two_points.py and, for large delta, accounting/response.py]

    >>> round(zcdp_to_approx(0.5, 1e-5), 9), zcdp_to_approx(0.5, 0.48)
    (4.728385649, 0.0)
    """
    known = epsilon_from_rho(rho, delta).value
    return min(known, renyi.epsilon(_bound(rho), delta, "optimal").value) if 0 < known < math.inf else known


def zcdp_to_approx_cks(rho: float, delta: float) -> float:
    """The same by the sharper Renyi conversion in closed form, the order optimised.

    [Canonne, Kamath, Steinke 2020, Prop. 12]

    >>> round(zcdp_to_approx_cks(0.5, 1e-5), 9)
    4.728386985
    """
    return epsilon_from_rho(rho, delta).value


def zcdp_to_approx_bun_steinke(rho: float, delta: float) -> float:
    """rho-zCDP implies (rho + 2 sqrt(rho log(1/delta)), delta)-DP, rounded up.  [Bun, Steinke 2016, Prop.
    1.3]

    >>> round(zcdp_to_approx_bun_steinke(0.5, 1e-5), 12)
    5.298525912188
    """
    return epsilon_from_rho(rho, delta, "bun-steinke").value


def zcdp_to_approx_delta(rho: float, epsilon: float) -> float:
    """The delta at ``epsilon`` that rho-zCDP implies, likewise, rounded up.

    >>> round(zcdp_to_approx_delta(0.5, 4.728385649), 9), round(zcdp_to_approx_delta(0.5, 0.0), 9)
    (1e-05, 0.479098423)
    """
    known = delta_from_rho(rho, epsilon).value
    return min(known, renyi.delta(_bound(rho), epsilon, "optimal").value) if known > 0 else known


def _bound(rho: float) -> Checked:
    return Checked((Composition.of([(ZCDPBound(checks.nonnegative("rho", rho)), 1)]),))
