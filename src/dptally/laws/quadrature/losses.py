r"""K(t) of a loss that is known at quadrature nodes or atoms, accurate relative to K also where K is tiny.

Let the finite losses have P-mass 1 - p, and let Q have mass 1 - r where P has any. Then
E[e^{-L}] = 1 - r, and

    E[e^{tL}] = 1 - p + t E[L] + E[e^{tL} - 1 - tL],      E[L] = E[L - 1 + e^{-L}] + r - p.

With p = r = 0 and t >= 0 nothing cancels: every term is nonnegative. A node carries its mass under P, its
loss, and its share of E[L - 1 + e^{-L}]. At rate q = 1e-9 K is of order q^2 = 1e-18 and still correct to a
few ulps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dptally.checks import Floats
from dptally.errors import Unanswerable
from dptally.law import Law
from dptally.law.law import Numbers
from dptally.laws.quadrature.legendre import gauss_legendre
from dptally.laws.quadrature.trapezoid import MOST_POINTS, REACH
from dptally.numerics.logspace import log1p
from dptally.numerics.rounding import EPS

if TYPE_CHECKING:
    from dptally.laws.discrete_gaussian import DiscreteGaussianLaw

__all__ = [
    "LossNodes",
    "add_divergence",
    "divergence",
    "expm1_minus",
    "minus_log1p",
    "moment_and_error",
    "moment_by_nodes",
    "panels",
    "remove_divergence",
    "weighted_losses",
]

_CELLS = 1 << 20  # entries of one (t, node) table: 16 MB of complex numbers
_FACTORIALS = tuple(1.0 / math.factorial(k) for k in range(14, 1, -1))
_FEW = 1 << 14  # more terms than these are summed in pairs: all positive, at most 16 ulps
_POINTS = 32  # Gauss-Legendre points of one panel
_MOST_PANELS = 16_000  # 8 MB for both sides of one array, of which a rule needs about ten at once


@dataclass(frozen=True, slots=True)
class LossNodes:
    """A rule for expectations over the finite losses: log of the mass, loss, share of E[L - 1 + e^{-L}]."""

    log_mass: Floats
    loss: Floats
    divergence: Floats
    infinity_mass: float = 0.0  # p: P's mass at L = +inf
    reverse_mass: float = 0.0  # r: Q's mass where P has none
    mass_error: Floats | None = None  # bounds of the error of log_mass; by default 4 ulps of it
    loss_error: Floats | None = None  # bounds of the error of the losses; by default 4 ulps of them

    def errors(self) -> tuple[Floats, Floats]:
        """Bounds of the errors of log_mass and of the losses."""
        slip = 4 * EPS * np.abs(self.log_mass) if self.mass_error is None else self.mass_error
        return slip, 4 * EPS * np.abs(self.loss) if self.loss_error is None else self.loss_error

    @property
    def mean(self) -> float:
        """E[L; L < inf]."""
        few = self.divergence.size <= _FEW
        total = math.fsum(self.divergence) if few else float(self.divergence.sum())
        return math.fsum((total, self.reverse_mass, -self.infinity_mass))

    def log_moment(self, t: Numbers) -> Numbers:
        """log E[e^{tL}; L < inf] for a one-dimensional array of real or complex t."""
        rows = max(1, _CELLS // max(1, self.loss.size))
        out = np.empty(t.shape, dtype=np.result_type(t.dtype, np.float64))
        for start in range(0, t.size, rows):
            out[start : start + rows] = self._block(t[start : start + rows])
        return out

    def log_moment_error(self, t: Floats, moment: Floats) -> Floats:
        """Bounds of the error of K at real t, given K: rounding alone (the rule leaves e^-50).

        Near one, K = log1p(sum of mass (e^u - 1 - u) + t E[L] - p), u = tL: a relative error d of u moves a term by
        (2 + |u|) d of itself, and a term of E[L] likewise; else it is the log of a sum of e^{log mass + u}, and where
        that is scaled mass (1 + u) is subtracted. A sum of n terms errs by n ulps of the sum of moduli.
        """
        rows = max(1, _CELLS // max(1, self.loss.size))
        out = np.empty(t.shape)
        for start in range(0, t.size, rows):
            part = slice(start, start + rows)
            out[part] = self._error_block(t[part], moment[part])
        return out

    def _error_block(self, t: Floats, moment: Floats) -> Floats:
        size, n = np.abs(self.loss), self.loss.size
        slip, blur = self.errors()
        slip, blur = EPS * (24 + n) + slip, EPS * size + blur
        relative = np.where(size > 0, blur / np.where(size > 0, size, 1.0), 0.0)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            u = t[:, None] * self.loss
            far = ~self._is_near_one(t) | ((self.log_mass + u).max(axis=1) >= 2.0)
            log_share = self.log_mass - moment[:, None]
            grown = np.exp(log_share + u)
            whole = (grown + np.exp(log_share) * (1 + np.abs(u))) @ slip + np.abs(t) * (grown @ blur)
            terms = np.where(u > 1.0, grown, np.exp(log_share) * expm1_minus(np.minimum(u, 1.0)))
            near = terms @ (slip + 2 * relative) + (terms * np.abs(u)) @ relative
            mean = self.divergence @ (slip + (2 + size) * relative)
            near = near + np.exp(-moment) * (np.abs(t) * mean + 4 * EPS * (1 + np.abs(t)) * self._outside)
            error = np.where(far, whole, near) + 8 * EPS * np.abs(moment)
        return np.where(np.isfinite(error), error, np.inf)

    def _is_near_one(self, t: Numbers) -> NDArray[np.bool_]:
        """Where neither t E[L] nor the mass at infinity cancels against the rest; elsewhere the plain sum does best."""
        return np.asarray((np.abs(t) * abs(self.mean) < 0.5) & (self.infinity_mass < 0.5), dtype=np.bool_)

    @property
    def _outside(self) -> float:
        return self.infinity_mass + self.reverse_mass

    def _block(self, t: Numbers) -> Numbers:
        with np.errstate(over="ignore", invalid="ignore"):
            u, mean = t[:, None] * self.loss, self.mean
        finite = np.isfinite(u).all(axis=1)
        if not finite.all():  # the exponent itself is outside double range
            whole = np.full(t.shape, np.inf, dtype=u.dtype)
            whole[finite] = self._block(t[finite]) if finite.any() else np.inf
            return whole
        peak = np.maximum((self.log_mass + u.real).max(axis=1), 0.0)
        out = np.empty(t.shape, dtype=u.dtype)
        mild = peak < 2.0
        near_one = mild & self._is_near_one(t)
        plain = mild & ~near_one
        if near_one.any():
            at = t[near_one] * mean - self.infinity_mass
            out[near_one] = log1p(self._excess(u[near_one]) + at)
        if plain.any():
            out[plain] = np.log(np.exp(self.log_mass + u[plain]).sum(axis=1))
        if not mild.all():
            out[~mild] = self._scaled(t[~mild], u[~mild], peak[~mild], mean)
        return out

    def _excess(self, u: Numbers) -> Numbers:
        """sum of mass * (e^u - 1 - u); through the logarithm where e^u would overflow."""
        high = u.real > 500.0  # pyright: ignore[reportAttributeAccessIssue]
        total: Numbers = expm1_minus(np.where(high, 0.0, u)) @ np.exp(self.log_mass)
        if high.any():
            total = total + np.where(high, np.exp(np.where(high, u + self.log_mass, 0.0)), 0.0).sum(axis=1)
        return total

    def _scaled(self, t: Numbers, u: Numbers, peak: Floats, mean: float) -> Numbers:
        """The same sum divided by e^peak, where it would overflow; as it stands where a mass that was rounded up to the
        least double makes the mean infinite.
        """
        lead = np.exp(u + self.log_mass - peak[:, None]).sum(axis=1)
        if math.isinf(mean):
            return np.asarray(peak + np.log(lead))
        rest = np.exp(self.log_mass - peak[:, None])
        bulk = np.exp(-peak) * (1.0 - self.infinity_mass + t * mean)
        return np.asarray(peak + np.log(lead - (rest * (1 + u)).sum(axis=1) + bulk))


def moment_by_nodes(nodes: Callable[[Floats, float], LossNodes], t: Numbers) -> Numbers:
    """K at any array of t; ``nodes(tilts, frequency)`` is a rule for Re t in tilts, |Im t| <= frequency.

    Real t within a factor of two of one another share a rule; complex t do where their real parts agree.
    """
    t = np.asarray(t)
    flat = np.atleast_1d(t).ravel()
    out = np.empty(flat.shape, dtype=np.result_type(flat.dtype, np.float64))
    real = flat.real  # pyright: ignore[reportAttributeAccessIssue]
    group = real if np.iscomplexobj(flat) else np.sign(real) * np.frexp(np.maximum(np.abs(real), 0.5))[1]
    for label in np.unique(group):
        rows = group == label
        frequency = float(np.abs(flat[rows].imag).max()) if np.iscomplexobj(flat) else 0.0
        out[rows] = nodes(np.unique(real[rows]), frequency).log_moment(flat[rows])
    return out.reshape(t.shape)


def moment_and_error(nodes: Callable[[Floats, float], LossNodes], t: Floats) -> tuple[Floats, Floats]:
    """K at real t, and bounds of its error."""
    flat = np.atleast_1d(np.asarray(t, dtype=np.float64)).ravel()
    moment, error = np.empty(flat.shape), np.empty(flat.shape)
    group = np.sign(flat) * np.frexp(np.maximum(np.abs(flat), 0.5))[1]
    for label in np.unique(group):
        rows = group == label
        rule = nodes(np.unique(flat[rows]), 0.0)
        moment[rows] = rule.log_moment(flat[rows])
        error[rows] = rule.log_moment_error(flat[rows], moment[rows])
    return moment.reshape(np.shape(t)), error.reshape(np.shape(t))


def weighted_losses(law: Law, tilt: float, modulus: float) -> tuple[Floats, Floats]:
    """(loss, log mass) of a rule for E[g(L)], g as smooth as e^{tL}, Re t = tilt, |t| <= modulus.

    32 points on a panel of length at most min(2, 8 / (1 + modulus)) leave less than 1e-16 of a function
    that is analytic within pi of the real line.
    """
    from dptally.laws.discrete_gaussian import DiscreteGaussianLaw

    if isinstance(law, DiscreteGaussianLaw):
        return _lattice(law, tilt)
    if not (math.isfinite(law.infimum) and math.isfinite(law.supremum)):
        raise Unanswerable(
            f"the log-moment of a sampled {type(law).__name__} is not computed: its loss is unbounded; "
            "its privacy profile is: ask delta(epsilon=...) or epsilon(delta=...) of one run"
        )
    atoms = np.array(law.atoms(), dtype=np.float64).reshape(-1, 2)
    losses, masses = [atoms[:, 0]], [atoms[:, 1]]
    if math.fsum(masses[0]) < (1.0 - law.infinity_mass) * (1.0 - 1e-9):
        for start, end in pairwise([law.infimum, *law.breakpoints(), law.supremum]):
            points, weights = panels(start, end, modulus)
            losses.append(points)
            masses.append(weights * law.density(points))
    loss, mass = np.concatenate(losses), np.concatenate(masses)
    kept = mass > 0
    return loss[kept], np.log(mass[kept])


def _lattice(law: DiscreteGaussianLaw, tilt: float) -> tuple[Floats, Floats]:
    """The atoms of discrete Gaussian noise that matter at this tilt: between the modes, and REACH beyond."""
    reach = law.shift * (2.0 + max(tilt, 1.0)) + REACH * law.sigma + 1.0
    if not 2 * reach <= MOST_POINTS:
        raise Unanswerable(
            f"the log-moment of {law!r} on a sample at t = {tilt:g} needs {2 * reach:.0f} terms; use Gaussian noise"
        )
    k = np.arange(-math.ceil(reach), math.ceil(reach) + 1, dtype=np.float64)
    weight = -0.5 * (k / law.sigma) ** 2
    total = math.log(math.fsum(np.exp(weight)))
    return 0.5 * law.shift * (law.shift + 2.0 * k) / law.sigma**2, weight - total


def panels(start: float, end: float, modulus: float) -> tuple[Floats, Floats]:
    """(points, weights) of composite Gauss-Legendre quadrature on [start, end]; see ``weighted_losses``."""
    number = max(1, math.ceil((end - start) / min(2.0, 8.0 / (1.0 + modulus))))
    if number > _MOST_PANELS:
        raise Unanswerable(f"the log-moment at |t| = {modulus:g} needs {number} panels; ask for a smaller order")
    points, weights = gauss_legendre(_POINTS)
    half = 0.5 * (end - start) / number
    centres = start + half * (2.0 * np.arange(number) + 1.0)
    return (centres[:, None] + half * points).ravel(), np.tile(half * weights, number)


def expm1_minus(u: Numbers) -> Numbers:
    """e^u - 1 - u, elementwise, with relative accuracy; real or complex."""
    small = np.abs(u) < 0.3
    v = np.where(small, u, 0.0)
    series: Any = np.full_like(v, _FACTORIALS[0])
    for coefficient in _FACTORIALS[1:]:
        series = series * v + coefficient
    return np.where(small, series * v * v, np.expm1(u) - u)


def remove_divergence(log_mass: Floats, log_base: Floats, x: Floats, log_ratio: Floats) -> Floats:
    """base (A log A - A + 1), A = 1 + x, mass = A base; x log A - (x - log A) where x is moderate."""
    moderate = x < 1e3
    v, log_v = np.where(moderate, x, 0.0), np.where(moderate, log_ratio, 0.0)
    small = np.exp(np.where(moderate, log_base, 0.0)) * (v * log_v - minus_log1p(v, log_v))
    return np.where(moderate, small, np.exp(log_mass) * (log_ratio - 1.0) + np.exp(log_base))


def add_divergence(log_mass: Floats, x: Floats, log_ratio: Floats) -> Floats:
    """mass (x - log(1 + x)), also where x alone would overflow."""
    moderate = x < 1e3
    small = np.exp(log_mass) * minus_log1p(np.where(moderate, x, 0.0), np.where(moderate, log_ratio, 0.0))
    large = np.exp(np.where(moderate, 0.0, log_mass + log_ratio)) - np.exp(log_mass) * (1.0 + log_ratio)
    return np.where(moderate, small, large)


def divergence(log_mass: Floats, loss: Floats) -> Floats:
    """mass (L - 1 + e^-L), also where e^-L alone would overflow; inf where the product does."""
    steep = loss < -500.0
    moderate = np.exp(log_mass) * expm1_minus(np.where(steep, 0.0, -loss))
    with np.errstate(over="ignore"):
        return np.where(steep, np.exp(np.where(steep, log_mass - loss, 0.0)), moderate)


def minus_log1p(x: Floats, log1p_x: Floats) -> Floats:
    """x - log(1 + x) >= 0 with relative accuracy, given log(1 + x) with relative accuracy.

    For small x, with r = x / (2 + x): log(1 + x) = 2 artanh(r), and x - 2 r = x r.
    """
    small = np.abs(x) < 0.3
    v = np.where(small, x, 0.0)
    r = v / (2.0 + v)
    square = r * r
    series = np.full_like(r, 1.0 / 25.0)
    for k in range(23, 1, -2):
        series = series * square + 1.0 / k
    return np.where(small, r * (v - 2.0 * square * series), x - log1p_x)
