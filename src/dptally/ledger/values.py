"""Released values as JSON and back: what dptally's own functions return comes back equal, type and all.

Plain JSON values stand for themselves. Everything else is an object with the one key ``"dptally"``, which says
what it is; a dictionary of the caller's that has this key is wrapped like the rest, so no value can pose as
another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dptally.errors import InvalidArgument, InvalidType
from dptally.law.adjacency import Adjacency
from dptally.ledger.chain import canonical
from dptally.ledger.reading import VALUE_DEPTH, VALUE_LIMIT
from dptally.mechanisms.json import from_json, to_json
from dptally.release import Released

__all__ = ["decoded", "encoded", "releases_in"]

_WIDEST = 10**400  # the reader takes no longer integers
_TAGGED = 3  # brackets that a tagged value takes

_TAG = "dptally"


def encoded(value: Any) -> Any:
    """The value as JSON; what cannot be kept is refused, with a reason that says nothing of the value.

    >>> encoded((1, float("inf")))
    {'dptally': ['tuple', [1, {'dptally': ['float', 'inf']}]]}
    """
    made = _tagged("none", None) if value is None else _Writer().encode(value, 0)
    length = len(canonical(made))
    if length > VALUE_LIMIT:
        raise InvalidArgument("value", f"at most {VALUE_LIMIT} characters of JSON", f"{length} characters")
    return made


def decoded(made: Any) -> Any:
    """The value that ``encoded`` was given."""
    if isinstance(made, list):
        return [decoded(one) for one in made]
    if not isinstance(made, dict):
        return made
    if set(made) != {_TAG} or not _is_tagged(made[_TAG]):  # written before tags were
        return {key: decoded(one) for key, one in made.items()}
    kind, inside = made[_TAG]
    return _READERS[kind](inside)


def releases_in(value: Any, depth: int = 0) -> list[Released]:
    """Every ``Released`` in a value and in the lists and dictionaries that it is made of."""
    if isinstance(value, Released):
        return [value, *releases_in(value.value, depth + 1)]
    if depth > VALUE_DEPTH:
        return []
    if isinstance(value, Mapping):
        return [found for one in value.values() for found in releases_in(one, depth + 1)]
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.dtype.kind == "O"):
        return [found for one in value for found in releases_in(one, depth + 1)]
    return []


# -- writing -------------------------------------------------------------------------------------------------


class _Writer:
    """One value on its way into JSON; it stops when more was written than a ledger keeps."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = VALUE_LIMIT

    def encode(self, value: Any, depth: int) -> Any:
        self.left -= 1
        if self.left < 0:
            raise InvalidArgument("value", f"at most {VALUE_LIMIT} characters of JSON", "more")
        if depth > VALUE_DEPTH:  # in brackets, as they are read
            raise InvalidArgument("value", f"at most {VALUE_DEPTH} brackets deep", "a deeper one")
        if value is None or type(value) in (bool, str):
            return self._text(value)
        if type(value) is int:
            return _integer(value)
        if type(value) is float:
            return value if math.isfinite(value) else _scalar(value, depth)
        if isinstance(value, (list, tuple)):
            plain = isinstance(value, list)
            inside = [self.encode(one, depth + (1 if plain else _TAGGED)) for one in value]
            return inside if plain else _tagged("tuple", inside)
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, Released):
            return self._released(value, depth)
        if isinstance(value, np.generic):
            return self._numpy_scalar(value, depth)
        if isinstance(value, np.ndarray):
            return self._array(value, depth)
        return _scalar(value, depth)

    def _text(self, value: Any) -> Any:
        if type(value) is str:
            self.left -= len(value)
            if any("\ud800" <= character <= "\udfff" for character in value):
                raise InvalidArgument("value", "made of texts that UTF-8 can hold", "a lone surrogate")
        return value

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> Any:
        if not all(type(key) is str for key in value):
            raise InvalidType("value", "made of dictionaries whose keys are texts", "another kind of key")
        tagged = _TAG in value
        inside = {self._text(key): self.encode(one, depth + (_TAGGED if tagged else 1)) for key, one in value.items()}
        return _tagged("dict", inside) if tagged else inside

    def _released(self, value: Released, depth: int) -> Any:
        fields = {
            "adjacency": None if value.adjacency is None else value.adjacency.value,
            "mechanism": to_json(value.mechanism),
            "query": self._text(value.query),
            "unit": self._text(value.unit),
            "value": self.encode(value.value, depth + _TAGGED),
        }
        return _tagged("released", fields)

    def _numpy_scalar(self, value: np.generic, depth: int) -> Any:
        plain = value.item()
        if isinstance(plain, np.generic):  # wider than anything that Python has
            raise _unkept(value)
        return self.encode(plain, depth)

    def _array(self, value: np.ndarray[Any, Any], depth: int) -> Any:
        plain = not isinstance(value, np.ma.MaskedArray) and value.dtype.kind in "biufUO"
        wide = value.dtype.kind == "f" and value.dtype.itemsize > 8
        if not plain or wide or (value.dtype.kind == "O" and value.ndim != 1):
            raise _unkept(value)
        if value.size > self.left:
            raise InvalidArgument("value", f"at most {VALUE_LIMIT} characters of JSON", "more")
        inside = self.encode(value.tolist(), depth + _TAGGED)
        return _tagged("array", {"dtype": value.dtype.str, "shape": list(value.shape), "values": inside})


