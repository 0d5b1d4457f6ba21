"""opacus with certified answers: ``import dptally.interop.opacus``, then ``PrivacyEngine(accountant="dptally")``.

Importing registers the accountant. It reads ``history`` as the only truth, as opacus' own calibration expects.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from dptally.errors import InvalidArgument, MissingExtra
from dptally.interop.opacus_history import Step, from_opacus, history_of
from dptally.interval import Interval
from dptally.mechanisms import Composed

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["NAME", "DptallyAccountant", "register"]

NAME = "dptally"  #: what to write for ``accountant=``

try:
    from opacus.accountants import IAccountant, register_accountant  # pyright: ignore[reportMissingImports]
except ImportError:
    raise MissingExtra("opacus") from None


class DptallyAccountant(IAccountant):  # type: ignore[misc]  # opacus has no types
    """An opacus accountant whose epsilon is certified: never below the truth, never infinite for a small delta.

    States of opacus' own accountants load too: they hold the same history.
    """

    def __init__(self) -> None:
        self.history: list[Step] = []

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Record one optimiser step; equal steps in a row are counted together."""
        if self.history and tuple(self.history[-1][:2]) == (noise_multiplier, sample_rate):
            noise, rate, number = self.history.pop()
            self.history.append((noise, rate, number + 1))
        else:
            self.history.append((noise_multiplier, sample_rate, 1))

    @property
    def plan(self) -> Composed:
        """Everything so far, as a dptally plan."""
        return from_opacus(self.history)

    def get_epsilon(self, delta: float, *args: Any, **kwargs: Any) -> float:
        """The certified upper end of epsilon. Arguments for other accountants' searches are not needed here."""
        del args, kwargs
        if self._unprotected():
            return 0.0 if delta == 1 else math.inf
        return self.plan.epsilon(delta)

    def get_epsilon_interval(self, delta: float) -> Interval:
        """Both certified ends of epsilon."""
        if self._unprotected():
            return Interval(math.inf, math.inf, "a step without noise")
        return self.plan.epsilon_interval(delta)

    def _unprotected(self) -> bool:
        """Whether a step released a sample without noise: then no epsilon is finite."""
        return any(noise == 0.0 and rate > 0.0 and steps for noise, rate, steps in history_of(self.history))

    def __len__(self) -> int:
        return len(self.history)

    @classmethod
    def mechanism(cls) -> str:
        return NAME

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """opacus' hook; refused where opacus was told not to sample so, which this accountant assumes."""
        _refuse_other_samplers(inspect.currentframe())
        hook: Callable[[Any], None] = super().get_optimizer_hook_fn(sample_rate)
        return hook

    def state_dict(self, destination: dict[str, Any] | None = None, *, mechanism: str = NAME) -> dict[str, Any]:
        """opacus' state; with ``mechanism="rdp"`` (or "gdp", "prv") one that this accountant of opacus takes over."""
        state: dict[str, Any] = super().state_dict(destination)
        state["mechanism"] = mechanism
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over the history of a dptally, rdp, gdp or prv state; it shares nothing with the state.

        A state without history or mechanism is refused as opacus refuses it, with a ValueError.
        """
        if not isinstance(state_dict, Mapping) or not {"history", "mechanism"} <= set(state_dict):
            raise InvalidArgument("state_dict", 'one with the keys "history" and "mechanism"', state_dict)
        history_of(state_dict)
        self.history = [tuple(entry) for entry in deepcopy(state_dict["history"])]


def _refuse_other_samplers(frame: FrameType | None) -> None:
    """opacus passes the accountant the rate alone; what was said about sampling stands in its make_private."""
    caller = frame.f_back if frame is not None else None
    said = caller.f_locals if caller is not None and caller.f_code.co_name == "make_private" else {}
    if said.get("poisson_sampling", True) is False:
        raise InvalidArgument(
            "poisson_sampling",
            'True with accountant="dptally" (it accounts for records that are included independently)',
            False,
            "for shuffled batches write dptally.training(noise_multiplier, epochs=..., "
            "sampler=dptally.ShuffledBatches(len(loader))); dptally.inspect_loader(loader) tells what a loader is",
        )


def register(force: bool = False) -> None:
    """Make "dptally" known to opacus; done on import. Registering twice changes nothing."""
    from opacus.accountants import registry  # pyright: ignore[reportMissingImports]

    known = getattr(registry, "_ACCOUNTANTS", {}).get(NAME)
    if known is DptallyAccountant and not force:
        return
    register_accountant(NAME, DptallyAccountant, force=force)


register()
