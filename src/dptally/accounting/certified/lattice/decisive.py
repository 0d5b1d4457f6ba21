r"""Few steps, any rate, rare large losses: the lattice of losses below what decides, everything above in closed form.

Let n steps of one law lie above ``infimum`` and below ``supremum``. For every eps near the target:
  * a step that loses more than eps - (n-1) infimum decides alone: whatever the others lose, the sum exceeds eps.
  Those steps
    are "far", and with at least one of them E[(1 - e^{eps - L})+] = P(far) - e^eps Q(far) exactly;
  * a step that loses less than eps - (n-1) supremum decides alone too: the sum stays below eps and nothing is counted.
What remains is a short range of losses. It is spread onto a lattice of step h (dptally.law.spread), which dominates;
the sum
of n steps is formed by FFT of tilted masses, the masses split at a level into light and heavy so that every number of
heavy
steps has its own tilt and no term is drowned by the rounding of another.

Upper bound: the spread. Lower bound: spreading multiplies X = e^{-L} of each step by an independent R_i of mean one
within
[e^{-h}, e^h] and variance at most h^2 e^h / 4, so R = prod R_i has E|R - 1| <= sqrt(exp(n h^2 e^h / 4) - 1); the payoff
(1 - e^eps X R)+ changes its mean only where |L - eps| <= n h, and there by at most e^{nh} E|R - 1| / 2. Hence

    delta~(eps) - e^{nh} E|R - 1| / 2 * P~(|L~ - eps| <= 2 n h)  <=  delta(eps)  <=  delta~(eps).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dptally.accounting.certified.bounds import LogBounds
from dptally.accounting.certified.tuning import STANDARD, DecidingTuning
from dptally.law import Composition, Law
from dptally.law.spread import LatticeLaw
from dptally.numerics.logspace import log_sum
from dptally.numerics.rounding import EPS, TINY

Floats = NDArray[np.float64]

__all__ = ["FewSteps", "applies", "for_delta", "for_epsilon"]


@dataclass(frozen=True, slots=True)
class _Sum:
    """Masses of the sum of n losses of which k are heavy, tilted back about ``origin`` and summed from the right.

    Point j is the loss origin + j step; ``beyond[j]`` is the sum over i >= j of mass_i and ``beyond_q[j]`` that of
    mass_i e^{origin - x_i}, both in units of exp(log_scale), so that any eps costs two look-ups.
    """

    log_scale: float
    slack: float  # bound of the error of log_scale and of the tilts
    theta: float
    origin: float
    step: float
    beyond: Floats
    beyond_q: Floats
    noise: float  # bound of the 2-norm of the error of the tilted masses
    wrapped: float  # tilted mass that the finite length folded back

    def _from(self, epsilon: float) -> int:
        """The first point strictly beyond eps."""
        return int(np.clip(math.floor((epsilon - self.origin) / self.step) + 1, 0, len(self.beyond) - 1))

    def logs(self, epsilon: float, window: float) -> tuple[float, float, float, float]:
        """Logs of delta's share at eps, of its error, of -d delta / d eps, and of the mass within ``window`` of eps.

        The payoff e^{-theta y}(1 - e^{-y}) <= y e^{-theta y} of the points y = x - eps > 0 has a squared 2-norm of at
        most
        1/(4 theta^3 step) + 1/(e theta)^2, and is below 1/(1 + theta).
        """
        at = self._from(epsilon)
        drop = math.exp(min(epsilon - self.origin, 700.0))
        value = float(self.beyond[at] - drop * self.beyond_q[at])
        slope = float(drop * self.beyond_q[at])
        lift = math.exp(min(self.theta * (self.origin - epsilon), 700.0))
        norm = math.sqrt(0.25 / (self.theta**3 * self.step) + (math.e * self.theta) ** -2)
        summing = len(self.beyond) * (4 * EPS * float(self.beyond[at]) + TINY)  # TINY: what underflows
        error = lift * (self.noise * norm + self.wrapped / (1 + self.theta)) + summing
        first, last = self._from(epsilon - window - self.step), self._from(epsilon + window)
        inside = float(self.beyond[first] - self.beyond[last])
        blur = math.exp(min(600.0, self.theta * (window + self.step))) * (
            self.noise * math.sqrt(last - first + 1.0) + self.wrapped
        )
        shares = (value, error, slope, inside + lift * blur)
        a, b, c, d = (self.log_scale + _log(x) for x in shares)
        return a, b, c, d


@dataclass(frozen=True, slots=True)
class FewSteps:
    """Certified bounds of log delta(eps) for eps in [least, most]; the trivial ones elsewhere."""

    sums: tuple[_Sum, ...]
    steps: int
    spread: LatticeLaw
    log_left_out: float
    least: float
    most: float
    saddle: float

    def _far(self, epsilon: float) -> tuple[float, float]:
        """P(far) - e^eps Q(far) with at least one far step, and its error: a normal tail at t is good to t^2 + 4 ulps.

        Where Q(far) leaves double range only 0 <= share <= P(far) is known. What underflow may have taken from the
        masses of a step is charged here too: payoffs are at most one, so n steps lose at most n times as much.
        """
        lost = 1.01 * self.steps * (self.spread.doubt + 4 * TINY)
        far, far_q = (-math.expm1(self.steps * math.log1p(-m)) for m in (self.spread.far, self.spread.far_q))
        if far > 0 and far_q < 1e-280:
            return 0.5 * far, 0.51 * far + lost
        log_q = math.log(far_q) if far_q > 0 else 0.0
        other = math.exp(min(epsilon + log_q, 700.0)) if far_q > 0 else 0.0
        return far - other, EPS * (160 + 8 * abs(epsilon) + 8 * abs(log_q)) * (far + other) + lost

    def estimate(self, epsilon: float) -> float:
        """log delta(eps), not a bound."""
        far, _ = self._far(epsilon)
        return log_sum([*(part.logs(epsilon, 0.0)[0] for part in self.sums), _log(far)])

    def log_delta(self, epsilon: float) -> LogBounds:
        """(lower, upper, slope estimate) of log delta."""
        origin = min((part.origin for part in self.sums), default=epsilon)
        if not self.least <= epsilon <= min(self.most, origin + 690.0):  # beyond, e^{eps - origin} leaves double range
            return LogBounds(-math.inf, 0.0, 1.0 / max(abs(epsilon), 1e-300))
        n, h = self.steps, self.spread.step
        shift = n * self.spread.loss_error
        inflate = n * self.spread.mass_error + max((part.slack for part in self.sums), default=0.0) + 1e-15
        far, far_error = self._far(epsilon)
        window = 2 * n * h + 2 * shift
        # misplaced mass is a shift of the loss, except where the kink of the payoff lies between its two points
        misplaced = math.exp(n * h) * shift
        above = [part.logs(epsilon - shift, window) for part in self.sums]
        kinks = [a[3] + math.log(misplaced) for a in above]
        bounds = [*(x for a in above for x in a[:2]), *kinks, _log(far + far_error), self.log_left_out]
        upper = log_sum(bounds) + inflate
        below = [part.logs(epsilon + shift, window) for part in self.sums]
        spoilt = 0.5 * math.exp(n * h) * math.sqrt(math.expm1(0.25 * n * h * h * math.exp(h))) + misplaced
        gain = log_sum([*(b[0] for b in below), _log(far - far_error)])
        errors = [*(b[1] for b in below), *(b[3] + math.log(spoilt) for b in below)]
        loss = log_sum([*errors, _log(far_error - far)])  # the last: where errors exceed what is far
        lower = gain + math.log1p(-math.exp(loss - gain)) - inflate if loss < gain else -math.inf
        slope = log_sum([*(a[2] for a in above), epsilon + _log(-math.expm1(n * math.log1p(-self.spread.far_q)))])
        return LogBounds(lower, min(0.0, upper), math.exp(min(slope - upper, 600.0)))


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


def applies(composition: Composition, tuning: DecidingTuning = STANDARD.deciding) -> bool:
    """Few steps of one law that can be spread onto a lattice."""
    (law, n), *others = composition.parts
    return not others and 1 < n <= tuning.most_steps and type(law).spread is not Law.spread


def for_delta(
    composition: Composition, log_delta: float, guess: float, tuning: DecidingTuning = STANDARD.deciding
) -> FewSteps | None:
    """Bounds near the eps where delta(eps) is exp(log_delta); ``guess`` is an upper bound of that eps."""
    eps = min(guess, 0.97 * composition.supremum)
    for _ in range(6):  # coarse lattices, cheap, to come near
        found = _near(composition, eps, log_delta, tuning.coarse, tuning)
        if found is None:
            return None
        before, eps = eps, _solved(found, log_delta)
        near = abs(eps - before) < 0.02 * eps
        if tuning.sure and _log_error(found, eps) > (tuning.coarse_enough if near else tuning.hopeless):
            return None
        if near:
            break
    return _near(composition, eps, log_delta, None, tuning)


def for_epsilon(
    composition: Composition, epsilon: float, log_guess: float, tuning: DecidingTuning = STANDARD.deciding
) -> FewSteps | None:
    """Bounds at this eps >= 0; ``log_guess`` is an upper bound of log delta(eps)."""
    coarse = _near(composition, epsilon, log_guess, tuning.coarse, tuning)
    if coarse is None or (tuning.sure and _log_error(coarse, epsilon) > tuning.coarse_enough):
        return None
    log_delta = max(coarse.estimate(epsilon), -690.0)
    return _near(composition, epsilon, log_delta, None, tuning)


def _solved(found: FewSteps, log_delta: float) -> float:
    """Where the estimate takes the target, by bisection within the range of validity (its ends if outside)."""
    low, high = found.least, found.most
    if found.estimate(high) > log_delta:
        return high
    if found.estimate(low) < log_delta:
        return low
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if found.estimate(middle) > log_delta else (low, middle)
    return 0.5 * (low + high)


def _log_error(found: FewSteps, epsilon: float) -> float:
    """log of what transforms and what was left out may have cost, relative to delta; the lattice step not counted."""
    errors = [part.logs(epsilon, 0.0)[1] for part in found.sums]
    return log_sum([*errors, found.log_left_out]) - found.estimate(epsilon)


def _near(
    composition: Composition, epsilon: float, log_delta: float, points: int | None, tuning: DecidingTuning
) -> FewSteps | None:
    if not (applies(composition, tuning) and 0 <= epsilon < math.inf):
        return None
    law, n = composition.parts[0]
    room = tuning.room if points is None else tuning.coarse_room
    least, most = epsilon / room, epsilon * room
    low = max(law.infimum, least - (n - 1) * law.supremum)
    high = min(law.supremum, most - (n - 1) * law.infimum)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return None
    scale = max(epsilon, tuning.small * (high - low))
    rate = max(1.0, -log_delta + 2.0) * 1.2 / scale
    step = math.sqrt(tuning.width * scale / (rate * n**1.5)) if points is None else (high - low) / points
    number = math.ceil((high - low) / step) + 2
    if number > tuning.most_points:
        if tuning.sure:
            return None
        number = tuning.most_points
        step = (high - low) / (number - 2)
    spread = law.spread(low, step, number)
    if spread is None:
        return None
    best: FewSteps | None = None
    least_error = math.inf
    for level in tuning.levels:
        sums = _sums(spread, n, epsilon, least, level, log_delta, scale, tuning)
        if sums is None:
            continue
        found = FewSteps(*sums[:1], n, spread, sums[1], least, most, epsilon)
        error = _log_error(found, epsilon)
        if error < least_error:
            best, least_error = found, error
        if error < (tuning.enough if points is None else tuning.coarse_enough):
            return found
    return None if tuning.sure and points is None else best


def _sums(
    spread: LatticeLaw,
    n: int,
    epsilon: float,
    least: float,
    level: float,
    log_delta: float,
    scale: float,
    tuning: DecidingTuning,
) -> tuple[tuple[_Sum, ...], float] | None:
    """One sum for each number of heavy steps that matters, and the log of what the others can add at most."""
    cut = int(min(max((level * scale - spread.low) / spread.step, 1), len(spread.mass)))
    light, heavy = spread.mass[:cut], spread.mass[cut:]
    theta = np.geomspace(0.2 / scale, max(60.0, -8 * log_delta) / scale, 28)
    light_k = _moments(light, spread.low, spread.step, theta)
    sums, left_out, work = [], [], 0
    heavy_mass = float(heavy.sum()) if heavy.size else 0.0
    for k in range(n + 1 if heavy_mass > 0 else 1):
        log_ways = math.fsum(math.log((n - i) / (i + 1)) for i in range(k))
        if k and log_ways + k * math.log(heavy_mass) < log_delta - tuning.negligible:
            left_out.append(log_ways + k * math.log(heavy_mass))  # k or more heavy steps: a union over the sets of k
            break
        heavy_k = _moments(heavy, spread.low + cut * spread.step, spread.step, theta) if k else np.zeros_like(theta)
        bound = (n - k) * light_k + k * heavy_k - theta * epsilon - (theta * np.log1p(1 / theta) + np.log1p(theta))
        charged = log_ways + float((bound + theta * (epsilon - least)).min())  # holds for every eps >= least
        if charged < log_delta - tuning.negligible:
            left_out.append(charged)
            continue
        work += max(4, k + 1) * len(spread.mass)
        if k > 12 or work > tuning.most_work:
            return None
        reach = n * spread.low + _lengths(len(spread.mass), cut, n, k, tuning.longest)[1] * spread.step
        folded = _log_folded(theta, (n - k) * light_k + k * heavy_k, reach)
        best = int(np.argmin(bound + np.logaddexp(folded, tuning.log_noise)))
        at = _refined(theta, bound, best) if best == int(np.argmin(bound)) else float(theta[best])
        sums.append(_power(spread, cut, n, k, at, log_ways, least, tuning.longest))
    return tuple(sums), log_sum(left_out) + 1e-9 if left_out else -math.inf


def _refined(theta: Floats, bound: Floats, i: int) -> float:
    """The minimiser of the convex bound by a parabola through three points of log theta."""
    if not 0 < i < len(theta) - 1:
        return float(theta[i])
    a, b, c = bound[i - 1 : i + 2]
    bend = a - 2 * b + c
    shift = 0.5 * (a - c) / bend if bend > 0 else 0.0
    return float(theta[i] * (theta[1] / theta[0]) ** float(np.clip(shift, -1, 1)))


def _log_folded(theta: Floats, moment: Floats, reach: float) -> Floats:
    """log of the tilted mass beyond ``reach``, about, at each tilt: Chernoff at the larger ones. Only steers."""
    excess = moment - theta * reach
    least = np.minimum.accumulate(excess[::-1])[::-1]
    return np.asarray(np.minimum(np.append(least[1:], np.inf) - excess, 0.0))


def _lengths(points: int, cut: int, n: int, k: int, longest: int) -> tuple[int, int]:
    """Points of the whole sum, and of its transform: not more than a few times those of one step."""
    full = (n - k) * (cut - 1) + k * (points - 1) + 1
    return full, _fast_length(min(full, max(4, k + 1) * points + 4096, longest))


def _moments(mass: Floats, low: float, step: float, theta: Floats) -> Floats:
    """log of the sum of mass e^{theta x}, from bins of points: good enough to choose a tilt, rounded up."""
    bins = max(1, len(mass) // 512)
    edges = np.arange(0, len(mass), bins)
    binned = np.add.reduceat(mass, edges)
    right = low + step * np.minimum(edges + bins - 1, len(mass) - 1)
    keep = binned > 0
    if not keep.any():
        return np.full_like(theta, -np.inf)
    logs = np.log(binned[keep])[None, :] + theta[:, None] * right[keep][None, :]
    top = logs.max(axis=1)
    return np.asarray(top + np.log(np.exp(logs - top[:, None]).sum(axis=1)) + 1e-9)


def _tilted(mass: Floats, low: float, step: float, theta: float) -> tuple[Floats, float]:
    """Tilted masses of sum one, and the log of their sum."""
    x = low + step * np.arange(len(mass))
    with np.errstate(divide="ignore"):
        logs = np.log(mass) + theta * x
    top = float(logs.max())
    tilted = np.exp(logs - top)
    total = float(tilted.sum())
    return tilted / total, top + math.log(total)


def _power(
    spread: LatticeLaw, cut: int, n: int, k: int, theta: float, log_ways: float, least: float, longest: int
) -> _Sum:
    """The n-fold sum with k heavy steps by FFT, with its error in the 2-norm and the mass that wraps around."""
    points = len(spread.mass)
    light, light_k = _tilted(spread.mass[:cut], spread.low, spread.step, theta)
    heavy, heavy_k = np.zeros(1), 0.0
    if k:
        heavy, heavy_k = _tilted(spread.mass[cut:], spread.low + cut * spread.step, spread.step, theta)
    full, length = _lengths(points, cut, n, k, longest)
    transform = _integer_power(np.fft.rfft(light, length), n - k)
    if k:
        shifted = np.zeros(points)
        shifted[cut:] = heavy
        transform = transform * _integer_power(np.fft.rfft(shifted, length), k)
    mass = np.fft.irfft(transform, length)
    log_moment = (n - k) * light_k + k * heavy_k
    unit = 4 * EPS * math.log2(length)
    norms = (n - k) * float(np.linalg.norm(light)) + k * float(np.linalg.norm(heavy))
    noise = 1.1 * ((unit + 8 * EPS) * norms + (unit + 4 * EPS * n) * float(np.linalg.norm(mass)) + 4 * EPS * n)
    wrapped = _wrapped(spread, cut, n, k, theta, log_moment, length) if length < full else 0.0
    first = max(
        0, math.floor((least - n * spread.low) / spread.step) - 8 * n - 8
    )  # what lies below the least eps is never asked for
    origin = n * spread.low + first * spread.step
    del transform
    x = spread.step * np.arange(length - first)
    back = np.exp(-theta * x)
    back *= np.maximum(mass[first:], 0.0)
    beyond = _from_each_on(back)
    back *= np.exp(-x)
    beyond_q = _from_each_on(back)
    log_scale = log_ways + log_moment - theta * origin
    slack = 8 * EPS * (abs(log_moment) + abs(theta * origin) + n * (16 + abs(theta * spread.low)))
    return _Sum(log_scale, slack, theta, origin, spread.step, beyond, beyond_q, noise, wrapped)


def _from_each_on(x: Floats) -> Floats:
    """Sums of all that is from each point on, and zero beyond the last."""
    out = np.zeros(len(x) + 1)
    np.cumsum(x[::-1], out=out[-2::-1])
    return out


def _fast_length(least: int) -> int:
    """The smallest even product of powers of 2, 3 and 5 that is not less: such transforms are fast."""
    best = 1 << max(1, (least - 1).bit_length())
    for odd in (3**a * 5**b for a in range(15) for b in range(10)):
        if odd < best:
            best = min(best, odd << max(1, (-(-least // odd) - 1).bit_length()))
    return best


def _integer_power(z: NDArray[np.complex128], n: int) -> NDArray[np.complex128]:
    out = np.ones_like(z)
    while n:
        if n & 1:
            out = out * z
        n >>= 1
        if n:
            z = z * z
    return out


def _wrapped(spread: LatticeLaw, cut: int, n: int, k: int, theta: float, log_moment: float, length: int) -> float:
    """Tilted mass at or beyond ``length`` points: Chernoff at a few larger tilts."""
    tilts = theta * np.array([1.05, 1.2, 1.5, 2.0, 3.0])
    moment = (n - k) * _moments(spread.mass[:cut], spread.low, spread.step, tilts)
    if k:
        moment = moment + k * _moments(spread.mass[cut:], spread.low + cut * spread.step, spread.step, tilts)
    logs = moment - log_moment - (tilts - theta) * (n * spread.low + length * spread.step)
    return math.exp(min(0.0, float(logs.min())))
