"""Every number of the engine that is a choice and no part of a proof: **any value is sound**.

Tilts, cuts, numbers of nodes, budgets and the widths at which a walk stops decide how long an answer takes and how
wide it is, never whether it is true: each truncation, each node and each search is charged or verified afterwards.
Numbers that are part of a proof (``8 * EPS``, ``1.02``) stand beside their derivation instead.
tests/accounting/certified/test_any_tuning.py draws tunings at random and looks for an answer that excludes the truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

__all__ = [
    "STANDARD",
    "BinomialTuning",
    "ContourTuning",
    "DecidingTuning",
    "EvenTuning",
    "ExitTuning",
    "JumpTuning",
    "LatticeTuning",
    "OutcomeTuning",
    "RouteTuning",
    "SearchTuning",
    "SmoothedTuning",
    "SwappedTuning",
    "Tuning",
]


def _ratios(*logs: float) -> tuple[float, ...]:
    return tuple(math.exp(x) for x in logs)


@dataclass(frozen=True, slots=True)
class RouteTuning:
    """Which routes are asked first, and at which relative width no other one is asked."""

    few_steps: int = 12  # of a law with rare large losses, up to which one lattice costs less than contours
    many_laws: int = 16  # different laws, from which on the smoothed contour comes before the early exits
    sharp_contour: float = 1e-9
    sharp_split: float = 5e-7
    sharp_lattice: float = 9e-7
    known: float = 1e-7  # of what others found: no route that aims at less is asked for an epsilon
    share_of_work: int = 4  # what a plain contour may cost where rare losses can be counted apart: one in so many
    most_terms: float = 2.0  # of a plain contour there, times the root of its work: its terms are about its nodes
    few_shared: int = 4  # questions that are worth a common contour


@dataclass(frozen=True, slots=True)
class ExitTuning:
    """Early exits: where Pinsker's inequality, Chernoff's bound and the largest losses are looked at."""

    pinsker: tuple[float, float, int] = (1e-3, 1.0, 7)  # tilts: from, to, how many
    order_range: tuple[float, float, int] = (1e-3, 1e2, 64)  # of Chernoff's bound, in units of 1 / (largest loss)
    short: tuple[float, float, int] = (1e-12, 0.5, 24)  # how far below the largest loss, relative to it
    most_ratio: float = 0.999  # of the target to the probability that all losses are nearly the largest; below 1


@dataclass(frozen=True, slots=True)
class SearchTuning:
    """From bounds of delta to ends of eps: Newton's method, then steps outwards until an end is certified."""

    newton_steps: int = 40
    narrow: float = 1e-6  # in log delta: bounds whose middle is as good as the estimate
    converged: float = 1e-8
    margin: float = 1.0001
    growth: float = 1.5
    tries: int = 60
    tries_of_many: int = 12


@dataclass(frozen=True, slots=True)
class ContourTuning:
    """One trapezoid sum through a saddle point: tilts, period, cut-off, nodes."""

    blocks: tuple[int, ...] = (-26, 11, 19, 25, 31, 41, 51, 61)  # tilts 2^(k/2), tabulated block after block
    around: tuple[float, ...] = _ratios(-0.3, -0.15, -0.08, -0.04, -0.02, 0.0, 0.02, 0.04, 0.08, 0.15, 0.3)
    glance: tuple[float, ...] = (0.35, 0.5, 0.7, 1.0, 1.4)  # tilts of a first look at Chernoff's bound, times a guess
    #: ends of the cells on which the modulus of an integrand is bounded, in units of one over the standard deviation
    modulus: tuple[float, ...] = (0.25, 0.5, 0.8, 1.1, 1.4, 1.8, 2.3, 3.0)
    steady: float = 3.0  # ratio of neighbouring K'' up to which Taylor's formula finds the saddle's row
    few_parts: int = 8  # up to here the decay of all parts is looked at
    leading: float = 0.9  # of the variance: the parts that carry it are looked at
    relative: float = 1e-14  # what each truncation may cost, relative to delta
    node_tolerance: float = 1e-15  # what the nodes of one law may cost, relative to the number of steps
    starts: tuple[float, ...] = tuple(1.1 * 1.26**k for k in range(3))  # candidates for the cut-off, times a guess
    closer: tuple[float, ...] = tuple(1.12**k for k in range(6))
    furthest: float = 3000.0  # times the guess: there phi does not decay any further
    fair: float = 8.0  # nats by which the tail may exceed its share where phi stops decaying: 3e-11 of delta
    hopeless: float = 14.0  # nats by which the tail may exceed its share before another method is better
    most_terms: int = 1 << 17
    most_work: int = 30_000_000  # terms times nodes: about 0.1 s
    long_period: float = 40.0  # in standard deviations: beyond, a smaller tilt is looked for
    most_lost: float = 12.0  # nats of the integral that it may cost
    block_ratio: float = 1.1  # that of the counts of one law that share the contour of a single question
    curve_ratio: float = 1.2  # the largest ratio of the counts that share one contour


