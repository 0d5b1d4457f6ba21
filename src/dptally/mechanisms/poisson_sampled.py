"""Poisson sampling: every record is included independently, then the mechanism runs on the sample."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType, Unanswerable
from dptally.law import Law
from dptally.law.adjacency import ADD_REMOVE, REPLACE, Adjacency, Direction
from dptally.law.validity import is_listed
from dptally.laws.pairs import Stated
from dptally.mechanisms.assumption import Assumption, joined
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared, shipped
from dptally.numerics.exact import between

__all__ = ["PoissonSampled"]

_SAMPLING = "sampling: every record is included independently in every step, rate {}; not shuffled batches"
_SMALLEST_RATE = 1e-100  # its square, which K is about, is still a normal double
_FEW_OUTCOMES, _MANY_OUTCOMES = 1 << 13, 1 << 16  # listed to sixty digits under ADD_REMOVE, under REPLACE


def _example() -> dict[str, object]:
    from dptally.mechanisms.gaussian import Gaussian

    return {"mechanism": Gaussian(1.0), "rate": 0.1}


@declared(
    section="sampling",
    plan="poisson",
    example=_example,
    zero=("rate",),
    refuses={"rate": (1.5, 1e-101), "mechanism": (1.0, None, "gaussian")},
)
@dataclass(frozen=True, slots=True, repr=False)
class PoissonSampled(Mechanism):
    """Run ``mechanism`` on a sample that each record joins independently with probability ``rate``.

    ADD_REMOVE: the mechanism's guarantee is for one record present or absent, and the theorem is that of
    Zhu, Dong, Wang 2022 (Thm. 11), for anything with a dominating pair. REPLACE: ``sensitivity`` bounds the
    contribution of ONE record, and a declared guarantee is still the one for a record present or absent;
    the theorem is in docs/sampling.md, for Gaussian and Laplace noise and for losses of finitely many
    values.

    >>> from dptally.mechanisms.gaussian import Gaussian
    >>> PoissonSampled(Gaussian(sigma=1.0), rate=0.01)
    PoissonSampled(mechanism=Gaussian(sigma=1.0, sensitivity=1.0), rate=0.01, adjacency=ADD_REMOVE)
    """

    mechanism: Mechanism
    rate: float
    adjacency: Adjacency = ADD_REMOVE
    json_name: ClassVar[str] = "poisson_sampled"

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise InvalidType("mechanism", "a mechanism", self.mechanism)
        object.__setattr__(self, "rate", checks.probability("rate", self.rate))
        if 0 < self.rate < _SMALLEST_RATE:
            raise InvalidArgument("rate", f"0 or between {_SMALLEST_RATE} and 1", self.rate)
        if not isinstance(self.adjacency, Adjacency):
            raise InvalidType("adjacency", "ADD_REMOVE or REPLACE", self.adjacency)
        if isinstance(self.mechanism, PoissonSampled) and self.mechanism.adjacency is not self.adjacency:
            raise InvalidArgument(
                "adjacency",
                f"that of the sampled mechanism inside, {self.mechanism.adjacency!r}",
                self.adjacency,
            )

    @property
    def parts(self) -> tuple[tuple[Mechanism, int], ...]:
        """At rate 1 everybody is in the sample, and under ADD_REMOVE the mechanism is the one inside."""
        return self.mechanism.parts if self.rate == 1.0 and self.adjacency is ADD_REMOVE else ((self, 1),)

    def assumptions(self) -> tuple[Assumption, ...]:
        return joined(
            (
                *self.mechanism.assumptions(),
                Assumption("adjacency", "adjacency where sampling mixes datasets: {}", (repr(self.adjacency),)),
                Assumption("sampling", _SAMPLING, (self.rate,)),
            )
        )

    def theorems(self) -> tuple[str, ...]:
        """The sampling's theorem, and what the author of a mechanism from outside states."""
        outside = () if shipped(type(self.mechanism)) else self.mechanism.theorems()
        return tuple(dict.fromkeys((*Mechanism.theorems(self), *outside)))

    def unsampled(self) -> Mechanism:
        """At rate 1, which reveals at least as much: H_a(P, Q) is jointly convex in (P, Q)."""
        return self if self.rate == 1.0 else replace(self, rate=1.0)

    def keeps_tail(self) -> bool:
        """Under ADD_REMOVE: delta_q(eps) = q delta(eps') with eps' - eps -> log(1/q)."""
        return self.rate == 1.0 or self.adjacency is ADD_REMOVE

    def laws(self) -> tuple[Law, ...]:
        return _laws(self._innermost(), self.exact_rate, self.adjacency) if self.rate > 0 else ()

    def laws_below(self) -> tuple[Law, ...] | None:
        """Nothing is known from below on a sample where the laws of the mechanism inside only bound it."""
        return () if any(part.laws_below() is not None for part, _ in self.mechanism.parts) else None

    def why_wide(self) -> str:
        return "on a sample: an upper bound only"

    @property
    def exact_rate(self) -> Fraction:
        """A record that must pass several coins passes with the product of their rates."""
        inside, rate = self.mechanism, Fraction(self.rate)
        if isinstance(inside, PoissonSampled):
            rate *= inside.exact_rate
        if rate and float(rate) < _SMALLEST_RATE:
            raise InvalidArgument("rate", f"0 or between {_SMALLEST_RATE} and 1, nested rates multiplied", float(rate))
        return rate

    def _innermost(self) -> PoissonSampled:
        return self.mechanism._innermost() if isinstance(self.mechanism, PoissonSampled) else self

    def grouped(self, size: int) -> Mechanism:
        """Gaussian noise: the mixture over how many of them are in the sample, exact [Ganesh 2024, arXiv 2401.10294].

        Otherwise the mechanism's own group at the rate 1 - (1 - rate)^size at which any of them is in the sample. Given
        that some are, the output is a mixture over which of them, each within the group's guarantee; and
        H_a((1 - w) Q + w P', Q) is convex in P'.
        """
        from dptally.mechanisms.gaussian import Gaussian
        from dptally.mechanisms.mixture_of_gaussians import binomial_mixture

        if self.adjacency is ADD_REMOVE and isinstance(self.mechanism, Gaussian) and 0 < self.rate < 1:
            return binomial_mixture(self.mechanism.sigma, self.mechanism.sensitivity, self.rate, size)
        inside = self.mechanism.group(size)
        alone = sum(n for _, n in inside.parts) == 1
        if self.adjacency is not ADD_REMOVE or not alone or self.rate == 0.0:
            return Mechanism.grouped(self, size)
        return PoissonSampled(inside, between(1 - (1 - Fraction(self.rate)) ** size)[1])

    def _inner(self) -> tuple[Law, ...]:
        """The one law of the mechanism inside, for each direction; none where it leaks nothing."""
        laws = []
        for composition in self.mechanism.directions():
            if not composition.parts:
                return ()
            if not composition.determined:
                raise Unanswerable(
                    f"sampling amplifies a privacy profile, and {self.mechanism!r} bounds divergences "
                    "only; sample what it stands for (Gaussian, Laplace, ...), or state it first as "
                    "ApproxDP(epsilon, delta) or GaussianDP(mu)"
                )
            if len(composition.parts) != 1 or composition.parts[0][1] > 1:
                raise Unanswerable(
                    f"several mechanisms on the same sample are not supported: {self.mechanism!r} has no "
                    "single loss in closed form; sample each part by itself, or state the whole as one "
                    "ApproxDP, GaussianDP or Profile guarantee"
                )
            laws.append(composition.parts[0][0])
        return tuple(laws)


