"""Laws (hypothesis) and golden: divergences between finite distributions.

F6, F7, F8, F11, F12, F31, F66; post-processing F14, F35; the identity F13.
"""

import math
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptally.divergences import finite as d
from dptally.errors import InvalidArgument, InvalidType

ORDERS = (0.0, 1e-6, 0.25, 0.5, 0.9, 1.0, 1.0 + 1e-6, 1.5, 2.0, 3.7, 10.0, 64.0, 1e4, math.inf)


@st.composite
def pairs(draw, zeros=True):
    n = draw(st.integers(2, 7))
    weights = st.lists(st.integers(0 if zeros else 1, 1000), min_size=n, max_size=n).filter(lambda w: sum(w) > 0)
    p, q = (np.array(draw(weights), dtype=float) for _ in range(2))
    return p / p.sum(), q / q.sum()


def merged(p, labels, groups):
    return np.array([math.fsum(p[labels == g]) for g in range(groups)])


def renyi_truth(p, q, order):
    with mp.workdps(60):
        p, q = [mp.mpf(float(x)) for x in p], [mp.mpf(float(x)) for x in q]
        total_p, total_q = mp.fsum(p), mp.fsum(q)
        p, q = [x / total_p for x in p], [x / total_q for x in q]
        a = mp.mpf(order)
        if order == 0:
            return -mp.log(mp.fsum(y for x, y in zip(p, q, strict=True) if x > 0))
        if any(x > 0 and y == 0 for x, y in zip(p, q, strict=True)) and order >= 1:
            return mp.inf
        both = [(x, y) for x, y in zip(p, q, strict=True) if x > 0 and y > 0]
        if not both:
            return mp.inf
        if order == math.inf:
            return max(mp.log(x / y) for x, y in both)
        if order == 1:
            return mp.fsum(x * mp.log(x / y) for x, y in both)
        return mp.log(mp.fsum(x**a * y ** (1 - a) for x, y in both)) / (a - 1)


@settings(max_examples=60, deadline=None)
@given(pairs())
def test_renyi_matches_high_precision_at_every_order(pair):
    p, q = pair
    for order in ORDERS:
        truth = renyi_truth(p, q, order)
        got = d.renyi(p, q, order)
        if mp.isinf(truth):
            assert got == math.inf
        # the vectors add up to 1 only within an ulp or two: an absolute 1e-15 of the divergence is theirs
        else:
            assert abs(got - truth) <= 2e-13 * abs(truth) + 4e-15


@pytest.mark.parametrize("order", [0.3, 0.5, 1.0, 1.0 + 1e-9, 1.3, 1.999, 2.0, 2.5, 7.0, 100.0])
@pytest.mark.parametrize("gap", [2.0**-40, 2.0**-26, 1e-3, 0.1, 0.25])
def test_alpha_keeps_its_relative_accuracy_where_the_two_nearly_agree(order, gap):
    p, q = [0.5 + gap, 0.5 - gap], [0.5, 0.5]
    with mp.workdps(80):
        a, up, low = mp.mpf(order), 1 + 2 * mp.mpf(gap), 1 - 2 * mp.mpf(gap)
        if order == 1:
            truth = (up * mp.log(up) + low * mp.log(low)) / 2
        else:
            truth = ((up**a + low**a) / 2 - 1) / (a * (a - 1))
    assert d.alpha(p, q, order) == pytest.approx(float(truth), rel=2e-13)


@settings(max_examples=120, deadline=None)
@given(pairs(), st.data())
def test_merging_outputs_never_increases_any_divergence(pair, data):
    p, q = pair
    groups = data.draw(st.integers(1, len(p)))
    labels = np.array(data.draw(st.lists(st.integers(0, groups - 1), min_size=len(p), max_size=len(p))))
    pm, qm = merged(p, labels, groups), merged(q, labels, groups)
    for order in ORDERS:
        assert d.renyi(pm, qm, order) <= d.renyi(p, q, order) * (1 + 1e-12) + 1e-14
        if order < math.inf:
            assert d.alpha(pm, qm, order) <= d.alpha(p, q, order) * (1 + 1e-12) + 1e-14
    for epsilon in (-1.0, 0.0, 0.3, 2.0, 50.0):
        assert d.hockey_stick(pm, qm, epsilon) <= d.hockey_stick(p, q, epsilon) + 1e-14
    assert d.total_variation(pm, qm) <= d.total_variation(p, q) + 1e-14

    def squared(u):
        return (u - 1) ** 2

    assert d.f_divergence(pm, qm, squared) <= d.f_divergence(p, q, squared) * (1 + 1e-12) + 1e-14


@settings(max_examples=100, deadline=None)
@given(pairs())
def test_prop_8_and_9_renyi_is_nonnegative_and_monotone_in_the_order(pair):
    p, q = pair
    curve = [d.renyi(p, q, order) for order in ORDERS]
    assert curve[0] >= 0
    for low, high in pairwise(curve):
        assert low <= high * (1 + 1e-12) + 1e-14
    assert d.renyi(p, p, 3.0) == d.renyi(p, p, math.inf) == d.kl(p, p) == 0.0


