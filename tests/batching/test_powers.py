"""Laws: tables of powers of the allocation ratio, and epochs made of them, against truths that share no code.

Two steps: S = Y_1 + Y_2 = 2 exp(m s / sqrt 2 - m^2/2) cosh(m d / sqrt 2) with independent standard normal s and d. So
E R^p is one integral, and given the d of every epoch the product of the R is lognormal: E(R_1 .. R_E - a)+ is an
integral of the Black-Scholes formula over the d. More steps: moments by summing over all words of steps.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from mpmath import mp, mpc, mpf
from scipy.special import ndtr

import dptally as dp
from depth import SOAK, thinned
from dptally.law.adjacency import Direction
from dptally.laws.sampled.allocation.epochs import AllocationEpochsLaw
from dptally.laws.sampled.allocation.integers import log_integer_moments, log_power_upper
from dptally.laws.sampled.allocation.law import AllocationLaw
from dptally.laws.sampled.allocation.powers import Powers, Request, log_gamma_ratio


def two_steps(m: float, p: complex) -> complex:
    """E R^p, t = 2: the trapezoid rule, to 1e-13."""
    d = np.linspace(-40.0, 40.0, 4001)
    powers = np.exp(p * (np.logaddexp(m * d / math.sqrt(2), -m * d / math.sqrt(2)) - math.log(2)) - 0.5 * d * d)
    return complex(np.exp(p * p * m**2 / 4 - p * m**2 / 2) * powers.sum() * 0.02 / math.sqrt(2 * math.pi))


@pytest.mark.parametrize(("m", "low", "high"), [(1.0, 1.0, 8.0), (0.4, -6.0, 0.0), (2.5, 1.0, 3.0)])
def test_two_steps(m: float, low: float, high: float) -> None:
    table = Powers.of(Request(m, 2, math.ceil(max(high, 0)) + 40, low, high, 12.0))
    assert table is not None
    power = np.array([low + 0.3, 0.5 * (low + high), high])
    value, error, _, _ = table.real(power)
    for p, found, doubt in zip(power.tolist(), value.tolist(), error.tolist(), strict=True):
        truth = math.log(two_steps(m, p).real)
        assert abs(found - truth) <= doubt + 1e-12 < 1e-8
        assert abs(found - truth - 1e-6) > doubt  # a wrong value is seen
    u = np.array([0.0, 1.0, 4.0])
    phi, doubts = table.turned(float(power[1]), u)
    whole = two_steps(m, float(power[1]))
    for at, found, doubt in zip(u.tolist(), phi.tolist(), doubts.tolist(), strict=True):
        truth = two_steps(m, complex(power[1], at)) / whole
        assert abs(found - truth) <= doubt + 1e-12


def test_integer_moments_by_all_words() -> None:
    """E S^k is the sum over words of length k in t letters of prod E Y^(number of the letter)."""
    mp.dps = 30
    for m, t in ((1.0, 3), (0.5, 5), (2.0, 2)):
        value, error = log_integer_moments(m, t, 5)
        for k in range(2, 6):
            total = mpf(0)
            for word in itertools.product(range(t), repeat=k):
                counts = [word.count(letter) for letter in range(t)]
                total += mp.exp(mpf(m) ** 2 * sum(j * (j - 1) for j in counts) / 2)
            assert abs(float(mp.log(total / mpf(t) ** k)) - value[k]) <= error[k] + 1e-15
    few, _ = log_integer_moments(0.7, 40, 32)  # by the recurrence
    many, _ = log_integer_moments(0.7, 40, 64)  # by squaring
    assert few == pytest.approx(many[:33], rel=1e-11, abs=1e-12)


@pytest.mark.parametrize(("m", "t"), [(1.0, 100), (0.5, 10), (2.0, 37), (1.0, 10_000)])
def test_tables_meet_the_integers(m: float, t: int) -> None:
    table = Powers.of(Request(m, t, 60, 1.0, 6.0, 5.0))
    assert table is not None
    value, error, first, _ = table.real(np.array([1.0, 2.0, 3.0, 5.0]))
    exact, doubt = log_integer_moments(m, t, 5)
    assert (np.abs(value - exact[[1, 2, 3, 5]]) <= error + doubt[[1, 2, 3, 5]]).all()
    assert (error < 1e-9).all()
    assert (np.diff(first) > 0).all()
    assert (value <= log_power_upper(m, t, np.array([1.0, 2.0, 3.0, 5.0])) + error).all()


def test_gamma_ratio() -> None:
    mp.dps = 30
    u = np.array([0.0, 3.0, 80.0])
    for a in (20.0, 47.5, 900.0):
        value, error = log_gamma_ratio(a, u)
        for at, found, doubt in zip(u.tolist(), value.tolist(), error.tolist(), strict=True):
            truth = mp.loggamma(mpc(a, at)) - mp.loggamma(mpf(a))
            assert abs(complex(truth) - found) <= doubt


def epochs_of_two_steps(m: float, epochs: int, epsilon: float, side: Direction) -> float:
    """delta(eps) of epochs of two steps: given all d the product of the ratios is lognormal, exp(N(mu, v))."""
    points = {1: 801, 2: 241, 3: 61, 4: 31}[epochs]
    d = np.linspace(-9.0, 9.0, points)
    weight = np.exp(-0.5 * d * d) * (d[1] - d[0]) / math.sqrt(2 * math.pi)
    log_cosh = np.log(np.cosh(m * d / math.sqrt(2)))
    drift, density = np.zeros(1), np.ones(1)
    for _ in range(epochs):
        drift = np.add.outer(drift, log_cosh).ravel()
        density = np.multiply.outer(density, weight).ravel()
    keep = density > 1e-22
    drift, density = drift[keep] - epochs * m * m / 2, density[keep]
    v = epochs * m * m / 2
    forward = np.exp(drift + v / 2)
    if side is Direction.REMOVE:  # E(R - a)+
        x = (drift - epsilon) / math.sqrt(v)
        return float(density @ (forward * ndtr(x + math.sqrt(v)) - math.exp(epsilon) * ndtr(x)))
    x = (-epsilon - drift) / math.sqrt(v)  # E(1 - aR)+
    return float(density @ (ndtr(x) - math.exp(epsilon) * forward * ndtr(x - math.sqrt(v))))


def test_epochs_of_two_steps() -> None:
    draw = np.random.default_rng(5)
    width = []
    for _ in range(thinned(24)):
        m, epochs = float(np.exp(draw.uniform(-1.2, 0.9))), int(draw.integers(1, 4 if SOAK else 3))
        side = list(Direction)[int(draw.integers(2))]
        law = AllocationEpochsLaw.of(((AllocationLaw(m, 2, side), epochs),))
        epsilon = draw.uniform(-1.0, 3.0, 3) * m * math.sqrt(epochs)
        lower, upper = (np.exp(end) for end in law.log_profile(epsilon))
        for at, low, high in zip(epsilon.tolist(), lower.tolist(), upper.tolist(), strict=True):
            truth = epochs_of_two_steps(m, epochs, at, side)
            assert low * (1 - 1e-11) - 1e-15 <= truth <= high * (1 + 1e-11) + 1e-15
            assert not low <= truth * (1 + 1e-4) <= high  # a wrong truth is seen
            width.append((high - low) / high)
    assert np.median(width) < 1e-8


def test_tables_and_contours_of_sums_meet() -> None:
    """One epoch by powers, and by contours of S itself: two ways that share only the inversion."""
    draw = np.random.default_rng(6)
    for _ in range(thinned(12)):
        t, m = int(np.exp(draw.uniform(1.0, 5.0))), float(np.exp(draw.uniform(-1.0, 1.0)))
        law = AllocationLaw(m, t, list(Direction)[int(draw.integers(2))])
        epsilon = draw.uniform(0.0, 4.0, 2) * min(m, math.sqrt(math.expm1(m * m) / t))
        one = AllocationEpochsLaw.of(((law, 1),)).log_profile(epsilon)
        other = law.log_profile(epsilon)
        assert (one[0] <= other[1] + 1e-13).all()
        assert (other[0] <= one[1] + 1e-13).all()


@pytest.mark.parametrize("adjacency", [dp.ADD_REMOVE, dp.REPLACE])
def test_every_order_has_a_finite_divergence(adjacency: dp.Adjacency) -> None:
    for sampler in (dp.RandomAllocation(3, 2), dp.BallsInBins(5), dp.BallsInBins(2)):
        plan = dp.Sampled(dp.Gaussian(2), sampler, epochs=1, adjacency=adjacency)
        found = [plan.renyi(order) for order in (1.0, 1.001, 1.5, 2.0, 7.5, 40.0, 300.0, 1e5)]
        assert all(math.isfinite(value) and value > 0 for value in found)
        assert all(b >= a * (1 - 1e-6) for a, b in itertools.pairwise(found))


def test_divergences_of_integer_order_are_exact() -> None:
    for t, sigma in ((2, 1.0), (10, 0.8), (100, 2.0)):
        plan = dp.Sampled(dp.Gaussian(sigma), dp.BallsInBins(t), epochs=4)
        value, _ = log_integer_moments(1 / sigma, t, 3)
        assert plan.renyi(2.0) == pytest.approx(4 * value[2], rel=1e-9)
        assert plan.renyi(3.0) == pytest.approx(4 * value[3] / 2, rel=1e-9)
    # between them they are no chord: K is strictly convex
    law = AllocationLaw(1.0, 10, Direction.REMOVE)
    half = float(law.log_moment(np.array([0.5]))[0])
    assert half < 0.5 * float(law.log_moment(np.array([1.0]))[0]) * 0.8


def one_epoch(m: float, steps: int, epsilons: tuple[float, ...]) -> list[tuple[float, float]]:
    """(E(S/t - a)+, E(1 - a S/t)+) at each a = e^eps, by one contour in 30 digits: trapezoid rules in x and in u.

    E(b - S)+ = 1/(2 pi i) int e^{sb} phi(s)^t / s^2 ds over Re s = c; the sum over u errs by less than 1e-14.
    """
    mp.dps = 30
    shift, c, period = mpf(m), mpf("0.6"), 80
    x = [mpf(j) / 16 for j in range(-160, 161)]
    y = [mp.exp(shift * at - shift**2 / 2) for at in x]
    w = [mp.exp(-at * at / 2) / (16 * mp.sqrt(2 * mp.pi)) for at in x]
    sums = {sign * e: mpf(0) for e in epsilons for sign in (1, -1)}
    step = 2 * mp.pi / period
    for k in range(int(14 / step)):
        s = mpc(c, k * step)
        phi = mp.fsum(wj * mp.exp(-s * yj) for wj, yj in zip(w, y, strict=True)) ** steps / s**2
        for e in sums:
            sums[e] += mp.re(mp.exp(s * steps * mp.exp(mpf(e))) * phi) * (step if k else step / 2) / mp.pi
    found = []
    for e in epsilons:
        a = mp.exp(mpf(e))
        found.append((float(sums[e] / steps + 1 - a), float(sums[-e] / steps * a)))
    return found


def test_one_epoch_against_a_contour_in_many_digits() -> None:
    """The difference by which one epoch is asked first, and the tables where that cancels."""
    for m, steps in ((1.0, 20), (0.8, 40)) if SOAK else ((1.0, 20),):
        epsilons = (0.05, 0.6)
        truths = one_epoch(m, steps, epsilons)
        for i, side in enumerate((Direction.REMOVE, Direction.ADD)):
            law = AllocationEpochsLaw.of(((AllocationLaw(m, steps, side), 1),))
            lower, upper = (np.exp(end) for end in law.log_profile(np.array(epsilons)))
            for truth, low, high in zip(truths, lower.tolist(), upper.tolist(), strict=True):
                assert low * (1 - 1e-9) <= truth[i] <= high * (1 + 1e-9)
                assert not low <= truth[i] * (1 + 2e-6) <= high
