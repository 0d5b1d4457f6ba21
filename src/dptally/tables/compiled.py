"""A query made ready: bounds, noise, account and SQL, all from parameters; then run: SQL, noise, stored numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from dptally.errors import EngineFailed, InvalidArgument
from dptally.mechanisms import Mechanism
from dptally.tables import core
from dptally.tables.aggregates import Aggregate, Distinct, Persons, Rows
from dptally.tables.bins import BRANCHES, Bins
from dptally.tables.engine import Engine, integer, run
from dptally.tables.keys import Key, PrivateKeys, optimal_rule, selection_mechanism
from dptally.tables.kinds import Column, Kind
from dptally.tables.measures import Ask, Measure, Noisy, Setting, budget_of, noisy, plan_of, solve
from dptally.tables.steps import EXACT

__all__ = ["Asked", "Compiled", "compile_query"]

_MOST_NUMBERS = 60_000  # a ledger stores the answer
_MOST_PRIVATE = 2_000  # the first of the groups that were chosen, by name
_LONGEST_KEY = 200


@dataclass(frozen=True, slots=True)
class Asked:
    """What a query asks for, checked; the rest follows from it."""

    frame: core.Frame
    aggregates: tuple[Aggregate, ...]
    rule: PrivateKeys | None
    cost: Mechanism | None
    pure: bool  # whether the account pays for pure DP only: noise asked for by width is then Laplace


@dataclass(frozen=True, slots=True)
class Compiled:
    """The aggregates with their noisy measures, the account of all, and the SQL that is known beforehand."""

    asked: Asked
    measures: tuple[tuple[Noisy, ...], ...]
    presence: Noisy | None  # what private keys are chosen by
    presence_index: int | None  # the aggregate whose count it is, if it is one
    plan: Mechanism

    @property
    def frame(self) -> core.Frame:
        return self.asked.frame

    @property
    def sql(self) -> tuple[str, ...]:
        """The texts that will be sent; those of bins under private keys are known after the choice of keys."""
        found = [self._totals()] if self._plain() or self.asked.rule is not None else []
        return (*found, *(self._separate(self.frame, index) for index in self._others()))

    def _plain(self) -> list[tuple[int, int]]:
        """(aggregate, measure) of the plain numbers, in the order of the SQL."""
        return [
            (i, j)
            for i, aggregate in enumerate(self.asked.aggregates)
            for j in range(len(self.measures[i]))
            if aggregate.shape == "totals"
        ]

    def _others(self) -> list[int]:
        return [i for i, aggregate in enumerate(self.asked.aggregates) if aggregate.shape != "totals"]

    def _totals(self, *, integers: bool = False) -> str:
        return core.totals_sql(self.frame, self._counted(), integers=integers)

    def _counted(self) -> list[Measure]:
        measures = [self.measures[i][j].measure for i, j in self._plain()]
        return measures if self.asked.rule is None else [*measures, Measure("presence", 0, 1)]

    def _separate(self, frame: core.Frame, index: int) -> str:
        aggregate, measure = self.asked.aggregates[index], self.measures[index][0].measure
        if isinstance(aggregate, Bins):
            return core.bins_sql(frame, aggregate, measure)
        assert isinstance(aggregate, Distinct)
        column = frame.setting.schema.get("column", aggregate.column)
        return core.distinct_sql(frame, aggregate, column)

    # -- the run ---------------------------------------------------------------------------------------------

    def run(self, engine: Engine) -> dict[str, Any]:
        """Exact integers from the engine, noise from here: what may be published, ready to be stored."""
        exact: dict[Key, list[int]] = {}
        plain = self._plain()
        if plain or self.asked.rule is not None:
            exact = self._exact(engine, run(engine, self._totals()))
            if self._rounded(exact):
                exact = self._exact(engine, run(engine, self._totals(integers=True)))
        keys, counts = self._published(exact)
        numbers: dict[str, list[list[int]]] = {}
        for place, (i, j) in enumerate(plain):
            measure = self.measures[i][j]
            if i == self.presence_index:
                numbers[measure.measure.name] = [[counts[key]] for key in keys]
            else:
                drawn = _noised(measure, [exact[key][place] if key in exact else 0 for key in keys])
                numbers[measure.measure.name] = [[value] for value in drawn]
        frame = self._frame_for(keys)
        for index in self._others():
            numbers[self.measures[index][0].measure.name] = self._cells(engine, frame, index, keys)
        stored = None if self.asked.rule is None else [[_plain_json(value) for value in key] for key in keys]
        return {"keys": stored, "numbers": numbers}

    def _frame_for(self, keys: Sequence[Key]) -> core.Frame:
        """Once the keys are chosen they are public."""
        if self.asked.rule is None:
            return self.frame
        setting = replace(self.frame.setting, groups=max(len(keys), 1))
        return replace(self.frame, keys=tuple(keys), setting=setting)

    def _rounded(self, exact: Mapping[Key, list[int]]) -> bool:
        """Whether a sum that was added up in doubles is too large to be surely exact (steps.py, real_sql)."""
        places = [i for i, measure in enumerate(self._counted()) if measure.row_real and self.frame.person is None]
        return any(abs(values[i]) > EXACT for values in exact.values() for i in places)

    def _exact(self, engine: Engine, rows: Sequence[tuple[Any, ...]]) -> dict[Key, list[int]]:
        """The groups of the engine's answer. A group that was not asked for, or twice, is no answer."""
        frame, found = self.frame, {}
        lead, width = len(frame.key_names), len(self._counted())
        for row in rows:
            key = self._key(engine, row[:lead])
            if frame.keys is None and not all(map(_can_be_written, key)):
                continue
            if len(row) != lead + width or key in found:
                raise EngineFailed(f"{engine.name} answered something that the core query cannot give")
            values = row[lead:] if lead else [0 if value is None else value for value in row]  # sums over no rows
            found[key] = [integer(engine, value) for value in values]
        return found

    def _key(self, engine: Engine, lead: Sequence[Any]) -> Key:
        frame = self.frame
        if not frame.columns:
            return ()
        if frame.keys is not None:
            code = integer(engine, lead[0])
            if not 0 <= code < len(frame.keys):
                raise EngineFailed(f"{engine.name} answered something that the core query cannot give")
            return frame.keys[code]
        return tuple(_from_engine(engine, column, value) for column, value in zip(frame.columns, lead, strict=True))

    def _published(self, exact: Mapping[Key, list[int]]) -> tuple[list[Key], dict[Key, int]]:
        """The keys to publish in their order, and the noisy counts that chose them."""
        rule = self.asked.rule
        if rule is None:
            return list(self.frame.keys or ((),)), {}
        candidates = sorted(exact)
        if rule.threshold is None:
            assert rule.epsilon is not None
            assert rule.delta is not None
            chances = optimal_rule(rule.epsilon, rule.delta)
            return [key for key in candidates if chances.keeps(exact[key][-1])][:_MOST_PRIVATE], {}
        assert self.presence is not None
        drawn = _noised(self.presence, [exact[key][-1] for key in candidates])
        counts = dict(zip(candidates, drawn, strict=True))
        return [key for key in candidates if counts[key] >= rule.threshold][:_MOST_PRIVATE], counts

    def _cells(self, engine: Engine, frame: core.Frame, index: int, keys: Sequence[Key]) -> list[list[int]]:
        """Counts of all cells of all keys, with noise: bins of every level, or one number."""
        if not keys:
            return []
        measure = self.measures[index][0]
        rows = run(engine, self._separate(frame, index))
        levels, aggregate = measure.measure.levels, self.asked.aggregates[index]
        starts = np.cumsum([0, *levels])
        table = np.zeros((len(keys), int(starts[-1])), dtype=object)
        lead = 1 if frame.columns else 0
        for row in rows:
            code = integer(engine, row[0]) if lead else 0
            level, cell = (
                (integer(engine, row[lead]), integer(engine, row[lead + 1])) if len(row) - lead == 3 else (0, 0)
            )
            if not (0 <= code < len(keys) and 0 <= level < len(levels) and 0 <= cell < levels[level]):
                raise EngineFailed(f"{engine.name} answered something that the core query cannot give")
            table[code, starts[level] + cell] = integer(engine, row[-1])
        if isinstance(aggregate, Bins) and not measure.measure.pairs:
            _fill_levels(table, levels)
        drawn = _noised(measure, table.ravel().tolist())
        width = int(starts[-1])
        return [drawn[i * width : (i + 1) * width] for i in range(len(keys))]


