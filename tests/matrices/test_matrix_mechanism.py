"""Contract: a matrix mechanism is one Gaussian, and amplified ones are never below the pairs they stand for."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import dptally as dp
from dptally.accounting.citations import unknown_tags
from dptally.cli.language import parse

NORMALISED = dp.Toeplitz([0.8, 0.6], 6)


@pytest.mark.parametrize("participation", [1, (2, 3), (6, 1), dp.Cyclic(2)])
@pytest.mark.parametrize(
    "strategy",
    [
        [[1.0, 0.0], [0.5, -1.0]],
        dp.Toeplitz([1.0, 0.5, -0.25], 7),
        dp.Banded([[1.0, 2.0, 3.0], [0.5, 0.5]]),
        dp.BandedInverse([1.0, -0.5], 7),
        dp.BufferedToeplitz([0.9], [0.1], 7),
        dp.BinaryTree(7),
    ],
    ids=lambda s: type(s).__name__,
)
def test_it_is_one_gaussian(strategy: object, participation: object) -> None:
    mechanism = dp.MatrixMechanism(strategy, 2.0, participation)
    gaussian = dp.Gaussian(2.0, dp.sensitivity(strategy, participation))
    assert mechanism.epsilon(1e-6) == gaussian.epsilon(1e-6)
    assert mechanism.delta(1.0) == gaussian.delta(1.0)
    assert mechanism.rho() == gaussian.rho()
    box = mechanism.epsilon_interval(1e-6)
    assert box.lower <= dp.Gaussian(2.0, mechanism.sensitivity.lower).epsilon(1e-6)
    assert dp.from_json(dp.to_json(mechanism)) == mechanism
    assert parse(repr(mechanism)) == mechanism
    assert hash(dp.from_json(dp.to_json(mechanism))) == hash(mechanism)


def test_what_it_says_of_itself() -> None:
    mechanism = dp.MatrixMechanism(dp.Toeplitz([1.0, 0.5, 0.25], 9), 2.0, (3, 2))
    page = mechanism.explain(1e-6)
    text = str(page)
    assert "Denisov et al. 2022" in text
    assert "Kalinin, Lampert 2024" in text
    assert "(exact)" in text
    assert "norm at most 1" in text
    assert "denisov2022improved" in page.bibtex()
    assert "kalinin2024banded" in page.bibtex()
    amplified = dp.MatrixMechanism(NORMALISED, 2.0, dp.PoissonParts(0.1, 2)).explain(1e-6)
    assert "choquettechoo2023amplified" in amplified.bibtex()
    assert amplified.facts.epsilon.lower == 0.0
    bound = dp.MatrixMechanism([[1.0, -0.5, -0.5], [0.0, 0.75, -0.75]], 2.0, (3, 1))
    assert "an upper bound, at least" in str(bound.explain(1e-6))
    bins = dp.MatrixMechanism(np.eye(4), 2.0, dp.FixedBins(2))
    for each in (mechanism, bound, bins, dp.MatrixMechanism(NORMALISED, 2.0, dp.PoissonParts(0.1, 2))):
        assert unknown_tags(each.theorems()) == ()


def test_a_mechanism_calibrates_mixes_and_groups() -> None:
    def make(sigma: float) -> dp.Mechanism:
        return dp.MatrixMechanism(NORMALISED, sigma, (2, 3))

    found = dp.calibrate(make, epsilon=1.0, delta=1e-6)
    value = getattr(found, "value", found)
    assert make(value).epsilon(1e-6) <= 1.0 < make(value * 0.999).epsilon(1e-6)
    assert (make(2.0) + dp.Laplace(5.0)).epsilon(1e-6) > make(2.0).epsilon(1e-6)
    one = dp.MatrixMechanism(np.eye(2), 4.0, 1)
    assert one.group(3).epsilon(1e-6) == dp.Gaussian(4.0, 3.0).epsilon(1e-6)
    assert dp.MatrixMechanism(np.zeros((1, 1)), 4.0, 1).group(2).epsilon(1e-6) == 0.0
    for random in (dp.PoissonParts(0.1, 2), dp.FixedBins(2)):
        with pytest.raises(dp.Unanswerable, match="not random"):
            dp.MatrixMechanism(np.eye(4), 4.0, random).group(2)


def test_chance_is_known_for_records_added_or_removed_only(tmp_path: Path) -> None:
    ledger = dp.Ledger.open(f"sqlite:///{tmp_path}/replace.db", create=True)
    ledger.create("rows", budget=dp.ApproxDP(10.0, 1e-5), adjacency=dp.REPLACE)
    ledger.create("more", budget=dp.ApproxDP(10.0, 1e-5))
    for random in (dp.PoissonParts(0.1, 2), dp.FixedBins(2)):
        plan = dp.MatrixMechanism(np.eye(4), 4.0, random)
        with pytest.raises(dp.TermsMismatch) as caught, ledger.spend("rows", plan):
            raise AssertionError("unreachable")
        assert "Stated for this account" not in str(caught.value)
    with ledger.spend("more", dp.MatrixMechanism(np.eye(4), 4.0, dp.PoissonParts(0.1, 2))):
        pass
    with ledger.spend("rows", dp.MatrixMechanism(np.eye(4), 4.0, 1)):
        pass


def test_amplified_bands_are_sampled_gaussian_steps() -> None:
    """Columns of norm 1, two bands: ceil(6/2) steps at the part's rate."""
    amplified = dp.MatrixMechanism(NORMALISED, 2.0, dp.PoissonParts(0.1, 2))
    steps = 3 * dp.PoissonSampled(dp.Gaussian(2.0), 0.1)
    assert amplified.epsilon(1e-6) == pytest.approx(steps.epsilon(1e-6), rel=1e-12)
    assert amplified.epsilon(1e-6) >= steps.epsilon(1e-6) * (1 - 1e-15)
    assert amplified.epsilon_interval(1e-6).lower == 0.0
    wider = dp.MatrixMechanism(NORMALISED, 2.0, dp.PoissonParts(0.1, 4))
    assert wider.parts[0][1] == 2
    everybody = dp.MatrixMechanism(NORMALISED, 2.0, dp.PoissonParts(1.0, 2))
    assert everybody.epsilon(1e-6) == pytest.approx((3 * dp.Gaussian(2.0)).epsilon(1e-6), rel=1e-12)
    assert amplified.unsampled().epsilon(1e-6) == everybody.epsilon(1e-6)
    assert everybody.unsampled() == everybody
    assert dp.MatrixMechanism(NORMALISED, 2.0, dp.PoissonParts(0.0, 2)).epsilon(1e-6) == 0.0
    assert dp.from_json(dp.to_json(amplified)) == amplified
    assert parse(repr(amplified)) == amplified
    with pytest.raises(dp.InvalidType, match="one step"):
        amplified.laws()


