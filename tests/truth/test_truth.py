"""golden: the references against known numbers, against each other, and under other parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from flint import arb

from truth import (
    AtomsPiece,
    GaussianPiece,
    LaplacePiece,
    SampledPiece,
    approx_delta,
    discrete_delta,
    epsilon_is_within,
    floats,
    gaussian_delta,
    laplace_delta,
    mixture_delta,
    one_step_delta,
    randomized_response_delta,
    sampled_gaussian_delta,
)
from truth.balls import precision


@pytest.fixture(autouse=True)
def _many_bits() -> Iterator[None]:
    with precision(160):
        yield


def same(a: arb, b: arb, digits: int = 15) -> bool:
    """The balls overlap and both are thin enough for that to mean something."""
    return bool(a.overlaps(b)) and min(a.rel_accuracy_bits(), b.rel_accuracy_bits()) > 3.3 * digits


def test_floats_round_outwards() -> None:
    third = arb(1) / 3
    lower, upper = floats(third)
    assert arb(lower) < third < arb(upper)
    assert upper == math.nextafter(lower, 1)
    assert floats(arb(0.5)) == (0.5, 0.5)


def test_gaussian_known_number() -> None:
    # docs/errata.md: mu = 1, delta = 1e-5 has epsilon 4.3772
    assert epsilon_is_within(4.37715, 4.37725, "1e-5", lambda e: gaussian_delta(1, e))
    assert not epsilon_is_within(4.3773, 4.3774, "1e-5", lambda e: gaussian_delta(1, e))
    assert not epsilon_is_within(4.3770, 4.3771, "1e-5", lambda e: gaussian_delta(1, e))


@pytest.mark.parametrize(
    ("t", "k", "epsilon", "value"),
    [
        ("2", 2, "1", "0.6095222197402478"),
        ("1", 3, "1", "0.31022604780354565"),
        ("0.5", 10, "3", "0.031859113425115214"),
        ("0.05", 30, "0.4", "0.0098865858985530798"),
        ("0.2", 50, "5", "3.0372379966929011e-4"),
    ],
)
def test_laplace_golden(t: str, k: int, epsilon: str, value: str) -> None:
    assert abs(laplace_delta(t, k, epsilon) / arb(value) - 1) < 1e-15


def test_one_laplace_is_the_closed_form() -> None:
    # delta(eps) = 1 - e^{(eps - t)/2} for 0 <= eps <= t
    assert same(laplace_delta(0.75, 1, 0.25), -(arb(-0.25).expm1()))


@pytest.mark.parametrize(
    ("sigma", "q", "steps", "delta", "epsilon", "slack"),
    [
        (1, "0.01", 1000, "1e-5", 1.82823666652, 5e-12),
        (1, "0.01", 10**6, "1e-5", 139.03027257, 6e-9),
        (1, "0.01", 1000, "1e-10", 3.290443750895, 5e-13),
        (1, "0.01", 1000, "1e-25", 7.849491785435, 5e-13),
        ("0.6", "0.001", 10**5, "1e-5", 6.11282518361, 6e-12),
        (2, "0.1", 10**6, "1e-5", 1607.407967514, 1e-9),
    ],
)
def test_sampled_gaussian_table_of_the_study(
    sigma: str, q: str, steps: int, delta: str, epsilon: float, slack: float
) -> None:
    assert epsilon_is_within(
        epsilon - slack,
        epsilon + slack,
        delta,
        lambda e: sampled_gaussian_delta(sigma, q, steps, e, "remove", digits=14),
    )


def test_a_different_contour_gives_the_same_digits() -> None:
    plan = [SampledPiece(0.9, 0.02, "add", 700)]
    first = mixture_delta(plan, 1.25, digits=18)
    assert same(first, mixture_delta(plan, 1.25, digits=22, skew=0.83), digits=17)


def test_inversion_against_closed_forms() -> None:
    assert same(mixture_delta([GaussianPiece(3.0), GaussianPiece(4.0)], 10.0), gaussian_delta(5, 10))
    assert same(mixture_delta([GaussianPiece("0.1", 100)], 1.5), gaussian_delta(1, 1.5))


def test_inversion_of_a_rate_near_one_is_nearly_a_gaussian() -> None:
    near = mixture_delta([SampledPiece(4.0, 1 - 1e-12, "remove", 64)], 2.0)
    assert abs(near / gaussian_delta(2, 2.0) - 1) < 1e-9


def test_atoms_and_a_gaussian_by_conditioning() -> None:
    """Gaussian + k randomised responses: average the Gaussian profile over the binomial loss."""
    p, k, mu, epsilon = arb(0.7), 12, 0.5, 1.0
    q = 1 - p
    step = (p / q).log()
    average = sum(
        (
            arb.bin_uiui(k, j) * p**j * q ** (k - j) * gaussian_delta(mu, arb(epsilon) - (2 * j - k) * step)
            for j in range(k + 1)
        ),
        arb(0),
    )
    pieces = [GaussianPiece(mu), AtomsPiece((p, q), (q, p), k)]
    assert same(mixture_delta(pieces, epsilon), average)


def test_mass_at_infinity() -> None:
    d = 1e-6
    e0 = 0.25
    grow = arb(e0).exp()
    p = ((1 - arb(d)) * grow / (1 + grow), (1 - arb(d)) / (1 + grow), arb(d))
    q = (p[1], p[0], arb(0))
    mu = 0.3
    average = sum(
        (a * gaussian_delta(mu, arb(1.0) - loss) for a, loss in ((p[0], arb(e0)), (p[1], -arb(e0)))), arb(0)
    ) + arb(d)
    assert same(mixture_delta([GaussianPiece(mu), AtomsPiece(p, q)], 1.0), average)
    assert same(approx_delta(e0, d, 1, e0), arb(d), digits=14)


def test_laplace_and_a_gaussian_shrink_to_laplace() -> None:
    """delta of Laplace <= delta with a tiny Gaussian added <= a little more."""
    plain = laplace_delta(0.5, 20, 3.0)
    mixed = mixture_delta([LaplacePiece(0.5, 20), GaussianPiece(0.01)], 3.0, digits=14)
    assert plain < mixed < plain * (1 + arb(1e-3))


def test_randomised_response_is_the_two_point_pair() -> None:
    assert same(
        randomized_response_delta(0.7, 2, 20, 1.0),
        discrete_delta([arb(0.7), 1 - arb(0.7)], [1 - arb(0.7), arb(0.7)], 20, 1.0),
    )
    # k-ary, one answer: p - e^eps (1-p)/(k-1)
    assert same(randomized_response_delta(0.5, 4, 1, 0.5), arb(0.5) - arb(0.5).exp() * (1 - arb(0.5)) / 3)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_one_step_against_quadrature(direction: str) -> None:
    """delta = int (p - e^eps q)+ over a fine grid, to the accuracy of the rule, for both directions."""
    s, q, e = 0.8, 0.2, 0.1
    n, total = 40_000, 0.0
    for i in range(n):
        x = -10 + 20 * (i + 0.5) / n
        plain = math.exp(-x * x / (2 * s * s)) / (s * math.sqrt(2 * math.pi))
        mixed = (1 - q) * plain + q * math.exp(-((x - 1) ** 2) / (2 * s * s)) / (s * math.sqrt(2 * math.pi))
        a, b = (mixed, plain) if direction == "remove" else (plain, mixed)
        total += max(a - math.exp(e) * b, 0) * 20 / n
    assert float(one_step_delta(s, q, e, direction)) == pytest.approx(total, rel=1e-6)


def test_two_steps_of_a_rate_near_one_are_nearly_a_gaussian() -> None:
    near = sampled_gaussian_delta(1.5, 1 - 1e-13, 2, 1.0, "remove")
    assert abs(near / gaussian_delta(arb(2).sqrt() / 1.5, 1.0) - 1) < 1e-10
    assert near.rel_accuracy_bits() > 45


@pytest.mark.parametrize(("direction", "value"), [("remove", 0.0238184022), ("add", 0.0056292440)])
def test_two_steps_against_a_grid(direction: str, value: float) -> None:
    # trapezoid sum of max(P - e^eps Q, 0) over 4000 x 4000 points, good to about 2e-7
    assert float(sampled_gaussian_delta(0.8, 0.05, 2, 0.06, direction, digits=12)) == pytest.approx(value, rel=3e-7)


def test_two_steps_beyond_every_loss() -> None:
    # add: the largest loss of two steps is -2 log(1 - q)
    assert sampled_gaussian_delta(0.8, 0.25, 2, 0.6, "add") == 0
    assert sampled_gaussian_delta(0.8, 0.25, 2, 0.55, "add", digits=8) > 0


def test_add_is_not_remove() -> None:
    remove = sampled_gaussian_delta(1.0, "0.01", 1000, 1.5, "remove", digits=12)
    add = sampled_gaussian_delta(1.0, "0.01", 1000, 1.5, "add", digits=12)
    assert add < remove / 2
