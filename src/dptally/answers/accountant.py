"""The account of a training loop: step, ask, save, go on."""

from __future__ import annotations

import json
from typing import Any

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType
from dptally.interval import Interval
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.mechanisms.composed import Composed
from dptally.mechanisms.json import from_json, to_json
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.training_runs import dpsgd

__all__ = ["Accountant"]


class Accountant:
    """Counts what was run; every answer is that of the plan so far. The state is plain JSON.

    >>> account = Accountant()
    >>> for _ in range(1000):
    ...     account.step(noise_multiplier=1.0, sample_rate=0.01)
    >>> round(account.epsilon(delta=1e-5), 6)
    1.828237
    """

    def __init__(self, plan: Mechanism | None = None) -> None:
        if plan is not None and not isinstance(plan, Mechanism):
            raise InvalidType("plan", "a mechanism", plan)
        self._counts: dict[Mechanism, int] = dict(plan.parts) if plan is not None else {}
        self._steps: dict[tuple[float, float, Adjacency], Mechanism] = {}

    def step(
        self,
        mechanism: Mechanism | None = None,
        *,
        noise_multiplier: float | None = None,
        sample_rate: float | None = None,
        adjacency: Adjacency = ADD_REMOVE,
        count: int = 1,
    ) -> None:
        """Record ``count`` runs of a mechanism, or of one DP-SGD step given by its noise multiplier and sample rate."""
        times = checks.count("count", count)
        if mechanism is None:
            mechanism = self._dpsgd_step(noise_multiplier, sample_rate, adjacency)
        elif noise_multiplier is not None or sample_rate is not None:
            raise InvalidArgument("mechanism", "given alone, without noise_multiplier and sample_rate", mechanism)
        elif not isinstance(mechanism, Mechanism):
            raise InvalidType("mechanism", "a mechanism", mechanism)
        for part, n in mechanism.parts:
            self._counts[part] = self._counts.get(part, 0) + n * times

    def _dpsgd_step(self, noise_multiplier: float | None, sample_rate: float | None, adjacency: Adjacency) -> Mechanism:
        if noise_multiplier is None or sample_rate is None:
            raise InvalidArgument(
                "step()", "given a mechanism, or noise_multiplier= and sample_rate=", (noise_multiplier, sample_rate)
            )
        key = (noise_multiplier, sample_rate, adjacency)
        try:
            known = self._steps.get(key)
        except TypeError:
            known = None  # an unhashable argument: let dpsgd() say what is wrong with it
        if known is None:
            known = dpsgd(noise_multiplier, sample_rate, 1, adjacency)
            self._steps[key] = known
        return known

    @property
    def plan(self) -> Composed:
        """Everything that was recorded, as one plan."""
        return Composed.of(self._counts.items())

    def epsilon(self, delta: float) -> float:
        """The certified upper bound of epsilon of everything so far."""
        return self.plan.epsilon(delta)

    def epsilon_interval(self, delta: float) -> Interval:
        return self.plan.epsilon_interval(delta)

    def delta(self, epsilon: float) -> float:
        return self.plan.delta(epsilon)

    @property
    def history(self) -> tuple[tuple[Mechanism, int], ...]:
        """(mechanism, count) pairs in canonical order."""
        return self.plan.parts

    def to_json(self) -> str:
        return to_json(self.plan)

    @classmethod
    def from_json(cls, text: str) -> Accountant:
        return cls(from_json(text))

    def state_dict(self) -> dict[str, Any]:
        """The state as plain JSON values, for a checkpoint; it shares nothing with this object."""
        state: dict[str, Any] = json.loads(self.to_json())
        return state

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Accountant:
        """The accountant that :meth:`state_dict` described."""
        if not isinstance(state, dict):
            raise InvalidType("state", "a dict from state_dict()", state)
        return cls.from_json(json.dumps(state))

    def __repr__(self) -> str:
        return f"Accountant({self.plan!r})"
