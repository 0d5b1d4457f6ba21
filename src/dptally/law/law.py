"""The privacy loss of one dominating pair (P, Q) in one direction: L = log dP/dQ under P.

One function tells everything, the log-moment K(t) = log E_P[exp(t L); L < inf]. It adds under composition, and every
framework is a view of it. The loss may be infinite with probability ``infinity_mass``; K, the atoms, the density and
the profile below refer to finite losses only (an unnormalised measure of total mass 1 - infinity_mass).

What enters both ends of an answer is an interval: ``supremum_interval``, ``infimum_interval`` and
``infinity_mass_interval`` hold the exact numbers of the declared mechanism, made with directed rounding or from exact
rationals. A law that states only ``supremum``, ``infimum`` and ``infinity_mass`` is read as exact.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dptally.errors import Unanswerable
from dptally.interval import Interval
from dptally.law.adjacency import Direction
from dptally.law.ball import BallLoss
from dptally.law.characteristic import Characteristic, CompiledLaw, MomentTable, SoftCut, WindowedLaw
from dptally.law.listed import ListedAtoms, Progression
from dptally.law.spread import LatticeLaw
from dptally.numerics.arrays import Floats as Floats
from dptally.numerics.arrays import Numbers as Numbers
from dptally.numerics.rounding import EPS

__all__ = ["Law", "MomentBound"]


class Law(ABC):
    """Frozen, hashable, ordered by ``sort_key`` so that the order of composition never changes an answer."""

    __slots__ = ()

    #: where the dominating pair comes from: paper, year, theorem
    theorem: ClassVar[str] = ""
    #: True where K and the profile are those of a dominating pair; False where K is only an upper bound (Renyi-only
    #: guarantees)
    determined: ClassVar[bool] = True
    #: True where ``characteristic`` answers, so that contour inversion applies
    has_characteristic: ClassVar[bool] = False
    #: True where K and the mean are proved upper bounds of those of the pair, not the same to rounding
    moments_from_above: ClassVar[bool] = False
    #: True where K bounds the divergences of both directions, as those of a declared guarantee do
    both_ways: ClassVar[bool] = False
    #: True where the sum of independent losses of this family is again of the family (see ``collapse``)
    collapses: ClassVar[bool] = False

    @abstractmethod
    def log_moment(self, t: Numbers) -> Numbers:
        """K(t), elementwise, for real or complex t with Re t > -1 at least; relative accuracy also near t = 0.

        +inf where the moment is infinite.
        """

    def log_moment_and_error(self, t: Floats) -> tuple[Floats, Floats]:
        """K at real t > 0, and bounds of its error: 256 ulps of K unless the law knows better."""
        moment = np.asarray(self.log_moment(t), dtype=np.float64)
        return moment, 256 * EPS * np.abs(moment)

    @property
    @abstractmethod
    def mean(self) -> float:
        """E[L; L < inf] = K'(0): the KL divergence where there is no mass at infinity."""

    @property
    def infinity_mass(self) -> float:
        """P(L = +inf), rounded up."""
        return 0.0

    @property
    def infinity_mass_interval(self) -> Interval:
        """Bounds of P(L = +inf); the float read as exact unless the law says otherwise."""
        return Interval(self.infinity_mass, self.infinity_mass)

    @property
    @abstractmethod
    def supremum(self) -> float:
        """The essential supremum of the finite losses (inf if unbounded), rounded up."""

    @property
    @abstractmethod
    def infimum(self) -> float:
        """The essential infimum of the losses (-inf if unbounded), rounded down."""

    @property
    def supremum_interval(self) -> Interval:
        """Bounds of the supremum, ``supremum`` being the upper one; the float read as exact unless the law says
        otherwise.
        """
        return Interval(self.supremum, self.supremum)

    @property
    def infimum_interval(self) -> Interval:
        """Bounds of the infimum, ``infimum`` being the lower one; the float read as exact unless the law says
        otherwise.
        """
        return Interval(self.infimum, self.infimum)

    @abstractmethod
    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Certified (lower, upper) bounds of log E[(1 - exp(epsilon - L))+; L < inf], elementwise, any real epsilon.

        The finite part only: delta(epsilon) adds ``infinity_mass``. -inf where the profile is zero.
        """

    @property
    def profile_by(self) -> str:
        """How ``log_profile`` finds its bounds: what answers of one step name as their method."""
        return "closed form"

    def about_epsilon(self, log_delta: float) -> float | None:
        """About the epsilon > 0 at which the finite profile is this, where the law has a way to it; None elsewhere."""
        del log_delta
        return None

    @abstractmethod
    def tail(self, loss: Floats) -> Floats:
        """P(loss < L < inf), elementwise (an estimate to a few ulps, not a bound)."""

    def log_tail(self, loss: float) -> tuple[float, float] | None:
        """Certified bounds of log P(L > loss), any real loss, where a closed form is at hand; None elsewhere."""
        del loss
        return None

    def atoms(self) -> tuple[tuple[float, float], ...]:
        """The point masses (loss, probability) in increasing order of loss; empty for a continuous loss."""
        return ()

    def listed_atoms(self) -> ListedAtoms | None:
        """All point masses with bounds from both sides; None for a loss with a density, or too long a list."""
        return None

    def progression(self) -> Progression | None:
        """Where all finite losses lie, if |phi(u)| falls for 0 <= u <= pi / spacing at every tilt; None elsewhere."""
        return None

    def density(self, loss: Floats) -> Floats:
        """The density of the continuous part of the finite losses."""
        return np.zeros_like(loss)

    def breakpoints(self) -> tuple[float, ...]:
        """Losses where the density jumps or its formula changes; the ends of the support are not listed."""
        return ()

    def closed_rho(self) -> float | None:
        """sup over l > 0 of K(l) / (l (l + 1)) where a closed form is known, rounded up; None to have it searched
        for.
        """
        return None

    def rho_slack(self, order: float) -> float:
        """s(l) >= 0, growing with l, rounded down, such that K(l) <= (l + 1) (closed_rho() l - s(l)): how far an
        unbounded loss stays below its closed form.
        """
        del order
        return 0.0

    def orders(self) -> tuple[float, ...]:
        """The t > 0 at which a guarantee states its bound of K(t); none where K is known at every t."""
        return ()

    def dominating(self) -> Law | None:
        """A law with a profile that dominates whatever this one allows: itself where it is determined."""
        return self if type(self).determined else None

    def gaussian_mu(self) -> float:
        """A mu for which the pair is mu-Gaussian-DP (upper bound, closed forms only); inf where none is known."""
        return math.inf

    def moment_table(self, theta: Floats) -> MomentTable:
        """K at real tilts theta > 0 with error bounds; +inf where it is infinite or too expensive to evaluate."""
        gap = 1e-3 * theta  # the derivatives only steer the search
        below, moment, above = np.asarray(
            self.log_moment(np.concatenate((theta - gap, theta, theta + gap))), dtype=np.float64
        ).reshape(3, -1)
        with np.errstate(invalid="ignore"):
            first = (above - below) / (2 * gap)
            second = (above - 2 * moment + below) / gap**2
        stated = self.log_moment_and_error(theta)[1]
        return MomentTable(theta, moment, np.maximum(1e-9 * (1.0 + np.abs(moment)), stated), first, second)

    def compiled(self) -> CompiledLaw | None:
        """The law as the compiled kernel knows it, where it does."""
        return None

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> Characteristic | None:
        """The tilted characteristic function for \\|u\\| <= reach to exp(log_tolerance); None where contours do not
        apply.
        """
        del theta, reach, log_tolerance
        return None

    def log_decay(self, theta: float, start: Floats) -> Floats:
        """For each start, an upper bound of log \\|phi(u)\\| over every u >= start; 0 where nothing better is known."""
        del theta
        return np.zeros_like(start)

    def band(self, low: SoftCut | None, high: SoftCut | None) -> WindowedLaw | None:
        """The part of the law between two soft edges (None: no edge); None where the law cannot be cut."""
        del low, high
        return None

    @property
    def atom_error(self) -> float:
        """Relative error that the losses and probabilities of :meth:`atoms` may have."""
        return 64 * EPS

    @property
    def has_all_mass(self) -> bool:
        """Whether P and Q both have all of their mass at finite losses; False where the law cannot tell."""
        other = self.reverse()
        return self.infinity_mass == 0 and other is not None and other.infinity_mass == 0

    def declared(self) -> Any:
        """The pair of finitely many outcomes that the law was rounded from (laws/pairs.py); None if there is none."""
        return None

    def optimistic(self) -> Law:
        """A law that the declared one dominates: itself unless a parameter had to be rounded to the safe side.

        Upper ends are those of the law, lower ends those of its optimistic twin.
        """
        return self

    @property
    def attained_once(self) -> bool:
        """Whether one use alone attains the profile although several need not attain the product of their pairs.

        Then ``optimistic`` is what several uses attain, and a single one needs no twin.
        """
        return False

    def divergences(self) -> Law:
        """What bounds the Renyi divergences: itself, or less where no one pair has the worst at every order."""
        return self

    def reverse(self) -> Law | None:
        """The law of the same pair in the other direction, both without mass at infinity; None if not known."""
        return None

    def is_reverse_of(self, other: Law) -> bool:
        """Whether ``other`` is the loss of the same pair with P and Q exchanged, mass at infinity included.

        Stated by the laws, never found out by looking at their moments; False where nothing is stated.
        """
        return self.reverse() == other

    def spread(self, low: float, step: float, number: int) -> LatticeLaw | None:
        """The law spread onto ``number`` points low, low + step, ...; None where no positive formula is at hand."""
        del low, step, number
        return None

    def sampled(self, rate: Fraction, direction: Direction) -> Law | None:
        """The law after Poisson sampling at ``rate`` in (0, 1) under ADD_REMOVE, where it has a form of its own.

        None: the form that serves every law with known atoms and density.
        """
        del rate, direction
        return None

    def sampled_replace(self, rate: Fraction) -> Law | None:
        """The law after Poisson sampling at ``rate`` in (0, 1] under REPLACE; None where it has no form of its own."""
        del rate
        return None

    def ball(self, count: int) -> BallLoss | None:
        """``count`` independent copies in ball arithmetic, for proofs; None where the law has no such form."""
        del count
        return None

    @property
    def sort_key(self) -> tuple[str, str]:
        return type(self).__name__, repr(self)

    @classmethod
    def collapse(cls, parts: tuple[tuple[Law, int], ...]) -> Law:
        """The law of the sum of independent losses of this family, where ``collapses`` is True."""
        raise NotImplementedError


class MomentBound(Law):
    """A guarantee that bounds K from above and says nothing else: Renyi DP, zCDP, alpha-divergence DP."""

    __slots__ = ()
    determined: ClassVar[bool] = False

    @property
    def supremum(self) -> float:
        return math.inf

    @property
    def infimum(self) -> float:
        return -math.inf

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        del epsilon
        raise self._undetermined("the privacy profile")

    def tail(self, loss: Floats) -> Floats:
        del loss
        raise self._undetermined("the distribution of the privacy loss")

    def _undetermined(self, what: str) -> Unanswerable:
        return Unanswerable(
            f"{type(self).__name__} bounds Renyi divergences only and does not determine {what}; "
            "ask epsilon(delta=...) for an upper bound"
        )
