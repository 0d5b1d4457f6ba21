"""Training loops: stop at the step before a budget would be passed, in a plain loop or as a trainer's callback.

    stop = StopAt(epsilon=3.0, delta=1e-5, accountant=privacy_engine.accountant, noise_multiplier=1.0, sample_rate=0.01)
    for batch in loader:
        if stop.reached:
            break
        ...

The same object is a callback for Lightning (``Trainer(callbacks=[stop])``) and for Hugging Face's Trainer
(``trainer.add_callback(stop)``): both call methods by name, so that neither is needed here. Hooks that have nothing to
do with a budget do nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType
from dptally.interop.opacus_history import Step, history_of
from dptally.mechanisms import Composed, Mechanism, dpsgd

__all__ = ["StopAt"]

_MOST = 2**50
_OTHER_HOOKS = ("setup", "teardown", "load_state_dict")  # of Lightning, beside those that begin with on_


def _nothing(*args: Any, **kwargs: Any) -> None:
    del args, kwargs


class StopAt:
    """Whether one more step still fits under ``epsilon`` at ``delta``: certified, asked once per kind of step.

    ``accountant`` is an opacus accountant, a PrivacyEngine, a dptally Accountant, or anything with an opacus
    ``history``. The kind of the next step is that of the last one, or as given here for the first.

    >>> from dptally import Accountant
    >>> account = Accountant()
    >>> stop = StopAt(epsilon=1.0, delta=1e-5, accountant=account, noise_multiplier=1.0, sample_rate=0.01)
    >>> while not stop.reached:
    ...     account.step(noise_multiplier=1.0, sample_rate=0.01)
    >>> account.epsilon(1e-5) <= 1.0 < (account.plan + dpsgd(1.0, 0.01, 1)).epsilon(1e-5)
    True
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        accountant: Any,
        *,
        noise_multiplier: float | None = None,
        sample_rate: float | None = None,
    ) -> None:
        self.epsilon = checks.positive("epsilon", epsilon)
        self.delta = checks.probability("delta", delta)
        if (noise_multiplier is None) != (sample_rate is None):
            raise InvalidArgument("noise_multiplier, sample_rate", "given together", (noise_multiplier, sample_rate))
        self._first: Mechanism | None = None
        if noise_multiplier is not None and sample_rate is not None:
            self._first = dpsgd(noise_multiplier, sample_rate, 1).parts[0][0]
        self._accountant = getattr(accountant, "accountant", accountant)  # a PrivacyEngine holds one
        self._limits: dict[tuple[Composed, Mechanism], int] = {}
        self._counts()

    @property
    def reached(self) -> bool:
        """True if the next step would pass the budget: stop before it."""
        return self.steps_left() < 1

    def steps_left(self) -> int:
        """How many more steps of the kind of the last one fit."""
        counts = self._counts()
        step = self._next(counts)
        done = counts.pop(step, 0)
        rest = Composed.of(counts.items())
        if (rest, step) not in self._limits:
            self._limits[rest, step] = self._most(rest, step)
        return self._limits[rest, step] - done

    def _counts(self) -> dict[Mechanism, int]:
        """What was done so far, the last kind of step last."""
        plan = getattr(self._accountant, "plan", None)
        history = getattr(self._accountant, "history", None)
        if isinstance(history, list):
            steps: list[Step] = history_of(history)
            parts = [part for noise, rate, number in steps for part in dpsgd(noise, rate, number).parts]
            self._last = None
            if history:
                noise, rate, _ = history[-1]
                self._last = dpsgd(noise, rate, 1).parts[0][0]
            return dict(Composed.of(parts).parts)
        if isinstance(plan, Mechanism):
            self._last = plan.parts[-1][0] if len(plan.parts) == 1 else None
            return dict(plan.parts)
        raise InvalidType("accountant", "an accountant with a plan or a history", self._accountant)

    def _next(self, counts: dict[Mechanism, int]) -> Mechanism:
        found = self._last or self._first
        if found is None:
            raise InvalidArgument(
                "noise_multiplier, sample_rate", "given to StopAt (the next step is not known)", list(counts)[:2]
            )
        return found

    def _most(self, rest: Composed, step: Mechanism) -> int:
        """The largest count of ``step`` that fits beside ``rest``."""

        def fits(count: int) -> bool:
            return (rest + count * step).epsilon(self.delta) <= self.epsilon

        if not fits(1):
            return 0
        low, high = 1, 2
        while high < _MOST and fits(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    # -- Lightning and Hugging Face call these by name -------------------------------------------------------------

    if not TYPE_CHECKING:  # a checker shall go on to refuse unknown names

        def __getattr__(self, name: str) -> Any:
            """Any other hook of a trainer: nothing happens there."""
            if name.startswith("on_") or name in _OTHER_HOOKS:
                return _nothing
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    @property
    def state_key(self) -> str:
        """Under which Lightning would keep a state; there is none, the accountant has it."""
        return type(self).__qualname__

    def state_dict(self) -> dict[str, Any]:
        """Nothing: the accountant's own state is what is saved."""
        return {}

    def on_train_batch_end(self, trainer: Any, *args: Any, **kwargs: Any) -> None:
        """Lightning: no further batch once the next step would pass the budget."""
        del args, kwargs
        if self.reached:
            trainer.should_stop = True

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Hugging Face: stop after the step whose successor would pass the budget."""
        del args, state, kwargs
        if self.reached:
            control.should_training_stop = True
        return control
