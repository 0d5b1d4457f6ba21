"""Golden: the founding papers' numbers through each framework.

F5 F9 F10 F13 F15 F18 F19 F20 F21 F23 F24 F27 F29 F36 F42 F44 F46 F47 F48 F52 F54 F58 F59 F60 F62 F65 F83.
"""

import math

import numpy as np
import pytest
from framework_reference import above, close, exact_gaussian_delta, number, rows

import golden
from dptally.accounting import alpha, approximate, concentrated, gaussian, optimal, renyi
from dptally.errors import CannotCalibrate
from dptally.mechanisms import Gaussian, Laplace, PureDP, RandomizedResponse


def response(epsilon):
    return PureDP(epsilon)  # randomized response with odds e^epsilon : 1 dominates it and attains it


MECHANISMS = {
    "rr51": RandomizedResponse(p=0.51),
    "lap20": Laplace(scale=20),
}
TRIPLE = RandomizedResponse(p=0.52) + Laplace(scale=20) + Gaussian(sigma=10)


@pytest.mark.parametrize(("name", "inputs", "value"), rows("rdp_account."))
def test_F36_F54_renyi_accounting_of_table_1(name, inputs, value):
    epsilon, count, delta = number(inputs["eps"]), inputs["k"], number(inputs["delta"])
    step = response(epsilon) if ".rr." in name else Laplace(scale=1 / epsilon)
    plan = (count * step).directions()
    answer = renyi.epsilon(plan, delta, conversion="mironov")
    assert above(answer.value, value)
    assert renyi.epsilon(plan, delta).value < value
    # the order it names really gives the value
    fixed = renyi.epsilon(plan, delta, conversion="mironov", orders=[answer.order])
    assert close(fixed.value, answer.value, 1e-13)
    assert close(alpha.epsilon(plan, delta).value, value)


@pytest.mark.parametrize(("name", "inputs", "value"), rows("adp."))
def test_F12_F13_F15_F18_F21_alpha_divergence(name, inputs, value):
    order = number(inputs.get("alpha", "1"))
    kind = name.split(".")[1]
    if kind in ("rr", "laplace", "gauss", "limit_a1"):
        mechanism = {
            "rr": lambda: RandomizedResponse(p=number(inputs["p"])),
            "laplace": lambda: Laplace(scale=1 / number(inputs["t"])),
            "gauss": lambda: Gaussian(sigma=number(inputs["sigma"])),
            "limit_a1": lambda: Gaussian(sigma=number(inputs["sigma"])),
        }[kind]()
        result = float(alpha.divergence(mechanism.directions(), np.array([order]))[0])
        assert close(result, value)
    elif kind == "compose2":
        assert above(alpha.compose(order, number(inputs["eps1"]), number(inputs["eps2"])), value)
    elif kind == "to_dp":
        result = alpha.epsilon_from_alpha(order, number(inputs["eps_adp"]), number(inputs["delta"]))
        assert above(result, value)
    elif kind == "to_rdp":
        assert above(alpha.to_renyi(order, number(inputs["eps_adp"])), value)
    else:
        assert kind == "selfcomp"
        single = math.expm1(order * (order - 1) / (2 * number(inputs["sigma"]) ** 2)) / (order * (order - 1))
        assert close(alpha.self_compose(order, single, inputs["l"]), value)
        plan = inputs["l"] * Gaussian(sigma=number(inputs["sigma"]))
        assert close(float(alpha.divergence(plan.directions(), np.array([order]))[0]), value)


@pytest.mark.parametrize(("name", "inputs", "value"), rows("zcdp."))
def test_F10_F46_F48_concentrated(name, inputs, value):
    kind = name.split(".")[1]
    if kind == "to_dp":
        rho, delta = number(inputs["rho"]), number(inputs["delta"])
        assert above(concentrated.epsilon_from_rho(rho, delta, "bun-steinke").value, value)
        assert concentrated.epsilon_from_rho(rho, delta).value < value
        plan = Gaussian(sigma=math.sqrt(1 / (2 * rho))).directions()
        assert close(concentrated.epsilon(plan, delta, "bun-steinke").value, value)
    elif kind == "rho_for":
        epsilon, delta = number(inputs["eps"]), number(inputs["delta"])
        result = concentrated.rho_for(epsilon, delta, "bun-steinke")
        assert value * (1 - 1e-11) <= result <= value * (1 + 1e-16)
        sharper = concentrated.rho_for(epsilon, delta)
        assert sharper > result
        assert concentrated.epsilon_from_rho(sharper, delta).value <= epsilon
    else:
        epsilon = number(inputs["eps"])
        sharp = concentrated.rho_from_pure(epsilon)
        assert above(sharp, value) if kind == "from_pure_tight" else sharp < value
        assert close(concentrated.rho(response(epsilon).directions()), sharp, 1e-12)


