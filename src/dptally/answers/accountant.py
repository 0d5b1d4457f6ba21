"""The account of a training loop: step, ask, save, go on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dptally import checks
from dptally.documents import read_json
from dptally.errors import BudgetExceeded, InvalidArgument, InvalidType
from dptally.interval import Interval
from dptally.later import later
from dptally.law.adjacency import ADD_REMOVE, Adjacency
from dptally.mechanisms.composed import MOST_COPIES, Composed
from dptally.mechanisms.json import LONGEST, from_json, to_json
from dptally.mechanisms.mechanism import Mechanism, no_attribute
from dptally.mechanisms.training_runs import dpsgd

__all__ = ["Accountant"]


_FIRST_GUESS = 32  # steps: past the few for which an answer takes longest


class Accountant:
    """Counts what was run; every answer is that of the plan so far. The state is plain JSON.

    >>> account = Accountant()
    >>> for _ in range(1000):
    ...     account.step(noise_multiplier=1.0, sample_rate=0.01)
    >>> round(account.epsilon(delta=1e-5), 6)
    1.828237

    With a ``budget`` (an epsilon) at ``delta`` it refuses the step that would pass it, before it is recorded:

    >>> account = Accountant(budget=3.0, delta=1e-5)
    >>> account.steps_left(noise_multiplier=1.0, sample_rate=0.05)
    68
    """

    def __init__(
        self, plan: Mechanism | None = None, *, budget: float | None = None, delta: float | None = None
    ) -> None:
        if plan is not None and not isinstance(plan, Mechanism):
            raise InvalidType("plan", "a mechanism", plan)
        if (budget is None) != (delta is None):
            raise InvalidArgument("budget, delta", "given together: the budget is an epsilon at delta", (budget, delta))
        self._budget = None if budget is None else checks.positive("budget", budget)
        self._delta = None if delta is None else checks.probability("delta", delta)
        if self._delta == 1:
            raise InvalidArgument("delta", "below 1", delta)
        self._counts: dict[Mechanism, int] = {}
        self._steps: dict[tuple[float, float, Adjacency], Mechanism] = {}
        self._room: tuple[Mechanism, int] | None = None  # so many more of this step fit, if nothing else is run
        if plan is not None:
            self._admit(plan, 1)
            self._counts = dict(plan.parts)

    @property
    def budget(self) -> float | None:
        """The epsilon that is not passed, None where none was set."""
        return self._budget

    @property
    def budget_delta(self) -> float | None:
        """The delta at which the budget holds, None where none was set."""
        return self._delta

    def step(
        self,
        mechanism: Mechanism | None = None,
        *,
        noise_multiplier: float | None = None,
        sample_rate: float | None = None,
        adjacency: Adjacency = ADD_REMOVE,
        count: int = 1,
        steps: int | None = None,
    ) -> None:
        """Record ``count`` runs of a mechanism, or of one DP-SGD step given by its noise multiplier and sample rate.
        ``steps`` is another name for ``count``: that of :meth:`would_exceed`.

        Call it before the step is run. With a budget, BudgetExceeded is raised where the certified epsilon
        would pass it, and nothing is recorded.
        """
        if steps is not None and count != 1:
            raise InvalidArgument("steps", "given alone: count is another name for it", steps)
        times = checks.count("count", count) if steps is None else checks.count("steps", steps)
        one = self._one_step(mechanism, noise_multiplier, sample_rate, adjacency)
        room = self._admit(one, times)
        for part, n in one.parts:
            self._counts[part] = self._counts.get(part, 0) + n * times
        self._room = room

    def would_exceed(
        self,
        plan: Mechanism | None = None,
        *,
        noise_multiplier: float | None = None,
        sample_rate: float | None = None,
        steps: int = 1,
        adjacency: Adjacency = ADD_REMOVE,
    ) -> bool:
        """Whether ``steps`` more of these would bring the certified epsilon above the budget. Nothing is recorded."""
        budget, delta = self._limit()
        times = checks.count("steps", steps)
        one = self._one_step(plan, noise_multiplier, sample_rate, adjacency)
        return self._after(one, times).epsilon(delta) > budget

    def steps_left(
        self,
        plan: Mechanism | None = None,
        *,
        noise_multiplier: float | None = None,
        sample_rate: float | None = None,
        adjacency: Adjacency = ADD_REMOVE,
    ) -> int:
        """The most steps of this kind that still fit: their certified epsilon is within the budget, and that of one
        more is not. (Steps that cost nothing fit up to the largest number that a plan can count.)
        """
        self._limit()
        return self._most(self._one_step(plan, noise_multiplier, sample_rate, adjacency))

    def _limit(self) -> tuple[float, float]:
        if self._budget is None or self._delta is None:
            raise InvalidArgument("budget", "given when the account was made: Accountant(budget=3.0, delta=1e-5)", None)
        return self._budget, self._delta

    def _after(self, one: Mechanism, times: int) -> Composed:
        return Composed.of((*self._counts.items(), (one, times)))

    def _most(self, one: Mechanism) -> int:
        """The last number of steps that fits: doubled until one does not fit, then halved in between."""
        budget, delta = self._limit()
        limit = (
            min((MOST_COPIES - self._counts.get(part, 0)) // n for part, n in one.parts) if one.parts else MOST_COPIES
        )

        def fits(number: int) -> bool:
            return self._after(one, number).epsilon(delta) <= budget

        low, high = 0, min(_FIRST_GUESS, limit)
        while fits(high):
            if high == limit:
                return limit
            low, high = high, min(2 * high, limit)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def _admit(self, one: Mechanism, times: int) -> tuple[Mechanism, int] | None:
        """Refuse steps that pass the budget; otherwise how many more would fit after them.

        If so many steps fit, fewer do: what is composed with more never costs less. So a loop of equal steps is
        searched once, at its first.
        """
        if self._budget is None:
            return None
        known = self._room[1] if self._room is not None and self._room[0] == one else self._most(one)
        if times > known:
            raise self._exceeded(one, times, known)
        return one, known - times

    def _exceeded(self, one: Mechanism, times: int, fitting: int) -> BudgetExceeded:
        budget, delta = self._limit()
        spent, after = self.plan.epsilon(delta), self._after(one, times).epsilon(delta)
        fit = f"{fitting} more such steps fit" if fitting else "not one such step fits"
        return BudgetExceeded(
            dataset="",
            kind="epsilon",
            cap=budget,
            spent=spent,
            requested=after - spent,
            left=max(budget - spent, 0.0),
            hint=f"At delta {delta!r} {fit}.",
        )

    def _one_step(
        self,
        plan: Mechanism | None,
        noise_multiplier: float | None,
        sample_rate: float | None,
        adjacency: Adjacency,
    ) -> Mechanism:
        if plan is None:
            return self._dpsgd_step(noise_multiplier, sample_rate, adjacency)
        if noise_multiplier is not None or sample_rate is not None:
            raise InvalidArgument("mechanism", "given alone, without noise_multiplier and sample_rate", plan)
        if not isinstance(plan, Mechanism):
            raise InvalidType("mechanism", "a mechanism", plan)
        return plan

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

    def epsilon(self, delta: float | None = None) -> float:
        """The certified upper bound of epsilon of everything so far, at the budget's delta unless another is given."""
        return self.plan.epsilon(self._at(delta))

    def epsilon_interval(self, delta: float | None = None) -> Interval:
        return self.plan.epsilon_interval(self._at(delta))

    def _at(self, delta: float | None) -> float:
        if delta is not None:
            return delta
        if self._delta is None:
            raise InvalidArgument("delta", "given: the account has no budget with a delta of its own", delta)
        return self._delta

    def delta(self, epsilon: float) -> float:
        return self.plan.delta(epsilon)

    if not TYPE_CHECKING:  # a checker shall go on to refuse unknown names

        def __getattr__(self, name: str) -> Any:
            """Nothing: but the names of other libraries are answered with ours."""
            raise no_attribute(self, name)

    def log(self, delta: float | None = None) -> dict[str, float]:
        """What a training log wants to know, flat: the row of a CSV file (``csv.DictWriter``), the scalars of
        TensorBoard (``writer.add_scalar(tag, value, step)`` for each item), the argument of ``wandb.log``. Without
        ``delta`` at that of the budget.

        >>> sorted(Accountant().log(delta=1e-5))
        ['privacy/delta', 'privacy/epsilon', 'privacy/epsilon_lower', 'privacy/steps']
        """
        delta = self._delta if delta is None else delta
        if delta is None:
            raise InvalidArgument("delta", "given, here or with a budget: Accountant(budget=..., delta=...)", None)
        box = self.epsilon_interval(delta)
        steps = float(sum(count for _, count in self.history))
        ends = {"privacy/epsilon": box.upper, "privacy/epsilon_lower": box.lower}
        return {"privacy/steps": steps, **ends, "privacy/delta": float(delta)}

    @property
    def history(self) -> tuple[tuple[Mechanism, int], ...]:
        """(mechanism, count) pairs in canonical order."""
        return self.plan.parts

    def to_json(self) -> str:
        """The plan as JSON; with a budget, an object that holds it beside the plan."""
        text = to_json(self.plan)
        if self._budget is None:
            return text
        state = {"budget": self._budget, "delta": self._delta, "plan": json.loads(text)}
        return json.dumps(state, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Accountant:
        """The accountant that :meth:`to_json` wrote, with its budget."""
        state = _with_budget(text)
        if state is None:
            return cls(from_json(text))
        return cls(from_json(json.dumps(state["plan"])), budget=state["budget"], delta=state["delta"])

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
        limit = "" if self._budget is None else f", budget={self._budget!r}, delta={self._delta!r}"
        return f"Accountant({self.plan!r}{limit})"

    def _repr_html_(self) -> str:
        return str(later("accountant_html")(self))

    def _repr_markdown_(self) -> str:
        return str(later("accountant_markdown")(self))


def _with_budget(text: str) -> dict[str, Any] | None:
    """The outer object of an accountant with a budget; None for a bare plan, which ``from_json`` reads."""
    if not isinstance(text, str) or '"budget"' not in text:
        return None
    state = read_json(text, "text", longest=LONGEST)
    return state if isinstance(state, dict) and set(state) == {"budget", "delta", "plan"} else None
