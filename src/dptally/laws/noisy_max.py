r"""Noisy maximum with Laplace or exponential noise, and permute-and-flip: one Laplace pair for each use."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dptally.errors import Unanswerable
from dptally.law import Law
from dptally.law.adjacency import Direction
from dptally.law.ball import BallLoss
from dptally.laws.laplace import LaplaceLaw
from dptally.laws.pairs import Outcome, Outcomes
from dptally.laws.two_point import two_point_law
from dptally.numerics.decimals import LARGEST, exact, expm1, sixty_digits

__all__ = ["Contest", "NoisyMaxLaw"]


@dataclass(frozen=True, slots=True)
class Contest:
    """Two candidates whose scores differ by half of what a neighbour moves them: the favourite is exchanged.

    In units of the noise's scale, with x = reach / 2, it loses with probability e^{-x} / 2 under exponential noise,
    e^{-x} (2 + x) / 4 under Laplace noise.
    """

    reach: Fraction
    exponential: bool

    @property
    def size(self) -> int:
        return 2

    def turned(self) -> Contest:
        """The same in both directions."""
        return self

    def outcomes(self) -> Outcomes | None:
        if self.reach > LARGEST:
            return None
        with sixty_digits():
            x = exact(self.reach) / 2
            power = (-x).exp()
            loses = power / 2 if self.exponential else power * (2 + x) / 4
            surplus = -expm1(-x) if self.exponential else -expm1(-x) - power * x / 2  # 1 - 2 P(loses)
            wins = Outcome(1 - loses, loses, surplus / loses)
        return Outcomes((wins.mirrored(), wins))


@dataclass(frozen=True, slots=True)
class NoisyMaxLaw(LaplaceLaw):
    """The Laplace pair of ratio 2 sensitivity / scale (half of it for monotone scores) dominates one use.

    Any noise whose hazard rate is at most 1 / scale: exponential, Laplace, Gumbel (docs/selection.md, theorem 5).
    With exponential noise, and so for permute-and-flip, each delta of one use is attained, by two candidates. Several
    uses are dominated by the product of the pairs and need not attain it: lower ends are those of a contest between
    two candidates, which is attained any number of times.
    """

    exponential: bool = True
    theorem: ClassVar[str] = (
        "Ding et al. 2021, The permute-and-flip mechanism is identical to report-noisy-max with exponential noise; "
        "McKenna, Sheldon 2020 (the mechanism); the Laplace pair: docs/selection.md, theorem 5"
    )

    @property
    def attained_once(self) -> bool:
        return self.exponential

    def _contest(self) -> Contest:
        return Contest(Fraction(self.reach_lower), self.exponential)

    def optimistic(self) -> Law:
        found = two_point_law(self._contest())
        assert found is not None  # the mechanisms refuse ratios beyond what sixty digits are good for
        return found

    def ball(self, count: int) -> BallLoss | None:
        return LaplaceLaw.ball(self, count) if count == 1 and self.exponential else None

    def sampled(self, rate: Fraction, direction: Direction) -> Law:
        from dptally.laws.bounded_range.sampled import sampled_selection

        return sampled_selection(self, rate, direction, self._contest())

    def sampled_replace(self, rate: Fraction) -> Law:
        del rate
        raise Unanswerable(
            "no theorem covers selection on samples under REPLACE; account under ADD_REMOVE and use "
            "(2 epsilon, (1 + e^epsilon) delta), or run it without sampling"
        )