def _fill_levels(table: Any, levels: Sequence[int]) -> None:
    """The upper levels of a tree from its leaves: each person is in one leaf of a group, so in one node a level."""
    start = 0
    for below, above in pairwise(levels):
        for node in range(above):
            first, last = start + node * BRANCHES, start + min((node + 1) * BRANCHES, below)
            table[:, start + below + node] = table[:, first:last].sum(axis=1)
        start += below


def _noised(measure: Noisy, exact: Sequence[int]) -> list[int]:
    steps = np.array([measure.on_grid(value) for value in exact], dtype=np.int64)
    return [int(value) for value in measure.noise.add_each(steps)]


def _can_be_written(value: object) -> bool:
    """A rule about the value alone: groups whose name is too long or not printable are not published.

    Nor those with U+FFFD, which Spark's driver writes for bytes that are not UTF-8: two groups may come under one name.
    """
    return not isinstance(value, str) or (len(value) <= _LONGEST_KEY and value.isprintable() and "\ufffd" not in value)


def _plain_json(value: object) -> object:
    return value.isoformat() if isinstance(value, date) else value


def _from_engine(engine: Engine, column: Column, value: Any) -> Any:
    kinds = {Kind.TEXT: str, Kind.BOOLEAN: bool, Kind.DATE: date, Kind.INTEGER: int}
    if not isinstance(value, kinds[column.kind]):
        raise EngineFailed(f"{engine.name} answered something that the core query cannot give")
    return value


