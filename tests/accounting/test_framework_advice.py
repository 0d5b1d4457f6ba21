"""Contract: what a framework, a meaning or a conversion refuses, and that its advice leads to an answer."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest

import dptally as dp
from dptally.accounting import alpha, approximate, concentrated, gaussian, group, optimal, pure, renyi
from dptally.divergences import densities
from dptally.meaning import attacks, outcomes

NORMAL, SAMPLED = dp.Gaussian(1.0), dp.PoissonSampled(dp.Gaussian(1.0), 0.1)
RENYI, LEAKY = dp.RenyiDP((2.0, 8.0), (0.1, 0.4)), dp.ApproxDP(1.0, 1e-3)
MIXED = dp.PureDP(0.1) + dp.PureDP(0.2)
UNKNOWN = dp.Profile(lambda e: 0.5 * math.exp(-e))

CASES: list[tuple[str, Callable[[], object], str, Callable[[], float]]] = [
    ("pure, unbounded", lambda: pure.epsilon(NORMAL), r"plan.epsilon\(delta\)", lambda: NORMAL.epsilon(1e-5)),
    (
        "pure, infinite",
        lambda: pure.epsilon(LEAKY),
        "another framework",
        lambda: approximate.epsilon(LEAKY, 1e-2).value,
    ),
    ("pure, delta", lambda: pure.delta(MIXED, 0.1), "approximate", lambda: approximate.delta(MIXED, 0.1).value),
    (
        "approximate, delta 0",
        lambda: approximate.epsilon(NORMAL, 0.0, "basic"),
        "larger delta",
        lambda: approximate.epsilon(NORMAL, 1e-5, "basic").value,
    ),
    (
        "approximate, Renyi only",
        lambda: approximate.epsilon(RENYI, 1e-5, "basic"),
        "renyi.epsilon",
        lambda: renyi.epsilon(RENYI, 1e-5).value,
    ),
    (
        "advanced, no delta left",
        lambda: approximate.epsilon(2 * dp.PureDP(0.1), 0.0, "advanced"),
        "a delta above",
        lambda: approximate.epsilon(2 * dp.PureDP(0.1), 1e-5, "advanced").value,
    ),
    (
        "optimal, unbounded",
        lambda: optimal.epsilon(NORMAL, 0.1),
        "renyi.epsilon",
        lambda: renyi.epsilon(NORMAL, 0.1).value,
    ),
    ("optimal, mixed", lambda: optimal.epsilon(MIXED, 0.1), "certified accountant", lambda: MIXED.epsilon(0.1)),
    (
        "optimal, too many",
        lambda: optimal.composed_epsilon(1e-9, 0.0, 2**51, 0.1),
        "certified accountant",
        lambda: (2**51 * dp.PureDP(1e-9)).epsilon(0.1),
    ),
    (
        "renyi, orders",
        lambda: renyi.epsilon(RENYI, 1e-5, orders=[9.0]),
        "leave out orders=",
        lambda: renyi.epsilon(RENYI, 1e-5).value,
    ),
    (
        "concentrated",
        lambda: concentrated.epsilon(RENYI, 1e-5),
        "renyi.epsilon or plan.epsilon",
        lambda: renyi.epsilon(RENYI, 1e-5).value + RENYI.epsilon(1e-5),
    ),
    (
        "gaussian",
        lambda: gaussian.epsilon(dp.DiscreteGaussian(1.0), 1e-5),
        "gdp.measure",
        lambda: dp.gdp.measure(dp.DiscreteGaussian(1.0)).mu.upper,
    ),
    (
        "alpha, orders",
        lambda: alpha.smallest_sigma(10, 0.1, 1e-5, orders=[2.0]),
        "leave out orders=",
        lambda: alpha.smallest_sigma(10, 0.1, 1e-5).value,
    ),
    ("group, Renyi only", lambda: group.profile(RENYI, 2), "each declared", lambda: RENYI.group(2).epsilon(1e-5)),
    (
        "group, order",
        lambda: group.renyi(2.0, 0.1, 2),
        "equal-order",
        lambda: group.renyi(2.0, 0.1, 2, "equal-order").value,
    ),
    ("group, order inf", lambda: group.two_records(NORMAL, math.inf), "group.pure", lambda: group.pure(0.1, 2).value),
    ("loss", lambda: RENYI.loss(), r"epsilon\(delta=...\)", lambda: RENYI.epsilon(1e-5) + RENYI.renyi(2.0)),
    (
        "ratio, infinite",
        lambda: outcomes.largest_ratio(LEAKY, 0.1),
        "of_plan",
        lambda: outcomes.of_plan(LEAKY, 0.1).upper,
    ),
    (
        "ratio, unbounded",
        lambda: outcomes.largest_ratio_approx(NORMAL, 0.1),
        "of_plan",
        lambda: outcomes.of_plan(NORMAL, 0.1).upper,
    ),
    (
        "calibrate",
        lambda: dp.calibrate(lambda s: dp.Gaussian(s - 1e9), epsilon=1.0, delta=1e-5),
        "low= and high=",
        lambda: dp.calibrate(lambda s: dp.Gaussian(s - 1e9), epsilon=1.0, delta=1e-5, low=1e9 + 0.5, high=1e9 + 500),
    ),
    (
        "ratio, never",
        lambda: outcomes.largest_ratio(NORMAL, 0.0),
        "of_plan",
        lambda: outcomes.of_plan(LEAKY, 0.0).upper,
    ),
]


@pytest.mark.parametrize(("name", "refused", "advice", "followed"), CASES, ids=[case[0] for case in CASES])
def test_the_advice_of_a_refusal_gives_an_answer(
    name: str, refused: Callable[[], object], advice: str, followed: Callable[[], float]
) -> None:
    with pytest.raises(dp.DptallyError, match=advice) as caught:
        refused()
    assert "\n" not in str(caught.value), name
    assert 0 <= followed() < math.inf


TARGETS = ("pure", "zcdp", "gaussian", "renyi", "alpha")


def refusal(guarantee: dp.Mechanism, to: str, asked: dict[str, float]) -> str:
    """What convert says against it; nothing where it answers."""
    try:
        dp.convert(guarantee, to, **asked)
    except dp.Unanswerable as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "guarantee", [NORMAL, LEAKY, RENYI, dp.ZCDP(0.5), dp.AlphaDP(4.0, 0.2), UNKNOWN, 3 * LEAKY, SAMPLED]
)
def test_what_convert_says_that_follows_does_follow(guarantee: dp.Mechanism) -> None:
    asked = {"renyi": {"order": 1.5}, "alpha": {"order": 1.5}, "approx": {"epsilon": 2.0}}
    texts = [text for to in TARGETS if (text := refusal(guarantee, to, asked.get(to, {})))]
    assert texts or guarantee is SAMPLED
    for text in texts:
        said = re.findall(r'to="(\w+)"', text)
        assert said, text
        for other in said:
            assert isinstance(dp.convert(guarantee, other, **asked.get(other, {})), dp.Mechanism)


def test_where_a_density_jumps() -> None:
    """Two uniforms whose ends are not named: the advice is to name them."""

    def uniform(low: float, high: float) -> Callable[[np.ndarray], np.ndarray]:
        return lambda x: np.where((x >= low) & (x < high), -math.log(high - low), -np.inf)

    found = densities.total_variation(uniform(0.0, 1.0), uniform(0.3, 1.3), support=(0.0, 1.3), breakpoints=(0.3, 1.0))
    assert found == pytest.approx(0.3, abs=1e-9)


def test_the_advantage_of_what_is_refused_elsewhere() -> None:
    for plan in (NORMAL, LEAKY, RENYI, UNKNOWN):
        assert 0 < attacks.advantage(plan) < 1
