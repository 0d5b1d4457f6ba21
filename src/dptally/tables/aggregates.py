"""Persons, rows, sums, means, variances: what each asks of the engine, and what its noisy numbers say."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dptally.errors import InvalidArgument
from dptally.release.additive import Additive
from dptally.tables import accuracy, expressions
from dptally.tables.dialect import Dialect
from dptally.tables.measures import Ask, Measure, Noisy, Setting, noisy
from dptally.tables.steps import ROWS, SQUARES, Steps

__all__ = ["Aggregate", "Cell", "Distinct", "Mean", "Persons", "Rows", "Total", "Variance"]

Estimate = tuple[Any, Any, Any]  # value, low, high
_LARGEST = "1.7976931348623157E308"
_Z = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Cell:
    """The noisy numbers of one group: a list for each measure, in steps of the noise's grid."""

    measures: Sequence[Noisy]
    values: Sequence[Sequence[int]]

    def interval(self, index: int, level: float = accuracy.LEVEL) -> tuple[float, float, float]:
        """A plain measure in the column's units: value, low, high."""
        measure, steps = self.measures[index], self.values[index][0]
        wide = accuracy.width(measure.noise.gaussian, measure.parameter, level)
        return tuple(float(number * measure.unit) for number in (steps, steps - wide, steps + wide))  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Aggregate(ABC):
    """One thing to ask of every group. ``label`` begins the names of its columns."""

    label: str
    ask: Ask

    shape: ClassVar[str] = "totals"
    theorem: ClassVar[str] = "bound last"

    @abstractmethod
    def measures(self, setting: Setting, index: int, /) -> tuple[Measure, ...]:
        """The numbers it needs; ``index`` keeps the names of its SQL columns apart."""

    @abstractmethod
    def size_within(self, setting: Setting, gaussian: bool, /) -> float:
        """The noise (in the column's units) with which 95 % of the answers are within what was asked for."""

    @abstractmethod
    def estimates(self, cell: Cell) -> list[Estimate]:
        """What to publish for one group, in the order of ``columns``."""

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.label,)

    @property
    def written(self) -> tuple[str, ...]:
        """All names that an answer has: those of its columns with their error bars, and of the stored numbers."""
        bars = (f"{name}{end}" for name in self.columns for end in ("", "_low", "_high"))
        return (*bars, self.label, *(f"{self.label}.{number}" for number in ("sum", "count", "squares")))

    @property
    def expression(self) -> str:
        """The column or expression that is aggregated."""
        return ""

    def half_width(self, measures: Sequence[Noisy], groups: int, /) -> float | None:
        """At 95 %, of one answer or of all ``groups`` at once; None where it depends on the data."""
        first = measures[0]
        return float(accuracy.all_at_once(first.noise.gaussian, first.parameter, groups) * first.unit)

    def said(self) -> str:
        """In words, for explanations."""
        return self.label


def _within(ask: Ask) -> Fraction:
    assert ask.within is not None
    return ask.within


@dataclass(frozen=True, slots=True)
class _Count(Aggregate):
    """A whole number with whole noise."""

    def size_within(self, _setting: Setting, gaussian: bool, /) -> float:
        return accuracy.widest(gaussian, _within(self.ask))

    def estimates(self, cell: Cell) -> list[Estimate]:
        measure, value = cell.measures[0], int(cell.values[0][0])
        wide = accuracy.width(measure.noise.gaussian, measure.parameter)
        return [(value, value - wide, value + wide)]


@dataclass(frozen=True, slots=True)
class Persons(_Count):
    """How many persons have a row in the group: each adds 1 to at most k groups."""

    def measures(self, setting: Setting, _index: int, /) -> tuple[Measure, ...]:
        if not setting.person:
            raise InvalidArgument(
                "persons", "asked of a table with persons", "a table of rows", "write Table(..., person=)"
            )
        return (Measure(f"{self.label}", 0, 1, person="1"),)

    def said(self) -> str:
        return "the number of persons"


