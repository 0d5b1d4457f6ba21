"""From one alpha-divergence guarantee, (order, epsilon)-ADP: Renyi DP in other units."""

from __future__ import annotations

from dptally.accounting.alpha import epsilon_from_alpha, to_renyi
from dptally.conversions.renyi import renyi_to_approx

__all__ = ["alpha_to_approx", "alpha_to_approx_paper", "alpha_to_renyi"]


def alpha_to_renyi(order: float, epsilon: float) -> float:
    """The same guarantee in Renyi units: log(1 + a (a-1) epsilon)/(a-1), rounded up.  [Liu, Wang 2025, Def. 8]

    >>> round(alpha_to_renyi(10.0, 0.5), 12)
    0.42540459961
    """
    return to_renyi(order, epsilon)


def alpha_to_approx(order: float, epsilon: float, delta: float) -> float:
    """The least epsilon' at ``delta`` that (order, epsilon)-ADP implies, through Renyi DP, rounded up.

    >>> alpha_to_approx(10.0, 0.5, 1e-5) < alpha_to_approx_paper(10.0, 0.5, 1e-5)
    True
    """
    return renyi_to_approx(order, to_renyi(order, epsilon), delta)


def alpha_to_approx_paper(order: float, epsilon: float, delta: float) -> float:
    """log((a (a-1) epsilon + 1)/delta)/(a-1), rounded up.  [Liu, Wang 2025, Prop. 4, corrected]

    >>> round(alpha_to_approx_paper(10.0, 0.5, 1e-5), 12)
    1.704618540162
    """
    return epsilon_from_alpha(order, epsilon, delta)
