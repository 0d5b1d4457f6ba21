"""Contract: every edge of the table through ``convert``, on the safe side; refusals say what works."""

import math

import pytest
from mpmath import mp

import dptally as dp
from dptally.accounting import gaussian as gaussian_framework
from dptally.answers.convert import TARGETS, convert
from dptally.conversions import EDGES, edge
from dptally.errors import InvalidArgument, InvalidType, Unanswerable
from dptally.mechanisms import (
    ZCDP,
    AlphaDP,
    ApproxDP,
    Gaussian,
    GaussianDP,
    Laplace,
    PureDP,
    RandomizedResponse,
    RenyiDP,
)
from foreign import Coin

SOURCES = {
    "pure": (PureDP(0.8), (0.8,)),
    "approx": (ApproxDP(0.8, 1e-4), (0.8, 1e-4)),
    "renyi": (RenyiDP((8.0,), (0.3,)), (8.0, 0.3)),
    "alpha": (AlphaDP(8.0, 0.05), (8.0, 0.05)),
    "zcdp": (ZCDP(0.2), (0.2,)),
    "gdp": (GaussianDP(0.7), (0.7,)),
}
DELTA, ORDER = 1e-3, 8.0


def tightest():
    seen = {(e.source, e.target, e.gives): e for e in reversed(EDGES)}
    return [e for e in seen.values() if e.source != e.target or e.gives == "epsilon"]


@pytest.mark.parametrize("route", tightest(), ids=lambda e: f"{e.source}->{e.target}.{e.gives}")
def test_every_edge_of_the_table(route):
    guarantee, parameters = SOURCES[route.source]
    to = route.target.replace("gdp", "gaussian")
    if route.gives == "delta":
        asked, value = {"epsilon": 0.5}, 0.5
    elif to == "approx":
        asked, value = {"delta": DELTA}, DELTA
    elif to in ("renyi", "alpha"):
        asked, value = {"order": ORDER}, ORDER
    else:
        asked, value = {}, None
    expected = route.function(*parameters, *([value] if route.asked else []))
    found = convert(guarantee, to, **asked)
    if to == "gaussian":
        number = gaussian_framework.mu(found.directions())
    else:
        number = {
            "approx": lambda: found.declared_delta if route.gives == "delta" else found.declared_epsilon,
            "renyi": lambda: found.epsilons[0],
            "alpha": lambda: found.declared_epsilon,
            "zcdp": lambda: found.declared_rho,
        }[to]()
    assert number == pytest.approx(expected, rel=1e-9)


def test_a_plan_is_converted_as_a_whole():
    plan = 20 * Laplace(10.0) + Gaussian(5.0)
    assert convert(plan, "approx", delta=1e-6) == ApproxDP(plan.epsilon(1e-6), 1e-6)
    assert convert(plan, "zcdp").rho() >= plan.rho()
    assert convert(20 * RandomizedResponse(0.6), "pure").declared_epsilon == pytest.approx(20 * math.log(1.5))
    several = convert(plan, "renyi", order=[2.0, 8.0])
    assert several.epsilons == pytest.approx(tuple(plan.renyi([2.0, 8.0])), rel=1e-9)
    assert all(e >= r * (1 - 1e-14) for e, r in zip(several.epsilons, plan.renyi([2.0, 8.0]), strict=True))
    with mp.workdps(40):  # of the double next to 0.6
        exact = 20 * mp.log(mp.mpf(0.6) / (1 - mp.mpf(0.6)))
        assert mp.mpf(convert(20 * RandomizedResponse(0.6), "renyi", order=math.inf).epsilons[0]) >= exact


