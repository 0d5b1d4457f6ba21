"""Golden: divergences between densities by quadrature, against closed forms."""

import math

import pytest

from dptally.divergences import densities as d
from dptally.errors import InvalidArgument, InvalidType, Unanswerable

LOG_2PI = math.log(2 * math.pi)


def gaussian(centre):
    return lambda x: -0.5 * (x - centre) ** 2 - 0.5 * LOG_2PI


def laplace(centre, scale):
    return lambda x: -abs(x - centre) / scale - math.log(2 * scale)


def uniform(high):
    return lambda x: -math.log(high) if 0 <= x <= high else -math.inf


@pytest.mark.parametrize("order", [0.5, 1.0, 1.5, 2.0, 10.0, 64.0])
def test_renyi_of_two_gaussians(order):
    assert d.renyi(gaussian(1.0), gaussian(0.0), order) == pytest.approx(order / 2, rel=1e-9)


@pytest.mark.parametrize("order", [1.0, 1.5, 3.0, 20.0])
def test_renyi_of_two_laplaces(order):
    t = 0.5
    closed = (
        t + math.exp(-t) - 1
        if order == 1
        else math.log(
            order / (2 * order - 1) * math.exp((order - 1) * t) + (order - 1) / (2 * order - 1) * math.exp(-order * t)
        )
        / (order - 1)
    )
    got = d.renyi(laplace(1.0, 2.0), laplace(0.0, 2.0), order, breakpoints=(0.0, 1.0))
    assert got == pytest.approx(closed, rel=1e-9)


def test_the_rest_of_the_family_on_laplace():
    p, q, cuts = laplace(1.0, 0.5), laplace(0.0, 0.5), (0.0, 1.0)
    assert d.hockey_stick(p, q, 1.0, breakpoints=cuts) == pytest.approx(1 - math.exp(-0.5), rel=1e-9)
    assert d.total_variation(p, q, breakpoints=cuts) == pytest.approx(1 - math.exp(-1.0), rel=1e-9)
    assert d.maximum(p, q, breakpoints=cuts) == pytest.approx(2.0, rel=1e-12)
    assert d.renyi(p, q, math.inf, breakpoints=cuts) == pytest.approx(2.0, rel=1e-12)
    chi_squared = d.f_divergence(p, q, lambda u: (u - 1) ** 2, breakpoints=cuts)
    assert chi_squared == pytest.approx(2 * d.alpha(p, q, 2.0, breakpoints=cuts), rel=1e-8)
    assert d.kl(p, q, breakpoints=cuts) == pytest.approx(2 + math.exp(-2.0) - 1, rel=1e-9)


def test_supports_that_differ():
    wide, narrow, support, cuts = uniform(2.0), uniform(1.0), (0.0, 2.0), (1.0,)
    assert d.renyi(wide, narrow, 2.0, support, cuts) == math.inf
    assert d.kl(wide, narrow, support, cuts) == math.inf
    assert d.maximum(wide, narrow, support, cuts) == math.inf
    assert d.f_divergence(wide, narrow, lambda u: (u - 1) ** 2, support, cuts) == math.inf
    assert d.f_divergence(wide, narrow, lambda u: abs(u - 1) / 2, support, cuts, slope=0.5) == pytest.approx(0.5)
    assert d.renyi(wide, narrow, 0.5, support, cuts) == pytest.approx(math.log(2), rel=1e-9)
    assert d.kl(narrow, wide, support, cuts) == pytest.approx(math.log(2), rel=1e-9)
    assert d.hockey_stick(wide, narrow, 5.0, support, cuts) == pytest.approx(0.5, rel=1e-9)
    assert d.alpha(gaussian(40.0), gaussian(0.0), 3.0) == math.inf  # e^{4800} is past the largest double


def test_half_lines():
    one, two = (lambda x: -x), (lambda x: math.log(2) - 2 * x)
    assert d.kl(one, two, (0.0, math.inf)) == pytest.approx(1 - math.log(2), rel=1e-9)
    mirrored = d.kl(lambda x: one(-x), lambda x: two(-x), (-math.inf, 0.0))
    assert mirrored == pytest.approx(1 - math.log(2), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: d.kl(lambda x: 0.0, gaussian(0), (0.0, 2.0)), InvalidArgument),
        (lambda: d.kl(1.0, gaussian(0)), InvalidType),
        (lambda: d.kl(gaussian(0), gaussian(0), (1.0, 0.0)), InvalidArgument),
        (lambda: d.renyi(gaussian(0), gaussian(0), 0.0), InvalidArgument),
        (lambda: d.f_divergence(gaussian(0), gaussian(0), 1.0), InvalidType),
        (lambda: d.f_divergence(gaussian(0), gaussian(0), lambda u: u), InvalidArgument),
        # Cauchy against Gaussian: KL is infinite and no quadrature of it can settle
        (lambda: d.kl(lambda x: -math.log(math.pi * (1 + x * x)), gaussian(0)), Unanswerable),
    ],
)
def test_what_cannot_be_estimated_is_refused(call, kind):
    with pytest.raises(kind):
        call()
