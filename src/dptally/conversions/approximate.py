"""From one (epsilon, delta)-guarantee to the others it implies."""

from __future__ import annotations

from dptally.accounting.approximate import implied_delta, implied_epsilon

__all__ = ["approx_to_approx", "approx_to_approx_delta"]


def approx_to_approx(epsilon: float, delta: float, target_delta: float) -> float:
    """The smallest epsilon' at ``target_delta`` that (epsilon, delta)-DP implies, rounded up; inf if
    target_delta < delta.

    [Liu et al. 2022 (GDPT), Thm. 2.1: an equivalence]

    >>> round(approx_to_approx(10.0, 0.0, 0.1), 12)
    9.894634439893
    """
    return implied_epsilon(epsilon, delta, target_delta)


def approx_to_approx_delta(epsilon: float, delta: float, target_epsilon: float) -> float:
    """The smallest delta' at ``target_epsilon`` that (epsilon, delta)-DP implies, rounded up.

    >>> round(approx_to_approx_delta(2.0, 0.01, 0.0), 12)
    0.763978214396
    """
    return implied_delta(epsilon, delta, target_epsilon)
