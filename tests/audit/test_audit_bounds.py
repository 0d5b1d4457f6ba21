"""Golden and laws: Clopper-Pearson and the measures, against exact binomial sums."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptally.audit.bounds import EpsilonMeasure, MuMeasure, lower_probability, upper_probability


def tail(k, n, p):
    """P(Binomial(n, p) >= k), to fifty digits."""
    with mpmath.workdps(50):
        p = mpmath.mpf(p)
        return mpmath.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))


@given(st.integers(1, 60), st.data(), st.sampled_from([1e-6, 5e-7, 0.025]))
def test_clopper_pearson_is_on_the_safe_side_and_tight(n, data, failure):
    k = data.draw(st.integers(0, n))
    lower, upper = float(lower_probability(k, n, failure)), float(upper_probability(k, n, failure))
    assert 0 <= lower <= k / n <= upper <= 1
    if k > 0:
        assert tail(k, n, lower) <= failure
        assert tail(k, n, min(1.0, lower * (1 + 1e-6))) > failure * (1 - 1e-5)
    if k < n:
        assert 1 - tail(k + 1, n, upper) <= failure
        assert 1 - tail(k + 1, n, upper * (1 - 1e-6)) > failure * (1 - 1e-5)


def test_clopper_pearson_holds_for_large_samples():
    """A million trials: the binomial tail beyond k, summed term by term from its first and largest."""
    n = 10**6
    with mpmath.workdps(30):
        for k in (1, 1000, 500_000):
            p = mpmath.mpf(float(lower_probability(k, n, 5e-7)))
            term = mpmath.exp(
                mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)
                + k * mpmath.log(p) + (n - k) * mpmath.log1p(-p)
            )  # fmt: skip
            total, i = mpmath.mpf(0), k
            while term > 1e-20:
                total += term
                term *= (n - i) * p / ((i + 1) * (1 - p))
                i += 1
            assert 4.9e-7 < total <= 5e-7


def test_the_measures_invert_what_a_mechanism_promises():
    """An event at the edge of what is allowed gives back the parameter, never more."""
    for epsilon, delta, q in ((1.0, 0.0, 0.2), (0.5, 0.01, 0.3), (2.0, 1e-3, 0.05)):
        p = math.exp(epsilon) * q + delta
        bound = float(EpsilonMeasure(delta).lower(np.asarray(p), np.asarray(q)))
        assert bound <= epsilon
        assert bound == pytest.approx(epsilon, abs=1e-8)
    for mu, q in ((1.0, 0.3), (3.0, 1e-4), (0.1, 0.5)):
        p = float(mpmath.ncdf(mpmath.mpf(mu) + mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(q) - 1)))
        bound = float(MuMeasure().lower(np.asarray(p), np.asarray(q)))
        assert bound <= mu
        assert bound == pytest.approx(mu, abs=1e-7)


def test_the_measures_are_zero_where_nothing_was_seen():
    nothing, everything = np.asarray(0.0), np.asarray(1.0)
    assert float(EpsilonMeasure(0.0).lower(nothing, everything)) == 0
    assert float(EpsilonMeasure(0.1).lower(np.asarray(0.05), np.asarray(0.01))) == 0
    assert float(MuMeasure().lower(nothing, everything)) == 0
