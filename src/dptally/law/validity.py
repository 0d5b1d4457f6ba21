r"""Whether a law is one: the same numbers told in several ways must agree.

For a finite part of mass m = 1 - infinity_mass, with H(eps) the profile and T(l) the tail:

    K(0) = log m,   K convex,   K <= 0 on (-1, 0)               (both members of the pair have mass at most 1)
    exp K(t) - m^{1+t} = t (t + 1) int e^{t eps} (H(eps) - (m - e^eps)+) deps  (r^{1+t} as a mixture of (r - x)+)
    H(eps) = int_{eps}^inf e^{eps - l} T(l) dl                                 (by parts)
    T(a) - T(b) = atoms in (a, b] + int_a^b density
    K_reverse(t) = K(-1 - t),   H_reverse(eps) = 1 - e^eps + e^eps H(-eps)

The identities are looked at in a few places to about two digits: that finds a wrong law, not a wrong last digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dptally.errors import InvalidLaw, InvalidType, MissingExtra
from dptally.law.ball import flint
from dptally.law.law import Floats, Law
from dptally.numerics.normal import log_gaussian_delta

__all__ = ["check_law", "ensure_valid", "failures", "is_listed"]

_TOLERANCE = 5e-3  # of logarithms of integrals
_NEGLIGIBLE = 1e-9  # what the identities cannot see
_RULE = np.polynomial.legendre.leggauss(8)
_LARGE = 50.0  # a moment beyond it is made of losses too rare for the other numbers to show
_MANY = 300  # atoms; with more of them the integrals are not split at each
_NEAR_ZERO = 2.0**-23 * (1.0 + 1e-4 * np.arange(16.0))  # tilts from which variances are read


def check_law(law: Law) -> None:
    """Raise ``InvalidLaw`` with everything that does not fit together in a law; None if nothing is found.

    Looked at: the total mass, K against profile, atoms and density, a profile that does not increase, the tail, the
    ends of the losses, the other direction, and what the law offers to particular methods (ball form, characteristic
    function, closed rho and mu).

    >>> from dptally.laws.two_point import TwoPointLaw
    >>> check_law(TwoPointLaw.of_guarantee(1.0))
    """
    if not isinstance(law, Law):
        raise InvalidType("law", "a law of a privacy loss (dptally.law.Law)", law)
    try:
        hash(law)
    except TypeError:
        found: tuple[str, ...] = (
            "it has no hash, by which equal laws are counted together; write @dataclass(frozen=True) before the class, "
            "or __hash__ beside __eq__",
        )
    else:
        with np.errstate(all="ignore"):
            found = tuple(failures(law))
    if found:
        raise InvalidLaw(type(law).__name__, found)


def ensure_valid(law: Law) -> None:
    """The same, once for each law."""
    try:
        _once(law)
    except TypeError:  # it has no hash, and is told so
        check_law(law)


_once = lru_cache(maxsize=1 << 10)(check_law)


def failures(law: Law) -> Iterator[str]:
    """What is wrong, one sentence each. Later groups assume the earlier ones, and are not asked after a failure."""
    distribution = (_of_profile, _of_tail, _of_mixtures, _of_reverse) if _known(law) else ()
    for group in ((_of_ends,), (_of_parts, _of_moments), *((check,) for check in distribution), (_of_offers,)):
        found = [failure for check in group for failure in check(law)]
        yield from found
        if found:
            return


def _known(law: Law) -> bool:
    """Whether there is a finite part whose distribution is determined."""
    return law.determined and law.infinity_mass < 1.0


def _moment(law: Law, t: Floats) -> Floats:
    return np.asarray(law.log_moment(np.asarray(t, dtype=np.float64)), dtype=np.float64)


def _log_mass(law: Law) -> float:
    return math.log1p(-law.infinity_mass) if law.infinity_mass < 1.0 else -math.inf


# -- one number at a time --------------------------------------------------------------------------------------


def _of_ends(law: Law) -> Iterator[str]:
    if not 0.0 <= law.infinity_mass <= 1.0:
        yield f"infinity_mass is {law.infinity_mass!r}, not a probability"
        return
    if not law.infimum <= law.supremum and law.infinity_mass < 1.0:
        yield f"infimum {law.infimum!r} is not at most supremum {law.supremum!r}"
    if math.isnan(law.mean):
        yield "mean is NaN"


def _of_moments(law: Law) -> Iterator[str]:
    t = np.linspace(0.0, 4.0, 41)
    value = _moment(law, t)
    if np.isnan(value).any():
        yield f"log_moment({t[np.isnan(value)][0]:.3g}) is NaN"
        return
    if not law.determined:
        if (value < 0).any() or (np.diff(value[np.isfinite(value)]) < 0).any():
            yield "log_moment, a bound of (a - 1) times the Renyi divergence, is negative or falls somewhere"
        return
    if not _close(value[0], _log_mass(law), 1e-9):
        yield f"log_moment(0) is {value[0]:.9g}, but log(1 - infinity_mass) is {_log_mass(law):.9g}"
    finite = value[np.isfinite(value)]
    if finite.size > 2 and (np.diff(finite, 2) < -1e-9 * (1.0 + np.abs(finite[2:]))).any():
        yield "log_moment is not convex on [0, 4]"
    inside = _moment(law, np.array([-0.999, -0.5, -0.1]))
    if law.infinity_mass < 1.0 and not (inside <= 1e-9).all():
        yield f"log_moment is positive between -1 and 0 ({inside.max():.3g}): the second distribution has mass above 1"
    yield from _of_mean(law)
    yield from _of_digits(law)


def _of_digits(law: Law) -> Iterator[str]:
    """K is convex and K(0) = 0 without mass at infinity, so K(t) / t rises: a fall beyond the stated error is noise."""
    if law.infinity_mass > 0 or law.moments_from_above:
        return
    moment, error = (np.asarray(part, dtype=np.float64) / _NEAR_ZERO for part in law.log_moment_and_error(_NEAR_ZERO))
    if (np.diff(moment) < -(error[1:] + error[:-1]) - 1e-300).any():
        yield (
            f"log_moment loses its digits near 0 (K(t) / t falls at t = {_NEAR_ZERO[0]:.2g} by more than its error): "
            "write it with expm1 and log1p, or state the error in log_moment_and_error"
        )


def _of_mean(law: Law) -> Iterator[str]:
    """mean = K'(0) exp K(0), by a difference whose step suits the size of the losses."""
    if law.infinity_mass == 1.0:
        return
    step = 1e-4 / (1.0 + abs(law.mean))
    low, high = _moment(law, np.array([-step, step]))
    slope = (high - low) / (2 * step) * (1.0 - law.infinity_mass)
    if (
        math.isfinite(slope)
        and not abs(slope - law.mean) <= 1e-3 * abs(law.mean) + 1e-6 * (slope + law.mean) ** 2 + 1e-9
    ):
        yield f"mean is {law.mean:.6g}, but the slope of log_moment at 0 is {slope:.6g}"