def test_F48_the_printed_zcdp_conversion_is_unsafe_and_ours_is_not():
    for name in (
        "zcdp.printed_unsafe.true_delta.rho0.001.d1e-5",
        "zcdp.printed_unsafe.true_delta.rho5.d1e-10",
    ):
        value = golden.value(name)
        rho, delta = number(golden.inputs(name)["rho"]), number(golden.inputs(name)["delta"])
        printed = rho + math.sqrt(2 * rho * math.log(1 / delta))
        truth = gaussian.delta_mu(math.sqrt(2 * rho), printed)
        assert close(truth, value)
        ours = concentrated.epsilon_from_rho(rho, delta, "bun-steinke").value
        assert ours > printed
        for conversion in concentrated.CONVERSIONS:
            proved = concentrated.epsilon_from_rho(rho, delta, conversion).value
            assert exact_gaussian_delta(math.sqrt(2 * rho), proved) <= delta
    assert golden.value("zcdp.printed_unsafe.true_delta.rho5.d1e-10") > 1e-10


@pytest.mark.parametrize(("name", "inputs", "value"), rows("kov."))
def test_F52_F83_optimal_composition(name, inputs, value):
    epsilon, delta, count = number(inputs["eps"]), number(inputs["delta"]), inputs["k"]
    if name.startswith("kov.delta"):
        assert above(optimal.composed_delta(epsilon, delta, count, number(inputs["eps_target"])), value)
    else:
        assert above(optimal.composed_epsilon(epsilon, delta, count, number(inputs["delta_target"])), value)
        plan = (count * response(epsilon)).directions()
        assert above(optimal.epsilon(plan, number(inputs["delta_target"])).value, value)


@pytest.mark.parametrize(("name", "inputs", "value"), rows("drv."))
def test_F52_advanced_composition(name, inputs, value):
    plan = (inputs["k"] * response(number(inputs["eps"]))).directions()
    delta = number(inputs["delta_prime"])
    assert above(approximate.epsilon(plan, delta, composition="advanced").value, value)
    sharper = approximate.epsilon(plan, delta, composition="kairouz").value
    assert optimal.epsilon(plan, delta).value < sharper < value


@pytest.mark.parametrize(("name", "inputs", "value"), rows("table1.basic"))
def test_F83_table_1_basic(name, inputs, value):
    plan = (50 * response(0.2)).directions()
    assert above(approximate.epsilon(plan, number(inputs["delta"]), composition="basic").value, value)


@pytest.mark.parametrize(("name", "inputs", "value"), rows("table1.gdp"))
def test_F83_table_1_gaussian(name, inputs, value):
    step = Laplace(scale=5) if name.startswith("table1.gdp_lap") else response(0.2)
    assert above(gaussian.epsilon((50 * step).directions(), number(inputs["delta"])).value, value)


def test_F83_the_printed_optimum_5_28_is_too_small():
    plan = (50 * response(0.2)).directions()
    assert optimal.epsilon(plan, 1e-4).value > 5.56 > 5.28
    assert optimal.delta(plan, 5.28).value > 2.29e-4


@pytest.mark.parametrize(("name", "inputs", "value"), rows("order.thm21"))
def test_F69_theorem_2_1(name, inputs, value):
    epsilon0, delta0 = number(inputs["eps0"]), number(inputs["delta0"])
    if name.endswith("inverse"):
        assert above(approximate.implied_epsilon(epsilon0, delta0, number(inputs["delta"])), value)
    else:
        assert above(approximate.implied_delta(epsilon0, delta0, number(inputs["eps"])), value)


@pytest.mark.parametrize(("name", "inputs", "value"), rows("alg1."))
def test_F23_F27_F29_algorithm_1_corrected(name, inputs, value):
    asked = {"count": inputs["l"], "sigma": number(inputs["sigma"]), "delta": number(inputs["delta"])}
    over_reals = alpha.smallest_epsilon(**asked)
    over_integers = alpha.smallest_epsilon(**asked, orders=range(2, 301))
    result = {
        "eps_real": over_reals.value,
        "eps_int": over_integers.value,
        "alpha_real": over_reals.order,
        "alpha_int": over_integers.order,
    }[name.rsplit(".", 1)[1]]
    assert close(result, value)
    assert over_integers.value >= over_reals.value * (1 - 1e-14)
    # the general accountant finds the same optimum by its own search
    plan = (asked["count"] * Gaussian(sigma=asked["sigma"])).directions()
    assert close(alpha.epsilon(plan, asked["delta"]).value, over_reals.value)


