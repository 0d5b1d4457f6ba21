"""Golden and laws: the contour contains rigorous truths, each direction by itself; each bound holds alone."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from flint import acb, arb

from dptally.accounting.certified.contour import chernoff, inversion
from dptally.accounting.certified.contour.curve import curve
from dptally.accounting.certified.contour.tables import tabulate_at
from dptally.accounting.certified.lattice import bracket as lattice
from dptally.accounting.certified.solve import epsilon_ends
from dptally.law import Composition
from dptally.law.adjacency import Direction
from dptally.law.characteristic import MomentTable, NodeCharacteristic
from dptally.laws.gaussian import GaussianLaw
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from dptally.numerics.complexes import log1p_complex
from truth import GaussianPiece, SampledPiece, ball, gaussian_delta, mixture_delta, sampled_gaussian_delta
from truth.balls import precision

SIDES = {"remove": Direction.REMOVE, "add": Direction.ADD}


def sampled(sigma: float, rate: float, side: str, count: int) -> Composition:
    return Composition.of([(SampledGaussianLaw(rate, sigma, SIDES[side]), count)])


def gaussians(variance: float, count: int) -> Composition:
    """Built by hand: ``Composition.of`` would collapse them into one step with a closed form."""
    return Composition(((GaussianLaw(variance), count),))


def contains(low: float, high: float, delta: arb) -> bool:
    """exp(low) <= delta <= exp(high), certainly; -inf and 0 are the trivial bounds."""
    with precision(200):
        above = low == -math.inf or bool(ball(low).exp() <= delta)
        return above and (high == 0 or bool(delta <= ball(high).exp()))


def holds_epsilon(low: float, high: float, delta: float, delta_of: object) -> bool:
    """delta_of(low) >= delta >= delta_of(high), or low = 0."""
    with precision(200):
        above = low == 0 or bool(delta_of(low) >= ball(delta))  # type: ignore[operator]
        return above and bool(delta_of(high) <= ball(delta))  # type: ignore[operator]


# -- Gaussian losses through the contour: the identity itself, against the closed form --------------------------------


def test_gaussian_compositions_delta() -> None:
    draw = random.Random(31)
    widths = []
    for _ in range(1500):
        mu, count = 10 ** draw.uniform(-2, 0.7), draw.choice((2, 3, 10, 1000, 10**6))
        variance = mu * mu / count
        total = math.sqrt(variance * count)
        epsilon = 0.5 * total**2 + total * draw.uniform(-1.0, 25.0)
        found = inversion.for_epsilon(gaussians(variance, count), epsilon)
        assert found is not None
        low, high, _ = found.log_delta(epsilon)
        with precision(300):
            truth = gaussian_delta((ball(variance) * count).sqrt(), epsilon)
        assert contains(low, high, truth), (variance, count, epsilon)
        widths.append(high - low)
    assert float(np.median(widths)) < 1e-11


def test_gaussian_compositions_epsilon() -> None:
    draw = random.Random(32)
    for _ in range(800):
        mu, count = 10 ** draw.uniform(-2, 0.7), draw.choice((2, 7, 1000, 10**6))
        variance, delta = mu * mu / count, 10 ** draw.uniform(-300, -2)
        found = inversion.for_delta(gaussians(variance, count), math.log(delta))
        assert found is not None
        target = math.log(delta)
        low, high = epsilon_ends(found, (target - 1e-13 * abs(target), target + 1e-13 * abs(target)))
        assert high < math.inf

        def truth(epsilon: float, variance: float = variance, count: int = count) -> arb:
            with precision(300):
                return gaussian_delta((ball(variance) * count).sqrt(), epsilon)

        assert holds_epsilon(low, high, delta, truth), (variance, count, delta)


def test_far_from_its_saddle_a_contour_is_wide_and_never_wrong() -> None:
    draw = random.Random(33)
    for _ in range(600):
        variance, count = 10 ** draw.uniform(-3, 0), draw.choice((2, 30))
        total = variance * count
        found = inversion.for_epsilon(gaussians(variance, count), 0.5 * total + 3 * math.sqrt(total))
        assert found is not None
        epsilon = 0.5 * total + math.sqrt(total) * draw.uniform(-60, 200)
        low, high, _ = found.log_delta(epsilon)
        with precision(400):
            truth = gaussian_delta((ball(variance) * count).sqrt(), epsilon)
        assert contains(low, high, truth), (variance, count, epsilon)


# -- sampled Gaussians: every direction by itself, against inversion in balls ----------------------------------------


def draws(seed: int, number: int) -> list[tuple[float, float, int, float]]:
    """Plans that the balls answer quickly: sigma, q, T, and how many deviations eps lies above the mean."""
    draw = random.Random(seed)
    out = []
    while len(out) < number:
        sigma, rate = math.exp(draw.uniform(math.log(0.6), math.log(5.0))), 10 ** draw.uniform(-2.5, -0.2)
        count = round(10 ** draw.uniform(2.0, 5.0))
        if 1e-2 < count * rate**2 / sigma**2 < 300:
            out.append((sigma, rate, count, draw.uniform(0.5, 12.0)))
    return out


def chosen_epsilon(composition: Composition, deviations: float) -> float:
    table = tabulate_at(composition.parts, np.array([1e-3]))
    return float(table.first[0] + deviations * math.sqrt(max(table.second[0], 1e-12)))


@pytest.mark.parametrize("side", ["remove", "add"])
def test_sampled_gaussian_delta(side: str) -> None:
    checked = 0
    for sigma, rate, count, deviations in draws(41, 18):
        composition = sampled(sigma, rate, side, count)
        epsilon = chosen_epsilon(composition, deviations)
        found = inversion.for_epsilon(composition, epsilon)
        if found is None or epsilon <= 0:
            continue
        low, high, _ = found.log_delta(epsilon)
        try:
            truth = sampled_gaussian_delta(sigma, rate, count, epsilon, side, 18)
        except ArithmeticError:  # the balls would take too long
            continue
        assert contains(low, high, truth), (sigma, rate, count)
        checked += 1
    assert checked >= 12


@pytest.mark.parametrize("side", ["remove", "add"])
def test_sampled_gaussian_epsilon(side: str) -> None:
    draw = random.Random(42)
    checked = 0
    for sigma, rate, count, _ in draws(43, 8):
        delta = 10 ** draw.uniform(-30, -2)
        found = inversion.for_delta(sampled(sigma, rate, side, count), math.log(delta))
        if found is None:
            continue
        low, high = epsilon_ends(found, (math.log(delta) - 1e-13, math.log(delta) + 1e-13))
        if not 0 < low < high < math.inf:
            continue

        def truth(epsilon: float, plan: tuple[float, float, int] = (sigma, rate, count)) -> arb:
            return sampled_gaussian_delta(*plan, epsilon, side, 18)

        try:
            assert holds_epsilon(low, high, delta, truth), (sigma, rate, count, delta)
        except ArithmeticError:  # the balls would take too long
            continue
        checked += 1
    assert checked >= 3


@pytest.mark.parametrize("side", ["remove", "add"])
def test_a_gaussian_beside_sampled_gaussians(side: str) -> None:
    draw = random.Random(44)
    for _ in range(6):
        mu, sigma, rate = draw.uniform(0.3, 2.0), draw.uniform(0.7, 3.0), 10 ** draw.uniform(-3, -0.5)
        count = draw.choice((1, 3, 50))
        law = GaussianLaw(mu * mu)
        composition = Composition.of([(law, 1), (SampledGaussianLaw(rate, sigma, SIDES[side]), count)])
        epsilon = 0.5 * mu * mu + mu * draw.uniform(0.5, 9.0)
        found = inversion.for_epsilon(composition, epsilon)
        assert found is not None
        low, high, _ = found.log_delta(epsilon)
        with precision(200):
            root = ball(law.variance).sqrt()
        truth = mixture_delta([GaussianPiece(root, 1), SampledPiece(sigma, rate, side, count)], epsilon, 18)
        assert contains(low, high, truth), (mu, sigma, rate, count, epsilon)
        assert high - low < 1e-9


@pytest.mark.parametrize("side", ["remove", "add"])
def test_many_different_parts(side: str) -> None:
    """Of ten parts only those that carry the variance are asked for their decay."""
    draw = random.Random(48)
    parts = [(draw.uniform(0.8, 3.0), 10 ** draw.uniform(-3, -1), 40 + i) for i in range(10)]
    composition = Composition.of([(SampledGaussianLaw(rate, sigma, SIDES[side]), n) for sigma, rate, n in parts])
    found = inversion.for_delta(composition, math.log(1e-6))
    assert found is not None
    low, high, _ = found.log_delta(found.saddle)
    truth = mixture_delta([SampledPiece(sigma, rate, side, n) for sigma, rate, n in parts], found.saddle, 18)
    assert contains(low, high, truth)
    assert high - low < 1e-10


def test_the_tilt_is_computed_where_the_variance_leaps() -> None:
    """K'' grows elevenfold within one per cent of this tilt: a row by Taylor's formula would misjudge the contour."""
    composition = sampled(2.2928642490349245, 0.001704357195206504, "remove", 155)
    found = inversion.for_delta(composition, math.log(0.0014252940811320522))
    assert found is not None
    low, high, _ = found.log_delta(0.0068)
    other_low, other_high = lattice.log_delta(composition, 0.0068, effort=0.1)
    assert max(low, other_low) <= min(high, other_high)
    assert high - low < 1e-7


