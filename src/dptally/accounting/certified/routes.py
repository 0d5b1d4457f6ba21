"""The table of routes: which method bounds which plan, in the order in which they are asked.

one step              the law's own certified profile                                            (closed.py)
near the largest loss all steps lose nearly the most they can: one look at each law              (plan.py)
binomial sum          many copies of one loss with two values                                    (lattice/binomial.py)
progression           losses start + h j of one law: half a period of its transform              (contour/even.py)
sum over all outcomes few steps of few values                                                   (lattice/enumeration.py)
contour               smooth losses: one trapezoid sum through the saddle point                  (contour/inversion.py)
Chernoff below the other direction (first of all), total variation                               (plan.py)
contour, swapped pair eps next to 0: the other direction of the same pair at -eps                (contour/swapped.py)
lattice of deciding losses   few steps of one law, if one lattice will do                     (lattice/decisive.py)
big jumps             rare large losses: a contour for every size of loss                        (big_jump/plan.py)
smoothed contour      different laws with point masses: a contour with a little noise            (contour/smoothed.py)
sum over the outcomes of some   few outcomes of some laws, the others once for each              (conditioned.py)
lattice of deciding losses   few steps of one law                                                (lattice/decisive.py)
tilted lattice        anything with a profile                                                    (lattice/bracket.py)
basic composition, Chernoff  always
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dptally.accounting.certified import closed, conditioned
from dptally.accounting.certified.big_jump import plan as jumps
from dptally.accounting.certified.bounds import (
    NOTHING_KNOWN,
    BoundedProfile,
    Ends,
    LogBounds,
    LogTarget,
    log_interval,
)
from dptally.accounting.certified.contour import curve as neighbours
from dptally.accounting.certified.contour import even as progressions
from dptally.accounting.certified.contour import inversion
from dptally.accounting.certified.contour import smoothed as smoothing
from dptally.accounting.certified.contour import swapped as reversal
from dptally.accounting.certified.plan import Plan
from dptally.accounting.certified.route import Route
from dptally.accounting.certified.tuning import ContourTuning, DecidingTuning, Tuning
from dptally.numerics.rounding import down, up

__all__ = ["ROUTES", "in_order"]


@dataclass(frozen=True, slots=True)
class AtOneEpsilon:
    """Bounds that were made for one eps."""

    at: float
    lower: float
    upper: float

    @property
    def saddle(self) -> float:
        return self.at

    def estimate(self, epsilon: float) -> float:
        return 0.5 * (self.lower + self.upper) if epsilon == self.at else math.nan

    def log_delta(self, epsilon: float) -> LogBounds:
        return LogBounds(self.lower, self.upper) if epsilon == self.at else NOTHING_KNOWN


class _EndsOnly(Route):
    """A route that finds ends of epsilon by itself, not through a bounded profile; of delta it may know nothing."""

    def near_epsilon(self, plan: Plan, epsilon: float) -> Iterator[BoundedProfile]:
        del plan, epsilon
        return iter(())

    def near_delta(self, plan: Plan, target: LogTarget) -> Iterator[BoundedProfile]:
        del plan, target
        return iter(())


class OneStep(_EndsOnly):
    name = "closed form"
    theorem = "the dominating pair's own profile"
    final = True

    def label(self, plan: Plan) -> str:
        return plan.parts[0][0].profile_by

    def applies(self, plan: Plan) -> bool:
        return plan.steps == 1

    def near_epsilon(self, plan: Plan, epsilon: float) -> Iterator[BoundedProfile]:
        yield AtOneEpsilon(epsilon, *closed.log_delta(plan.parts[0][0], epsilon))

    def epsilon(self, plan: Plan, target: LogTarget) -> Iterator[Ends]:
        yield Ends(*closed.epsilon(plan.parts[0][0], target[:2]))


class BinomialSum(_EndsOnly):
    name = "binomial sum"
    theorem = "positive terms of a binomial sum; Loader 2000 for the probabilities"

    def sharp(self, tuning: Tuning) -> float:
        return tuning.routes.sharp_lattice

    def applies(self, plan: Plan) -> bool:
        from dptally.accounting.certified.lattice import binomial

        return len(plan.parts) == 1 and binomial.two_valued(plan.composition, plan.tuning.binomial) is not None

    def near_epsilon(self, plan: Plan, epsilon: float) -> Iterator[BoundedProfile]:
        from dptally.accounting.certified.lattice import binomial

        found = binomial.log_delta(plan.composition, epsilon, plan.tuning.binomial)
        if found is not None:
            yield AtOneEpsilon(epsilon, *found)

    def epsilon(self, plan: Plan, target: LogTarget) -> Iterator[Ends]:
        from dptally.accounting.certified.lattice import binomial

        if not target.low < 0:
            yield Ends(0.0, 0.0)
            return
        tuning = plan.tuning.binomial
        found = binomial.epsilon(plan.composition, target.low, tuning)
        if found is not None:
            other = found if target.high == target.low else binomial.epsilon(plan.composition, target.high, tuning)
            yield Ends(0.0 if other is None else min(found[0], other[0]), found[1])


class EvenContour(Route):
    name = "inversion on a progression"
    theorem = "Poisson summation over one period of the transform (docs/certificates.md, section 15)"

    def sharp(self, tuning: Tuning) -> float:
        return tuning.routes.sharp_contour

    def applies(self, plan: Plan) -> bool:
        return progressions.applies(plan.composition)

    def near_epsilon(self, plan: Plan, epsilon: float) -> Iterator[BoundedProfile]:
        found = progressions.for_epsilon(plan.composition, epsilon, plan.tuning)
        if found is not None:
            yield found

    def near_delta(self, plan: Plan, target: LogTarget) -> Iterator[BoundedProfile]:
        found = progressions.for_delta(plan.composition, target.low, plan.tuning)
        if found is not None:
            yield found


class Enumeration(_EndsOnly):
    name = "sum over all outcomes"
    theorem = "every sum of losses with its probability, rounded outwards (lattice/enumeration.py)"

    def sharp(self, tuning: Tuning) -> float:
        return tuning.routes.sharp_contour

    def applies(self, plan: Plan) -> bool:
        return plan.has_few_outcomes and plan.enumerated is not None

    def near_epsilon(self, plan: Plan, epsilon: float) -> Iterator[BoundedProfile]:
        if plan.enumerated is not None:
            yield AtOneEpsilon(epsilon, *closed.log_delta(plan.enumerated, epsilon))

    def epsilon(self, plan: Plan, target: LogTarget) -> Iterator[Ends]:
        if plan.enumerated is not None:
            yield Ends(*closed.epsilon(plan.enumerated, target[:2]))


class Contour(Route):
    name = "inversion"
    theorem = "Poisson summation: the trapezoid sum bounds the inversion integral (docs/certificates.md, section 1)"

    def sharp(self, tuning: Tuning) -> float:
        return tuning.routes.sharp_contour

    def applies(self, plan: Plan) -> bool:
        return plan.transformable

    def _choices(self, plan: Plan) -> tuple[ContourTuning, int]:
        """How much work one plain contour is worth: less where rare large losses can be counted apart."""
        most = plan.tuning.contour.most_work
        if not plan.cuttable:
            return plan.tuning.contour, most
        routes = plan.tuning.routes
        work = min(most, most // routes.share_of_work * len(plan.parts))
        return _short(plan.tuning.contour, routes.most_terms, work), work

    def near_epsilon(self, plan: Plan, epsilon: float) -> Iterator[BoundedProfile]:
        found = inversion.for_epsilon(plan.composition, epsilon, *self._choices(plan))
        if found is not None:
            yield found

    def near_delta(self, plan: Plan, target: LogTarget) -> Iterator[BoundedProfile]:
        made = neighbours.for_delta if len(plan.parts) == 1 else inversion.for_delta
        found = made(plan.composition, target.low, *self._choices(plan))
        if found is not None:
            yield found


@lru_cache(maxsize=64)
def _short(tuning: ContourTuning, most_terms: float, work: int) -> ContourTuning:
    """The choices of a contour that is worth so much work, so that a longer one is not begun."""
    return replace(tuning, most_terms=min(tuning.most_terms, math.ceil(most_terms * math.sqrt(work))))


class TotalVariation(_EndsOnly):
    name = "delta exceeds the total variation"
    theorem = "total variation is subadditive; Pinsker's inequality (docs/certificates.md, early exits)"

    def epsilon(self, plan: Plan, target: LogTarget) -> Iterator[Ends]:
        if plan.log_total_variation() <= target.low:
            yield Ends(0.0, 0.0)


class NearSupremum(_EndsOnly):
    name = "the largest possible loss"
    theorem = "all steps lose nearly the most they can (docs/certificates.md, early exits)"

    def sharp(self, tuning: Tuning) -> float:
        return tuning.routes.sharp_contour

    def applies(self, plan: Plan) -> bool:
        return plan.supremum.lower > 0 and plan.supremum.upper < math.inf

    def epsilon(self, plan: Plan, target: LogTarget) -> Iterator[Ends]:
        yield Ends(plan.near_the_supremum(target.high), plan.supremum.upper)


class Chernoff(_EndsOnly):
    """Upper ends only: min over t of K(t) - t eps + log c(t), c(t) = t^t / (1 + t)^(1 + t)."""

    name = "Chernoff"
    theorem = "(1 - e^{-x})+ <= e^{t x} t^t / (1 + t)^{1 + t} for every t > 0"

    def near_epsilon(self, plan: Plan, epsilon: float) -> Iterator[BoundedProfile]:
        yield AtOneEpsilon(epsilon, -math.inf, plan.chernoff_log_delta(epsilon))

    def epsilon(self, plan: Plan, target: LogTarget) -> Iterator[Ends]:
        yield Ends(0.0, plan.chernoff_epsilon(target.low))


class StopBelow(Chernoff):
    """Early: a direction that Chernoff's bound or a rough contour puts below the other one need not be sharp."""

    def applies(self, plan: Plan) -> bool:
        return plan.floor > 0 and plan.transformable

    def epsilon(self, plan: Plan, target: LogTarget) -> Iterator[Ends]:
        if plan.is_below_floor(target.low):
            yield Ends(0.0, plan.floor)
        yield from super().epsilon(plan, target)


