"""Contract: a law that contradicts itself is refused with what contradicts what; every law of ours passes."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest

import dptally as dp
from dptally.law import Law
from dptally.law.ball import BallLoss
from dptally.law.validity import _once
from dptally.laws.ball.losses import GaussianBall
from dptally.laws.gaussian import GaussianLaw
from dptally.laws.two_point import TwoPointLaw
from dptally.mechanisms import registry
from foreign import Coin, CoinLaw

EXAMPLES = {
    entry.name: entry.target(**entry.arguments())
    for entry in registry.declarations()
    if entry.json not in (None, "composed") and issubclass(entry.target, dp.Mechanism)  # samplers have no laws alone
}
CORNERS = [
    dp.Gaussian(0.01),
    dp.Gaussian(1e4),
    dp.Laplace(1e-3),
    dp.Laplace(1e3),
    dp.RandomizedResponse(0.1, 5),
    dp.PureDP(30.0),
    dp.PureDP(1e-3),
    dp.ApproxDP(0.5, 0.3),
    dp.ApproxDP(0.0, 1.0),
    dp.PoissonSampled(dp.Gaussian(0.2), 1e-6),
    dp.PoissonSampled(dp.ApproxDP(0.5, 0.01), 0.1),
    dp.PoissonSampled(dp.Laplace(1.0), 0.1),
    dp.PoissonSampled(dp.Laplace(1.0), 0.1, dp.REPLACE),
    dp.PoissonSampled(dp.RandomizedResponse(0.7, 3), 0.2, dp.REPLACE),
]


@pytest.mark.parametrize("mechanism", [*EXAMPLES.values(), *CORNERS], ids=repr)
def test_our_own_laws_pass(mechanism: dp.Mechanism) -> None:
    for composition in mechanism.directions():
        for law, _ in composition.parts:
            assert dp.check_law(law) is None


def wrong(base: type[Law], **members: Any) -> type[Law]:
    return type("Wrong", (base,), {"__slots__": (), "__module__": __name__, **members})


def lowered(self: GaussianLaw, epsilon: Any) -> Any:
    return tuple(
        np.where(np.asarray(epsilon) > 0, side - 0.05, side) for side in GaussianLaw.log_profile(self, epsilon)
    )


WRONG: dict[str, tuple[Law, str]] = {
    "mass": (TwoPointLaw(1.0, 1.0, 0.2, 0.0), "atoms hold 0.273576 of the finite mass 1"),
    "moment": (wrong(GaussianLaw, log_moment=lambda self, t: 1.01 * GaussianLaw.log_moment(self, t))(1.0), "mean"),
    "profile": (wrong(GaussianLaw, log_profile=lowered)(1.0), "but the profile gives"),
    "rising profile": (
        wrong(CoinLaw, log_profile=lambda self, e: (np.tanh(np.asarray(e)) - 2.0, np.tanh(np.asarray(e)) - 2.0))(1.0),
        "rises",
    ),
    "crossed bounds": (
        wrong(CoinLaw, log_profile=lambda self, e: CoinLaw.log_profile(self, e)[::-1])(1.0),
        "lower bound exceeds its upper bound",
    ),
    "nan": (wrong(CoinLaw, log_moment=lambda self, t: np.full(np.shape(t), np.nan))(1.0), "NaN"),
    "not convex": (
        wrong(CoinLaw, log_moment=lambda self, t: np.minimum(CoinLaw.log_moment(self, t).real, 0.5))(1.0),
        "not convex",
    ),
    "second member": (wrong(CoinLaw, log_moment=lambda self, t: np.asarray(t) ** 2)(1.0), "mass above 1"),
    "tail": (wrong(GaussianLaw, tail=lambda self, x: GaussianLaw.tail(self, x + 0.05))(1.0), "the tail says"),
    "rising tail": (wrong(CoinLaw, tail=lambda self, x: np.where(np.asarray(x) > 0, 0.9, 0.1))(1.0), "tail rises"),
    "tail outside": (wrong(CoinLaw, tail=lambda self, x: 2.0 * CoinLaw.tail(self, x))(1.0), "tail leaves"),
    "coin's tail": (
        wrong(CoinLaw, tail=lambda self, x: np.where(CoinLaw.tail(self, x) < 1, 0.9 * CoinLaw.tail(self, x), 1.0))(1.0),
        "but the tail gives",
    ),
    "density": (wrong(GaussianLaw, density=lambda self, x: 1.1 * GaussianLaw.density(self, x))(1.0), "the tail says"),
    "order of atoms": (wrong(CoinLaw, atoms=lambda self: CoinLaw.atoms(self)[::-1])(1.0), "increasing order"),
    "negative atom": (wrong(CoinLaw, atoms=lambda self: ((0.0, -1.0), (1.0, 2.0)))(1.0), "negative mass"),
    "supremum": (wrong(CoinLaw, supremum=property(lambda self: 0.9))(1.0), "beyond the supremum"),
    "infimum": (wrong(CoinLaw, infimum=property(lambda self: -0.5))(1.0), "above the infimum -0.5"),
    "ends": (wrong(CoinLaw, infimum=property(lambda self: 2.0))(1.0), "not at most supremum"),
    "mean": (wrong(CoinLaw, mean=property(lambda self: 0.9))(1.0), "slope of log_moment"),
    "infinite": (wrong(CoinLaw, infinity_mass=property(lambda self: 0.1))(1.0), r"log\(1 - infinity_mass\)"),
    "probability": (wrong(CoinLaw, infinity_mass=property(lambda self: 1.5))(1.0), "not a probability"),
    "reverse": (wrong(CoinLaw, reverse=lambda self: CoinLaw(1.1))(1.0), r"is not log_moment\(-1 - t\)"),
    "digits": (
        wrong(CoinLaw, log_moment=lambda self, t: np.log(np.exp(CoinLaw.log_moment(self, t)) + 1.0 - 1.0))(1.0),
        "loses its digits near 0",
    ),
    "rho": (wrong(GaussianLaw, closed_rho=lambda self: 0.4)(1.0), "closed_rho"),
    "mu": (wrong(GaussianLaw, gaussian_mu=lambda self: 0.9)(1.0), "gaussian_mu"),
    "table": (wrong(GaussianLaw, moment_table=lambda self, t: GaussianLaw(2.0).moment_table(t))(1.0), "moment_table"),
    "ball": (
        wrong(CoinLaw, ball=lambda self, count: GaussianBall(Fraction(1), count))(1.0),
        r"ball\(1\) has another moment",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_law_is_refused_with_what_fails(name: str) -> None:
    law, reason = WRONG[name]
    with pytest.raises(dp.InvalidLaw, match=reason) as caught:
        dp.check_law(law)
    assert caught.value.failures
    assert pickle.loads(pickle.dumps(caught.value)).failures == caught.value.failures


def test_what_is_no_law_is_refused() -> None:
    with pytest.raises(dp.InvalidType, match="law must be"):
        dp.check_law(dp.Gaussian(1.0))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Careless(dp.Mechanism):
    """Somebody else's mechanism with a law class of ours, filled in wrongly."""

    mass: float
    theorem: ClassVar[str] = "Doe 2031, Thm. 3"

    def laws(self) -> tuple[Law, ...]:
        return (TwoPointLaw(1.0, 1.0, self.mass, 0.0),)


