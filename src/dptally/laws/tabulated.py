"""A declared privacy profile: a curve of (epsilon, delta) guarantees, from a paper or from data.

Every finite set of guarantees (eps_i, delta_i) that holds in both directions implies more than its points.
In x = e^eps a profile H is convex, falls from H(0) = 1 to its limit, and the other direction has
H(1/x) = 1 - 1/x + H(x)/x. So the largest profile that keeps all the guarantees is the lower convex envelope,
in x, of

    (0, 1),   (1/x_i, 1 - 1/x_i + delta_i / x_i),   (x_i, delta_i),   and the level line beyond the last,

which is piecewise linear: a pair with atoms at +-eps_i and the last delta at infinity
[Zhu, Dong, Wang 2022, Prop. 8 and Lemma 9; for one guarantee it is Liu et al. 2022, Thm. 2.1, and the pair
of Kairouz, Oh, Viswanath 2015]. It dominates whatever keeps the guarantees, so it may be composed and
sampled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dptally import checks
from dptally.checks import Floats
from dptally.errors import InvalidArgument
from dptally.law import Law
from dptally.law.law import Numbers
from dptally.law.listed import ListedAtoms
from dptally.laws.atoms import PAIR_THEOREM, AtomicLaw, atomic_law
from dptally.laws.pairs import Envelope, Pair
from dptally.numerics.decimals import LARGEST
from dptally.numerics.rounding import EPS

__all__ = ["Points", "ProfileLaw", "law_of_guarantees", "stated_delta"]

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class ProfileLaw(Law):
    """The table of a callable profile, with the callable for the profile of one run."""

    table: AtomicLaw
    delta_of_epsilon: Callable[[float], float]
    theorem: ClassVar[str] = PAIR_THEOREM

    def log_moment(self, t: Numbers) -> Numbers:
        return self.table.log_moment(t)

    def log_moment_and_error(self, t: Floats) -> tuple[Floats, Floats]:
        return self.table.log_moment_and_error(t)

    def is_reverse_of(self, other: Law) -> bool:
        """The same in both directions."""
        return self == other

    @property
    def has_all_mass(self) -> bool:
        return self.table.has_all_mass

    @property
    def mean(self) -> float:
        return self.table.mean

    @property
    def infinity_mass(self) -> float:
        return self.table.infinity_mass

    @property
    def supremum(self) -> float:
        return self.table.supremum

    @property
    def infimum(self) -> float:
        return self.table.infimum

    def listed_atoms(self) -> ListedAtoms | None:
        return self.table.listed_atoms()

    def declared(self) -> Pair | None:
        return self.table.declared()

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """The table's, or the function's where that is smaller; below 0 the table's alone."""
        lower, upper = self.table.log_profile(epsilon)
        flat = np.atleast_1d(epsilon).ravel()
        stated = np.array([stated_delta(self.delta_of_epsilon, e) if e >= 0 else 1.0 for e in flat])
        mass = self.table.infinity_mass
        with np.errstate(divide="ignore"):
            finite = np.log(np.maximum(stated - mass, 0.0))
            relative = 4.0 + 4.0 * mass * np.exp(-np.maximum(finite, -700.0))
            slack = np.where(np.isfinite(finite), EPS * relative, 0.0)
        finite, slack = finite.reshape(epsilon.shape), slack.reshape(epsilon.shape)
        return np.minimum(lower, finite - slack), np.minimum(upper, finite + slack)

    def tail(self, loss: Floats) -> Floats:
        return self.table.tail(loss)

    def atoms(self) -> tuple[tuple[float, float], ...]:
        return self.table.atoms()


def stated_delta(function: Callable[[float], float], epsilon: float) -> float:
    """One value of the user's function, checked."""
    delta = checks.real(f"delta_of_epsilon({epsilon:.17g})", function(float(epsilon)))
    if not 0 <= delta <= 1:
        raise InvalidArgument(f"delta_of_epsilon({epsilon:.17g})", "in [0, 1]", delta)
    return abs(delta)


@lru_cache(maxsize=64)
def law_of_guarantees(points: Points) -> AtomicLaw | None:
    """The pair that dominates all mechanisms with these guarantees; None where they leave nothing to lose."""
    law = atomic_law(Envelope(points), PAIR_THEOREM)
    if law is None:
        raise InvalidArgument("points", f"at epsilons of at most {LARGEST:g}", points[-1][0])
    lossless = law.infinity_mass == 0 and law.supremum == law.infimum == 0
    return None if lossless else law
