"""The loss of discrete Laplace (two-sided geometric) noise: everything that is true of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.errors import Unanswerable
from dptally.interval import Interval
from dptally.law import Law
from dptally.law.characteristic import Characteristic, MomentTable
from dptally.law.law import Numbers
from dptally.law.listed import ListedAtoms
from dptally.laws.pairs import Pair
from dptally.laws.quadrature.tilted import tilted_nodes
from dptally.numerics.doubled import two_product
from dptally.numerics.logspace import (
    exp_divided_difference,
    expm1_ratio,
    log1mexp,
    log1p,
    sinhc_divided_difference,
    sinhc_minus_one,
    widened,
)
from dptally.numerics.normal import gaussian_mu_of_pure
from dptally.numerics.rounding import EPS

__all__ = ["DiscreteLaplaceLaw"]

_MOMENT_ULPS = 64.0


_PROFILE_ULPS = 24.0


_MOST_ATOMS = 1_000_000


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceLaw(Law):
    r"""The loss of P(k) = (1 - r)/(1 + r) r^{|k|} against its shift by the integer s, r = exp(-x), x =
    1/scale.

    The loss at k is (s - 2k) x for 0 <= k <= s and constant beyond: s + 1 atoms, the same in both directions.
    With a = t x, c = -(1 + t) x, d = a - c, summing the geometric series:

        exp K = e^{s a} (1 - w (1 - e^{-s d}) / (1 - e^{-d})),    w = r (1 - e^{-2a}) / (1 + r).

    The exact x lies between ``step_lower`` and ``step``, the exact s x between ``reach_lower`` and ``reach``;
    log_profile holds for them. ``pair`` is what was declared.
    """

    shift: int
    step: float
    step_lower: float
    reach: float
    reach_lower: float
    pair: Pair | None = field(default=None, repr=False)
    has_characteristic: ClassVar[bool] = True
    theorem: ClassVar[str] = (
        "Ghosh, Roughgarden, Sundararajan 2009, Sec. 2 (the mechanism); its loss by direct computation"
    )

    def log_moment(self, t: Numbers) -> Numbers:
        t = np.asarray(t)
        t = np.where(t.real < -0.5, -1.0 - t, t)  # both directions have one law: K(t) = K(-1 - t)  # pyright: ignore[reportAttributeAccessIssue]
        s, r = float(self.shift), math.exp(-self.step)
        a, c = t * self.step, -(1.0 + t) * self.step
        small = s * np.abs(c) < 1  # |a| <= |c|
        large = ~small & ((s * a.real > 2) | (s * a.real < -0.5))
        with np.errstate(under="ignore"):
            falling = a.real < -0.5
            w = np.where(falling, r - np.exp(c - a), -r * np.expm1(-2.0 * np.where(falling, 0.0, a))) / (1.0 + r)
            ratio = w * s * expm1_ratio(s * (c - a)) / expm1_ratio(c - a)
            grown = np.where(large, 0.0, s * a)
            near = np.where(large, 0.0, np.expm1(grown) - np.exp(grown) * ratio)
        if small.any():
            near = np.where(small, self._excess(np.where(small, a, 0.0), np.where(small, c, 0.0)), near)
        return np.where(large, s * a + log1p(-ratio), log1p(near))

    def _excess(self, a: Numbers, c: Numbers) -> Numbers:
        """exp K - 1 for s |c| < 1, where the formula above cancels: that of Laplace noise plus a positive
        correction.

        The ratio above is k a s (1 - e^{-s d})/(s d), the Laplace ratio times k; with h = x/2, w = a + h,
        f(y) = sinh(y)/y 1 - k = (sinh h cosh w - h f(a)) / (cosh h sinh w) = (h / cosh h) (f[h, -a] / f(w)
        + f(h) tanh(w/2)).
        """
        s, h = float(self.shift), np.asarray(0.5 * self.step)
        w = a + h
        laplace = -(s * a) * (s * c) * exp_divided_difference(s * a, s * c)
        curved = sinhc_divided_difference(h, -a) / (1.0 + sinhc_minus_one(w))
        curved = curved + (1.0 + sinhc_minus_one(h)) * np.tanh(0.5 * w)
        excess: Numbers = np.exp(s * a) * (s * a) * expm1_ratio(s * (c - a)) * (h / np.cosh(h)) * curved
        return laplace + excess

    def moment_table(self, theta: Floats) -> MomentTable:
        table = Law.moment_table(self, theta)
        return replace(table, error=_MOMENT_ULPS * EPS * table.moment)

    @property
    def has_all_mass(self) -> bool:
        return True

    def is_reverse_of(self, other: Law) -> bool:
        """The same in both directions."""
        return self == other

    @property
    def mean(self) -> float:
        """s x - x/sinh(x) (1 - e^{-s x}) = (s x - 1 + e^{-s x}) + (1 - x/sinh(x)) (1 - e^{-s x})."""
        x, reach = self.step, self.reach
        if reach >= 1:
            return reach + (x / math.sinh(x) if x < 700 else 0.0) * math.expm1(-reach)
        bent = float(sinhc_minus_one(np.asarray(x))) * x / math.sinh(x)
        return reach**2 * float(exp_divided_difference(np.zeros(()), np.asarray(-reach))) - bent * math.expm1(-reach)

    @property
    def supremum(self) -> float:
        return self.reach

    @property
    def infimum(self) -> float:
        return -self.reach

    @property
    def supremum_interval(self) -> Interval:
        return Interval(self.reach_lower, self.reach)

    @property
    def infimum_interval(self) -> Interval:
        return Interval(-self.reach, -self.reach_lower)

    def listed_atoms(self) -> ListedAtoms | None:
        from dptally.laws.atoms import atoms_of_pair

        return atoms_of_pair(self.pair)

    def declared(self) -> Pair | None:
        return self.pair

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """The best event is {k <= j}:  delta = max over 0 <= j < s of 1 - (r^{j+1} + e^eps r^{s-j})/(1 +
        r), or 1 - e^eps.

        r^m/(1 + r) falls in x for m >= 1, so delta rises in x: the lower bound takes the lower x. The best
        j is next to (s - eps/x)/2; all three neighbours are tried, and any of them is a lower bound.
        """
        epsilon = np.asarray(epsilon, dtype=np.float64)
        lower, upper = (
            self._log_profile(epsilon, self.step_lower, -1),
            self._log_profile(epsilon, self.step, 1),
        )
        lower, upper = widened(lower, upper, _PROFILE_ULPS)
        return np.where(epsilon >= self.reach, -np.inf, lower), np.where(epsilon >= self.reach, -np.inf, upper)

    def _log_profile(self, epsilon: Floats, x: float, sign: int) -> Floats:
        middle = np.floor(0.5 * (self.shift - np.clip(epsilon / x, -self.shift, self.shift)))
        best = np.where(epsilon < 0, log1mexp(np.minimum(epsilon, 0.0)), -np.inf)
        for j in (middle - 1, middle, middle + 1):
            best = np.maximum(best, self._log_event(epsilon, np.clip(j, 0, self.shift - 1), x, sign))
        return best

    def _log_event(self, epsilon: Floats, j: Floats, x: float, sign: int) -> Floats:
        """log P(k <= j) - e^eps Q(k <= j), from its complement where that is small, else as a sum of
        positive terms:

        (1 + r) delta_j = (1 - e^{-(j+1)x}) + (e^{-x} - e^{eps - (s-j)x}),  for j = 0:  1 - e^{eps - s x}.
        The exponents are correctly rounded differences; each exponential errs by the size of its exponent
        in ulps.
        """
        product, low = two_product(self.shift - j, np.full_like(j, x))
        exponent = np.minimum((epsilon - product) - low, 700.0)
        first = -(j + 1) * x
        with np.errstate(under="ignore", divide="ignore"):
            rest = (np.exp(first) + np.exp(exponent)) / (1.0 + math.exp(-x))
            rest = rest * (1.0 - sign * EPS * (8.0 + np.abs(first) + np.abs(exponent)))
            gain = np.where(
                exponent + x > 1,
                math.exp(-x) - np.exp(exponent),
                -math.exp(-x) * np.expm1(self._late(epsilon, j, x)),
            )
            sum_ = np.where(j == 0, -np.expm1(exponent), -np.expm1(first) + gain) / (1.0 + math.exp(-x))
            return np.where(rest < 0.5, np.log1p(-np.minimum(rest, 0.5)), np.log(np.maximum(sum_, 0.0)))

    def _late(self, epsilon: Floats, j: Floats, x: float) -> Floats:
        """eps - (s - j - 1) x, correctly rounded."""
        product, low = two_product(self.shift - j - 1, np.full_like(j, x))
        return np.minimum((epsilon - product) - low, 700.0)

    def tail(self, loss: Floats) -> Floats:
        """P(L > l) = P(k <= j), j the largest integer below (s - l/x)/2; everything below -s x, nothing
        from s x on.
        """
        r = math.exp(-self.step)
        j = np.ceil(0.5 * (self.shift - np.clip(loss / self.step, -self.shift, self.shift))) - 1
        inside = 1.0 - np.exp(-(np.maximum(j, 0.0) + 1) * self.step) / (1.0 + r)
        return np.where(loss < -self.reach, 1.0, np.where(loss >= self.reach, 0.0, inside))

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> Characteristic | None:
        del reach, log_tolerance
        if self.shift > 4096:
            return None
        losses, masses = np.array(self.atoms()).T
        off = (self.step - self.step_lower) / self.step + 8 * EPS
        return tilted_nodes(losses, masses, theta, loss_error=off, mass_error=(64 + 8 * self.reach) * EPS)

    def atoms(self) -> tuple[tuple[float, float], ...]:
        if self.shift > _MOST_ATOMS:
            raise Unanswerable(
                f"the loss has {self.shift + 1} atoms, too many to list; ask the plan epsilon(delta=...)"
            )
        r, x = math.exp(-self.step), self.step
        inner = [
            ((self.shift - 2 * k) * x, -math.expm1(-x) / (1 + r) * math.exp(-k * x))
            for k in range(self.shift - 1, 0, -1)
        ]
        return ((-self.reach, math.exp(-self.reach) / (1 + r)), *inner, (self.reach, 1 / (1 + r)))

    def gaussian_mu(self) -> float:
        """That of every mechanism with the same pure epsilon."""
        return gaussian_mu_of_pure(self.reach)