@dataclass(frozen=True, slots=True)
class SmoothedTuning:
    """A contour with a little noise, for point masses."""

    around: tuple[float, ...] = _ratios(-0.3, -0.15, -0.05, 0.0, 0.05, 0.15, 0.3)
    relative: float = 1e-9  # what truncation may cost, relative to delta
    node_tolerance: float = 1e-12
    width: float = 7e-7  # aimed at in eps; relative to eps where that is below one, or where few terms would not do
    few_terms: int = 1 << 14  # tried first, and if that is not sharp
    more_terms: tuple[int, ...] = (1 << 15, 1 << 16, 1 << 17)
    less: float = 0.1  # noise of the second contour, times that of the first
    most_variance: float = 0.01  # of the noise; the theorem needs at most one
    negligible: float = 25.0  # nats below delta: the probability of large losses that may be left out of the contour
    looks: int = 3  # at the delta of one eps, to know how rare that is
    nothing: float = 1e-17  # rows of nodes are left out where |phi| is below
    most_terms: int = 1 << 18
    most_work: int = 300_000_000  # terms times atoms: a second, and much less where rows are left out


@dataclass(frozen=True, slots=True)
class EvenTuning:
    """Losses on a progression: half a period of phi."""

    tilts: tuple[float, float, int] = (1e-4, 1e4, 72)  # of the first table, over the standard deviation
    far: float = 9.6  # standard deviations of phi, at most; the rest is bounded by the last value


@dataclass(frozen=True, slots=True)
class SwappedTuning:
    """Small epsilons through the other direction."""

    far_below: float = 9.0  # nats: of a delta this far below the total variation the difference leaves too little
    small: float = 0.1  # of the largest loss: up to there a split sum that was made for eps = 0 is sharp
    near: float = 0.1  # a contour is left when the answer is further off, relative to the total variation


@dataclass(frozen=True, slots=True)
class JumpTuning:
    """Rare large losses: where the law is cut, how sharply, and what is computed."""

    negligible: float = 20.0  # nats below delta at which a term is bounded instead of computed
    first: float = 5.0  # ratios of the sizes at which the law is cut
    following: float = 7.0
    tight: float = 0.3  # of eps: where laws that are not cut leave less to the others, the cuts are close
    tiny: float = -60.0  # log delta: below, they are, too
    about: tuple[float, float] = (1.5, 0.6)  # of what they leave
    most_cuts: int = 8
    slack: float = 1.0  # nats by which Chernoff's bound nearly always exceeds delta
    far_rho: float = 25.0  # the edge of the losses that decide alone: how sharp,
    far_depth: float = 8.0  # and how far beyond them
    near: float = 0.75  # a plan for one eps will do down to this share of it
    margin: float = 1.1  # they decide alone for every eps up to this many times the estimated one
    sharp: float = 1e-8  # relative width at which the plain contour below an edge will do
    bulk: float = 36.0  # nats below delta at which the bulk may count as a jump
    most_terms: int = 3000  # of the plain contour below an edge; with more another cut is better
    tilts: int = 64  # of one table, at most
    relative: float = 1e-13  # what each truncation may cost, relative to the term
    node_tolerance: float = 1e-15
    most_work: int = 40_000_000  # terms times nodes: about 0.15 s
    around: tuple[float, ...] = _ratios(-0.2, -0.1, -0.05, 0.0, 0.05, 0.1, 0.2)
    #: candidates for the end of a contour, in units of 1 / (width of the lower edge)
    ends: tuple[float, ...] = (*(float(k) for k in range(1, 13)), *(13.0 * 1.25**k for k in range(6)))
    small: float = 0.1  # of eps: where the least losses of all steps are less there is no need to know them better
    far_off: float = 7.0  # times eps: where the other steps may lose more than this it pays to bound their sum
    looks: tuple[int, int, int] = (6, 4, 3)  # at a plan for delta, at a sum for delta, at a plan for eps
    still: tuple[float, float] = (
        0.06,
        1.05,
    )  # an answer below eps by this share, or above by this factor, needs no other
    overshoot: float = 1.02  # half of the drift is a small step, too
    moves: tuple[float, float, float] = (0.2, 3.0, 5e3)  # eps falls and grows by these at most; in units of the least
    log_rare: float = -24.0  # log of the chance of less than what the other steps are taken to lose at least