def test_F23_two_to_three_hundred_does_not_suffice():
    capped = alpha.smallest_epsilon(1, 100.0, 1e-5, orders=range(2, 301))
    free = alpha.smallest_epsilon(1, 100.0, 1e-5)
    assert capped.order == 300
    assert round(free.order, 2) == 480.85
    assert round(free.value, 5) == 0.04804 < round(capped.value, 5) == 0.0535


@pytest.mark.parametrize(("name", "inputs", "value"), rows("alg2."))
def test_F24_algorithm_2_corrected(name, inputs, value):
    asked = {"count": inputs["l"], "epsilon": number(inputs["eps_bound"]), "delta": number(inputs["delta"])}
    over_reals = alpha.smallest_sigma(**asked)
    over_integers = alpha.smallest_sigma(**asked, orders=range(2, 301))
    result = {
        "sigma_real": over_reals.value,
        "sigma_int": over_integers.value,
        "alpha_real": over_reals.order,
        "alpha_int": over_integers.order,
    }[name.rsplit(".", 1)[1]]
    assert close(result, value)
    back = alpha.smallest_epsilon(asked["count"], over_reals.value, asked["delta"]).value
    assert close(back, asked["epsilon"])


def test_F23_F24_the_algorithms_of_any_plan():
    """On Gaussian queries they are the paper's; elsewhere the noise meets the target, and hardly less does not."""
    assert alpha.epsilon(50 * Gaussian(100.0), 1e-5).value == pytest.approx(0.341807021221, rel=1e-9)
    noise = alpha.smallest_noise(lambda sigma: 1000 * Gaussian(sigma), 1.0, 1e-5)
    assert noise == pytest.approx(alpha.smallest_sigma(1000, 1.0, 1e-5).value, rel=2e-7)
    noise = alpha.smallest_noise(lambda sigma: 1000 * Gaussian(sigma), 1.0, 1e-5, range(2, 301))
    assert noise == pytest.approx(alpha.smallest_sigma(1000, 1.0, 1e-5, orders=range(2, 301)).value, rel=2e-7)
    for scale in (1.0, 1e-4):  # a query of another size only moves the answer
        noise = alpha.smallest_noise(lambda b: 20 * Laplace(b, sensitivity=scale), 2.0, 1e-6)  # noqa: B023
        assert alpha.epsilon(20 * Laplace(noise, sensitivity=scale), 1e-6).value <= 2.0
        assert alpha.epsilon(20 * Laplace(noise * (1 - 1e-6), sensitivity=scale), 1e-6).value > 2.0
    with pytest.raises(CannotCalibrate, match="no noise"):
        alpha.smallest_noise(lambda _: Gaussian(1.0), 0.1, 1e-6)


@pytest.mark.parametrize(("name", "inputs", "value"), rows("gauss_exact."))
def test_F27_F30_every_framework_stays_above_the_exact_gaussian(name, inputs, value):
    plan = (inputs["l"] * Gaussian(sigma=number(inputs["sigma"]))).directions()
    delta = number(inputs["delta"])
    assert above(gaussian.epsilon(plan, delta).value, value, 1e-12)
    for answer in (
        renyi.epsilon(plan, delta),
        renyi.epsilon(plan, delta, "mironov"),
        concentrated.epsilon(plan, delta),
        alpha.epsilon(plan, delta),
        approximate.epsilon(plan, delta),
    ):
        assert answer.value > value


def test_F30_no_framework_has_the_claimed_twenty_percent():
    plan = (50 * Gaussian(sigma=100)).directions()
    claimed = 0.8 * renyi.epsilon(plan, 1e-15, "mironov").value
    assert gaussian.epsilon(plan, 1e-15).value > claimed
    assert close(alpha.epsilon(plan, 1e-15).value, renyi.epsilon(plan, 1e-15, "mironov").value, 1e-12)


