"""What the explorer is asked: read from an address, strictly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dptally import checks
from dptally.errors import InvalidArgument

__all__ = ["DEFAULTS", "Question", "number"]

DEFAULTS = {
    "plan": "",
    "noise": "1.0",
    "rate": "0.01",
    "steps": "1000",
    "delta": "1e-5",
    "target": "1",
    "records": "60000",
}
_LONGEST = 40  # characters of a number


def number(given: Mapping[str, str], name: str) -> float | None:
    """A field as a number, None where it is left empty."""
    text = given.get(name, "").strip()
    if not text:
        return None
    try:
        value = float(text) if len(text) <= _LONGEST else math.nan
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise InvalidArgument(name, "a number", text[:_LONGEST])
    return value


def _required(given: Mapping[str, str], name: str) -> float:
    value = number(given, name)
    return float(DEFAULTS[name]) if value is None else value


def _whole(given: Mapping[str, str], name: str, least: int) -> int:
    """A count; 1e6 is one, 1.5 is none."""
    value = _required(given, name)
    if not value.is_integer():
        raise InvalidArgument(name, "a whole number", given.get(name))
    return checks.count(name, int(value), least)


@dataclass(frozen=True, slots=True)
class Question:
    """A plan text and what is asked of it. A plan that is given wins over the numbers of the form."""

    plan: str
    delta: float
    target: float
    records: int

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Question:
        """Read from the fields of an address."""
        delta = checks.probability("delta", _required(given, "delta"))
        text = given.get("plan", "").strip() or cls._of_form(given)
        target = checks.positive("target", _required(given, "target"))
        return cls(text, delta, target, _whole(given, "records", 2))

    @staticmethod
    def _of_form(given: Mapping[str, str]) -> str:
        noise = checks.positive("noise", _required(given, "noise"))
        rate = checks.probability("rate", _required(given, "rate"))
        return f"{_whole(given, 'steps', 1)} * poisson(gaussian({noise!r}), {rate!r})"

    @staticmethod
    def said(given: Mapping[str, str]) -> dict[str, str]:
        """What stands in the form: what was given, or the default."""
        return {name: given.get(name, "").strip() or default for name, default in DEFAULTS.items()}

    def fields(self) -> dict[str, Any]:
        """The form after it was read."""
        return {"plan": self.plan, "delta": f"{self.delta:g}"}
