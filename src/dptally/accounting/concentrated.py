"""Zero-concentrated differential privacy: K(l) <= rho l (l+1) for all l > 0.  [Bun, Steinke 2016]"""

from __future__ import annotations

import itertools
import math

import numpy as np

from dptally import checks
from dptally.accounting import renyi
from dptally.accounting.answer import Answer
from dptally.accounting.moments import MOMENT_TRUST, Asked, divergences, infinity_mass, log_moment_upper_or_raise
from dptally.checks import Floats
from dptally.errors import InvalidArgument, Unanswerable
from dptally.law import Composition, Law
from dptally.numerics.rounding import EPS, down, up
from dptally.numerics.search import last_true

__all__ = [
    "CONVERSIONS",
    "delta",
    "delta_from_rho",
    "epsilon",
    "epsilon_from_rho",
    "rho",
    "rho_for",
    "rho_from_pure",
    "sigma_for",
    "smallest_rho",
]

#: how rho becomes (epsilon, delta)
CONVERSIONS = {
    "tightest": "Canonne, Kamath, Steinke 2020, Prop. 12, at K(t) = rho t (t+1), the order optimised",
    "bun-steinke": "Bun, Steinke 2016, Prop. 1.3: rho + 2 sqrt(rho log(1/delta))",
}
_TOLERANCE = 1e-12  # of rho, relative
_PIECE = 256  # moments asked at once
_BUDGET = 100_000  # intervals; past it the bound found so far is the answer: looser, still an upper bound


def rho(plan: Asked) -> float:
    """The smallest rho for which the plan is rho-zCDP, rounded up: the larger direction; inf if there is
    none.

    Of a composition it is at most the sum of its parts' rho, and less where their suprema lie at different
    orders.
    """
    return max(smallest_rho(composition) for composition in divergences(plan))


# -- questions -----------------------------------------------------------------------------------------------


def epsilon(plan: Asked, delta: float, conversion: str = "tightest") -> Answer:
    """The epsilon at ``delta`` that the plan's smallest rho proves, rounded up (see
    :func:`epsilon_from_rho`).
    """
    smallest = _finite_rho(plan)
    return epsilon_from_rho(smallest, delta, conversion)


def delta(plan: Asked, epsilon: float, conversion: str = "tightest") -> Answer:
    """The delta at ``epsilon`` that the plan's smallest rho proves, rounded up (:func:`delta_from_rho`)."""
    smallest = _finite_rho(plan)
    return delta_from_rho(smallest, epsilon, conversion)


def _finite_rho(plan: Asked) -> float:
    smallest = rho(plan)
    if math.isinf(smallest):
        raise Unanswerable("the plan is not zCDP for any rho; use dptally.accounting.renyi.epsilon or plan.epsilon")
    return smallest


def epsilon_from_rho(rho: float, delta: float, conversion: str = "tightest") -> Answer:
    """rho-zCDP implies (epsilon, delta)-DP; inf at delta = 0 unless rho = 0.

    "bun-steinke": rho + 2 sqrt(rho log(1/delta)); "tightest": the order of the sharper Renyi conversion is
    optimised.

    >>> round(float(epsilon_from_rho(0.5, 1e-5, "bun-steinke")), 12)
    5.298525912188
    >>> round(float(epsilon_from_rho(0.5, 1e-5)), 12)
    4.728386984943
    """
    rho, delta, theorem = (
        checks.nonnegative("rho", rho),
        checks.probability("delta", delta),
        _theorem(conversion),
    )
    detail = f"rho = {rho!r}"
    if rho == 0 or delta == 1:
        return Answer(0.0, "concentrated", theorem, None, detail)
    if delta == 0:
        return Answer(math.inf, "concentrated", theorem, None, detail)
    if conversion == "bun-steinke":
        log_inverse = up(-math.log(delta), 2)
        order = 1 + math.sqrt(log_inverse / rho)
        return Answer(up(rho + 2 * math.sqrt(rho * log_inverse), 3), "concentrated", theorem, order, detail)
    value, order = renyi.best_epsilon(lambda t: _quadratic(rho, t), delta)
    return Answer(value, "concentrated", theorem, order, detail)


