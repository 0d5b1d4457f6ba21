"""Gaussian noise on a query whose change is random: a record, a user or a group that joins by chance."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType
from dptally.law import Law
from dptally.law.adjacency import ADD_REMOVE, Adjacency, Direction
from dptally.laws.gaussian import GaussianLaw
from dptally.laws.mixture.law import MixtureLaw
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from dptally.mechanisms.assumption import Assumption
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared
from dptally.numerics.exact import between

__all__ = ["MixtureOfGaussians", "binomial_mixture"]

_MOST = 2000  # different sensitivities
_SMALLEST, _LARGEST = 1e-14, 1e4  # sensitivity / sigma: below, the losses are lost in the rounding of 1 + loss


@declared(
    section="noise",
    plan="mixture_of_gaussians",
    aliases=("mog",),
    example={"sigma": 1.0, "sensitivities": (0.0, 1.0, 2.0), "probabilities": (0.2, 0.6, 0.2)},
)
@dataclass(frozen=True, slots=True)
class MixtureOfGaussians(Mechanism):
    """With probability ``probabilities[j]`` the query changes by ``sensitivities[j]`` (>= 0, L2), then N(0, sigma^2)
    is added.

    Remove: sum_j p_j N(c_j, sigma^2) against N(0, sigma^2); add: the reverse. Vectors by their norms [Choquette-Choo
    et al.
    2023, arXiv 2310.15526, Cor. 4.7]; a group of k under Poisson sampling has c_j = j and p = Bin(k, q) [Ganesh 2024,
    arXiv
    2401.10294]. Proof in docs/batching.md.

    >>> one, other = MixtureOfGaussians(1.0, (0, 1), (0.5, 0.5)), MixtureOfGaussians(2.0, (0, 2, 3), (0.33, 0.34, 0.33))
    >>> round((3 * one + 2 * other).epsilon(1e-6), 4)
    11.2118
    """

    sigma: float
    sensitivities: tuple[float, ...]
    probabilities: tuple[float, ...]
    json_name: ClassVar[str] = "mixture_of_gaussians"
    adjacency: ClassVar[Adjacency] = ADD_REMOVE  # the pair is of one record, user or group more or less

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", checks.positive("sigma", self.sigma))
        for name in ("sensitivities", "probabilities"):
            object.__setattr__(self, name, _listed(name, getattr(self, name)))
        sizes = tuple(checks.nonnegative("sensitivities", one) for one in self.sensitivities)
        chances = tuple(checks.probability("probabilities", one) for one in self.probabilities)
        if not 1 <= len(sizes) <= _MOST:
            raise InvalidArgument("sensitivities", f"1 to {_MOST} numbers", len(sizes))
        if len(sizes) != len(chances):
            raise InvalidArgument("probabilities", f"as many as sensitivities, {len(sizes)}", len(chances))
        if not abs(math.fsum(chances) - 1.0) <= 1e-9:
            raise InvalidArgument("probabilities", "numbers that add up to 1", math.fsum(chances))
        if not max(sizes) / self.sigma <= _LARGEST:
            raise InvalidArgument("sensitivities / sigma", f"at most {_LARGEST}", max(sizes) / self.sigma)
        least = min((size for size in sizes if size > 0), default=self.sigma)
        if not least / self.sigma >= _SMALLEST:
            raise InvalidArgument(
                "sensitivities / sigma", f"0 or at least {_SMALLEST}", least / self.sigma, "state a larger bound"
            )
        object.__setattr__(self, "sensitivities", sizes)
        object.__setattr__(self, "probabilities", chances)

    def assumptions(self) -> tuple[Assumption, ...]:
        text = (
            "sensitivity: the change of each query is bounded by one of these sizes, with these "
            "probabilities (not checked)"
        )
        return (Assumption("sensitivity", text),)

    def noise_parameter(self) -> str | None:
        return "sigma"

    def _columns(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Shifts in units of the noise, increasing, and their probabilities, normalised; those of probability 0
        dropped.
        """
        weights: dict[Fraction, Fraction] = defaultdict(Fraction)
        for size, chance in zip(self.sensitivities, self.probabilities, strict=True):
            if chance > 0:
                weights[Fraction(size) / Fraction(self.sigma)] += Fraction(chance)
        total = sum(weights.values())
        ordered = sorted(weights.items())
        return tuple(float(shift) for shift, _ in ordered), tuple(float(weight / total) for _, weight in ordered)

    def laws(self) -> tuple[Law, ...]:
        shifts, weights = self._columns()
        if len(shifts) == 1:
            return () if shifts[0] == 0 else (GaussianLaw(math.nextafter(shifts[0] ** 2, math.inf)),)
        if len(shifts) == 2 and shifts[0] == 0.0 and weights[1] >= 1e-100:
            scale = math.nextafter(1.0 / shifts[1], 0.0)
            return tuple(SampledGaussianLaw(math.nextafter(weights[1], 1.0), scale, side) for side in Direction)
        return tuple(MixtureLaw(shifts, weights, side) for side in Direction)


def _listed(name: str, value: object) -> tuple[object, ...]:
    if isinstance(value, (str, bytes, bytearray, dict)):
        raise InvalidType(name, "a list of numbers", value)
    try:
        return tuple(value)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidType(name, "a list of numbers", value) from None


def binomial_mixture(sigma: float, sensitivity: float, rate: float, size: int) -> MixtureOfGaussians:
    """A group of ``size`` records, each in the sample with probability ``rate``: shifts 0, 1, .., size with Bin(size,
    rate).
    """
    if size > _MOST - 1:
        raise InvalidArgument("size", f"at most {_MOST - 1} records together", size)
    q = Fraction(rate)
    chances = [math.comb(size, j) * q**j * (1 - q) ** (size - j) for j in range(size + 1)]
    kept = [(j, float(chance)) for j, chance in enumerate(chances) if float(chance) > 0]
    if len(kept) < size + 1:
        raise InvalidArgument("rate", "large enough that the whole group joins with a probability above 1e-323", rate)
    sizes = tuple(between(j * Fraction(sensitivity))[1] for j, _ in kept)
    return MixtureOfGaussians(sigma, sizes, tuple(chance for _, chance in kept))