def _laws(innermost: PoissonSampled, rate: Fraction, adjacency: Adjacency) -> tuple[Law, ...]:
    """The laws of what the innermost sampling samples, on a sample of this rate."""
    sides = innermost._inner()
    if rate == 0 or not sides:
        return ()
    if adjacency is REPLACE:
        return (_replace_law(sides, rate),)
    if rate == 1:
        return sides
    remove, add = sides[0], sides[-1]
    return tuple(
        _sampled_law(law, rate, side, other)
        for law, side, other in ((remove, Direction.REMOVE, add), (add, Direction.ADD, remove))
    )


def _sampled_law(law: Law, rate: Fraction, side: Direction, other: Law) -> Law:
    """One side under ADD_REMOVE: exactly where the losses are few, else by the profile of the law inside."""
    own = law.sampled(rate, side)
    if own is not None:
        return own
    if not shipped(type(law)) and not is_listed(law):
        raise Unanswerable(
            f"{type(law).__name__} states neither atoms nor a density, which sampling integrates; "
            "define Law.density, or Law.sampled for a closed form"
        )
    from dptally.laws.sampled.finite import sampled_law
    from dptally.laws.sampled.generic import SampledLaw

    pair = law.declared()
    found = None if pair is None or pair.size > _FEW_OUTCOMES else sampled_law(pair, rate, side)
    if found is not None:
        return found
    lower, upper = between(rate)
    return SampledLaw(law, upper, side, other.infinity_mass, None if lower == upper else lower)


def _replace_law(sides: tuple[Law, ...], rate: Fraction) -> Law:
    """The law under REPLACE: that of (P1, P0) decides, for both directions."""
    from dptally.laws.sampled.finite import replaced_law

    law, reverse = sides[0], sides[-1]
    own = law.sampled_replace(rate)
    if own is not None:
        return own
    pair = law.declared() or _stated(law, reverse)
    found = None if pair is None or pair.size > _MANY_OUTCOMES else replaced_law(pair, rate)
    if found is not None:
        return found
    raise Unanswerable(
        f"no dominating pair is known for a sampled {type(law).__name__} under REPLACE. Supported: Gaussian and Laplace"
        f" noise, and losses of at most {_MANY_OUTCOMES} values. Alternatively account under ADD_REMOVE and use "
        "(2 epsilon, (1 + e^epsilon) delta)"
    )


def _stated(law: Law, reverse: Law) -> Stated | None:
    """The atoms of a law from outside, where they are all of it."""
    listed = law.atoms() if math.isfinite(law.supremum) else ()
    complete = abs(math.fsum(mass for _, mass in listed) + law.infinity_mass - 1.0) < 1e-9
    return Stated(listed, law.infinity_mass, reverse.infinity_mass) if complete else None
