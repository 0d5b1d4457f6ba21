"""Contract: what every mechanism of the registry keeps. A new mechanism adds an instance to EXAMPLES and
nothing else.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import pickle

import numpy as np
import pytest

import dptally as dp
from dptally.law import Law
from dptally.mechanisms.json import REGISTRY

EXAMPLES: dict[str, dp.Mechanism] = {
    "alpha_dp": dp.AlphaDP(2.5, 0.3),
    "approx_dp": dp.ApproxDP(0.5, 1e-6),
    "composed": 3 * dp.Laplace(5.0) + dp.PureDP(0.5),
    "discrete_gaussian": dp.DiscreteGaussian(2.5, 2),
    "discrete_laplace": dp.DiscreteLaplace(7.0, 3),
    "gaussian": dp.Gaussian(2.0, 0.5),
    "gaussian_dp": dp.GaussianDP(0.75),
    "laplace": dp.Laplace(5.0, 2.0),
    "poisson_sampled": dp.PoissonSampled(dp.Gaussian(1.0), 0.1),
    "profile": dp.Profile(points=[(0.1, 1e-3), (1.0, 1e-9)]),
    "pure_dp": dp.PureDP(0.5),
    "randomized_response": dp.RandomizedResponse(0.7, 3),
    "renyi_dp": dp.RenyiDP([2.0, 8.0], [0.1, 0.6]),
    "zcdp": dp.ZCDP(0.25),
}
HOSTILE = (
    math.nan,
    math.inf,
    -math.inf,
    -1,
    -1.0,
    True,
    "1",
    b"1",
    None,
    np.array([1.0, 2.0]),
    1j,
    object(),
    [],
    {},
)
ZERO_IS_FINE = {"epsilon", "delta", "rho", "mu", "rate"}
NUMERIC = [
    (name, field)
    for name, mechanism in EXAMPLES.items()
    for field, value in mechanism.parameters().items()
    if isinstance(value, (int, float))
]
all_mechanisms = pytest.mark.parametrize("mechanism", EXAMPLES.values(), ids=EXAMPLES.keys())


def test_every_registered_mechanism_is_here() -> None:
    assert set(EXAMPLES) == set(REGISTRY)


@all_mechanisms
class TestEveryMechanism:
    def test_is_frozen(self, mechanism: dp.Mechanism) -> None:
        field = dataclasses.fields(mechanism)[0].name
        with pytest.raises((AttributeError, TypeError)):
            setattr(mechanism, field, 1.0)
        with pytest.raises((AttributeError, TypeError)):
            mechanism.colour = "red"
        assert not hasattr(mechanism, "__dict__")

    def test_is_a_value(self, mechanism: dp.Mechanism) -> None:
        twin = copy.deepcopy(mechanism)
        assert twin == mechanism
        assert hash(twin) == hash(mechanism)
        assert pickle.loads(pickle.dumps(mechanism)) == mechanism
        assert mechanism != dp.Laplace(12345.0)

    def test_prints_what_builds_it(self, mechanism: dp.Mechanism) -> None:
        names = {name: getattr(dp, name) for name in ("ADD_REMOVE", "REPLACE", "Composed")}
        names |= {kind.__name__: kind for kind in REGISTRY.values()}
        assert eval(repr(mechanism), {"inf": math.inf, **names}) == mechanism

    def test_is_rebuilt_from_its_parameters(self, mechanism: dp.Mechanism) -> None:
        assert type(mechanism)(**mechanism.parameters()) == mechanism
        assert set(mechanism.parameters()) <= set(inspect.signature(type(mechanism)).parameters)

    def test_json_round_trip(self, mechanism: dp.Mechanism) -> None:
        assert dp.from_json(dp.to_json(mechanism)) == mechanism

    def test_composes(self, mechanism: dp.Mechanism) -> None:
        assert 2 * mechanism + mechanism == 3 * mechanism
        assert 1 <= len(mechanism.directions()) <= 2

    def test_renyi_curve_does_not_decrease(self, mechanism: dp.Mechanism) -> None:
        orders = np.array([1.0, 1 + 1e-9, 1.001, 1.3, 2.0, 2.4, 5.0, 7.9])
        curve = mechanism.renyi(orders)
        assert (curve >= 0).all()
        finite = curve[np.isfinite(curve)]
        assert (np.diff(finite) >= -1e-13 * finite[1:]).all()
        assert (np.diff(np.isinf(curve).astype(int)) >= 0).all()  # once infinite, infinite

    def test_every_law_keeps_the_contract_of_laws(self, mechanism: dp.Mechanism) -> None:
        for law in (law for composition in mechanism.directions() for law, _ in composition.parts):
            check_law(law)


def check_law(law: Law) -> None:
    assert hash(law) == hash(copy.deepcopy(law))
    t = np.linspace(0.0, 4.0, 41) if law.determined else np.linspace(0.0, 1.4, 41)
    moment = np.asarray(law.log_moment(t), dtype=float)
    survival = math.log1p(-law.infinity_mass)
    assert moment[0] == pytest.approx(survival, abs=1e-15)
    assert (np.diff(moment, 2) >= -1e-12 * (1 + moment[2:])).all()
    assert law.mean >= 0
    assert law.infimum <= law.supremum
    if not law.determined:
        with pytest.raises(dp.Unanswerable, match="epsilon"):
            law.log_profile(np.asarray(0.5))
        with pytest.raises(dp.Unanswerable, match="distribution"):
            law.tail(np.asarray(0.5))
        return
    epsilon = np.linspace(-2.0, 3.0, 51)
    lower, upper = law.log_profile(epsilon)
    assert (lower <= upper).all()
    assert (upper <= 0).all()
    assert (lower[1:] <= upper[:-1]).all()  # nonincreasing
    tail = law.tail(epsilon)
    assert ((tail >= 0) & (tail <= 1)).all()
    assert (np.diff(tail) <= 1e-15).all()
    total = np.exp(lower) + law.infinity_mass
    assert (total <= 1 + 1e-12).all()


@pytest.mark.parametrize(("name", "field"), NUMERIC, ids=[f"{name}.{field}" for name, field in NUMERIC])
def test_bad_numbers_are_refused_by_name(name: str, field: str) -> None:
    mechanism = EXAMPLES[name]
    hostile = HOSTILE if field in ZERO_IS_FINE else (*HOSTILE, 0, 0.0)
    for value in hostile:
        with pytest.raises(dp.InvalidArgument, match=field) as caught:
            type(mechanism)(**{**mechanism.parameters(), field: value})
        assert field in caught.value.argument


@pytest.mark.parametrize(("name", "field"), [("discrete_gaussian", "sensitivity"), ("discrete_laplace", "sensitivity")])
def test_integer_sensitivities_are_integers(name: str, field: str) -> None:
    mechanism = EXAMPLES[name]
    assert type(mechanism)(**{**mechanism.parameters(), field: np.int64(4)}).parameters()[field] == 4
    with pytest.raises(dp.InvalidType, match=field):
        type(mechanism)(**{**mechanism.parameters(), field: 2.0})


@pytest.mark.parametrize("value", [1, 1.5])
def test_probabilities_above_one_are_refused(value: float) -> None:
    with pytest.raises(dp.InvalidArgument, match="p must"):
        dp.RandomizedResponse(value)
    if value > 1:
        with pytest.raises(dp.InvalidArgument, match="delta"):
            dp.ApproxDP(1.0, value)


def test_one_category_is_refused() -> None:
    with pytest.raises(dp.InvalidArgument, match="categories"):
        dp.RandomizedResponse(0.5, 1)
