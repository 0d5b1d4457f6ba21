"""Correlated noise: Gaussian noise on a strategy's view of a stream (matrix mechanisms, DP-FTRL)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType, Unanswerable
from dptally.law import Law
from dptally.law.adjacency import ADD_REMOVE
from dptally.laws.gaussian import LARGEST_RATIO, SMALLEST_RATIO, GaussianLaw
from dptally.matrices.toeplitz import DECREASING, PROJECTED
from dptally.mechanisms.assumption import Assumption
from dptally.mechanisms.gaussian import Gaussian
from dptally.mechanisms.matrices.dense_matrix import DenseMatrix
from dptally.mechanisms.matrices.participation import FixedBins, PoissonParts, RandomParticipation
from dptally.mechanisms.matrices.strategy import (
    Participation,
    Sensitivity,
    Strategy,
    certified_sensitivity,
    checked_participation,
    entries,
)
from dptally.mechanisms.matrices.toeplitz_matrix import Toeplitz
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared
from dptally.mechanisms.sampling.cyclic import Cyclic
from dptally.numerics.exact import between

__all__ = ["MatrixMechanism"]

_ONE_GAUSSIAN = "Denisov et al. 2022, Thm. 2.1 (adaptive streams: one Gaussian of the strategy's sensitivity)"


def _example() -> dict[str, object]:
    return {"strategy": Toeplitz((1.0, 0.5, 0.375), 6), "sigma": 2.0, "participation": (2, 3)}


@declared(
    section="matrices",
    plan="matrix",
    aliases=("matrix_mechanism",),
    example=_example,
    refuses={
        "strategy": (1.0, None, "a", (1.0, 2.0)),
        "participation": (0, 2, (1,), (0, 1), (1, 0), 1.5, "once", None),
    },
)
@dataclass(frozen=True, slots=True, repr=False)
class MatrixMechanism(Mechanism):
    """Release C x + z, z ~ N(0, sigma^2), for a stream x of steps in which records of norm at most 1 take part.

    ``strategy`` C: a matrix, ``Toeplitz``, ``Banded``, ``BandedInverse``, ``BufferedToeplitz`` or ``BinaryTree``. What
    follows from C x + z, such as x + C^-1 z or B (C x + z), costs nothing more. ``participation``: 1 (once), (k, b) (at
    most k times, at least b steps apart), ``Cyclic(b)`` (every b-th step); or at random, ``PoissonParts``,
    ``FixedBins``. Without chance it is one Gaussian(sigma, sensitivity(strategy, participation)) [Denisov et al. 2022].

    >>> mechanism = MatrixMechanism(Toeplitz([1.0, 0.5], steps=100), sigma=2.0, participation=(4, 25))
    >>> mechanism.sensitivity.upper, mechanism.epsilon(1e-6) == Gaussian(2.0, mechanism.sensitivity.upper).epsilon(1e-6)
    (2.2360679774997902, True)
    """

    strategy: Strategy
    sigma: float
    participation: Participation
    json_name: ClassVar[str] = "matrix_mechanism"

    def __post_init__(self) -> None:
        if not isinstance(self.strategy, Strategy):
            if isinstance(self.strategy, Mechanism):
                raise InvalidType(
                    "strategy", "a matrix or a strategy such as Toeplitz(coefficients, steps)", self.strategy
                )
            object.__setattr__(self, "strategy", DenseMatrix(entries("strategy", self.strategy, 2)))  # pyright: ignore[reportArgumentType]  # which reads arrays
        object.__setattr__(self, "sigma", checks.positive("sigma", self.sigma))
        object.__setattr__(self, "participation", checked_participation(self.participation))
        norm = self._norm()
        if norm > 0 and not SMALLEST_RATIO <= norm / self.sigma <= LARGEST_RATIO:
            asked = f"such that sensitivity / sigma is between {SMALLEST_RATIO} and {LARGEST_RATIO}"
            raise InvalidArgument("sigma", asked, norm / self.sigma)

    def _norm(self) -> float:
        """The sensitivity that the noise of one unit stands against, rounded up."""
        if isinstance(self.participation, RandomParticipation):
            return self.participation.norm(self.strategy)
        return self.sensitivity.upper

    @property
    def sensitivity(self) -> Sensitivity:
        """How far a record moves C x, between bounds; refused where its steps are drawn at random."""
        return certified_sensitivity(self.strategy, self.participation)

    @property
    def parts(self) -> tuple[tuple[Mechanism, int], ...]:
        """One Gaussian, or the sampled steps it is dominated by, each as a strategy of one step."""
        if not isinstance(self.participation, PoissonParts) or self.strategy.length == 1:
            return ((self, 1),)
        norm = self._norm()
        if norm == 0:
            return ()
        unit = MatrixMechanism(Toeplitz((norm,), 1), self.sigma, self.participation.alone())
        return ((unit, self.participation.units(self.strategy)),)

    def laws(self) -> tuple[Law, ...]:
        norm = self._norm()
        if norm == 0:
            return ()
        noise = Gaussian(self.sigma, norm)
        if not isinstance(self.participation, RandomParticipation):
            return noise.laws()
        if self.participation.units(self.strategy) > 1:
            raise InvalidType("mechanism", "one step (several have one law for each of their parts)", self)
        return self.participation.laws(noise)

    def laws_below(self) -> tuple[Law, ...] | None:
        if isinstance(self.participation, RandomParticipation):
            return ()
        found = self.sensitivity
        if found.lower == found.upper:
            return None
        ratio = Fraction(found.lower) / Fraction(self.sigma)
        return (GaussianLaw.of_variance(ratio**2),) if ratio >= SMALLEST_RATIO else ()

    def why_wide(self) -> str:
        if isinstance(self.participation, RandomParticipation):
            return "an upper bound; nothing is claimed from below"
        return "the sensitivity is between two bounds"

    def theorems(self) -> tuple[str, ...]:
        if isinstance(self.participation, RandomParticipation):
            inside = (law.theorem for law in self.parts[0][0].laws()) if self.parts else ()
            return tuple(dict.fromkeys((self.participation.theorem, *inside)))
        found = self.sensitivity
        whose = "Kalinin, Lampert 2024, Thm. 2: " if found.why in (DECREASING, PROJECTED) else ""
        kind = "exact" if found.exact else f"an upper bound, at least {found.lower:.6g} is attained"
        said = f"sensitivity {found.upper:.6g} ({kind}): {whose}{found.why}"
        return (_ONE_GAUSSIAN, said, GaussianLaw.theorem)

    def assumptions(self) -> tuple[Assumption, ...]:
        out = [
            Assumption(
                "sensitivity",
                "sensitivity: a neighbouring dataset changes the input of a step by a vector of norm at most 1 "
                "(not checked)",
            ),
            Assumption(
                "other",
                "stream: a row of C x + z is released no sooner than the last step that it uses; then later inputs may "
                "depend on earlier outputs",
            ),
        ]
        if isinstance(self.participation, RandomParticipation):
            return (
                *out,
                Assumption("adjacency", "adjacency where sampling mixes datasets: {}", (repr(ADD_REMOVE),)),
                Assumption("sampling", f"{self.participation.assumption} ({{}})", (repr(self.participation),)),
            )
        text = "participation: no record takes part in other steps than {} allows (not checked)"
        return (*out, Assumption("other", text, (repr(self.participation),)))

    def noise_parameter(self) -> str | None:
        return "sigma"

    def unsampled(self) -> Mechanism:
        """Steps that an attacker knows, which reveals at least as much."""
        given = self.participation
        if isinstance(given, PoissonParts):
            return self if given.rate == 1.0 else replace(self, participation=replace(given, rate=1.0))
        return replace(self, participation=Cyclic(given.bins)) if isinstance(given, FixedBins) else self

    def keeps_tail(self) -> bool:
        """As for Poisson sampling of one Gaussian step."""
        return not isinstance(self.participation, RandomParticipation) or isinstance(self.participation, PoissonParts)

    def grouped(self, size: int) -> Mechanism:
        """``size`` records, each in steps of its own, move C x by at most size times as much."""
        if isinstance(self.participation, RandomParticipation):
            raise Unanswerable(
                f"groups of records are not answered for {type(self.participation).__name__}: no theorem covers them; "
                "they are for a participation that is not random"
            )
        norm = self._norm()
        return self if norm == 0 else Gaussian(self.sigma, between(size * Fraction(norm))[1])

    def parameters(self) -> dict[str, Any]:
        return {"strategy": self.strategy, "sigma": self.sigma, "participation": self.participation}