def delta_from_rho(rho: float, epsilon: float, conversion: str = "tightest") -> Answer:
    """rho-zCDP implies (epsilon, delta)-DP. "bun-steinke": exp(-(epsilon - rho)^2/(4 rho)) for epsilon >=
    rho, else 1.

    >>> round(float(delta_from_rho(0.5, 4.728386984943, "tightest")), 10)
    1e-05
    """
    rho, epsilon, theorem = (
        checks.nonnegative("rho", rho),
        checks.nonnegative("epsilon", epsilon),
        _theorem(conversion),
    )
    detail = f"rho = {rho!r}"
    if rho == 0:
        return Answer(0.0, "concentrated", theorem, None, detail)
    if conversion == "bun-steinke":
        distance = max(down(epsilon - rho), 0.0)
        exponent = down(down(distance * distance) / (4 * rho), 1)
        order = 1 + distance / (2 * rho)
        value = min(up(math.exp(-max(exponent, 0.0)), 2), 1.0)
        return Answer(value, "concentrated", theorem, order, detail)
    log_delta, order = renyi.best_delta(lambda t: _quadratic(rho, t), epsilon)
    return Answer(min(up(math.exp(min(log_delta, 0.0)), 2), 1.0), "concentrated", theorem, order, detail)


def rho_for(epsilon: float, delta: float, conversion: str = "tightest") -> float:
    """The largest rho whose guarantee meets (epsilon, delta), rounded down.

    "bun-steinke": (sqrt(log(1/delta) + epsilon) - sqrt(log(1/delta)))^2 = (epsilon/(sqrt(L+epsilon) +
    sqrt(L)))^2.

    >>> round(rho_for(1.0, 1e-5, "bun-steinke"), 12)
    0.02081993834
    """
    epsilon, delta = checks.positive("epsilon", epsilon), checks.open_probability("delta", delta)
    _theorem(conversion)
    log_inverse = up(-math.log(delta), 2)
    ratio = epsilon / (math.sqrt(log_inverse + epsilon) + math.sqrt(log_inverse))
    simple = max(down(ratio * ratio, 8), 0.0)
    if conversion == "bun-steinke" or simple == 0:
        return simple

    def enough(candidate: float) -> bool:
        return epsilon_from_rho(candidate, delta).value <= epsilon

    high = 2 * simple
    while enough(high):
        high *= 2
    return last_true(enough, simple, high, 1e-13) if enough(simple) else simple


def rho_from_pure(epsilon: float) -> float:
    """epsilon-DP implies rho-zCDP with rho = epsilon tanh(epsilon/2) <= epsilon^2/2, the best possible,
    rounded up.

    Attained by randomized response as the order tends to 1. The bound epsilon^2/2 is Bun, Steinke 2016, Prop.
    1.4; the sharp one is the supremum of K(l)/(l (l+1)) over the pairs that dominate epsilon-DP.

    >>> round(rho_from_pure(1.0), 12)
    0.46211715726
    """
    epsilon = checks.nonnegative("epsilon", epsilon)
    value = epsilon * math.tanh(0.5 * epsilon)
    return up(value, 4) if value > 0 else 0.0


def sigma_for(rho: float, sensitivity: float = 1.0) -> float:
    """The smallest Gaussian noise that is rho-zCDP, rounded up: sigma^2 = sensitivity^2 / (2 rho).

    [Liu, Wang 2025, (37); Bun, Steinke 2016, Prop. 1.6]

    >>> round(sigma_for(0.02), 12)
    5.0
    """
    rho, sensitivity = checks.positive("rho", rho), checks.positive("sensitivity", sensitivity)
    return up(sensitivity * math.sqrt(0.5 / rho), 4)


