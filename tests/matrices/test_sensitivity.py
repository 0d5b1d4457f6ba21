"""Contract and golden: certified sensitivities against every pattern, and the numbers of jax-privacy's own tests."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import dptally as dp
from depth import thinned
from dptally.mechanisms.matrices.strategy import Sensitivity, certified_sensitivity
from matrices import truth

SMALL = np.array([[1.0, 0, 0, 0], [2, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, -6]])


def held(found: Sensitivity, table: truth.Exact, allowed: list[tuple[int, ...]]) -> None:
    """The claim is never below what records attain, and its lower end never above."""
    most = max(truth.absolute(table, one) for one in allowed)
    assert Fraction(found.lower) ** 2 <= most <= Fraction(found.upper) ** 2
    rng = np.random.default_rng(1)
    worst = sorted(allowed, key=lambda one: -truth.absolute(table, one))[:3]
    for one in worst:
        assert found.upper**2 >= truth.signed(table, one)
        assert found.upper**2 >= truth.vectors(table, one, rng, starts=1) * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(thinned(45)))
def test_no_pattern_of_vectors_exceeds_a_dense_strategy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps, rows = int(rng.integers(1, 9)), int(rng.integers(1, 10))
    matrix = rng.normal(size=(rows, steps)) * (rng.random((rows, steps)) < rng.choice([0.3, 0.7, 1.0]))
    if seed % 3 == 0:
        matrix = np.abs(matrix)
    if not matrix.any():
        matrix[0, 0] = 1.0
    table = truth.gram(matrix)
    times, gap = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    allowed = list(truth.patterns(steps, times, gap))
    held(certified_sensitivity(matrix, (times, gap)), table, allowed)
    claimed = dp.sensitivity(matrix, (times, gap))
    most = max(truth.absolute(table, one) for one in allowed)
    assert most <= Fraction(claimed) ** 2 <= most * (1 + Fraction(1, 10**12))  # so few patterns are all looked at
    everybody = list(truth.cyclic(steps, gap))
    held(certified_sensitivity(matrix, dp.Cyclic(gap)), table, everybody)
    assert Fraction(dp.sensitivity(matrix, dp.Cyclic(gap))) ** 2 >= max(truth.absolute(table, o) for o in everybody)
    assert Fraction(dp.sensitivity(matrix, 1)) ** 2 >= max(table[i][i] for i in range(steps))


def test_signs_are_not_enough_for_records_that_are_vectors() -> None:
    """Three columns at 120 degrees to each other: signs attain less than vectors do."""
    turns = np.arange(3) * 2 * math.pi / 3
    matrix = np.array([np.cos(turns), np.sin(turns)])
    table = truth.gram(matrix)
    by_signs = float(truth.signed(table, (0, 1, 2)))
    by_vectors = truth.vectors(table, (0, 1, 2), np.random.default_rng(0))
    assert by_signs < 4.01
    assert by_vectors > 4.49
    found = certified_sensitivity(matrix, (3, 1))
    assert found.upper**2 >= by_vectors
    assert not found.exact


STRATEGIES = {
    "falling": lambda rng, n: dp.Toeplitz(np.sort(rng.random(int(rng.integers(1, n + 1))))[::-1], n),
    "any": lambda rng, n: dp.Toeplitz(rng.normal(size=int(rng.integers(1, n + 1))), n),
    "rising": lambda rng, n: dp.Toeplitz(np.sort(rng.random(int(rng.integers(1, n + 1)))), n),
    "banded": lambda rng, n: dp.Banded([rng.normal(size=n - d) for d in range(int(rng.integers(1, min(n, 4) + 1)))]),
    "inverse": lambda rng, n: dp.BandedInverse([1.0, *(rng.normal(size=2) * 0.6)], n),
    "buffered": lambda rng, n: dp.BufferedToeplitz(rng.uniform(-0.5, 1, 2), rng.normal(size=2) * 0.3, n),
    "tree": lambda _rng, n: dp.BinaryTree(n),
}


@pytest.mark.parametrize("kind", STRATEGIES)
@pytest.mark.parametrize("seed", range(thinned(12)))
def test_no_pattern_exceeds_a_structured_strategy(kind: str, seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    steps = int(rng.integers(2, 13))
    strategy = STRATEGIES[kind](rng, steps)
    table = truth.gram(strategy.array())
    # the entries of array() are rounded where the strategy is a recursion
    room = Fraction(1, 10**12) if kind in ("inverse", "buffered") else Fraction(0)
    for times, gap in ((1, 1), (2, 1), (steps, 1), (3, 2), (2, 5), (steps, 3)):
        most = max(truth.absolute(table, one) for one in truth.patterns(steps, min(times, 5), gap))
        if times <= 5:
            found = certified_sensitivity(strategy, (times, gap))
            assert Fraction(found.upper) ** 2 >= most * (1 - room)
            assert Fraction(found.lower) ** 2 <= most * (1 + room)
        whole = max(truth.absolute(table, one) for one in truth.cyclic(steps, gap))
        around = certified_sensitivity(strategy, dp.Cyclic(gap))
        assert Fraction(around.lower) ** 2 <= whole * (1 + room)
        assert around.upper**2 >= max(truth.vectors(table, o, rng, 1) for o in truth.cyclic(steps, gap)) * (1 - 1e-12)
    assert certified_sensitivity(strategy, 1).exact


@pytest.mark.parametrize("kind", ["falling", "tree"])
def test_what_is_called_exact_is_attained(kind: str) -> None:
    rng = np.random.default_rng(5)
    for steps in (5, 8, 12):
        strategy = STRATEGIES[kind](rng, steps)
        table = truth.gram(strategy.array())
        for times, gap in ((2, 2), (3, 1), (4, 3)):
            found = certified_sensitivity(strategy, (times, gap))
            most = max(truth.absolute(table, one) for one in truth.patterns(steps, times, gap))
            assert found.exact
            assert Fraction(found.lower) ** 2 <= most <= Fraction(found.upper) ** 2


@pytest.mark.parametrize("steps", [70, 150])
@pytest.mark.parametrize("gap", [1, 3, 8])
def test_long_strategies_agree_with_their_matrices(steps: int, gap: int) -> None:
    """Beyond what is enumerated: the banded, Toeplitz and dense roads bound one another's attained values."""
    rng = np.random.default_rng(steps + gap)
    bands = [rng.normal(size=steps - d) for d in range(5)]
    toeplitz = rng.normal(size=5)
    for strategy in (dp.Banded(bands), dp.Toeplitz(toeplitz, steps)):
        for asked in ((4, gap), (steps, gap), dp.Cyclic(gap)):
            short, dense = certified_sensitivity(strategy, asked), certified_sensitivity(strategy.array(), asked)
            assert short.lower <= dense.upper
            assert dense.lower <= short.upper
            if isinstance(asked, dp.Cyclic) or gap >= 5:
                assert short.upper <= dense.upper * (1 + 1e-9)


