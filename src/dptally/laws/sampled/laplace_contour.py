r"""What contours need of Laplace noise on a Poisson sample: quadrature with a proved error, and how phi decays.

With r = one record's contribution / scale, w = 2y - r the loss of the noise alone at the output y, -r < w < r, and
A(w) = 1 - q + q e^w, every moment is a sum over two atoms (w = -r and w = r) and integrals of e^{-(w + r)/2} / 4 times
a power of A, to which logarithms may be multiplied. On panels of half-length h about c, Gauss-Legendre quadrature with
n points errs by at most

    (64/15) h S rho^{-2n} / (1 - rho^{-2}),   S = sup on the Bernstein ellipse of parameter rho

[Trefethen 2008, Thm. 4.5], and with no points by at most 2 h times the supremum on the panel, rho = 1: where the tilt
leaves next to nothing there are none. On that ellipse |Im w| <= b = h (rho - 1/rho)/2 and
|Re w - c| <= a = h (rho + 1/rho)/2. With b <= pi/3 and X = c + a:

    |e^{-w/2}| <= e^{(a - c)/2},   1 - q + q e^{c - a} cos b <= Re A <= |A| <= 1 - q + q e^X,
    |arg A| <= atan(q e^X sin b / (1 - q + q e^X cos b)),   which grows with X.

**Decay.** The density of the loss log A (or its negative), tilted, is a constant times A^p (A - 1 + q)^{-3/2}. Its
logarithmic derivative in log A, p - 3/2 A / (A - 1 + q), grows: the density falls, then rises, and its total
variation, jumps at the ends included, is at most V = 2 (its values at the two ends). So |phi(u)| <= a_1 + a_2 + V / u
with a_1, a_2 the tilted masses of the atoms. Let R be the distance of the atoms. For u R <= pi also
|phi(u)| <= 1 - a_1 - a_2 + |a_1 + a_2 e^{iuR}|, which falls with u; and from pi / R on phi is looked at on a grid:
about the middle of the losses |phi'| <= R / 2, so between points of distance s it exceeds their largest by at most
R s / 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from dptally.law.characteristic import Characteristic, MomentTable
from dptally.laws.quadrature.legendre import gauss_legendre
from dptally.laws.quadrature.losses import LossNodes
from dptally.laws.quadrature.tilted import characteristic_of, table_of
from dptally.numerics.arrays import Floats

__all__ = ["Powers", "Rule", "SampledLaplace", "characteristic", "log_decay", "moment_table", "rule"]

_RHO = np.array([1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.5, 6.0, 12.0, 30.0])
_LONG, _TALL = 0.5 * (_RHO + 1 / _RHO), 0.5 * (_RHO - 1 / _RHO)
#: log of 64/15 / (1 - rho^-2), and of one for the panel itself, which stands first
_LOG_SUM = np.concatenate(([0.0], math.log(64 / 15) - np.log1p(-(_RHO[1:] ** -2))))
_DEEP = 100.0  # nats below which the tilted law is taken to have no mass: heuristic
_HALF, _TURNS = 1.0, 300.0  # the longest half-panel, by itself and in turns of the fastest wave: heuristic
_MOST_POINTS, _MOST_NODES = 640, 1 << 15  # of one panel; of one law
_MOST_PANELS = 1 << 10
_OCTAVES = 6  # of tilts that share a rule
_MOST_CELLS = 1 << 14  # of the grid on which phi is looked at
_TABLE = -60.0  # log of what quadrature may cost in a table of K
_CELL = 0.2  # of the grid, in units of 1 / R


@dataclass(frozen=True, slots=True)
class Powers:
    """The powers of A under the integral at a tilt theta: 1 + theta where ``rising``, -theta where ``falling``."""

    rising: bool
    falling: bool


class SampledLaplace(Protocol):
    """A law of this kind; the rate and the reach are these doubles, or neighbours of them."""

    def __hash__(self) -> int: ...

    @property
    def rate(self) -> float: ...

    @property
    def noise_reach(self) -> float:
        """r."""
        ...

    @property
    def powers(self) -> Powers: ...

    def losses(self, rule: Rule) -> LossNodes:
        """The losses at the nodes of a rule, under P; the atoms are the last of each branch, and the first of all."""
        ...

    def atom_rows(self, number: int) -> tuple[int, int]:
        """Which of so many losses are the two atoms."""
        ...

    def log_ends(self, theta: float) -> tuple[float, ...]:
        """log of the tilted density of the loss at the ends of each branch."""
        ...


@dataclass(frozen=True, slots=True)
class Rule:
    """Losses w of the noise alone, from -r to r with both atoms, and the logs of their masses without the record."""

    w: Floats
    log_base: Floats


def log_a(rate: float, w: float) -> float:
    """log A(w), to a few ulps where it matters (to choose and to bound by, with room)."""
    if w > 30.0:
        return w + math.log(rate + (1 - rate) * math.exp(-w))
    return math.log1p(rate * math.expm1(w))


def _log_a(rate: float, w: Floats) -> Floats:
    """The same at many w, to choose by."""
    return np.where(w > 30.0, w + math.log(rate), np.log1p(rate * np.expm1(np.minimum(w, 30.0))))


def _panels(law: SampledLaplace, theta: float, frequency: float) -> tuple[Floats, Floats] | None:
    """(centres, half-lengths) of panels from -r to r, none too long and each with a modest number of turns where the
    law tilted by theta has mass; None for too many. Any panels are sound: the rule's bound is made for each.
    """
    q, r = law.rate, law.noise_reach
    number = max(1, math.ceil(r / _HALF))
    if number > _MOST_PANELS:
        return None
    edges = np.linspace(-r, r, number + 1)
    if (log_a(q, r) - log_a(q, -r)) * frequency > _TURNS:
        at = np.linspace(-r, r, 1025)
        loss, turned = _log_a(q, at), np.zeros_like(at)
        if law.powers.rising:
            turned += np.maximum(loss - loss[-1], -_DEEP / (1 + theta))
        if law.powers.falling:
            turned += np.minimum(loss - loss[0], _DEEP / theta if theta > 0 else math.inf)
        load = at / (2 * _HALF) + turned * (0.5 * frequency / _TURNS)
        number = math.ceil(float(load[-1] - load[0]))
        if number > _MOST_PANELS:
            return None
        edges = np.interp(np.linspace(load[0], load[-1], number + 1), load, at)
        edges[0], edges[-1] = -r, r
    return 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)


def rule(law: SampledLaplace, least: float, most: float, frequency: float, log_tolerance: float) -> Rule | None:
    """Nodes that integrate e^{(theta + iu) L} for least <= theta <= most, |u| <= frequency, to exp(log_tolerance) of
    E[e^{theta L}]; None where that needs too many.
    """
    q, r = law.rate, law.noise_reach
    panels = _panels(law, least, frequency)
    if panels is None:
        return None
    centre, half = panels
    number = len(centre)
    long, tall = half[:, None] * _LONG, half[:, None] * _TALL
    fits = tall <= math.pi / 3  # another ellipse has no bound
    tall = np.where(fits, tall, 0.0)
    with np.errstate(over="ignore"):
        grown = q * np.exp(np.minimum(centre[:, None] + long, 700.0))
        log_top = np.maximum(np.log(1 - q + grown), 0.0)
        low = 1 - q + q * np.exp(centre[:, None] - long) * np.cos(tall)
        log_low = np.maximum(-np.log(low), 0.0)
        turn = np.arctan(grown * np.sin(tall) / (1 - q + grown * np.cos(tall)))
    log_head = math.log(0.25) - 0.5 * (centre[:, None] - long + r) + frequency * turn
    log_head = np.where(fits, log_head + np.log1p(np.maximum(log_top, log_low) + turn), np.inf)
    log_head[:, 0] = math.log(2 / 4) - 0.5 * (centre - half + r) + np.log1p(np.maximum(log_top, log_low)[:, 0])
    log_sum = np.log(half)[:, None] + _LOG_SUM - log_tolerance + math.log(number)
    # linear in theta less a convex bound of K that bends once: the largest is at an end or at the bend
    needed = np.zeros(number)
    for theta in (least, most, min(max(_kink(law), least), most)):
        size = np.full_like(log_head, -np.inf)
        # under REPLACE both come with a power of A(-r) <= 1
        lift = -theta * log_a(q, -r) if law.powers.rising and law.powers.falling else 0.0
        if law.powers.rising:
            size = np.maximum(size, (1 + theta) * log_top + lift)
        if law.powers.falling:
            size = np.maximum(size, theta * log_low)
        size += log_head + math.log(4 * (1 + most)) - _log_moment_floor(law, theta)
        number_of = np.ceil((size + log_sum)[:, 1:] / (2 * np.log(_RHO[1:]))).min(axis=1)
        needed = np.maximum(needed, np.where((size + log_sum)[:, 0] <= 0, 0.0, np.maximum(number_of, 4.0)))
    points = [_rounded(int(n)) for n in needed.tolist()]
    if max(points) > _MOST_POINTS or sum(points) > _MOST_NODES:
        return None
    w, weight = [np.array([-r])], [np.array([math.log(0.5)])]
    for middle, width, n in zip(centre.tolist(), half.tolist(), points, strict=True):
        if not n:
            continue
        x, share = gauss_legendre(n)
        at = middle + width * x
        w.append(at)
        weight.append(np.log(0.25 * width * share) - 0.5 * (at + r))
    w.append(np.array([r]))
    weight.append(np.array([math.log(0.5) - r]))
    return Rule(np.concatenate(w), np.concatenate(weight))


def _atom_line(law: SampledLaplace) -> tuple[float, float]:
    """(a, b), rounded down: the atom at the largest loss holds e^{a + b theta} of the moment at theta."""
    q, r = law.rate, law.noise_reach
    high, low = log_a(q, r), log_a(q, -r)
    start = math.log(0.5) + (high - r if law.powers.rising else 0.0)
    slope = (high if law.powers.rising else 0.0) - (low if law.powers.falling else 0.0)
    return start - 1e-9 * (1 + r), slope * (1 - 1e-9)


def _log_moment_floor(law: SampledLaplace, theta: float) -> float:
    """A lower bound of K(theta), theta >= 0: zero, or what that atom holds."""
    start, slope = _atom_line(law)
    return max(0.0, start + slope * theta)


def _kink(law: SampledLaplace) -> float:
    """Where that bound leaves zero."""
    start, slope = _atom_line(law)
    return -start / slope if slope > 0 else 0.0


def _rounded(number: int) -> int:
    """The next number with three significant bits: a few rules serve all plans."""
    unit = 1 << max(0, number.bit_length() - 3)
    return -(-number // unit) * unit


def moment_table(law: SampledLaplace, theta: Floats) -> MomentTable:
    """K with error bounds, and its derivatives from the tilted nodes; +inf where it would need too many of them."""
    columns = np.full((5, len(theta)), np.inf)
    columns[0] = theta
    octave = np.frexp(np.maximum(theta, 0.25))[1]
    groups = [np.flatnonzero(octave // _OCTAVES == label) for label in np.unique(octave // _OCTAVES)]
    while groups:
        rows = groups.pop()
        found = rule(law, float(theta[rows].min()), float(theta[rows].max()), 0.0, _TABLE)
        if found is not None:
            table = table_of(law.losses(found), theta[rows], math.exp(_TABLE))
            columns[1:, rows] = table.moment, table.error, table.first, table.second
        elif (inside := octave[rows]).min() < inside.max():  # lower tilts need fewer nodes
            low = inside <= (inside.min() + inside.max()) // 2
            groups += [rows[low], rows[~low]]
    return MomentTable(*columns)


@lru_cache(maxsize=128)
def characteristic(law: SampledLaplace, theta: float, reach: float, log_tolerance: float) -> Characteristic | None:
    """phi at one tilt for |u| <= reach."""
    found = rule(law, theta, theta, reach, log_tolerance)
    return None if found is None else characteristic_of(law.losses(found), theta, math.exp(log_tolerance))


@dataclass(frozen=True, slots=True)
class _Shape:
    """The tilted masses of the two atoms (rounded up), their distance, V, and a bound of |phi| from pi / R on."""

    atoms: tuple[float, float]
    distance: float
    variation: float
    far: float


@lru_cache(maxsize=256)
def _shape(law: SampledLaplace, theta: float) -> _Shape | None:
    found = rule(law, theta, theta, 0.0, _TABLE)
    if found is None:
        return None
    nodes = law.losses(found)
    moment = float(np.asarray(nodes.log_moment(np.array([theta])))[0])
    rows = law.atom_rows(len(nodes.loss))
    one, other = (math.exp(float(nodes.log_mass[i] + theta * nodes.loss[i]) - moment) * (1 + 1e-9) for i in rows)
    distance = abs(float(nodes.loss[rows[1]] - nodes.loss[rows[0]]))
    variation = 2 * sum(math.exp(min(700.0, x - moment)) for x in law.log_ends(theta)) * (1 + 1e-9)
    return _Shape((one, other), distance, variation, _far(law, theta, one + other, distance, variation))


def _far(law: SampledLaplace, theta: float, atoms: float, distance: float, variation: float) -> float:
    """A bound of |phi(u)| for every u >= pi / R: on a grid up to where the total variation leaves a quarter."""
    if not (atoms < 1 and distance > 0):
        return 1.0
    last = 4 * variation / (1 - atoms)
    step = _CELL / distance
    if not last / step < _MOST_CELLS:
        return 1.0
    phi = characteristic(law, theta, (last + 2 * step) * 1.01, -20.0)
    if phi is None:
        return 1.0
    number = math.ceil(last / step) + 2
    values, errors = phi.on_grid(step, number)
    first = max(0, math.floor(math.pi / distance / step * (1 - 1e-9)) - 1)
    seen = float((np.abs(1.0 + values) + errors)[first:].max()) + distance * step / 4 * (1 + 1e-9)
    return min(1.0, max(seen, atoms + 0.25 * (1 - atoms)) * (1 + 1e-9))


def log_decay(law: SampledLaplace, theta: float, start: Floats) -> Floats:
    """log of a bound of |phi(u)| over every u >= start."""
    shape = _shape(law, theta)
    if shape is None:
        return np.zeros_like(start)
    (one, other), distance = shape.atoms, shape.distance * (1 - 1e-9)
    plain = np.log(np.minimum(1.0, (one + other + shape.variation / start) * (1 + 1e-9)))
    # x = a_1 + a_2 - |a_1 + a_2 e^{iuR}|, which does not cancel; masses rounded down
    a, b = one * (1 - 4e-9), other * (1 - 4e-9)
    turn = np.minimum(start * distance, math.pi)
    sine = np.sin(0.5 * turn)
    root = np.sqrt(np.maximum((a + b) ** 2 - 4 * a * b * sine * sine, 0.0))
    near = np.log1p(-4 * a * b * sine * sine / (a + b + root) * (1 - 1e-9))
    far = math.log(shape.far) if shape.far > 0 else -math.inf
    return np.asarray(np.minimum(plain, np.maximum(near, far)))
