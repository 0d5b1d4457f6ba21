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
from dptally.law.adjacency import Direction
from dptally.law.characteristic import Characteristic, GaussianCharacteristic, MomentTable, NodeCharacteristic
from dptally.law.law import Numbers
from dptally.law.listed import ListedAtoms, Progression
from dptally.numerics.doubled import two_product, two_sum
from dptally.numerics.exact import between
from dptally.numerics.logspace import log1p, widened
from dptally.numerics.normal import log_gaussian_delta, mirrored
from dptally.numerics.rounding import EPS, FUNCTION_ULPS, SMALLEST
from dptally.numerics.special import ndtr

__all__ = ["ATOM_FLOOR", "DiscreteGaussianLaw"]

ATOM_FLOOR = 1e-40  #: atoms() lists the atoms of at least this probability
_MOST_TERMS, _FURTHEST = 1_000_000, 1e12  # of a sum, and where it begins; beyond, the integral brackets the profile
_FEW = 8  # epsilons whose places are found in rational numbers
_VAST = 1e6  # a sigma from which on the integral brackets the profile at every epsilon that is not summed
_MOST_ELEMENTS = 1 << 18  # of a matrix of terms: 2 MB
_MOMENT_ULPS = 64.0
_DEPTH, _MOST_LISTED = 690.0, 1 << 12  # nats and atoms of the list with bounds
_LEAST_SIGMA, _MOST_SIGMA = 1e-3, 1e3  # between these the atoms serve as nodes of contours
_SMOOTH, _RIPPLE = 8.0, 1e-130  # sigma from which on phi is that of a Gaussian over half a period, and its distance
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
            turns = np.round(t.imag / period)  # pyright: ignore[reportAttributeAccessIssue]
            t = t - 1j * period * turns
        y = t * self.shift
        whole = np.round(y.real)  # pyright: ignore[reportAttributeAccessIssue]
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

        By Poisson summation theta(y) = sigma sqrt(2 pi) sum of q_n e^{2 pi i n y}, so phi is that of a Gaussian times
        (1 + r(z s)) / (1 + r(theta s)), z = theta + iu; while u s <= pi sigma^2 what that adds is at most
        3 exp(-pi^2 sigma^2 / 2), below e^-310 for sigma >= 8 (docs/certificates.md, section 15).
        """
        sigma, s = self.sigma, float(self.shift)
        if sigma >= _SMOOTH and reach * s <= 3.14 * sigma * sigma:
            return GaussianCharacteristic.of((s / sigma) ** 2, theta, 4 * EPS, _RIPPLE)
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

    def sampled(self, rate: Fraction, direction: Direction) -> Law:
        from dptally.laws.sampled.discrete_gaussian import SampledDiscreteGaussianLaw

        lower, upper = between(rate)
        return SampledDiscreteGaussianLaw(self, upper, direction, 0.0, None if lower == upper else lower)

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

        Between neighbouring atoms, x = n + y, both sums over k <= n in

            P(k <= n) (1 - e^{-g y}) + e^{-g y} sum of P(k) (1 - e^{-g (n - k)})

        stay the same, and all terms are positive: one pair of sums for every n, whatever the number of epsilons.
        Increasing in x, so the ends take the ends of its rounding. eps < 0 by the symmetry of the pair. Where a sum
        would have over a million terms, the integral (the Gaussian profile) brackets it: the summand is log-concave,
        and the sum of a unimodal function is within its maximum of its integral.
        """
        epsilon = np.asarray(epsilon, dtype=np.float64)
        flat = np.abs(epsilon).ravel()
        lower, upper = np.full((2, flat.size), -np.inf)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            x = 0.5 * self.shift - flat * (self.sigma**2 / self.shift)
            summed = (np.abs(x) <= _FURTHEST) & (self._terms(x) <= _MOST_TERMS)
            if summed.any():
                lower[summed], upper[summed] = self._by_sums(flat[summed])
        beyond = np.flatnonzero(~summed & np.isfinite(flat))
        if self.sigma > _VAST and beyond.size > _FEW:
            lower[beyond], upper[beyond] = self._by_integrals(flat[beyond])
        else:
            for i in beyond:
                lower[i], upper[i] = self._beyond_sums(float(flat[i]))
        lower, upper = widened(lower.reshape(epsilon.shape), upper.reshape(epsilon.shape), 4)
        negative = epsilon < 0
        if negative.any():
            lower = np.where(negative, mirrored(epsilon, lower, False), lower)
            upper = np.where(negative, mirrored(epsilon, upper, True), upper)
        return lower, upper

    def _by_sums(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Bounds at epsilons >= 0: places x = n + y, 0 < y <= 1, exactly for a few, else moved down and up."""
        doubles = self.sigma > 1e-60 and self.shift < 2**50 and float(epsilon.max()) < 1e140
        if epsilon.size <= _FEW or not doubles:
            return self._log_sums(*self._exact_positions(epsilon))
        least, most = (self._close_positions(epsilon, sign) for sign in (-1.0, 1.0))
        return self._log_sums(*least)[0], self._log_sums(*most)[1]

    def _exact_positions(self, epsilon: Floats) -> tuple[Floats, Floats]:
        s, square = self.shift, Fraction(self.sigma) ** 2
        exact = [Fraction(s, 2) - Fraction(e) * square / s for e in epsilon.tolist()]
        below = [math.ceil(x) - 1 for x in exact]
        return np.array(below, float), np.array([float(x - n) for x, n in zip(exact, below, strict=True)], float)

    def _close_positions(self, epsilon: Floats, sign: float) -> tuple[Floats, Floats]:
        """In pairs of doubles, moved by 2^-98 of the summands unless exact: more than the errors of all operations."""
        s = self.shift
        square, rest = two_product(np.array(self.sigma), np.array(self.sigma))
        high, low = two_product(epsilon, np.broadcast_to(square, epsilon.shape))
        low = low + epsilon * rest
        quotient = high / s
        back, missing = two_product(quotient, np.full(epsilon.shape, float(s)))
        left = (high - back) - missing
        whole, part = two_sum(np.full(epsilon.shape, 0.5 * s), -quotient)
        exact = (low == 0) & (left == 0) & (epsilon > 1e-200) if float(rest) == 0 else np.zeros(epsilon.shape, bool)
        move = np.where(exact, 0.0, 2.0**-98 * (quotient + 0.5 * s) + 1e-300)
        part = part - (left + low) / s + sign * move
        n = np.floor(whole)
        y = (whole - n) + part  # part is less than an ulp of the whole: below n + 1 in truth
        return np.where(y > 0, n, n - 1), np.minimum(np.where(y > 0, y, 1 + y), 1.0)

    def _depth(self) -> float:
        """Nats below the first term at which a sum may end."""
        g = self.shift / self.sigma**2
        return 45.0 - math.log(-math.expm1(-g)) if g < 700 else 45.0

    def _start(self, n: Floats) -> Floats:
        return np.minimum(n, math.ceil(10 * self.sigma) + 1.0)

    def _terms(self, n: Floats) -> Floats:
        """How many terms the sums from n downwards need."""
        start = self._start(np.floor(n))
        anchor = np.minimum(start - 1, 0.0)
        return start + np.ceil(np.sqrt(anchor**2 + 2 * self.sigma**2 * self._depth())) + 3

    def _log_sums(self, n: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Bounds of the log of the profile at x = n + y, y good to an ulp."""
        places, row = np.unique(n, return_inverse=True)
        start = self._start(places)
        sums, falls, weight, weight_of_falls, omitted, peak, blur = (column[row] for column in self._sums(start))
        with np.errstate(under="ignore"):
            above = np.where(start < places, np.exp(-0.5 * (start / self.sigma) ** 2) * (1 + 1.26 * self.sigma), 0.0)
            reached = (self.shift / self.sigma**2) * (y + (places - start)[row])
            risen, left = -np.expm1(-reached), np.exp(-reached)
            total = sums * risen + left * falls
            # of each exponent 4 ulps, its weight in the sum attached; an error of g y counts for no more than itself
            slack = EPS * (4 * (weight * risen + left * weight_of_falls) / total + blur)
        log_total = np.log(total)
        value = log_total + (peak - self._log_theta())
        slack += EPS * (16 + FUNCTION_ULPS * np.abs(log_total) + np.abs(value) + np.abs(peak))
        return value - slack, value + slack + (omitted + above[row]) / total

    def _sums(self, start: Floats) -> Floats:
        """For each start, relative to e^peak: the sums over k <= start of e^{-k^2/(2 sigma^2)} and of that times
        1 - e^{-g (start - k)}; the same of terms times the sizes of their exponents; what is left out at most; the
        peak; the ulps of the factors and of the sum.
        """
        sigma, variance = self.sigma, self.sigma**2
        g, longest = self.shift / variance, self._terms(start)
        columns = np.zeros((7, start.size))
        rows = max(1, _MOST_ELEMENTS // int(longest.max()))
        for first in range(0, start.size, rows):
            part = slice(first, first + rows)
            j = np.arange(float(longest[part].max()))
            k = start[part, None] - j
            exponent = -0.5 * (k / sigma) ** 2
            peak = exponent.max(axis=1)
            with np.errstate(under="ignore"):
                terms = np.exp(exponent - peak[:, None])
                falls = terms * -np.expm1(-g * j)
                end = k[:, -1] - 1.0  # the first one left out, and below it a geometric series: end < 0
                ratio = -np.expm1((2 * end + 1) / (2 * variance))
                columns[0, part], columns[1, part] = terms.sum(axis=1), falls.sum(axis=1)
                columns[2, part], columns[3, part] = (terms * -exponent).sum(axis=1), (falls * -exponent).sum(axis=1)
                columns[4, part] = np.exp(-0.5 * (end / sigma) ** 2 - peak) / ratio
            columns[5, part], columns[6, part] = peak, 24 + math.log2(j.size)
        return columns

    def _beyond_sums(self, epsilon: float) -> tuple[float, float]:
        """Bounds for one epsilon >= 0 whose sum would have too many terms, or begin too far out."""
        exact = Fraction(self.shift, 2) - Fraction(epsilon) * Fraction(self.sigma) ** 2 / self.shift
        if abs(exact) > 10**12 and not self.sigma > _VAST:
            return self._far(exact)
        return self._by_integral(epsilon, exact, self.shift / self.sigma**2)

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

    def _by_integrals(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """The same at many epsilons: z in doubles, and what its rounding may move the maximum by added to it.

        The logarithm of the maximum has a slope of at most |z| + 2 in z.
        """
        lower, upper = log_gaussian_delta(self.shift / self.sigma, epsilon)
        ahead, steep = 0.5 * self.shift / self.sigma, self.shift / self.sigma
        with np.errstate(over="ignore", divide="ignore"):
            behind = np.minimum(epsilon * (self.sigma / self.shift), 1e150)
            z, blur = ahead - behind, 8 * EPS * (ahead + behind)
            below = -0.5 * z * z + np.log(steep * np.minimum(1.0 / (2.718 * np.maximum(-z, 1e-300)), 0.607))
            log_peak = np.where(z <= 0, below, np.minimum(0.0, np.log(steep * (np.maximum(z, 0.0) + 0.607))))
            log_peak += blur * (np.abs(z) + 2) - math.log(2.5066 * self.sigma) + 1e-9 + 1e-14 * z * z
            share = np.where(lower > -np.inf, np.exp(np.minimum(log_peak - lower, 700.0)), np.inf)
            vague = share >= 1
            kept = np.where(vague, 0.0, share)
            loose = np.maximum(upper, log_peak) + math.log(2)
        return (
            np.where(vague, -np.inf, lower + np.log1p(-kept)),
            np.minimum(np.where(vague, loose, upper + np.log1p(kept)), 0.0),
        )

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
            raise Unanswerable(
                f"the loss has {2 * reach + 1} atoms above {ATOM_FLOOR}; ask the plan epsilon(delta=...)"
            )
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

    def progression(self) -> Progression:
        """s^2 / (2 sigma^2) - k s / sigma^2; |phi| falls by Jacobi's triple product (docs/certificates.md, 15)."""
        square = Fraction(self.sigma) ** 2
        return Progression(Fraction(self.shift) ** 2 / (2 * square), Fraction(self.shift) / square)

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
