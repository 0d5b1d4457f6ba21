"""Gaussian differential privacy: as hard to attack as N(mu, 1) against N(0, 1); mu's add in squares.

[Dong, Roth, Su 2022, Def. 2.6, Cor. 3.3; Balle, Wang 2018, Thm. 8 for the exact profile]
"""

from __future__ import annotations

import math

import numpy as np

from dptally import checks
from dptally.accounting.answer import Answer
from dptally.accounting.moments import Asked, checked
from dptally.errors import CannotCalibrate, InvalidArgument, Unanswerable
from dptally.interval import Interval
from dptally.law import Composition
from dptally.numerics.normal import (
    LARGEST_MU,
    SMALLEST_MU,
    gaussian_epsilon,
    gaussian_mu,
    log_gaussian_delta,
    normal_tail_quantile,
)
from dptally.numerics.rounding import down, up

__all__ = [
    "classic_sigma",
    "delta",
    "delta_mu",
    "epsilon",
    "epsilon_mu",
    "log_delta_mu",
    "mu",
    "mu_for",
    "mu_interval",
    "probabilistic_epsilon",
    "sigma_for",
]

_THEOREM = "Dong, Roth, Su 2022, Cor. 3.3 (mu adds in squares) and Balle, Wang 2018, Thm. 8 (the profile)"


def mu(plan: Asked) -> float:
    """sqrt of the sum of mu_j^2, the larger direction, rounded up; inf where some step has no known mu."""
    return max(_one_mu(composition) for composition in checked(plan))


def _one_mu(composition: Composition) -> float:
    if not composition.parts:
        return 0.0
    if len(composition.parts) == 1 and composition.parts[0][1] == 1:
        return composition.parts[0][0].gaussian_mu()
    each = [(law.gaussian_mu(), n) for law, n in composition.parts]
    largest = max(one for one, _ in each)
    if not 0 < largest < math.inf:
        return largest
    # relative to the largest: a square by itself may underflow
    return up(largest * math.sqrt(math.fsum(n * (one / largest) ** 2 for one, n in each)), 8)


def epsilon(plan: Asked, delta: float) -> Answer:
    """The epsilon at ``delta`` of the composed mu, rounded up: exact for Gaussian noise, an upper bound
    otherwise.
    """
    total = _finite_mu(plan)
    return Answer(epsilon_mu(total, delta), "gaussian", _THEOREM, None, f"mu = {total!r}")


def delta(plan: Asked, epsilon: float) -> Answer:
    """The delta at ``epsilon`` of the composed mu, rounded up."""
    total = _finite_mu(plan)
    return Answer(delta_mu(total, epsilon), "gaussian", _THEOREM, None, f"mu = {total!r}")


def _finite_mu(plan: Asked) -> float:
    total = mu(plan)
    if math.isinf(total):
        raise Unanswerable(
            "a step has no known mu, so the plan is not known to be Gaussian DP; use dptally.accounting.renyi.epsilon, "
            "or measure the step with dptally.gdp.measure"
        )
    return total


# -- mu, epsilon, delta --------------------------------------------------------------------------------------


def log_delta_mu(mu: float, epsilon: float) -> float:
    """log of :func:`delta_mu`, rounded up: it goes on where the double would underflow."""
    mu, epsilon = _checked_mu(mu), checks.nonnegative("epsilon", epsilon)
    return float(log_gaussian_delta(mu, epsilon)[1]) if mu > 0 else -math.inf


def delta_mu(mu: float, epsilon: float) -> float:
    """Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2), rounded up.  [Balle, Wang 2018, Thm. 8]

    >>> round(delta_mu(1.0, 1.0), 12)
    0.126936737507
    """
    logged = log_delta_mu(mu, epsilon)
    return min(up(math.exp(logged), 2), 1.0) if logged > -math.inf else 0.0


def epsilon_mu(mu: float, delta: float) -> float:
    """The smallest epsilon >= 0 with delta_mu(epsilon) <= delta, rounded up; inf at delta = 0 unless mu = 0.

    >>> round(epsilon_mu(1.0, 1e-5), 12)
    4.377178095681
    """
    mu, delta = _checked_mu(mu), checks.probability("delta", delta)
    return float(gaussian_epsilon(mu, delta)[1]) if mu > 0 else 0.0


