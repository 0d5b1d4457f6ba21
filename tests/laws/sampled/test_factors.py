"""Golden: bounds off the real line, cell by cell and beyond the cells, against the integrands themselves on lines."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from flint import arb
from numpy.typing import NDArray
from scipy.special import erfc

from dptally.law.characteristic import SoftCut
from dptally.laws.sampled.gaussian.factors import MixtureFactor, UnitFactor, _half_line
from dptally.laws.sampled.gaussian.kernel import SampledGaussianNodes
from dptally.laws.sampled.gaussian.replace_kernel import SampledReplaceNodes
from dptally.laws.sampled.gaussian.window import SampledGaussianBand
from dptally.numerics.rounding import EPS
from truth import ball
from truth.balls import precision

Complexes = NDArray[np.complex128]
Floats = NDArray[np.float64]


pytestmark = pytest.mark.usefixtures("quiet")


def lam(kernel: SampledGaussianNodes, t: Complexes) -> Complexes:
    """log(1 + q e^w / (1 - q)), by the smaller exponential."""
    v = t / kernel.scale + (math.log(kernel.rate) - math.log1p(-kernel.rate) - 0.5 / kernel.scale**2)
    z = np.exp(np.where(v.real > 0, -v, v))
    small = 0.5 * np.log1p(2 * z.real + np.abs(z) ** 2) + 1j * np.arctan2(z.imag, 1 + z.real)
    return np.asarray(small + np.where(v.real > 0, v, 0.0))


def below(edge: SoftCut | None, x: Complexes) -> Complexes:
    return np.ones_like(x) if edge is None else 0.5 * erfc((edge.rho / math.sqrt(2)) * (x / edge.at - 1))


def above(edge: SoftCut | None, x: Complexes) -> Complexes:
    return np.zeros_like(x) if edge is None else 0.5 * erfc((edge.rho / math.sqrt(2)) * (1 - x / edge.at))


def log_modulus(band: SampledGaussianBand, t: Complexes, z: complex) -> Floats:
    """log |phi A^{1+z} A(-t)^-z band|; of several ways to form the band the least, for they only differ by rounding."""
    right, left = lam(band.kernel, t), lam(band.kernel, -t)
    edges = (band.low, band.high), band._left_edges()
    sides = tuple(zip(edges, (right, left), strict=True))
    (low, high), (low_left, high_left) = (tuple(below(edge, x) for edge in pair) for pair, x in sides)
    (out, out_high), (out_left, out_high_left) = (tuple(above(edge, x) for edge in pair) for pair, x in sides)
    if band.low is None:
        window = np.abs(high * high_left)
    else:
        change, change_left = (high - low, out - out_high), (high_left - low_left, out_left - out_high_left)
        ways = [np.abs(high_left * x + low * y) for x in change for y in change_left]
        ways += [np.abs(high * y + low_left * x) for x in change for y in change_left]
        window = np.fmin.reduce(ways)
    log_a = right + math.log1p(-band.kernel.rate)
    loss = right - left if band.mirrored else log_a
    found = (-0.5 * t * t + log_a + z * loss).real - 0.5 * math.log(2 * math.pi) + np.log(window)
    return np.where(np.isfinite(found), found, -np.inf)  # beyond the doubles nothing is compared


def log_total(logs: Floats) -> float:
    top = float(logs.max(initial=-math.inf))
    return top + math.log(float(np.exp(logs - top).sum())) if math.isfinite(top) else top


def drawn(draw: random.Random) -> tuple[SampledGaussianBand, float]:
    """Any band, its edges where the law lives or not, and any tilt."""
    rate = draw.choice([10 ** draw.uniform(-9, -0.3), draw.uniform(0.01, 0.99), 0.999])
    kernel = SampledGaussianNodes(rate, 10 ** draw.uniform(-1.3, 1.7), True)
    place = draw.choice([draw.uniform(-3, 3), draw.uniform(0, 8), draw.uniform(0, 8 + 4 / kernel.scale)])
    size = float(lam(kernel, np.array([place + 0j])).real[0]) if draw.random() < 0.7 else 10 ** draw.uniform(-8, 3)
    size = min(max(size, 1e-12), 1e5)
    rho = draw.uniform(9, 20)
    low, high = (
        SoftCut(size, rho),
        SoftCut(size * draw.uniform(2.2, 9), rho + draw.choice([0.0, 10.0]), draw.random() < 0.5),
    )
    shape = draw.choice([(None, low), (None, high), (low, high), (low, high), (low, None), (high, None)])
    theta = draw.choice([-1.0, 0.0, 10 ** draw.uniform(-6, 4), 10 ** draw.uniform(-1, 2), draw.uniform(0, 5) / size])
    return SampledGaussianBand(kernel, *shape, draw.random() < 0.7), min(theta, 1e4)


def test_integrals_and_sums_on_lines() -> None:
    """The whole line, what is left of a point and what is right of it; with no frequency for smaller angles, too."""
    draw = random.Random(81)
    lines, close = 0, 0
    for _ in range(150):
        band, theta = drawn(draw)
        cells = band._cells(theta, draw.choice([60.0, 90.0]))
        if cells is None:
            continue
        s = band.kernel.scale
        reach = min(max(30.0, 4 * (1 + abs(theta)) / s), 300.0)
        t = np.linspace(cells.t[0] - reach, cells.t[-1] + reach, 24_000)
        h = float(t[1] - t[0])
        for angle in (min(draw.choice([0.02, 0.1, 0.4, 0.9, 1.2, 1.5]), 6 / s), 0.0):
            frequency = draw.choice([0.0, 10 ** draw.uniform(-1, 4)]) if angle else 0.0
            logs = log_modulus(band, t + 1j * s * angle, complex(theta, -frequency))
            whole, bound = log_total(logs) + math.log(h), float(band._log_modulus(cells, theta, frequency, angle))
            if h > 0.2 * s or h > 0.02:
                whole -= 1.0  # too coarse for the integral to be known well
            assert bound >= whole - 1e-6
            lines += 1
            close += math.isfinite(whole) and bound < whole + 3.0
            smaller = log_modulus(band, t + 1j * s * angle * draw.random(), complex(theta, 0.0))
            stride = max(1, int(draw.choice([0.5, 1.0]) / h))
            for k in (0, draw.randrange(len(cells.t)), len(cells.t) - 1):
                place, at = float(cells.t[k]), slice(k, k + 1)
                left = float(band._log_left(cells, theta, angle, frequency, at)[0])
                right = float(band._log_right(cells, theta, angle, frequency, at)[0])
                for bound, outwards in ((left, -1), (right, 1)):
                    beyond = outwards * (t - place) > 0
                    for line in (logs, smaller) if frequency == 0 else (logs,):
                        there = line[beyond][:: outwards * stride]  # a sum counts the points: no error of a rule
                        assert bound >= log_total(there) + math.log(min(1.0, stride * h)) - 1e-6
    assert lines > 250
    assert close > lines / 4


def test_cells_bound_what_lies_in_them() -> None:
    """At any point of a cell and any angle that the bound is for: Re lam, Im lam, powers of A and the edges."""
    draw = random.Random(82)
    compared = 0
    for _ in range(120):
        band, _ = drawn(draw)
        cells = band._cells(0.0, 60.0)
        if cells is None:
            continue
        s = band.kernel.scale
        small, large = sorted(draw.uniform(0.0, 1.5) for _ in range(2))
        share = np.array([draw.random() for _ in cells.t[1:]])
        t = cells.t[:-1] + share * np.diff(cells.t)
        angle = small + (large - small) * draw.random()
        ones = np.ones_like(t)
        for side in (cells.right, cells.left):
            if not isinstance(side, MixtureFactor):
                continue
            x = lam(band.kernel, side.sign * (t + 1j * s * angle))
            plain = lam(band.kernel, side.sign * t + 0j).real
            room = 1e-9 * (1 + np.abs(plain))
            turn = side.between(small * ones, large * ones)
            assert (turn.least <= x.real + room).all()
            assert (turn.most >= x.real - room).all()
            assert (turn.less <= np.abs(x.imag) + 1e-12).all()
            assert (turn.more >= np.abs(x.imag) - 1e-12).all()
            for power in (-3.0, 2.5):
                grown = power * (x.real - plain)
                assert (side.log_growth(power, large) + side.log_shrink(power, small) >= grown - 10 * room).all()
            gates = side.gates(turn)
            w_low, w_high = below(side.low, x), below(side.high, x)
            change = np.fmin(np.abs(w_high - w_low), np.abs(above(side.low, x) - above(side.high, x)))
            for bound, value in ((gates.high, w_high), (gates.low, w_low), (gates.change, change)):
                logs = np.log(np.abs(value))
                good = np.isfinite(logs) & (logs > -600)
                assert (np.broadcast_to(bound, logs.shape)[good] >= logs[good] - 1e-6 * (1 + np.abs(logs[good]))).all()
                compared += int(good.sum())
    assert compared > 20_000


def test_half_lines() -> None:
    """Neither tail is made of the rounding of numbers far larger than itself."""
    g = -(10.0 ** np.linspace(-3, 140, 2000))
    assert (_half_line(g) >= 0.0).all()  # the largest term of a sum of step one
    assert (_half_line(g) <= math.log1p(math.sqrt(math.pi / 2)) + 1e-12).all()
    plain = UnitFactor(np.array([-3.0, 0.0, 2.0]), 1.0)
    tail = np.exp(plain.log_beyond(0.0, 0.0, 0.0, slice(None))[0])
    assert (tail >= [0.5 * math.erfc(-t / math.sqrt(2)) for t in plain.t]).all()


@pytest.mark.parametrize("mirrored", [False, True])
def test_windows_that_cancel_keep_their_error(mirrored: bool) -> None:
    """Two edges of one sharpness meet at the least loss: there their difference is less than the doubles show."""
    band = SampledGaussianBand(
        SampledGaussianNodes(1e-3, 0.1, True), SoftCut(100.0, 9.0), SoftCut(700.0, 9.0), mirrored
    )
    t = np.linspace(-1.0, 6.0, 300)
    window, error = band._window(t, band._losses(t)[2])
    assert (window == 0).any()
    for x, value, blur in zip(t, window, error, strict=True):
        with precision(200):
            q, s = ball(1e-3), ball(0.1)
            up, down = ((1 + q / (1 - q) * (y / s - 1 / (2 * s * s)).exp()).log() for y in (ball(x), -ball(x)))

            def inside(at: int, up: arb = up, down: arb = down) -> arb:
                both = [up, down] if mirrored else [up]
                shares = [(9 * (y / at - 1) / arb(2).sqrt()).erfc() / 2 for y in both]
                return shares[0] * shares[-1] if mirrored else shares[0]

            assert bool(abs(inside(700) - inside(100) - ball(float(value))) <= ball(float(blur)))


def test_rounding_of_small_scales() -> None:
    """t/s and 1/(2 s^2) are far larger than the loss they leave, and a tilt multiplies what that costs."""
    for rate, scale, theta in ((0.01, 1e-3, 1e3), (1e-6, 2e-3, 3e3), (0.3, 1e-3, 1e4)):
        kernel = SampledGaussianNodes(rate, scale, True)
        for mirrored in (False, True):
            band = SampledGaussianBand(kernel, None, SoftCut(1.0, 12.0), mirrored)
            t = np.unique(band.position(np.geomspace(0.05, 3.0, 60)))
            argument, mirror = band._argument(t), band._argument(-t)
            right = MixtureFactor(
                t, scale, 1, rate, None, band.high, np.logaddexp(0, argument), 1 / (1 + np.exp(-argument))
            )
            left = MixtureFactor(
                t, scale, -1, rate, None, band.high, np.logaddexp(0, mirror), 1 / (1 + np.exp(-mirror))
            )
            size = right.size(1 + theta) + (left.size(-theta) if mirrored else 0.0) + t * t
            logs = right.log_power(1 + theta) + (left.log_power(-theta) if mirrored else 0.0)
            for x, value, most in zip(t, logs, np.broadcast_to(size, t.shape), strict=True):
                with precision(200):
                    q, s = ball(rate), ball(scale)
                    up, down = ((1 - q + q * (y / s - 1 / (2 * s * s)).exp()).log() for y in (ball(x), -ball(x)))
                    true = (1 + ball(theta)) * up - (ball(theta) * down if mirrored else 0)
                    assert bool(abs(true - ball(float(value))) <= ball(16 * EPS * float(most)))


def test_replace_decays_at_large_tilts() -> None:
    """Where A(-t)^-theta grows off the real line by more than the cells that are left out weigh."""
    draw = random.Random(83)
    sharp = 0
    for _ in range(60):
        nodes = SampledReplaceNodes(10 ** draw.uniform(-6, -0.1), 10 ** draw.uniform(-0.7, 1.2))
        theta = 10 ** draw.uniform(0, 4)
        built = nodes.characteristic(theta, 0.0, -30.0)
        if built is None:
            continue
        spread = math.sqrt(float(np.dot(built.weights, built.losses**2)))
        start = np.array([draw.uniform(0.5, 4.0) / spread])
        bound = float(nodes.log_decay(theta, start)[0])
        wide = nodes.characteristic(theta, 3 * float(start[0]), -32.0)
        assert bound <= 0.0
        if wide is None:
            continue
        for factor in (1.0, 1.1, 1.7, 2.9):
            minus_one, error = wide.on_grid(factor * float(start[0]), 2)
            assert abs(1.0 + minus_one[1]) - error[1] <= math.exp(bound) * (1 + 1e-12)
        sharp += bound < -0.1
    assert sharp > 20


def test_replace_tables() -> None:
    """One grid for many tilts, halved where it would be too large: K in balls, by a rule four times as fine."""
    laws = ((1e-3, 1.0, 30.0), (0.2, 0.5, 8.0), (1e-6, 3.0, 400.0), (0.999, 2.0, 5.0), (0.05, 20.0, 3e3))
    for rate, scale, most in laws:
        theta = most * np.geomspace(1e-4, 1.0, 9)
        table = SampledReplaceNodes(rate, scale).moment_table(theta)
        for k in (0, 4, 8):
            with precision(120):
                q, s, tilt, total = ball(rate), ball(scale), ball(float(theta[k])), arb(0)
                step = min(0.125, scale / (8 * math.sqrt(1 + theta[k])))
                for j in range(math.floor(-14 / step), math.ceil((14 + (1 + 2 * theta[k]) / scale) / step)):
                    t = j * ball(step)
                    up, down = ((q * (x / s - 1 / (2 * s * s)).expm1()).log1p() for x in (t, -t))
                    total += (up + tilt * (up - down) - t * t / 2).exp()
                moment = (total * ball(step) / (2 * arb.pi()).sqrt()).log()
                assert bool(abs(moment - ball(float(table.moment[k]))) <= ball(float(table.error[k])))
        assert (table.error < 1e-9).all()
    nodes = SampledReplaceNodes(0.01, 0.05)
    theta = np.geomspace(0.1, 1e7, 40)
    together = nodes.moment_table(theta)
    alone = nodes.moment_table(theta[:1])
    assert abs(together.moment[0] - alone.moment[0]) <= together.error[0] + alone.error[0]
    assert np.isinf(together.moment[-1])
    assert np.isfinite(together.moment).any()