def _quadratic(rho: float, t: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(up(rho * t * (t + 1), 4), dtype=np.float64)


def _theorem(conversion: str) -> str:
    if conversion not in CONVERSIONS:
        raise InvalidArgument("conversion", f"one of {sorted(CONVERSIONS)}", conversion)
    return CONVERSIONS[conversion]


# -- the smallest rho ----------------------------------------------------------------------------------------


def smallest_rho(composition: Composition) -> float:
    """sup over l > 0 of K(l) / (l (l+1)) of the composed K, rounded up, to relative 1e-12.

    Branch and bound. K is convex with K(0) = 0, so on [l1, l2] it lies below its chord A + B l with A <= 0 <=
    B, and the maximum of (A + B l)/(l (l+1)) has a closed form. The ends: l -> 0, where the ratio tends to
    K'(0) and stays below K(l1)/l1 on (0, l1]; l -> inf, where K(l) <= l sup L. Parts whose ratio is constant
    (Gaussian noise) enter by their closed form.
    """
    if not composition.parts:
        return 0.0
    if infinity_mass(composition)[1] > 0:
        return math.inf
    known = [_closed(law, n) for law, n in composition.parts]
    if len(known) == 1 and math.isfinite(known[0]):
        return known[0]
    ceiling = up(math.fsum(known))
    if ceiling <= composition.mean * (1 + _TOLERANCE):  # every part attains its supremum as l -> 0
        return ceiling
    parts = list(zip(composition.parts, known, strict=True))
    flat = [_is_flat(law, n, value) for (law, n), value in parts]
    constant = math.fsum(itertools.compress(known, flat))
    rest = tuple(part for part, is_flat in zip(composition.parts, flat, strict=True) if not is_flat)
    total = constant + _search(Composition(rest)) if rest else ceiling
    return min(ceiling, up(total, 2) if total > 0 else 0.0)


def _closed(law: Law, n: int) -> float:
    """n times the closed form of one law's rho, rounded up; inf where there is none."""
    value = law.closed_rho()
    if value is None:
        return math.inf
    return value if n == 1 else up(n * value)


def _is_flat(law: Law, n: int, value: float) -> bool:
    """Whether the ratio looks constant: decides only how tight the bound is, never whether it holds."""
    if math.isinf(value):
        return False
    return bool(np.all(_ratio(Composition(((law, n),)), np.array([1e-3, 1.0, 1e3])) >= value * (1 - 1e-13)))


def _ratio(composition: Composition, at: Floats) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        value = _moment(composition, at) / at / (at + 1)
    return np.where(np.isnan(value), np.inf, value)


def _moment(composition: Composition, at: Floats) -> Floats:
    """K, rounded up by what the laws state: a chord of upper bounds lies above that of K, and so above K."""
    pieces = np.array_split(at, -(-at.size // _PIECE))  # a law may need thousands of nodes for each
    return np.concatenate([log_moment_upper_or_raise(composition, piece) for piece in pieces])


def _search(composition: Composition) -> float:
    """Branch and bound over l, for a composition without mass at infinity."""
    bounded = up(math.fsum(n * law.supremum for law, n in composition.parts if math.isfinite(law.supremum)))
    unbounded = _unbounded_ceiling(composition)
    if math.isinf(bounded):  # the suprema add up beyond the largest double
        return math.inf
    if math.isinf(unbounded):
        return _infinite_or_unknown(composition)
    points = np.geomspace(1e-9, 1.0, 91)
    values = _moment(composition, points)
    best = max(composition.mean, float(np.max(values / points / (points + 1))), unbounded)
    if best == 0:
        return 0.0
    last = bounded / max(best - unbounded, best * _TOLERANCE)  # beyond it the ratio is below best
    late = _late(composition, bounded, last)
    last = min(last, late)
    if last > 1:
        further = np.geomspace(1.0, last, 2 + int(12 * math.log10(last)))[1:]
        further, more = _reachable(composition, further)
        points, values = np.concatenate([points, further]), np.concatenate([values, more])
    beyond = unbounded if points[-1] >= late else unbounded + bounded / (points[-1] + 1)
    low, high = np.concatenate([[0.0], points[:-1]]), points
    k_low, k_high = np.concatenate([[0.0], values[:-1]]), values
    settled, spent = max(best, beyond), 0
    while True:
        best = max(best, float(np.max(k_high / high / (high + 1))))
        upper = np.minimum(_chord_bound(low, high, k_low, k_high), unbounded + bounded / (low + 1))
        open_ = upper > max(best * (1 + 0.5 * _TOLERANCE), settled)  # below what is settled nothing is gained
        settled = max(settled, best, float(np.max(upper[~open_], initial=0.0)))
        spent += int(open_.sum())
        low, high, k_low, k_high = low[open_], high[open_], k_low[open_], k_high[open_]
        middle = np.where(low > 0, np.sqrt(low) * np.sqrt(high), 1e-3 * high)
        if not low.size or spent > _BUDGET or np.any((middle <= low) | (middle >= high) | (high < 1e-250)):
            break
        k_middle = _moment(composition, middle)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        k_low, k_high = np.concatenate([k_low, k_middle]), np.concatenate([k_middle, k_high])
    settled = max(settled, float(np.max(upper[open_], initial=0.0)))
    return float(settled * (1 + 2 * MOMENT_TRUST))


def _infinite_or_unknown(composition: Composition) -> float:
    """inf where a moment is infinite; refused where large orders are unknown."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isinf(np.asarray(composition.log_moment(np.array([1.0, 4.0, 16.0, 64.0])))).any():
            return math.inf
    raise Unanswerable(
        "the loss is unbounded and no bound of its Renyi divergences at large orders is known, so "
        "the smallest rho cannot be certified; ask epsilon(delta=...) or renyi(order) instead"
    )


def _late(composition: Composition, bounded: float, last: float) -> float:
    """An l from which on the ratio is at most that of the unbounded parts at infinity; inf where none up to ``last``.

    With the slack s of the unbounded parts, which grows with l, and K(l) <= l sup L of the others the ratio is at most
    their closed forms + (sup L - s(l)) / l.
    """
    unbounded = [(law, n) for law, n in composition.parts if math.isinf(law.supremum)]
    for order in np.geomspace(1.0, max(last, 1.0), 64).tolist():
        if bounded <= down(math.fsum(down(n * law.rho_slack(order)) for law, n in unbounded)):
            return float(order)
    return math.inf


def _reachable(composition: Composition, at: Floats) -> tuple[Floats, Floats]:
    """The first of these points, and K there, up to where it cannot be computed any more."""
    values = []
    for decade in np.array_split(at, math.ceil(at.size / 12)):
        try:
            values.append(_moment(composition, decade))
        except Unanswerable:  # from here on K(l) <= l sup L is used
            break
    known = np.concatenate(values) if values else np.empty(0)
    known = known[: np.argmin(np.isfinite(known))] if not np.isfinite(known).all() else known
    return at[: known.size], known


def _unbounded_ceiling(composition: Composition) -> float:
    """A bound, for every l, of the ratio of the parts whose loss is unbounded: closed rho, or mu^2/2 from
    GDP.
    """
    total = 0.0
    for law, n in composition.parts:
        if math.isinf(law.supremum):
            closed = law.closed_rho()
            total += n * (0.5 * law.gaussian_mu() ** 2 if closed is None else closed)
    return up(total, 4) if total else 0.0


def _chord_bound(low: Floats, high: Floats, k_low: Floats, k_high: Floats) -> Floats:
    """The maximum on [low, high] of chord(l) / (l (l+1)); on (0, high] the slope K(high)/high.

    With A = -c and slope B the peak solves B l^2 - 2 c l - c = 0. Its round-off enters the value squared
    only.
    """
    slope = (k_high - k_low) / (high - low)
    c = np.maximum(slope * low - k_low, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        peak = (c + np.sqrt(c) * np.sqrt(c + slope)) / slope
    inside = np.clip(np.where(np.isfinite(peak), peak, high), np.maximum(low, 1e-300), high)
    weight = (inside - low) / (high - low)
    middle = ((1 - weight) * k_low + weight * k_high) / inside / (inside + 1)
    left = k_low / np.maximum(low, 1e-300) / (low + 1)
    largest = np.maximum(np.maximum(middle, left), k_high / high / (high + 1))
    return np.where(low > 0, largest, k_high / high) * (1 + 16 * EPS)