def _of_profile(law: Law) -> Iterator[str]:
    epsilon = np.unique(np.concatenate((np.linspace(-40.0, 40.0, 81), _places(law, 1.0))))
    lower, upper = (np.asarray(side, dtype=np.float64) for side in law.log_profile(epsilon))
    if np.isnan(lower).any() or np.isnan(upper).any():
        yield "log_profile has NaN"
        return
    if (lower > upper).any():
        yield f"log_profile's lower bound exceeds its upper bound at epsilon {epsilon[lower > upper][0]:.6g}"
    if (lower[1:] > upper[:-1] + 1e-12).any():
        yield f"log_profile rises beyond epsilon {epsilon[:-1][lower[1:] > upper[:-1] + 1e-12][0]:.6g}"
    if (lower > _log_mass(law) + 1e-12).any():
        yield "log_profile exceeds the mass of the finite losses"
    # Q has mass at most 1, so H(eps) >= m - e^eps
    least = (1.0 - law.infinity_mass) - np.exp(np.minimum(epsilon, 0.0))
    short = np.exp(upper) < least - 1e-9
    if short.any():
        yield f"log_profile at epsilon {epsilon[short][0]:.6g} is below log(1 - infinity_mass - e^epsilon)"
    if (
        math.isfinite(law.supremum)
        and law.log_profile(np.array([law.supremum * (1 + 1e-12) + 1e-12]))[0][0] > -math.inf
    ):
        yield "log_profile is not zero beyond the supremum"


