"""Golden: the sentences of the gallery, each against every n and every order that it speaks of, not those drawn."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

import dptally as dp
from dptally import gdp
from dptally.accounting import alpha, concentrated, gaussian, optimal
from dptally.conversions.pure import pure_ratio_bound

pytest.importorskip("matplotlib")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "papers"))

import adp
import gdpt
import mironov

ORDERS = 1 + np.geomspace(1e-3, 1e4, 4000)


def curve_of_response(p: float) -> np.ndarray:
    """Renyi divergences of randomized response by the formula of Table II, in logarithms."""
    a, x = ORDERS, math.log(p / (1 - p))
    return (np.logaddexp((a - 1) * x + math.log(p), -(a - 1) * x + math.log1p(-p))) / (a - 1)


def curve_of_laplace(t: float) -> np.ndarray:
    a = ORDERS
    first = np.log(a / (2 * a - 1)) + (a - 1) * t
    return np.logaddexp(first, np.log((a - 1) / (2 * a - 1)) - a * t) / (a - 1)


@pytest.mark.parametrize(
    ("epsilon", "divergences", "until"),
    [(math.log(0.51 / 0.49), curve_of_response(0.51), 218), (0.05, curve_of_laplace(0.05), 140)],
    ids=["response", "laplace"],
)
def test_mironov_figure_2_over_every_n(epsilon: float, divergences: np.ndarray, until: int) -> None:
    """Renyi is the tightest of the four bounds at each n to 250; Prop. 4 beats (eps, delta) at .1 up to this n."""
    counts = np.arange(1, 251)
    for q in (1e-6, 1e-3, 0.1):
        share = (ORDERS - 1) / ORDERS
        exponent = share[:, None] * (np.outer(divergences, counts) + math.log(q)) - math.log(q)
        renyi = np.exp(exponent.min(axis=0))  # at the best order of a grid: the best of all is no larger
        renyi = np.minimum(renyi, np.exp(counts * epsilon))  # order infinity
        naive = np.exp(counts * epsilon)
        advanced = mironov.advanced_ratio(epsilon, counts, q)
        generic = np.array([pure_ratio_bound(epsilon, int(n), q) for n in counts])
        assert (renyi <= np.minimum(np.minimum(naive, advanced), np.minimum(generic, 1 / q)) * (1 + 1e-9)).all()
        smaller = counts[generic < advanced]
        if q == 0.1:
            assert smaller.tolist() == list(range(1, until + 1))


def test_adp_figures_6_to_8_over_every_number_of_steps() -> None:
    """zCDP is below RDP, which is correct ADP, at each number of steps, whichever orders up to 300 they choose."""
    for settings in (adp.FIGURE_6, adp.FIGURE_7, adp.FIGURE_8):
        for sigma, last, delta, _, rdp_order, _ in settings:
            n = np.arange(1, last + 1)
            log_inverse = math.log(1 / delta)
            fixed = n * rdp_order / (2 * sigma**2) + log_inverse / (rdp_order - 1)
            orders = np.arange(2, 301)[:, None]
            best = (n * orders / (2 * sigma**2) + log_inverse / (orders - 1)).min(axis=0)
            zcdp = np.array([concentrated.epsilon_from_rho(k / (2 * sigma**2), delta, "bun-steinke").value for k in n])
            exact = [gaussian.epsilon_mu(math.sqrt(k) / sigma, delta) for k in n[::13].tolist()]
            assert (exact < zcdp[::13]).all()
            assert (zcdp <= best * (1 + 1e-12)).all()
            assert (best <= fixed * (1 + 1e-12)).all()


def test_adp_figures_1_to_3_no_order_reaches_the_exact_epsilon() -> None:
    """Over every order from just above 1 to 10,000 and not the integers drawn; ADP and RDP agree at each."""
    for exhibit, plans in (
        (adp.figure_1(), [dp.RandomizedResponse(p) for p in (0.6, 0.75, 0.9)]),
        (adp.figure_2(), [dp.Laplace(b) for b in (0.5, 1.0, 2.0)]),
        (adp.figure_3(), [dp.Gaussian(s) for s in (1.0, 2.0, 5.0)]),
    ):
        assert "No order reaches the exact epsilon" in exhibit.ours
        for plan in plans:
            values = plan.renyi(ORDERS) + math.log(1 / adp.DELTA) / (ORDERS - 1)
            assert values.min() > plan.epsilon(adp.DELTA)
            few = ORDERS[:2500:40]
            assert adp.curve(plan, few, adp.DELTA) == pytest.approx(adp.curve_renyi(plan, few, adp.DELTA), rel=1e-12)


def test_adp_figures_4_and_5() -> None:
    """The best real order and value in closed form; below 1 + log(1/delta)/epsilon no noise is enough."""
    text = adp.figure_4().differs
    assert "17250 instead of 0.3418" in text
    misprinted = 50 * 69 * 68 / (2 * 100**2) / (1e-5 * 68)  # log(.)/(delta (a-1)) at order 69
    assert misprinted == pytest.approx(17250)
    assert alpha.smallest_epsilon(1, 100, 1e-5).order == pytest.approx(481, abs=0.5)
    assert "the best order is 481" in text
    for epsilon in (1.0, 2.0, 5.0, 10.0):
        least = 1 + math.log(1 / adp.DELTA) / epsilon
        with pytest.raises(dp.CannotCalibrate, match="orders="):
            alpha.smallest_sigma(1000, epsilon, adp.DELTA, orders=[least * (1 - 1e-9)])
        assert alpha.smallest_sigma(1000, epsilon, adp.DELTA, orders=[least * 1.001]).value > 0
        assert alpha.smallest_sigma(1000, epsilon, adp.DELTA).value > 0  # what the error advises


def test_gdpt_texts() -> None:
    icea = gdp.refined(gdpt.ICEA)
    assert "near epsilon = 14.3" in gdpt.figure_1().differs
    above = [e for e in np.linspace(10, 20, 1001) if icea.delta(float(e)) > gaussian.delta_mu(4.0, float(e))]
    assert above[0] == pytest.approx(14.3, abs=0.05)
    assert all(icea.delta(e) < gaussian.delta_mu(4.0, e) for e in np.linspace(0, 14.2, 200).tolist())
    # appendix E: where each curve is largest
    for epsilon in (0.5, 1.0, 2.0):
        for m in (dp.PureDP(epsilon), dp.Laplace(1 / epsilon)):
            band = gdp.transform(m, np.linspace(0, epsilon * 0.999, 400))
            assert int(np.argmax(band.upper)) == 0
            assert gdp.measure(m).mu.upper == pytest.approx(band.upper[0], rel=1e-9)
    for rate in (0.5, 0.1):
        end = math.log1p(rate * math.expm1(2.0))
        band = gdp.transform(dp.PoissonSampled(gdpt.LAPLACE, rate), np.linspace(0, end * 0.999, 400))
        assert 0 < int(np.argmax(band.upper)) < 399
    # figure 3: GDP beats basic composition at every epsilon drawn and between, the summary beats it, the truth both
    mu = math.sqrt(50) * gdp.measure(dp.PureDP(0.2)).mu.upper
    summary = gdp.measure(50 * dp.PureDP(0.2)).mu.upper
    for e in np.linspace(0, 9.9, 150).tolist():
        exact = optimal.composed_delta(0.2, 0.0, 50, e)
        assert exact <= gaussian.delta_mu(summary, e) * (1 + 1e-9)
        assert gaussian.delta_mu(summary, e) < gaussian.delta_mu(mu, e)
        assert gaussian.delta_mu(mu, e) < (math.exp(10) - math.exp(e)) / (1 + math.exp(10)) or e > 9.5
    assert math.sqrt(2) < gdp.measure(50 * dp.PureDP(0.2)).mu.lower  # the central limit is below every valid mu