def _scalar(value: Any, depth: int) -> Any:
    if depth + _TAGGED > VALUE_DEPTH:
        raise InvalidArgument("value", f"at most {VALUE_DEPTH} brackets deep", "a deeper one")
    if type(value) is float:
        if math.isnan(value):
            raise InvalidArgument("value", "made of numbers without NaN", "a NaN")
        return _tagged("float", repr(value))  # an infinity
    if type(value) is Fraction:
        return _tagged("fraction", [str(_integer(value.numerator)), str(_integer(value.denominator))])
    if type(value) is Decimal:
        return _tagged("decimal", str(value))
    if type(value) in (datetime, date):
        return _tagged("datetime" if type(value) is datetime else "date", value.isoformat())
    raise _unkept(value)


def _unkept(value: Any) -> InvalidType:
    kept = "a value that a ledger keeps (numbers, texts, lists, dictionaries, numpy arrays, a Released)"
    return InvalidType("value", kept, type(value).__name__)


def _integer(value: int) -> int:
    if not -_WIDEST < value < _WIDEST:
        raise InvalidArgument("value", "made of integers of at most 400 digits", "a longer one")
    return value


def _tagged(kind: str, inside: Any) -> dict[str, Any]:
    return {_TAG: [kind, inside]}


# -- reading -------------------------------------------------------------------------------------------------


def _is_tagged(inside: Any) -> bool:
    return isinstance(inside, list) and len(inside) == 2 and isinstance(inside[0], str) and inside[0] in _READERS


def _array(fields: Mapping[str, Any]) -> Any:
    dtype, values = np.dtype(fields["dtype"]), decoded(fields["values"])
    if dtype.kind == "O":
        out = np.empty(len(values), dtype=object)
        for place, value in enumerate(values):  # one by one: numpy would open lists inside
            out[place] = value
    else:
        out = np.array(values, dtype=dtype).reshape(fields["shape"])
    out.setflags(write=False)
    return out


def _released(fields: Mapping[str, Any]) -> Released:
    adjacency = None if fields["adjacency"] is None else Adjacency(fields["adjacency"])
    value, mechanism = decoded(fields["value"]), from_json(fields["mechanism"])
    return Released(value, mechanism, fields["query"], adjacency, fields["unit"])


_READERS: dict[str, Callable[[Any], Any]] = {
    "array": _array,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "decimal": Decimal,
    "dict": lambda inside: {key: decoded(one) for key, one in inside.items()},
    "float": float,
    "none": lambda _: None,
    "fraction": lambda inside: Fraction(int(inside[0]), int(inside[1])),
    "released": _released,
    "tuple": lambda inside: tuple(decoded(one) for one in inside),
}
