"""Containment: deltas next to the least double, where masses on a lattice lose their digits.

The truth is one step's: n steps tell at least as much as one, and rare large losses add up.
"""

from __future__ import annotations

import pytest
from mpmath import mp, mpf

import dptally as dp

SIGMA, RATE, STEPS = 1.0000000000000002, 5.513011685190342e-08, 9
PLAN = STEPS * dp.PoissonSampled(dp.Gaussian(SIGMA), RATE)


def one_step(epsilon: float) -> mpf:
    """q delta_mu(log(1 + (e^eps - 1)/q)), mu = 1/sigma."""
    with mp.workdps(400):
        mu, q = 1 / mpf(SIGMA), mpf(RATE)
        inner = mp.log1p(mp.expm1(mpf(epsilon)) / q)
        return q * (mp.ncdf(mu / 2 - inner / mu) - mp.exp(inner) * mp.ncdf(-mu / 2 - inner / mu))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("epsilon", [21.5, 21.6, 21.65])
def test_upper_ends_of_delta_are_not_below_what_rare_losses_add_up_to(epsilon: float) -> None:
    # with probability 1 - 1e-6 the other steps lose next to nothing: n times one step to a relative 1e-3
    assert PLAN.delta_interval(epsilon).upper >= float(0.999 * STEPS * one_step(epsilon))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("delta", [1e-320, 1e-322, 5e-324])
def test_upper_ends_of_epsilon_suffice(delta: float) -> None:
    assert 0.999 * STEPS * one_step(PLAN.epsilon(delta)) <= mpf(delta)
