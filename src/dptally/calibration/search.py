"""Find the parameter at the edge of what a target allows, on its safe side.

The searched parameter may make a plan more private as it grows (noise) or less (steps, rate); which of the two is
found by asking. Every answer that is returned was itself asked: its certified upper bound meets the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dptally import checks
from dptally.calibration.targets import Target, target
from dptally.errors import CannotCalibrate, InvalidArgument, InvalidType
from dptally.mechanisms import Mechanism

__all__ = ["calibrate"]

_CLOSE = 4e-10  # the relative distance between the last value that meets the target and the first that does not
_PATIENCE = 12  # interpolations before every second step halves the bracket
_MOST_DOUBLINGS = 200
_STRIDE = 64.0  # of whole numbers upwards: a plan of two to thirty steps takes longer than one of thousands


def calibrate(
    make: Callable[[float], Mechanism],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    mu: float | None = None,
    tpr: float | None = None,
    fpr: float | None = None,
    advantage: float | None = None,
    rho: float | None = None,
    renyi: tuple[float, float] | None = None,
    alpha: tuple[float, float] | None = None,
    low: float | None = None,
    high: float | None = None,
) -> float:
    """The parameter x at the edge of the target for the plan ``make(x)``, certainly on its safe side.

    The target is one of epsilon= with delta=, mu= (Gaussian DP), rho= (zCDP), renyi=(order, epsilon), alpha=(order,
    epsilon), tpr= with fpr=, advantage=. Found is the smallest x where growing x adds privacy (noise), the largest
    where it costs privacy (steps, rates; integers where ``make`` takes only integers). ``low`` and ``high`` limit the
    search. Raises CannotCalibrate where no value will do.

    >>> import dptally as dp
    >>> sigma = calibrate(lambda s: dp.Gaussian(s), epsilon=1.0, delta=1e-5)
    >>> round(sigma, 9), dp.Gaussian(sigma).epsilon(delta=1e-5) <= 1.0
    (3.730631635, True)
    """
    if not callable(make):
        raise InvalidType("make", "a function of one number that returns a mechanism", make)
    goal = target(epsilon, delta, mu, tpr, fpr, advantage, rho, renyi, alpha)
    search = _Search(make, goal, *_limits(low, high))
    good, bad = search.bracket()
    return search.narrowed(good, bad)


def _limits(low: float | None, high: float | None) -> tuple[float, float]:
    least = 0.0 if low is None else checks.nonnegative("low", low)
    most = math.inf if high is None else checks.positive("high", high)
    if not least < most:
        raise InvalidArgument("low, high", "ordered (low < high)", (low, high))
    return least, most


class _Search:
    """Asks make(x) and remembers: a parameter is asked once."""

    def __init__(self, make: Callable[[float], Mechanism], goal: Target, low: float, high: float) -> None:
        self.make = make
        self.goal = goal
        self.low, self.high = low, high
        self.whole = False
        self.asked: dict[float, float] = {}

    def excess(self, x: float) -> float:
        """Above zero where make(x) misses the target; the logarithm of measure/bound, which is nearly linear in log
        x.
        """
        if x not in self.asked:
            value = self.goal.measure(self.plan(x))
            bound = self.goal.bound
            if value <= bound:
                self.asked[x] = math.log(max(value, 1e-300) / bound) if bound > 0 and value < bound else 0.0
                self.asked[x] = min(self.asked[x], -5e-324)
            else:
                self.asked[x] = math.log(value / bound) if bound > 0 else math.inf
        return self.asked[x]

    def plan(self, x: float) -> Mechanism:
        plan = self.make(int(x) if self.whole else x)
        if not isinstance(plan, Mechanism):
            raise InvalidType("make", "a function that returns a mechanism", plan)
        return plan

    def allowed(self, x: float) -> bool:
        """Whether make accepts x; switches to integers if floats are refused."""
        if not self.low <= x <= self.high or (self.whole and x < 1):
            return False
        try:
            self.plan(x)
        except InvalidType:
            if self.whole:
                raise
            self.whole = True
            return self.allowed(float(round(x)))
        except InvalidArgument:
            return False
        return True

    def start(self) -> float:
        """A value that make accepts: 1 where it lies within the limits, else their (geometric) middle."""
        middle = math.sqrt(self.low * self.high) if self.low > 0 and self.high < math.inf else None
        for x in (1.0, middle, self.low or None, self.high if self.high < math.inf else None, 0.5, 0.1, 0.01, 100.0):
            if x is not None and self.allowed(x):
                return x
        raise CannotCalibrate("make() accepts none of the values that were tried; give low= and high=")

    def bracket(self) -> tuple[float, float]:
        """(a value that meets the target, a neighbouring value on the other side that does not)."""
        x = self.start()
        met = self.excess(x) < 0
        stride = _STRIDE if self.whole else 2.0
        up, down = self._moved(x, stride) or self._moved(x, 2.0), self._moved(x, 0.5)
        other = up if up is not None else down
        if other is None:
            raise CannotCalibrate(f"only one value of the parameter, {x:g}, is accepted; give low= and high=")
        grows = (
            (self.excess(other) > self.excess(x)) == (other > x)
            if self.excess(other) != self.excess(x)
            else self._grows(x)
        )
        factor = stride if met == grows else 0.5  # towards the edge
        for _ in range(_MOST_DOUBLINGS):
            following = self._moved(x, factor) or (self._moved(x, 2.0) if factor > 2 else None)
            if following is None:
                break
            if (self.excess(following) < 0) != met:
                return (x, following) if met else (following, x)
            x = following
        if met:  # the whole side meets the target: the limit itself is the answer
            return x, x
        raise CannotCalibrate(
            f"no value of the parameter certainly gives {self.goal.text}: at {x:.6g} it is "
            f"{math.exp(min(self.excess(x), 700.0)) * self.goal.bound:.6g}; change the target or the plan"
        )

    def _grows(self, x: float) -> bool:
        """Whether the measure grows with x, looked for further away where it is flat nearby."""
        for factor in (16.0, 1 / 16.0, 256.0, 1 / 256.0):
            other = self._moved(x, factor)
            if other is not None and self.excess(other) != self.excess(x):
                return (self.excess(other) > self.excess(x)) == (other > x)
        return False

    def _moved(self, x: float, factor: float) -> float | None:
        """x times the factor; the limit, if that is what lies in between; None where nothing lies there."""
        moved = x * factor
        if self.whole:
            moved = float(math.ceil(moved) if factor > 1 else math.floor(moved))
        for candidate in (moved, min(max(moved, self.low), self.high), 1.0):
            if (
                candidate != x
                and (candidate > x) == (factor > 1)
                and min(x, moved) <= candidate <= max(x, moved)
                and self.allowed(candidate)
            ):
                return candidate
        return None

    def narrowed(self, good: float, bad: float) -> float:
        """Bracketed inverse interpolation in log x; ends when the two are neighbours."""
        shift = 0.3 * _CLOSE
        for turn in range(400):
            if good == bad or abs(bad - good) <= (1.0 if self.whole else _CLOSE * abs(good)):
                break
            halve = turn > _PATIENCE and turn % 2 == 1
            x, wanted = (_middle(good, bad), None) if halve else self._next(good, bad, shift)
            if self.whole:
                towards = math.copysign(1.0, bad - good)
                x = float(round(x))
                x = good + towards if x == good else bad - towards if x == bad else x
            if not min(good, bad) < x < max(good, bad) and not self.whole:  # an interpolation that lands on an end
                x, wanted = _middle(good, bad), None
            if not min(good, bad) < x < max(good, bad):
                break
            meets = self.excess(x) < 0
            shift = 16 * shift if wanted not in (None, meets) else 0.3 * _CLOSE
            good, bad = (x, bad) if meets else (good, x)
        return int(good) if self.whole else good

    def _next(self, good: float, bad: float, shift: float) -> tuple[float, bool | None]:
        """Where the inverse interpolation of the excess meets zero. Once an end is as close to that as ``shift``, a
        point just beyond it, so that the other end closes in: with it the side on which that point should lie.
        """
        root = self._root()
        if root is None or not min(good, bad) > 0:
            return _middle(good, bad), None
        log_good, log_bad = math.log(good), math.log(bad)
        least, most = min(log_good, log_bad), max(log_good, log_bad)
        if not least - shift < root < most + shift:
            return _middle(good, bad), None
        root = min(max(root, least), most)  # an end that meets the target exactly is the root
        for near, far, wanted in ((log_good, log_bad, False), (log_bad, log_good, True)):
            if abs(root - near) <= 2 * shift and abs(far - root) > shift:
                return math.exp(root + math.copysign(shift, far - root)), wanted
        return math.exp(root), None

    def _root(self) -> float | None:
        """log x where the polynomial through the (excess, log x) nearest to zero excess, up to four, is at zero excess
        [Neville's scheme]; None where fewer than two are finite.
        """
        known = [(excess, math.log(x)) for x, excess in self.asked.items() if math.isfinite(excess) and x > 0]
        points: list[tuple[float, float]] = []
        for excess, log_x in sorted(known, key=lambda point: abs(point[0])):
            if len(points) < 4 and all(excess != other for other, _ in points):
                points.append((excess, log_x))
        if len(points) < 2:
            return None
        at = [excess for excess, _ in points]
        value = [log_x for _, log_x in points]
        for gap in range(1, len(points)):
            value = [
                (at[i + gap] * value[i] - at[i] * value[i + 1]) / (at[i + gap] - at[i]) for i in range(len(value) - 1)
            ]
        return value[0]


def _middle(good: float, bad: float) -> float:
    return math.sqrt(good) * math.sqrt(bad) if good > 0 and bad > 0 else 0.5 * (good + bad)