def mu_for(epsilon: float, delta: float) -> float:
    """The largest mu whose guarantee meets (epsilon, delta), rounded down; 0 at delta = 0, inf at delta = 1.

    >>> round(mu_for(1.0, 1e-5), 12)
    0.268051123211
    """
    epsilon, delta = checks.nonnegative("epsilon", epsilon), checks.probability("delta", delta)
    return float(gaussian_mu(epsilon, delta)[0])


def mu_interval(epsilon: float, delta: float) -> Interval:
    """mu_GDP(epsilon, delta): the mu with delta_mu(epsilon) = delta, rounded both ways; [0, 0] at delta = 0, inf at 1.

    Noise of 1/lower certainly meets (epsilon, delta); noise of 1/upper certainly needs it.  [Liu et al. 2022, Def. 4.1]

    >>> box = mu_interval(1.0, 1e-5)
    >>> round(box.lower, 12), box.width < 1e-14
    (0.268051123211, True)
    """
    epsilon, delta = checks.nonnegative("epsilon", epsilon), checks.probability("delta", delta)
    low, high = gaussian_mu(epsilon, delta)
    return Interval(float(low), float(high), "inverse of the Gaussian profile")


def _checked_mu(mu: float) -> float:
    """mu in the range the profile is computed in; a smaller one is raised to its lower end, which is safe."""
    mu = checks.nonnegative("mu", mu)
    if mu > LARGEST_MU:
        raise InvalidArgument("mu", f"at most {LARGEST_MU}", mu)
    return max(mu, SMALLEST_MU) if mu > 0 else 0.0


# -- noise ---------------------------------------------------------------------------------------------------


def sigma_for(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The smallest standard deviation of Gaussian noise that is (epsilon, delta)-DP: sensitivity /
    mu(epsilon, delta).

    Exact for every epsilon >= 0 and delta in (0, 1), rounded up.  [Balle, Wang 2018, Thm. 9]

    >>> round(sigma_for(1.0, 1e-5), 12)
    3.730631634816
    """
    sensitivity = checks.positive("sensitivity", sensitivity)
    largest = mu_for(epsilon, checks.open_probability("delta", delta))
    if not largest > 0 or math.isinf(sensitivity / largest):
        raise CannotCalibrate(f"no Gaussian noise that a double can hold meets epsilon {epsilon!r} at delta {delta!r}")
    return up(sensitivity / largest)


def classic_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The textbook sigma = sqrt(2 log(1.25/delta)) sensitivity/epsilon, rounded up; only for 0 < epsilon < 1.

    Larger than :func:`sigma_for` needs. Beyond epsilon = 1 it is not a theorem (at 10 it is too small), so it
    is refused there.  [Dwork, Roth 2014, Thm. A.1; Mironov 2017, Sec. II]

    >>> classic_sigma(0.5, 1e-5) > sigma_for(0.5, 1e-5)
    True
    """
    epsilon, sensitivity = checks.positive("epsilon", epsilon), checks.positive("sensitivity", sensitivity)
    delta = checks.open_probability("delta", delta)
    if not epsilon < 1:
        raise InvalidArgument("epsilon", "below 1 for the classic formula", epsilon, "use sigma_for, which is exact")
    return up(math.sqrt(2 * up(math.log(1.25 / delta), 4)) * sensitivity / epsilon, 4)


def probabilistic_epsilon(mu: float, delta: float) -> float:
    """The epsilon with P(L > epsilon) = delta for Gaussian noise: mu^2/2 - mu Phi^{-1}(delta), rounded up.

    This is probabilistic DP (Liu, Wang 2025, Def. 2), another notion: larger than the epsilon of (epsilon,
    delta)-DP and not closed under post-processing. It is here to be compared with; no answer of the library
    uses it.

    >>> round(probabilistic_epsilon(0.1, 1e-5), 12)
    0.431489079392
    """
    mu, delta = _checked_mu(mu), checks.open_probability("delta", delta)
    if delta <= 0.5:
        quantile = float(normal_tail_quantile(down(np.asarray(math.log(delta)), 2))[1])
    else:
        quantile = -float(normal_tail_quantile(up(np.asarray(math.log1p(-delta)), 2))[0])
    value = 0.5 * mu * mu + mu * quantile
    return value + 4 * math.ulp(0.5 * mu * mu) + 4 * math.ulp(mu * quantile)