def test_a_foreign_mechanism_is_checked_when_it_is_first_asked() -> None:
    right = 1 / (1 + math.exp(-1.0))
    assert Careless(right).epsilon(1e-9) == pytest.approx(dp.PureDP(1.0).epsilon(1e-9), rel=1e-9)
    for question in (
        lambda plan: plan.epsilon(1e-5),
        lambda plan: plan.prove(epsilon=0.5),
        lambda plan: (3 * plan + dp.Gaussian(1.0)).delta(1.0),
        lambda plan: dp.PoissonSampled(plan, 0.1).rho(),
        lambda plan: plan.explain(1e-5),
        lambda plan: dp.compare(plan, 1e-5),
    ):
        with pytest.raises(dp.InvalidLaw, match=r"atoms hold 0\.27"):
            question(Careless(0.2))


def test_a_checked_law_is_not_checked_again() -> None:
    _once.cache_clear()
    for _ in range(3):
        Coin(0.75).epsilon(1e-3)
    assert _once.cache_info().misses == 1


def test_a_ball_is_compared_only_where_balls_are_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "flint", None)
    assert dp.check_law(TwoPointLaw.of_guarantee(1.0)) is None
    kept: BallLoss | None = CoinLaw(1.0).ball(1)
    assert kept is None


class _Mutable(CoinLaw):
    """As a law that was written with @dataclass alone: equal to others, without a hash."""

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class _Listed(CoinLaw):
    """Frozen, but with a list in it."""

    weights: object = None


@pytest.mark.parametrize("law", [_Mutable(0.7), _Listed(0.7, [1.0])], ids=["not frozen", "a list"])
def test_a_law_without_a_hash_is_told_so(law: Law) -> None:
    @dataclass(frozen=True)
    class Foreign(dp.Mechanism):
        def laws(self) -> tuple[Law, ...]:
            return (law,)

    for ask in (
        lambda: Foreign().epsilon(1e-3),
        lambda: (5 * Foreign()).renyi(3.0),
        lambda: (Foreign() + dp.Gaussian(3)).tradeoff(0.1),
        lambda: dp.check_law(law),
    ):
        with pytest.raises(dp.InvalidLaw, match=r"has no hash.*@dataclass\(frozen=True\)"):
            ask()