@dataclass(frozen=True, slots=True)
class DecidingTuning:
    """Few steps of one law: the lattice of the losses that do not decide alone."""

    most_steps: int = 130
    most_points: int = 3 << 17
    coarse: int = 1 << 11  # points of the lattices that only look for the right eps
    longest: int = 1 << 22  # doubles in one FFT: 32 MB
    most_work: int = 5_000_000  # doubles transformed for one level: a quarter of a second, and 80 MB kept
    room: float = 1.1  # eps may exceed its estimate by this factor, and fall short by its inverse
    coarse_room: float = 4.0
    levels: tuple[float, ...] = (math.inf, 0.35, 0.12, 0.04)  # of eps: the first splits nothing
    negligible: float = 30.0  # nats
    log_noise: float = -30.0  # of tilted masses, about: what a transform may fold back costs nothing below
    small: float = 0.1  # of the range of losses: an eps below this is not the scale on which they vary
    width: float = 3e-7  # the relative width that the lattice step is chosen for
    enough: float = -18.0  # log of the error relative to delta at which no other level is tried
    coarse_enough: float = -5.0
    hopeless: float = -4.0  # the same, far from the answer, at which to be sure is to give up
    sure: bool = False  # give nothing where that takes more points, or where no level was enough


@dataclass(frozen=True, slots=True)
class LatticeTuning:
    """The tilted lattice: steps, nodes, cuts, and when to halve the step."""

    nodes: int = 1 << 20  # of one transform
    points: int = 1 << 18  # profile values of one law
    most_nodes: int = 1 << 21  # of one measure: 16 MB
    negligible: float = 23.0  # nats below delta
    first_step: float = 1 / 400  # of the longest range of losses
    rounds: int = 10
    relative: float = 4e-7  # a width of epsilon that needs no smaller step: the smaller of the two
    absolute: float = 8e-7
    enough: float = 1e-7  # a relative width of delta that needs no smaller step, at epsilons next to zero
    left_out: float = 1e-13  # probability that may be gathered into the first node
    tilts: tuple[int, int] = (-40, 81)  # 2^(k/2)
    bins: int = 2048
    cuts: tuple[float, float, int] = (0.99, 1e-6, 60)  # sizes of loss over the largest: from, to, how many
    room: float = 12.0  # nats by which a term may exceed delta before it is cut
    worth: float = 25.0  # nats below delta at which a term is bounded, not computed


@dataclass(frozen=True, slots=True)
class OutcomeTuning:
    """When every sum of losses is listed by itself."""

    few_steps: int = 12
    few_laws: int = 4
    few_values: int = 4
    few_outcomes: int = 4096
    most_sums: int = 1 << 14  # atoms of one sum
    most_pairs: int = 1 << 20  # products of one convolution
    same: float = 1e-14  # relative to the largest position: sums this close become one atom
    most_beside: int = 600  # of some laws, where the others are asked once for each
    most_walks: int = 6  # of the others, with contours to be made; any number where they are one step
    negligible: float = 35.0  # nats below the largest contribution at which one is bounded instead


@dataclass(frozen=True, slots=True)
class BinomialTuning:
    """The window of a binomial sum; what lies outside is bounded by geometric tails."""

    deviations: float = 10.0
    more: float = 60.0
    most: int = 1 << 22


@dataclass(frozen=True, slots=True)
class Tuning:
    """All of them. A plan carries one; the routes read it."""

    routes: RouteTuning = field(default_factory=RouteTuning)
    exits: ExitTuning = field(default_factory=ExitTuning)
    search: SearchTuning = field(default_factory=SearchTuning)
    contour: ContourTuning = field(default_factory=ContourTuning)
    smoothed: SmoothedTuning = field(default_factory=SmoothedTuning)
    even: EvenTuning = field(default_factory=EvenTuning)
    swapped: SwappedTuning = field(default_factory=SwappedTuning)
    jumps: JumpTuning = field(default_factory=JumpTuning)
    deciding: DecidingTuning = field(default_factory=DecidingTuning)
    lattice: LatticeTuning = field(default_factory=LatticeTuning)
    outcomes: OutcomeTuning = field(default_factory=OutcomeTuning)
    binomial: BinomialTuning = field(default_factory=BinomialTuning)
    #: of the contour that shows that a direction is below the other
    below: ContourTuning = field(default_factory=lambda: ContourTuning(relative=1e-9, node_tolerance=1e-11))
    #: of the lattice that is asked before the contours: one level, and nothing that is not sharp at once
    at_once: DecidingTuning = field(
        default_factory=lambda: DecidingTuning(
            levels=(1e6,),
            coarse_enough=-8.0,
            enough=-12.0,
            hopeless=99.0,  # a coarse lattice far from the answer says little of one near it
            most_points=1 << 16,
            width=5e-7,
            sure=True,
        )
    )


STANDARD = Tuning()