class Vanishing(Chernoff):
    """Chernoff's bound of delta where the contour failed: below the least double nothing else need be known."""

    def epsilon(self, plan: Plan, target: LogTarget) -> Iterator[Ends]:
        del plan, target
        return iter(())


class SwappedPair(Route):
    name = "inversion of the reverse"
    theorem = "delta_PQ(eps) = e^eps delta_QP(-eps) - (e^eps - 1)"

    def sharp(self, tuning: Tuning) -> float:
        return tuning.routes.sharp_split

    def near_epsilon(self, plan: Plan, epsilon: float) -> Iterator[BoundedProfile]:
        return reversal.for_epsilon(plan.composition, epsilon, plan.tuning)

    def near_delta(self, plan: Plan, target: LogTarget) -> Iterator[BoundedProfile]:
        return reversal.for_delta(plan.composition, target.low, plan.tuning)


class BigJump(Route):
    name = "inversion, split by jumps"
    theorem = "the law is a sum of measures by the size of its largest loss (docs/certificates.md, section 6)"

    def sharp(self, tuning: Tuning) -> float:
        return tuning.routes.sharp_split

    def applies(self, plan: Plan) -> bool:
        return plan.cuttable

    def near_epsilon(self, plan: Plan, epsilon: float) -> Iterator[BoundedProfile]:
        return jumps.for_epsilon(plan.composition, epsilon, plan.chernoff_log_delta(epsilon), plan.tuning)

    def near_delta(self, plan: Plan, target: LogTarget) -> Iterator[BoundedProfile]:
        return jumps.for_delta(plan.composition, target.low, plan.chernoff_epsilon(target.low), plan.tuning)


