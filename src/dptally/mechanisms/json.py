"""Mechanisms and plans as JSON text, through the closed names of the registry: nothing that a document says is
imported, evaluated or unpickled.

    {"mechanism":{"name":"laplace","scale":5.0,"sensitivity":1.0},"schema":1}

The text is canonical (sorted keys, no spaces, shortest exact numbers), so equal plans give equal text.
Infinity is the string "inf". Documents that are too large, too deep, ambiguous or of another version are
refused, saying where.
"""

from __future__ import annotations

import inspect
import json
import math
from typing import Any

from dptally.documents import read_json
from dptally.errors import DptallyError, InvalidArgument, InvalidType
from dptally.law.adjacency import Adjacency
from dptally.mechanisms import registry
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.value import Value

__all__ = ["from_json", "to_json"]

SCHEMA = 1
LONGEST = 1_000_000  # bytes

_ADJACENCIES = {adjacency.value: adjacency for adjacency in Adjacency}


def to_json(mechanism: Mechanism) -> str:
    """The canonical JSON text of a mechanism or plan; ``from_json`` gives an equal one back.

    >>> from dptally.mechanisms.laplace import Laplace
    >>> to_json(3 * Laplace(5.0))
    '{"mechanism":{"name":"composed","parts":[[{"name":"laplace","scale":5.0,"sensitivity":1.0},3]]},"schema":1}'
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidType("mechanism", "a mechanism", mechanism)
    text = json.dumps(
        {"schema": SCHEMA, "mechanism": _encoded(mechanism, "mechanism")},
        sort_keys=True,
        separators=(",", ":"),
        allow_nan=False,
    )
    if len(text) > LONGEST:
        raise InvalidArgument("mechanism", f"at most {LONGEST} characters as JSON", f"{len(text)} characters")
    return text


def from_json(text: str) -> Mechanism:
    """The mechanism or plan that a JSON document describes.

    >>> from_json('{"schema": 1, "mechanism": {"name": "pure_dp", "epsilon": 0.5}}')
    PureDP(epsilon=0.5)
    """
    if not isinstance(text, str):
        raise InvalidType("text", "a string of JSON", text)
    if len(text) > LONGEST or len(text.encode("utf-8", "surrogatepass")) > LONGEST:
        raise InvalidArgument("text", f"at most {LONGEST} bytes", f"{len(text)} characters")
    document = read_json(text, "text", longest=LONGEST)
    if not isinstance(document, dict) or set(document) != {"schema", "mechanism"}:
        raise InvalidArgument("document", 'an object with the keys "schema" and "mechanism"', _outline(document))
    if type(document["schema"]) is not int or document["schema"] != SCHEMA:
        raise InvalidArgument("schema", f"{SCHEMA} (the only version known here)", document["schema"])
    return _mechanism(document["mechanism"], "mechanism")


# -- writing -------------------------------------------------------------------------------------------------


def _encoded(value: object, where: str) -> Any:
    if isinstance(value, Value):
        name = registry.json_name_of(type(value))
        if name is None:
            instead = "register its class first: dptally.register(cls, json=...)"
            raise InvalidType(where, "a mechanism that JSON documents know", value, instead)
        fields = {key: _encoded(entry, f"{where}.{key}") for key, entry in value.parameters().items()}
        return {"name": name, **fields}
    if isinstance(value, Adjacency):
        return value.value
    if isinstance(value, tuple):
        return [_encoded(entry, f"{where}[{i}]") for i, entry in enumerate(value)]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, (int, float, str)):
        return value
    raise InvalidType(
        where,
        "a number, a mechanism or a table of them (a function cannot be written down)",
        value,
        "use Profile(points=...)",
    )


# -- reading -------------------------------------------------------------------------------------------------


def _mechanism(value: object, where: str) -> Mechanism:
    built = _value(value, where)
    if not isinstance(built, Mechanism):
        raise InvalidType(where, "an object that describes a mechanism", built)
    return built


def _value(value: object, where: str) -> Value:
    if not isinstance(value, dict):
        raise InvalidType(where, "an object that describes a mechanism", _outline(value))
    name = value.get("name")
    declared = registry.find_json(name) if isinstance(name, str) else None
    if declared is None:
        raise InvalidArgument(f"{where}.name", f"one of {registry.json_names()}", name)
    given = {key: entry for key, entry in value.items() if key != "name"}
    _check_fields(declared, given, where)
    decoded = {key: _decoded(entry, f"{where}.{key}", declared.takes_words(key)) for key, entry in given.items()}
    try:
        built = declared.target(**decoded)
    except (DptallyError, ValueError, TypeError) as error:  # a constructor from outside raises what it likes
        raise InvalidArgument(where, f"a valid {name}", given, str(error)) from error
    if not isinstance(built, Value):
        raise InvalidType(where, "an object that describes a mechanism", built)
    return built


def _check_fields(declared: registry.Declaration, given: dict[str, object], where: str) -> None:
    """That no field is unknown and none is missing."""
    known = inspect.signature(declared.target).parameters
    for key in given:
        if key not in known:
            raise InvalidArgument(f"{where}.{key}", f"one of the fields {sorted(known)} of {declared.json}", key)
    for key, parameter in known.items():
        if parameter.default is inspect.Parameter.empty and key not in given:
            raise InvalidArgument(f"{where}.{key}", f"given ({declared.json} needs it)", sorted(given))


def _decoded(value: object, where: str, words: bool = False) -> object:
    """A Python value; ``words``: whether a word or a flag may stand here."""
    if isinstance(value, dict):
        return _value(value, where)
    if isinstance(value, list):
        return tuple(_decoded(entry, f"{where}[{i}]", words) for i, entry in enumerate(value))
    if isinstance(value, str):
        if value in ("inf", "-inf"):
            return float(value)
        if value in _ADJACENCIES:
            return _ADJACENCIES[value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if words and isinstance(value, (str, bool)):
        return value
    raise InvalidType(where, "a number, a list or a mechanism", value)


def _outline(value: object) -> object:
    """What to show of a value in an error: the keys of an object, never all of it."""
    return sorted(map(str, value))[:8] if isinstance(value, dict) else value
