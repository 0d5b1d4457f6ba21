"""Contract: bad input is refused before any randomness is drawn, and no error says what the data are."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction as F

import numpy as np
import pytest

from dptally import ADD_REMOVE, REPLACE, release
from dptally.errors import DptallyError, InvalidArgument
from dptally.noise.source import SYSTEM
from dptally.release import selection

SECRET = 987654321.125


@pytest.fixture(autouse=True)
def no_randomness(monkeypatch):
    def forbidden(self, count):
        raise AssertionError("randomness was drawn")

    monkeypatch.setattr(type(SYSTEM), "take", forbidden)


def count(data=(1, 2), **options):
    return release.count(data, **{"scale": 1, **options})


def bounded_sum(data=(1, 2), **options):
    defaults = {"lower": 0, "upper": 10, "adjacency": ADD_REMOVE, "scale": 1}
    return release.bounded_sum(data, **{**defaults, **options})


def mean(data=(1, 2), **options):
    return release.mean(data, **{"lower": 0, "upper": 10, "adjacency": REPLACE, "scale": 1, **options})


def histogram(data=(1, 2), **options):
    return release.histogram(data, **{"categories": (1, 2), "adjacency": ADD_REMOVE, "scale": 1, **options})


def mode(data=(1, 2), **options):
    return release.mode(data, **{"categories": (1, 2), "adjacency": ADD_REMOVE, "scale": 1, **options})


def response(data=(0, 1), **options):
    return release.randomized_response(data, **{"p": 0.75, **options})


def bits(data=(0, 1), **options):
    return release.mode_of_bits(data, **{"epsilon": 1.0, "delta": 0.1, "adjacency": REPLACE, **options})


def rectify(algorithm=sum, **options):
    defaults = {"lower": 0, "upper": 1, "head_epsilon": 1.0, "mu": 1.0}
    return release.clip_and_rectify(algorithm, (1,), **{**defaults, **options})


def ptr(distance=len, **options):
    return release.propose_test_release((1,), max, distance, **{"epsilon": 1.0, "delta": 0.1, **options})


def answer(value=1.0, **options):
    return release.answer(value, **{"sensitivity": 1, "scale": 1, **options})


NOISY = [count, bounded_sum, mean, histogram, mode, answer]
COLUMNS = [count, bounded_sum, mean, histogram, mode, response, bits]
NUMBERS = [bounded_sum, mean]


@pytest.mark.parametrize("call", NOISY)
@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf, True, "1", F(10, 3), F(1, 10)], ids=repr)
def test_scales_that_are_no_scale_or_that_no_double_holds(call, scale):
    with pytest.raises(InvalidArgument, match="scale"):
        call(scale=scale)
    with pytest.raises(InvalidArgument, match="sigma"):
        call(scale=None, sigma=scale)


@pytest.mark.parametrize("call", NOISY)
def test_one_kind_of_noise_must_be_asked_for(call):
    for options in ({"scale": None}, {"scale": 1, "sigma": 1}):
        with pytest.raises(InvalidArgument, match="one of the two"):
            call(**options)


NO_COLUMNS = [5, None, "abc", {1: 2}, {1, 2}, np.array([[1, 2], [3, 4]]), iter((1, 2)),
              np.ma.array([1, 0], mask=[False, True])]  # fmt: skip


@pytest.mark.parametrize("call", COLUMNS)
@pytest.mark.parametrize("data", NO_COLUMNS)
def test_what_is_not_a_column(call, data):
    with pytest.raises(InvalidArgument, match="data must be"):
        call(data)


NO_NUMBERS = [
    np.array(["a", "b"]),
    np.array([1j]),
    np.array([1.0], dtype=np.longdouble),
    np.array(["2026-01-01"], "M8"),
]


@pytest.mark.parametrize("call", NUMBERS)
@pytest.mark.parametrize("data", NO_NUMBERS)
def test_columns_of_a_type_that_is_not_of_numbers(call, data):
    with pytest.raises(InvalidArgument, match="data must be"):
        call(data)


@pytest.mark.parametrize("call", [*NUMBERS, rectify])
@pytest.mark.parametrize("bounds", [(1, 0), (1, 1), (math.nan, 1), (0, math.inf), ("0", 1), (True, 2)])
def test_bounds_that_are_reversed_or_no_numbers(call, bounds):
    with pytest.raises(InvalidArgument, match=r"lower|upper"):
        call(lower=bounds[0], upper=bounds[1])


@pytest.mark.parametrize("call", [bounded_sum, mean, histogram, mode, bits])
@pytest.mark.parametrize("adjacency", [None, "replace", 1])
def test_adjacency_is_stated_where_it_changes_the_sensitivity(call, adjacency):
    with pytest.raises(InvalidArgument, match="it changes the sensitivity"):
        call(adjacency=adjacency)


@pytest.mark.parametrize("call", [bounded_sum, mean, answer, rectify])
@pytest.mark.parametrize("grid", [0.3, 0, -1, "1"])
def test_grids_that_are_no_power_of_two(call, grid):
    with pytest.raises(InvalidArgument, match="grid"):
        call(grid=grid)


def test_categories_that_are_none():
    for call in (histogram, mode):
        for categories in ((), (1, 1)):
            with pytest.raises(InvalidArgument, match="categories"):
                call(categories=categories)
        for missing in (3, [1], "other"):
            with pytest.raises(InvalidArgument, match="missing must be a declared category"):
                call(missing=missing)
    for call in (histogram, mode, response):
        for categories in (5, [[1], [2]], iter("ab"), None):
            with pytest.raises(InvalidArgument, match="hashed"):
                call(categories=categories)
    with pytest.raises(InvalidArgument, match="at least two"):
        response(categories=(0,))
    with pytest.raises(InvalidArgument, match="plain values"):
        response(categories=((0, 1), (1, 0)))
    with pytest.raises(InvalidArgument, match="plain values"):
        response(categories=((0, 1), (1,)))
    with pytest.raises(InvalidArgument, match="missing must be a declared category"):
        response(missing=2)


def test_decimals_that_no_memory_would_hold():
    """Refused as arguments; as data they follow the rule, for a run that does not end would tell of the record."""
    huge, tiny = Decimal("1e999999999"), Decimal("-1e-999999999")
    with pytest.raises(InvalidArgument, match="between"):
        count(scale=huge)
    assert selection.finite(huge, F(7)) == 7
    assert selection.finite(tiny, F(7)) == 0
    assert selection.finite(Decimal("1e300"), F(7)) == 10**300


def test_bits_and_conditions_of_another_type():
    for data in (np.array(["0"]), np.array([1j])):
        with pytest.raises(InvalidArgument, match="data must be"):
            bits(data)
        with pytest.raises(InvalidArgument, match="where must be"):
            count([1], where=data)


def test_conditions_of_another_length():
    with pytest.raises(InvalidArgument, match="as long as the data"):
        count([1, 2], where=[True])
    with pytest.raises(InvalidArgument, match="missing must be"):
        count([1, 2], missing="no")


@pytest.mark.parametrize("call", [count, bounded_sum, mean, histogram, mode, response, bits, rectify, ptr, answer])
@pytest.mark.parametrize("unit", ["person", "person:", "person: ", "", None, 3, "rows"])
def test_units_that_are_no_unit(call, unit):
    with pytest.raises(InvalidArgument, match="unit must be"):
        call(unit=unit)


def test_response_probabilities():
    for p in (-0.1, 1.5, math.nan, F(1, 3), True):
        with pytest.raises(InvalidArgument, match="p must be"):
            response(p=p)
    with pytest.raises(InvalidArgument, match="say nothing"):
        release.estimate_counts([0, 1], p=0.5)


def test_counts_of_means():
    with pytest.raises(InvalidArgument, match="count_scale"):
        mean(adjacency=ADD_REMOVE)
    with pytest.raises(InvalidArgument, match="the count is public"):
        mean(adjacency=REPLACE, count_scale=1, missing=0)
    for missing in (math.nan, math.inf, "0", True):
        with pytest.raises(InvalidArgument, match="missing"):
            mean(missing=missing)


@pytest.mark.parametrize("call", [ptr, bits])
def test_epsilons_and_deltas_of_tests(call):
    for epsilon in (0, -1, math.nan, math.inf, True):
        with pytest.raises(InvalidArgument, match="epsilon"):
            call(epsilon=epsilon)
    for delta in (0, 1, -0.1, math.nan):
        with pytest.raises(InvalidArgument, match="delta"):
            call(delta=delta)


def test_distances_and_bases():
    for bad in (lambda _: 0.5, lambda _: True, lambda _: None, lambda _: -1):
        with pytest.raises(InvalidArgument, match="distance"):
            ptr(bad)
    with pytest.raises(InvalidArgument, match="base_delta"):
        ptr(base_delta=1.0)


def test_algorithms_that_do_not_return_one_number():
    for bad in (lambda _: "7", lambda _: [7.0], lambda _: None, lambda _: True, lambda _: 1j):
        with pytest.raises(InvalidArgument, match="one real number"):
            rectify(bad)
    for head in (0, math.inf, math.nan):
        with pytest.raises(InvalidArgument, match="head_epsilon"):
            rectify(head_epsilon=head)
    with pytest.raises(InvalidArgument, match="mu"):
        rectify(mu=-1.0)
    with pytest.raises(InvalidArgument, match="fine enough"):
        rectify(grid=8)


def test_rates_and_collections():
    for rate in (-0.1, 1.1, math.nan, F(1, 3)):
        with pytest.raises(InvalidArgument, match="rate"):
            release.poisson_sample([1], rate)
    for data in (5, "abc"):
        with pytest.raises(InvalidArgument, match="data"):
            release.poisson_sample(data, 0.5)


def test_answers_that_are_no_number():
    for value in ("1", [1.0], True, 1j):
        with pytest.raises(InvalidArgument, match="value"):
            answer(value)


@pytest.mark.parametrize("call", [bounded_sum, mean, histogram, mode, response, bits])
def test_no_error_says_what_the_data_are(call):
    shown = str(SECRET)
    for data in (np.array([[SECRET]]), {SECRET: 1}, np.ma.array([SECRET], mask=[False])):
        with pytest.raises(DptallyError) as caught:
            call(data)
        seen = f"{caught.value} {caught.value.args} {vars(caught.value)}"
        assert shown not in seen
        assert "987654" not in seen
