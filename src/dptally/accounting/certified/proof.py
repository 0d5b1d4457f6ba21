"""Proof mode: the answer in ball arithmetic, an enclosure that rests on no floating-point error analysis of
ours.

    closed forms   one Gaussian; n equal two-point losses; n equal Laplace losses; one sampled Gaussian step
    contour sum    any mix of these whose characteristic function decays, see proof_contour.py

Everything else is refused with the reason. Needs python-flint (Arb)  [Johansson 2017, Arb: efficient
arbitrary-precision midpoint-radius interval arithmetic].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dptally import checks
from dptally.accounting.certified import engine
from dptally.accounting.certified.proof_contour import Contour
from dptally.errors import Unanswerable
from dptally.interval import Interval
from dptally.law import Composition, Law
from dptally.laws.ball.losses import (
    Ball,
    BallLoss,
    GaussianBall,
    LaplaceBall,
    TwoPointBall,
    ends,
    flint,
    working,
)
from dptally.laws.ball.sampled_gaussian import SampledGaussianBall

__all__ = ["prove_delta", "prove_epsilon"]

_METHOD = "proof (Arb)"
_MOST_LAPLACE, _MOST_TWO_POINT, _MOST_THREE_POINT = 1000, 20_000, 400

Enclosure = Callable[[Ball], Ball]  # epsilon -> the finite part of delta


def prove_delta(directions: Sequence[Composition], epsilon: float, digits: int = 12) -> Interval:
    """An enclosure of delta(epsilon), the larger direction, to about ``digits`` digits where the doubles
    allow.

    Domain: epsilon >= 0; Gaussian, two-point, Laplace and sampled Gaussian losses and mixes of them.
    """
    epsilon = checks.nonnegative("epsilon", epsilon)
    digits = checks.count("digits", digits, least=1)
    boxes = [_delta(composition, epsilon, digits) for composition in directions if composition.parts]
    return _larger(boxes)


def prove_epsilon(directions: Sequence[Composition], delta: float, digits: int = 12) -> Interval:
    """An enclosure of the smallest epsilon >= 0 with delta(epsilon) <= delta, the larger direction."""
    delta = checks.probability("delta", delta)
    digits = checks.count("digits", digits, least=1)
    boxes = [_epsilon(composition, delta, digits) for composition in directions if composition.parts]
    return _larger(boxes)


def _larger(boxes: list[Interval]) -> Interval:
    return Interval(
        max((box.lower for box in boxes), default=0.0),
        max((box.upper for box in boxes), default=0.0),
        _METHOD,
    )


def _delta(composition: Composition, epsilon: float, digits: int) -> Interval:
    losses = _ball_losses(composition)
    enclosure = _enclosure(losses, composition, epsilon, digits)
    with working(400):
        low, high = ends(enclosure(flint().arb(epsilon)) + _infinity_mass(losses))
    return Interval(max(0.0, low), min(1.0, high), _METHOD)


def _epsilon(composition: Composition, delta: float, digits: int) -> Interval:
    """Guess with the floating-point engine, then move each end outwards until the balls confirm it."""
    arb = flint().arb
    losses = _ball_losses(composition)
    with working(400):
        target = arb(delta) - _infinity_mass(losses)
    if target < 0:
        return Interval(math.inf, math.inf, _METHOD)
    if not target > 0:
        raise Unanswerable(
            "delta cannot be told from the mass at infinity: ask for a delta above it, or for delta_interval"
        )
    guess = engine.epsilon_interval([composition], delta)
    low, high = guess.lower, guess.upper if math.isfinite(guess.upper) else 2 * guess.lower + 1
    enclosure = _enclosure(losses, composition, 0.5 * (low + high), digits)
    for _ in range(100):
        middle = 0.5 * (low + high)
        if high - low <= max(high, 1e-6) * 10.0**-digits:
            break
        if high - low > 0.01 * high:  # a contour is sharp near the epsilon it was built for
            enclosure = _enclosure(losses, composition, middle, digits)
        value = enclosure(arb(middle))
        if value <= target:
            high = middle
        elif value >= target:
            low = middle
        else:
            break
    upper = _confirmed(lambda e: enclosure(arb(e)) <= target, low, high, digits)
    lower = _confirmed(lambda e: e == 0.0 or enclosure(arb(e)) >= target, high, low, digits)
    return Interval(lower, upper, _METHOD)


def _confirmed(holds: Callable[[float], bool], inner: float, outer: float, digits: int) -> float:
    """A double at which ``holds``, near the middle if possible, else near ``outer`` or a little beyond it."""
    sign = 1.0 if outer >= inner else -1.0
    start = 0.5 * (inner + outer)
    if holds(start):
        return start
    distance = max(start, 1e-6) * 10.0 ** -(digits + 2)
    for _ in range(60):
        tried = max(0.0, start + sign * distance)
        if tried != start and holds(tried):
            return tried
        distance *= 2
    raise Unanswerable("the balls could not confirm an epsilon near the floating-point answer: ask for fewer digits")


def _infinity_mass(losses: Sequence[BallLoss]) -> Ball:
    """1 - prod (1 - p_j)^n_j, an exact zero where every p_j is."""
    arb = flint().arb
    survive = arb(1)
    for loss in losses:
        survive *= (1 - loss.infinity_mass()) ** loss.count
    return 1 - survive


def _enclosure(losses: Sequence[BallLoss], composition: Composition, epsilon: float, digits: int) -> Enclosure:
    """A closed form where one exists, else the contour sum; repeated with more digits where the floats
    misjudged.
    """
    closed = _closed(losses, digits)
    if closed is not None:
        return closed
    contour = Contour.through(losses, composition, epsilon, digits)
    for extra in (12, 36, 110):
        value = contour.delta(flint().arb(epsilon))
        if value > 0 and value.rel_accuracy_bits() >= 3.3 * min(digits, 12) - 4:
            break
        contour = Contour.through(losses, composition, epsilon, digits + extra)
    return contour.delta


def _closed(losses: Sequence[BallLoss], digits: int) -> Enclosure | None:
    if len(losses) != 1:
        return None
    (loss,) = losses
    match loss:
        case GaussianBall():
            formula: Enclosure = loss.closed_delta
        case TwoPointBall() if loss.count <= (_MOST_THREE_POINT if loss.zero > 0 else _MOST_TWO_POINT):
            formula = loss.closed_delta
        case LaplaceBall() if loss.count <= _MOST_LAPLACE:
            formula = loss.closed_delta
        case SampledGaussianBall() if loss.count == 1:
            formula = loss.closed_delta
        case _:
            return None

    def refined(epsilon: Ball) -> Ball:
        """Cancellation is met with more bits; the width that the parameters' own balls leave is kept."""
        bits, before = 128 + 4 * min(loss.count, _MOST_LAPLACE), None
        while True:
            with working(bits):
                value = formula(epsilon)
            accuracy = value.rel_accuracy_bits()
            if (
                value.is_zero()
                or accuracy >= 3.33 * digits + 10
                or (before is not None and accuracy <= before + 2 and value.is_finite())
            ):
                return value
            before, bits = accuracy, 2 * bits

    return refined


def _ball_losses(composition: Composition) -> tuple[BallLoss, ...]:
    flint()  # says what to install before anything else
    return tuple(_ball_loss(law, count) for law, count in composition.parts)


def _ball_loss(law: Law, count: int) -> BallLoss:
    """The law in balls, as the law itself declares it; a law that declares none is refused."""
    declared = law.ball(count)
    if declared is not None:
        return declared
    raise Unanswerable(
        f"{type(law).__name__} has no form in ball arithmetic (Law.ball); "
        "ask epsilon_interval or delta_interval, which certify it in floating point"
    )
