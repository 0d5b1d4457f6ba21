"""What somebody claims: an epsilon at a delta for a run, with what was said and what was not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dptally import checks
from dptally.mechanisms import Mechanism
from dptally.opinion.settings import Settings

__all__ = ["Claim", "Claimed"]


@dataclass(frozen=True, slots=True)
class Claimed:
    """The two numbers of a claim."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        epsilon = checks.real("epsilon", self.epsilon)
        object.__setattr__(
            self, "epsilon", epsilon if epsilon == float("inf") else checks.nonnegative("epsilon", epsilon)
        )
        object.__setattr__(self, "delta", checks.probability("delta", self.delta))

    def __iter__(self) -> Iterator[float]:
        yield self.epsilon
        yield self.delta


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim ready to be judged.

    ``plan`` is None where the run is not described; then ``questions`` lists what must be asked. ``assumed`` lists
    what was not said and is taken as named there; nothing else is assumed.
    """

    claimed: Claimed
    plan: Mechanism | None
    accountant: str = ""
    source: str = ""
    settings: Settings | None = None
    assumed: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