def test_the_tree_on_long_streams() -> None:
    for steps in (1, 2, 3, 64, 100, 1 << 16, 10**6):
        assert dp.sensitivity(dp.BinaryTree(steps), 1) == pytest.approx(math.sqrt(steps.bit_length()), rel=1e-15)
    found = certified_sensitivity(dp.BinaryTree(1 << 16), (16, 1 << 12))
    assert found.exact
    assert found.upper**2 == pytest.approx(16 * 12 + 16 * (1 + 2 + 4 + 8 + 16))
    assert certified_sensitivity(dp.BinaryTree(10**5), (7, 999)).lower > 0
    assert dp.sensitivity(dp.BinaryTree(10**5), dp.Cyclic(9000)) >= dp.sensitivity(dp.BinaryTree(10**5), 1)


# -- the numbers of jax-privacy's own tests -----------------------------------------------------------------------


def test_jax_privacy_one_participation() -> None:
    matrix = SMALL.copy()
    matrix[3, 2] = 3.0
    assert dp.sensitivity(matrix, 1) == 6.0
    assert dp.sensitivity(matrix[:3, :3], 1) == pytest.approx(math.sqrt(5), rel=1e-15)
    assert dp.sensitivity([[3]], 1) == 3.0


def test_jax_privacy_diagonal_and_banded() -> None:
    diagonal = np.diag([0.0, 3.0, 0.0, 1.0, 2.0])
    assert dp.sensitivity(diagonal, (5, 2)) == pytest.approx(math.sqrt(13), rel=1e-14)
    assert dp.sensitivity(diagonal, (1, 2)) == 3.0
    assert dp.sensitivity(SMALL, (1, 2)) == 6.0
    for gap in (2, 3):
        assert dp.sensitivity(SMALL, (4, gap)) == pytest.approx(math.sqrt(41), rel=1e-14)
    dense = np.array([[1.0, 0, 0, 0], [2, 1, 0, 0], [0.5, 1, 1, 0], [0.4, 0, 1, -6]])
    assert dp.sensitivity(dense, (4, 1)) == pytest.approx(math.sqrt(np.abs(dense.T @ dense).sum()), rel=1e-14)


