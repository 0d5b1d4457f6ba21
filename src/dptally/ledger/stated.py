"""What a plan or a release is stated for, against what the account promises: adjacency and privacy unit.

A bare mechanism typed by hand carries no adjacency: its sensitivity is the caller's statement under the
account's. A mechanism that names one (sampling mixes datasets, so it must) holds for that one alone, and a
release knows both its adjacency and its unit.
"""

from __future__ import annotations

from typing import Any

from dptally.errors import DptallyError, TermsMismatch, Unanswerable
from dptally.law.adjacency import ADD_REMOVE, REPLACE, Adjacency
from dptally.ledger.terms import ROW, Terms
from dptally.mechanisms.composed import Composed
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.profile import Profile
from dptally.mechanisms.stated_for import adjacencies, fixed_adjacency

__all__ = ["check_plan", "check_release"]

_WORDS = {
    ADD_REMOVE: "one record added or removed (ADD_REMOVE)",
    REPLACE: "one record replaced (REPLACE)",
}


def check_plan(dataset: str, terms: Terms, plan: Mechanism) -> None:
    """Refuse a plan that holds for another adjacency than the account's, and say what would be valid."""
    other = adjacencies(plan) - {terms.adjacency}
    if not other:
        return
    (stated,) = other
    raise TermsMismatch(
        dataset, "the plan", _WORDS[stated], _WORDS[terms.adjacency], _conversion(plan, terms.adjacency)
    )


def check_release(dataset: str, terms: Terms, query: str, adjacency: Adjacency | None, unit: str) -> None:
    """Refuse a release that was made for another adjacency (None: it holds for both) or privacy unit."""
    what = f"the release ({query})"
    if adjacency is not None and adjacency is not terms.adjacency:
        instead = (
            f"Release it with adjacency={terms.adjacency!r} if it takes one; otherwise it needs an account that was "
            f"created with adjacency={adjacency!r}."
        )
        if terms.adjacency is REPLACE:
            instead += f" {_TWO_STEPS}"
        stated = _WORDS.get(adjacency, repr(adjacency))
        raise TermsMismatch(dataset, what, stated, _WORDS[terms.adjacency], instead)
    if unit != terms.unit:
        raise TermsMismatch(
            dataset, what, f"the unit {unit!r}", f"the unit {terms.unit!r}", _other_unit(unit, terms.unit)
        )


_TWO_STEPS = (
    "A record replaced is one removed and one added, so (epsilon, delta) for ADD_REMOVE is valid here as "
    "ApproxDP(2 * epsilon, (1 + exp(epsilon)) * delta)."
)


def _conversion(plan: Mechanism, wanted: Adjacency) -> str:
    """The same sampling stated under the account's adjacency where a theorem covers it."""
    try:
        restated = _restated(plan, wanted)
        restated.directions()
    except (DptallyError, TypeError):
        restated = None
    said = [] if restated is None else [f"Stated for this account it is {_short(restated)}."]
    if wanted is REPLACE:
        said.append(_TWO_STEPS)
    elif restated is None:
        said.append("No conversion is valid: a guarantee for replaced records says nothing of one record more or less.")
    return " ".join(said)


def _restated(value: Any, wanted: Adjacency) -> Any:
    if isinstance(value, Adjacency):
        return wanted
    if isinstance(value, Composed):
        return Composed.of((_restated(part, wanted), n) for part, n in value.parts)
    if fixed_adjacency(value) not in (None, wanted) or isinstance(value, Profile):  # a table holds for what it says
        raise Unanswerable(f"{type(value).__name__} is not known under {wanted!r}")
    if isinstance(value, Mechanism) and adjacencies(value):
        return type(value)(**{name: _restated(inside, wanted) for name, inside in value.parameters().items()})
    if isinstance(value, (tuple, list)):
        return type(value)(_restated(inside, wanted) for inside in value)
    return value


def _other_unit(stated: str, account: str) -> str:
    if stated == ROW:
        return (
            f"If every person has one record in the data, say so: unit={account!r}. Where a person has at most k "
            "records, pay for the group of k: epsilon becomes k * epsilon, rho becomes k^2 * rho, mu becomes k * mu."
        )
    if account == ROW:
        return (
            "What protects a person protects each of her rows: pay for its mechanism as a plan typed by hand and keep "
            "the bare value, ledger.answer(dataset, mechanism, lambda: release.count(...).value)."
        )
    return "The two name persons by different columns; no conversion is valid."


def _short(plan: Mechanism) -> str:
    text = repr(plan)
    return text if len(text) <= 300 else text[:297] + "..."