@dataclass(frozen=True, slots=True)
class Rows(_Count):
    """How many rows the group has; a person's rows count up to max_rows in a group."""

    def measures(self, setting: Setting, _index: int, /) -> tuple[Measure, ...]:
        if setting.person and setting.max_rows is None:
            raise InvalidArgument(
                "max_rows",
                "given: how many rows of a person may count in a group",
                None,
                "write Table(..., max_rows=10)",
            )
        m = setting.rows
        return (Measure(f"{self.label}", 0, m, person=f"CASE WHEN n > {m} THEN {m} ELSE n END"),)

    def said(self) -> str:
        return "the number of rows"


@dataclass(frozen=True, slots=True)
class Distinct(_Count):
    """How many different values the group has; a person brings at most ``most`` of them to a group.

    With her kept values the count grows by at most ``most``; without, it shrinks by at most that; replaced, it
    moves by at most ``most`` in every group of either life.
    """

    column: str = ""
    most: int = 1
    shape: ClassVar[str] = "distinct"

    @property
    def expression(self) -> str:
        return self.column

    def measures(self, setting: Setting, _index: int, /) -> tuple[Measure, ...]:
        found = setting.schema.get("column", self.column)
        if not found.kind.groups:
            raise InvalidArgument(
                "column", "text, integers, truth values or dates to count distinct values", self.column
            )
        return (Measure(f"{self.label}", 0, self.most if setting.person else 1),)

    def said(self) -> str:
        return f"the number of different values of {self.column}"


@dataclass(frozen=True, slots=True)
class Total(Aggregate):
    """The sum of a column: of persons' totals (each clamped), or of clamped rows under a row unit."""

    column: str = ""
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)

    @property
    def expression(self) -> str:
        return self.column

    @property
    def steps(self) -> Steps:
        return Steps.of(self.low, self.high)

    def measures(self, setting: Setting, index: int, /) -> tuple[Measure, ...]:
        steps, value = self.steps, f"v{index}"
        return (
            Measure(
                f"{self.label}",
                steps.low,
                steps.high,
                steps.exponent,
                values=((value, _value(self.column, setting)),),
                inputs=((f"s{index}", steps.widened(ROWS).sql(setting.dialect, value, "0")),),
                person=_clamped(f"s{index}", steps.low, steps.high),
                row=steps.sql(setting.dialect, value, "0"),
                row_real=steps.real_sql(setting.dialect, value),
            ),
        )

    def size_within(self, setting: Setting, gaussian: bool, /) -> float:
        within, (measure,) = _within(self.ask), self.measures(setting, 0)
        size = float(within) / (_Z if gaussian else -math.log(1 - accuracy.LEVEL))
        while True:  # the grid follows the noise; on a finer one the half-width is met more closely
            chosen = noisy(measure, setting, gaussian, size)
            if accuracy.width(gaussian, chosen.parameter) * chosen.unit <= within:
                return size
            size = min(accuracy.widest(gaussian, within / chosen.unit) * float(chosen.unit), size * (1 - 2.0**-10))

    def estimates(self, cell: Cell) -> list[Estimate]:
        return [cell.interval(0)]

    def said(self) -> str:
        return f"the sum of {self.column}, each contribution in [{float(self.low):g}, {float(self.high):g}]"


def _value(text: str, setting: Setting) -> str:
    return expressions.number("column", text, setting.schema, setting.dialect)


def _clamped(name: str, low: int, high: int) -> str:
    return f"CASE WHEN {name} < {low} THEN {low} WHEN {name} > {high} THEN {high} ELSE {name} END"


def _valid(dialect: Dialect, value: str) -> str:
    limit = f"CAST({_LARGEST} AS {dialect.real})"
    return f"CASE WHEN {value} < -{limit} THEN 0 WHEN {value} <= {limit} THEN 1 ELSE 0 END"