def test_F5_the_printed_gaussian_calibration_is_unsafe_and_ours_is_not():
    value = golden.value("gauss.eq8_printed.true_delta.e0.1.d1e-5")
    printed = math.sqrt(2 * math.log(1.25 / 1e-5) / 0.1)
    assert close(gaussian.delta_mu(1 / printed, 0.1), value)
    for sigma in (gaussian.sigma_for(0.1, 1e-5), gaussian.classic_sigma(0.1, 1e-5)):
        assert sigma > printed
        assert exact_gaussian_delta(1 / sigma, 0.1) <= 1e-5 * (1 + 1e-15)
    # docs/errata.md: beyond epsilon 1 the classic formula is no theorem
    assert math.sqrt(2 * math.log(1.25e5)) / 10 < 0.4845 < gaussian.sigma_for(10.0, 1e-5) < 0.49990


def test_F2_probabilistic_dp_is_another_number():
    value = golden.value("pdp.eps.mu0.1.d1e-5")
    assert above(gaussian.probabilistic_epsilon(0.1, 1e-5), value)
    assert gaussian.probabilistic_epsilon(1.0, 1e-5) > gaussian.epsilon_mu(1.0, 1e-5)
    assert round(gaussian.probabilistic_epsilon(1.0, 1e-5), 4) == 4.7649
    assert gaussian.probabilistic_epsilon(1.0, 0.9) == pytest.approx(0.5 - 1.2815515655446004, abs=1e-12)


def ratio_bound(plan, probability, orders=None):
    """(min over a of (e^D Q)^(1-1/a)/Q, argmin): Mironov 2017, Fig. 2 and 3, from the Renyi curve."""
    log_q = math.log(probability)
    if orders is None:
        grid = 1 + np.geomspace(1e-3, 1e4, 4001)
        for _ in range(8):
            values = (1 - 1 / grid) * (renyi.divergence(plan, grid) + log_q) - log_q
            i = int(np.argmin(values))
            grid = np.linspace(grid[max(i - 1, 0)], grid[min(i + 1, grid.size - 1)], 101)
        return math.exp(values[i]), float(grid[50])
    finite = np.array([a for a in orders if math.isfinite(a)])
    values = (1 - 1 / finite) * (renyi.divergence(plan, finite) + log_q) - log_q
    return math.exp(values.min()), float(finite[values.argmin()])


@pytest.mark.parametrize(("name", "inputs", "value"), [*rows("fig2."), *rows("fig3.")])
def test_F62_F65_bounds_on_the_ratio_of_probabilities(name, inputs, value):
    step = MECHANISMS[inputs["mech"]] if "mech" in inputs else TRIPLE
    plan = (inputs["n"] * step).directions()
    if name.endswith("restricted"):
        assert close(ratio_bound(plan, number(inputs["Q"]), renyi.MIRONOV_ORDERS)[0], value)
        return
    ratio, order = ratio_bound(plan, number(inputs["Q"]))
    if name.endswith("alpha"):
        assert close(order, value, 1e-6)  # where the minimum lies is only determined to the root of the precision
    else:
        assert close(ratio, value)


@pytest.mark.parametrize("name", ["plrv.gauss.rho", "plrv.tail.rho0.5.t4"])
def test_F41_F42_F44_the_gaussian_loss(name):
    value = golden.value(name)
    if name == "plrv.gauss.rho":
        plan = Gaussian(sigma=0.7, sensitivity=1.3).directions()
        assert close(concentrated.rho(plan), value)
        assert close(float(renyi.divergence(plan, np.array([1.0]))[0]), value)
    else:
        plan = Gaussian(sigma=1.0).directions()
        tail = float(plan[0].parts[0][0].tail(np.array([4.0]))[0])
        assert close(tail, value)
        chernoff = concentrated.delta_from_rho(0.5, 4.0, "bun-steinke").value  # exp(-(t - rho)^2/(4 rho))
        assert above(chernoff, math.exp(-(3.5**2) / 2))
        assert tail < chernoff


@pytest.mark.parametrize(("name", "inputs", "value"), rows("gdp.delta"))
def test_F71_delta_mu(name, inputs, value):
    if "mu" in inputs and "eps" in inputs:
        result = gaussian.delta_mu(number(inputs["mu"]), number(inputs["eps"]))
        assert above(result, value)


def test_F61_figure_1_curves_at_the_papers_parameters():
    orders = np.linspace(1, 10, 19)
    for p in (0.55, 0.6, 0.75):
        curve = renyi.divergence(RandomizedResponse(p=p).directions(), orders)
        assert np.all(np.diff(curve) > 0)
        assert curve[-1] < math.log(p / (1 - p))
    for sigma in (4, 3, 2):
        curve = renyi.divergence(Gaussian(sigma=sigma).directions(), orders)
        assert np.allclose(curve, orders / (2 * sigma**2), rtol=1e-14)