@pytest.mark.parametrize("steps", [1, 2, 5, 10])
def test_jax_privacy_a_gap_as_long_as_the_stream_is_one_participation(steps: int) -> None:
    for times in (1, 3, steps):
        assert dp.sensitivity(np.tri(steps), (times, steps)) == pytest.approx(math.sqrt(steps), rel=1e-15)


@pytest.mark.parametrize("epochs", [1, 2, 4, 8, 16])
def test_jax_privacy_fixed_epochs_of_the_identity(epochs: int) -> None:
    assert dp.sensitivity(np.eye(16), dp.Cyclic(16 // epochs)) == pytest.approx(math.sqrt(epochs), rel=1e-13)
    assert dp.sensitivity(5 * np.eye(1), dp.Cyclic(1)) == 5.0


def test_jax_privacy_fixed_epochs_of_random_matrices() -> None:
    matrix = np.abs(np.random.default_rng(456).normal(size=(16, 16))) * np.tri(16)
    assert dp.sensitivity(matrix, dp.Cyclic(16)) == pytest.approx(np.linalg.norm(matrix, axis=0).max(), rel=1e-13)
    assert dp.sensitivity(matrix, dp.Cyclic(1)) == pytest.approx(np.linalg.norm(matrix.sum(axis=1)), rel=1e-12)


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 11])
@pytest.mark.parametrize("times", [1, 4, 11])
def test_jax_privacy_toeplitz_identity_and_ones(steps: int, times: int) -> None:
    assert dp.sensitivity(dp.Toeplitz([1.0], steps), (times, 1)) ** 2 == pytest.approx(min(steps, times), rel=1e-14)
    expected = float(np.sum(np.sum(np.tri(steps)[:, :times], axis=1) ** 2))
    assert dp.sensitivity(dp.Toeplitz(np.ones(steps), steps), (times, 1)) ** 2 == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(("steps", "epochs"), [(1, 1), (2, 1), (2, 2), (10, 1), (10, 5), (10, 10)])
