"""A privacy profile as a paper states it: a curve delta(epsilon), with what is known of its tail."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dptally import checks
from dptally.checks import Floats
from dptally.errors import InvalidArgument, InvalidType
from dptally.mechanisms import Profile
from dptally.numerics.rounding import down, up
from dptally.numerics.search import last_true

__all__ = ["FADED", "Curve", "GaussianTail", "check_falling"]

_FARTHEST = 1024.0  # no epsilon beyond is looked at when a curve is made
FADED = 1e-290  # a zero right after values this small is an underflow
_FORGIVEN = 1e-12  # a relative rise that the rounding of a formula may cause; the upper bounds allow for it


@dataclass(frozen=True, slots=True)
class GaussianTail:
    """log delta(eps) <= -((eps - shift)/root - root/2)^2 / 2 for every eps >= start.

    The shape of a root^2/2-zCDP loss and of another one that is at most ``shift``.
    """

    root: float
    start: float = 0.0
    shift: float = 0.0


@dataclass(frozen=True, slots=True)
class Curve:
    """delta_of_epsilon(eps) for eps >= 0, nonincreasing in [0, 1]; the values are the definition.

    ``tail_limit`` is mu_t = limsup eps / sqrt(-2 log delta(eps)) where it is known, None where it is not.
    ``gaussian_tail`` is a bound of the tail. ``zero_from`` is an epsilon from which on delta is 0; it is
    looked for where it is not given. ``convex`` says that delta is convex in e^eps, as every attained profile
    is (naive inversions need not be); ``convex_from`` that it is so from that epsilon on.
    ``log_delta_of_epsilon`` goes on where delta would underflow. ``reach``: how far the formula can be
    evaluated; beyond it delta is taken to be that at the reach, since it does not increase.

    >>> Curve(lambda e: math.exp(-e * e)).delta(1.0)
    0.36787944117144233
    """

    delta_of_epsilon: Callable[[float], float]
    name: str = "curve"
    tail_limit: float | None = None
    gaussian_tail: GaussianTail | None = None
    zero_from: float = math.inf
    convex: bool = False
    convex_from: float = math.inf
    log_delta_of_epsilon: Callable[[float], float] | None = None
    reach: float = math.inf

    def __post_init__(self) -> None:
        if not callable(self.delta_of_epsilon):
            raise InvalidType("delta_of_epsilon", "a function of epsilon", self.delta_of_epsilon)
        if not checks.real("zero_from", self.zero_from) > 0:
            raise InvalidArgument("zero_from", "positive", self.zero_from)
        end = min(_FARTHEST, self.zero_from, self.reach)
        if self._overflows(end) and not self._overflows(0.0):
            object.__setattr__(self, "reach", last_true(lambda e: not self._overflows(e), 0.0, end, 1e-9))
        grid = min(end, self.reach) * np.linspace(0.0, 1.0, 129) ** 3
        values = self.deltas(grid)
        check_falling(grid, values)
        bare = self.log_delta_of_epsilon is None
        if math.isinf(self.zero_from) and bare and values[-1] == 0:
            object.__setattr__(self, "zero_from", self._first_zero(grid, values))

    def _overflows(self, epsilon: float) -> bool:
        """Whether the formula leaves double range on its way: ``math.exp`` does beyond 709."""
        try:
            self.delta_of_epsilon(epsilon)
        except OverflowError:
            if epsilon == 0:
                raise InvalidArgument(
                    "delta_of_epsilon", "a function that can be evaluated at epsilon 0", epsilon
                ) from None
            return True
        return False

    def _first_zero(self, grid: Floats, values: Floats) -> float:
        """Where delta ends; inf where it fades below what doubles hold instead, which proves nothing."""
        number = int(np.argmax(values == 0))
        if number == 0:
            return float(grid[1])
        low, high = float(grid[number - 1]), float(grid[number])
        while high - low > 1e-15 * high:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            low, high = (middle, high) if self.delta(middle) > 0 else (low, middle)
        return high if self.delta(low) > FADED else math.inf

    def delta(self, epsilon: float) -> float:
        """One value, checked: NaN, values outside [0, 1] and non-numbers are refused with the epsilon
        named.
        """
        epsilon = checks.nonnegative("epsilon", epsilon)
        if epsilon >= self.zero_from:
            return 0.0
        where = f"delta_of_epsilon({epsilon:.17g})"
        delta = checks.real(where, self._asked(min(epsilon, self.reach), where))
        if not 0 <= delta <= 1:
            raise InvalidArgument(where, "in [0, 1]", delta)
        return abs(delta)

    def _asked(self, epsilon: float, where: str) -> float:
        try:
            return self.delta_of_epsilon(epsilon)
        except OverflowError:
            raise InvalidArgument(
                where, "a number that a double can hold", "OverflowError", f"give reach= an epsilon below {epsilon:.6g}"
            ) from None

    def deltas(self, epsilon: Floats) -> Floats:
        """Many values."""
        return np.array([self.delta(float(e)) for e in epsilon.ravel()]).reshape(epsilon.shape)

    def log_delta(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Bounds of log delta, elementwise."""
        values = self.deltas(epsilon)
        check_falling(epsilon, values)
        with np.errstate(divide="ignore"):
            logged = np.log(values)
        if self.log_delta_of_epsilon is not None:
            tiny = (values < 1e-290) & (epsilon < self.zero_from)
            for i in np.flatnonzero(tiny):
                logged[i] = self.log_delta_of_epsilon(float(epsilon[i]))
        exact = np.isneginf(logged) | (logged == 0)
        lower = np.where(exact, logged, down(logged, 8))
        upper = np.where(exact, logged, np.minimum(up(logged, 8) + _FORGIVEN, 0))
        return np.where(epsilon > self.reach, -np.inf, lower), upper

    def sampled(self, rate: float) -> Curve:
        """The curve after Poisson sampling: delta'(log(1 + q (e^eps - 1))) = q delta(eps), for eps >= 0.

        [Balle, Barthe, Gaboardi 2018, Thm. 8, one record added or removed.] The tail's limit and shape stay.

        >>> round(Curve(lambda e: 0.5 * math.exp(-e)).sampled(0.1).delta(0.0), 12)
        0.05
        """
        rate = checks.probability("rate", rate)
        if not rate > 0:
            raise InvalidArgument("rate", "above 0", rate)

        def inside(epsilon: float) -> float:
            # the inner epsilon is rounded down, where delta is larger
            grown = epsilon - math.log(rate) + math.log1p((rate - 1.0) * math.exp(-epsilon)) if epsilon > 1 else 0
            inner = grown if epsilon > 1 else math.log1p(math.expm1(epsilon) / rate)
            return max(down(inner, 16), 0.0)

        def delta(epsilon: float) -> float:
            return min(1.0, up(rate * self.delta(inside(epsilon)), 2))

        def log_delta(epsilon: float) -> float:
            assert self.log_delta_of_epsilon is not None
            return math.log(rate) + self.log_delta_of_epsilon(inside(epsilon))

        ends = self.zero_from
        if ends < math.inf:
            ends = ends + math.log(rate) + math.log1p((1.0 / rate - 1.0) * math.exp(-ends))
            ends = up(max(ends, 1e-300), 16)
        tail = self.gaussian_tail
        if tail is not None:  # the inner epsilon is the larger one, and the tail's shape falls from its top on
            top = up(tail.shift + 0.5 * tail.root * tail.root, 4)
            tail = GaussianTail(tail.root, max(tail.start, top), tail.shift)
        return Curve(
            delta,
            f"{self.name}, sampled at {rate:.6g}",
            self.tail_limit,
            tail,
            ends,
            self.convex,
            log_delta_of_epsilon=None if self.log_delta_of_epsilon is None else log_delta,
        )

    def mechanism(self) -> Profile:
        """The mechanism to compose, sample and account: the convex envelope of all that the curve guarantees.

        It is tabulated (see :class:`dptally.Profile`), pessimistic between and beyond the points of the
        table.
        """
        return Profile(self.delta)


def check_falling(epsilon: Floats, delta: Floats) -> None:
    """Refuse a curve that rises between two of the points looked at, and say where."""
    order = np.argsort(epsilon, kind="stable")
    x, y = epsilon[order], delta[order]
    rises = np.flatnonzero((y[1:] > y[:-1] * (1.0 + 0.5 * _FORGIVEN)) & (x[1:] > x[:-1]))
    if rises.size:
        i = int(rises[0])
        raise InvalidArgument(
            "delta_of_epsilon",
            "nonincreasing in epsilon",
            f"delta({x[i]:.6g}) = {y[i]:.6g} and delta({x[i + 1]:.6g}) = {y[i + 1]:.6g}",
        )