def _of_tail(law: Law) -> Iterator[str]:
    mass = 1.0 - law.infinity_mass
    at = np.unique(np.concatenate((np.linspace(-40.0, 40.0, 81), _places(law, 1.0))))
    tail = np.asarray(law.tail(at), dtype=np.float64)
    if not ((tail >= 0) & (tail <= mass * (1 + 1e-9))).all():
        yield "tail leaves [0, 1 - infinity_mass]"
    elif (np.diff(tail) > 1e-12).any():
        yield f"tail rises beyond {at[:-1][np.diff(tail) > 1e-12][0]:.6g}"
    if math.isfinite(law.infimum):
        below = float(np.asarray(law.tail(np.array([law.infimum - 1e-9 * (1.0 + abs(law.infimum))])))[0])
        if not abs(below - mass) <= 1e-6:
            yield f"the losses above the infimum {law.infimum:.6g} have mass {below:.6g} of {mass:.6g}"
    if math.isfinite(law.supremum):
        beyond = float(np.asarray(law.tail(np.array([law.supremum + 1e-9 * (1.0 + abs(law.supremum))])))[0])
        if not beyond <= 1e-12:
            yield f"the losses above the supremum {law.supremum:.6g} have mass {beyond:.3g}"


# -- the same thing told twice ----------------------------------------------------------------------------------


def _of_parts(law: Law) -> Iterator[str]:
    """Atoms and density against the mass and the tail; a continuous law need not know its density."""
    if not _known(law):
        return
    atoms, mass = law.atoms(), 1.0 - law.infinity_mass
    if any(not probability >= 0 for _, probability in atoms):
        yield "an atom has negative mass"
        return
    if any(not one < other for (one, _), (other, _) in pairwise(atoms)):
        yield "the atoms are not in increasing order of loss"
        return
    cuts = _cuts(law)
    if not _has_density(law):
        held = math.fsum(probability for _, probability in atoms)
        if atoms and not abs(held - mass) <= 1e-6 * mass:
            yield f"the atoms hold {held:.6g} of the finite mass {mass:.6g}, and there is no density"
        return
    for low, high in pairwise(np.unique(cuts).tolist()):
        inside = math.fsum(probability for loss, probability in atoms if low < loss <= high)
        near = (high - low) * 4.0 ** np.arange(-24.0, 0.0)  # a density may be steep at the ends of the losses
        edges = np.unique([low, high, *np.clip(law.breakpoints(), low, high), *(low + near), *(high - near)])
        held = inside + math.exp(_log_integral(lambda loss: np.asarray(np.log(law.density(loss))), edges))
        above, beyond = np.asarray(law.tail(np.array([low, high])), dtype=np.float64)
        if not abs(held - (above - beyond)) <= _TOLERANCE * (above - beyond) + 1e-6:
            told = f"{held:.6g} between {low:.6g} and {high:.6g}, but the tail says {above - beyond:.6g}"
            yield f"atoms and density hold {told}"
            return


def _cuts(law: Law) -> Floats:
    """Places from the mean on, in units of the losses' size."""
    size = math.sqrt(2.0 * abs(law.mean))
    return np.clip(law.mean + size * np.array([0.0, 0.5, 1.5, 4.0]), law.infimum, law.supremum)


def _has_density(law: Law) -> bool:
    cuts = _cuts(law)
    return bool((law.density(np.linspace(cuts[0], cuts[-1], 33)) > 0).any())


def is_listed(law: Law) -> bool:
    """Whether atoms and density say where the losses are; a continuous law may leave its density out."""
    return law.infinity_mass == 1.0 or bool(law.atoms()) or _has_density(law)


