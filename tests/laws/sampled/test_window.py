"""Golden: bands of a sampled Gaussian between soft edges against integrals in balls; laws: they add up."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from flint import acb, arb

from dptally.law.characteristic import SoftCut
from dptally.laws.sampled.gaussian.kernel import SampledGaussianNodes
from dptally.laws.sampled.gaussian.window import SampledGaussianBand
from dptally.numerics.special import log_ndtr
from truth import ball
from truth.balls import precision

pytestmark = pytest.mark.usefixtures("quiet")


def transform(band: SampledGaussianBand, theta: float, u: float) -> acb:
    """The integral of e^{(theta + iu) L} over the band and -25 < t < 25, in balls."""
    q, s = ball(band.kernel.rate), ball(band.kernel.scale)
    tilt = acb(ball(theta), ball(u))

    def lam(t: acb) -> acb:
        return (1 + q / (1 - q) * (t / s - 1 / (2 * s * s)).exp()).log()

    def below(edge: SoftCut, t: acb) -> acb:
        value = (ball(edge.rho) * (lam(t) / ball(edge.at) - 1) / arb(2).sqrt()).erfc() / 2
        if band.mirrored and edge.both:
            value *= (ball(edge.rho) * (lam(-t) / ball(edge.at) - 1) / arb(2).sqrt()).erfc() / 2
        return value

    def density(t: acb, _: object) -> acb:
        window = acb(1) if band.high is None else below(band.high, t)
        if band.low is not None:
            window -= below(band.low, t)
        log_a = lam(t) + (1 - q).log()
        loss = lam(t) - lam(-t) if band.mirrored else log_a
        return window * (log_a + tilt * loss - t * t / 2).exp() / (2 * arb.pi()).sqrt()

    with precision(160):
        return acb.integral(density, -25, 25)


def bands(draw: random.Random, mirrored: bool) -> tuple[SampledGaussianBand, float]:
    """A band whose edges lie where the law has mass, and a tilt that suits it."""
    kernel = SampledGaussianNodes(10 ** draw.uniform(-4, -0.7), draw.uniform(0.5, 4.0), True)
    size = 10 ** draw.uniform(-2, 0.5)
    rho = draw.uniform(9, 14)
    both = draw.random() < 0.5
    low, high = SoftCut(size, rho), SoftCut(size * draw.uniform(4, 8), rho + draw.uniform(0, 12), both)
    shape = draw.choice([(None, low), (low, high), (high, None)])
    return SampledGaussianBand(kernel, *shape, mirrored), draw.uniform(0, 4) / size


@pytest.mark.parametrize("mirrored", [False, True])
def test_moments_and_characteristic_functions(mirrored: bool) -> None:
    draw = random.Random(71)
    checked = 0
    while checked < 24:
        band, theta = bands(draw, mirrored)
        u = draw.uniform(0.2, 3.0) * (1.0 + theta)
        built = band.characteristic(theta, u, -32.0)
        if built is None or built.log_moment < -60:
            continue
        largest = built.centre + float(built.losses[-1]) - math.log1p(-band.kernel.rate)
        if not 0 < largest < 30 or float(band.position(np.array([largest]))[0]) > 20:
            continue  # beyond the range of the reference: left of it there is no more than e^-312
        whole, turned = transform(band, theta, 0.0).real, transform(band, theta, u)
        minus_one, error = built.on_grid(u, 2)
        table = band.moment_table(np.array([theta]))
        with precision(160):
            assert bool(abs(whole.log() - ball(built.log_moment)) <= ball(built.log_moment_error))
            phi = turned / whole * acb(0, -ball(u) * ball(built.centre)).exp() - 1
            gap = abs(phi - acb(ball(float(minus_one[1].real)), ball(float(minus_one[1].imag))))
            assert bool(gap <= ball(float(error[1])))
            assert bool(abs(whole.log() - ball(float(table.moment[0]))) <= ball(float(table.error[0])))
        assert error[1] < 1e-8
        checked += 1


@pytest.mark.parametrize("mirrored", [False, True])
def test_bands_add_up_to_the_law(mirrored: bool) -> None:
    """With theta = 0 their masses under P, with theta = -1 those under Q: together one."""
    draw = random.Random(72)
    for _ in range(60):
        kernel = SampledGaussianNodes(10 ** draw.uniform(-5, -0.1), draw.uniform(0.3, 6.0), True)
        size, rho = 10 ** draw.uniform(-3, 0.7), draw.uniform(9, 15)
        low, high = SoftCut(size, rho), SoftCut(7 * size, rho + 10, both=draw.random() < 0.5)
        for theta in (0.0, -1.0):
            total, error = 0.0, 0.0
            for edges in ((None, low), (low, high), (high, None)):
                built = SampledGaussianBand(kernel, *edges, mirrored).characteristic(theta, 0.0, -34.0)
                if built is not None:  # where there is nothing to speak of
                    total += math.exp(built.log_moment)
                    error += math.exp(built.log_moment) * built.log_moment_error
            assert total == pytest.approx(1.0, abs=error + 1e-15)
            assert error < 1e-11


@pytest.mark.parametrize("mirrored", [False, True])
def test_decay_bounds_every_later_frequency(mirrored: bool) -> None:
    draw = random.Random(73)
    sharp = 0
    for _ in range(80):
        band, theta = bands(draw, mirrored)
        edge = band.low or band.high
        assert edge is not None
        start = np.array([draw.uniform(0.3, 6.0) / edge.width])
        bound = float(band.log_decay(theta, start)[0])
        assert bound <= 0.0
        built = band.characteristic(theta, 4 * float(start[0]), -34.0)
        if built is None:
            continue
        for factor in (1.0, 1.01, 1.3, 2.0, 3.7):
            minus_one, error = built.on_grid(factor * float(start[0]), 2)
            size = abs(1.0 + minus_one[1]) - error[1]
            assert size <= math.exp(bound) * (1 + 1e-12)
        sharp += bound < -2.0
    assert sharp >= 15


@pytest.mark.parametrize("mirrored", [False, True])
def test_mass_below_a_loss_is_bounded_above(mirrored: bool) -> None:
    draw = random.Random(74)
    for _ in range(20):
        kernel = SampledGaussianNodes(10 ** draw.uniform(-2, -1), draw.uniform(0.5, 1.5), True)
        edge = SoftCut(draw.uniform(0.2, 1.0), 25.0, both=False)
        band = SampledGaussianBand(kernel, edge, None, mirrored)
        whole = band.characteristic(-1.0, 0.0, -30.0)
        assert whole is not None
        assert band.log_mass_below(-1.0, 200.0) >= whole.log_moment - 1e-9
        last = -math.inf
        for share in (0.3, 0.6, 0.9, 1.1):
            now = band.log_mass_below(-1.0, share * edge.at)
            assert now >= last
            last = now
        assert band.log_mass_below(-1.0, 0.6 * edge.at) < whole.log_moment - 8
        assert band.log_mass_below(-1.0, math.log1p(-kernel.rate)) < whole.log_moment - 60


def test_tilts_out_of_reach_are_infinite() -> None:
    kernel = SampledGaussianNodes(0.01, 0.01, True)
    table = SampledGaussianBand(kernel, SoftCut(5.0, 10.0), None).moment_table(np.array([1e-6, 1e6]))
    assert math.isinf(table.moment[1])
    assert SampledGaussianBand(kernel, SoftCut(5.0, 10.0), None).characteristic(1e6, 0.0, -30.0) is None


@pytest.mark.parametrize("depth", [20.0, 30.0, 34.0, 37.0, 39.0, 45.0])
def test_tilts_that_reach_deep_into_an_edge(depth: float) -> None:
    """There the share of the edge leaves the doubles: what is lost is charged, or the tilt is not answered."""
    kernel = SampledGaussianNodes(0.01, 4.0, True)
    edge = SoftCut(0.5, 25.0)
    band = SampledGaussianBand(kernel, None, edge)
    theta = (depth * edge.rho + 12.0) / edge.at
    t = np.arange(-20.0, 80.0, 1e-3)
    lam = np.logaddexp(0.0, t / 4 - 1 / 32 + math.log(0.01 / 0.99))
    logs = (1 + theta) * (lam + math.log(0.99)) - t * t / 2 + log_ndtr(edge.rho * (1 - lam / edge.at))
    truth = float(np.logaddexp.reduce(logs)) + math.log(1e-3) - 0.5 * math.log(2 * math.pi)
    table, built = band.moment_table(np.array([theta])), band.characteristic(theta, 0.0, -30.0)
    for moment, error in [
        (float(table.moment[0]), float(table.error[0])),
        (math.inf, math.inf) if built is None else (built.log_moment, built.log_moment_error),
    ]:
        assert math.isinf(moment) or abs(moment - truth) <= error + 1e-9


def test_wide_noise() -> None:
    band = SampledGaussianBand(SampledGaussianNodes(0.5, 500.0, True), None, SoftCut(0.71, 10.0))
    built = band.characteristic(3.0, 10.0, -30.0)
    assert built is not None
    assert built.log_moment_error < 1e-12
