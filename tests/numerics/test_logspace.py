"""Laws: log-space helpers, exact products and neighbouring doubles against mpmath and rationals."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptally.numerics import logspace
from dptally.numerics.doubled import two_product, two_sum
from dptally.numerics.exact import between, quotient
from dptally.numerics.rounding import EPS

mp.mp.dps = 60
small = st.complex_numbers(max_magnitude=0.999, allow_nan=False, allow_infinity=False)
doubles = st.floats(-1e100, 1e100).filter(lambda x: x == 0 or abs(x) > 1e-100)


def close(value: object, truth: object, ulps: float) -> bool:
    return abs(mp.mpmathify(value) - truth) <= ulps * EPS * abs(truth)


@given(st.floats(-700, -1e-300))
def test_log1mexp(x: float) -> None:
    with mp.workdps(400):
        assert close(float(logspace.log1mexp(x)), mp.log(-mp.expm1(mp.mpf(x))), 4)


def test_log1mexp_at_the_ends() -> None:
    assert logspace.log1mexp(np.array([0.0, -math.inf])).tolist() == [-math.inf, 0.0]


@given(st.floats(-1e3, 1e3), st.floats(1e-10, 1e3))
def test_logdiffexp(b: float, gap: float) -> None:
    a = b + gap
    truth = mp.mpf(a) + mp.log(-mp.expm1(mp.mpf(b) - mp.mpf(a)))
    assert abs(float(logspace.logdiffexp(a, b)) - truth) <= 4 * EPS * (abs(a) + abs(truth) + 1)


def test_logdiffexp_at_the_ends() -> None:
    assert logspace.logdiffexp([1.0, 2.0, -math.inf], [1.0, -math.inf, -math.inf]).tolist() == [
        -math.inf,
        2.0,
        -math.inf,
    ]


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8))
def test_logsumexp(values: list[float]) -> None:
    truth = mp.log(mp.fsum(mp.exp(mp.mpf(v)) for v in values))
    assert abs(float(logspace.logsumexp(values)) - truth) <= 8 * EPS * (abs(truth) + 1)


def test_logsumexp_axes_and_empty() -> None:
    assert logspace.logsumexp([]) == -math.inf
    assert logspace.logsumexp([-math.inf, -math.inf]) == -math.inf
    assert logspace.logsumexp(np.zeros((2, 3)), axis=1) == pytest.approx([math.log(3)] * 2)


@given(small)
def test_complex_functions_keep_their_relative_accuracy(x: complex) -> None:
    z = mp.mpc(x)
    if abs(x) > 1e-300:
        assert close(complex(logspace.expm1_ratio(np.asarray(x))), mp.expm1(z) / z, 8)
        sinhc = mp.nsum(lambda n: z ** (2 * n) / mp.factorial(2 * n + 1), [1, 30])
        assert close(complex(logspace.sinhc_minus_one(np.asarray(x))), sinhc, 8) or abs(x) < 1e-150
    assert float(logspace.expm1_ratio(np.asarray(0.0))) == 1.0


@given(st.complex_numbers(max_magnitude=0.5, allow_nan=False, allow_infinity=False).filter(lambda x: abs(x) > 1e-140))
def test_complex_log1p(x: complex) -> None:
    assert close(complex(logspace.log1p(np.asarray(x))), mp.log1p(mp.mpc(x)), 8)


@given(st.floats(-0.99, 0.99), st.floats(-0.99, 0.99))
def test_divided_differences(a: float, b: float) -> None:
    with mp.workdps(120):
        p, q = mp.mpf(a), mp.mpf(b)
        if p == q or p == 0 or q == 0:
            p, q = p + mp.mpf("1e-40"), q - mp.mpf("1.7e-40")
        phi = lambda y: mp.expm1(y) / y  # noqa: E731
        sinhc = lambda y: mp.sinh(y) / y  # noqa: E731
        assert close(
            float(logspace.exp_divided_difference(np.asarray(a), np.asarray(b))),
            (phi(p) - phi(q)) / (p - q),
            16,
        )
        truth = (sinhc(p) - sinhc(q)) / (p - q)
        got = float(logspace.sinhc_divided_difference(np.asarray(a), np.asarray(b)))
        assert abs(got - truth) <= 8 * EPS * (abs(a) + abs(b)) + 1e-39


def test_widened_keeps_log_zero_and_log_one() -> None:
    lower, upper = logspace.widened(np.array([-math.inf, -1.0, 0.0]), np.array([-math.inf, -1.0, 0.0]), 4)
    assert lower[0] == upper[0] == -math.inf
    assert lower[1] < -1.0 < upper[1]
    assert lower[2] < 0.0 == upper[2]


@given(doubles, doubles)
def test_doubled_arithmetic_is_exact(a: float, b: float) -> None:
    total, low = two_sum(np.asarray(a), np.asarray(b))
    assert Fraction(float(total)) + Fraction(float(low)) == Fraction(a) + Fraction(b)
    product, rest = two_product(np.asarray(a), np.asarray(b))
    assert Fraction(float(product)) + Fraction(float(rest)) == Fraction(a) * Fraction(b)


@given(st.floats(1e-100, 1e100), st.floats(1e-100, 1e100))
def test_neighbouring_doubles(a: float, b: float) -> None:
    lower, upper = quotient(a, b)
    assert Fraction(lower) <= Fraction(a) / Fraction(b) <= Fraction(upper)
    assert upper in (lower, math.nextafter(lower, math.inf))
    assert between(Fraction(a)) == (a, a)
