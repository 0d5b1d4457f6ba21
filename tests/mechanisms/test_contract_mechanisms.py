"""Contract: what every mechanism of the registry keeps. A new mechanism brings its example in its declaration, and
nothing is added here.
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
from dptally.mechanisms import registry
from dptally.mechanisms.value import Value

DECLARED = {entry.json: entry for entry in registry.declarations() if entry.json and registry.shipped(entry.target)}
EXAMPLES = {name: entry.target(**entry.arguments()) for name, entry in DECLARED.items()}
MECHANISMS = {name: value for name, value in EXAMPLES.items() if isinstance(value, dp.Mechanism)}
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
NUMERIC = [
    (name, field)
    for name, value in EXAMPLES.items()
    for field, given in value.parameters().items()
    if isinstance(given, (int, float)) and not isinstance(given, bool)
]
all_values = pytest.mark.parametrize("mechanism", EXAMPLES.values(), ids=EXAMPLES.keys())
all_mechanisms = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())


def test_every_value_of_the_package_is_declared_with_an_example() -> None:
    def below(cls: type) -> set[type]:
        return {cls}.union(*(below(child) for child in cls.__subclasses__()))

    # by name: a dataclass with slots leaves the class that it was made from behind
    own = {cls.__name__ for cls in below(Value) if registry.shipped(cls) and not inspect.isabstract(cls)} - {"Value"}
    assert own == {entry.name for entry in DECLARED.values()}
    assert all(entry.example for entry in registry.declarations())


@all_values
class TestEveryValue:
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
        names |= {entry.name: entry.target for entry in DECLARED.values()}
        assert eval(repr(mechanism), {"inf": math.inf, **names}) == mechanism

    def test_is_rebuilt_from_its_parameters(self, mechanism: dp.Mechanism) -> None:
        assert type(mechanism)(**mechanism.parameters()) == mechanism
        assert set(mechanism.parameters()) <= set(inspect.signature(type(mechanism)).parameters)


@all_mechanisms
class TestEveryMechanism:
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
    entry = DECLARED[name]
    hostile = HOSTILE if field in entry.zero else (*HOSTILE, 0, 0.0)
    left_out = inspect.signature(entry.target).parameters[field].default
    for value in hostile:
        if value is None and left_out is None:
            continue  # the same as not given
        with pytest.raises(dp.InvalidArgument, match=field) as caught:
            entry.target(**{**entry.arguments(), field: value})
        assert field in caught.value.argument


@pytest.mark.parametrize("name", [name for name, entry in DECLARED.items() if entry.refuses])
def test_what_a_mechanism_says_it_refuses_is_refused(name: str) -> None:
    entry = DECLARED[name]
    for field, values in entry.refuses.items():
        for value in values:
            with pytest.raises(dp.InvalidArgument, match=field):
                entry.target(**{**entry.arguments(), field: value})


@pytest.mark.parametrize(
    ("name", "field"), [(name, field) for name, entry in DECLARED.items() for field in entry.zero], ids=str
)
def test_zero_is_a_value_where_it_is_said_to_be(name: str, field: str) -> None:
    entry = DECLARED[name]
    assert entry.target(**{**entry.arguments(), field: 0}).parameters()[field] == 0


@pytest.mark.parametrize("name", ["discrete_gaussian", "discrete_laplace"])
def test_integer_sensitivities_are_integers(name: str) -> None:
    entry = DECLARED[name]
    assert entry.target(**{**entry.arguments(), "sensitivity": np.int64(4)}).parameters()["sensitivity"] == 4
