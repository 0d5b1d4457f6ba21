"""Laws (hypothesis): bracketed searches find the valley and the border, and never leave the bracket."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptally.numerics.search import first_true, last_true, minimise


@settings(max_examples=100, deadline=None)
@given(st.floats(-16, 16), st.floats(-3, 3))
def test_minimise_finds_the_valley_wherever_it_lies(log_place, log_width):
    place, width = 10.0**log_place, 10.0**log_width
    x, value = minimise(lambda x: width * (np.log(x / place)) ** 2 + 1, 1e-18, 1e18)
    assert x == pytest.approx(place, rel=2e-6 / math.sqrt(min(width, 1.0)))  # the root of the value's precision
    assert value == pytest.approx(1.0, rel=2e-12)


def test_minimise_at_the_ends_and_past_infinity():
    assert minimise(lambda x: x, 1e-6, 1e6)[0] == pytest.approx(1e-6)
    assert minimise(lambda x: -x, 1e-6, 1e6)[0] == pytest.approx(1e6)
    assert minimise(lambda x: np.full_like(x, np.inf), 1e-6, 1e6)[1] == math.inf
    assert minimise(lambda x: np.where(x > 1e-8, np.nan, 1 / x), 1e-18, 1e18)[0] == pytest.approx(1e-8, rel=1e-6)


def test_minimise_stops_where_nothing_improves():
    calls = []
    minimise(lambda x: calls.append(x.size) or np.maximum(1 / x, 1e-5), 1e-18, 1e18)
    assert sum(calls) < 300


@settings(max_examples=150, deadline=None)
@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_the_border_is_found_to_the_last_double(a, b, c):
    low, border, high = sorted((a, b, c))
    if low < border:
        found = first_true(lambda x: x >= border, low, high) if border < high else high
        assert found == border
    if border < high:
        found = last_true(lambda x: x <= border, low, high) if low < border else low
        assert found == border


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-320, 1e300), st.floats(1e-12, 1e-3))
def test_a_tolerance_ends_early_on_the_safe_side(border, tolerance):
    found = first_true(lambda x: x >= border, 0.0, 1e305, tolerance)
    assert border <= found <= border * (1 + 3 * tolerance) + 5e-324
