"""Losses that take two opposite values, and perhaps zero or infinity: pure and approximate DP, randomized
response.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.interval import Interval
from dptally.law import Law
from dptally.law.ball import BallLoss
from dptally.law.characteristic import Characteristic, MomentTable
from dptally.law.law import Numbers
from dptally.law.listed import ListedAtoms
from dptally.laws.pairs import Guarantee, Pair
from dptally.laws.quadrature.tilted import tilted_nodes
from dptally.numerics.decimals import around, sixty_digits
from dptally.numerics.logspace import LOG1MEXP_ULPS, log1mexp, log1p, widened
from dptally.numerics.normal import gaussian_mu_of_pure
from dptally.numerics.rounding import EPS, FUNCTION_ULPS, up

__all__ = ["TwoPointLaw", "two_point_law"]

_MOMENT_ULPS = 64.0


@dataclass(frozen=True, slots=True)
class TwoPointLaw(Law):
    """Mass ``mass`` at l, mass exp(-l) at -l times that, ``zero`` at 0 and ``infinity_mass`` at infinity; l
    >= 0.

    The same in both directions. With w = mass:  exp K(t) = (1 - infinity_mass) + w (e^{t l} - 1)(1 -
    e^{-(1+t) l}), because w e^{t l} + w e^{-l} e^{-t l} + zero is that sum; nothing cancels in it.

    The exact l lies between ``loss_lower`` and ``loss``; ``mass`` and ``zero`` are within 4 ulps,
    ``infinity_mass`` is exact. ``pair`` is what was declared.
    """

    loss: float
    loss_lower: float
    mass: float
    zero: float = 0.0
    infinity_mass: float = 0.0  # pyright: ignore[reportIncompatibleMethodOverride]  # a field is read like a property
    pair: Pair | None = field(default=None, repr=False)
    has_characteristic: ClassVar[bool] = True
    theorem: ClassVar[str] = "Kairouz, Oh, Viswanath 2015, Thm. 3.1 and 3.3; Dong, Roth, Su 2022, Prop. 2.5"

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> Characteristic | None:
        del reach, log_tolerance
        if self.infinity_mass == 1:
            return None
        losses = np.array([-self.loss, 0.0, self.loss])
        masses = np.array([self.mass * math.exp(-self.loss), self.zero, self.mass])
        off = 4 * EPS + ((self.loss - self.loss_lower) / self.loss if self.loss > 0 else 0.0)
        keep = masses > 0
        return tilted_nodes(
            losses[keep],
            masses[keep],
            theta,
            loss_error=off,
            mass_error=(16 + 4 * self.loss) * EPS,
            missing=self.infinity_mass,
        )

    @classmethod
    def of_guarantee(cls, epsilon: float, delta: float = 0.0) -> TwoPointLaw:
        """The pair that dominates every (epsilon, delta)-DP mechanism."""
        pair = Guarantee(Fraction(epsilon), Fraction(delta))
        law = two_point_law(pair)
        if law is None or epsilon == 0:  # e^-epsilon is no number, or there are no two points
            return cls(epsilon, epsilon, (1.0 - delta) / (1.0 + math.exp(-epsilon)), 0.0, delta, pair)
        return replace(law, loss=epsilon, loss_lower=epsilon)

    def listed_atoms(self) -> ListedAtoms | None:
        from dptally.laws.atoms import atoms_of_pair

        return atoms_of_pair(self.pair)

    def declared(self) -> Pair | None:
        return self.pair

    def ball(self, count: int) -> BallLoss | None:
        from dptally.laws.ball.losses import TwoPointBall

        return TwoPointBall(self.loss, self.loss_lower, self.zero, self.infinity_mass, count)

    def log_moment(self, t: Numbers) -> Numbers:
        t = np.asarray(t)
        t = np.where(t.real < -0.5, -1.0 - t, t)  # pyright: ignore[reportAttributeAccessIssue]
        finite = 1.0 - self.infinity_mass
        if finite == 0:
            return np.full_like(t, -np.inf)
        share = self.mass / finite
        with np.errstate(under="ignore", over="ignore"):
            tl = t * self.loss
            growth = np.where(tl.real > 700.0, 1e300, np.expm1(np.where(tl.real > 700.0, 0.0, tl)))
            excess = share * growth * -np.expm1(-(1.0 + t) * self.loss)
            far = (np.abs(excess) > 1) | (excess.real < -0.5)
            # far from 1:  exp K / finite = e^{tl} (share + share e^{-(2t+1) l} + e^{-tl} zero / finite)
            inside = share + share * np.exp(-(2.0 * t + 1.0) * self.loss)
            if self.zero > 0:
                inside = inside + (self.zero / finite) * np.exp(np.where(far, -tl, 0.0))
            value = np.where(far, tl + np.log(np.where(far, inside, 1.0)), log1p(np.where(far, 0.0, excess)))
        return value + math.log1p(-self.infinity_mass)

    def log_moment_and_error(self, t: Floats) -> tuple[Floats, Floats]:
        moment = np.asarray(self.log_moment(t), dtype=np.float64)
        survival = abs(math.log1p(-self.infinity_mass)) if self.infinity_mass < 1 else 0.0
        return moment, _MOMENT_ULPS * EPS * (np.abs(moment) + 2 * survival)

    def moment_table(self, theta: Floats) -> MomentTable:
        table = Law.moment_table(self, theta)
        survival = abs(math.log1p(-self.infinity_mass)) if self.infinity_mass < 1 else 0.0
        return replace(table, error=_MOMENT_ULPS * EPS * (np.abs(table.moment) + 2 * survival))

    @property
    def atom_error(self) -> float:
        """The loss lies between neighbouring doubles, the masses are good to 4 ulps."""
        return 8 * EPS

    @property
    def has_all_mass(self) -> bool:
        return self.infinity_mass == 0

    def is_reverse_of(self, other: Law) -> bool:
        """The same in both directions."""
        return self == other

    @property
    def mean(self) -> float:
        return self.mass * self.loss * -math.expm1(-self.loss)

    @property
    def supremum(self) -> float:
        return self.loss

    @property
    def infimum(self) -> float:
        return -self.loss

    @property
    def supremum_interval(self) -> Interval:
        return Interval(self.loss_lower, self.loss)

    @property
    def infimum_interval(self) -> Interval:
        return Interval(-self.loss, -self.loss_lower)

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """w (1 - e^{eps - l}) for 0 <= eps < l, plus zero (1 - e^eps) for -l < eps < 0; (1 - infinity)(1 -
        e^eps) below.

        Sums of positive terms, increasing in l; the masses carry 4 ulps, exponentials and logarithm
        those of a function.
        """
        lower, upper = self._log_profile(epsilon, self.loss_lower, -1), self._log_profile(epsilon, self.loss, 1)
        return widened(lower, upper, 4 + LOG1MEXP_ULPS)

    def _log_profile(self, epsilon: Floats, loss: float, sign: int) -> Floats:
        negative = np.minimum(epsilon, 0.0)
        with np.errstate(under="ignore", divide="ignore", over="ignore"):
            # half an ulp of the difference, outwards
            shift = np.nextafter(np.minimum(epsilon - loss, 0.0), -math.inf * sign)
            inner = np.log(self.mass * -np.expm1(np.minimum(shift, 0.0)) + self.zero * -np.expm1(negative))
        below = log1mexp(negative) + (math.log1p(-self.infinity_mass) if self.infinity_mass < 1 else -math.inf)
        # near 1 the logarithm is small and its argument's rounding is not: the widening is relative, so add
        # it here
        inner = inner + sign * (6 + FUNCTION_ULPS) * EPS
        return np.where(epsilon >= loss, -np.inf, np.where(epsilon <= -loss, below, np.minimum(inner, 0.0)))

    def tail(self, loss: Floats) -> Floats:
        above = np.where(loss < self.loss, self.mass, 0.0)
        middle = np.where(loss < 0, self.zero, 0.0)
        return above + middle + np.where(loss < -self.loss, self.mass * math.exp(-self.loss), 0.0)

    def atoms(self) -> tuple[tuple[float, float], ...]:
        if self.infinity_mass == 1:
            return ()
        if self.loss == 0:
            return ((0.0, 1.0 - self.infinity_mass),)
        ends = (-self.loss, self.mass * math.exp(-self.loss)), (self.loss, self.mass)
        return (ends[0], (0.0, self.zero), ends[1]) if self.zero > 0 else ends

    def closed_rho(self) -> float | None:
        """eps tanh(eps/2) for two atoms, the limit l -> 0 of K(l)/(l (l+1))  [Bun, Steinke 2016, Prop. 3.3,
        tightened].
        """
        return up(self.loss * math.tanh(0.5 * self.loss), 8) if self.zero == 0 and self.infinity_mass == 0 else None

    def gaussian_mu(self) -> float:
        """-2 Phi^{-1}(1/(1 + e^l)): every l-DP mechanism is that much Gaussian-DP.  [Liu et al. 2022, Thm. 5.1]"""
        return gaussian_mu_of_pure(self.loss) if self.infinity_mass == 0 else math.inf


@lru_cache(maxsize=256)
def two_point_law(pair: Pair) -> TwoPointLaw | None:
    """The law of a pair of opposite losses, and perhaps zero, rounded from sixty digits; None where it has none."""
    outcomes = pair.outcomes()
    if outcomes is None or not outcomes.rows:
        return None
    top = outcomes.rows[-1]
    with sixty_digits():
        lower, upper = around(top.loss)
        zero = sum((float(row.p) for row in outcomes.rows[:-1] if not row.excess), 0.0)
        return TwoPointLaw(upper, lower, float(top.p), zero, float(outcomes.only_p[1]), pair)