class SmoothedContour(Route):
    name = "smoothed inversion"
    theorem = "a Gaussian loss added dominates, at a price that is bounded (docs/certificates-smoothing.md)"

    def sharp(self, tuning: Tuning) -> float:
        return tuning.routes.sharp_lattice

    def applies(self, plan: Plan) -> bool:
        return smoothing.applies(plan.composition)

    def near_epsilon(self, plan: Plan, epsilon: float) -> Iterator[BoundedProfile]:
        return smoothing.near_epsilon(plan.composition, epsilon, plan.tuning)

    def near_delta(self, plan: Plan, target: LogTarget) -> Iterator[BoundedProfile]:
        return smoothing.near_delta(plan.composition, target.low, plan.tuning)


class FewBeside(Route):
    name = "sum over the outcomes of some"
    theorem = "given the outcomes of some laws, the profile of the others, shifted (conditioned.py)"

    def sharp(self, tuning: Tuning) -> float:
        return tuning.routes.sharp_lattice

    def applies(self, plan: Plan) -> bool:
        return conditioned.splits(plan.composition, plan.tuning.outcomes)

    def near_epsilon(self, plan: Plan, epsilon: float) -> Iterator[BoundedProfile]:
        return conditioned.for_epsilon(plan, epsilon)

    def near_delta(self, plan: Plan, target: LogTarget) -> Iterator[BoundedProfile]:
        return conditioned.for_delta(plan, target)


