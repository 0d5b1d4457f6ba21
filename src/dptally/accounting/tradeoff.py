"""The trade-off function: what any attacker can do who must tell two neighbouring datasets apart.

An attacker rejects "the record is absent" on an event S. With A, B the outputs on the two datasets,
FPR = B(S) = x and FNR = 1 - A(S). Each point of the profiles delta_A(eps) = sup A(S) - e^eps B(S) and delta_B
(the other direction) bounds the two rates
[Wasserman, Zhou 2010, Thm. 2.4; Kairouz, Oh, Viswanath 2015, Thm. 2.1; Dong, Roth, Su 2022, Prop. 2.12]:

    TPR <= delta_A(eps) + e^eps x            FNR >= e^-eps (1 - x - delta_B(eps)),     for every eps >= 0,

and the best of them over eps is the trade-off function itself.
Any eps is valid, so the search may be sloppy; only the last formula rounds outwards. The attacker may also
test in the other orientation (A and B exchanged): the answer is the worse of the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from dptally import checks
from dptally.accounting import certified, gaussian, renyi
from dptally.accounting.moments import Asked, Checked, checked, infinity_mass
from dptally.checks import Floats
from dptally.errors import InvalidType
from dptally.law import Composition
from dptally.numerics.normal import log_normal_tail, normal_tail_quantile
from dptally.numerics.rounding import down, up

__all__ = [
    "advantage",
    "detection_curve",
    "detection_range",
    "false_negative_rate",
    "false_negative_rates",
    "gaussian_range",
    "true_positive_rate",
]

Profile = Callable[[float], float]  # an upper bound of delta(eps), eps >= 0
GOLDEN = 0.5 * (3.0 - math.sqrt(5.0))
MOST_VISITS = 20  # a smooth profile needs 6 to 10; a profile with corners gets what this buys
MANY_LINES = 12  # of other rates, from which on a search starts from them
FLAT = 1e-9  # a curve needs no slopes beyond the one that leaves this delta: they matter below fpr 1e-9 only
SHARPEST = 700.0  # slopes beyond e^700 leave the range of doubles

_FEW_RATES = 8


def false_negative_rate(plan: Asked, fpr: float) -> float:
    """The smallest false-negative rate of any attacker with this false-positive rate, rounded down (the
    safe side).

    Exact to rounding for a single Gaussian, where it is Phi(Phi^{-1}(1 - fpr) - mu)  [Dong, Roth, Su 2022,
    Def. 2.6].
    """
    fpr = checks.probability("fpr", fpr)
    return detection_range(plan, fpr, _one_minus(fpr))[1]


def false_negative_rates(plan: Asked, fpr: Floats) -> Floats:
    """:func:`false_negative_rate` at many false-positive rates: a line that was found for one serves its neighbours.

    A few are asked each by itself: little would be saved, and lines of others cost the last bits.
    """
    directions = checked(plan)
    rates = [checks.probability("fpr", rate) for rate in np.asarray(fpr, dtype=np.float64).ravel().tolist()]
    if len(rates) <= _FEW_RATES:
        return np.array([false_negative_rate(plan, rate) for rate in rates]).reshape(np.shape(fpr))
    known = {composition: _Known(composition) for composition in directions}
    found = {rate: _detection_range(directions, rate, _one_minus(rate), known)[1] for rate in sorted(set(rates))}
    return np.array([found[rate] for rate in rates]).reshape(np.shape(fpr))


def true_positive_rate(plan: Asked, fpr: float) -> float:
    """The largest true-positive rate (power) of any attacker with this false-positive rate, rounded up.

    Found directly, not as 1 - FNR, so that it keeps its relative accuracy at FPR 1e-10 and below.
    """
    fpr = checks.probability("fpr", fpr)
    return detection_range(plan, fpr, _one_minus(fpr))[0]


def advantage(plan: Asked) -> float:
    """The largest TPR - FPR of any attacker, rounded up: delta(0), the total variation of the pair."""
    return max(profile(0.0) for profile in (_profile(c) for c in checked(plan)))


def detection_range(plan: Asked, fpr: float, complement: float) -> tuple[float, float]:
    """(largest TPR, smallest FNR) at a false-positive rate x <= ``fpr`` with 1 - x >= ``complement``.

    Both are rounded to the safe side; they are two forms of one bound, each accurate where it is small. The
    two arguments say the same thing, each exactly where it is small.
    """
    directions = checked(plan)
    return _detection_range(directions, fpr, complement, {c: _Known(c) for c in directions})


def _detection_range(
    directions: tuple[Composition, ...], fpr: float, complement: float, known: dict[Composition, _Known]
) -> tuple[float, float]:
    if complement <= 0:
        return 1.0, 0.0
    tpr, fnr = 0.0, complement
    for alternative, null in _orientations(directions):
        found = _oriented(known[alternative], known[null], fpr, complement, (tpr, fnr))
        tpr, fnr = max(tpr, found[0]), min(fnr, found[1])
    return tpr, max(0.0, fnr)


def detection_curve(plan: Asked, fpr: Floats, lines: int = 48) -> tuple[Floats, Floats]:
    """(largest TPR, smallest FNR) at many false-positive rates, from the same ``lines`` slopes for all of them.

    A bound at every rate, for one profile instead of a search at each: what a picture needs. Between the slopes
    it gives away a little: the spacing squared where the profile is smooth, the spacing at its corners.
    """
    rates = np.asarray(fpr, dtype=np.float64)
    directions = checked(plan)
    known = {id(c): _lines(c, lines) for c in directions}
    mu = gaussian.mu(directions)
    tpr, fnr = np.zeros(rates.shape), np.ones(rates.shape)
    for alternative, null in _orientations(directions):
        above, below = _under(known[id(alternative)], known[id(null)], rates)
        tpr, fnr = np.maximum(tpr, above), np.minimum(fnr, below)
    if math.isfinite(mu):
        exact = np.array([gaussian_range(mu, rate) for rate in rates.tolist()])
        tpr, fnr = np.minimum(tpr, exact[:, 0]), np.maximum(fnr, exact[:, 1])
    return tpr, fnr


def _lines(composition: Composition, number: int) -> tuple[Floats, Floats]:
    """(eps, an upper bound of delta there) from 0 to where delta has nearly ended."""
    profile = _profile(composition)
    limit = _furthest(composition)
    end = min(0.25, limit)
    rest = (infinity_mass(composition)[1] if composition.determined else 0.0) + FLAT
    while end < limit and profile(end) > rest:
        end = min(2.0 * end, limit)
    epsilons = np.linspace(0.0, end, number)
    return epsilons, np.array([profile(epsilon) for epsilon in epsilons.tolist()])


def _furthest(composition: Composition) -> float:
    """No slope beyond this helps: the largest loss, 0 where none is finite or positive."""
    return max(0.0, min(composition.supremum if composition.determined else math.inf, SHARPEST))


def _under(above: tuple[Floats, Floats], below: tuple[Floats, Floats], rates: Floats) -> tuple[Floats, Floats]:
    """(TPR, FNR) under all lines at once, rounded to the safe side."""
    x = rates[:, None]
    epsilon, delta = above
    tpr = np.min(up(delta + up(np.exp(epsilon) * x, 4)), axis=1)
    epsilon, delta = below
    fnr = np.max(down(np.exp(-epsilon) * down(down(1.0 - x) - delta), 4), axis=1)
    return np.minimum(np.minimum(tpr, up(1.0 - fnr)), 1.0), np.maximum(np.maximum(fnr, down(1.0 - tpr)), 0.0)


def _orientations(directions: tuple[Composition, ...]) -> list[tuple[Composition, Composition]]:
    """(what bounds A(S) - e^eps B(S), what bounds B(S) - e^eps A(S)) for both ways to test."""
    if len(directions) == 1:
        return [(directions[0], directions[0])]
    if len(directions) > 2:
        raise InvalidType("directions", "one or two compositions", len(directions))
    first, second = directions  # pyright: ignore[reportAssignmentType]  # never empty
    return [(first, second), (second, first)]


def _oriented(
    alternative: _Known, null: _Known, fpr: float, complement: float, enough: tuple[float, float]
) -> tuple[float, float]:
    """(largest TPR, smallest FNR) of one way to test; need not be sharp where they are no worse than ``enough``."""
    mu = gaussian.mu(Checked((alternative.composition, null.composition)))
    tpr, fnr = gaussian_range(mu, fpr, complement)
    if fpr == 0:
        mass = infinity_mass(alternative.composition)[1]
        return min(tpr, mass), max(fnr, _one_minus(mass))
    above, below = (
        _OneSided(alternative, True, fpr, complement, enough),
        _OneSided(null, False, fpr, complement, enough),
    )
    above.search()
    if not above.is_enough and above.flat_is_best:
        below.search()
    return min(tpr, above.tpr, below.tpr), max(fnr, above.fnr, below.fnr)


def gaussian_range(mu: float, fpr: float, complement: float | None = None) -> tuple[float, float]:
    """(largest TPR, smallest FNR) of mu-Gaussian DP: Phi(Phi^{-1}(fpr) + mu) and 1 minus it, rounded.

    >>> tpr, fnr = gaussian_range(1.0, 0.05)
    >>> round(tpr, 6), round(fnr, 6)
    (0.259511, 0.740489)
    """
    complement = _one_minus(fpr) if complement is None else complement
    if mu > 1e100 or complement <= 0:  # the FNR is below the smallest double
        return 1.0, 0.0
    if fpr == 0:
        return 0.0, 1.0
    # z = Phi^{-1}(1 - fpr): its lower end is the safe one, and the smaller tail the sharp one
    if fpr <= 0.5:
        z = float(normal_tail_quantile(up(math.log(fpr), 4))[0])
    else:
        z = -float(normal_tail_quantile(down(math.log(complement), 4))[1])
    shifted = down(z - mu)
    tpr = up(math.exp(float(log_normal_tail(shifted)[1])), 4)
    fnr = down(math.exp(float(log_normal_tail(-shifted)[0])), 4)
    return min(tpr, 1.0), max(fnr, 0.0)


def _profile(composition: Composition) -> Profile:
    """An upper bound of delta(eps): from Renyi where that is all that is known, closed for one step."""
    if not composition.parts:
        return lambda _: 0.0
    if not composition.determined:
        return lambda epsilon: renyi.delta(Checked((composition,)), epsilon).value
    if len(composition.parts) == 1 and composition.parts[0][1] == 1:
        law = composition.parts[0][0]

        def closed(epsilon: float) -> float:
            finite = up(math.exp(float(law.log_profile(np.asarray([epsilon]))[1][0])), 4)
            return min(up(finite + law.infinity_mass) if law.infinity_mass else finite, 1.0)

        return closed
    numerical = certified.delta_profile(composition)
    return lambda epsilon: numerical(epsilon).upper if epsilon else _total_variation(composition)


@lru_cache(maxsize=64)
def _total_variation(composition: Composition) -> float:
    """An upper bound of delta(0), which every question asks for."""
    return certified.delta_interval([composition], 0.0).upper


class _Known:
    """Upper bounds of one direction's delta, remembered: what was asked for one rate serves others."""

    def __init__(self, composition: Composition) -> None:
        self.composition = composition
        self.limit = _furthest(composition)
        # a closed profile is cheap and sharp; a call of the numerical engine may take a second for its 1e-8
        self.cheap = composition.steps <= 1 or not composition.determined
        self._profile = _profile(composition)
        self._delta: dict[float, float] = {}

    def delta(self, epsilon: float) -> float:
        if epsilon not in self._delta:
            self._delta[epsilon] = self._profile(epsilon)
        return self._delta[epsilon]

    def lines(self) -> tuple[Floats, Floats]:
        """The epsilons that were asked, in order, and log delta there."""
        at = np.array(sorted(self._delta))
        with np.errstate(divide="ignore"):
            return at, np.log(np.array([self._delta[epsilon] for epsilon in at.tolist()]))