def test_contours_of_different_tilts_overlap() -> None:
    """The tilt is no part of the certificate: intervals from different tilts share the truth."""
    draw = random.Random(45)
    compared = 0
    for sigma, rate, count, deviations in draws(46, 60):
        side = draw.choice(("remove", "add"))
        composition = sampled(sigma, rate, side, count)
        epsilon = chosen_epsilon(composition, deviations)
        answers = []
        for factor in (0.85, 1.0, 1.1):
            found = inversion.for_epsilon(composition, factor * epsilon)
            if found is not None:
                answers.append(found.log_delta(epsilon)[:2])
        compared += len(answers) > 1
        assert max(low for low, _ in answers) <= min(high for _, high in answers), (sigma, rate, count, epsilon)
    assert compared >= 50


# -- the bounds one by one --------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["remove", "add"])
def test_moment_table_error(side: str) -> None:
    draw = random.Random(51)
    for _ in range(25):
        sigma, rate = math.exp(draw.uniform(math.log(0.3), math.log(10.0))), 10 ** draw.uniform(-5, -0.01)
        theta = np.array([10 ** draw.uniform(-3, 1.5) for _ in range(3)])
        table = SampledGaussianLaw(rate, sigma, SIDES[side]).moment_table(np.sort(theta))
        piece = SampledPiece(sigma, rate, side)
        for tilt, moment, error in zip(table.theta, table.moment, table.error, strict=True):
            with precision(150):
                assert bool(abs(piece.log_moment(arb(float(tilt))) - ball(float(moment))) <= ball(float(error)))