class DecisiveLattice(Route):
    name = "lattice of deciding losses"
    theorem = "spreading a loss onto a lattice dominates; what it adds is bounded (lattice/decisive.py)"

    def sharp(self, tuning: Tuning) -> float:
        return tuning.routes.sharp_lattice

    def choices(self, tuning: Tuning) -> DecidingTuning:
        return tuning.deciding

    def applies(self, plan: Plan) -> bool:
        from dptally.accounting.certified.lattice import decisive as few_steps

        return few_steps.applies(plan.composition, self.choices(plan.tuning))

    def near_epsilon(self, plan: Plan, epsilon: float) -> Iterator[BoundedProfile]:
        from dptally.accounting.certified.lattice import decisive as few_steps

        guess = plan.chernoff_log_delta(epsilon)
        found = few_steps.for_epsilon(plan.composition, epsilon, guess, self.choices(plan.tuning))
        if found is not None:
            yield found

    def near_delta(self, plan: Plan, target: LogTarget) -> Iterator[BoundedProfile]:
        from dptally.accounting.certified.lattice import decisive as few_steps

        guess = plan.chernoff_epsilon(target.low)
        found = few_steps.for_delta(plan.composition, target.low, guess, self.choices(plan.tuning))
        if found is not None:
            yield found


class LatticeAtOnce(DecisiveLattice):
    """The same before the longer contours, where rare large losses make these long: one lattice, if sharp at once."""

    def choices(self, tuning: Tuning) -> DecidingTuning:
        return tuning.at_once

    def applies(self, plan: Plan) -> bool:
        return 1 < plan.steps <= plan.tuning.routes.few_steps and plan.cuttable and super().applies(plan)


class TiltedLattice(_EndsOnly):
    name = "tilted lattice"
    theorem = "two lattice measures whose profiles enclose the law's (docs/certificates-lattice.md)"

    def sharp(self, tuning: Tuning) -> float:
        return tuning.routes.sharp_lattice

    def near_epsilon(self, plan: Plan, epsilon: float) -> Iterator[BoundedProfile]:
        from dptally.accounting.certified.lattice import bracket as lattice

        yield AtOneEpsilon(epsilon, *lattice.log_delta(plan.composition, epsilon, plan.tuning.lattice))

    def epsilon(self, plan: Plan, target: LogTarget) -> Iterator[Ends]:
        from dptally.accounting.certified.lattice import bracket as lattice

        yield Ends(*lattice.epsilon(plan.composition, target[:2], plan.tuning.lattice))


