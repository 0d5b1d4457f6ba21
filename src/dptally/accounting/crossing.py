r"""Where the distribution of a loss crosses a probability: the searches behind quantiles.

Of several steps only the profile H is known, between bounds. With t the probability to be exceeded and v = e^-x,

    M(x) = v (H(x) - t),      dM/dv = P(L > x) - t,

so M is convex in v and least where P(L > x) passes t. Two values of M are enough to prove a side: if M is smaller
somewhere to the right of x, the crossing is after x; if it is smaller somewhere to the left, it is at x or before.
Below zero the same number is read off the other direction, M + 1 = H'(-x) + (1 - t) e^-x, which keeps small 1 - t.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dptally.interval import Interval
from dptally.numerics.rounding import EPS, down, up
from dptally.numerics.special import ndtri

__all__ = ["Crossing", "Target", "Valley"]

_FINEST = 1e-8  # a quantile is not looked for more closely, in units of the deviation
_MOST_ROUNDS = 48
_SECOND_LOOKS, _WIDE = 3, 0.01

Bounds = tuple[float, float]


class Crossing:
    """A bracket [before, after] that closes in on a crossing. Every end was asked, or is an end of the support.

    The next point is where the straight line through the last two meets the target, on the scale of normal scores,
    which makes most losses nearly straight; the middle where that leaves the bracket or does not halve it. Where the
    bounds at a point hold the target, the ends are looked for next to it, four times as far each time.
    """

    def __init__(
        self, asked: Callable[[float], Interval], target: float, rising: bool, unit: float, low: float, high: float
    ) -> None:
        self.asked, self.target, self.rising, self.unit = asked, target, rising, unit
        self.before, self.after = low, high
        self.points: list[tuple[float, float]] = []  # (x, normal score of the probability)
        self.inside: float | None = None

    def look(self, x: float) -> int:
        """-1 where the crossing is certainly after x, 1 where it is certainly at x or before, else 0."""
        box = self.asked(x)
        self.points.append((x, self.score(box.midpoint)))
        if box.upper < self.target if self.rising else box.lower > self.target:
            self.before = max(self.before, x)
            return -1
        if box.lower >= self.target if self.rising else box.upper <= self.target:
            self.after = min(self.after, x)
            return 1
        self.inside = x
        return 0

    def score(self, probability: float) -> float:
        score = float(ndtri(min(max(probability, 1e-300), 1.0 - 1e-16)))
        return score if self.rising else -score

    def found(self, start: float) -> Interval:
        x = min(max(start, self.before), self.after)
        for _ in range(_MOST_ROUNDS):
            width = self.after - self.before
            if self.look(x) == 0 or self.after - self.before <= _FINEST * self.unit:
                break
            x = self.next(self.after - self.before > 0.5 * width)
            if not self.before < x < self.after:
                break
        if self.inside is not None:
            self.pinch(self.inside, -1)
            self.pinch(self.inside, 1)
        return Interval(self.before, self.after, "slopes of the profile")

    def next(self, slow: bool) -> float:
        wanted = self.score(self.target)
        x = math.nan
        if len(self.points) >= 2:
            (x0, s0), (x1, s1) = self.points[-2:]
            x = x1 + (wanted - s1) * (x1 - x0) / (s1 - s0) if s1 != s0 else math.nan
        elif self.points:
            x = self.points[0][0] + (wanted - self.points[0][1]) * self.unit
        bracketed = math.isfinite(self.before) and math.isfinite(self.after)
        if bracketed and (not self.before < x < self.after or (slow and len(self.points) % 3 == 0)):
            return 0.5 * self.before + 0.5 * self.after
        if not self.before < x < self.after or math.isnan(x):
            reach = self.unit * 2.0 ** len(self.points)
            x = self.before + reach if math.isfinite(self.before) else self.after - reach
        return x

    def pinch(self, x: float, side: int) -> None:
        """The end on one side of a point whose bounds hold the target."""
        step = _FINEST * self.unit
        while self.before < x + side * step < self.after:
            if self.look(x + side * step) == side:
                return
            step *= 4


@dataclass(frozen=True, slots=True)
class Target:
    """A probability to be exceeded, and its complement: one of the two was given, the other lies between bounds."""

    tail: Bounds
    below: Bounds

    @classmethod
    def exceeded(cls, probability: float) -> Target:
        return cls((probability, probability), (down(1.0 - probability), up(1.0 - probability)))

    @classmethod
    def reached(cls, probability: float) -> Target:
        return cls((down(1.0 - probability), up(1.0 - probability)), (probability, probability))


@dataclass(frozen=True, slots=True)
class _Point:
    """Estimates that lead the search: P(L > x) and M(x)."""

    x: float
    tail: float
    value: float


class Valley:
    """The bottom of M between two proven sides.

    ``forward`` and ``backward`` are bounds of H and H' at an epsilon of at least 0; the second is None where the other
    direction is not known. Slopes of M at two points, by values close together, lead the search: along the straight
    line on the scale of normal scores, which makes most losses nearly straight; and where that does not close in, to
    where the tangents meet, which is the place itself where the loss has an atom.
    """

    def __init__(
        self,
        forward: Callable[[float], Bounds],
        backward: Callable[[float], Bounds] | None,
        target: Target,
        unit: float,
        low: float,
        high: float,
    ) -> None:
        self.forward, self.backward, self.target, self.unit = forward, backward, target, unit
        self.before, self.after = low, high
        self.values: dict[float, Bounds] = {}
        self.wanted = 0.5 * sum(target.tail)
        self.left: _Point | None = None  # the tail is above the target
        self.right: _Point | None = None
        self.slow = False  # whether the last point hardly closed in

    def found(self, start: float) -> Interval:
        low, high = self.before, self.after
        x = min(max(start, low), high)
        for turn in range(_MOST_ROUNDS):
            near = self.resolution(x)
            here = self.slope(x)
            self.note(here)
            x = self.next(here, turn)
            known = [end.x for end in (self.left, self.right) if end is not None]
            if not low < x < high or any(abs(x - end) <= 3 * near for end in known):
                break
        self.close_in(x if low < x < high else here.x)  # pyright: ignore[reportPossiblyUnboundVariable]
        for _ in range(_SECOND_LOOKS):
            width = self.after - self.before
            if not _WIDE * self.unit < width < math.inf:
                break
            # on a plateau only its end is hard to see: there the tangents from outside meet
            self.close_in(self.meeting(self.slope(self.before, -1), self.slope(self.after, 1)))
        return Interval(self.before, self.after, "least point of the profile")

    def note(self, here: _Point) -> None:
        """Keep the point as an end of the search, and whether it hardly closed in or lies on the same tangent."""
        width, other = self.width, self.left if here.tail > self.wanted else self.right
        if here.tail > self.wanted:
            self.left = here
        else:
            self.right = here
        same = other is not None and abs(other.tail - here.tail) <= 1e-3 * abs(here.tail - self.wanted)
        self.slow = same or (math.isfinite(width) and self.width > 0.25 * width and not self.slow)

    @property
    def width(self) -> float:
        return math.inf if self.left is None or self.right is None else abs(self.right.x - self.left.x)

    # -- values ------------------------------------------------------------------------------------------------

    def value(self, x: float) -> Bounds:
        """Bounds of M + 1 below zero, of M elsewhere."""
        if x not in self.values:
            if x >= 0:
                (low, high), shrink = self.forward(x), math.exp(-x)
                one, other = low - self.target.tail[1], high - self.target.tail[0]
                self.values[x] = _outward(one * shrink, other * shrink, (abs(low) + self.target.tail[1]) * shrink)
            elif self.backward is None:
                self.values[x] = (-math.inf, math.inf)
            else:
                (low, high), grow = self.backward(-x), math.exp(-x)
                one, other = low + self.target.below[0] * grow, high + self.target.below[1] * grow
                self.values[x] = _outward(one, other, abs(other))
        return self.values[x]

    def below(self, x: float, y: float) -> bool:
        """Whether M(x) < M(y) is certain."""
        high, low = self.value(x)[1], self.value(y)[0]
        if (x < 0) == (y < 0):
            return high < low
        return up(high - (x < 0), 2) < down(low - (y < 0), 2)

    def slope(self, x: float, side: int = 1) -> _Point:
        """From the values at x and on one side of it, at their middle."""
        y = x + 2 * side * self.resolution(x)
        if (x < 0) != (y < 0):
            y = x - (y - x)
        here, there = (0.5 * sum(self.value(point)) for point in (x, y))
        tail = self.wanted + (there - here) / (math.exp(-x) * math.expm1(x - y))
        tail = min(max(tail, 0.0), 1.0) if math.isfinite(tail) else self.wanted
        return _Point(0.5 * x + 0.5 * y, tail, 0.5 * here + 0.5 * there - (x < 0))

    # -- the next point ----------------------------------------------------------------------------------------

    def next(self, here: _Point, turn: int) -> float:
        wanted = _score(self.wanted)
        if self.left is None or self.right is None:
            # ever longer steps: between two atoms the probability does not move
            step, reach = (_score(here.tail) - wanted) * self.unit * 2.0**turn, self.unit * 2.0**turn
            return here.x + min(max(step, -reach), reach)
        a, b = self.left, self.right
        if self.slow:
            return self.meeting(a, b)
        near, far = _score(a.tail), _score(b.tail)
        share = (near - wanted) / (near - far) if near != far else 0.5
        return a.x + (b.x - a.x) * share

    def meeting(self, a: _Point, b: _Point) -> float:
        """Where the tangents at a and b meet, on the scale of v = e^-x, taken relative to v at a."""
        width = math.expm1(a.x - b.x)  # (v_b - v_a) / v_a
        rise = (b.value - a.value) * math.exp(a.x)
        share = (rise - (b.tail - self.wanted) * width) / (a.tail - b.tail) if a.tail > b.tail else math.nan
        if not math.isfinite(share) or not min(width, 0.0) < share < max(width, 0.0):
            return 0.5 * a.x + 0.5 * b.x
        return a.x - math.log1p(share)

    def resolution(self, x: float) -> float:
        """A distance below which values of M cannot be told apart, about."""
        low, high = self.value(x)
        density = 0.25 * max(self.wanted * (1 - self.wanted), 1e-300) / self.unit
        curved = math.sqrt(max(high - low, 0.0) * math.exp(x) / density) if math.isfinite(high - low) else math.inf
        return max(min(curved, 0.01 * self.unit), _FINEST * self.unit, 4 * math.ulp(x))

    # -- proof -------------------------------------------------------------------------------------------------

    def close_in(self, x: float) -> None:
        """Prove both sides by the values that are there, and by new ones next to the bottom, ever further out."""
        self.value(x)
        self.settle()
        for side in (-1, 1):
            step = 0.5 * self.resolution(x)
            for _ in range(_MOST_ROUNDS):
                y = x + side * step
                if not self.before < y < self.after:
                    break
                self.value(y)
                if self.below(x, y):
                    break
                step *= 3
        self.settle()

    def settle(self) -> None:
        for x in self.values:
            if x > self.before and any(y > x and self.below(y, x) for y in self.values):
                self.before = x
            if x < self.after and any(y < x and self.below(y, x) for y in self.values):
                self.after = x


def _outward(low: float, high: float, size: float) -> Bounds:
    slack = 8 * EPS * size
    return low - slack, high + slack


def _score(tail: float) -> float:
    """The normal score that is exceeded with this probability, turned so that it falls."""
    return float(ndtri(min(max(tail, 1e-300), 1.0 - 1e-16)))