@pytest.mark.parametrize("side", ["remove", "add"])
def test_characteristic_values_and_moment(side: str) -> None:
    """phi(u) of the nodes is within its own error bound of the ball, and so is K."""
    draw = random.Random(52)
    for _ in range(25):
        sigma, rate = math.exp(draw.uniform(math.log(0.3), math.log(6.0))), 10 ** draw.uniform(-4, -0.05)
        theta, reach = 10 ** draw.uniform(-1.5, 1.3), 10 ** draw.uniform(0, 2.5)
        char = SampledGaussianLaw(rate, sigma, SIDES[side]).characteristic(theta, reach, math.log(1e-15))
        assert isinstance(char, NodeCharacteristic)
        number = 12
        values, errors = char.on_grid(reach / number, number)
        piece = SampledPiece(sigma, rate, side)
        with precision(170):
            step = ball(reach / number)
            exact, log_moment = piece.phis(ball(theta), step, number - 1)
            assert bool(abs(log_moment - ball(char.log_moment)) <= ball(char.log_moment_error)), (sigma, rate, theta)
            for k in range(number):
                turned = exact[k] * acb(0, -k * step * ball(char.centre)).exp() - 1
                gap = abs(turned - acb(ball(float(values[k].real)), ball(float(values[k].imag))))
                slack = ball(4e-16 * k * float(step) * abs(char.centre))  # u itself is rounded
                assert bool(gap <= ball(float(errors[k])) + slack), (sigma, rate, theta, reach, k)