def _nodes(reach: float = 9.0, number: int = 1201) -> tuple[np.ndarray, np.ndarray]:
    x = np.linspace(-reach, reach, number)
    return x, np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi) * (x[1] - x[0])


def _ratio(x: np.ndarray, shift: float) -> np.ndarray:
    return np.exp(shift * x - 0.5 * shift * shift)


@pytest.mark.parametrize("epsilon", [0.2, 1.5])
@pytest.mark.parametrize("direction", [0, 1])
def test_poisson_parts_bound_the_pair_of_every_part(epsilon: float, direction: int) -> None:
    """Three steps of two bands with columns of different norms: the pairs of both parts, integrated in the plane."""
    strategy, sigma, rate, a = dp.Banded([[1.0, 0.5, 0.9], [0.4, 1.2]]), 1.1, 0.3, math.exp(epsilon)
    claimed = dp.MatrixMechanism(strategy, sigma, dp.PoissonParts(rate, 2)).delta(epsilon)
    norms = np.linalg.norm(strategy.array(), axis=0) / sigma
    x, weight = _nodes()
    for part in ((0, 2), (1,)):
        ratio = np.ones((1, 1))
        for axis, column in enumerate(part):
            one = 1 - rate + rate * _ratio(x, norms[column])
            ratio = ratio * (one[:, None] if axis == 0 else one[None, :])
        mass = weight[:, None] * (weight[None, :] if len(part) == 2 else 1.0)
        attained = float((mass * np.maximum(ratio - a if direction == 0 else 1 - a * ratio, 0.0)).sum())
        assert attained <= claimed * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("diagonal", [(1.0, 1.0), (1.0, 0.4)])
