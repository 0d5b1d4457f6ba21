r"""What is known of the whole of a profile beyond any head: the tail limit, and mu that are necessary or
enough.

The tail limit of Liu et al. 2022, Thm. 3.3, is mu_t = limsup eps / sqrt(-2 log delta(eps)). A mechanism is
Gaussian DP for SOME mu iff mu_t < inf (and delta(0) < 1); mu >= mu_t is necessary and not sufficient.

In terms of the log-moment K: mu-GDP implies K(t) <= mu^2 t (t+1) / 2, so rho-zCDP with rho = mu^2 / 2; and
rho-zCDP implies log delta(eps) <= -(eps - rho)^2 / (4 rho) for eps >= rho, hence mu_t <= sqrt(2 rho). So
Gaussian DP for some mu and zCDP for some rho are the same property, and mu_t <= sqrt(2 rho) <= mu.

Tail limits add in squares, as K does. Poisson sampling (ADD_REMOVE) keeps them: delta_q(eps) = q delta(eps')
with eps' - eps -> log(1/q), which changes neither eps^2 nor log delta to leading order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dptally.accounting import concentrated
from dptally.accounting.moments import MOMENT_TRUST, infinity_mass, supremum
from dptally.errors import Unanswerable
from dptally.gdp.curve import Curve, GaussianTail
from dptally.gdp.view import Profiled
from dptally.interval import Interval
from dptally.law import Composition
from dptally.mechanisms import Composed, Mechanism
from dptally.numerics.rounding import up
from dptally.numerics.shown import shown_up

__all__ = ["Tail", "covered_from", "tail_of"]

_LARGE_ORDER = 1e9


@dataclass(frozen=True, slots=True)
class Tail:
    """``limit``: bounds of mu_t, None if unknown. ``enough``: a mu for which the mechanism certainly is
    mu-GDP, inf if none is known. ``shapes``: Gaussian bounds of the tail, the smallest root first; none if
    unknown. ``least``: a mu that some mechanism with the guarantee needs.
    """

    limit: Interval | None
    enough: float
    shapes: tuple[GaussianTail, ...]
    reason: str
    least: float = 0.0

    @property
    def shape(self) -> GaussianTail | None:
        """The bound with the smallest root."""
        return self.shapes[0] if self.shapes else None

    @property
    def necessary(self) -> float:
        """Every mu of the mechanism is at least this."""
        return max(self.limit.lower if self.limit is not None else 0.0, self.least)

    def covered_from(self, mu: float) -> float:
        """An epsilon beyond which G <= mu for certain; inf where no shape shows one."""
        return min((covered_from(shape, mu) for shape in self.shapes), default=math.inf)


def tail_of(subject: Profiled) -> Tail:
    return _of_curve(subject) if isinstance(subject, Curve) else _of_plan(subject)


_NOTHING = Interval(0.0, 0.0)
_EVERYTHING = Interval(math.inf, math.inf)


def _of_curve(curve: Curve) -> Tail:
    if curve.zero_from < math.inf:
        return Tail(_NOTHING, math.inf, (), f"delta is 0 from epsilon {curve.zero_from:.6g} on")
    if curve.tail_limit == math.inf:
        return Tail(_EVERYTHING, math.inf, (), "delta falls too slowly: no finite mu covers the tail")
    limit = None if curve.tail_limit is None else Interval(curve.tail_limit, curve.tail_limit).widened()
    if curve.gaussian_tail is not None:
        root = curve.gaussian_tail.root
        return Tail(limit, math.inf, (curve.gaussian_tail,), f"the tail falls like that of {root:.6g}-GDP")
    return Tail(limit, math.inf, (), "nothing is known of the tail beyond the values looked at")


def _of_plan(plan: Mechanism) -> Tail:
    directions = plan.directions()
    mass = max(infinity_mass(composition)[0] for composition in directions)
    if mass > 0:
        text = f"the loss is infinite with probability {mass:.3g}: no finite mu covers the tail of delta"
        return Tail(_EVERYTHING, math.inf, (), text)
    parts = [(_of_part(part), count) for part, count in plan.parts]
    # the parts' own bounds are rounded up, as are the products and the root
    enough = _added([(part.enough, count) for part, count in parts])
    bounded = all(composition.supremum < math.inf for composition in directions)
    if bounded:
        most = max(supremum(composition) for composition in directions)
        return Tail(_NOTHING, enough, (), f"the loss is at most {most:.6g}, and delta is 0 from there on")
    shapes = _shapes(plan, enough)
    root = shapes[0].root if shapes else math.inf
    total = math.sqrt(math.fsum(n * part.necessary**2 for part, n in parts)) * (1.0 - MOMENT_TRUST)
    limit = Interval(total, max(root, total)) if all(part.limit is not None for part, _ in parts) else None
    if not shapes:
        return Tail(limit, enough, (), "no bound of the Renyi divergences at large orders is known", total)
    rho = shown_up(0.5 * root * root)
    what = f"the plan is {rho}-zCDP"
    if shapes[0].shift:
        what = f"the plan's losses are at most {shown_up(shapes[0].shift)} and those of a {rho}-zCDP part"
    return Tail(limit, enough, shapes, f"{what}, so delta falls like e^-eps^2/(2 {root:.6g}^2)", total)


def _shapes(plan: Mechanism, enough: float) -> tuple[GaussianTail, ...]:
    """What zCDP says of the tail: of the whole plan, and of the plan without its bounded steps.

    With L = B + G and B <= b, delta(eps) <= delta_G(eps - b): the bounded steps shift the tail and do not widen it.
    """
    root = min(_root(_unsampled(plan).directions()), enough)
    found = [GaussianTail(root, up(0.5 * root * root, 2))] if root < math.inf else []
    bounded = [(p, n) for p, n in plan.parts if all(c.supremum < math.inf for c in p.directions())]
    if bounded:
        rest = Composed.of((p, n) for p, n in plan.parts if (p, n) not in bounded)
        shift = up(math.fsum(up(n * max(max(c.supremum for c in p.directions()), 0.0)) for p, n in bounded), 2)
        narrow = _root(_unsampled(rest).directions())
        if narrow < root * (1.0 - 1e-9):
            found.append(GaussianTail(narrow, up(shift + 0.5 * narrow * narrow, 4), shift))
    return tuple(sorted(found, key=lambda shape: shape.root))


def _of_part(part: Mechanism) -> Tail:
    """One mechanism: sampled ones by what they sample, others by their laws."""
    unsampled = part.unsampled()
    if unsampled is not part:  # sampling reveals at most what the whole data would
        whole = _of_plan(unsampled)
        bounded = all(composition.supremum < math.inf for composition in part.directions())
        limit = _NOTHING if bounded else whole.limit if part.keeps_tail() else None
        known = max((_gaussian(composition) for composition in part.directions()), default=0.0)
        return replace(whole, limit=limit, enough=min(whole.enough, known), least=0.0)
    directions = part.directions()
    enough = max((_gaussian(composition) for composition in directions), default=0.0)
    if all(composition.supremum < math.inf for composition in directions):
        return Tail(_NOTHING, enough, (), "")
    root = _root(directions)
    orders = np.array([_LARGE_ORDER])
    moment = max(float(composition.log_moment(orders)[0]) for composition in directions)
    if not moment < math.inf:
        return Tail(None, enough, (), "")
    seen = math.sqrt(2.0 * moment / (_LARGE_ORDER * (_LARGE_ORDER + 1.0))) * (1.0 - MOMENT_TRUST)
    if seen < root * (1.0 - 1e-9):
        return Tail(None, enough, (), "")
    # K grows like its bound rho t (t + 1): then mu_t is sqrt(2 rho); where only K is known Gaussian noise attains it
    determined = all(composition.determined for composition in directions)
    return Tail(Interval(seen, max(seen, root)) if determined else None, enough, (), "", seen)


def _unsampled(plan: Mechanism) -> Mechanism:
    """The plan without sampling, which tells at least as much."""
    return Composed.of((part.unsampled(), n) for part, n in plan.parts)


def _gaussian(composition: Composition) -> float:
    """A mu known in closed form; inf where there is none."""
    return _added([(law.gaussian_mu(), n) for law, n in composition.parts])


def _added(parts: list[tuple[float, int]]) -> float:
    """sqrt of the sum of n mu^2, rounded up."""
    if not parts:
        return 0.0
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    return up(math.sqrt(math.fsum(n * mu * mu for mu, n in parts)), 4)


def _root(directions: tuple[Composition, ...]) -> float:
    """sqrt(2 rho), rounded up; inf where no rho is known."""
    try:
        rho = concentrated.rho(directions)
    except Unanswerable:  # an unbounded loss whose moments have no closed bound; another bound may be known
        return math.inf
    return up(math.sqrt(2.0 * rho), 2)


def covered_from(shape: GaussianTail, mu: float) -> float:
    r"""An epsilon beyond which G <= mu for certain, given the tail's shape; inf where mu <= root.

    With r = root, b = shift, x = eps/mu - mu/2, y = x + mu: the Mills ratio m is convex and m'(y) <= -1/(y^2 + 3),
    so delta_mu = phi(x) (m(x) - m(y)) >= phi(x) mu / (y^2 + 3). It exceeds exp(-((eps - b)/r - r/2)^2 / 2) iff
        h(eps) = (((eps - b)/r - r/2)^2 - (eps/mu - mu/2)^2) / 2 - log(y^2 + 3) + log mu - log sqrt(2 pi) >= 0,
    and with g = 1/r^2 - 1/mu^2 it increases where eps g - b/r^2 >= 2/eps, since (log(y^2 + 3))' <= 2/(mu y) <= 2/eps.
    """
    r, b = shape.root, shape.shift
    if not mu > r * (1.0 + 1e-12):
        return math.inf
    gain = (mu - r) * (mu + r) / (r * mu) ** 2

    def excess(epsilon: float) -> float:
        y = epsilon / mu + 0.5 * mu
        value = 0.5 * epsilon**2 * gain - (mu - r) * (mu + r) / 8 - math.log(y * y + 3) + math.log(mu)
        moved = (epsilon - 0.5 * b - 0.5 * r * r) * b / (r * r)  # what the shift takes from the square
        return value - moved - 0.5 * math.log(2 * math.pi) - 1e-9 * (1.0 + epsilon**2 * gain + moved)

    half = 0.5 * b / (r * r)
    epsilon = max((half + math.sqrt(half * half + 2.0 * gain)) / gain * (1.0 + 1e-9), shape.start)
    while excess(epsilon) < 0:
        epsilon *= 1.25
    return epsilon
