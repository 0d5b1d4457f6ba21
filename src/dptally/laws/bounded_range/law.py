r"""Bounded range: everything that is true of the losses of the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.errors import Unanswerable
from dptally.interval import Interval
from dptally.law import Law
from dptally.law.adjacency import Direction
from dptally.law.characteristic import Characteristic, MomentTable
from dptally.law.law import Numbers
from dptally.laws.bounded_range.moments import BoundedRangeMoments, half_coth, log_sinhc, merged
from dptally.laws.bounded_range.recursion import FLOOR, Curves, Uses, curves, is_feasible
from dptally.laws.quadrature.legendre import gauss_legendre
from dptally.laws.quadrature.tilted import exponential_rule, tilted_nodes
from dptally.numerics.exact import between
from dptally.numerics.logspace import log1mexp, log1p, sinhc_divided_difference, sinhc_minus_one, widened
from dptally.numerics.rounding import EPS, up

__all__ = ["BoundedRangeLaw"]

_MOMENT_ULPS = 64.0
_SERIES = 0.7  # half arguments below which differences of sinh(x)/x are summed
_ENDED = 40.0  # nats below the largest term of a moment


@dataclass(frozen=True, slots=True)
class BoundedRangeLaw(Law):
    r"""Adaptively chosen uses, (range, count) in increasing order of the range: the losses of each use span its range.

    One use has a dominating pair in closed form, the same in both directions: with c = e^{-eps/2}

        delta(e) = (1 - c e^{e/2})^2 / (1 - c^2)  for |e| <= eps,     K(t) = S((2t + 1) eps) - S(eps),

    S(x) = log(sinh(x/2)/(x/2)); its loss has the density e^{l/2} / (4 sinh(eps/2)) on [-eps, eps]. Each delta(e) is
    attained, by losses (eps + e)/2 and (e - eps)/2. No mechanism attains all of them at once, so several uses are
    **not** that pair several times: their profile is the recursion's (recursion.py), between bounds, and uses collapse
    into one law. Its pair dominates them, also beside other mechanisms, whose results they may depend on
    (docs/selection.md, theorems 1 to 3). A range may be the next double above the declared one: lower bounds hold for
    the one before it.
    """

    uses: Uses
    has_characteristic: ClassVar[bool] = True
    collapses: ClassVar[bool] = True
    theorem: ClassVar[str] = (
        "Dong, Durfee, Rogers 2020, Optimal differential privacy composition for exponential mechanisms "
        "(the recursion; docs/selection.md); McSherry, Talwar 2007 (the exponential mechanism); Cesar, Rogers 2021 "
        "(eps^2/8-zCDP: Renyi divergences, and uses too many for the recursion)"
    )

    @classmethod
    def once(cls, epsilon: float) -> BoundedRangeLaw:
        return cls(((epsilon, 1),))

    @classmethod
    def collapse(cls, parts: tuple[tuple[Law, int], ...]) -> Law:
        """All uses in one law; only their Renyi divergences where there are too many for the recursion."""
        uses = merged(tuple((law.uses, n) for law, n in parts if isinstance(law, BoundedRangeLaw)))
        law = cls(uses)
        return law if law.is_once or is_feasible(uses) else BoundedRangeMoments(uses)

    @property
    def is_once(self) -> bool:
        return len(self.uses) == 1 and self.uses[0][1] == 1

    @property
    def epsilon(self) -> float:
        """The range of one use."""
        return self.uses[0][0]

    def divergences(self) -> Law:
        return BoundedRangeMoments(self.uses)

    @property
    def attained_once(self) -> bool:
        return True

    def reverse(self) -> BoundedRangeLaw:
        return self

    @property
    def has_all_mass(self) -> bool:
        return True

    @property
    def supremum(self) -> float:
        return _largest_losses(self.uses)[1]

    @property
    def infimum(self) -> float:
        return -self.supremum

    @property
    def supremum_interval(self) -> Interval:
        return Interval(*_largest_losses(self.uses))

    @property
    def infimum_interval(self) -> Interval:
        return Interval(-self.supremum, -self.supremum_interval.lower)

    @property
    def profile_by(self) -> str:
        return "closed form" if self.is_once else "recursion over the uses"

    # -- the profile -----------------------------------------------------------------------------------------------

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        if self.is_once:
            return self._log_profile_once(epsilon)
        flat = epsilon.ravel()
        lower, upper = self._log_excess(np.abs(flat))
        negative = np.minimum(flat, 0.0)
        missing = -np.expm1(negative)  # H(e) = 1 - e^e + e^e H(-e)
        with np.errstate(divide="ignore", under="ignore"):
            ends = [np.log(missing + np.exp(negative + end)) for end in (lower, upper)]
        low, high = (np.where(flat < 0, end, log) for end, log in zip(ends, (lower, upper), strict=True))
        low, high = low - 8 * EPS * (flat < 0), high + 8 * EPS * (flat < 0)
        low, high = widened(low, high, 8)  # pyright: ignore[reportArgumentType]
        return low.reshape(epsilon.shape), high.reshape(epsilon.shape)

    def _log_profile_once(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """2 log(1 - e^{(e - eps)/2}) - log(1 - e^-eps) inside; the halved difference is within half an ulp of it."""
        ends = []
        for sign, eps in ((-1.0, math.nextafter(self.epsilon, 0.0)), (1.0, self.epsilon)):
            half = np.nextafter(0.5 * (epsilon - eps), -math.inf * sign)
            inner = 2.0 * log1mexp(np.where(epsilon < eps, np.minimum(half, 0.0), 0.0)) - float(log1mexp(-eps))
            inner = inner + sign * 16 * EPS * (1.0 + np.abs(np.where(np.isfinite(inner), inner, 0.0)))
            below = log1mexp(np.minimum(epsilon, -0.5 * eps))
            ends.append(np.where(epsilon <= -eps, below, np.minimum(inner, 0.0)))
        with np.errstate(invalid="ignore"):
            return widened(ends[0], ends[1], 8)

    def _log_excess(self, loss: Floats) -> tuple[Floats, Floats]:
        """Bounds of log H at losses >= 0: the tables, and beyond them what eps^2/8-zCDP says."""
        lower, upper = self._curves.log_lower(loss), self._curves.log_upper(loss)
        rho = _rho(self.uses)
        beyond = np.maximum(loss - rho, 0.0)
        upper = np.minimum(upper, -(beyond * beyond) / (4.0 * rho) * (1 - 16 * EPS))
        ends = loss >= self.supremum
        return np.where(ends, -np.inf, np.minimum(lower, upper)), np.where(ends, -np.inf, upper)

    @property
    def _curves(self) -> Curves:
        return curves(self.uses)

    # -- the loss as a random variable -------------------------------------------------------------------------------

    def tail(self, loss: Floats) -> Floats:
        """(e^{eps/2} - e^{l/2}) / (2 sinh(eps/2)) for one use; the slopes of the table for several."""
        if not self.is_once:
            return _table(self.uses).tail(np.asarray(loss, dtype=np.float64))
        eps = self.epsilon
        inside = np.clip(loss, -eps, eps)
        return np.asarray(np.expm1(0.5 * (inside - eps)) / math.expm1(-eps), dtype=np.float64)

    def density(self, loss: Floats) -> Floats:
        """Of one use; that of several is not known, and 0 here."""
        if not self.is_once:
            return np.zeros_like(np.asarray(loss, dtype=np.float64))
        eps = self.epsilon
        inside = np.abs(loss) < eps
        value = 0.5 * np.exp(0.5 * (np.where(inside, loss, 0.0) - eps)) / -math.expm1(-eps)
        return np.where(inside, value, 0.0)

    @property
    def mean(self) -> float:
        """eps coth(eps/2) - 2 for one use."""
        if not self.is_once:
            return _table(self.uses).mean
        return 2.0 * half_coth(self.epsilon)

    # -- moments ---------------------------------------------------------------------------------------------------

    def log_moment(self, t: Numbers) -> Numbers:
        t = np.asarray(t)
        t = np.where(t.real < -0.5, -1.0 - t, t)  # both directions have one law: K(t) = K(-1 - t)  # pyright: ignore[reportAttributeAccessIssue]
        return self._log_moment_once(t) if self.is_once else _table(self.uses).log_moment(t)

    def _log_moment_once(self, t: Numbers) -> Numbers:
        """With A = (t + 1/2) eps, B = eps/2, f(x) = sinh(x)/x: exp K - 1 = t eps f[A, B] / f(B)."""
        eps = self.epsilon
        top, bottom = (t + 0.5) * eps, 0.5 * eps
        small = (np.abs(top) < _SERIES) & (bottom < _SERIES)
        near = np.where(small, top, 0.0)
        other = np.asarray(bottom if bottom < _SERIES else 0.0)
        excess = t * eps * sinhc_divided_difference(near, other) / (1.0 + sinhc_minus_one(other))
        with np.errstate(under="ignore"):
            level = top == 0  # f(0) = 1
            far = np.where(small | level, 1.0, top)
            risen = far + log1p(-np.exp(-2.0 * far)) - np.log(2.0 * far)
            safe = np.where(level, 0.0, risen) - float(log_sinhc(eps))
        return np.where(small, log1p(np.where(small, excess, 0.0)), np.where(t == 0, 0.0, safe))

    def log_moment_and_error(self, t: Floats) -> tuple[Floats, Floats]:
        moment = np.asarray(self.log_moment(t), dtype=np.float64)
        if not self.is_once:
            return moment, 1e-11 * np.abs(moment)
        return moment, _MOMENT_ULPS * EPS * (np.abs(moment) + self.epsilon * (self.epsilon > 0.1))

    def moment_table(self, theta: Floats) -> MomentTable:
        table = Law.moment_table(self, theta)
        moment, error = self.log_moment_and_error(theta)
        return MomentTable(theta, moment, error, table.first, table.second)

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> Characteristic | None:
        """Gauss-Legendre nodes for the density of one use: e^{(theta + 1/2 + iu) l} is entire."""
        eps = self.epsilon
        if not self.is_once:
            return None
        rule = exponential_rule(eps * (theta + 0.5), eps * reach, log_tolerance)
        if rule is None:
            return None
        x, w = rule
        masses = 0.5 * eps * w * np.exp(0.5 * eps * (x - 1.0)) / -math.expm1(-eps)
        return tilted_nodes(
            eps * x,
            masses,
            theta,
            loss_error=4 * EPS,
            mass_error=(64 + 8 * eps) * EPS,
            defect=math.exp(log_tolerance),
        )

    def log_decay(self, theta: float, start: Floats) -> Floats:
        """|phi(u)| <= (variation of the tilted density, which is monotone) / u."""
        if not self.is_once:
            return np.zeros_like(start)
        eps = self.epsilon
        log_k = float(np.asarray(self.log_moment(np.array([theta])))[0])
        most = math.exp(theta * eps - log_k * (1 - 1e-12)) / -math.expm1(-eps)  # twice the density at eps
        return np.minimum(0.0, np.log(most / start) + 1e-9)

    # -- sampling --------------------------------------------------------------------------------------------------

    def sampled(self, rate: Fraction, direction: Direction) -> Law:
        from dptally.laws.bounded_range.sampled import sampled_once

        if not self.is_once:
            raise Unanswerable(
                "several uses of selection on the same sample are not supported: their loss has no closed form; sample "
                "each use by itself"
            )
        return sampled_once(self, rate, direction)

    def closed_rho(self) -> float | None:
        """The pair's own, as l -> 0: its mean."""
        return up(self.mean, 64) if self.is_once and self.epsilon < 1 else None