def _of_mixtures(law: Law) -> Iterator[str]:
    """K against the profile, and the profile against the tail."""
    slack = _TOLERANCE if len(law.atoms()) <= _MANY else 0.05
    for t in (1.0 / (1.0 + law.mean), 1.0, 4.0):
        moment = float(_moment(law, np.array([t]))[0])
        gain = moment - (1.0 + t) * _log_mass(law)  # at least 0, by Jensen's inequality
        if not gain > _NEGLIGIBLE or not moment < _LARGE:
            continue
        wanted = moment + math.log(-math.expm1(-gain))
        implied = _excess_of_profile(law, t, upper=True)
        if wanted < implied - slack:
            implied = min(wanted, _excess_of_profile(law, t, upper=False))
        if max(wanted, implied) > math.log(_NEGLIGIBLE) and not abs(wanted - implied) <= slack:
            given = float(np.logaddexp(implied, (1.0 + t) * _log_mass(law)))
            yield f"log_moment({t:.3g}) is {moment:.6g}, but the profile gives {given:.6g}"
            return
    for epsilon in (0.0, law.mean, law.mean + 2.0 * math.sqrt(2.0 * abs(law.mean))):
        low, high = (float(np.asarray(side)[0]) for side in law.log_profile(np.array([epsilon])))
        from_tail = _profile_of_tail(law, epsilon)
        if max(high, from_tail) > math.log(_NEGLIGIBLE) and not low - slack <= from_tail <= high + slack:
            told = f"{math.exp(high):.6g}, but the tail gives {math.exp(from_tail):.6g}"
            yield f"the profile at epsilon {epsilon:.6g} is {told}"
            return


def _excess_of_profile(law: Law, t: float, upper: bool) -> float:
    """log of t (t + 1) times the integral of e^{t eps} (H(eps) - (m - e^eps)+)."""
    mass, start = 1.0 - law.infinity_mass, _log_mass(law)

    def log_excess(epsilon: Floats) -> Floats:
        profile = np.asarray(law.log_profile(epsilon)[1 if upper else 0], dtype=np.float64)
        below = epsilon < start
        bare = np.where(below, mass - np.exp(np.where(below, epsilon, 0.0)), 0.0)
        excess = np.where(below, np.log(np.maximum(np.exp(profile) - bare, 1e-300)), profile)
        return np.asarray(excess + t * epsilon, dtype=np.float64)

    inside = _log_integral(log_excess, np.union1d(_places(law, t), [start]))
    if math.isfinite(end := min(law.infimum, start)):
        # below, H = m - q e^eps with q the mass of the second member on the finite losses
        inside = float(np.logaddexp(inside, log_excess(np.array([end]))[0] - math.log(t + 1.0)))
    return math.log(t * (t + 1.0)) + inside


def _profile_of_tail(law: Law, epsilon: float) -> float:
    """log of the integral of e^{eps - l} T(l) over l > eps."""
    if epsilon >= law.supremum:
        return -math.inf
    places = _places(law, 1.0)
    near = np.minimum(epsilon + np.concatenate(([0.0], 4.0 ** np.arange(-12.0, 3.0))), law.supremum)

    def log_integrand(loss: Floats) -> Floats:
        return np.asarray(np.log(np.maximum(law.tail(loss), 0.0)) + epsilon - loss, dtype=np.float64)

    return _log_integral(log_integrand, np.unique(np.concatenate((places[places > epsilon], near))))


# -- integrals ---------------------------------------------------------------------------------------------------


def _places(law: Law, t: float) -> Floats:
    """Edges of panels: dense around 0, the mean, the ends, and where e^{t L} puts its weight; the atoms are edges."""
    gap = 1e-3 * t
    below, at, above = _moment(law, np.array([t - gap, t, t + gap]))
    centre, width = (above - below) / (2 * gap), math.sqrt(max((above - 2 * at + below) / gap**2, 0.0))
    listed = [loss for loss, _ in law.atoms()]
    anchors = {0.0, law.mean, law.infimum, law.supremum, float(centre), *law.breakpoints()}
    steps = {1.0, math.sqrt(2.0 * abs(law.mean)), width}
    spread = np.concatenate([step * 4.0 ** np.arange(-2.0, 4.0) for step in steps if 0 < step < math.inf])
    offsets = np.concatenate((-spread, [0.0], spread))
    edges = np.concatenate([anchor + offsets for anchor in anchors if math.isfinite(anchor)])
    inside = np.clip(edges, max(law.infimum, -1e300), min(law.supremum, 1e300))
    return np.unique(np.concatenate((inside, listed if len(listed) <= _MANY else [], [0.0])))


