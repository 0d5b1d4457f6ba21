"""What a claim says in one number that an audit can contradict."""

from __future__ import annotations

import math

from dptally import checks
from dptally.audit.bounds import EpsilonMeasure, Measure, MuMeasure
from dptally.errors import InvalidArgument, InvalidType
from dptally.law import Composition
from dptally.mechanisms import Mechanism
from dptally.numerics.rounding import up

__all__ = ["measure_of"]

# for a claim with neither a pure epsilon, nor one delta, nor a mu: large enough to be seen in few runs
_DELTA = 0.01


def measure_of(claim: object, delta: float | None, quantity: str | None) -> tuple[Measure, float]:
    """The measure to audit and the value that the claim gives it, rounded up.

    By default: epsilon at delta 0 where the claim has a pure epsilon; epsilon at the claim's own delta where
    it has mass at infinity and a finite epsilon beside it; mu where it is known to be Gaussian DP; else
    epsilon at delta 0.01.
    """
    if not isinstance(claim, Mechanism):
        raise InvalidType("claim", "a mechanism, such as PureDP(1.0) or GaussianDP(0.5)", claim)
    if quantity not in (None, "epsilon", "mu"):
        raise InvalidArgument("quantity", "'epsilon' or 'mu'", quantity)
    directions = claim.directions()
    mu = max((_mu(d) for d in directions), default=0.0)
    if quantity == "mu" and not mu < math.inf:
        raise InvalidArgument(
            "claim", "known to be Gaussian DP to be audited for mu", claim, "audit epsilon at a delta"
        )
    if quantity is None and delta is None and mu < math.inf and not _bounded(directions):
        quantity = "mu"
    if quantity == "mu":
        return MuMeasure(), mu
    measure = EpsilonMeasure(_own_delta(directions) if delta is None else checks.probability("delta", delta))
    return measure, _epsilon(claim, directions, measure.delta)


def _own_delta(directions: tuple[Composition, ...]) -> float:
    """The mass at infinity, rounded up, where every finite loss is bounded; else one that few runs can see."""
    if not _bounded(directions):
        return _DELTA
    at_infinity = max((d.infinity_mass for d in directions), default=0.0)
    return min(1.0, up(at_infinity)) if at_infinity > 0 else 0.0


def _bounded(directions: tuple[Composition, ...]) -> bool:
    """Whether every finite loss is bounded: pure DP, or (epsilon, delta)-DP as declared."""
    return all(d.supremum < math.inf for d in directions)


def _epsilon(claim: Mechanism, directions: tuple[Composition, ...], delta: float) -> float:
    bound = max((d.supremum for d in directions), default=0.0)
    if bound < math.inf and max((d.infinity_mass for d in directions), default=0.0) <= delta:
        # the largest finite loss bounds epsilon at such a delta; the certified answer is never larger than it
        return bound if delta == 0 else min(bound, claim.epsilon(delta))
    return claim.epsilon(delta)


def _mu(direction: Composition) -> float:
    """Gaussian DP composes as the root of the sum of squares.  [Dong, Roth, Su 2022, Cor. 3.3]"""
    if direction.infinity_mass > 0:
        return math.inf
    squares = [n * law.gaussian_mu() ** 2 for law, n in direction.parts]
    single = len(squares) == 1 and direction.parts[0][1] == 1
    return direction.parts[0][0].gaussian_mu() if single else up(math.sqrt(math.fsum(squares)), 4)
