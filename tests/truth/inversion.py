"""Any mix whose characteristic function decays: contour inversion in balls, every error with its own proof.

With K = sum of T_j log M_j and a tilt theta > 0,
    delta(eps) = e^{K(theta) - theta eps} / (2 pi) * int phi(u) e^{-iu eps} / ((theta+iu)(theta+1+iu)) du,
phi(u) = prod (M_j(theta+iu) / M_j(theta))^{T_j}. The trapezoid sum of step D = 2 pi / P equals the sum over
m of the tilted delta(eps + m P) (Poisson summation), every term >= 0, so
    truth <= sum + tail   and   truth >= sum - alias - tail.
The parameters (tilt, period, cut-off, spacing) come from plain floats and may be poor; the errors are balls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from flint import acb, arb

from .balls import Number, ball, floats, precision
from .pieces import Piece


@dataclass(frozen=True)
class Choice:
    """What the floats propose; the tolerance is the log of an absolute error in units of e^{K - theta
    eps}.
    """

    tilt: float
    period: float
    nodes: int
    log_tolerance: float


def mixture_delta(
    pieces: Sequence[Piece], epsilon: Number, digits: int = 20, skew: float = 1.07, most_nodes: int = 60_000
) -> arb:
    """delta(eps) of the composition of the pieces; ``skew`` moves the tilt off the saddle point on purpose.

    The finite part has about ``digits`` digits: where the floats misjudged its size it is done again.
    """
    value = arb("nan")
    for extra in (0, 12, 36, 110):
        value, mass = _tried(pieces, epsilon, digits + extra, skew, most_nodes)
        if value > 0 and value.rel_accuracy_bits() >= digits * 3.3 - 4:
            break
    with precision(400):
        return value + mass


def _tried(pieces: Sequence[Piece], epsilon: Number, digits: int, skew: float, most_nodes: int) -> tuple[arb, arb]:
    """The finite part of delta and the mass at infinity."""
    choice = _choose(pieces, float(ball(epsilon)), digits, skew, most_nodes)
    if choice.nodes > most_nodes:
        raise ArithmeticError(f"needs {choice.nodes} nodes: too few steps, or a loss that does not spread")
    bits = int(-choice.log_tolerance / math.log(2) + 2 * math.sqrt(choice.nodes)) + 80
    bits += int(math.log2(max(piece.count for piece in pieces)))
    with precision(bits):
        value = _inverted(pieces, ball(epsilon), choice)
        survive = arb(1)
        for piece in pieces:
            survive *= (1 - piece.infinity_mass()) ** piece.count
        return value, 1 - survive


def _inverted(pieces: Sequence[Piece], e: arb, choice: Choice) -> arb:
    theta, period = arb(choice.tilt), arb(choice.period)
    step = 2 * arb.pi() / period
    total = [acb(1)] * (choice.nodes + 1)
    log_scale = arb(0)
    for piece in pieces:
        values, log_m = piece.phis(theta, step, choice.nodes)
        log_scale += piece.count * log_m
        total = [a * b**piece.count for a, b in zip(total, values, strict=True)]
    acc = arb(0)
    for k, phi in enumerate(total):
        z = acb(theta, k * step)
        term = (phi * acb(0, -k * step * e).exp() / (z * (z + 1))).real
        acc += term if k == 0 else 2 * term
    value = acc * step / (2 * arb.pi())
    tail = _tail(pieces, theta, step, choice)
    alias = _alias(pieces, theta, e, period, log_scale, choice.log_tolerance)
    low, high = value - tail - alias, value + tail
    return low.union(high) * (log_scale - theta * e).exp()


def _tail(pieces: Sequence[Piece], theta: arb, step: arb, choice: Choice) -> arb:
    """Upper bound of (step / pi) * sum over k > nodes of |phi(k step)| / (k step)^2.

    Nodes are bounded on cells, block by block; after the last block by the pieces' power law.
    """
    bound = arb(0)
    u = arb(floats((choice.nodes + 1) * step)[0])
    stop = math.exp(choice.log_tolerance) * 1e-3
    for _ in range(200):
        # beyond u: |phi_j| <= c / u'^r gives step * sum 1/u'^{2+r} <= (1/u^{1+r}) (step/u + 1/(1+r))
        constant, rate = arb(1), arb(0)
        for piece in pieces:
            c, r = piece.power_law(theta, u)
            constant, rate = constant * c, rate + r
        rest = (constant / u ** (rate + 1) * (step / u + 1 / (rate + 1)) / arb.pi()).upper()
        if rest < stop:
            break
        wish = min(piece.cell(theta, u, choice.log_tolerance) for piece in pieces)
        cells = max(1, min(4000, math.ceil(0.4 * float(u) / wish)))
        width = arb(min(wish, 0.4 * float(u)))
        product = [arb(1)] * cells
        for piece in pieces:
            product = [a * b for a, b in zip(product, piece.bounds(theta, u, width, cells), strict=True)]
        for k, cell in enumerate(product):
            # nodes within [x, y): sum of step / u'^2 <= step / x^2 + 1/x - 1/y
            x, y = u + k * width, u + (k + 1) * width
            bound += cell * (step / (x * x) + 1 / x - 1 / y) / arb.pi()
        bound = bound.upper()
        if bound > 100 * math.exp(choice.log_tolerance):
            break
        u = arb(floats(u + cells * width)[0])
    else:
        rest = arb(1) / u * 2
    return (bound + rest).upper()


def _alias(pieces: Sequence[Piece], theta: arb, e: arb, period: arb, log_scale: arb, log_tolerance: float) -> arb:
    """Sum over m != 0 of e^{theta x - K(theta)} delta(x), x = eps + m P, bounded by delta(x) <= e^{K(s) -
    s x}.
    """

    def sides(s: arb) -> arb:
        gap = sum((piece.count * piece.log_moment(s) for piece in pieces), arb(0)) - log_scale
        d = s - theta
        decay = -abs(d) * period
        return (gap - d * e + decay).exp() / (1 - decay.exp())

    t, x, p = float(theta), float(e), float(period)
    base = _float_k(pieces, t)
    above = _gentle(
        _float_candidates(t, up=True), lambda s: _float_k(pieces, s) - base - (s - t) * (x + p), log_tolerance
    )
    below = _gentle(
        _float_candidates(t, up=False),
        lambda s: _float_k(pieces, s) - base + (t - s) * (x - p),
        log_tolerance,
    )
    with precision(100):
        return (sides(arb(above)) + sides(arb(below))).upper()


# -- choices in plain floats: never part of the proof --------------------------------------------------------


def _float_candidates(theta: float, up: bool) -> list[float]:
    if up:
        return [theta * (1 + 0.02 * 1.5**i) for i in range(24)]
    return [theta * (1 - 0.02 * 1.4**i) for i in range(24) if 0.02 * 1.4**i < 1] + [0.0]


def _gentle(candidates: list[float], log_bound: Callable[[float], float], log_tolerance: float) -> float:
    """The candidate nearest the tilt whose bound is good enough (far ones cost many nodes), else the best."""
    for s in candidates:
        if log_bound(s) < log_tolerance - 3:
            return s
    return min(candidates, key=log_bound)


def _float_k(pieces: Sequence[Piece], s: float) -> float:
    return sum(piece.count * piece.float_log_moment(s) for piece in pieces)


def _choose(pieces: Sequence[Piece], e: float, digits: int, skew: float, most_nodes: int = 60_000) -> Choice:
    k = lambda s: _float_k(pieces, s)  # noqa: E731
    objective = lambda s: k(s) - s * e - math.log(s * (1 + s))  # noqa: E731
    low, high = math.log(1e-4), math.log(1e6)
    grid = np.linspace(low, high, 60)
    best = int(np.argmin([objective(math.exp(g)) for g in grid]))
    a, b = grid[max(best - 1, 0)], grid[min(best + 1, 59)]
    for _ in range(30):
        m1, m2 = a + 0.382 * (b - a), a + 0.618 * (b - a)
        a, b = (a, m2) if objective(math.exp(m1)) < objective(math.exp(m2)) else (m1, b)
    saddle = math.exp((a + b) / 2)
    spread = sum(piece.count * piece.float_cumulants(saddle)[1] for piece in pieces)
    spread = max(spread, 0.0) + saddle**-2 + (1 + saddle) ** -2
    theta = saddle * skew
    log_value = objective(saddle) - 0.5 * math.log(2 * math.pi * spread)
    log_tolerance = log_value - (k(theta) - theta * e) - digits * math.log(10)
    period = 6 * math.sqrt(spread)
    base = k(theta)
    for _ in range(200):
        above = min(k(s) - base - (s - theta) * (e + period) for s in _float_candidates(theta, up=True))
        below = min(k(s) - base + (theta - s) * (e - period) for s in _float_candidates(theta, up=False))
        if max(above, below) < log_tolerance:
            break
        period *= 1.15
    cut = 1 / math.sqrt(spread)
    for _ in range(400):
        fall = sum(piece.count * piece.float_log_phi(theta, cut) for piece in pieces)
        if fall - math.log(cut) < log_tolerance - 4:
            break
        cut *= 1.15
        if cut * period > 7 * most_nodes:
            break
    return Choice(theta, period, math.ceil(cut * period / (2 * math.pi)), log_tolerance)