def key_from_json(columns: Sequence[Column], stored: Sequence[Any]) -> Key:
    pairs = zip(columns, stored, strict=True)
    return tuple(date.fromisoformat(value) if column.kind is Kind.DATE else value for column, value in pairs)


# -- from parameters to noise --------------------------------------------------------------------------------


def compile_query(asked: Asked) -> Compiled:
    """Bounds, noise and account. Nothing here depends on data."""
    if not asked.aggregates:
        raise InvalidArgument("query", "one that asks for something", "none", "add .persons(), .sum(...), ...")
    setting = asked.frame.setting
    asks = _asks(asked)
    found = tuple(
        _with_noise(aggregate, ask, setting, index, asked.pure)
        for index, (aggregate, ask) in enumerate(zip(asked.aggregates, asks, strict=True))
    )
    presence, presence_index = _presence_noise(asked, found)
    plan = plan_of([measure for group in found for measure in group])
    if asked.rule is not None:
        if presence is not None and presence_index is None:
            plan = plan + presence.mechanism
        k = setting.max_groups if setting.person else 1
        plan = plan + selection_mechanism(asked.rule, presence, k, setting.adjacency)
    made = Compiled(asked, found, presence, presence_index, plan)
    _check_size(made)
    len(made.sql)  # what no SQL can be written for is refused here, before any debit
    return made


def _asks(asked: Asked) -> list[Ask]:
    """What each aggregate is to have; a cost of the whole query is shared by those that say nothing."""
    silent = [aggregate.ask for aggregate in asked.aggregates if aggregate.ask.open]
    if not silent:
        if asked.cost is not None:
            raise InvalidArgument("cost", "left out where every aggregate has its own noise", asked.cost)
        return [replace(aggregate.ask, weight=Fraction(1)) for aggregate in asked.aggregates]
    if asked.cost is None:
        raise InvalidArgument("within, sigma, scale", "given for each aggregate, or cost= for the query", None)
    everything = sum((ask.weight for ask in silent), Fraction(0))
    return [
        replace(aggregate.ask, cost=asked.cost, weight=aggregate.ask.weight / everything)
        if aggregate.ask.open
        else replace(aggregate.ask, weight=Fraction(1))
        for aggregate in asked.aggregates
    ]


def _share(weight: Fraction) -> float:
    """The part of a cost, a little below the exact one so that all parts together stay within it."""
    return float(weight) * (1 - 2.0**-40)


def _with_noise(aggregate: Aggregate, ask: Ask, setting: Setting, index: int, pure: bool) -> tuple[Noisy, ...]:
    measures = aggregate.measures(setting, index)
    if ask.cost is not None:
        gaussian, target = budget_of(ask.cost)
        size = solve(measures, setting, gaussian, target * _share(ask.weight))
    elif ask.within is not None:
        gaussian = not pure
        size = aggregate.size_within(setting, gaussian)
    else:
        gaussian = ask.sigma is not None
        chosen = ask.sigma if ask.sigma is not None else ask.scale
        assert chosen is not None
        size = float(chosen)
    return tuple(noisy(measure, setting, gaussian, size) for measure in measures)


def _presence_noise(asked: Asked, found: Sequence[Sequence[Noisy]]) -> tuple[Noisy | None, int | None]:
    """The noisy count that private keys are chosen by: one of the query's own, or one that is asked for it."""
    rule, setting = asked.rule, asked.frame.setting
    if rule is None:
        return None, None
    if rule.threshold is None:
        if setting.person and setting.max_groups != 1:
            raise InvalidArgument(
                "keys", "dp.private(threshold=...): the optimal rule is for max_groups=1", "epsilon, delta"
            )
        return None, None
    if rule.ask.open:
        wanted = Persons if setting.person else Rows
        for index, aggregate in enumerate(asked.aggregates):
            if isinstance(aggregate, wanted):
                return found[index][0], index
        word = "persons" if setting.person else "rows"
        raise InvalidArgument(
            "keys", f"given noise, or a query with {word}(): dp.private(threshold=60, sigma=8)", rule.threshold
        )
    count = Persons("presence", rule.ask) if setting.person else Rows("presence", rule.ask)
    return _with_noise(count, rule.ask, setting, 0, asked.pure)[0], None


def _check_size(made: Compiled) -> None:
    groups = made.frame.setting.groups or _MOST_PRIVATE
    numbers = groups * sum(sum(measure.measure.levels) for group in made.measures for measure in group)
    if numbers > _MOST_NUMBERS:
        raise InvalidArgument("keys, bins", f"few enough for {_MOST_NUMBERS} numbers in all", numbers)