def _log_integral(log_function: Callable[[Floats], Floats], edges: Floats) -> float:
    """log of the integral of exp(log_function), panel by panel; panels that cannot matter are left out."""
    left, width = edges[:-1], np.diff(edges)
    if not left.size:
        return -math.inf
    rough = log_function((left[:, None] + width[:, None] * np.array([1e-9, 0.5, 1.0 - 1e-9])).ravel())
    size = rough.reshape(-1, 3).max(axis=1) + np.log(width)
    keep = size > size.max() - 20.0
    nodes = left[keep][:, None] + width[keep][:, None] * 0.5 * (1.0 + _RULE[0])
    values = log_function(nodes.ravel()).reshape(nodes.shape) + np.log(0.5 * width[keep][:, None] * _RULE[1])
    return float(np.logaddexp.reduce(values.ravel())) if values.size else -math.inf


def _close(one: float, other: float, tolerance: float) -> bool:
    return one == other or abs(one - other) <= tolerance


# -- the other direction, and what is offered to particular methods ------------------------------------------------


def _of_reverse(law: Law) -> Iterator[str]:
    other = law.reverse()
    if other is None:
        return
    if law.infinity_mass or other.infinity_mass:
        yield "reverse() is given although a loss may be infinite"
        return
    t = np.array([-0.9, -0.7, -0.5, -0.2])
    mine, theirs = _moment(law, -1.0 - t), _moment(other, t)
    if not (np.abs(mine - theirs) <= 1e-6 * np.abs(mine) + 1e-12).all():
        yield "reverse().log_moment(t) is not log_moment(-1 - t)"
    epsilon = np.array([-1.0, 0.0, 0.5, 1.0])
    there = np.exp(np.asarray(other.log_profile(epsilon)[1]))
    implied = -np.expm1(epsilon) + np.exp(epsilon + np.asarray(law.log_profile(-epsilon)[1]))
    if not (np.abs(there - implied) <= 1e-6).all():
        yield "reverse().log_profile is not that of the exchanged pair"


def _of_offers(law: Law) -> Iterator[str]:
    yield from _of_ball(law)
    if not _known(law):
        return
    if type(law).has_characteristic:
        yield from _of_characteristic(law)
    t = np.array([0.1, 1.0, 3.0])
    rho = law.closed_rho()
    if rho is not None and not (_moment(law, t) <= (rho * t * (t + 1.0)) * (1 + 1e-9) + 1e-12).all():
        yield f"closed_rho() = {rho:.6g} is below log_moment(t) / (t (t + 1))"
    mu = law.gaussian_mu()
    if mu < math.inf:
        epsilon = np.array([0.0, 0.5, 1.0, 2.0])
        most = log_gaussian_delta(mu, epsilon)[1] if mu > 0 else np.full(4, -np.inf)
        if law.infinity_mass > 0 or not (np.asarray(law.log_profile(epsilon)[0]) <= most + 1e-9).all():
            yield f"the profile exceeds that of gaussian_mu() = {mu:.6g}"


def _of_characteristic(law: Law) -> Iterator[str]:
    theta = 1.0
    table = law.moment_table(np.array([theta]))
    at = complex(np.asarray(law.log_moment(np.array([theta + 0j])))[0]).real
    if not abs(float(table.moment[0]) - at) <= float(table.error[0]) + 1e-9 * (1.0 + abs(at)):
        yield "moment_table is not log_moment within its own error bound"
    step = 0.5 / (1.0 + abs(law.mean))
    phi = law.characteristic(theta, 4 * step, -25.0)
    if phi is None or not math.isfinite(at):
        return
    values, errors = phi.on_grid(step, 4)
    u = step * np.arange(4)
    exact = np.exp(np.asarray(law.log_moment(theta + 1j * u)) - at - 1j * u * phi.centre)
    if (np.abs(values + 1.0 - exact) > errors + 1e-6).any():  # an error bound of NaN claims nothing
        yield "characteristic is not exp(log_moment(theta + iu) - log_moment(theta)) within its own error bounds"


def _of_ball(law: Law) -> Iterator[str]:
    if law.infinity_mass == 1.0:
        return
    try:
        ball, acb = law.ball(1), flint().acb
    except MissingExtra:
        return
    if ball is None:
        return
    if abs(float(ball.infinity_mass()) - law.infinity_mass) > 1e-12:
        yield "ball(1) has another mass at infinity"
    for t in (0.5, 1.0):
        moment = float(_moment(law, np.array([t]))[0])
        if moment < 300.0 and not _close(math.log(float(ball.moment(acb(t)).real)), moment, 1e-6 * abs(moment) + 1e-9):
            yield f"ball(1) has another moment of order {t} than log_moment"
            return
