"""Contract: lengths, adjacencies, JSON, plan texts and the command line of sampled mechanisms."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from mpmath import mp, mpf, ncdf, npdf, quad

import dptally as dp
from dptally.accounting.certified.contour import inversion
from dptally.accounting.certified.lattice import bracket
from dptally.cli.program import cli
from dptally.law.adjacency import Direction
from dptally.laws.mixture.law import MixtureLaw
from dptally.laws.sampled.fixed_size import FixedSizeLaw
from dptally.laws.sampled.gaussian.fixed_size import FixedSizeGaussianLaw

G = dp.Gaussian(1.0)


def test_steps_and_epochs() -> None:
    assert dp.Sampled(G, dp.Cyclic(10), epochs=3).parts == dp.Sampled(G, dp.Cyclic(10), steps=30).parts
    with pytest.raises(dp.InvalidArgument, match="multiple"):
        dp.Sampled(G, dp.Cyclic(10), steps=31)
    with pytest.raises(dp.InvalidArgument, match="exactly one"):
        dp.Sampled(G, dp.Cyclic(10))
    with pytest.raises(dp.InvalidArgument, match="afresh"):
        dp.Sampled(G, dp.Poisson(0.1), epochs=2)
    assert dp.Sampled(G, dp.Poisson(0.1), steps=0).epsilon(1e-5) == 0.0
    assert 2 * dp.Sampled(G, dp.Poisson(0.1), steps=3) == dp.Sampled(G, dp.Poisson(0.1), steps=6) + 0 * G


def test_poisson_is_what_it_was() -> None:
    plan = dp.Sampled(G, dp.Poisson(0.01), steps=100)
    assert plan.epsilon(1e-5) == dp.dpsgd(1.0, 0.01, 100).epsilon(1e-5)
    sized = dp.training(1.0, dataset_size=1000, batch_size=10, epochs=1)
    assert sized.epsilon(1e-5) == plan.epsilon(1e-5)
    assert dp.dpsgd(1.0, epochs=1, batch_size=10, dataset_size=1000) == dp.dpsgd(1.0, 0.01, 100)


def test_ends_of_the_rates() -> None:
    whole = dp.Sampled(G, dp.FixedSize(10, 10), steps=2)
    assert whole.epsilon(1e-5) == (2 * dp.Gaussian(1.0, 2.0)).epsilon(1e-5)
    assert dp.Sampled(G, dp.BallsInBins(1), epochs=2).epsilon(1e-5) == pytest.approx((2 * G).epsilon(1e-5), rel=1e-12)
    roomy = dp.Sampled(G, dp.TruncatedPoisson(0.1, 10, 10), steps=5)
    assert roomy.epsilon(1e-5) == dp.dpsgd(1.0, 0.1, 5).epsilon(1e-5)
    replaced = dp.Sampled(G, dp.Cyclic(5), epochs=1, adjacency=dp.REPLACE)
    assert replaced.epsilon(1e-5) == dp.Gaussian(1.0, 2.0).epsilon(1e-5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: dp.Sampled(dp.Laplace(1.0), dp.BallsInBins(5), epochs=1, adjacency=dp.REPLACE),
        lambda: dp.Sampled(dp.Laplace(1.0), dp.TruncatedPoisson(0.1, 10, 3), steps=1),
        lambda: dp.Sampled(dp.ZCDP(0.1), dp.BallsInBins(5), epochs=1),
        lambda: dp.Sampled(dp.PureDP(0.1), dp.FixedSize(2, 5), steps=1),
        lambda: dp.Sampled(G + dp.Laplace(1.0), dp.Cyclic(5), epochs=1),
        lambda: dp.training(1.0, dp.FixedSize(2, 10), steps=3, per_user=2),
    ],
)
def test_what_no_theorem_covers_is_refused(make: object) -> None:
    with pytest.raises(dp.Unanswerable):
        make().epsilon(1e-5)


def test_json_and_text() -> None:
    plan = 3 * dp.Sampled(G, dp.BallsInBins(100), epochs=3) + dp.MixtureOfGaussians(1, (0, 1), (0.5, 0.5))
    plan += dp.Sampled(dp.Laplace(2.0), dp.FixedSize(2, 100), steps=4, adjacency=dp.REPLACE)
    for sampler in (dp.RandomAllocation(4, 2), dp.TruncatedPoisson(0.1, 9, 3), dp.ShuffledBatches(4), dp.Poisson(0.1)):
        unit = {sampler.unit: 2}
        plan += dp.Sampled(G, sampler, **unit)
    assert dp.from_json(dp.to_json(plan)) == plan
    assert "FixedSize" in str(dp.Sampled(G, dp.FixedSize(10, 1000), steps=3).explain(1e-5))


@pytest.mark.parametrize(
    "sampler",
    [
        dp.Poisson(0.1),
        dp.TruncatedPoisson(0.1, 90, 30),
        dp.FixedSize(9, 90),
        dp.BallsInBins(10),
        dp.RandomAllocation(10, 2),
        dp.Cyclic(10),
        dp.ShuffledBatches(10),
    ],
)
def test_every_sampler_in_ledger_assumptions_and_calibration(sampler: dp.Mechanism, tmp_path: Path) -> None:
    unit = {sampler.unit: 2 if sampler.unit == "epochs" else 200}  # type: ignore[attr-defined]
    plan = dp.training(3.0, sampler, **unit)
    assert any(repr(sampler) in str(assumption) for assumption in plan.assumptions())
    ledger = dp.Ledger.open(f"sqlite:///{tmp_path}/ledger.db", create=True)
    ledger.create("trained", budget=dp.ApproxDP(9.0, 1e-5))
    with ledger.spend("trained", plan, by="me", why="training"):
        pass
    assert ledger.history("trained")[-1].plan == plan
    noise = dp.calibrate(lambda sigma: dp.training(sigma, sampler, **unit), epsilon=1.0, delta=1e-5)
    assert dp.training(noise, sampler, **unit).epsilon(1e-5) <= 1.0


def run(*words: str) -> str:
    result = CliRunner().invoke(cli, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_command_line() -> None:
    text = "sampled(gaussian(1), fixed_size(10, 1000), steps=1000, adjacency=replace)"
    assert json.loads(run("epsilon", text, "--delta", "1e-5", "--json"))["epsilon"]["upper"] == pytest.approx(14.82067)
    sized = ("--batch-size", "10", "--dataset-size", "1000", "--epochs", "10", "--delta", "1e-5", "--json")
    out = run("dpsgd", "--noise-multiplier", "1", "--sampler", "fixed-size", *sized)
    assert json.loads(out)["epsilon"]["upper"] == pytest.approx(13.360824, rel=1e-6)
    only = ("--sampler", "cyclic", "--sampler", "poisson")
    table = run("batching", "--noise-multiplier", "2", *sized[:-3], "--delta", "1e-5", *only)
    assert table.index("poisson") < table.index("cyclic")
    rows = json.loads(run("batching", "--noise-multiplier", "2", *sized, "--sampler", "fixed-size"))["rows"]
    assert rows[0]["name"] == "fixed-size"


def test_the_picture(tmp_path: object) -> None:
    target = f"{tmp_path}/loaders.png"
    words = ("--batch-size", "10", "--dataset-size", "100", "--epochs", "1", "--delta", "1e-5", "--out", target)
    run("batching", "--noise-multiplier", "2", *words, "--sampler", "cyclic", "--sampler", "poisson")
    with open(target, "rb") as file:
        assert file.read(4) == b"\x89PNG"


# -- the laws against quadrature in many digits ------------------------------------------------------------------------

mp.dps = 35


def mixture_delta(shifts: tuple[str, ...], weights: tuple[str, ...], epsilon: float, remove: bool) -> mpf:
    m, w, a = [mpf(s) for s in shifts], [mpf(x) for x in weights], mp.exp(mpf(epsilon))

    def ratio(t: mpf) -> mpf:
        return mp.fsum(wj * mp.exp(mj * t - mj * mj / 2) for mj, wj in zip(m, w, strict=True))

    goal = a if remove else 1 / a
    if goal <= (w[0] if m[0] == 0 else 0):
        return (1 - a) if remove else mpf(0)
    low, high = mpf(-200), mpf(200)
    for _ in range(110):  # the ratio grows
        x = (low + high) / 2
        low, high = (x, high) if ratio(x) < goal else (low, x)
    if remove:
        return mp.fsum(wj * ncdf(mj - x) for mj, wj in zip(m, w, strict=True)) - a * ncdf(-x)
    return ncdf(x) - a * mp.fsum(wj * ncdf(x - mj) for mj, wj in zip(m, w, strict=True))


@pytest.mark.parametrize(
    ("shifts", "weights"),
    [
        (("0", "0.5", "1", "2"), ("0.25", "0.5", "0.125", "0.125")),
        (("0", "1", "3"), ("0.9375", "0.0546875", "0.0078125")),
        (("0.5", "1.5"), ("0.5", "0.5")),
    ],
)
def test_mixture_profiles(shifts: tuple[str, ...], weights: tuple[str, ...]) -> None:
    for side in Direction:
        law = MixtureLaw(tuple(map(float, shifts)), tuple(map(float, weights)), side)
        for epsilon in (-1.0, -0.03, 0.0, 0.03, 0.7, 2.0, 6.0):
            truth = mixture_delta(shifts, weights, epsilon, side is Direction.REMOVE)
            low, high = (float(v[0]) for v in law.log_profile(np.array([epsilon])))
            if truth <= 0:
                assert high == -np.inf
                continue
            log = float(mp.log(truth))
            assert low <= log + 1e-13 * abs(log)
            assert log <= high + 1e-13 * abs(log)
            assert high - low < 1e-9 * (1 + abs(log))


def test_mixture_kernel() -> None:
    """K, phi and the decay of phi against integrals in many digits."""
    m, w = (0.0, 1.0, 2.0), (0.75, 0.1875, 0.0625)
    for side in Direction:
        law = MixtureLaw(m, w, side)
        theta = 3.0
        power = (1 + theta) if side is Direction.REMOVE else -theta

        def moment(u: float, power: float = power, sign: int = 1 if side is Direction.REMOVE else -1) -> complex:
            def f(t: mpf) -> mpf:
                a = mp.fsum(wj * mp.exp(mj * t - mpf(mj) ** 2 / 2) for mj, wj in zip(m, w, strict=True))
                return npdf(t) * mp.exp((power + 1j * sign * u) * mp.log(a))

            return complex(quad(f, [-14, -6, -2, 0, 2, 4, 6, 9, 13, 20]))

        whole = moment(0.0).real
        table = law.moment_table(np.array([theta]))
        assert abs(table.moment[0] - np.log(whole)) <= table.error[0] + 1e-14
        phi = law.characteristic(theta, 20.0, -34.0)
        assert phi is not None
        values, errors = phi.on_grid(4.0, 4)
        starts = np.array([4.0, 8.0, 12.0])
        decay = np.exp(law.log_decay(theta, starts))
        for k in range(1, 4):
            truth = moment(4.0 * k) / whole * np.exp(-1j * 4.0 * k * phi.centre)
            assert abs(values[k] + 1 - truth) <= errors[k] + 1e-12
            assert abs(truth) <= decay[k - 1] + 1e-12


def test_fixed_size_kernel() -> None:
    g, s, theta = 0.1, 0.6, 2.0
    law = FixedSizeGaussianLaw(g, s)
    m = 1 / mpf(s)
    atom = (1 - mpf(g)) * (1 - 2 * ncdf(-m / 2))

    def moment(u: float) -> complex:
        def f(t: mpf) -> mpf:
            log = mp.log(1 - mpf(g) + mpf(g) * mp.exp(m * t - m * m / 2))
            return npdf(t) * (mp.exp((1 + theta + 1j * u) * log) + mp.exp(-(theta + 1j * u) * log))

        return complex(quad(f, [m / 2, m / 2 + 1, 3, 5, 7, 10, 14, 20]) + atom)

    whole = moment(0.0).real
    table = law.moment_table(np.array([theta]))
    assert abs(table.moment[0] - np.log(whole)) <= table.error[0] + 1e-14
    phi = law.characteristic(theta, 20.0, -34.0)
    assert phi is not None
    values, errors = phi.on_grid(5.0, 4)
    decay = np.exp(law.log_decay(theta, np.array([5.0, 10.0, 15.0])))
    for k in range(1, 4):
        truth = moment(5.0 * k) / whole * np.exp(-1j * 5.0 * k * phi.centre)
        assert abs(values[k] + 1 - truth) <= errors[k] + 1e-12
        assert abs(truth) <= decay[k - 1] + 1e-12
    assert law.log_moment(np.array([theta]))[0] == pytest.approx(np.log(whole), rel=1e-10)


@pytest.mark.parametrize(("reach", "share"), [(0.1, 1e-6), (2.0, 0.01), (8.0, 0.7)])
def test_fixed_size_laplace_moments(reach: float, share: float) -> None:
    """K of one step and its mean, against an integral in 30 digits, within the error that is charged."""
    law = FixedSizeLaw(dp.Laplace(1.0, reach).laws()[0], share)
    orders = np.array([0.01, 1.0, 31.0])
    moments, errors = law.log_moment_and_error(orders)
    with mp.workdps(30):
        r, g = mpf(reach), mpf(share)

        def integral(f: object) -> mpf:
            """E f(A) under A dQ and f(1/A) under dQ, the atom at 0 left out."""

            def both(w: mpf) -> mpf:
                a = 1 - g + g * mp.exp(w)
                return a * f(a) + f(1 / a)  # type: ignore[operator]

            def smooth(w: mpf) -> mpf:
                return mp.exp(-(w + r) / 2) / 4 * both(w)

            return quad(smooth, [0, r / 2, r], method="gauss-legendre") + mp.exp(-r) / 2 * both(r)

        atom = (1 - g) * (1 - mp.exp(-r / 2))
        for t, moment, error in zip(orders.tolist(), moments.tolist(), errors.tolist(), strict=True):
            truth = mp.log(integral(lambda a, t=t: a ** mpf(t)) + atom)
            assert abs(mpf(moment) - truth) <= error < 1e-11 * truth
        assert abs(mpf(law.mean) / integral(mp.log) - 1) < 1e-12


def test_contour_and_lattice_meet() -> None:
    for plan in (
        40 * dp.MixtureOfGaussians(2.0, (0, 1, 2), (0.7, 0.2, 0.1)),
        dp.Sampled(G, dp.FixedSize(3, 10), steps=40, adjacency=dp.REPLACE),
    ):
        for composition in plan.directions():
            found = inversion.for_epsilon(composition, 2.0)
            assert found is not None
            low, high, _ = found.log_delta(2.0)
            other = bracket.log_delta(composition, 2.0, effort=0.1)
            assert max(low, other[0]) <= min(high, other[1])
            assert high - low < 1e-8


def test_sums_beyond_the_doubles_are_bounded_and_not_nan() -> None:
    from dptally.laws.sampled.allocation.gaussian import GaussianSum

    low, high, _ = GaussianSum(0.5, 10).log_above(np.array([np.inf, 1e308]))
    assert (low <= high).all()
    assert (high < -1e5).all()
