"""The one reader of JSON from outside: size, depth, numbers and duplicate keys are checked, and whatever is
wrong is an InvalidArgument.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from dptally.errors import InvalidArgument, InvalidType

__all__ = ["DEEPEST", "read_json"]

DEEPEST = 50  # brackets inside brackets
_DIGITS = 400  # of an integer
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)


def read_json(text: object, argument: str, *, longest: int, deepest: int = DEEPEST) -> Any:
    """The value of a JSON text.

    >>> read_json('{"a": [1, 2.5]}', "text", longest=100)
    {'a': [1, 2.5]}
    """
    if not isinstance(text, str):
        raise InvalidType(argument, "a string of JSON", type(text).__name__)
    if len(text) > longest:
        raise InvalidArgument(argument, f"at most {longest} characters of JSON", f"{len(text)} characters")
    if text.count("[") + text.count("{") > deepest and depth_of(text) > deepest:
        raise InvalidArgument(argument, f"at most {deepest} brackets deep", "a deeper document")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        requirement, value = "valid JSON", f"{error.msg} at line {error.lineno} column {error.colno}"
    except _Unfit as error:
        requirement, value = error.requirement, error.value
    raise InvalidArgument(argument, requirement, value)


def depth_of(text: str) -> int:
    """How deep brackets stand in brackets; those inside strings do not count."""
    depth = deepest = 0
    for token in _TOKENS.finditer(text):
        first = text[token.start()]
        if first in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif first in "]}":
            depth -= 1
    return deepest


class _Unfit(ValueError):
    """Something that JSON may say and a document here may not."""

    def __init__(self, requirement: str, value: str) -> None:
        super().__init__(requirement, value)
        self.requirement, self.value = requirement, value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Unfit("free of duplicate keys", next(name for name in names if names.count(name) > 1)[:40])
    return found


def _constant(text: str) -> float:
    raise _Unfit('free of NaN and Infinity (where an infinite number makes sense, it is the text "inf")', text)


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _Unfit('made of numbers that a double can hold (infinity is the text "inf")', text[:40])
    return value


def _integer(text: str) -> int:
    if len(text) > _DIGITS:
        raise _Unfit(f"made of integers of at most {_DIGITS} digits", f"{len(text)} digits")
    return int(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_float=_number, parse_int=_integer
)
