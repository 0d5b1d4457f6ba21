"""From Gaussian DP."""

from __future__ import annotations

import math

from dptally import checks
from dptally.accounting.alpha import from_renyi
from dptally.accounting.gaussian import delta_mu, epsilon_mu
from dptally.errors import InvalidArgument
from dptally.numerics.rounding import up

__all__ = ["gdp_to_alpha", "gdp_to_approx", "gdp_to_approx_delta", "gdp_to_renyi", "gdp_to_zcdp"]


def gdp_to_approx(mu: float, delta: float) -> float:
    """The smallest epsilon at ``delta`` that mu-GDP implies, rounded up; exact.  [Dong, Roth, Su 2022, Cor.
    2.13]

    >>> round(gdp_to_approx(1.0, 1e-5), 12)
    4.377178095681
    """
    return epsilon_mu(mu, delta)


def gdp_to_approx_delta(mu: float, epsilon: float) -> float:
    """The smallest delta at ``epsilon`` that mu-GDP implies, rounded up; exact.  [Dong, Roth, Su 2022, Cor.
    2.13]

    >>> round(gdp_to_approx_delta(1.0, 1.0), 12)
    0.126936737507
    """
    return delta_mu(mu, epsilon)


def gdp_to_zcdp(mu: float) -> float:
    """mu-GDP is (mu^2/2)-zCDP, rounded up.  [Dong, Roth, Su 2022, Cor. B.6]

    >>> gdp_to_zcdp(1.0) >= 0.5
    True
    """
    mu = checks.nonnegative("mu", mu)
    return up(0.5 * mu * mu) if mu > 0 else 0.0


def gdp_to_renyi(mu: float, order: float) -> float:
    """mu-GDP is (order, order mu^2/2)-RDP for every finite order >= 1, rounded up; inf at order inf unless mu
    = 0.

    [Dong, Roth, Su 2022, Cor. B.6]

    >>> round(gdp_to_renyi(0.5, 10.0), 12)
    1.25
    """
    mu, order = checks.nonnegative("mu", mu), checks.order("order", order)
    return up(0.5 * order * mu * mu, 2) if mu > 0 else 0.0


def gdp_to_alpha(mu: float, order: float) -> float:
    """mu-GDP in alpha-divergence units at one order in (1, inf): (exp(a (a-1) mu^2/2) - 1)/(a (a-1)), rounded
    up.

    >>> round(gdp_to_alpha(0.5, 2.0), 12)
    0.142012708344
    """
    if not math.isfinite(checks.order("order", order)):
        raise InvalidArgument("order", "an order in (1, inf)", order)
    return from_renyi(order, gdp_to_renyi(mu, order))
