"""Gaussian losses: everything that is true of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.law import Law
from dptally.law.adjacency import Direction
from dptally.law.ball import BallLoss
from dptally.law.characteristic import Characteristic, GaussianCharacteristic, MomentTable
from dptally.law.law import Numbers
from dptally.numerics.exact import between
from dptally.numerics.normal import log_gaussian_delta, log_normal_tail
from dptally.numerics.rounding import EPS, up
from dptally.numerics.special import ndtr

__all__ = ["LARGEST_RATIO", "SMALLEST_RATIO", "GaussianLaw"]

SMALLEST_RATIO, LARGEST_RATIO = (
    1e-140,
    1e100,
)  # of mu: the square must be a normal double, with counts to 1e9 and more


_MOST_BITS = 1 << 14  # of the denominator of an exact sum of variances


@dataclass(frozen=True, slots=True)
class GaussianLaw(Law):
    """L ~ N(mu^2/2, mu^2): the loss of N(mu, 1) against N(0, 1), the same in both directions.

    K(t) = mu^2 t (t + 1) / 2. Kept as the variance mu^2, which is what adds: the exact rational, rounded up
    (once for each mechanism, once for the sum), so at most 2 * 2^-52 above the truth. Its root mu is within
    1.5 * 2^-52, less than the 2 * 2^-52 that the bounds of the profile cover. ``declared_as`` is the rational itself.
    """

    variance: float
    declared_as: Fraction | None = field(default=None, repr=False)
    has_characteristic: ClassVar[bool] = True
    theorem: ClassVar[str] = "Dong, Roth, Su 2022, Gaussian differential privacy, Thm. 2.7 and Cor. 3.3"
    collapses: ClassVar[bool] = True

    @classmethod
    def collapse(cls, parts: tuple[tuple[Law, int], ...]) -> Law:
        if len(parts) == 1 and parts[0][1] == 1:
            return parts[0][0]
        total = Fraction(0)
        for law, n in parts:
            if isinstance(law, GaussianLaw):
                total = _shortened(total + n * law.exact_variance)
        return cls.of_variance(total)

    @classmethod
    def of_variance(cls, variance: Fraction) -> GaussianLaw:
        """The law of this exact mu^2."""
        lower, rounded = between(variance)
        return cls(rounded, None if lower == rounded else variance)

    @property
    def exact_variance(self) -> Fraction:
        return Fraction(self.variance) if self.declared_as is None else self.declared_as

    def reverse(self) -> GaussianLaw:
        return self

    def sampled(self, rate: Fraction, direction: Direction) -> Law:
        from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
        from dptally.laws.sampled.gaussian.parameters import Declared

        rounded, given = Declared(rate, self.exact_variance).rounded()
        return SampledGaussianLaw(*rounded, direction, given)

    def sampled_replace(self, rate: Fraction) -> Law:
        from dptally.laws.sampled.gaussian.parameters import Declared
        from dptally.laws.sampled.gaussian.replace import SampledReplaceGaussianLaw

        if rate == 1:
            return GaussianLaw.of_variance(4 * self.exact_variance)  # N(1/sigma, 1) against N(-1/sigma, 1)
        rounded, given = Declared(rate, self.exact_variance).rounded()
        return SampledReplaceGaussianLaw(*rounded, given)

    def ball(self, count: int) -> BallLoss | None:
        from dptally.laws.ball.losses import GaussianBall

        return GaussianBall(self.exact_variance, count)

    def log_moment(self, t: Numbers) -> Numbers:
        return 0.5 * self.variance * t * (t + 1)  # type: ignore[no-any-return]

    def moment_table(self, theta: Floats) -> MomentTable:
        moment = self.log_moment(theta)
        ones = np.ones_like(theta)
        return MomentTable(theta, moment, 8 * EPS * moment, self.variance * (theta + 0.5), self.variance * ones)

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> Characteristic | None:
        del reach, log_tolerance
        return GaussianCharacteristic.of(self.variance, theta, 8 * EPS)

    def log_decay(self, theta: float, start: Floats) -> Floats:
        del theta
        return -0.5 * self.variance * (1 - 16 * EPS) * start * start

    @property
    def mu(self) -> float:
        return math.sqrt(self.variance)

    @property
    def mean(self) -> float:
        return 0.5 * self.variance

    @property
    def supremum(self) -> float:
        return math.inf

    @property
    def infimum(self) -> float:
        return -math.inf

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        return log_gaussian_delta(self.mu, epsilon)

    def tail(self, loss: Floats) -> Floats:
        return np.asarray(ndtr(0.5 * self.mu - loss / self.mu))

    def log_tail(self, loss: float) -> tuple[float, float] | None:
        """log Phi(mu/2 - loss/mu); the variance is rounded up, so mu is within 2 * 2^-52, and the argument within 6."""
        z = loss / self.mu - 0.5 * self.mu
        off = 6 * EPS * (abs(loss) / self.mu + self.mu)
        return float(log_normal_tail(z + off)[0]), float(log_normal_tail(z - off)[1])

    def density(self, loss: Floats) -> Floats:
        z = loss / self.mu - 0.5 * self.mu
        return np.exp(-0.5 * z * z) / (self.mu * math.sqrt(2 * math.pi))

    def closed_rho(self) -> float | None:
        return 0.5 * self.variance

    def gaussian_mu(self) -> float:
        return up(self.mu)


def _shortened(variance: Fraction) -> Fraction:
    """The sum itself, or where very many different laws make it long the next multiple of 2^-1024 of it above."""
    if variance.denominator.bit_length() <= _MOST_BITS:
        return variance
    unit = Fraction(2) ** (variance.numerator.bit_length() - variance.denominator.bit_length() - 1024)
    return math.ceil(variance / unit) * unit