@lru_cache(maxsize=256)
def _largest_losses(uses: Uses) -> tuple[float, float]:
    """Bounds of the sum of all ranges, each of which may be the next double above the declared one."""
    least = sum((n * Fraction(math.nextafter(eps, 0.0)) for eps, n in uses), Fraction(0))
    return between(least)[0], between(sum((n * Fraction(eps) for eps, n in uses), Fraction(0)))[1]


@lru_cache(maxsize=256)
def _rho(uses: Uses) -> float:
    return BoundedRangeMoments(uses).closed_rho()


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The pair whose profile is the table from above: linear in e^e between nodes, so point masses on them."""

    step: float
    log_value: Floats  # of H at the nodes 0, 1, ..
    intercept: Floats  # P(L > l) inside the segments
    slope: Floats  # Q(L > l) inside the segments
    most: float  # the largest possible loss
    cap: Uses

    @property
    def mean(self) -> float:
        return math.exp(self._log_integral(0.0).real)

    def tail(self, loss: Floats) -> Floats:
        """P(L > l); below 0 it is 1 - Q(L >= -l)."""
        j = np.minimum(np.floor(np.abs(loss) / self.step), len(self.slope) - 1).astype(np.int64)
        inside = np.where(loss < 0, 1.0 - self.slope[j], self.intercept[j])
        return np.where(loss < -self.most, 1.0, np.where(loss >= self.most, 0.0, inside))

    def log_moment(self, t: Numbers) -> Numbers:
        """log(1 + t (t + 1) (integral of (e^{tl} + e^{-(1+t)l}) H(l), l > 0)); at most the sum over one-use pairs.

        That pair several times dominates the uses, so its K is an upper bound where the table ends too early.
        """
        flat = np.atleast_1d(t).ravel()
        out = np.empty(flat.shape, dtype=np.result_type(flat.dtype, np.float64))
        for i, at in enumerate(flat.tolist()):
            log_integral = self._log_integral(at)
            if math.isnan(log_integral.real):
                value = self._once(at)
            elif log_integral.real < 300:
                value = complex(log1p(np.asarray(at * (at + 1) * np.exp(log_integral))))
            else:
                value = log_integral + complex(np.log(complex(at * (at + 1))))
            out[i] = value if np.iscomplexobj(out) else value.real
        return out.reshape(np.shape(t))

    def _once(self, t: complex) -> complex:
        at = np.asarray(t)
        return complex(sum(n * BoundedRangeLaw.once(eps).log_moment(at).item() for eps, n in self.cap))

    def _log_integral(self, t: complex) -> complex:
        """log of the integral of (e^{tl} + e^{-(1+t)l}) H(l) over l > 0; NaN where the table ends too early for it."""
        h = self.step
        x, w = gauss_legendre(12)
        inside = 0.5 * h * (1.0 + x)
        later = np.expm1(inside) / math.expm1(h)
        with np.errstate(under="ignore", divide="ignore"):
            terms, tops = [], []
            for power in (t, -(1 + t)):
                moved = 0.5 * h * w * np.exp(power * inside)
                here, there = (moved * (1.0 - later)).sum(), (moved * later).sum()
                log_segment = self.log_value[:-1] + np.log(here + there * np.exp(np.diff(self.log_value)) + 0j)
                exponent = log_segment + power * h * np.arange(len(log_segment))
                terms.append(exponent)
                tops.append(float(exponent.real.max()))
            top = max(tops)
            if terms[0][-1].real > top - _ENDED and self.step * (len(self.log_value) - 1) < self.most * (1 - 1e-9):
                return complex(math.nan, 0.0)
            total = sum(np.exp(term - top).sum() for term in terms)
        return complex(np.log(complex(total)) + top)


@lru_cache(maxsize=32)
def _table(uses: Uses) -> Table:
    found = curves(uses)
    value = found.upper
    slope = np.append(-np.diff(value), 0.0) / found.gap
    intercept = value + slope
    power = np.exp(-found.step * np.arange(len(value)))
    falls = np.minimum.accumulate
    log_value = np.where(value > FLOOR, np.log(value), -np.inf)
    kept = max(2, int(np.count_nonzero(value > FLOOR)) + 1)
    return Table(
        found.step,
        np.maximum(log_value[:kept], math.log(FLOOR)),
        np.clip(falls(intercept), 0.0, 1.0),
        np.clip(falls(slope * power), 0.0, 1.0),
        BoundedRangeLaw(uses).supremum,
        uses,
    )
