r"""Discrete Gaussian noise on a Poisson sample under ADD_REMOVE: the generic law, its atoms as nodes of contours.

Outputs are numbered so that the loss of the noise alone, L(j) = s (s + 2j) / (2 sigma^2), grows with j; the sampled
loss L' grows by at most as much from one output to the next. What a list of outputs leaves out of E[e^{theta L'}]:

* **large losses**, j > last. The terms m(j) = P'(j) e^{theta L'(j)} have m(j + 1) / m(j) <= e^{(theta s - j - 1/2) /
  sigma^2}: the density of the mixture against that of the noise, A e^{-L}, falls with L, and on the other side there
  is no such factor. So with j_0 = floor(theta s) and d = last + 1 - j_0 > 2 the rest is at most m(j_0) e^{-d (d - 2) /
  (2 sigma^2)} / (1 - e^{-(d - 1) / sigma^2}), and m(j_0) is no more than the moment. Where L' <= l it is at most
  e^{theta l} P(j > last), and the moment is at least one.
* **large negative losses**, j < -last: at most both members' probability, e^{theta L'} being less than one.

**Wide noise.** A sum over the integers is the trapezoid rule of step 1 / sigma for the integral of the continuous
Gaussian on a sample, and errs by no more than e^{-2 pi sigma} allows (docs/certificates.md, 15): from sigma = 1000
on K and phi are those of ``SampledGaussianLaw``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.law import Law
from dptally.law.adjacency import Direction
from dptally.law.characteristic import Characteristic, MomentTable, NodeCharacteristic
from dptally.law.listed import ListedAtoms
from dptally.laws.discrete_gaussian import DiscreteGaussianLaw
from dptally.laws.quadrature.losses import LossNodes
from dptally.laws.quadrature.tilted import characteristic_of, table_of
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from dptally.laws.sampled.generic import SampledLaw
from dptally.numerics.rounding import EPS, SMALLEST

__all__ = ["SampledDiscreteGaussianLaw"]

_MOST_NODES = 1 << 12
_WIDE, _RIPPLE = 1e3, 1e-40  # sigma from which on sums are integrals, and to what
_TABLE, _DEPTH = -60.0, -690.0  # logs of what may be left out of a table of K, and of a list of atoms


@dataclass(frozen=True, slots=True)
class SampledDiscreteGaussianLaw(SampledLaw):
    """The loss log A(L) under the mixture (REMOVE), or -log A(-L) without the record (ADD)."""

    has_characteristic: ClassVar[bool] = True

    def moment_table(self, theta: Floats) -> MomentTable:
        smooth = self._smooth(float(theta.max()), 0.0)
        if smooth is not None:
            table = smooth.moment_table(theta)
            return replace(table, error=table.error + _RIPPLE)
        found = _outputs(self, float(theta.max()), _TABLE)
        if found is None:
            return MomentTable(theta, *np.full((4, len(theta)), np.inf))
        return table_of(found[0], theta, found[1])

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> Characteristic | None:
        """The atoms are the nodes, for every u."""
        smooth = self._smooth(theta, reach)
        if smooth is not None:
            char = smooth.characteristic(theta, reach, log_tolerance)
            if not isinstance(char, NodeCharacteristic):
                return None
            blur = char.log_moment_error + _RIPPLE
            return replace(char, defect=char.defect + _RIPPLE, log_moment_error=blur)
        found = _outputs(self, theta, log_tolerance)
        return None if found is None else characteristic_of(found[0], theta, found[1])

    def _smooth(self, theta: float, reach: float) -> SampledGaussianLaw | None:
        """The continuous Gaussian on the same sample where sums and integrals agree to e^-100 up to here;
        None where they need not, or where sigma / s is no double.
        """
        inner = self.inner
        assert isinstance(inner, DiscreteGaussianLaw)
        ratio = inner.sigma / inner.shift
        if not (inner.sigma >= _WIDE and Fraction(ratio) * inner.shift == Fraction(inner.sigma) and ratio >= 1.0):
            return None
        if not 2.0 + reach / ratio + theta / ratio**2 - 6.28 * inner.sigma < -100.0:
            return None
        return SampledGaussianLaw(self.rate, ratio, self.side)

    def listed_atoms(self) -> ListedAtoms | None:
        found = _outputs(self, 0.0, _DEPTH)
        if found is None:
            return None
        nodes, missed = found
        slip, blur = nodes.errors()
        with np.errstate(under="ignore"):
            mass = np.exp(nodes.log_mass)
        least = np.where(mass > 1e-300, mass * (1 - 2 * slip), 0.0)  # below, doubles lose their digits
        return ListedAtoms(
            nodes.loss - blur,
            nodes.loss + blur,
            least,
            mass * (1 + 2 * slip) + SMALLEST,
            math.log(missed) if missed > 0 else _DEPTH,
        )

    def optimistic(self) -> Law:
        return self._least()


@lru_cache(maxsize=128)
def _outputs(law: SampledDiscreteGaussianLaw, theta: float, log_tolerance: float) -> tuple[LossNodes, float] | None:
    """The outputs that matter up to this tilt, and what the others have of the moment at most; None if too many."""
    inner = law.inner
    assert isinstance(inner, DiscreteGaussianLaw)
    sigma, s = inner.sigma, float(inner.shift)
    wide = sigma * math.sqrt(2 * (6.0 - log_tolerance)) + 4.0
    least = -math.ceil(s + wide)
    mode = math.floor(theta * s)
    last, capped = mode + math.ceil(wide), math.inf
    if law.side is Direction.ADD:
        lift = theta * -math.log1p(-law.rate) * (1 + 4 * EPS)
        capped = math.ceil(sigma * math.sqrt(2 * (6.0 - log_tolerance + lift)) + 2.0)
    most = max(int(min(last, capped)), -least)
    if not (most - least <= _MOST_NODES and sigma >= 1e-3 and s < 2.0**50):
        return None
    j = np.arange(float(least), most + 1.0)
    weight = -0.5 * (j / sigma) ** 2
    # both sides are losses of one law: j stands for -k on the one and for k - s on the other
    log_mass = weight - math.log(math.fsum(np.exp(weight)))
    nodes = law._mixed(0.5 * s * (s + 2.0 * j) / sigma**2, log_mass)
    d = most + 1.0 - mode
    above = _log_series(d * (d - 2) / 2, d - 1, sigma) if d > 2 else math.inf
    if capped <= last:
        above = min(above, lift + _log_series((most + 1.0) ** 2 / 2, most + 0.5, sigma))  # pyright: ignore[reportPossiblyUnboundVariable]
    below = math.log(2.0) + _log_series((1.0 - least - s) ** 2 / 2, -least - s, sigma)
    missed = math.exp(min(above, 0.0)) + math.exp(min(below, 0.0))
    return nodes, missed * (1 + 1e-9) + SMALLEST


def _log_series(fall: float, ratio: float, sigma: float) -> float:
    """log of e^{-fall / sigma^2} / (1 - e^{-ratio / sigma^2}), rounded up."""
    square = sigma * sigma
    return -fall / square * (1 - 8 * EPS) - math.log(-math.expm1(-ratio / square)) + 8 * EPS
