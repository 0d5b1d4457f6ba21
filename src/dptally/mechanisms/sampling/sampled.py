"""A mechanism run on batches: which mechanism, which batches, for how long, and which datasets are neighbours."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType, Unanswerable
from dptally.law import Law
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.mechanisms.assumption import Assumption, joined
from dptally.mechanisms.composed import MOST_COPIES
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared
from dptally.mechanisms.sampling.sampler import Sampler, Step

__all__ = ["Sampled"]


def _example() -> dict[str, object]:
    from dptally.mechanisms.gaussian import Gaussian
    from dptally.mechanisms.sampling.fixed_size import FixedSize

    return {"mechanism": Gaussian(2.0), "sampler": FixedSize(10, 1000), "steps": 3}


@declared(
    section="sampling",
    plan="sampled",
    example=_example,
    zero=("steps",),
    refuses={"mechanism": (1.0, None), "sampler": (0.1, None)},
)
@dataclass(frozen=True, slots=True, repr=False)
class Sampled(Mechanism):
    """Run ``mechanism`` once on every batch that ``sampler`` draws, for that many ``steps`` or ``epochs``.

    Say the length once. Samplers that draw every batch afresh (Poisson, TruncatedPoisson, FixedSize) count steps; those
    that pass over the data count epochs, or steps in whole epochs. As in ``PoissonSampled``, ``sensitivity`` is the
    norm
    bound of one record's contribution; under REPLACE the change is twice that. What no theorem covers is refused.

    >>> from dptally.mechanisms.gaussian import Gaussian
    >>> from dptally.mechanisms.sampling.cyclic import Cyclic
    >>> Sampled(Gaussian(2.0), Cyclic(100), epochs=3).epsilon(1e-5) == (3 * Gaussian(2.0)).epsilon(1e-5)
    True
    """

    mechanism: Mechanism
    sampler: Sampler
    steps: int | None = None
    epochs: int | None = None
    adjacency: Adjacency = ADD_REMOVE
    json_name: ClassVar[str] = "sampled"

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise InvalidType("mechanism", "a mechanism", self.mechanism)
        if not isinstance(self.sampler, Sampler):
            raise InvalidType("sampler", "a sampler, such as Poisson(0.01) or BallsInBins(100)", self.sampler)
        if not isinstance(self.adjacency, Adjacency):
            raise InvalidType("adjacency", "ADD_REMOVE or REPLACE", self.adjacency)
        if (self.steps is None) == (self.epochs is None):
            raise InvalidArgument("steps, epochs", "exactly one of the two", (self.steps, self.epochs))
        for name in ("steps", "epochs"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checks.count(name, getattr(self, name)))
        if self._count() > MOST_COPIES:
            raise InvalidArgument("steps, epochs", "at most 2^53", self._count())

    def _count(self) -> int:
        """How many units of the sampler were run."""
        if self.sampler.unit == "steps":
            if self.steps is None:
                raise InvalidArgument(
                    "epochs", f"steps instead: {type(self.sampler).__name__} draws every batch afresh", self.epochs
                )
            return self.steps
        if self.epochs is not None:
            return self.epochs
        assert self.steps is not None
        length = self.sampler.steps_per_unit
        if self.steps % length:
            raise InvalidArgument(
                "steps", f"a multiple of the {length} steps of an epoch", self.steps, "or say epochs=, rounded up"
            )
        return self.steps // length

    @property
    def _unit(self) -> Sampled:
        if self.sampler.unit == "steps":
            return replace(self, steps=1, epochs=None)
        return replace(self, steps=None, epochs=1)

    @property
    def parts(self) -> tuple[tuple[Mechanism, int], ...]:
        """Units of the sampler, counted."""
        return ((self, 1),) if self._unit == self else ((self._unit, self._count()),)

    def parameters(self) -> dict[str, Any]:
        """The length as it was given: steps or epochs."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in given.items() if value is not None}

    def theorems(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(law.theorem for law in self._unit.laws() if law.theorem))

    def laws(self) -> tuple[Law, ...]:
        if self._count() == 0:
            return ()
        if self._count() > 1:
            raise InvalidType("mechanism", "one step or epoch (several have one law for each of their parts)", self)
        return self.sampler.laws(Step(self.mechanism), self.adjacency)

    def laws_below(self) -> tuple[Law, ...] | None:
        return self.sampler.laws_below(Step(self.mechanism), self.adjacency)

    def why_wide(self) -> str:
        return self.sampler.why()

    def assumptions(self) -> tuple[Assumption, ...]:
        return joined(
            (
                *self.mechanism.assumptions(),
                Assumption("adjacency", "adjacency where sampling mixes datasets: {}", (repr(self.adjacency),)),
                Assumption("sampling", f"{self.sampler.assumption} ({{}})", (repr(self.sampler),)),
            )
        )

    def unsampled(self) -> Mechanism:
        """Without sampling every record is in every step."""
        inside = self.mechanism.unsampled()
        return inside if self.adjacency is ADD_REMOVE else Step(inside).doubled().mechanism

    def noise_parameter(self) -> str | None:
        return None

    def grouped(self, size: int) -> Mechanism:
        """Several records together: exact for Poisson batches of Gaussian steps."""
        from dptally.mechanisms.poisson_sampled import PoissonSampled
        from dptally.mechanisms.sampling.poisson import Poisson

        if isinstance(self.sampler, Poisson):
            inside = PoissonSampled(self.mechanism, self.sampler.rate, self.adjacency).grouped(size)
            return self._count() * inside
        raise Unanswerable(
            f"groups of records on batches of {type(self.sampler).__name__} are not answered: no theorem covers them; "
            "they are for Poisson batches of Gaussian steps"
        )
