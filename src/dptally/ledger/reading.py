"""Reading back what the ledger wrote: JSON that somebody may have edited."""

from __future__ import annotations

from typing import Any

from dptally.documents import read_json
from dptally.errors import InvalidArgument

__all__ = ["BODY_LIMIT", "HEAD_LIMIT", "VALUE_DEPTH", "VALUE_LIMIT", "read_list", "read_object", "read_whole"]

VALUE_LIMIT = 1 << 20  # characters of JSON of a stored value: a ledger is not a data store
VALUE_DEPTH = 40  # brackets inside brackets of a stored value
BODY_LIMIT = 8 << 20  # characters of an entry: a plan and a value, escaped
HEAD_LIMIT = 64 << 20  # characters of a head: a million datasets


def read_object(text: str, argument: str = "body", longest: int = BODY_LIMIT) -> dict[str, Any]:
    found = read_json(text, argument, longest=longest)
    if not isinstance(found, dict):
        raise InvalidArgument(argument, "a JSON object", type(found).__name__)
    return found


def read_list(text: str, argument: str = "row", longest: int = BODY_LIMIT) -> list[Any]:
    found = read_json(text, argument, longest=longest)
    if not isinstance(found, list):
        raise InvalidArgument(argument, "a JSON list", type(found).__name__)
    return found


def read_whole(argument: str, value: object, least: int = 0) -> int:
    """A whole number that a database can hold."""
    if type(value) is not int or not least <= value < 2**63:
        raise InvalidArgument(argument, f"a whole number from {least} to 2^63 - 1", value)
    return value