def scaled(dialect: Dialect, total: str, rows: str, most: int) -> str:
    """A person's total of non-negative integers over ``rows`` rows, as if she had at most ``most`` rows.

    total * most / rows in whole numbers, without a product that leaves 64 bits; at most most * (largest row).
    """
    safe = f"CASE WHEN {rows} > 0 THEN {rows} ELSE 1 END"
    if most == 1:
        half = dialect.divide.format(f"({safe})", "2")
        return dialect.divide.format(f"({total} + {half})", f"({safe})")
    whole = dialect.divide.format(total, f"({safe})")
    rest = dialect.divide.format(f"(({total} - {whole} * ({safe})) * {most})", f"({safe})")
    return f"(CASE WHEN {rows} <= {most} THEN {total} ELSE {whole} * {most} + {rest} END)"


@dataclass(frozen=True, slots=True)
class Mean(Aggregate):
    """The mean of a column's clamped values: a noisy sum of distances from the middle, over a noisy count.

    A person counts once with the mean of her rows, or with up to max_rows rows (her total is scaled down).
    """

    column: str = ""
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)
    persons: int = 100

    @property
    def expression(self) -> str:
        return self.column

    @property
    def steps(self) -> Steps:
        return Steps.of(self.low, self.high, by_width=True)

    @property
    def half(self) -> float:
        """Half of the width, in the column's units."""
        return float((self.high - self.low) / 2)

    @property
    def centre(self) -> Fraction:
        return self.steps.middle * self.steps.unit

    def measures(self, setting: Setting, index: int, /) -> tuple[Measure, ...]:
        steps, m, value = self.steps, setting.rows, f"v{index}"
        total, count = f"s{index}", f"f{index}"
        kept = f"CASE WHEN {count} > {m} THEN {m} ELSE {count} END"
        below = steps.middle - steps.low
        summed = f"{scaled(setting.dialect, total, count, m)} - {below} * ({kept})"
        inputs = (
            (total, steps.sql(setting.dialect, value, "0", offset=steps.low)),
            (count, _valid(setting.dialect, value)),
        )
        values = ((value, _value(self.column, setting)),)
        return (
            Measure(
                f"{self.label}.sum",
                -below * m,
                (steps.high - steps.middle) * m,
                steps.exponent,
                values,
                inputs,
                person=summed,
                row=steps.sql(setting.dialect, value, "0", offset=steps.middle),
            ),
            Measure(
                f"{self.label}.count",
                0,
                m,
                0,
                values,
                inputs,
                person=kept,
                row=_valid(setting.dialect, value),
                ratio=1 / self.half,
            ),
        )

    def size_within(self, _setting: Setting, gaussian: bool, /) -> float:
        """The error of the mean of n values is at most that of (sum noise + half * count noise) / n."""
        each = accuracy.ratio_width(gaussian, 1.0, 1.0)
        return float(_within(self.ask)) * self.persons / each

    def estimates(self, cell: Cell) -> list[Estimate]:
        return [ratio(cell, float(self.centre), float(self.low), float(self.high))]

    def half_width(self, _measures: Sequence[Noisy], _groups: int, /) -> float | None:
        return None

    def said(self) -> str:
        return f"the mean of {self.column} in [{float(self.low):g}, {float(self.high):g}]"


