"""The smallest mu of a mechanism, certified: sup of the GDPT, with the head it was measured on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from dptally import checks
from dptally.accounting.gaussian import delta_mu
from dptally.checks import Floats
from dptally.errors import InvalidArgument, InvalidType, Unanswerable
from dptally.gdp.search import largest
from dptally.gdp.tail import Tail, tail_of
from dptally.gdp.transform import Band, staircase, transform
from dptally.gdp.view import Profiled, View, view_of
from dptally.interval import Interval
from dptally.mechanisms import GaussianDP, Mechanism
from dptally.numerics.normal import gaussian_mu_log, log_gaussian_delta
from dptally.numerics.rounding import down, up

__all__ = ["Measurement", "algorithm_one", "checked_tolerance", "measure", "measure_until", "measured"]

SMALLEST_TOLERANCE = 1e-12
MOST_STEPS = 10_000_000


@dataclass(frozen=True, slots=True)
class Measurement:
    """``mu`` holds the smallest mu with delta(eps) <= delta_mu(eps) for eps <= ``head`` (inf: for every eps).

    ``left_out`` bounds delta beyond the head: up to that probability of failure the mechanism is
    mu.upper-GDP; 0 where the tail is covered. ``attained_at`` is an epsilon where the GDPT reaches mu.lower
    (inf: only in the limit). ``tail`` says why the tail is covered, or that it is not.
    """

    mu: Interval
    head: float
    left_out: float
    attained_at: float
    tail: str
    points: int
    subject: Profiled = field(repr=False)

    @property
    def covered(self) -> bool:
        """Whether mu holds for every epsilon, so that it may be given without its head."""
        return math.isinf(self.head)

    def guarantee(self) -> GaussianDP:
        """The mu-GDP guarantee, to be composed; refused where the tail is not covered or no mu exists."""
        if not self.covered:
            raise Unanswerable(
                f"mu was measured for epsilon <= {self.head:.6g} only; beyond, delta may be up to "
                f"{self.left_out:.3g}. Measure without a head, or mend the tail with dp.gdp.rectify"
            )
        if math.isinf(self.mu.upper):
            raise Unanswerable(f"no mu is known to be enough ({self.tail}); measure it on a head")
        return GaussianDP(self.mu.upper)

    def epsilons(self, points: int = 200) -> Floats:
        """A grid for plots: the head, or three times where the maximum lies (at least 5) where that is
        infinite.
        """
        at = self.attained_at if math.isfinite(self.attained_at) else 0.0
        end = self.head if math.isfinite(self.head) else max(5.0, 3.0 * at)
        return np.linspace(0.0, end, checks.count("points", points, 2))

    def transform(self, points: int = 200) -> Band:
        """G on :meth:`epsilons`."""
        return transform(self.subject, self.epsilons(points))

    def staircase(self, steps: int = 40) -> Band:
        """G- and G+ on as many steps."""
        return staircase(self.subject, float(self.epsilons(2)[-1]), steps)

    def profile(self, points: int = 200) -> Band:
        """Bounds of delta on :meth:`epsilons`."""
        x = self.epsilons(points)
        low, high = view_of(self.subject).log_delta(x)
        with np.errstate(under="ignore"):
            return Band(x, np.maximum(down(np.exp(low), 4), 0.0), np.minimum(up(np.exp(high), 4), 1.0))

    def gaussian_profile(self, points: int = 200) -> Floats:
        """delta_mu at mu.upper on :meth:`epsilons`."""
        if math.isinf(self.mu.upper):
            return np.ones(points)
        with np.errstate(under="ignore"):
            return np.exp(log_gaussian_delta(self.mu.upper, self.epsilons(points))[1])


def measure(m: Profiled, head: float | None = None, tolerance: float = 1e-6) -> Measurement:
    """The smallest mu for which ``m`` is mu-GDP: sup of G(eps) over all eps, or over eps <= head.

    The interval is certified and at most ``tolerance`` wide wherever the bounds of the profile allow it.
    Without a head the tail is covered by a theorem or the question is refused; inf means that no mu exists. Of a
    guarantee that bounds Renyi divergences only (ZCDP) mu.upper is enough for all that it allows, and mu.lower is
    what Gaussian noise with the same divergences needs.
    [Liu et al. 2022, Thm. 4.1 to 4.3; the printed Algorithm 1 exchanges x+ and x-, see docs/errata.md]

    >>> from dptally import Laplace
    >>> found = measure(Laplace(scale=0.5))
    >>> round(found.mu.upper, 9), found.head, found.left_out
    (1.800905193, inf, 0.0)
    """
    head = None if head is None else checks.positive("head", head)
    return measured(m, view_of(m), head, checked_tolerance(tolerance))


def measure_until(m: Mechanism, delta: float = 1e-15, tolerance: float = 1e-4) -> Measurement:
    """:func:`measure` on the head that ends at the plan's own epsilon at ``delta``: what the card and the command show.

    One mu for a whole plan often says little (sampled Gaussian noise keeps the mu of the unsampled one in its tail);
    on this head it says what matters above ``delta``, and ``left_out`` says the rest. Where one step's mu holds for
    every epsilon, or the closed form is no larger, the answer has no head.

    >>> from dptally import dpsgd
    >>> found = measure_until(dpsgd(noise_multiplier=1.0, sample_rate=0.01, steps=100))
    >>> found.mu.upper < 0.5, found.left_out < 2e-15
    (True, True)
    """
    if not isinstance(m, Mechanism):
        raise InvalidType("m", "a mechanism or a plan", m)
    view, tail, tolerance = view_of(m), tail_of(m), checked_tolerance(tolerance)
    head = m.epsilon(checks.open_probability("delta", delta))
    whole = math.isinf(tail.necessary) or (view.cheap and math.isfinite(view.zero_from)) or not 0 < head < math.inf
    found = measured(m, view, None if whole else head, tolerance)
    if not whole and tail.enough - found.mu.upper <= tolerance:
        return measured(m, view, None, tolerance)
    return found


def measured(m: Profiled, view: View, head: float | None, tolerance: float) -> Measurement:
    """:func:`measure` with checked arguments and the view at hand."""
    tail = tail_of(m)
    if head is not None:
        return _on_head(m, view, tail, head, tolerance)
    if math.isinf(tail.necessary):
        return _without_mu(m, math.inf, tail.reason)
    if view.zero_from < math.inf:
        return _on_head(m, view, tail, max(view.zero_from, 1e-300), tolerance)
    return _with_tail(m, view, tail, tolerance)


def _without_mu(m: Profiled, at: float, reason: str) -> Measurement:
    return Measurement(Interval(math.inf, math.inf, "no mu"), math.inf, 0.0, at, reason, 0, m)


def checked_tolerance(tolerance: float) -> float:
    tolerance = checks.positive("tolerance", tolerance)
    if tolerance < SMALLEST_TOLERANCE:
        raise InvalidArgument("tolerance", f"at least {SMALLEST_TOLERANCE}", tolerance)
    return tolerance


def _on_head(m: Profiled, view: View, tail: Tail, head: float, tolerance: float) -> Measurement:
    covered = head >= view.zero_from
    end = min(head, view.zero_from)
    found = largest(view, end, tolerance, ceiling=tail.enough)
    mu = Interval(found.lower, max(found.lower, found.upper), "GDPT search")
    if covered:
        return Measurement(mu, math.inf, 0.0, found.at, tail.reason, found.points, m)
    left_out = delta_mu(mu.upper, head) if mu.upper < 1e100 else 1.0
    return Measurement(mu, head, left_out, found.at, f"not looked at beyond the head {head:.6g}", found.points, m)


def _with_tail(m: Profiled, view: View, tail: Tail, tolerance: float) -> Measurement:
    """An unbounded loss: beyond some epsilon the tail's shape proves G <= mu, and the head before it is
    searched.
    """
    floor = tail.necessary
    if tail.enough - floor <= tolerance:
        mu = Interval(min(floor, tail.enough), tail.enough, "closed form")
        return Measurement(mu, math.inf, 0.0, math.inf, tail.reason, 0, m)
    if tail.shape is None:
        raise Unanswerable(f"the tail is not covered: {tail.reason}; measure a head, for example head=20")
    # a coarse look for a mu above the tail's own; G is at least that somewhere, so only the head before
    # matters
    first = 4.0 * max(1.0, tail.shape.root) + tail.shape.shift
    near = largest(view, first, max(1e-2, tolerance) if view.two_sided else tolerance, floor, tail.enough)
    if math.isinf(near.lower):
        return _without_mu(m, near.at, f"delta is 1 at epsilon {near.at:.6g}")
    trial = near.lower + 0.5 * tolerance if view.two_sided else near.upper
    end = tail.covered_from(trial)
    if not end < 1e6:
        raise Unanswerable(
            "the GDPT may reach its supremum only in the limit of large epsilon: the values looked at need "
            f"{near.lower:.6g}, the tail between {floor:.6g} and {tail.shape.root:.6g}; measure a head, for example "
            "head=20"
        )
    found = largest(view, end, tolerance, max(floor, near.lower), tail.enough)
    at = found.at if math.isfinite(found.at) else near.at
    mu = Interval(found.lower, min(max(found.upper, up(trial)), tail.enough), "GDPT search")
    return Measurement(mu, math.inf, 0.0, at, tail.reason, near.points + found.points, m)


def algorithm_one(m: Profiled, head: float, tolerance: float = 1e-3) -> Interval:
    r"""The paper's Algorithm 1, corrected: bounds of sup G on [0, head] from n = ceil(sqrt(8 pi) head /
    tolerance) + 1 steps; the width is at most ``tolerance``.

    mu+ covers G+(x_i) = mu_GDP(x_{i+1}, delta(x_i)), mu- is reached by G-(x_i) = mu_GDP(x_i, delta(x_{i+1}));
    the printed text exchanges x+ and x-, which makes its "upper" bound a lower one (see docs/errata.md). A
    value of mu_GDP is computed only where the running mu+ or mu- is beaten. :func:`measure` looks at far
    fewer points.

    >>> from dptally import Laplace
    >>> box = algorithm_one(Laplace(scale=5.0), head=0.2)
    >>> 0.239105583736513 in box, box.width <= 1e-3
    (True, True)
    """
    head, tolerance = checks.positive("head", head), checked_tolerance(tolerance)
    steps = math.ceil(math.sqrt(8 * math.pi) * head / tolerance) + 1
    if steps > MOST_STEPS:
        raise InvalidArgument("tolerance", f"such that at most {MOST_STEPS} steps are needed", tolerance, "use measure")
    x = np.arange(steps + 1, dtype=np.float64) * (head / steps)
    low, high = view_of(m).log_delta(x)
    order = np.random.default_rng(0).permutation(steps)
    lower = _running(x[:-1][order], low[1:][order], 0)
    return Interval(lower, max(lower, _running(x[1:][order], high[:-1][order], 1)), "Algorithm 1, corrected")


def _running(x: Floats, log_delta: Floats, side: int) -> float:
    """The largest mu_GDP(x, delta), computed only at points that beat the largest before them."""
    if (log_delta >= 0).any():
        return math.inf
    best = 0.0
    while x.size:
        found = float(gaussian_mu_log(x[0], log_delta[0])[side])
        best = max(best, found)
        beats = log_delta > log_gaussian_delta(best, x, 0.0)[1 - side] if best > 0 else log_delta > -np.inf
        beats[0] = False
        x, log_delta = x[beats], log_delta[beats]
    return best
