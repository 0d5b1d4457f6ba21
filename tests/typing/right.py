"""What a user writes, and the types that a checker must see. Run by test_typing.py; never imported."""

from __future__ import annotations

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import dptally as dp
from dptally import gdp, mechanisms
from dptally.answers.compare import Comparison

assert_type(dp.__version__, str)

noise = dp.Gaussian(sigma=1.0, sensitivity=2.0)
assert_type(noise, dp.Gaussian)
assert_type(noise.sigma, float)
assert_type(dp.Laplace(1.0), dp.Laplace)
assert_type(dp.RandomizedResponse(0.7, categories=3), dp.RandomizedResponse)
assert_type(dp.DiscreteGaussian(1.0, 2), dp.DiscreteGaussian)
assert_type(dp.DiscreteLaplace(1.0), dp.DiscreteLaplace)
assert_type(dp.PureDP(0.5), dp.PureDP)
assert_type(dp.ApproxDP(0.5, 1e-6), dp.ApproxDP)
assert_type(dp.ZCDP(0.1), dp.ZCDP)
assert_type(dp.RenyiDP((2.0, 4.0), (0.1, 0.2)), dp.RenyiDP)
assert_type(dp.AlphaDP(2.0, 0.1), dp.AlphaDP)
assert_type(dp.GaussianDP(1.0), dp.GaussianDP)
assert_type(dp.Profile.from_points([(0.1, 1e-3)]), dp.Profile)
assert_type(dp.PoissonSampled(noise, 0.01, adjacency=dp.REPLACE), dp.PoissonSampled)
assert_type(dp.dpsgd(1.0, 0.01, 1000), dp.Composed)

plan = 3 * noise + dp.Laplace(5.0)
assert_type(plan, dp.Composed)
assert_type(plan.epsilon(delta=1e-6), float)
assert_type(plan.epsilon_interval(delta=1e-6), dp.Interval)
assert_type(plan.epsilon_interval(1e-6).upper, float)
assert_type(plan.delta(epsilon=1.0), float)
assert_type(plan.renyi(2.0), float)
assert_type(plan.renyi([2.0, 3.0]), NDArray[np.float64])
assert_type(plan.rho(), float)
assert_type(plan.tradeoff(0.01), float)
assert_type(plan.theorems(), tuple[str, ...])
assert_type(dp.compare(plan, delta=1e-6), Comparison)
assert_type(dp.convert(dp.ZCDP(0.5), to="approx", delta=1e-6), dp.Mechanism)
assert_type(dp.calibrate(lambda sigma: dp.Gaussian(sigma), epsilon=1.0, delta=1e-6), float)
assert_type(dp.to_json(plan), str)
assert_type(dp.from_json("{}"), dp.Mechanism)
assert_type(dp.Accountant(), dp.Accountant)
assert_type(gdp.measure(plan).mu, dp.Interval)
assert_type(dp.gdp.measure(plan).mu, dp.Interval)
assert_type(mechanisms.Gaussian(1.0), dp.Gaussian)
assert_type(dp.mechanisms.Gaussian(1.0), dp.Gaussian)
adjacency: dp.Adjacency = dp.ADD_REMOVE


def refused(law: object) -> str:
    try:
        dp.check_law(law)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    except dp.InvalidLaw as error:
        return error.law
    except dp.DptallyError as error:
        return str(error)
    return ""
