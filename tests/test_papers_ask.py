"""Golden: functions that the founding papers ask for, each against a computation of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, product

import pytest
from mpmath import exp, findroot, mp, mpf, ncdf

import dptally as dp
from dptally import gdp
from dptally.accounting import gaussian, group
from dptally.meaning import outcomes
from dptally.release import mode_accuracy


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with mp.workdps(30):
        yield


def test_F85_sampling_without_replacement_by_enumeration() -> None:
    """Two of four bits are drawn, each drawn bit answers by randomized response; one bit of the data is replaced."""
    p = mpf("0.75")

    def law(data: tuple[int, ...]) -> dict[tuple[int, int], mpf]:
        out: dict[tuple[int, int], mpf] = {}
        for batch in combinations(range(4), 2):
            for answer in product((0, 1), repeat=2):
                chance = mpf(1) / 6
                for i, said in zip(batch, answer, strict=True):
                    chance *= p if said == data[i] else 1 - p
                out[answer] = out.get(answer, mpf(0)) + chance
        return out

    base = gdp.Curve(dp.RandomizedResponse(0.75).delta)
    bound = gdp.without_replacement(base, batch=2, size=4)
    one, other = law((0, 0, 0, 0)), law((1, 0, 0, 0))
    for epsilon in (0.0, 0.1, 0.3, 0.5):
        for left, right in ((one, other), (other, one)):
            exact = sum(max(left[s] - exp(mpf(epsilon)) * right[s], 0) for s in left)
            assert exact <= bound.delta(epsilon) * (1 + mpf("1e-12"))
    # tight: delta'(0) = g delta(0), and the formula at one more epsilon
    inner = math.log1p(math.expm1(0.3) / 0.5)
    assert bound.delta(0.3) == pytest.approx(0.5 * base.delta(inner), rel=1e-9)


@pytest.mark.parametrize(("batch", "size"), [(1, 3), (2, 4), (3, 4)])
def test_F85_sampling_without_replacement_of_every_data_set_of_bits(batch: int, size: int) -> None:
    """Sums of the drawn bits with discrete noise, a bit replaced, added or removed: never above the curve."""
    a = exp(mpf(-1) / 2)
    reach = range(-45, 46 + batch)

    def law(data: tuple[int, ...]) -> list[mpf]:
        sums = [sum(picked) for picked in combinations(data, batch)]
        return [sum((1 - a) / (1 + a) * a ** abs(k - s) for s in sums) / len(sums) for k in reach]

    bound = gdp.without_replacement(gdp.Curve(dp.DiscreteLaplace(scale=2.0).delta), batch, size)
    pairs = []
    for rest in product((0, 1), repeat=size - 1):
        zero, one = law((0, *rest)), law((1, *rest))
        pairs += [(zero, one), (one, zero)]
        if len(rest) >= batch:
            pairs += [pair for with_it in (zero, one) for pair in ((with_it, law(rest)), (law(rest), with_it))]
    for epsilon in (0.0, 0.1, 0.3):
        worst = max(sum(max(x - exp(mpf(epsilon)) * y, 0) for x, y in zip(p, q, strict=True)) for p, q in pairs)
        assert worst <= bound.delta(epsilon) * (1 + mpf("1e-12"))
        assert bound.delta(epsilon) <= worst * (1 + mpf("1e-9"))


def test_F86_sampling_with_replacement_is_a_bound() -> None:
    """Two draws of three records with replacement, summed, discrete noise; against all data sets of bits."""
    a = exp(mpf(-1) / 2)
    draws, size = 2, 3

    def base(j: int) -> gdp.Curve:
        return gdp.Curve(dp.DiscreteLaplace(scale=2.0, sensitivity=j).delta)

    def law(data: tuple[int, ...]) -> dict[int, mpf]:
        out: dict[int, mpf] = {}
        for picked in product(data, repeat=draws):
            for z in range(-80, 81):
                out[sum(picked) + z] = out.get(sum(picked) + z, mpf(0)) + (1 - a) / (1 + a) * a ** abs(z) / size**draws
        return out

    bound = gdp.with_replacement(base, draws, size)
    for rest in product((0, 1), repeat=size - 1):
        one, other = law((0, *rest)), law((1, *rest))
        for epsilon in (0.0, 0.2, 0.5):
            exact = sum(max(one.get(k, mpf(0)) - exp(mpf(epsilon)) * other.get(k, mpf(0)), 0) for k in one)
            assert exact <= bound.delta(epsilon) * (1 + mpf("1e-9"))
    weights = [math.comb(2, j) * (1 / 3) ** j * (2 / 3) ** (2 - j) for j in (1, 2)]
    assert bound.delta(0.0) == pytest.approx(sum(w * base(j).delta(0.0) for j, w in zip((1, 2), weights, strict=True)))


def test_F90_mu_both_ways() -> None:
    for epsilon, delta in ((1.0, 1e-5), (0.0, 0.3), (5.0, 1e-20)):
        box = gaussian.mu_interval(epsilon, delta)
        start = box.midpoint
        e, d = mpf(epsilon), mpf(delta)
        exact = findroot(lambda m: ncdf(-e / m + m / 2) - exp(e) * ncdf(-e / m - m / 2) - d, start, tol=1e-45)  # noqa: B023
        assert box.lower <= exact <= box.upper
        assert box.lower == gaussian.mu_for(epsilon, delta)
    assert gaussian.mu_interval(1.0, 0.0).upper == 0.0
    assert gaussian.mu_interval(1.0, 1.0).lower == math.inf


def test_F91_the_general_root_log_curve() -> None:
    curve = gdp.root_log(a=3.0, b=1.25, sigma=4.0)
    for epsilon in (0.7, 2.0):
        delta = curve.delta(epsilon)
        assert 3.0 / epsilon * math.sqrt(math.log(1.25 / delta)) == pytest.approx(4.0)
    assert "1.25" in curve.name


def test_F89_the_best_delta_for_one_event() -> None:
    """Mironov's figure 2: min over delta of (e^{eps'(delta)} q + delta)/q with the theorem of his Section II."""
    one, n, q = dp.RandomizedResponse(0.51), 100, 1e-3
    epsilon = math.log(0.51 / 0.49)
    grid = [10 ** (-14 + 14 * i / 4000) for i in range(4000)]
    total = [math.sqrt(2 * n * -math.log(d)) * epsilon + n * epsilon * math.expm1(epsilon) for d in grid]
    direct = min((math.exp(t) * q + d) / q for t, d in zip(total, grid, strict=True))
    assert outcomes.largest_ratio_approx(n * one, q, "advanced") == pytest.approx(direct, rel=1e-4)
    tight = outcomes.largest_ratio_approx(n * one, q)
    assert outcomes.of_plan(n * one, q).upper / q <= tight <= outcomes.largest_ratio_approx(n * one, q, "basic")
    with pytest.raises(dp.Unanswerable, match="of_plan"):
        outcomes.largest_ratio_approx(dp.Gaussian(1.0), q)


def test_F93_histogram_mode_against_propose_test_release() -> None:
    for epsilon, gap in ((0.5, 3), (1.0, 8), (0.2, 40)):
        a = mp.exp(-mpf(epsilon))
        pmf = {k: (1 - a) / (1 + a) * a ** abs(k) for k in range(-400, 401)}
        below = {}
        total = mpf(0)
        for k in range(-400, 401):
            total += pmf[k]
            below[k] = total
        wrong = sum(pmf[k] * below[k - gap] for k in range(-400 + gap, 401))  # Z' = k and Z <= k - gap
        found = mode_accuracy(n=gap + 100, gap=gap, epsilon=epsilon, delta=1e-6)
        assert wrong <= found.histogram_wrong * (1 + mpf("1e-12"))
        assert found.histogram_wrong == pytest.approx(float(wrong), rel=1e-9)
        from dptally.release.propose import pass_threshold

        silent = below.get(pass_threshold(epsilon, 1e-6) - (gap - 1), mpf(1))
        assert found.propose_silent == pytest.approx(float(silent), rel=1e-9)
        # three categories, both rivals as high as the lead allows
        three = sum(pmf[k] * (1 - below.get(k + gap - 1, mpf(1)) ** 2) for k in range(-400, 401))
        some = mode_accuracy(n=gap + 100, gap=gap, epsilon=epsilon, delta=1e-6, categories=3)
        assert three <= some.histogram_wrong
        assert some.histogram_wrong == pytest.approx(float(three), rel=1e-8)
        assert some.propose_silent == found.propose_silent
    assert mode_accuracy(100, 4, 1.0, 1e-6).better == "histogram"
    assert 8 / 9 <= mode_accuracy(10, 4, 1e-7, 1e-6, categories=9).histogram_wrong <= 1  # a bound, if a wide one
    for gap in (0, 200, 3):
        with pytest.raises(dp.InvalidArgument, match="gap"):
            mode_accuracy(100, gap, 1.0, 1e-6)


def test_F37_stable_transformations_by_name() -> None:
    plan = dp.Laplace(5.0) + dp.ZCDP(0.1)
    assert group.stable(plan, 3) == plan.group(3)
    with pytest.raises(dp.InvalidArgument, match="c must"):
        group.stable(plan, 0)


def test_bad_input() -> None:
    curve = gdp.laplace(0.5)
    for call in (
        lambda: gdp.without_replacement(curve, 5, 4),
        lambda: gdp.without_replacement(3, 1, 4),  # type: ignore[arg-type]
        lambda: gdp.with_replacement(lambda j: 3, 2, 4),  # type: ignore[arg-type, return-value]
        lambda: gdp.with_replacement(curve, 2, 4),  # type: ignore[arg-type]
        lambda: gdp.with_replacement(lambda j: curve, 10**6, 4),
        lambda: outcomes.largest_ratio_approx(dp.PureDP(1.0), 0.0),
    ):
        with pytest.raises(dp.DptallyError):
            call()