def test_fixed_bins_bound_the_mixture(diagonal: tuple[float, float]) -> None:
    """Two bins, two epochs: (N(m_0 e_0) + N(m_1 e_1))/2 against N(0), integrated in the plane."""
    sigma = 1.5
    strategy = np.diag([*diagonal, *diagonal])
    claimed = dp.MatrixMechanism(strategy, sigma, dp.FixedBins(2))
    first, second = (math.sqrt(2) * one / sigma for one in diagonal)
    x, weight = _nodes()
    ratio = 0.5 * (_ratio(x, first)[:, None] + _ratio(x, second)[None, :])
    mass = weight[:, None] * weight[None, :]
    for epsilon in (0.0, 0.3):
        a = math.exp(epsilon)
        attained = max(float((mass * np.maximum(part, 0.0)).sum()) for part in (ratio - a, 1 - a * ratio))
        assert attained <= claimed.delta(epsilon) * (1 + 1e-5) + 1e-9
        if diagonal[0] == diagonal[1]:
            assert attained == pytest.approx(claimed.delta(epsilon), rel=1e-3)
    assert claimed.delta(0.3) < dp.MatrixMechanism(strategy, sigma, dp.Cyclic(2)).delta(0.3)
    assert claimed.unsampled() == dp.MatrixMechanism(strategy, sigma, dp.Cyclic(2))
    assert not claimed.keeps_tail()


def test_columns_of_one_bin_may_meet() -> None:
    """Coefficients at multiples of the number of bins leave the bins apart, and so do some dense matrices."""
    skipping = dp.Toeplitz([1.0, 0.0, 0.5], 6)
    banded = dp.Banded([[1.0] * 6, [0.0] * 5, [0.5] * 4])
    claimed = [dp.MatrixMechanism(one, 2.0, dp.FixedBins(2)).delta(0.1) for one in (skipping, skipping.array(), banded)]
    assert claimed == pytest.approx([claimed[0]] * 3, rel=1e-9)
    assert dp.MatrixMechanism(dp.BandedInverse([1.0, 0.0, -0.5], 6), 2.0, dp.FixedBins(2)).laws()


@pytest.mark.parametrize(
    "strategy",
    [
        NORMALISED,
        NORMALISED.array(),
        dp.BinaryTree(4),
        dp.BufferedToeplitz([0.5], [0.5], 4),
        dp.BandedInverse([1, -1], 4),
    ],
    ids=lambda s: type(s).__name__,
)
def test_what_no_theorem_covers_is_refused(strategy: object) -> None:
    with pytest.raises(dp.Unanswerable, match="no common row"):
        dp.MatrixMechanism(strategy, 2.0, dp.FixedBins(3))
    with pytest.raises(dp.Unanswerable, match="bands"):
        dp.MatrixMechanism(strategy, 2.0, dp.PoissonParts(0.1, 1))


def test_an_upper_triangular_matrix_has_no_bands() -> None:
    with pytest.raises(dp.Unanswerable, match="not lower triangular"):
        dp.MatrixMechanism([[1.0, 1.0], [0.0, 1.0]], 2.0, dp.PoissonParts(0.1, 2))


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(dp.InvalidArgument, match="sigma"):
        dp.MatrixMechanism(np.eye(2) * 1e99, 1e-99, 1)
    with pytest.raises(dp.InvalidType, match="strategy"):
        dp.MatrixMechanism(dp.Gaussian(1.0), 1.0, 1)
    with pytest.raises(dp.InvalidArgument, match="bands"):
        dp.Banded("ab")
    with pytest.raises(dp.InvalidArgument, match="parts"):
        dp.PoissonParts(0.1, 10**7)
