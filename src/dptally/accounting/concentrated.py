"""Zero-concentrated differential privacy: K(l) <= rho l (l+1) for all l > 0; rho adds.  [Bun, Steinke 2016]"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dptally.checks import Floats
from dptally.errors import Unanswerable
from dptally.law import Composition
from dptally.numerics.rounding import EPS

__all__ = ["rho", "smallest_rho"]

_TRUST = 64 * EPS  # K is trusted to this relative error; every bound below is widened by it
_TOLERANCE = 1e-12
_BUDGET = 200_000  # intervals; past it the bound found so far is returned: still an upper bound, only looser


def rho(directions: Sequence[Composition]) -> float:
    """The smallest rho for which the plan is rho-zCDP, rounded up: the larger direction; inf if there is none."""
    return max((smallest_rho(composition) for composition in directions), default=0.0)


def smallest_rho(composition: Composition) -> float:
    """sup over l > 0 of K(l) / (l (l+1)) of the composed K, rounded up, to relative 1e-12.

    Branch and bound: K is convex, so on [l1, l2] it lies below its chord A + B l with A <= 0 < B, and the maximum of
    (A + B l)/(l (l+1)) has a closed form. The ends are l -> 0 (limit K'(0)) and l -> inf (K(l) <= l sup L).
    """
    if not composition.parts:
        return 0.0
    if composition.log_survival < 0:
        return math.inf
    known = [(n * c if (c := law.closed_rho()) is not None else math.inf) for law, n in composition.parts]
    ceiling = math.fsum(known)
    ceiling = ceiling if len(composition.parts) == 1 and composition.parts[0][1] == 1 else ceiling * (1 + 2 * EPS)
    grid = np.logspace(-12, 12, 241)
    floor = max(composition.mean, float(np.max(_ratio(composition, grid))))
    if ceiling <= floor * (1 + _TOLERANCE) or len(composition.parts) == 1 and math.isfinite(ceiling):
        return ceiling
    # parts whose ratio is constant (Gaussian) are bounded by their closed form, the others by chords
    flat = [i for i, (law, n) in enumerate(composition.parts) if _is_flat(Composition(((law, n),)), known[i])]
    constant = math.fsum(known[i] for i in flat)
    rest = Composition(tuple(part for i, part in enumerate(composition.parts) if i not in flat))
    return min(ceiling, (constant + _search(rest)) * (1 + _TRUST))


def _ratio(composition: Composition, l: Floats) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        value = np.asarray(composition.log_moment(l), dtype=np.float64) / l / (l + 1)
    return np.where(np.isnan(value), np.inf, value)


def _is_flat(part: Composition, known: float) -> bool:
    return math.isfinite(known) and bool(np.all(_ratio(part, np.array([1e-6, 1.0, 1e6])) >= known * (1 - 1e-13)))


def _search(composition: Composition) -> float:
    if not composition.parts:
        return 0.0
    tail_known = 0.0  # bound of the ratio of the unbounded losses, for every l
    bounded = 0.0  # supremum of the others
    for law, n in composition.parts:
        if math.isfinite(law.supremum):
            bounded += n * law.supremum
            continue
        closed = law.closed_rho()
        part = n * closed if closed is not None else 0.5 * n * law.gaussian_mu() ** 2
        tail_known += part
    grid = np.logspace(-12, 6, 361)
    ratios = _ratio(composition, grid)
    if np.isinf(ratios).any():
        return math.inf
    if math.isinf(tail_known):
        raise Unanswerable(
            "the loss is unbounded and no closed bound of its Renyi divergences at large orders is known, so the smallest rho "
            "cannot be certified; ask epsilon(delta=...) or renyi(order) instead"
        )
    best = max(composition.mean, float(ratios.max()), tail_known)
    last = max(bounded / max(best - tail_known, best * _TOLERANCE, 1e-300), 1.0) if bounded else 1e6
    points = np.concatenate([[0.0], grid[grid < last], [min(last, 1e150)]])
    tail = tail_known + bounded / (points[-1] + 1)
    with np.errstate(over="ignore"):
        values = np.concatenate([[0.0], np.asarray(composition.log_moment(points[1:]), dtype=np.float64)])
    low, high, k_low, k_high = points[:-1], points[1:], values[:-1], values[1:]
    done, spent = tail, 0
    while low.size:
        upper = _chord_bound(low, high, k_low, k_high)
        best = max(best, float(np.max(k_high / high / (high + 1))))
        keep = upper > best * (1 + 0.5 * _TOLERANCE)
        done = max(done, float(np.max(upper[~keep], initial=0.0)))
        spent += int(keep.sum())
        if spent > _BUDGET:
            return max(done, float(upper.max()))
        low, high, k_low, k_high = low[keep], high[keep], k_low[keep], k_high[keep]
        if not low.size:
            break
        middle = np.where(low > 0, np.sqrt(low) * np.sqrt(high), high * 1e-3)
        if np.any((middle <= low) | (middle >= high)) or float(high.min()) < 1e-290:
            return max(done, float(upper.max()))
        k_middle = np.asarray(composition.log_moment(middle), dtype=np.float64)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        k_low, k_high = np.concatenate([k_low, k_middle]), np.concatenate([k_middle, k_high])
    return max(done, best)


def _chord_bound(low: Floats, high: Floats, k_low: Floats, k_high: Floats) -> Floats:
    """An upper bound on [low, high] of chord(l) / (l (l+1)); low = 0 means K(0) = 0, where the bound is the slope."""
    slope = (k_high - k_low) / (high - low)
    intercept = np.maximum(-(k_low - slope * low), 0.0)  # |A|
    with np.errstate(divide="ignore", invalid="ignore"):
        peak = (intercept + np.sqrt(intercept * (intercept + slope))) / slope
        peak = np.clip(np.where(np.isfinite(peak), peak, low), low, high)
        weight = (peak - low) / (high - low)
        inside = ((1 - weight) * k_low + weight * k_high) / peak / (peak + 1)
    ends = np.maximum(np.where(low > 0, k_low / np.where(low > 0, low, 1.0) / (low + 1), 0.0), k_high / high / (high + 1))
    bound = np.where(low > 0, np.fmax(inside, ends), k_high / high)
    return bound * (1 + _TRUST)
