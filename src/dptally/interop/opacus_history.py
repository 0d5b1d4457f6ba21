"""What opacus writes down: its accountant's history, its state_dict, its checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType
from dptally.mechanisms import Composed, Mechanism, dpsgd

__all__ = ["from_opacus", "history_of", "merged"]

Step = tuple[float, float, int]
_CHECKPOINT = "privacy_accountant_state_dict"


def from_opacus(state: object) -> Composed:
    """The plan of an opacus run: a history of (noise_multiplier, sample_rate, steps), a state_dict of any opacus
    accountant, a checkpoint's dict, or the accountant itself.

    opacus accounts for Poisson sampling and one record added or removed; so does this. An empty history is the
    empty plan, of epsilon 0.

    >>> from_opacus([(1.0, 0.01, 800), (1.2, 0.01, 200)]).epsilon(delta=1e-5) < 1.75
    True
    >>> from_opacus({"history": [], "mechanism": "prv"}).epsilon(delta=1e-5)
    0.0
    """
    parts: list[tuple[Mechanism, int]] = []
    for noise, rate, steps in history_of(state):
        parts.extend(dpsgd(noise, rate, steps).parts)
    return Composed.of(parts)


def history_of(state: object) -> list[Step]:
    """The checked history behind any of these forms; equal steps are merged."""
    found = _history(state)
    if isinstance(found, (str, bytes, Mapping)) or not isinstance(found, Sequence):
        raise InvalidType("history", "a list of (noise_multiplier, sample_rate, steps)", found)
    return merged(_step(entry, place) for place, entry in enumerate(found))


def _history(state: object) -> object:
    if isinstance(state, Mapping):
        if _CHECKPOINT in state:
            return _history(state[_CHECKPOINT])
        if "history" not in state:
            keys = sorted(map(str, state))[:8]
            raise InvalidArgument("state_dict", 'one with the key "history"', keys)
        return state["history"]
    inside = getattr(state, "history", None)
    return state if inside is None else inside


def _step(entry: object, place: int) -> Step:
    where = f"history[{place}]"
    if isinstance(entry, (str, bytes)) or not isinstance(entry, Sequence) or len(entry) != 3:
        raise InvalidType(where, "(noise_multiplier, sample_rate, steps)", entry)
    noise = checks.nonnegative(f"{where}: noise_multiplier", entry[0])
    rate = checks.probability(f"{where}: sample_rate", entry[1])
    return noise, rate, checks.count(f"{where}: steps", _whole(entry[2]))


def _whole(value: Any) -> Any:
    """JSON of other writers may say 800.0 for 800 steps."""
    return int(value) if isinstance(value, float) and math.isfinite(value) and value == int(value) else value


def merged(steps: Any) -> list[Step]:
    """Equal settings counted together, in the order of their first step: the order does not change the cost."""
    counts: dict[tuple[float, float], int] = {}
    for noise, rate, number in steps:
        counts[noise, rate] = counts.get((noise, rate), 0) + number
    return [(noise, rate, number) for (noise, rate), number in counts.items()]
