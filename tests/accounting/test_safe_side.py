"""Golden: a float that a framework or a plan answers is on the safe side of the truth, to the last bit.

Truths in 40 digits from the closed forms of Mironov 2017, Table II, for the doubles given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from mpmath import exp, expm1, log, mp, mpf

import dptally as dp
from dptally.accounting import alpha, concentrated, group, renyi
from dptally.accounting import gaussian as gaussian_dp
from dptally.conversions import pure


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with mp.workdps(40):
        yield


SEEDS = range(40)


def drawn(seed: int) -> tuple[float, float]:
    random = np.random.default_rng(seed)
    return float(10 ** random.uniform(-2, 1.5)), float(1 + 10 ** random.uniform(-1.5, 2))


def gaussian(scale: float, a: mpf) -> mpf:
    return a / (2 * mpf(scale) ** 2)


def laplace(scale: float, a: mpf) -> mpf:
    t = 1 / mpf(scale)
    return log(a / (2 * a - 1) * exp((a - 1) * t) + (a - 1) / (2 * a - 1) * exp(-a * t)) / (a - 1)


def response(p: float, a: mpf) -> mpf:
    p = mpf(p)
    return log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_divergences_of_plans(seed: int) -> None:
    scale, order = drawn(seed)
    a, p = mpf(order), 0.5 + 0.49 * (seed + 1) / 41
    for plan, truth in (
        (dp.Gaussian(scale), gaussian(scale, a)),
        (7 * dp.Gaussian(scale), 7 * gaussian(scale, a)),
        (dp.Laplace(scale), laplace(scale, a)),
        (13 * dp.Laplace(scale), 13 * laplace(scale, a)),
        (dp.RandomizedResponse(p), response(p, a)),
    ):
        assert truth <= plan.renyi(order) <= float(truth) * (1 + 1e-12)
        divergence = expm1((a - 1) * truth) / (a * (a - 1))
        if divergence < 1e300:
            assert divergence <= plan.alpha_divergence(order) <= float(divergence) * (1 + 1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_order(seed: int) -> None:
    epsilon, order = drawn(seed)
    a, e = mpf(order), mpf(epsilon)
    if (a - 1) * e < 600:
        assert expm1((a - 1) * e) / (a * (a - 1)) <= alpha.from_renyi(order, epsilon)
    assert log(1 + a * (a - 1) * e) / (a - 1) <= alpha.to_renyi(order, epsilon)
    assert e + e + a * (a - 1) * e * e <= alpha.compose(order, epsilon, epsilon)
    assert a / (2 * e) <= mpf(renyi.sigma_for(order, epsilon)) ** 2
    assert 1 / (2 * e) <= mpf(concentrated.sigma_for(epsilon)) ** 2
    assert a * (a - 1) / (2 * log(1 + a * (a - 1) * e)) <= mpf(alpha.sigma_for(order, epsilon)) ** 2
    assert e * mp.tanh(e / 2) <= concentrated.rho_from_pure(epsilon)
    p = exp(e) / (1 + exp(e))
    assert log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1) <= pure.pure_to_renyi(epsilon, order)
    for size in (2, 3, 7):
        assert size * e <= group.pure(epsilon, size).value
        assert size * size * e <= group.concentrated(epsilon, size).value
        assert min(mpf(1e-9) * expm1(size * e) / expm1(e), 1) <= group.approximate(epsilon, 1e-9, size).delta
    if order > 2:
        halved = group.renyi(order, epsilon, 2)
        assert (2 * a - 3) / (a - 2) * e <= halved.value
        equal = group.renyi(order, epsilon, 2, "equal-order")
        assert (2 * a - 1) / (a - 1) * e <= equal.value
        assert equal.order is not None
        assert mpf(equal.order) <= a * a / (2 * a - 1)


def test_order_one_and_small_numbers() -> None:
    """The logarithm of an alpha divergence that was taken and undone lost its length in ulps; squares underflowed."""
    random = np.random.default_rng(3)
    for scale in (1e5, 1e20, 1e139, *(10 ** random.uniform(-2, 30, 60)).tolist()):
        truth = 1 / (2 * Fraction(scale) ** 2)
        for plan, number in ((dp.Gaussian(scale), 1), (3 * dp.Gaussian(scale), 3)):
            assert number * truth <= Fraction(plan.alpha_divergence(1.0)) <= number * truth * (1 + Fraction(1, 10**12))
        assert mpf(float(alpha.log_divergence(dp.Gaussian(scale), 1.0))) >= log(1 / (2 * mpf(scale) ** 2))
    assert alpha.divergence(dp.PureDP(0.0), np.array([1.0, 2.0])).tolist() == [0.0, 0.0]
    for epsilon in (1e-3, 1e-100, 1e-170, 1e-300):
        one, two = (gaussian_dp.mu(n * dp.PureDP(epsilon)) for n in (1, 2))
        assert one * math.sqrt(2) * (1 - 1e-12) <= two <= one * math.sqrt(2) * (1 + 1e-12)


def test_exact_answers_stay_exact() -> None:
    assert dp.Laplace(scale=20).renyi(math.inf) == 0.05
    assert dp.PureDP(0.5).renyi(math.inf) == 0.5
    assert dp.Gaussian(2.0).renyi(10.0) == pytest.approx(1.25, rel=1e-13)


def test_closed_forms_are_rounded_once():
    """D_a = a rho of Gaussian noise and of declared zCDP is the nearest double from above, or the number itself."""
    assert dp.Gaussian(2.0).renyi(10) == 1.25
    assert dp.ZCDP(0.5).renyi(2.0) == 1.0
    assert dp.convert(dp.ZCDP(0.5), to="renyi", order=2.0).epsilons == (1.0,)
    for sigma, order in ((3.0, 7.0), (1.7, 1.5), (0.9, 123.0)):
        exact = Fraction(order) / (2 * Fraction(sigma) ** 2)
        found = (dp.Gaussian(sigma)).renyi(order)
        assert exact <= Fraction(found) <= exact * (1 + Fraction(4, 2**52))