@pytest.mark.parametrize("bands", [2, 10, 11, 13])
def test_jax_privacy_falling_toeplitz_is_worst_in_fixed_epochs(steps: int, epochs: int, bands: int) -> None:
    strategy = dp.Toeplitz(np.linspace(1.0, 0.001, bands), steps)
    expected = dp.sensitivity(strategy.array(), dp.Cyclic(steps // epochs))
    for times in (epochs, epochs + 10):
        assert dp.sensitivity(strategy, (times, steps // epochs)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("coefficients", [[-1.0], [1.0, 2.0, 1.0], [1.0, -0.5, 0.3], [-1, 0.5]])
@pytest.mark.parametrize("gap", [1, 2])
@pytest.mark.parametrize("times", [1, 2, 6])
def test_jax_privacy_other_toeplitz_columns_are_bounded(coefficients: list[float], gap: int, times: int) -> None:
    strategy = dp.Toeplitz(coefficients, 6)
    table = truth.gram(strategy.array())
    most = max(truth.absolute(table, one) for one in truth.patterns(6, times, gap))
    assert Fraction(dp.sensitivity(strategy, (times, gap))) ** 2 >= most


@pytest.mark.parametrize("times", [1, 2, 4, 8, 16])
def test_jax_privacy_banded_inverse_of_square_roots(times: int) -> None:
    """Eight coefficients of the inverse square root, 128 steps: the projection changes nothing."""
    root = [1.0]
    for i in range(1, 8):
        root.append(root[-1] * (i - 1.5) / i)
    strategy = dp.BandedInverse(root, 128)
    column = strategy.array()[:, 0]
    rows = sum(np.roll(np.where(np.arange(128) < 128 - s, column, 0), s) for s in range(0, 128, 128 // times))
    found = certified_sensitivity(strategy, (times, 128 // times))
    assert found.upper**2 == pytest.approx(float(np.sum(rows**2)), rel=1e-12)
    assert found.exact


def test_jax_privacy_normalised_bands_cost_the_root_of_their_number() -> None:
    rng = np.random.default_rng(0)
    matrix = np.triu(np.tril(rng.random((32, 32))), 0) + np.tril(np.triu(rng.random((32, 32)), -3))
    matrix = np.tril(matrix) * (np.subtract.outer(np.arange(32), np.arange(32)) < 4)
    matrix /= np.linalg.norm(matrix, axis=0)
    for strategy in (matrix, dp.Banded([np.diagonal(matrix, -d) for d in range(4)])):
        assert dp.sensitivity(strategy, (32, 4)) ** 2 == pytest.approx(8.0, rel=1e-12)
        assert dp.sensitivity(strategy, (6, 4)) ** 2 == pytest.approx(6.0, rel=1e-12)


# -- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad", [None, "a", 1.0, [1.0, 2.0], [], [[]], [[math.nan]], [[math.inf]], [[1e200]], [[1e-200]]]
)
def test_bad_matrices_are_refused(bad: object) -> None:
    with pytest.raises(dp.InvalidArgument, match="strategy"):
        dp.sensitivity(bad, 1)


@pytest.mark.parametrize(
    "bad", [0, 2, -1, 1.0, True, None, "once", (1,), (1, 2, 3), (0, 1), (1, 0), (1.5, 1), (True, 1)]
)
def test_bad_participations_are_refused(bad: object) -> None:
    with pytest.raises(dp.InvalidArgument, match="participation"):
        dp.sensitivity(np.eye(3), bad)


def test_a_random_participation_has_no_sensitivity() -> None:
    with pytest.raises(dp.Unanswerable, match="MatrixMechanism"):
        dp.sensitivity(np.eye(3), dp.PoissonParts(0.1, 3))


def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(dp.InvalidArgument, match="Banded"):
        dp.sensitivity(np.ones((1, 5000)), (2, 1))
    assert dp.sensitivity(np.ones((1, 5000)), 1) == 1.0
    with pytest.raises(dp.InvalidArgument, match="steps"):
        dp.BandedInverse([1.0] * 3000, 10**5)
    with pytest.raises(dp.InvalidArgument, match="steps"):
        dp.BufferedToeplitz([0.5] * 10, [0.5] * 10, 10**6)
    with pytest.raises(dp.InvalidArgument, match="largest entry"):
        dp.sensitivity(dp.BandedInverse([1.0, -10.0], 200), 1)
    with pytest.raises(dp.InvalidArgument, match="participation"):
        dp.sensitivity(dp.Banded([np.ones(3000 - d) for d in range(2000)]), (2, 1))


def test_an_unstable_inverse_is_expanded_with_more_bits() -> None:
    """Errors grow like 3^i here; the answer is exact nevertheless: c_i = (-1)^i (2^(i+1) - 1)."""
    strategy = dp.BandedInverse([1.0, 3.0, 2.0], 300)
    column = [Fraction((-1) ** i * (2 ** (i + 1) - 1)) for i in range(300)]
    expected = sum(one * one for one in column)
    found = certified_sensitivity(strategy, 1)
    assert Fraction(found.lower) ** 2 <= expected <= Fraction(found.upper) ** 2
    assert found.exact


def test_no_strategy_at_all_costs_nothing() -> None:
    assert dp.sensitivity(np.zeros((2, 3)), (2, 1)) == 0.0
    assert dp.sensitivity(dp.Toeplitz([0.0, 0.0], 5), (2, 1)) == 0.0
    assert dp.MatrixMechanism(np.zeros((2, 3)), 1.0, 1).epsilon(0.0) == 0.0
    assert dp.MatrixMechanism(np.zeros((3, 3)), 1.0, dp.PoissonParts(0.5, 2)).epsilon(0.0) == 0.0
