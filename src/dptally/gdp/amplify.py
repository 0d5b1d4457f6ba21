"""Amplification: mend a tail by clipping and noise, or lower mu by sampling; and what each costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dptally import checks
from dptally.errors import CannotCalibrate, InvalidArgument, InvalidType, Unanswerable
from dptally.gdp.curve import Curve
from dptally.gdp.measure import Measurement, measure
from dptally.gdp.search import stays_below
from dptally.gdp.tail import tail_of
from dptally.gdp.view import Profiled, view_of
from dptally.interval import Interval
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.mechanisms import GaussianDP, Mechanism, PoissonSampled
from dptally.numerics.exact import between
from dptally.numerics.search import last_true

__all__ = ["Rate", "Rectified", "rate_for", "rectify"]

_RATE_TOLERANCE = 1e-9
_SMALLEST_RATE = 1e-12
_FARTHEST = 1e6  # no head longer than that is searched


@dataclass(frozen=True, slots=True)
class Rectified:
    """Clip the output to [low, high], add Laplace noise of scale ``scale``: mu-GDP with the head's mu.

    Run it with ``dptally.release.clip_and_rectify(..., head_epsilon=head, mu=mu.upper)``.
    """

    low: float
    high: float
    head: float
    scale: float
    measurement: Measurement

    @property
    def mu(self) -> Interval:
        return self.measurement.mu

    @property
    def mechanism(self) -> GaussianDP:
        """What the rectified algorithm guarantees."""
        return GaussianDP(self.mu.upper)

    @property
    def noise_deviation(self) -> float:
        """The standard deviation of the added noise, sqrt(2) scale: the price, besides clipping."""
        return math.sqrt(2.0) * self.scale


def rectify(m: Profiled, low: float, high: float, head: float, tolerance: float = 1e-6) -> Rectified:
    """Make a numeric output that is (head, mu)-head GDP fully mu-GDP: clip to [low, high], add Laplace noise.

    The scale is b = (high - low) / head, rounded up. Both steps are post-processing, so the head keeps its
    mu; and the noise alone is head-DP, so delta is 0 beyond the head.  [Liu et al. 2022, Thm. 4.4]

    >>> from dptally import ApproxDP
    >>> rectify(ApproxDP(1.0, 1e-6), low=0.0, high=5.0, head=2.0).scale
    2.5
    """
    low, high = checks.finite("low", low), checks.finite("high", high)
    if not low < high:
        raise InvalidArgument("low, high", "ordered (low < high)", (low, high))
    head = checks.positive("head", head)
    measurement = measure(m, head, tolerance)
    if math.isinf(measurement.mu.upper):
        raise Unanswerable("no mu covers the head: delta(0) is 1; refine the curve first (dp.gdp.refined)")
    scale = between((Fraction(high) - Fraction(low)) / Fraction(head))[1]
    return Rectified(low, high, head, scale, measurement)


@dataclass(frozen=True, slots=True)
class Rate:
    """``rate``: certainly small enough; ``too_large``: a rate just above for which that is not certain (or
    1).

    ``lost`` is the expected share of records left out of the sample: the price.
    """

    rate: float
    too_large: float
    mechanism: PoissonSampled
    head: float

    @property
    def lost(self) -> float:
        return 1.0 - self.rate


def rate_for(m: Profiled, mu: float, head: float | None = None, adjacency: Adjacency = ADD_REMOVE) -> Rate:
    """The largest Poisson sampling rate, to relative 1e-9, at which ``m`` on the sample is mu-GDP (on the
    head).

    Sampling lowers the head of a profile but not its tail: the tail limit mu_t stays, so a mechanism with
    mu_t > mu (Gaussian noise) reaches mu on a head only.  [Balle, Barthe, Gaboardi 2018, Thm. 8; Liu et al. 2022,
    Sec. 4.3]

    >>> from dptally import Laplace
    >>> round(rate_for(Laplace(scale=0.5), mu=0.2773118437).rate, 6)
    0.1
    """
    mu = checks.positive("mu", mu)
    head = None if head is None else checks.positive("head", head)
    inner = m.mechanism() if isinstance(m, Curve) else m
    if not isinstance(inner, Mechanism):
        raise InvalidType("m", "a mechanism or a dptally.gdp.Curve", m)
    if isinstance(m, Curve) and adjacency is not ADD_REMOVE:
        raise Unanswerable("a curve is sampled under ADD_REMOVE only; sample curve.mechanism() instead")

    def reaches(rate: float) -> bool:
        sampled = m.sampled(rate) if isinstance(m, Curve) else PoissonSampled(inner, rate, adjacency)
        view = view_of(sampled)
        end = view.zero_from if head is None else min(head, view.zero_from)
        if math.isinf(end):
            tail = tail_of(sampled)
            if tail.enough <= mu:
                return True
            end = tail.covered_from(mu)  # beyond it the tail's shape shows G <= mu
        return end == 0 or (end < _FARTHEST and stays_below(view, end, mu))

    whole = math.inf if head is None else head
    if reaches(1.0):
        return Rate(1.0, 1.0, PoissonSampled(inner, 1.0, adjacency), whole)
    low = 0.5
    while low > _SMALLEST_RATE and not reaches(low):
        low *= 0.5
    if not low > _SMALLEST_RATE:
        hint = "ask on a head, for example head=20" if head is None else "no rate above 1e-12 lowers it that far"
        raise CannotCalibrate(f"no sampling rate makes {inner!r} {mu:.6g}-GDP: the tail keeps its own mu; {hint}")
    rate = last_true(reaches, low, 2.0 * low, _RATE_TOLERANCE)
    return Rate(rate, min(1.0, rate * (1.0 + 2 * _RATE_TOLERANCE)), PoissonSampled(inner, rate, adjacency), whole)
