"""Permute-and-flip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dptally.law import Law
from dptally.laws.noisy_max import NoisyMaxLaw
from dptally.mechanisms.assumption import Assumption
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared
from dptally.mechanisms.selection.shared import SCORES, checked_range, grown

__all__ = ["PermuteAndFlip"]


@declared(section="selection", plan="permute_and_flip", example={"epsilon": 0.5}, zero=("epsilon",))
@dataclass(frozen=True, slots=True, init=False, repr=False)
class PermuteAndFlip(Mechanism):
    """Go through the candidates in random order and stop at one with probability exp(epsilon (q_i - q_max) / (2
    sensitivity)).

    [McKenna, Sheldon 2020] The same as report noisy max with exponential noise of scale 2 sensitivity / epsilon
    [Ding et al. 2021]. One use costs one Laplace pair of ratio epsilon, exactly. It has **no** bounded range: the
    epsilon^2/8-zCDP of the exponential mechanism does not hold (its rho is nearly four times that).

    >>> PermuteAndFlip(0.5).epsilon(0.0)
    0.5
    """

    declared_epsilon: float
    json_name: ClassVar[str] = "permute_and_flip"

    def __init__(self, epsilon: float) -> None:
        object.__setattr__(self, "declared_epsilon", checked_range("epsilon", epsilon))

    def assumptions(self) -> tuple[Assumption, ...]:
        return (SCORES,)

    def laws(self) -> tuple[Law, ...]:
        epsilon = self.declared_epsilon
        return (NoisyMaxLaw(epsilon, epsilon),) if epsilon > 0 else ()

    def grouped(self, size: int) -> PermuteAndFlip:
        """``size`` records move a score by at most size * sensitivity: exact."""
        return PermuteAndFlip(grown(self.declared_epsilon, size))