class _OneSided:
    """One family of lines: their slopes from one profile, and what each proves.

    ``above``: TPR <= delta(eps) + e^eps x.  Otherwise: FNR >= e^-eps (room - delta(eps)), room = 1 - x.
    """

    def __init__(
        self,
        known: _Known,
        above: bool,
        fpr: float,
        complement: float,
        enough: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.known, self.above = known, above
        self.fpr, self.complement, self.enough = fpr, complement, enough
        self.limit = known.limit
        self.log_delta: dict[float, float] = {}
        self.tpr, self.fnr = 1.0, 0.0
        self.gain, self.trust = (1e-13, 1e-6) if known.cheap else (1e-8, 1e-4)

    def visit(self, epsilon: float) -> None:
        """Use the line of this slope: the only place where a bound is made, rounded to the safe side."""
        delta = self.known.delta(epsilon)
        self.log_delta[epsilon] = math.log(delta) if delta > 0 else -math.inf
        if self.above:
            tpr = up(delta + up(math.exp(epsilon) * self.fpr, 4))
            self.tpr, self.fnr = min(self.tpr, tpr), max(self.fnr, _one_minus(tpr))
        else:
            fnr = down(math.exp(-epsilon) * down(self.complement - delta), 4)
            self.fnr, self.tpr = max(self.fnr, fnr), min(self.tpr, up(1.0 - fnr))

    def search(self) -> None:
        """Visit good slopes. log delta is smooth in eps: model it by a parabola, go to the model's best
        eps, repeat."""
        for epsilon in sorted(self._start()):
            self.visit(epsilon)
            if self.is_enough:
                return
        if self.flat_is_best and self._falls_from_zero():
            return
        for turn in range(MOST_VISITS):
            before = self.tpr, self.fnr
            epsilon, expected = self._proposal() if turn % 4 < 3 else (self._cut(), None)
            if epsilon in self.log_delta:
                return
            self.visit(epsilon)
            if self.is_enough:
                return
            better = self.tpr < before[0] * (1 - self.gain) or self.fnr > before[1] * (1 + self.gain)
            found = self.log_delta[epsilon]
            right = expected is not None and abs(found - expected) < self.trust * min(1.0, -found)
            if right and not better and self.fnr > 0:
                return  # the model is right, so there is no more to gain

    def _start(self) -> set[float]:
        """First slopes: those about the best of what was asked for other rates, which cost nothing, or a few."""
        x, y = self.known.lines()
        if x.size >= MANY_LINES:
            self.trust *= 1e-2  # between close neighbours a model is soon right
            i = int(np.argmin(self._cost(x, y)))
            return {0.0, *x[max(i - 2, 0) : i + 3].tolist()}
        start = {0.0, min(1.0, 0.5 * self.limit), self.limit if self.limit < SHARPEST else 0.0}
        if self.above:
            start.add(min(-0.5 * math.log(self.fpr), self.limit, SHARPEST))
        return start

    def _falls_from_zero(self) -> bool:
        """True where eps = 0 is a little better than its neighbour, hence the best of this side."""
        nudge = 1e-3 * min(1.0, self.limit)
        if not nudge > 0:
            return True
        self.visit(nudge)
        x = np.array([0.0, nudge])
        cost = self._cost(x, np.array([self.log_delta[e] for e in x]))
        return bool(np.isfinite(cost[0]) and cost[1] >= cost[0]) and self.flat_is_best

    @property
    def is_enough(self) -> bool:
        """True where this way to test is no better for the attacker than one that is known already."""
        return self.tpr <= self.enough[0] and self.fnr >= self.enough[1]

    @property
    def flat_is_best(self) -> bool:
        """True where no slope beats eps = 0: the best line then belongs to the other side."""
        return self._best()[2] == 0

    def _cost(self, epsilon: Floats, log_delta: Floats) -> Floats:
        """What is minimised: log TPR, or -log FNR; +inf where the line proves nothing."""
        if self.above:
            return np.logaddexp(log_delta, epsilon + math.log(self.fpr))
        room = self.complement - np.exp(np.minimum(log_delta, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(room > 0, epsilon - np.log(np.maximum(room, 0.0)), np.inf)

    def _best(self) -> tuple[Floats, Floats, int]:
        """The visited points in order and the index of the best."""
        x = np.array(sorted(self.log_delta))
        y = np.array([self.log_delta[e] for e in x])
        cost = self._cost(x, y)
        if not np.isfinite(cost).any():  # nothing proved yet: go on to larger eps
            return x, y, x.size - 1
        return x, y, int(np.argmin(cost))

    def _proposal(self) -> tuple[float, float | None]:
        """(the model's best eps between the neighbours of the best visited one, the log delta it expects
        there)."""
        x, y, i = self._best()
        near = sorted(np.flatnonzero(np.isfinite(y)), key=lambda j: abs(x[j] - x[i]))[:3]
        low = float(x[max(i - 1, 0)])
        high = float(x[i + 1]) if i + 1 < x.size else min(2.0 * float(x[i]) + 1.0, self.limit)
        for _ in range(3):  # two zooms by 128 each
            grid = np.linspace(low, high, 257)
            with np.errstate(all="ignore"):  # slopes of losses next to nothing: the search may be sloppy
                model = _parabola(x[near], y[near], grid)
                cost = self._cost(grid, model)
            j = int(np.argmin(cost)) if np.isfinite(cost).any() else grid.size - 1
            low, high = float(grid[max(j - 1, 0)]), float(grid[min(j + 1, grid.size - 1)])
        epsilon = float(grid[j])  # pyright: ignore[reportPossiblyUnboundVariable]
        return (epsilon, float(model[j])) if epsilon not in self.log_delta else (self._cut(), None)  # pyright: ignore[reportPossiblyUnboundVariable]

    def _cut(self) -> float:
        """The golden cut of the longer side of the best point: progress whatever the profile looks like."""
        x, _, i = self._best()
        left, right = x[max(i - 1, 0)], x[min(i + 1, x.size - 1)]
        return float(x[i] - GOLDEN * (x[i] - left) if x[i] - left > right - x[i] else x[i] + GOLDEN * (right - x[i]))


def _parabola(x: Floats, y: Floats, at: Floats) -> Floats:
    """Newton's interpolation through one, two or three points."""
    out = np.full(at.shape, y[0])
    if x.size > 1:
        slope = (y[1] - y[0]) / (x[1] - x[0])
        out = out + slope * (at - x[0])
    if x.size > 2:
        bend = ((y[2] - y[1]) / (x[2] - x[1]) - slope) / (x[2] - x[0])  # pyright: ignore[reportPossiblyUnboundVariable]
        out = out + bend * (at - x[0]) * (at - x[1])
    return out


def _one_minus(x: float) -> float:
    """1 - x, rounded down; exact for x = 0 and for x in [1/2, 1]."""
    return 1.0 - x if x == 0 or 0.5 <= x <= 1 else down(1.0 - x)
