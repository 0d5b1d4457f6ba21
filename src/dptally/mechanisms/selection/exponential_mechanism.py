"""The exponential mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dptally.law import Law
from dptally.mechanisms.assumption import Assumption
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared
from dptally.mechanisms.selection.shared import SCORES, bounded_range, checked_range, grown

__all__ = ["ExponentialMechanism"]


@declared(
    section="selection",
    plan="exponential",
    aliases=("exponential_mechanism", "em"),
    example={"epsilon": 0.5},
    zero=("epsilon",),
)
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ExponentialMechanism(Mechanism):
    """Choose candidate i with probability proportional to exp(epsilon q_i / (2 sensitivity)), q_i its score.

    The same as adding Gumbel noise of scale 2 sensitivity / epsilon and naming the largest. Its losses span at most
    epsilon ("bounded range"), which is more than epsilon-DP says: several uses, also adaptively chosen, cost what the
    recursion of docs/selection.md says, and at most epsilon^2/8-zCDP each.

    >>> ExponentialMechanism(0.1).rho() == 0.1**2 / 8
    True
    >>> (100 * ExponentialMechanism(0.1)).epsilon(1e-6) < 2.2512
    True
    """

    declared_epsilon: float
    json_name: ClassVar[str] = "exponential_mechanism"

    def __init__(self, epsilon: float) -> None:
        object.__setattr__(self, "declared_epsilon", checked_range("epsilon", epsilon))

    def assumptions(self) -> tuple[Assumption, ...]:
        return (SCORES,)

    def laws(self) -> tuple[Law, ...]:
        return bounded_range(self.declared_epsilon)

    def grouped(self, size: int) -> ExponentialMechanism:
        """``size`` records move a score by at most size * sensitivity: exact."""
        return ExponentialMechanism(grown(self.declared_epsilon, size))
