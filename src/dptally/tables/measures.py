"""What an aggregate asks of the engine, number by number, and the noise that each number gets.

A measure is a sum over persons (or rows) of integers between ``low`` and ``high``: one number in every cell of
the result. An aggregate has one measure or several: a mean is a sum and a count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dptally import checks, mechanisms
from dptally.calibration import calibrate
from dptally.errors import InvalidArgument, InvalidType
from dptally.law.adjacency import Adjacency
from dptally.mechanisms import Mechanism
from dptally.noise import grid, natural_grid, parameters
from dptally.release.additive import Additive
from dptally.tables.bounds import Move, moves
from dptally.tables.dialect import Dialect
from dptally.tables.kinds import Schema

__all__ = ["Ask", "Measure", "Noisy", "Setting", "budget_of", "noisy", "plan_of", "price_of", "solve"]


@dataclass(frozen=True, slots=True)
class Setting:
    """All that bounds depend on: the unit, the bounds of a person, the number of groups, the adjacency."""

    person: bool
    max_groups: int  # 1 for a row unit
    groups: int | None  # None: private keys
    max_rows: int | None
    adjacency: Adjacency
    dialect: Dialect
    schema: Schema

    @property
    def k(self) -> int:
        """The groups of a person that count, at most."""
        return self.max_groups if self.groups is None else min(self.max_groups, self.groups)

    @property
    def rows(self) -> int:
        """The rows of a person that count in a group, at most."""
        return self.max_rows or 1


@dataclass(frozen=True, slots=True)
class Measure:
    """One number in every cell. ``values`` are doubles of one row; ``inputs`` are integers made of them, added up
    for each person and group; ``person`` is SQL over these sums (``n`` is the number of rows); ``row`` is SQL
    over the values of one row, and ``row_real`` the same in doubles where their sums can be trusted.

    ``ratio`` is the size of its noise beside that of the aggregate's first measure. ``levels`` are the cells of
    a group on each level of a tree (one level with one cell for a plain number); ``pairs`` says that a person is
    bounded to so many pairs of group and cell rather than groups.
    """

    name: str
    low: int
    high: int
    exponent: int = 0
    values: tuple[tuple[str, str], ...] = ()
    inputs: tuple[tuple[str, str], ...] = ()
    person: str = "1"
    row: str = "1"
    row_real: str = ""
    ratio: float = 1.0
    levels: tuple[int, ...] = (1,)
    pairs: bool = False

    def moves(self, setting: Setting) -> tuple[Move, ...]:
        """What one person or row can move, in steps of 2^exponent, over all levels."""
        found: dict[int, int] = {}
        k = setting.max_groups if self.pairs else setting.k
        for cells in self.levels:
            everywhere = None if setting.groups is None else setting.groups * cells
            for move in moves(self.low, self.high, k, everywhere, setting.adjacency):
                found[move.shift] = found.get(move.shift, 0) + move.count
        return tuple(Move(count, shift) for shift, count in sorted(found.items(), reverse=True))


@dataclass(frozen=True, slots=True)
class Ask:
    """How much noise an aggregate is to have: one of the four, or none where the whole query has a cost."""

    within: Fraction | None = None
    sigma: Fraction | None = None
    scale: Fraction | None = None
    cost: Mechanism | None = None
    weight: Fraction = Fraction(1)

    @classmethod
    def of(
        cls, within: object = None, sigma: object = None, scale: object = None, cost: object = None, weight: object = 1
    ) -> Ask:
        given = [
            name
            for name, value in (("within", within), ("sigma", sigma), ("scale", scale), ("cost", cost))
            if value is not None
        ]
        if len(given) > 1:
            raise InvalidArgument("within, sigma, scale, cost", "given one at a time", ", ".join(given))
        if cost is not None and not isinstance(cost, Mechanism):
            raise InvalidType("cost", "a guarantee such as ZCDP(0.002) or PureDP(0.1)", cost)
        return cls(
            _number("within", within),
            _number("sigma", sigma),
            _number("scale", scale),
            cost,
            parameters.positive("weight", weight),
        )

    @property
    def open(self) -> bool:
        return self.within is None and self.sigma is None and self.scale is None and self.cost is None


def _number(name: str, value: object) -> Fraction | None:
    """A positive number that is exactly a double."""
    return None if value is None else Fraction(parameters.double(name, parameters.positive(name, value)))


@dataclass(frozen=True, slots=True)
class Noisy:
    """A measure with its noise: what is added, and the mechanism that accounts for it."""

    measure: Measure
    noise: Additive
    moved: tuple[Move, ...]  # in steps of the noise's grid

    @property
    def mechanism(self) -> Mechanism:
        plan = None
        for move in self.moved:
            part = move.count * self.noise.mechanism(move.shift)
            plan = part if plan is None else plan + part
        assert plan is not None  # every measure moves somewhere
        return plan

    @property
    def parameter(self) -> float:
        """Of the noise, in steps of its grid."""
        return float(self.noise.steps)

    @property
    def unit(self) -> Fraction:
        return parameters.two_to(self.noise.exponent)

    def on_grid(self, exact: int) -> int:
        """An exact sum, rounded to the grid of the noise: |x - y| <= s moves it by at most ceil(s / grid)."""
        return grid.rescaled(exact, self.measure.exponent, self.noise.exponent)


def noisy(measure: Measure, setting: Setting, gaussian: bool, size: float) -> Noisy:
    """The measure with noise of this size (in the column's units, before the ratio)."""
    parameter = Fraction(_double(size * measure.ratio))
    fine = measure.moves(setting)
    exponent = measure.exponent
    if exponent < 0 or measure.high - measure.low > 1 << 12:
        reach = max(move.shift for move in fine) * parameters.two_to(exponent)
        exponent = max(exponent, parameters.power_of_two("grid", natural_grid(min(parameter, reach))))
    finer = exponent - measure.exponent
    return Noisy(
        measure, Additive(gaussian, parameter, exponent), tuple(Move(m.count, -(-m.shift >> finer)) for m in fine)
    )


def _double(value: float) -> float:
    if not 1e-100 < value < 1e100:
        raise InvalidArgument("sigma, scale", "of moderate size beside the bounds", value)
    return value


def plan_of(measures: Sequence[Noisy]) -> Mechanism:
    """The account of all measures together."""
    plan = measures[0].mechanism
    for measure in measures[1:]:
        plan = plan + measure.mechanism
    return plan


def price_of(plan: Mechanism, gaussian: bool) -> float:
    """Rho for Gaussian noise, epsilon for Laplace noise, rounded up."""
    return plan.rho() if gaussian else plan.epsilon(delta=0.0)


def solve(measures: Sequence[Measure], setting: Setting, gaussian: bool, target: float) -> float:
    """The size of noise at which the measures together cost at most ``target`` (rho or epsilon)."""
    size = 0.0
    for measure in measures:
        unit = float(parameters.two_to(measure.exponent)) / measure.ratio
        for move in measure.moves(setting):
            shift = move.shift * unit
            size += move.count * shift**2 / (2 * target) if gaussian else move.count * shift / target
    size = math.sqrt(size) if gaussian else size
    for _ in range(64):  # the grid rounds shifts up: a little more noise, until the account says so
        spent = price_of(plan_of([noisy(measure, setting, gaussian, size) for measure in measures]), gaussian)
        if spent <= target:
            return size
        ratio = spent / target
        size *= max(math.sqrt(ratio) if gaussian else ratio, 1 + 2.0**-40) * (1 + 2.0**-50)
    raise InvalidArgument("cost", "large enough for some noise", target)


def budget_of(cost: Mechanism) -> tuple[bool, float]:
    """What a cost allows: (True, rho) for Gaussian noise, (False, epsilon) for Laplace noise.

    An (epsilon, delta) cost is taken as the largest rho that implies it, which any composition keeps.
    """
    given = cost.parameters()
    if isinstance(cost, mechanisms.ZCDP):
        return True, checks.positive("cost.rho", given["rho"])
    if isinstance(cost, mechanisms.PureDP):
        return False, checks.positive("cost.epsilon", given["epsilon"])
    if isinstance(cost, mechanisms.ApproxDP):
        checks.open_probability("cost.delta", given["delta"])
        checks.positive("cost.epsilon", given["epsilon"])
        return True, calibrate(mechanisms.ZCDP, epsilon=given["epsilon"], delta=given["delta"])
    raise InvalidType("cost", "ZCDP(rho), PureDP(epsilon) or ApproxDP(epsilon, delta)", cost)