@settings(max_examples=60, deadline=None)
@given(pairs(zeros=False))
def test_lemma_1_limits_and_dualities(pair):
    p, q = pair
    assert d.renyi(p, q, 1 + 1e-7) == pytest.approx(d.kl(p, q), rel=1e-4, abs=1e-14)
    assert d.renyi(p, q, 1e8) == pytest.approx(d.maximum(p, q), rel=1e-6, abs=1e-6)
    assert d.alpha(p, q, 0.0) == pytest.approx(d.kl(q, p), rel=1e-12, abs=1e-15)
    assert d.alpha(p, q, -1.5) == pytest.approx(d.alpha(q, p, 2.5), rel=1e-12, abs=1e-15)
    assert d.hockey_stick(p, q, 0.0) == pytest.approx(d.total_variation(p, q), abs=1e-14)
    assert d.hockey_stick(p, q, d.maximum(p, q)) <= 1e-15
    assert d.f_divergence(p, q, lambda u: u * math.log(u) - u + 1) == pytest.approx(d.kl(p, q), rel=1e-9, abs=1e-14)
    tv = d.f_divergence(p, q, lambda u: abs(u - 1) / 2, slope=0.5)
    assert tv == pytest.approx(d.total_variation(p, q), abs=1e-14)


def test_f13_identity_of_alpha_and_renyi():
    p, q = [0.75, 0.25], [0.25, 0.75]
    for a in (1.5, 2.0, 8.0):
        assert math.log1p(a * (a - 1) * d.alpha(p, q, a)) / (a - 1) == pytest.approx(d.renyi(p, q, a), rel=1e-13)


def test_e001_1_the_max_divergence_is_over_the_support_of_p():
    """P = U[0,2], Q = U[0,1] as two cells: the printed sup over supp Q would be log(1/2) < 0."""
    assert d.maximum([0.5, 0.5], [1.0, 0.0]) == math.inf
    assert d.maximum([1.0, 0.0], [0.5, 0.5]) == pytest.approx(math.log(2), rel=1e-15)


def test_e000_2_probabilistic_dp_is_not_closed_under_merging_and_dp_is():
    p, q, eps = [0.01, 0.6, 0.39], [0.0, 0.3, 0.7], math.log(2)
    assert d.hockey_stick(p, q, eps) == pytest.approx(0.01, rel=1e-12)
    assert d.hockey_stick([0.61, 0.39], [0.3, 0.7], eps) == pytest.approx(0.01, rel=1e-12)


def test_e000_4_kl_may_be_finite_where_every_larger_order_is_infinite():
    """P(k) ~ k^-3, Q(k) = P(k) e^{-sqrt k}: KL 1.1160, and the finite sums of order 1.1 grow without
    bound."""
    grown = []
    for n in (10**3, 10**5):
        k = np.arange(1, n + 1, dtype=float)
        p = k**-3 / np.sum(k**-3)
        q = p * np.exp(-np.sqrt(k))
        p, q = np.append(p, 0.0), np.append(q, 1 - np.sum(q))
        grown.append((d.kl(p, q), d.renyi(p, q, 1.1)))
    assert grown[1][0] == pytest.approx(1.1160, abs=2e-3)
    assert grown[1][1] > 10 * grown[0][1]


def test_zeros_and_extremes():
    only_p, only_q = [1.0, 0.0], [0.0, 1.0]
    for order in ORDERS:
        assert d.renyi(only_p, only_q, order) == math.inf
    assert d.hockey_stick(only_p, only_q, math.inf) == 1.0
    assert d.hockey_stick([0.5, 0.5], [0.5, 0.5], -math.inf) == 1.0
    assert d.hockey_stick([1.0, 0.0], [0.5, 0.5], 800.0) == 0.0
    assert d.kl([0.5, 0.5], [5e-324, 1.0]) == pytest.approx(
        0.5 * (math.log(0.5) - math.log(5e-324)) + 0.5 * math.log(0.5)
    )
    assert d.renyi([0.5, 0.5], [1e-300, 1.0], 1e4) == pytest.approx(
        1e4 / (1e4 - 1) * math.log(0.5) + 300 * math.log(10)
    )
    assert d.alpha([0.5, 0.5], [1.0, 0.0], 0.5) == pytest.approx(4 * (1 - math.sqrt(0.5)), rel=1e-14)
    assert d.f_divergence([0.5, 0.5], [1.0, 0.0], lambda u: u * u - 1) == math.inf
    assert d.f_divergence([1.0, 0.0], [0.5, 0.5], lambda u: -math.log(u), at_zero=math.inf) == math.inf


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: d.renyi([0.5, 0.5], [1.0], 2), InvalidType),
        (lambda: d.renyi([0.5, 0.6], [0.5, 0.5], 2), InvalidArgument),
        (lambda: d.renyi([-0.5, 1.5], [0.5, 0.5], 2), InvalidArgument),
        (lambda: d.renyi([[0.5, 0.5]], [[0.5, 0.5]], 2), InvalidType),
        (lambda: d.renyi([], [], 2), InvalidType),
        (lambda: d.renyi([0.5, 0.5], [0.5, 0.5], -1), InvalidArgument),
        (lambda: d.renyi([0.5, 0.5], [0.5, 0.5], math.nan), InvalidArgument),
        (lambda: d.alpha([0.5, 0.5], [0.5, 0.5], math.inf), InvalidArgument),
        (lambda: d.f_divergence([0.5, 0.5], [0.5, 0.5], 3), InvalidType),
        (lambda: d.f_divergence([0.5, 0.5], [0.5, 0.5], lambda u: u), InvalidArgument),
        (lambda: d.f_divergence([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], lambda u: 1 - u * u), InvalidArgument),
        (lambda: d.f_divergence([1.0, 0.0], [0.5, 0.5], lambda u: -math.log(u)), InvalidArgument),
        (lambda: d.f_divergence([0.7, 0.3], [0.5, 0.5], lambda u: math.nan), InvalidArgument),
    ],
)
def test_bad_input_is_refused_by_name(call, kind):
    with pytest.raises(kind):
        call()