@pytest.mark.parametrize("side", ["remove", "add"])
def test_decay_bounds_phi_beyond_the_start(side: str) -> None:
    draw = random.Random(53)
    informative = 0
    for _ in range(120):
        sigma, rate = math.exp(draw.uniform(math.log(0.3), math.log(10.0))), 10 ** draw.uniform(-4, -0.01)
        theta = 10 ** draw.uniform(-2, 1.3)
        law = SampledGaussianLaw(rate, sigma, SIDES[side])
        start = np.sort(10.0 ** np.array([draw.uniform(-1, 2.5) for _ in range(4)]))
        bound = law.log_decay(theta, start)
        assert np.all(bound <= 0)
        assert np.all(np.isfinite(bound))
        char = law.characteristic(theta, 3 * float(start[-1]), math.log(1e-13))
        if char is None:
            continue
        for u, log_bound in zip(start, bound, strict=True):
            for beyond in (1.0, 1.3, 2.9):
                values, errors = char.on_grid(beyond * u, 2)
                assert abs(values[1] + 1.0) - errors[1] <= math.exp(log_bound), (sigma, rate, theta, u, beyond)
        informative += bool(bound[-1] < -0.1)
    assert informative >= 40


def test_log1p_complex_near_zero_and_near_minus_one() -> None:
    draw = random.Random(55)
    eps = 2.0**-52
    for _ in range(1500):
        centre = draw.choice((0.0, -1.0, -0.5))
        size, angle = 10 ** draw.uniform(-12, 0.3), draw.uniform(-math.pi, math.pi)
        x = complex(centre + size * math.cos(angle), size * math.sin(angle))
        if abs(1 + x) > 1.0 or x == -1:
            continue
        got = complex(log1p_complex(np.array([x]))[0])
        with mp.workdps(40):
            true = mp.log(1 + mp.mpc(x))
            assert abs(true - mp.mpc(got)) <= 12 * eps * (abs(x) + abs(true)), x


def test_no_tilt_above_leaves_no_lower_bound() -> None:
    composition = gaussians(0.1, 4)
    found = inversion.for_epsilon(composition, 1.0)
    assert found is not None
    empty = MomentTable(*(column[:1] for column in (np.array([1e-3]), *np.full((4, 1), 1e-4))))
    blind = replace(found, tilts=empty)
    assert blind.log_delta(1.0)[0] == -math.inf
    assert blind.log_delta(1.0)[1] == found.log_delta(1.0)[1]


def test_curve_answers_contain_the_closed_form() -> None:
    counts = [10, 11, 12, 50, 51, 400]
    delta = 1e-7
    target = math.log(delta)
    answers = curve(gaussians(0.01, 1), counts, (target - 1e-14, target + 1e-14))
    assert sorted(answers) == counts
    for count, (low, high) in answers.items():
        assert holds_epsilon(low, high, delta, lambda e, c=count: gaussian_delta((ball(0.01) * c).sqrt(), e))


def test_chernoff_bounds_lie_above() -> None:
    draw = random.Random(56)
    for _ in range(60):
        variance, count, delta = 10 ** draw.uniform(-4, -1), draw.choice((2, 50)), 10 ** draw.uniform(-60, -1)
        composition = gaussians(variance, count)
        epsilon = chernoff.chernoff_epsilon(composition, math.log(delta))
        with precision(250):
            mu = (ball(variance) * count).sqrt()
            assert bool(gaussian_delta(mu, epsilon) <= ball(delta))
            point = draw.uniform(0, 3)
            assert bool(gaussian_delta(mu, point) <= ball(chernoff.chernoff_log_delta(composition, point)).exp())


def test_too_little_noise_for_a_table_is_left_to_others() -> None:
    composition = sampled(0.02, 0.01, "remove", 3)
    assert inversion.for_delta(composition, math.log(1e-5)) is None
    assert chernoff.chernoff_epsilon(composition, math.log(1e-5)) == math.inf
    assert chernoff.chernoff_log_delta(composition, 1.0) == 0.0
