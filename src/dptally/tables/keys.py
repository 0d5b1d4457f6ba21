"""Which groups are published: those of a public list, or those with enough persons.

**Private keys by a threshold.** Count persons per key (each adds 1 to at most k keys), add noise Z, publish the
keys whose noisy count is at least T, with that count. A key that others have too moves by 1. A key that only
one person has appears with probability delta0 = P(1 + Z >= T), and never without her. So

    k * (noise of the count and of everything else in the cell) + k * ApproxDP(0, delta0)

dominates both kinds; under REPLACE 2k of each. [Korolova et al. 2009; Wilson et al. 2020]

**The optimal rule (k = 1).** A key with n persons appears with probability p(n), the largest function with
p(0) = 0 that is (epsilon, delta)-close between n and n + 1 [Desfontaines, Voss, Gipson, Mandayam 2022, Thm. 1].
Here e^epsilon is a rational number below it, p(n) is rounded down to a multiple of 2^-200, and all four
inequalities are checked in rationals for every n; the coin is exact.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

from dptally import checks, mechanisms, noise
from dptally.errors import InvalidArgument, InvalidType
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.mechanisms import Mechanism
from dptally.tables.kinds import Column, Kind
from dptally.tables.measures import Ask, Noisy

__all__ = ["Key", "PrivateKeys", "Rule", "private", "public_keys", "selection_chance"]

Key = tuple[Any, ...]
_MOST = 50_000
_BITS = 200


@dataclass(frozen=True, slots=True)
class PrivateKeys:
    """Groups are published if they have enough persons. Made by :func:`private`."""

    threshold: int | None
    ask: Ask
    epsilon: float | None = None
    delta: float | None = None


def private(
    threshold: int | None = None,
    *,
    within: object = None,
    sigma: object = None,
    scale: object = None,
    epsilon: float | None = None,
    delta: float | None = None,
) -> PrivateKeys:
    """Keys that are not listed beforehand: a group is published if its noisy number of persons is at least
    ``threshold`` (the noise is that of the query's persons(), or the one given here); or, with ``epsilon`` and
    ``delta``, by the optimal rule, for tables with max_groups=1.

    >>> private(threshold=60, sigma=8).threshold
    60
    """
    if threshold is not None:
        if epsilon is not None or delta is not None:
            raise InvalidArgument("threshold", "given alone, or epsilon and delta without it", threshold)
        return PrivateKeys(checks.count("threshold", threshold, least=2), Ask.of(within, sigma, scale))
    if epsilon is None or delta is None or not Ask.of(within, sigma, scale).open:
        raise InvalidArgument("threshold", "given, or epsilon and delta for the optimal rule", threshold)
    return PrivateKeys(None, Ask(), checks.positive("epsilon", epsilon), checks.open_probability("delta", delta))


def selection_chance(count: Noisy, threshold: int) -> float:
    """delta0 = P(1 + Z >= T), rounded up."""
    parameter, steps = count.parameter, threshold - 1  # P(Z >= T - 1) = P(|Z| > T - 2) / 2
    from dptally.tables.accuracy import tail

    above = tail(count.noise.gaussian, parameter, steps - 1) / 2 if steps >= 1 else 1.0
    chance = above * (1 + 2.0**-30)
    if not chance < 1e-2:
        raise InvalidArgument("threshold", "far enough above the noise (a group of one appears too often)", threshold)
    return chance


def selection_mechanism(rule: PrivateKeys, count: Noisy | None, k: int, adjacency: Adjacency) -> Mechanism:
    """What the choice of groups costs beside the noise of the counts."""
    times = k if adjacency is ADD_REMOVE else 2 * k
    if rule.threshold is None:
        assert rule.epsilon is not None
        assert rule.delta is not None
        return times * mechanisms.ApproxDP(rule.epsilon, rule.delta)
    assert count is not None
    return times * mechanisms.ApproxDP(0.0, selection_chance(count, rule.threshold))


@dataclass(frozen=True, slots=True)
class Rule:
    """p(n) for n = 0, 1, ..., the last of which is 1."""

    chances: tuple[Fraction, ...]

    def keeps(self, persons: int) -> bool:
        chance = self.chances[min(max(persons, 0), len(self.chances) - 1)]
        return bool(noise.bernoulli(chance)) if 0 < chance < 1 else chance == 1


@lru_cache(maxsize=64)
def optimal_rule(epsilon: float, delta: float) -> Rule:
    """The largest probabilities of keeping a key, rounded down, with all inequalities checked.

    >>> [round(float(p), 4) for p in optimal_rule(1.0, 0.1).chances]
    [0.0, 0.1, 0.3718, 0.8057, 0.9653, 1.0]
    """
    grow = _exp_down(epsilon)
    small = Fraction(delta)
    chances = [Fraction(0)]
    while chances[-1] < 1:
        p = chances[-1]
        best = min(grow * p + small, 1 - (1 - p - small) / grow, Fraction(1))
        chances.append(Fraction(math.floor(best * 2**_BITS), 2**_BITS) if best < 1 else best)
        if len(chances) > 10**6:
            raise InvalidArgument("epsilon", "large enough beside delta for a rule of a million persons", epsilon)
    for p, q in pairwise(chances):
        close = q <= grow * p + small and p <= grow * q + small
        if not (close and 1 - q <= grow * (1 - p) + small and 1 - p <= grow * (1 - q) + small):
            raise AssertionError("the rule is not what its theorem says")
    return Rule(tuple(chances))


def _exp_down(epsilon: float) -> Fraction:
    """A rational number just below e^epsilon: the series of e^(epsilon / 2^s), squared s times, rounded down."""
    halvings = max(0, math.frexp(epsilon)[1] + 8)
    x = Fraction(epsilon) / 2**halvings
    term, total = Fraction(1), Fraction(1)
    for n in range(1, 40):
        term = term * x / n
        total += term
    total = Fraction(math.floor(total * 2**_BITS), 2**_BITS)
    for _ in range(halvings):
        total = Fraction(math.floor(total * total * 2**_BITS), 2**_BITS)
    return total


# -- public keys ---------------------------------------------------------------------------------------------


def public_keys(columns: Sequence[Column], keys: object) -> tuple[Key, ...]:
    """The declared groups in their order: a list for one column, a mapping of lists (all combinations) or a
    list of tuples for several.
    """
    if keys is None:
        raise InvalidArgument(
            "keys", "given: the groups to publish, or dp.private(threshold=...)", keys, "write keys=['A', 'B']"
        )
    rows = _rows(columns, keys)
    if not rows:
        raise InvalidArgument("keys", "at least one group", keys)
    if len(rows) > _MOST:
        raise InvalidArgument("keys", f"at most {_MOST} groups", len(rows))
    found = tuple(tuple(_value(column, value) for column, value in zip(columns, row, strict=True)) for row in rows)
    if len(set(found)) != len(found):
        raise InvalidArgument("keys", "different from one another", keys)
    return found


def _rows(columns: Sequence[Column], keys: object) -> list[tuple[object, ...]]:
    if isinstance(keys, Mapping):
        names = {str(name).lower(): list(_listed(values)) for name, values in keys.items()}
        if set(names) != {column.name.lower() for column in columns}:
            raise InvalidArgument("keys", f"a list for each of {', '.join(c.name for c in columns)}", list(keys))
        rows: list[tuple[object, ...]] = [()]
        for column in columns:
            rows = [(*row, value) for row in rows for value in names[column.name.lower()]]
            if len(rows) > _MOST:
                raise InvalidArgument("keys", f"at most {_MOST} groups", len(rows))
        return rows
    listed = list(_listed(keys))
    if len(columns) == 1:
        return [(value,) for value in listed]
    for row in listed:
        if not isinstance(row, (tuple, list)) or len(row) != len(columns):
            raise InvalidArgument("keys", "a dictionary of lists, or tuples of one value for each column", row)
    return [tuple(row) for row in listed]  # type: ignore[arg-type]


def _listed(values: Any) -> Sequence[object]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise InvalidType("keys", "a list of groups", values)
    return [value.item() if hasattr(value, "item") and not hasattr(value, "__len__") else value for value in values]


def _value(column: Column, value: object) -> Hashable:
    """A key in the kind of its column."""
    if column.kind is Kind.INTEGER and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62:
        return value
    if column.kind is Kind.BOOLEAN and isinstance(value, bool):
        return value
    if column.kind is Kind.TEXT and isinstance(value, str):
        return str(value)
    if column.kind is Kind.DATE and isinstance(value, date) and not isinstance(value, datetime):
        return value
    if column.kind is Kind.DATE and isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise InvalidArgument("keys", f"of the kind of column {column.name!r}, {column.kind.value}", value)


def check_kinds(columns: Sequence[Column]) -> None:
    """A float is no key: its equality differs between engines, and so do its texts."""
    for column in columns:
        if not column.kind.groups:
            raise InvalidArgument(
                "columns",
                f"text, integers, truth values or dates to group by; {column.name!r} is {column.kind.value}",
                column.name,
            )
