"""Sums with a meter for every record, kept secret: a record that has spent its own budget is left out from then on.

Each record pays for what it contributed itself, not for the worst that anybody could: a step in which its contribution
has norm g costs it rho = g^2 / (2 sigma^2). It stops before its sum would pass the budget. The whole sequence, however
the steps are chosen after earlier answers, is then rho-zCDP for one record added or removed [Feldman, Zrnic 2021,
individual filters; Canonne, Kamath, Steinke 2020 for the exact noise; proof in docs/adaptive.md].

The meters say who contributed what: they are as secret as the data. They appear nowhere, and nothing tells how many
records are still counted.
"""

from __future__ import annotations

import math
import os
import threading
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dptally import checks, noise
from dptally.checks import Floats
from dptally.errors import InvalidArgument, InvalidType
from dptally.mechanisms import ZCDP, Mechanism
from dptally.noise import parameters
from dptally.noise.parameters import Exact
from dptally.numerics.exact import between
from dptally.release import column
from dptally.release.additive import Additive

__all__ = ["IndividualSums"]

_FINER = 256  # steps of the records' grid in one of the natural grid: the noise is still drawn in 64 bits
_WIDEST = 1 << 61  # of the budget in squared steps
_TABLE = "a table with one row for each record"


class IndividualSums:
    """Noisy sums of vectors, one row for each record; a record is left out once its own budget would be passed.

    ``rho`` is the budget of every record and the cost of the whole sequence of sums: pay ``mechanism`` once, before the
    first. ``sigma`` is the noise of each coordinate of each sum. Contributions are rounded to a grid (sigma / 16384 or
    finer; ``grid``, a power of two, chooses another) on which everything is exact.

    >>> sums = IndividualSums(records=3, sigma=100, rho=0.5)
    >>> sums.mechanism
    ZCDP(rho=0.5)
    >>> sums.sum([[1.0, 0.0], [0.0, 2.0], [0.5, 0.5]]).shape
    (2,)
    >>> sums
    IndividualSums(sigma=100, rho=1/2)
    """

    __slots__ = ("__active", "__cap", "__lock", "__noise", "__owner", "__rho", "__spent")

    def __init__(self, records: int, sigma: Exact, rho: Exact, grid: Exact | None = None) -> None:
        number = checks.count("records", records, 1)
        deviation, self.__rho = parameters.positive("sigma", sigma), parameters.positive("rho", rho)
        step = noise.natural_grid(deviation) / _FINER if grid is None else grid
        self.__noise = Additive(True, deviation, parameters.power_of_two("grid", step))
        self.__cap = math.floor(2 * self.__rho * self.__noise.steps**2)  # of the squared steps of one record
        if not 1 <= self.__cap < _WIDEST:
            raise InvalidArgument("rho, grid", "such that 1 <= 2 rho (sigma / grid)^2 < 2^61", (rho, step))
        self.__spent: NDArray[np.int64] = np.zeros(number, dtype=np.int64)
        self.__active: NDArray[np.bool_] = np.ones(number, dtype=np.bool_)
        self.__lock = threading.Lock()
        self.__owner = os.getpid()

    @property
    def mechanism(self) -> Mechanism:
        """What all sums together cost, for one record added or removed."""
        return ZCDP(between(self.__rho)[1])

    def sum(self, contributions: Any) -> Floats:
        """The sum over the records that are still counted, with noise; every record counted has paid for it.

        ``contributions``: one row of numbers for each record, which depends on that record and on earlier answers
        only. A row with a value that is missing, infinite or no number counts as zeros; only the table's shape and
        the type of a typed one can be refused.
        """
        rows = self._rows(contributions)
        with self.__lock:
            if os.getpid() != self.__owner:
                raise InvalidType("contributions", "summed in the process that keeps the meters", "another process")
            steps = self._charged(rows)
        noisy = self.__noise.add_each(steps.sum(axis=0))
        return np.ldexp(noisy.astype(np.float64), self.__noise.exponent)

    def _rows(self, contributions: Any) -> Floats:
        rows = _table(contributions)
        if rows.ndim != 2 or len(rows) != len(self.__spent) or not rows.shape[1]:
            raise InvalidType("contributions", _TABLE, f"shape {rows.shape}")
        return rows

    def _charged(self, rows: Floats) -> NDArray[np.int64]:
        """The rounded rows of the records that are counted in this step; their meters have moved."""
        given = np.isfinite(rows).all(axis=1, keepdims=True)
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(np.where(given, rows, 0.0), -self.__noise.exponent)
            rough: Floats = np.sum(np.square(scaled), axis=1)
        small: NDArray[np.bool_] = rough <= 1.5 * self.__cap  # beyond, nobody could pay; below, 64 bits are enough
        steps = np.rint(np.where(small[:, None], scaled, 0.0)).astype(np.int64)
        cost = np.square(steps).sum(axis=1)
        self.__active &= small & (cost <= self.__cap - self.__spent)
        steps[~self.__active] = 0
        self.__spent += np.where(self.__active, cost, 0)
        return steps

    def __repr__(self) -> str:
        return f"IndividualSums(sigma={_shown(self.__noise.parameter)}, rho={_shown(self.__rho)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("secret meters are never copied or stored: a copy could be spent twice")


def _table(contributions: Any) -> Floats:
    """The rows as doubles. What has no type of its own is read value by value, and no record decides how others are."""
    if isinstance(contributions, (list, tuple)):
        try:
            return np.array([_row(row) for row in contributions])
        except ValueError:  # rows of different lengths
            raise InvalidType("contributions", _TABLE, "rows of different lengths") from None
    array = np.asarray(contributions)
    if array.dtype == object and array.ndim == 2:
        return column.numbers(array.ravel().tolist()).reshape(array.shape)
    if array.dtype.kind not in "biuf":
        raise InvalidType("contributions", "a table of numbers", array.dtype.name)
    return array.astype(np.float64)


def _row(row: Any) -> Floats:
    array = row if isinstance(row, np.ndarray) else column.vector("contributions", row)
    return array.astype(np.float64) if array.dtype.kind in "biuf" else column.numbers(array.tolist())


def _shown(value: Fraction) -> str:
    return str(value)