class BasicComposition(_EndsOnly):
    """No plan is safer than one of its steps, and epsilons add up where each of the N steps gets delta / N.

    One step j alone has delta_j(eps) = p_j + (its finite part), the whole plan no less: so the lower end compares the
    whole delta with p_j and not with the plan's own mass at infinity, which is larger. For the upper end let
    (P_j - e^{eps_j} Q_j)+ have mass delta_j, finite losses only; with M = min(P_1, e^{eps_1} Q_1) <= P_1,

        P_1 P_2 - e^{eps_1 + eps_2} Q_1 Q_2 <= (P_1 - M) P_2 + M (P_2 - e^{eps_2} Q_2),

    whose positive part is at most delta_1 + delta_2, since P_1 and P_2 have at most mass one.
    """

    name: ClassVar[str] = "basic composition"
    theorem = "Dwork, Kenthapadi, McSherry, Mironov, Naor 2006, for measures of finite losses"

    def near_epsilon(self, plan: Plan, epsilon: float) -> Iterator[BoundedProfile]:
        """One step alone, where no loss is infinite: delta is all finite then."""
        if plan.infinity_mass.upper == 0:
            yield AtOneEpsilon(epsilon, max(closed.log_delta(law, epsilon)[0] for law, _ in plan.parts), 0.0)

    def epsilon(self, plan: Plan, target: LogTarget) -> Iterator[Ends]:
        alone = [0.0]
        for law, _ in plan.parts:
            most = target.delta - law.infinity_mass_interval.lower
            if most > 0:
                log_most = log_interval(up(most))[1]
                alone.append(closed.epsilon(law, (log_most, log_most))[0])
        share = down(target.low - up(math.log(plan.steps), 2), 2)
        with np.errstate(all="ignore"):
            parts = [up(n * closed.epsilon(law, (share, share))[1]) for law, n in plan.parts]
        total = math.fsum(parts) if all(math.isfinite(part) for part in parts) else math.inf
        yield Ends(max(alone), up(total, 2) if math.isfinite(total) else math.inf)


_EARLY_EXITS: tuple[Route, ...] = (TotalVariation(), Vanishing())
_SUMS: tuple[Route, ...] = (BinomialSum(), EvenContour(), Enumeration(), Contour())
_CONTOURS: tuple[Route, ...] = (LatticeAtOnce(), SwappedPair(), BigJump(), SmoothedContour())
_LAST: tuple[Route, ...] = (FewBeside(), DecisiveLattice(), TiltedLattice(), BasicComposition(), Chernoff())

#: one look at each law comes before all sums: at the smallest deltas the answer is the largest loss of all
_FIRST: tuple[Route, ...] = (StopBelow(), OneStep(), NearSupremum(), *_SUMS)

ROUTES: tuple[Route, ...] = (*_FIRST, *_EARLY_EXITS, *_CONTOURS, *_LAST)
#: one look at each of many different laws takes as long as the smoothed contour: it comes first then
_MANY_LAWS: tuple[Route, ...] = (StopBelow(), OneStep(), *_SUMS, *_CONTOURS, NearSupremum(), *_EARLY_EXITS, *_LAST)


_QUICK: tuple[Route, ...] = (*_FIRST, *_EARLY_EXITS, *_CONTOURS, Chernoff())


def in_order(plan: Plan) -> tuple[Route, ...]:
    """The routes in the order in which this plan asks them; all of them, whatever the order, unless in a hurry."""
    if plan.quick:
        return _QUICK
    return _MANY_LAWS if len(plan.parts) >= plan.tuning.routes.many_laws and not plan.cuttable else ROUTES
