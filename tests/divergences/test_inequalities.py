"""Laws (hypothesis) and golden: weak triangle inequality and probability preservation. F16, F33, F64, F66."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import golden
from dptally.divergences import finite as d
from dptally.divergences.inequalities import (
    equal_order,
    power_moment_triangle,
    probability_range,
    triangle_orders,
    weak_triangle,
)
from dptally.errors import InvalidArgument

triples = (
    st.integers(2, 6)
    .flatmap(lambda n: st.tuples(*[st.lists(st.integers(1, 200), min_size=n, max_size=n)] * 3))
    .map(lambda three: tuple(np.array(w, dtype=float) / sum(w) for w in three))
)


@settings(max_examples=150, deadline=None)
@given(triples, st.floats(1.05, 20), st.floats(1.05, 20))
def test_prop_11_weak_triangle_holds(three, order, split):
    p, r, q = three
    first, second = triangle_orders(order, split)
    bound = weak_triangle(order, split, d.renyi(p, r, first), d.renyi(r, q, second))
    assert d.renyi(p, q, order) <= bound * (1 + 1e-12) + 1e-14


@settings(max_examples=100, deadline=None)
@given(triples, st.floats(1.05, 20))
def test_cor_4_4_corrected_has_equal_orders_and_lemma_3_holds(three, order):
    p, r, q = three
    split, beta = equal_order(order)
    assert triangle_orders(order, split) == pytest.approx((beta, beta), rel=1e-12)
    log_i = power_moment_triangle(
        (2 * order - 1) * d.renyi(p, r, 2 * order), (2 * order - 2) * d.renyi(r, q, 2 * order - 1)
    )
    assert (order - 1) * d.renyi(p, q, order) <= log_i * (1 + 1e-12) + 1e-13


@pytest.mark.parametrize("name", golden.ids("triangle.beta."))
def test_golden_triangle_beta(name):
    assert equal_order(golden.inputs(name)["alpha"])[1] == pytest.approx(golden.value(name), rel=1e-14)


@settings(max_examples=150, deadline=None)
@given(triples, st.floats(1.05, 200), st.data())
def test_prop_10_probability_preservation_holds(three, order, data):
    p, _, q = three
    event = np.array(data.draw(st.lists(st.booleans(), min_size=len(p), max_size=len(p))))
    bound = max(d.renyi(p, q, order), d.renyi(q, p, order)) * (1 + 1e-12)
    before, after = min(1.0, math.fsum(q[event])), math.fsum(p[event])
    box = probability_range(order, bound, before)
    assert box.lower * (1 - 1e-14) <= after <= box.upper * (1 + 1e-12)


@pytest.mark.parametrize(
    ("before", "lower", "upper", "digits"),
    [
        (0.5, 0.418883, 0.586353, 2e-6),
        (0.001, 0.000419988, 0.00218316, 3e-6),
        (1e-6, 1.94941e-7, 4.35599e-6, 3e-6),
        (0.5, 0.418883042045409402817553615125, 0.58635322, 1e-6),
        (1e-6, 1.94941312225555255633670737473e-7, 4.35598628178280867721810500555e-6, 1e-13),
    ],
)
def test_f64_worked_example_and_golden_probpres(before, lower, upper, digits):
    box = probability_range(10, 0.1, before)
    assert tuple(box) == pytest.approx((lower, upper), rel=digits)
    assert box.lower <= lower * (1 + digits)
    assert box.upper >= upper * (1 - digits)


def test_ends():
    assert probability_range(2, 0.5, 0.0).upper == 0.0
    assert tuple(probability_range(2, math.inf, 0.5)) == (0.0, 1.0)
    assert tuple(probability_range(2, math.inf, 0.0)) == (0.0, 1.0)
    pure = probability_range(math.inf, math.log(2), 0.25)
    assert pure.lower <= 0.125 <= pure.lower * (1 + 1e-13)
    assert pure.upper >= 0.5 >= pure.upper * (1 - 1e-13)
    assert probability_range(2, 3.0, 1.0).upper == 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: weak_triangle(1.0, 2.0, 0.1, 0.1),
        lambda: weak_triangle(2.0, math.inf, 0.1, 0.1),
        lambda: weak_triangle(2.0, 2.0, -0.1, 0.1),
        lambda: probability_range(2, -1.0, 0.5),
        lambda: probability_range(2, 1.0, 1.5),
        lambda: power_moment_triangle(math.nan, 1.0),
    ],
)
def test_bad_input(call):
    with pytest.raises(InvalidArgument):
        call()
