"""Contract: mechanisms from outside. Staircase noise, in one file of somebody else (the page docs/mechanisms.md shows
it), is a citizen of JSON, ledgers and plan texts; and what the registry refuses.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import inspect
import itertools
import math
import pickle
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import mpmath as mp
import pytest

import dptally as dp
from dptally.cli.language import parse
from dptally.cli.plans import load
from dptally.law import Law
from dptally.laws.atoms import AtomicLaw
from dptally.laws.gaussian import GaussianLaw
from dptally.mechanisms import registry
from foreign import Coin, CoinLaw

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mechanisms.md"


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The module of somebody else: one file, outside of the package."""
    source = re.search(r"```python\n(import math\n.*?class Staircase.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert source is not None
    path = tmp_path_factory.mktemp("outside") / "staircase_noise.py"
    path.write_text(source[1], encoding="utf-8")
    spec = importlib.util.spec_from_file_location("staircase_noise", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["staircase_noise"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["staircase_noise"]


def stairs(x: mp.mpf, height: float, width: float) -> mp.mpf:
    """The density of the noise, from the paper's definition."""
    fall = mp.exp(-mp.mpf(height))
    top = (1 - fall) / (2 * (width + (1 - width) * fall))
    k = mp.floor(abs(x))
    return top * fall ** (k if abs(x) - k < width else k + 1)


def truth(height: float, width: float, shift: float, epsilon: float) -> mp.mpf:
    """delta(epsilon) of a shift, by exact integration between the edges of both staircases."""
    edges = {
        s + sign * (k + part) for k in range(60) for part in (0.0, width) for sign in (1, -1) for s in (0.0, shift)
    }
    ends = sorted(edges)
    total = mp.mpf(0)
    for left, right in itertools.pairwise(ends):
        x = (mp.mpf(left) + mp.mpf(right)) / 2
        gain = stairs(x, height, width) - mp.exp(epsilon) * stairs(x - shift, height, width)
        total += max(gain, 0) * (mp.mpf(right) - mp.mpf(left))
    return total


@pytest.mark.parametrize("width", [0.125, 0.5, 0.75])
def test_staircase_answers_before_it_is_registered(outside: ModuleType, width: float) -> None:
    noise = outside.Staircase(height=1.25, width=width)
    for epsilon in (0.0, 0.5, 1.0):
        box = noise.delta_interval(epsilon)
        exact = truth(1.25, width, 1.0, epsilon)
        assert box.lower <= exact * (1 + mp.mpf("1e-14")) <= box.upper * (1 + 1e-13)
        assert truth(1.25, width, 0.625, epsilon) <= exact * (1 + mp.mpf("1e-14"))
    assert noise.renyi(math.inf) == 1.25
    assert (20 * noise).prove(epsilon=2.0).upper == pytest.approx((20 * noise).delta(2.0), rel=1e-8)
    assert dp.calibrate(lambda h: outside.Staircase(h, width), epsilon=0.5, delta=0.0) == pytest.approx(0.5, rel=1e-6)


def test_but_it_cannot_be_stored(outside: ModuleType) -> None:
    with pytest.raises(dp.InvalidType, match=r"register its class first: dptally\.register"):
        dp.to_json(outside.Staircase(0.5))
    with pytest.raises(dp.InvalidArgument, match="one of"):
        dp.from_json('{"schema": 1, "mechanism": {"name": "staircase", "height": 0.5}}')


def test_registered_it_is_a_citizen(outside: ModuleType) -> None:
    cls = outside.Staircase
    assert dp.register(cls, json="staircase", plan="staircase", aliases=("stairs",), example=cls(0.5)) is cls
    plan = 3 * cls(0.5, 0.25) + dp.PoissonSampled(cls(0.75), 0.25)
    assert dp.from_json(dp.to_json(plan)) == plan
    assert parse(repr(plan)) == plan
    assert parse("3*stairs(0.5, 0.25) + poisson(staircase(height=0.75), 0.25)") == plan
    assert "staircase(height, width=0.5)" in registry.plan_usages()
    assert "staircase" in registry.json_names()
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert dp.Accountant.from_json(dp.Accountant(plan).to_json()).plan == plan


def test_a_ledger_keeps_it(outside: ModuleType, tmp_path: Path) -> None:
    dp.register(outside.Staircase, plan="staircase")
    new = {"create": True} if "create" in inspect.signature(dp.Ledger.open).parameters else {}
    ledger = dp.Ledger.open(f"sqlite:///{tmp_path / 'budget.db'}", **new)
    ledger.create("visits", budget=dp.PureDP(1.0))
    with ledger.spend("visits", outside.Staircase(0.5), by="ana", why="a count"):
        pass
    with pytest.raises(dp.BudgetExceeded), ledger.spend("visits", outside.Staircase(0.75), by="ana", why="another"):
        pass
    assert ledger.verify() is not None


def test_from_json_reports_what_a_constructor_from_outside_says(outside: ModuleType) -> None:
    dp.register(outside.Staircase)
    with pytest.raises(dp.InvalidArgument, match=r"a valid staircase.*height must be between"):
        dp.from_json('{"schema": 1, "mechanism": {"name": "staircase", "height": -1}}')
    with pytest.raises(dp.InvalidArgument, match="a valid staircase"):
        dp.from_json('{"schema": 1, "mechanism": {"name": "staircase", "height": "much"}}')


def test_plan_files_hold_it(outside: ModuleType, tmp_path: Path) -> None:
    dp.register(outside.Staircase, plan="staircase")
    path = tmp_path / "plan.json"
    path.write_text(dp.to_json(outside.Staircase(0.5)), encoding="utf-8")
    assert load(f"@{path}").mechanism == outside.Staircase(0.5)


def test_an_installed_package_is_found_by_its_entry_point(outside: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    point = importlib.metadata.EntryPoint("staircase", "staircase_noise:Staircase", registry.ENTRY_POINTS)
    monkeypatch.setattr(registry, "_entry_points", lambda: (point,))
    assert "staircase" in registry.plan_names()
    assert dp.from_json('{"schema": 1, "mechanism": {"name": "staircase", "height": 0.5}}') == outside.Staircase(0.5)
    assert parse("2 * STAIRCASE(0.5)") == 2 * outside.Staircase(0.5)
    assert outside.Staircase in [entry.target for entry in registry.declarations()]


@pytest.mark.parametrize("value", ["no_such_package:Noise", "staircase_noise:NoSuchClass"])
def test_an_entry_point_that_leads_nowhere_is_refused_by_name(
    outside: ModuleType, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    point = importlib.metadata.EntryPoint("broken", value, registry.ENTRY_POINTS)
    monkeypatch.setattr(registry, "_entry_points", lambda: (point,))
    with pytest.raises(dp.InvalidArgument, match=f"the entry point \\({value}\\) can load"):
        dp.from_json('{"schema": 1, "mechanism": {"name": "broken"}}')
    with pytest.raises(dp.DptallyError, match="can load"):
        parse("broken(1)")
    assert parse("gaussian(1)") == dp.Gaussian(1)


# -- theorems -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Borrowed(dp.Mechanism):
    """A law class of ours, and no word on why it applies."""

    sigma: float

    def laws(self) -> tuple[Law, ...]:
        return (GaussianLaw(1 / self.sigma**2),)


@dataclass(frozen=True, slots=True)
class Silent(dp.Mechanism):
    """Atoms of ours, without a theorem."""

    def laws(self) -> tuple[Law, ...]:
        return (AtomicLaw(CoinLaw(0.5).atoms()),)


@dataclass(frozen=True, slots=True)
class Citing(dp.Mechanism):
    """Atoms of ours, with one."""

    def laws(self) -> tuple[Law, ...]:
        return (AtomicLaw(CoinLaw(0.5).atoms(), cited="Doe 2031, Thm. 1"),)


def test_a_theorem_is_stated_by_the_author_and_nobody_else(outside: ModuleType) -> None:
    assert outside.Staircase(0.5).theorems() == (outside.Staircase.theorem,)
    assert outside.Staircase.theorem in str(outside.Staircase(0.5).explain(1e-6))
    assert Coin(0.5).theorems() == ("Warner 1965, Randomized response, Sec. 2",)
    assert Citing().theorems() == ("Doe 2031, Thm. 1",)
    page = (3 * Coin(0.5) + Citing()).explain(1e-6)
    assert all("Optimal accounting" not in part[2] for part in page.parts)


@pytest.mark.parametrize("mechanism", [Borrowed(2.0), Silent(), dp.Gaussian(1.0) + 3 * Silent()])
def test_a_mechanism_without_a_theorem_is_refused(mechanism: dp.Mechanism) -> None:
    """Whoever uses a law must say why it dominates: the first question says what to write."""
    questions = (
        lambda plan: plan.epsilon(1e-5),
        lambda plan: plan.theorems(),
        lambda plan: plan.explain(1e-6),
        lambda plan: plan.prove(epsilon=0.5),
        lambda plan: dp.PoissonSampled(plan, 0.1).epsilon(1e-5),
        lambda plan: dp.compare(plan, 1e-5),
    )
    for question in questions:
        with pytest.raises(dp.InvalidLaw, match="states no theorem: write  theorem: ClassVar"):
            question(mechanism)


def test_a_mechanism_without_a_theorem_is_not_registered() -> None:
    with pytest.raises(dp.InvalidLaw, match="states no theorem"):
        dp.register(Borrowed, json="borrowed", example=Borrowed(2.0))
    assert registry.find_json("borrowed") is None


def test_a_sampled_mechanism_cites_the_sampling_and_the_author(outside: ModuleType) -> None:
    stated = dp.PoissonSampled(outside.Staircase(0.5), 0.1).theorems()
    assert stated[0].startswith("Zhu, Dong, Wang 2022")
    assert stated[1:] == (outside.Staircase.theorem,)
    both = {*dp.PureDP(0.1).theorems(), *dp.PoissonSampled(dp.Gaussian(1.0), 0.1).theorems()}
    assert set((dp.dpsgd(1.0, 0.1, 3) + dp.PureDP(0.1)).theorems()) == both


# -- refusals -------------------------------------------------------------------------------------------------------


class Loose(dp.Mechanism):
    """No frozen dataclass."""

    json_name: ClassVar[str] = "loose"

    def laws(self) -> tuple[Law, ...]:
        return ()


@dataclass(frozen=True, slots=True, init=False)
class Renamed(dp.Mechanism):
    """Its constructor does not take what it keeps."""

    kept: float

    def __init__(self, given: float) -> None:
        object.__setattr__(self, "kept", given)

    def laws(self) -> tuple[Law, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Wrong(Coin):
    """Its law is none."""

    def laws(self) -> tuple[Law, ...]:
        return (AtomicLaw(((0.5, 0.25),)),)


@pytest.mark.parametrize(
    ("cls", "names", "reason"),
    [
        (3, {}, "a mechanism class"),
        (CoinLaw, {}, "a mechanism class"),
        (dp.Mechanism, {}, "a mechanism class"),
        (dp.Gaussian, {"json": "normal"}, "does not come with dptally"),
        (Loose, {}, "a frozen dataclass"),
        (Renamed, {"json": "renamed"}, r"built by its own fields \(not kept\)"),
        (Borrowed, {}, "json must be a name of small letters"),
        (Borrowed, {"json": "Borrowed Noise"}, "json must be a name of small letters"),
        (Coin, {"json": "gaussian"}, "a name that Gaussian does not have"),
        (Coin, {"plan": "gdp"}, "names that GaussianDP does not have"),
        (Coin, {"plan": "coin", "aliases": ("rr",)}, "names that RandomizedResponse does not have"),
        (Coin, {"plan": "Coin"}, "plan must be a name of small letters"),
        (Coin, {"plan": "inf"}, "that plans do not use"),
        (Coin, {"plan": "coin", "aliases": ("replace",)}, "that plans do not use"),
        (Coin, {"example": dp.Gaussian(1.0)}, "example must be a Coin"),
    ],
)
def test_what_cannot_be_registered(cls: type, names: dict[str, object], reason: str) -> None:
    with pytest.raises(dp.InvalidArgument, match=reason):
        dp.register(cls, **names)
    assert "coin" not in registry.json_names()


def test_an_example_is_checked_at_once() -> None:
    with pytest.raises(dp.InvalidLaw, match=r"atoms hold 0\.25"):
        dp.register(Wrong, example=Wrong(1.0))


def test_a_name_belongs_to_one_class_but_a_class_may_come_again() -> None:
    dp.register(Coin, plan="coin")
    dp.register(Coin, plan="coin")
    with pytest.raises(dp.InvalidArgument, match="a name that Coin does not have"):
        dp.register(Borrowed, json="coin")
    again = dataclass(frozen=True)(type("Coin", (Coin,), {"__module__": Coin.__module__, "__qualname__": "Coin"}))
    assert dp.register(again) is again
    assert dp.from_json('{"schema": 1, "mechanism": {"name": "coin", "loss": 0.5}}') == again(0.5)


# -- sampling -------------------------------------------------------------------------------------------------------


class Bare(GaussianLaw):
    """A continuous law that does not know its density, and no closed form once it is sampled."""

    __slots__ = ()

    def density(self, loss: object) -> object:
        return Law.density(self, loss)

    def sampled(self, rate: object, direction: object, noise: object = None) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Unlisted(dp.Mechanism):
    theorem: ClassVar[str] = "Doe 2031, Thm. 2"

    def laws(self) -> tuple[Law, ...]:
        return (Bare(1.0),)


def test_a_loss_that_is_not_listed_is_not_sampled() -> None:
    """Sampling integrates atoms and density: without them the answer would be a leak of nothing."""
    assert Unlisted().epsilon(1e-5) == pytest.approx(dp.Gaussian(1.0).epsilon(1e-5), rel=1e-9)
    with pytest.raises(dp.Unanswerable, match="neither atoms nor a density"):
        dp.PoissonSampled(Unlisted(), 0.1).epsilon(1e-5)


def test_a_foreign_loss_of_two_values_is_sampled_under_both_adjacencies() -> None:
    for adjacency in dp.Adjacency:
        ours = dp.PoissonSampled(dp.PureDP(1.0), 0.25, adjacency).epsilon_interval(1e-3)
        theirs = dp.PoissonSampled(Coin(1.0), 0.25, adjacency).epsilon_interval(1e-3)
        assert theirs.upper == pytest.approx(ours.upper, rel=1e-6)
        assert theirs.upper >= ours.lower