def ratio(cell: Cell, centre: float, low: float, high: float, level: float = accuracy.LEVEL) -> Estimate:
    """centre + S / N inside [low, high], with Fieller's set {m : |S - m N| <= width of the noise of S - m N}.

    Where the count is no clearer than its noise nothing is known: the whole range.
    """
    total, count = cell.measures[0], cell.measures[1]
    s, n = float(cell.values[0][0] * total.unit), float(cell.values[1][0] * count.unit)
    gaussian = total.noise.gaussian
    first, second = float(total.noise.parameter), float(count.noise.parameter)
    value = min(max(centre + s / n, low), high) if n > 0 else (low + high) / 2
    if n <= accuracy.width(gaussian, count.parameter, level) * float(count.unit):
        return value, low, high

    def outside(m: float) -> bool:
        return abs(s - m * n) > accuracy.ratio_width(gaussian, first, abs(m) * second, level) + 0.5 * float(total.unit)

    middle = s / n
    below = centre + _edge(outside, middle, low - centre) if middle > low - centre else low
    above = centre + _edge(outside, middle, high - centre) if middle < high - centre else high
    return value, min(max(below, low), value), max(min(above, high), value)


def _edge(outside: Callable[[float], bool], near: float, far: float) -> float:
    """Where the set that holds ``near`` ends on the way to ``far``, rounded away from ``near``."""
    if not outside(far):
        return far
    for _ in range(60):
        middle = (near + far) / 2
        near, far = (near, middle) if outside(middle) else (middle, far)
    return far


@dataclass(frozen=True, slots=True)
class Variance(Mean):
    """The variance of a column's clamped values: mean of squares about the middle minus square of the mean."""

    @property
    def steps(self) -> Steps:
        return Steps.of(self.low, self.high, SQUARES, by_width=True)

    def measures(self, setting: Setting, index: int, /) -> tuple[Measure, ...]:
        total, count = Mean.measures(self, setting, index)
        steps, m, value = self.steps, setting.rows, f"v{index}"
        distance = f"({steps.sql(setting.dialect, value, '0', offset=steps.middle)})"
        if setting.max_rows is None:  # the square of a person's mean
            squared, inputs = f"({total.person}) * ({total.person})", total.inputs
        else:
            inputs = (*total.inputs, (f"q{index}", f"{distance} * {distance}"))
            squared = scaled(setting.dialect, f"q{index}", f"f{index}", m)
        squares = Measure(
            f"{self.label}.squares",
            0,
            steps.reach**2 * m,
            2 * steps.exponent,
            total.values,
            inputs,
            person=squared,
            row=f"{distance} * {distance}",
            ratio=self.half,
        )
        return total, count, squares

    def size_within(self, _setting: Setting, gaussian: bool, /) -> float:
        # noises of squares, sum and count enter with factors 1, 2 half and half^2 at most: sizes half (1, 2, 1)
        each = accuracy.ratio_width(gaussian, math.sqrt(2), 2.0) if gaussian else 3 * -math.log(0.05 / 3)
        return float(_within(self.ask)) * self.persons / each / self.half

    def estimates(self, cell: Cell) -> list[Estimate]:
        """Each of the three numbers at a level of 1 - 0.05/3, so that all hold at once at 95 %."""
        level = 1 - (1 - accuracy.LEVEL) / 3
        most = self.half**2
        (s, s_low, s_high), (n, n_low, n_high), (q, q_low, q_high) = (cell.interval(i, level) for i in range(3))
        value = min(max(q / n - (s / n) ** 2, 0.0), most) if n > 0 else most / 2
        if n_low <= 0:
            return [(value, 0.0, most)]
        squares = sorted(number / count for number in (q_low, q_high) for count in (n_low, n_high))
        means = [number / count for number in (s_low, s_high) for count in (n_low, n_high)]
        nearest = 0.0 if min(means) <= 0 <= max(means) else min(map(abs, means))
        low = squares[0] - max(map(abs, means)) ** 2
        high = squares[-1] - nearest**2
        return [(value, min(max(low, 0.0), most, value), max(min(high, most), 0.0, value))]

    def said(self) -> str:
        return f"the variance of {self.column} in [{float(self.low):g}, {float(self.high):g}]"


def column_of(noise: Additive) -> str:
    """The noise in words."""
    name = "discrete Gaussian, sigma" if noise.gaussian else "discrete Laplace, scale"
    return f"{name} {float(noise.parameter):.6g}"
