"""Poisson sampling: every record joins the sample by its own coin, then the mechanism runs on the sample."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType, Unanswerable
from dptally.law import Law
from dptally.law.adjacency import ADD_REMOVE, REPLACE, Adjacency, Direction
from dptally.laws.gaussian import GaussianLaw
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from dptally.mechanisms.assumption import Assumption, joined
from dptally.mechanisms.gaussian import Gaussian
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared, shipped
from dptally.numerics.exact import between

__all__ = ["PoissonSampled"]

_SAMPLING = "sampling: every record is included independently in every step, rate {}; not shuffled batches"
_SMALLEST_RATE = 1e-100  # its square, which K is about, is still a normal double


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
        if self.rate == 0.0:
            return ()
        if isinstance(self.mechanism, PoissonSampled):
            return self._flattened(self.mechanism).laws()
        sides = self._inner()
        if not sides:
            return ()
        if self.adjacency is REPLACE:
            return (_replace_law(sides, self.rate, self._sigma(sides[0])),)
        if self.rate == 1.0:
            return sides
        remove, add = sides[0], sides[-1]
        if isinstance(remove, GaussianLaw):
            sigma = self._sigma(remove)
            return tuple(SampledGaussianLaw(self.rate, sigma, side) for side in (Direction.REMOVE, Direction.ADD))
        from dptally.laws.sampled.generic import SampledLaw

        return (
            SampledLaw(remove, self.rate, Direction.REMOVE, add.infinity_mass),
            SampledLaw(add, self.rate, Direction.ADD, remove.infinity_mass),
        )

    def _flattened(self, inside: PoissonSampled) -> PoissonSampled:
        """A record passes both coins with the product of the rates (rounded up: more sampling tells more)."""
        rate = between(Fraction(self.rate) * Fraction(inside.rate))[1]
        return PoissonSampled(inside.mechanism, rate, self.adjacency)

    def _inner(self) -> tuple[Law, ...]:
        """The one law of the mechanism inside, for each side; none where it leaks nothing."""
        laws = []
        for composition in self.mechanism.directions():
            if not composition.parts:
                return ()
            if not composition.determined:
                raise Unanswerable(
                    f"sampling amplifies a privacy profile, and {self.mechanism!r} bounds Renyi divergences "
                    "only; sample what it stands for (Gaussian, Laplace, ...), or state it first as "
                    "ApproxDP(epsilon, delta) or GaussianDP(mu)"
                )
            if len(composition.parts) > 1 or composition.parts[0][1] > 1:
                raise Unanswerable(
                    f"one sample used by several mechanisms is not answered: {self.mechanism!r} has no "
                    "single loss in closed form; sample each part by itself, or state the whole as one "
                    "ApproxDP, GaussianDP or Profile guarantee"
                )
            laws.append(composition.parts[0][0])
        return tuple(laws)

    def _sigma(self, law: Law) -> float:
        """Noise per unit of one record's contribution, rounded down (less tells more); 0 if not Gaussian."""
        if isinstance(self.mechanism, Gaussian):
            return between(Fraction(self.mechanism.sigma) / Fraction(self.mechanism.sensitivity))[0]
        if isinstance(law, GaussianLaw):
            return math.nextafter(1.0 / law.mu, 0.0)
        return 0.0

    def grouped(self, size: int) -> Mechanism:
        """``size`` records, each in the sample by its own coin: exact for Gaussian noise [Ganesh 2024, arXiv
        2401.10294].
        """
        from dptally.mechanisms.mixture_of_gaussians import binomial_mixture

        if isinstance(self.mechanism, Gaussian) and self.adjacency is ADD_REMOVE:
            if self.rate in (0.0, 1.0):
                return PoissonSampled(Gaussian(self.mechanism.sigma, size * self.mechanism.sensitivity), self.rate)
            return binomial_mixture(self.mechanism.sigma, self.mechanism.sensitivity, self.rate, size)
        raise Unanswerable(
            f"groups of records of {self!r} are not answered: the exact pair is known for Gaussian noise under "
            f"ADD_REMOVE"
        )


def _replace_law(sides: tuple[Law, ...], rate: float, sigma: float) -> Law:
    """The law under REPLACE: that of (P1, P0) decides, for both directions."""
    from dptally.laws.laplace import LaplaceLaw
    from dptally.laws.sampled.atoms import sampled_replace_atoms
    from dptally.laws.sampled.gaussian.replace import SampledReplaceGaussianLaw
    from dptally.laws.sampled.laplace import SampledReplaceLaplaceLaw

    law, reverse = sides[0], sides[-1]
    if isinstance(law, GaussianLaw):
        if rate < 1.0:
            return SampledReplaceGaussianLaw(rate, sigma)
        return GaussianLaw(between(4 / Fraction(sigma) ** 2)[1])  # N(1/sigma, 1) against N(-1/sigma, 1)
    if isinstance(law, LaplaceLaw):
        if rate < 1.0:
            return SampledReplaceLaplaceLaw(rate, law.reach, law.reach_lower)
        return LaplaceLaw(2.0 * law.reach, 2.0 * law.reach_lower)
    listed = law.atoms() if math.isfinite(law.supremum) else ()
    if listed and abs(math.fsum(mass for _, mass in listed) + law.infinity_mass - 1.0) < 1e-9:
        return sampled_replace_atoms(law, rate, reverse.infinity_mass)
    if not listed and law.infinity_mass == 1.0:
        return law
    raise Unanswerable(
        f"no dominating pair is known for a sampled {type(law).__name__} under REPLACE; it is for Gaussian "
        "and Laplace noise and for losses of finitely many values. Under ADD_REMOVE it is: with epsilon "
        "doubled and delta (1 + e^epsilon)-fold that covers a replacement"
    )