def test_round_trips_stay_on_the_safe_side():
    back = convert(convert(AlphaDP(4.0, 0.2), "renyi", order=4.0), "alpha", order=4.0)
    assert 0.2 <= back.declared_epsilon <= 0.2 * (1 + 1e-9)
    assert convert(convert(PureDP(1.0), "approx", delta=0.0), "pure").declared_epsilon == pytest.approx(1.0)
    assert convert(PureDP(0.0), "zcdp").declared_rho == 0.0
    assert convert(PureDP(0.0), "renyi", order=3.0).epsilons == (0.0,)


@pytest.mark.parametrize(
    ("guarantee", "to", "asked", "text"),
    [
        (ApproxDP(1.0, 1e-5), "zcdp", {}, "not zero-concentrated"),
        (ApproxDP(1.0, 1e-5), "pure", {}, "infinite"),
        (ApproxDP(1.0, 1e-5), "renyi", {"order": 2.0}, "infinite"),
        (ApproxDP(1.0, 1e-5), "approx", {"delta": 1e-6}, "no finite epsilon"),
        (RenyiDP((4.0,), (0.1,)), "gaussian", {}, "not known to be Gaussian DP.*approx"),
        (ZCDP(1.0), "pure", {}, "unbounded"),
        (Gaussian(1.0), "pure", {}, "unbounded.*approx"),
        (RenyiDP((4.0,), (0.1,)), "renyi", {"order": 8.0}, "not known to be finite"),
    ],
)
def test_what_does_not_follow_is_refused_with_a_reason_and_what_works(guarantee, to, asked, text):
    with pytest.raises(Unanswerable, match=text) as refusal:
        convert(guarantee, to, **asked)
    assert "work" in str(refusal.value) or "follows" in str(refusal.value)


@pytest.mark.parametrize(
    ("call", "kind", "argument"),
    [
        (lambda: convert("PureDP", "zcdp"), InvalidType, "guarantee"),
        (lambda: convert(PureDP(1.0), "puer"), InvalidArgument, "to"),
        (lambda: convert(PureDP(1.0), None), InvalidArgument, "to"),
        (lambda: convert(PureDP(1.0), "zcdp", delta=0.1), InvalidArgument, "delta"),
        (lambda: convert(PureDP(1.0), "approx"), InvalidArgument, "delta or epsilon"),
        (lambda: convert(PureDP(1.0), "approx", delta=0.1, epsilon=0.5), InvalidArgument, "delta or epsilon"),
        (lambda: convert(PureDP(1.0), "renyi", order=1.0), InvalidArgument, "order"),
        (lambda: convert(PureDP(1.0), "alpha", order=math.inf), InvalidArgument, "order"),
        (lambda: convert(PureDP(1.0), "approx", delta=1.5), InvalidArgument, "delta"),
        (lambda: convert(PureDP(1.0), "approx", epsilon=-1), InvalidArgument, "epsilon"),
    ],
)
def test_bad_input(call, kind, argument):
    with pytest.raises(kind) as error:
        call()
    assert error.value.argument == argument


def test_targets_cover_the_table():
    assert {e.target.replace("gdp", "gaussian") for e in EDGES} | {"pure"} == set(TARGETS)
    assert edge("zcdp", "approx").theorem


@pytest.mark.parametrize("to", ["gaussian", "gdp", "gaussian_dp", "GaussianDP"])
def test_a_definition_has_one_meaning_under_all_its_names(to: str) -> None:
    assert dp.convert(dp.PureDP(0.5), to=to) == dp.convert(dp.PureDP(0.5), to="gaussian")


def test_a_mechanism_is_no_definition() -> None:
    for name in ("laplace", "dpsgd", "profile", "composed", "nothing"):
        with pytest.raises(dp.InvalidArgument, match="to must be one of"):
            dp.convert(dp.PureDP(0.5), to=name)


def test_a_foreign_mechanism_is_told_what_works() -> None:
    with pytest.raises(dp.Unanswerable, match="what works"):
        dp.convert(dp.Profile(points=[(0.5, 1e-3)]), to="pure")
    assert dp.convert(Coin(0.5), to="pure").renyi(math.inf) == 0.5
