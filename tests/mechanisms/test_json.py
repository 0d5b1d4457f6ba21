"""Contract: JSON round trips exactly, is canonical, and refuses whatever it does not know, saying where."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dptally as dp
from dptally.documents import DEEPEST
from dptally.mechanisms import registry
from dptally.mechanisms.json import LONGEST


def wrapped(body: str, schema: str = "1") -> str:
    return f'{{"schema": {schema}, "mechanism": {body}}}'


@given(st.floats(1e-100, 1e100), st.floats(1e-10, 1e10))
def test_numbers_round_trip_exactly(scale: float, share: float) -> None:
    mechanism = dp.Laplace(scale, scale * share)
    assert dp.from_json(dp.to_json(mechanism)) == mechanism


def test_nested_plans_round_trip() -> None:
    plan = (
        3 * dp.Laplace(5.0)
        + dp.dpsgd(1.1, 0.01, 1000)
        + dp.PoissonSampled(dp.Laplace(2.0), 0.25, dp.REPLACE)
        + dp.RenyiDP([2.0, math.inf], [0.1, 0.4])
        + dp.Profile(points=[(0.1, 1e-3), (1.0, 1e-9)])
        + dp.ApproxDP(1.0, 1e-6)
    )
    text = dp.to_json(plan)
    assert dp.from_json(text) == plan
    assert text == dp.to_json(dp.from_json(text))
    assert " " not in text
    assert json.loads(text)["schema"] == 1
    assert '"inf"' in text


def test_defaults_and_integers_are_understood() -> None:
    assert dp.from_json(wrapped('{"name": "laplace", "scale": 5}')) == dp.Laplace(5.0)
    assert dp.from_json(wrapped('{"name": "composed", "parts": []}')) == 0 * dp.Laplace(1.0)


def test_the_registry_is_the_public_list() -> None:
    kinds = {name: registry.find_json(name).target for name in registry.json_names()}
    assert {kind.__name__ for kind in kinds.values()} <= set(dp.__all__)
    assert all(name == kind.json_name for name, kind in kinds.items())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "valid JSON"),
        ("{", "valid JSON"),
        ("[]", "an object with the keys"),
        ('{"schema": 1}', "an object with the keys"),
        ('{"schema": 1, "mechanism": {}, "more": 1}', "an object with the keys"),
        (wrapped('{"name": "laplace", "scale": 1}', "2"), "schema must be 1"),
        (wrapped('{"name": "laplace", "scale": 1}', "true"), "schema must be 1"),
        (wrapped('{"name": "laplace", "scale": 1}', "1.0"), "schema must be 1"),
        (wrapped("3"), "mechanism must be an object"),
        (wrapped('{"scale": 1}'), "mechanism.name must be one of"),
        (wrapped('{"name": ["laplace"]}'), "mechanism.name must be one of"),
        (wrapped('{"name": "os.system"}'), "mechanism.name must be one of"),
        (wrapped('{"name": "laplace", "scale": 1, "colour": 2}'), "mechanism.colour"),
        (wrapped('{"name": "laplace"}'), "mechanism.scale must be given"),
        (wrapped('{"name": "laplace", "scale": -1}'), "scale must be positive"),
        (wrapped('{"name": "laplace", "scale": "1"}'), "mechanism.scale must be a number"),
        (wrapped('{"name": "laplace", "scale": null}'), "mechanism.scale must be a number"),
        (wrapped('{"name": "laplace", "scale": true}'), "mechanism.scale must be a number"),
        (wrapped('{"name": "laplace", "scale": "inf"}'), "scale must be positive"),
        (wrapped('{"name": "laplace", "scale": [1]}'), "scale must be"),
        (wrapped('{"name": "laplace", "scale": NaN}'), "free of NaN"),
        (wrapped('{"name": "laplace", "scale": -Infinity}'), "free of NaN"),
        (wrapped('{"name": "laplace", "scale": 1e999}'), "a double can hold"),
        (wrapped('{"name": "laplace", "scale": 1' + "0" * 399 + "}"), "a double can hold|between 1e-150"),
        (wrapped('{"name": "laplace", "scale": 1' + "0" * 500 + "}"), "400 digits"),
        (wrapped('{"name": "laplace", "scale": 1, "scale": 2}'), "duplicate keys"),
        (
            wrapped('{"name": "composed", "parts": [[{"name": "nope"}, 2]]}'),
            r"mechanism.parts\[0\]\[0\].name",
        ),
        (wrapped('{"name": "composed", "parts": [[{"name": "pure_dp", "epsilon": 1}, 0.5]]}'), "count"),
        (wrapped('{"name": "composed", "parts": [[{"name": "pure_dp", "epsilon": 1}]]}'), "parts"),
        (wrapped('{"name": "poisson_sampled", "mechanism": 3, "rate": 0.1}'), "mechanism"),
        (
            wrapped('{"name": "poisson_sampled", "mechanism": {"name": "gaussian", "sigma": 1}, "rate": 2}'),
            "rate",
        ),
        ("[" * (DEEPEST + 1), "brackets deep"),
        ('"' + "x" * LONGEST + '"', "bytes"),
        ('"' + "é" * (LONGEST // 2 + 1) + '"', "bytes"),
    ],
)
def test_hostile_documents_are_refused(text: str, reason: str) -> None:
    with pytest.raises(dp.InvalidArgument, match=reason):
        dp.from_json(text)


def test_brackets_inside_strings_do_not_count() -> None:
    with pytest.raises(dp.InvalidArgument, match="an object with the keys"):
        dp.from_json('["' + "[" * 100 + '\\"' + "[" * 100 + '"]')


@pytest.mark.parametrize("value", [None, 3, b"{}", ["{}"]])
def test_only_text_is_read(value: object) -> None:
    with pytest.raises(dp.InvalidType, match="text"):
        dp.from_json(value)


def test_functions_are_not_written() -> None:
    with pytest.raises(dp.InvalidType, match="function"):
        dp.to_json(dp.Profile(lambda epsilon: math.exp(-1 - epsilon)))
    with pytest.raises(dp.InvalidType, match="mechanism"):
        dp.to_json("laplace")


def test_strangers_are_not_written() -> None:
    class Mine(dp.Laplace):
        __slots__ = ()

    with pytest.raises(dp.InvalidType, match="JSON documents know"):
        dp.to_json(Mine(1.0))


def test_too_long_to_be_read_back_is_refused() -> None:
    plan = dp.Composed(tuple((dp.Laplace(1.0 + k), 1) for k in range(25_000)))
    with pytest.raises(dp.InvalidArgument, match="characters"):
        dp.to_json(plan)
