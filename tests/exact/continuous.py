"""Random plans with continuous losses, and truths of them in ball arithmetic that share nothing with the library.

Gaussian mixes, Gaussian and Laplace noise on Poisson samples under both adjacencies, point masses beside them, up to
1e9 steps; both directions, also where their profiles cross. Truth: tests/truth (python-flint), one contour in balls for
each direction.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

import dptally as dp
from truth import AtomsPiece, GaussianPiece, LaplacePiece, Piece, SampledPiece, ball
from truth.balls import precision
from truth.inversion import mixture_delta
from truth.replace_piece import SampledReplacePiece
from truth.sampled_laplace_piece import SampledLaplacePiece

Draw = random.Random
SIDES = ("remove", "add")
DIGITS = 14


def log_uniform(draw: Draw, low: float, high: float) -> float:
    return math.exp(draw.uniform(math.log(low), math.log(high)))


@dataclass(frozen=True)
class Part:
    """A mechanism some times over, and its loss in each direction."""

    mechanism: dp.Mechanism
    count: int
    piece: Callable[[str], Piece]


def _gaussian(draw: Draw) -> Part:
    count = round(log_uniform(draw, 1, 1e9))
    sigma = math.sqrt(count) * log_uniform(draw, 0.2, 30)
    return Part(dp.Gaussian(sigma), count, lambda side: GaussianPiece(1 / Fraction(sigma), count))


def _laplace(draw: Draw) -> Part:
    count = round(log_uniform(draw, 60, 1e6))
    scale = math.sqrt(count) * log_uniform(draw, 0.5, 30)
    return Part(dp.Laplace(scale), count, lambda side: LaplacePiece(1 / Fraction(scale), count))


def _sampled_gaussian(draw: Draw) -> Part:
    count, sigma = round(log_uniform(draw, 300, 1e9)), log_uniform(draw, 1.5, 6)
    rate = min(0.4, log_uniform(draw, 0.2, 4) * sigma / math.sqrt(count))
    return Part(dp.PoissonSampled(dp.Gaussian(sigma), rate), count, lambda side: SampledPiece(sigma, rate, side, count))


def _replaced_gaussian(draw: Draw) -> Part:
    count, sigma = round(log_uniform(draw, 300, 1e9)), log_uniform(draw, 1.5, 6)
    rate = min(0.4, log_uniform(draw, 0.2, 4) * sigma / math.sqrt(count))
    return Part(
        dp.PoissonSampled(dp.Gaussian(sigma), rate, dp.REPLACE),
        count,
        lambda side: SampledReplacePiece(sigma, rate, "remove", count),
    )


def _sampled_laplace(draw: Draw) -> Part:
    count, scale = round(log_uniform(draw, 1000, 1e9)), log_uniform(draw, 0.5, 20)
    rate = min(0.9, log_uniform(draw, 0.2, 4) * scale / math.sqrt(count))
    adjacency = draw.choice((dp.ADD_REMOVE, dp.REPLACE))
    return Part(
        dp.PoissonSampled(dp.Laplace(scale), rate, adjacency),
        count,
        lambda side: SampledLaplacePiece(
            1 / Fraction(scale), rate, side if adjacency is dp.ADD_REMOVE else "replace", count
        ),
    )


def _response(draw: Draw) -> Part:
    count, p = draw.choice((1, 2, 7, 40)), draw.uniform(0.5, 0.9)
    pair = Fraction(p), 1 - Fraction(p)
    return Part(dp.RandomizedResponse(p), count, lambda side: AtomsPiece(pair, pair[::-1], count))


@dataclass(frozen=True)
class Plan:
    """A plan and the truth of it."""

    parts: tuple[Part, ...]

    @property
    def mechanism(self) -> dp.Mechanism:
        first, *others = (part.count * part.mechanism for part in self.parts)
        return sum(others, first)

    def delta(self, side: str, epsilon: float, digits: int = DIGITS) -> arb:
        return mixture_delta([part.piece(side) for part in self.parts], epsilon, digits)


def make_plan(draw: Draw) -> Plan:
    """One law many times over, or a mix of two or three kinds; something in it always decays."""
    smooth = (_gaussian, _sampled_gaussian, _sampled_gaussian, _replaced_gaussian, _sampled_laplace, _laplace)
    parts = [draw.choice(smooth)(draw)]
    if draw.random() < 0.5:
        parts.append(draw.choice((_gaussian, _sampled_gaussian, _sampled_laplace))(draw))
    if draw.random() < 0.3:
        parts.append(_response(draw))
    return Plan(tuple(parts))


def faults(draw: Draw, plan: Plan) -> tuple[list[str], float]:
    """Both questions about one delta: what excludes the truth, and how narrow the interval of delta is."""
    mechanism = plan.mechanism
    delta = log_uniform(draw, 1e-40, 0.3)
    box = mechanism.epsilon_interval(delta)
    found: list[str] = []
    if not 0 < box.upper < 1e6:
        return found, math.inf
    sides = SIDES if len(mechanism.directions()) > 1 else SIDES[:1]
    # the upper end must do for every direction, the lower one exceed the target in one of them
    above = [plan.delta(side, box.upper) for side in sides]
    with precision(300):
        found += [f"epsilon {box} ends too early" for value in above if value > ball(delta)]
        if box.lower > 0 and box.upper - box.lower > 1e-13 * box.upper:
            below = [plan.delta(side, box.lower) for side in sides]
            if all(value < ball(delta) for value in below):
                found.append(f"epsilon {box} begins too late")
        there = mechanism.delta_interval(box.upper)
        if all(value < ball(there.lower) for value in above):
            found.append(f"delta {there} begins too late")
        if any(value > ball(there.upper) for value in above):
            found.append(f"delta {there} ends too early")
    if box.upper < 20 and there.lower > (bound := reversed_chernoff(mechanism.directions(), box.upper)):
        found.append(f"delta {there} exceeds Chernoff's bound {bound!r} of the other direction")
    width = (there.upper - there.lower) / there.upper if there.upper > 0 else 0.0
    return [f"({mechanism}) at {delta!r}: {what}" for what in found], width


def reversed_chernoff(directions: tuple[object, ...], epsilon: float) -> float:
    """An upper bound of delta(eps) that no route uses: Chernoff's of the other direction, turned.

    delta_PQ(eps) = e^eps delta_QP(-eps) - (e^eps - 1), and delta_QP(-eps) <= e^{K_QP(t) + t eps} t^t / (1 + t)^{1 + t}
    with K_QP(t) = K_PQ(-1 - t); for pairs without mass at infinity. Estimates, good to 1e-9.
    """
    bounds = []
    for composition in directions:
        tilts = [10 ** (k / 8) for k in range(-40, 17)]
        logs = []
        for t in tilts:
            moment = sum(n * float(law.log_moment(-1.0 - t)) for law, n in composition.parts)  # type: ignore[attr-defined]
            logs.append(moment + t * epsilon - t * math.log1p(1 / t) - math.log1p(t))
        least = min((x for x in logs if not math.isnan(x)), default=0.0)
        bounds.append(math.exp(min(0.0, least) + epsilon) - math.expm1(epsilon) + 1e-9 * math.exp(epsilon))
    return max(bounds)
