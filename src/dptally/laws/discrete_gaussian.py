"""The loss of discrete Gaussian noise: its true lattice law, not the continuous stand-in."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.errors import Unanswerable
from dptally.law import Law
from dptally.law.characteristic import Characteristic, MomentTable, NodeCharacteristic
from dptally.law.law import Numbers
from dptally.law.listed import ListedAtoms
from dptally.numerics.doubled import two_product
from dptally.numerics.exact import between
from dptally.numerics.logspace import log1p, widened
from dptally.numerics.normal import log_gaussian_delta, mirrored
from dptally.numerics.rounding import EPS, SMALLEST
from dptally.numerics.special import ndtr

__all__ = ["ATOM_FLOOR", "DiscreteGaussianLaw"]

ATOM_FLOOR = 1e-40  #: atoms() lists the atoms of at least this probability
_MOST_TERMS = 1_000_000  # of a sum; beyond, the profile is bracketed by the integral
_MOMENT_ULPS = 64.0
_DEPTH, _MOST_LISTED = 690.0, 1 << 12  # nats and atoms of the list with bounds
_LEAST_SIGMA, _MOST_SIGMA = 1e-3, 1e3  # between these the atoms serve as nodes of contours
_DIRECT = 0.5  # sigma below which theta sums are summed as they stand, above by Poisson summation


@dataclass(frozen=True, slots=True)
class DiscreteGaussianLaw(Law):
    r"""The loss of P(k) = exp(-k^2 / (2 sigma^2)) / theta(0) against its shift by the integer s.

    The loss at k is s (s - 2k) / (2 sigma^2): an atom for every integer, the same law in both directions.
    With the periodic theta(y) = sum over k of exp(-(k + y)^2 / (2 sigma^2)):

        K(t) = t (t + 1) s^2 / (2 sigma^2) + log( theta(t s) / theta(0) ).

    sigma and s are exact; log_profile covers the rounding of everything derived from them.
    """

    sigma: float
    shift: int
    theorem: ClassVar[str] = "Canonne, Kamath, Steinke 2020, Def. 1, Thm. 4 and Prop. 7"
    has_characteristic: ClassVar[bool] = True

    # -- the log-moment --------------------------------------------------------------------------------------

    def log_moment(self, t: Numbers) -> Numbers:
        t = np.asarray(t)
        turns: Numbers = np.zeros(t.shape)
        if np.iscomplexobj(t):
            # the losses lie on a lattice of step s / sigma^2: a shift of t by a period turns each term by
            # the same angle
            period = 2 * math.pi * self.sigma**2 / self.shift
            turns = np.round(t.imag / period)
            t = t - 1j * period * turns
        y = t * self.shift
        whole = np.round(y.real)
        rest = y - whole
        twice = 2.0 * self.sigma**2
        if self.sigma < _DIRECT:
            value = (t * self.shift**2 + whole * (2.0 * y - whole)) / twice + log1p(self._bulge(rest))
        else:
            value = t * (t + 1.0) * (self.shift**2 / twice) + log1p(self._ripple(rest))
        return value + 1j * math.pi * self.shift * turns if np.iscomplexobj(t) else value

    def _bulge(self, y: Numbers) -> Numbers:
        """theta(y) e^{y^2/(2 sigma^2)} / theta(0) - 1 = 4 sum p_k sinh^2(k y / (2 sigma^2)) / theta(0), |Re
        y| <= 1/2.
        """
        total: Numbers = np.zeros_like(y)
        for k in range(1, 7):  # the terms left out are below e^-80
            total = total + _doubled_sinh_square(-(k**2) / (2 * self.sigma**2), k * y / self.sigma**2)
        return total / math.exp(self._log_theta())

    def _ripple(self, y: Numbers) -> Numbers:
        """theta(y)/theta(0) - 1 = -4 sum q_n sin^2(pi n y) / (1 + 2 sum q_n), q_n = exp(-2 pi^2 sigma^2
        n^2)  (Poisson).
        """
        total: Numbers = np.zeros_like(y)
        for n in range(1, 6):
            exponent = -2 * (math.pi * self.sigma * n) ** 2
            angle = 2 * math.pi * n * y
            if np.iscomplexobj(y):
                total = total + _doubled_sinh_square(exponent, 1j * angle)
            else:
                total = total - 4.0 * math.exp(exponent) * np.sin(0.5 * angle) ** 2
        return total / (1.0 + 2.0 * _waves(self.sigma))

    def _log_theta(self) -> float:
        """log theta(0), to 4 ulps or 1e-15."""
        if self.sigma < _DIRECT:
            return math.log1p(2.0 * math.fsum(math.exp(-(k**2) / (2 * self.sigma**2)) for k in range(1, 7)))
        return math.log(self.sigma) + 0.5 * math.log(2 * math.pi) + math.log1p(2.0 * _waves(self.sigma))

    def moment_table(self, theta: Floats) -> MomentTable:
        table = Law.moment_table(self, theta)
        return replace(table, error=_MOMENT_ULPS * EPS * table.moment)

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> Characteristic | None:
        """Atoms as nodes: tilted by theta the noise is discrete Gaussian about -theta s, whatever u is.

        With theta s = w + f, w an integer and |f| <= 1/2 formed exactly, k = j - w has the tilted weight
        exp(-(j + f)^2 / (2 sigma^2)) and the loss s (s + 2w) / (2 sigma^2) - j s / sigma^2. Beyond |j + f| = r at most
        2 exp(-r^2 / (2 sigma^2)) / (1 - exp(-r / sigma^2)) is left out (a geometric series).
        """
        del reach
        sigma, s = self.sigma, float(self.shift)
        if not (_LEAST_SIGMA <= sigma <= _MOST_SIGMA and theta * s < 2.0**50 and s < 2.0**50):
            return None
        product, low = two_product(np.array(theta), np.array(s))
        whole = float(np.round(product))
        rest = (float(product) - whole) + float(low)
        limit = sigma * math.sqrt(2 * (8.0 - log_tolerance)) + 2.0
        j = np.arange(-math.ceil(limit), math.ceil(limit) + 1, dtype=np.float64)
        exponent = -0.5 * ((j + rest) / sigma) ** 2
        top = float(exponent.max())
        weights = np.exp(exponent - top)
        total = float(weights.sum())
        beyond = limit - 1.0  # every j that is left out is further from the centre
        outside = 2 * math.exp(min(0.0, -0.5 * (beyond / sigma) ** 2 - top)) / -math.expm1(-beyond / sigma**2) / total
        moment = float(self.log_moment(np.array([theta]))[0])
        return NodeCharacteristic(
            losses=-(s / sigma**2) * j,
            weights=weights / total,
            loss_error=4 * EPS * (s / sigma**2) * np.abs(j),
            weight_error=EPS * (16 + 8 * np.abs(exponent) + 2 * (np.abs(j) + 1) / sigma**2),
            defect=2.2 * outside,
            log_moment=moment,
            log_moment_error=_MOMENT_ULPS * EPS * moment,
            centre=0.5 * s * (s + 2 * whole) / sigma**2,
        )

    @property
    def has_all_mass(self) -> bool:
        return True

    def is_reverse_of(self, other: Law) -> bool:
        """The same in both directions."""
        return self == other

    @property
    def mean(self) -> float:
        return 0.5 * (self.shift / self.sigma) ** 2

    @property
    def supremum(self) -> float:
        return math.inf

    @property
    def infimum(self) -> float:
        return -math.inf

    # -- the profile -----------------------------------------------------------------------------------------

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        r"""sum over k < x of P(k) (1 - exp(-g (x - k))),  g = s/sigma^2,  x = s/2 - epsilon/g.

        Positive terms; increasing in x and in g, so the ends take the ends of their rounding. eps < 0 by
        the symmetry of the pair. Where the sum would have over a million terms, the integral (the Gaussian
        profile) brackets it: the summand is log-concave, and the sum of a unimodal function is within its
        maximum of its integral.
        """
        epsilon = np.asarray(epsilon, dtype=np.float64)
        lower, upper = np.empty(epsilon.shape), np.empty(epsilon.shape)
        for i, e in np.ndenumerate(np.abs(epsilon)):
            lower[i], upper[i] = self._log_delta(float(e))
        lower, upper = widened(lower, upper, 4)
        negative = epsilon < 0
        if negative.any():
            lower = np.where(negative, mirrored(epsilon, lower, False), lower)
            upper = np.where(negative, mirrored(epsilon, upper, True), upper)
        return lower, upper

    def _log_delta(self, epsilon: float) -> tuple[float, float]:
        """Bounds for one epsilon >= 0. x is formed exactly, so that x - k keeps its relative accuracy next
        to an atom.
        """
        if math.isinf(epsilon):
            return -math.inf, -math.inf
        sigma, variance, s = self.sigma, self.sigma**2, self.shift
        exact = Fraction(s, 2) - Fraction(epsilon) * Fraction(sigma) ** 2 / s
        g = s / variance
        if abs(exact) > 10**12:
            return self._by_integral(epsilon, exact, g) if sigma > 1e6 else self._far(exact)
        first = math.ceil(exact) - 1  # the last k below x
        start = min(first, math.ceil(10 * sigma) + 1)
        depth = 45.0 - math.log(-math.expm1(-g)) if g < 700 else 45.0
        anchor = min(start - 1, 0)
        end = -math.ceil(math.sqrt(anchor**2 + 2 * variance * depth)) - 2
        if start - end > _MOST_TERMS:
            return self._by_integral(epsilon, exact, g)
        k = np.arange(start, end, -1, dtype=np.float64)
        above = float(exact - start) + np.arange(k.size)  # x - k
        exponent = -0.5 * (k / sigma) ** 2
        peak = float(exponent.max())
        with np.errstate(under="ignore"):
            terms = np.exp(exponent - peak) * -np.expm1(-g * above)
            total = float(terms.sum())
            # left out: below the end a geometric series at most; above the start, if anything, a tail
            # beyond 10 sigma
            ratio = -math.expm1((2 * end + 1) / (2 * variance))
            omitted = math.exp(-0.5 * (end / sigma) ** 2 - peak) / ratio
            if start < first:
                omitted += math.exp(-0.5 * (start / sigma) ** 2) * (1 + 1.26 * sigma)
        # rounding: 4 ulps of each exponent, its weight in the sum attached; the factors, the sum and the
        # logarithms
        slack = EPS * (4 * float(np.sum(terms * -exponent)) / total + 24 + math.log2(k.size) + 2 * abs(math.log(total)))
        value = math.log(total) + (peak - self._log_theta())
        slack += EPS * (abs(value) + abs(peak))
        return value - slack, value + slack + omitted / total

    def _far(self, x: Fraction) -> tuple[float, float]:
        """P(k <= x) <= exp(-x^2/(2 sigma^2)) (1 + sigma sqrt(pi/2)) for x < 0; nothing is claimed from
        below.
        """
        if x >= 0:
            return -math.inf, 0.0
        size = float(min(-x / Fraction(self.sigma), Fraction(10) ** 150))
        return -math.inf, -0.5 * size**2 * (1 - 1e-14) + math.log1p(1.26 * self.sigma)

    def _by_integral(self, epsilon: float, x: Fraction, g: float) -> tuple[float, float]:
        """sigma > 5e4, so theta(0) is sigma sqrt(2 pi) to every digit; the summand's maximum is found from
        1 - e^-y <= y.
        """
        lower, upper = (float(v) for v in log_gaussian_delta(self.shift / self.sigma, epsilon))
        z = float(max(x / Fraction(self.sigma), -(Fraction(10) ** 150)))
        if z <= 0:  # e^{-(x-y)^2/2 sigma^2} g y, over y >= 0
            log_peak = -0.5 * z * z + math.log(g * self.sigma * min(1.0 / (2.718 * max(-z, 1e-300)), 0.607))
        else:
            log_peak = min(0.0, math.log(g * self.sigma * (z + 0.607)))
        log_peak = log_peak - math.log(2.5066 * self.sigma) + 1e-9 + 1e-14 * z * z
        share = math.exp(min(log_peak - lower, 700.0)) if lower > -math.inf else math.inf
        if share >= 1:
            return -math.inf, min(max(upper, log_peak) + math.log(2), 0.0)
        return lower + math.log1p(-share), min(upper + math.log1p(share), 0.0)

    # -- the distribution ------------------------------------------------------------------------------------

    def tail(self, loss: Floats) -> Floats:
        """P(L > l) = P(k < s/2 - l sigma^2/s); for sigma above 5e4 by the continuous tail (relative 1e-9)."""
        edge = np.ceil(0.5 * self.shift - np.asarray(loss) * (self.sigma**2 / self.shift)) - 1
        if 20 * self.sigma > _MOST_TERMS:
            return np.asarray(ndtr((edge + 0.5) / self.sigma))
        out = np.empty(edge.shape)
        for i, j in np.ndenumerate(edge):
            size = min(abs(float(j)), 40 * self.sigma)
            far = math.ceil(math.sqrt(size**2 + 90 * self.sigma**2)) + 1
            low, high = (j + 1, far) if j >= 0 else (-far, max(j, -far))  # sum the smaller side
            k = np.arange(low, high + 1, dtype=np.float64)
            with np.errstate(under="ignore"):
                part = float(np.sum(np.exp(-0.5 * (k / self.sigma) ** 2 - self._log_theta())))
            out[i] = 1.0 - part if j >= 0 else part
        return out

    def atoms(self) -> tuple[tuple[float, float], ...]:
        """Those of probability at least ``ATOM_FLOOR``, in increasing order of loss."""
        room = -2 * (math.log(ATOM_FLOOR) + self._log_theta())
        if room < 0:  # not even the likeliest
            return ()
        reach = math.floor(self.sigma * math.sqrt(room))
        if reach > _MOST_TERMS:
            raise Unanswerable(f"the loss has {2 * reach + 1} atoms above {ATOM_FLOOR}; ask tail or log_profile")
        k = np.arange(reach, -reach - 1, -1, dtype=np.float64)
        losses = 0.5 * self.shift * (self.shift - 2 * k) / self.sigma**2
        masses = np.exp(-0.5 * (k / self.sigma) ** 2 - self._log_theta())
        return tuple(zip(losses.tolist(), masses.tolist(), strict=True))

    def listed_atoms(self) -> ListedAtoms | None:
        """Down to e^-690 of the largest; a geometric series bounds the rest."""
        sigma, s = self.sigma, float(self.shift)
        last = math.ceil(sigma * math.sqrt(2 * _DEPTH)) + 1
        if not (sigma >= _LEAST_SIGMA and last <= _MOST_LISTED):
            return None
        k = np.arange(-last, last + 1, dtype=np.float64)
        exponent, log_theta = -0.5 * (k / sigma) ** 2, self._log_theta()
        with np.errstate(under="ignore"):
            mass = np.exp(exponent - log_theta)
        error = EPS * (16 + 6 * np.abs(exponent) + 8 * abs(log_theta))
        loss = 0.5 * s * (s - 2 * k) / sigma**2
        blur = 4 * EPS * np.abs(loss)
        log_missed = math.log(2.0) - 0.5 * (last / sigma) ** 2 * (1 - 8 * EPS) - math.log(-math.expm1(-last / sigma**2))
        least = np.where(mass > 1e-300, mass * (1 - error), 0.0)  # below, doubles lose their digits
        return ListedAtoms(loss - blur, loss + blur, least, mass * (1 + error) + SMALLEST, log_missed + 8 * EPS)

    def closed_rho(self) -> float | None:
        """s^2 / (2 sigma^2), rounded up: theta(y) <= theta(0), with equality at 0.  [Canonne, Kamath,
        Steinke 2020, Thm. 4]
        """
        return between(Fraction(self.shift) ** 2 / (2 * Fraction(self.sigma) ** 2))[1]


def _waves(sigma: float) -> float:
    """sum over n >= 1 of exp(-2 pi^2 sigma^2 n^2), sigma >= 1/2."""
    return math.fsum(math.exp(-2 * (math.pi * sigma * n) ** 2) for n in range(1, 6))


def _doubled_sinh_square(exponent: float, angle: Numbers) -> Numbers:
    """e^exponent (e^angle + e^-angle - 2) = 4 e^exponent sinh^2(angle/2), without overflow where exponent +
    |angle| <= 0.
    """
    small = np.abs(angle) < 1
    with np.errstate(under="ignore"):
        near = 4.0 * math.exp(exponent) * np.sinh(0.5 * np.where(small, angle, 0.0)) ** 2
        far = np.exp(exponent + angle) + np.exp(exponent - angle) - 2.0 * math.exp(exponent)
    return np.where(small, near, far)
