"""dp-accounting with certified answers: an accountant of its own shape, which jax-privacy takes too.

from dptally.interop.dp_accounting import DptallyAccountant
DptallyAccountant().compose(event, 1000).get_epsilon(target_delta=1e-5)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dptally import checks
from dptally.errors import InvalidArgument, MissingExtra, Unanswerable
from dptally.interop.events import NotPrivate, Reading, plan_of
from dptally.interval import Interval
from dptally.mechanisms import ADD_REMOVE, REPLACE, Composed, Mechanism

__all__ = ["DptallyAccountant"]

try:
    from dp_accounting import dp_event
    from dp_accounting.privacy_accountant import NeighboringRelation, PrivacyAccountant
except ImportError:
    raise MissingExtra("dp-accounting") from None

_VAST = 1e100  # an epsilon beyond all finite losses
#: a record replaced by a special, empty one leaves the pair of an added or removed record
_ADJACENCIES = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: ADD_REMOVE,
    NeighboringRelation.REPLACE_ONE: REPLACE,
    NeighboringRelation.REPLACE_SPECIAL: ADD_REMOVE,
}
#: events that mean something under some relations only
_RELATIONS = {
    dp_event.RandomizedResponseDpEvent: (NeighboringRelation.REPLACE_ONE, NeighboringRelation.REPLACE_SPECIAL),
    dp_event.SingleEpochTreeAggregationDpEvent: (NeighboringRelation.REPLACE_SPECIAL,),
    dp_event.MixtureOfGaussiansDpEvent: (
        NeighboringRelation.ADD_OR_REMOVE_ONE,
        NeighboringRelation.REPLACE_SPECIAL,
    ),
}


class DptallyAccountant(PrivacyAccountant):  # type: ignore[misc]  # dp-accounting has no types
    """A PrivacyAccountant whose epsilon and delta are certified upper bounds; the intervals hold both ends.

    ``replace_sensitivity`` says, under REPLACE_ONE, whether noise is a multiple of one record's norm (2, as
    dp-accounting's PLD accountant reads it) or of the change (1, as its RDP accountant does); without it such
    events are refused with this question.
    """

    def __init__(
        self,
        neighboring_relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE,
        *,
        replace_sensitivity: int | None = None,
    ) -> None:
        super().__init__(neighboring_relation)
        if neighboring_relation not in _ADJACENCIES:
            raise InvalidArgument("neighboring_relation", "one of dp-accounting's relations", neighboring_relation)
        if replace_sensitivity not in (None, 1, 2):
            raise InvalidArgument("replace_sensitivity", "1, 2 or None", replace_sensitivity)
        special = neighboring_relation is NeighboringRelation.REPLACE_SPECIAL
        self._reading = Reading(_ADJACENCIES[neighboring_relation], replace_sensitivity, special)
        self._counts: dict[Mechanism, int] = {}
        self._unprotected = False

    @property
    def plan(self) -> Composed:
        """Everything composed so far, as a dptally plan (without events that protect nothing)."""
        return Composed.of(self._counts.items())

    def get_epsilon(self, target_delta: float) -> float:
        """The certified upper end of epsilon."""
        return self.get_epsilon_interval(target_delta).upper

    def get_delta(self, target_epsilon: float) -> float:
        """The certified upper end of delta."""
        return self.get_delta_interval(target_epsilon).upper

    def get_epsilon_interval(self, target_delta: float) -> Interval:
        """Both certified ends of epsilon."""
        if self._unprotected:  # at delta 1 epsilon 0 would do; the accountants of this shape say infinity
            least = 0.0 if checks.probability("target_delta", target_delta) == 1.0 else math.inf
            return Interval(least, math.inf, "an event that protects nothing")
        return self.plan.epsilon_interval(target_delta)

    def get_delta_interval(self, target_epsilon: float) -> Interval:
        """Both certified ends of delta."""
        if self._unprotected:
            return Interval(1.0, 1.0, "an event that protects nothing")
        if target_epsilon == math.inf:  # what is left there is left at every epsilon
            return Interval(0.0, self.plan.delta(_VAST))
        return self.plan.delta_interval(target_epsilon)

    def get_true_positive_rates(
        self, false_positive_rates: Sequence[float], deltas: Sequence[float] | None = None
    ) -> Any:
        """The most that an attacker finds at each false-positive rate: certified, so no list of deltas is needed."""
        del deltas
        rates = checks.reals("false_positive_rates", false_positive_rates)
        if self._unprotected:
            return np.ones_like(rates)
        return 1.0 - np.asarray(self.plan.tradeoff(rates))

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        """None if the event is answered here, else what is wrong with it; composes only if asked to."""
        if isinstance(event, dp_event.SelfComposedDpEvent):
            return self._maybe_compose(event.event, checks.count("count", event.count) * count, do_compose)
        if isinstance(event, dp_event.ComposedDpEvent):
            faults = (self._maybe_compose(one, count, do_compose) for one in event.events)
            return next((fault for fault in faults if fault is not None), None)
        return self._single(event, count, do_compose)

    def _single(self, event: Any, count: int, do_compose: bool) -> Any:
        allowed = _RELATIONS.get(type(event))
        if allowed is not None and self.neighboring_relation not in allowed:
            needed = " or ".join(f"`{relation.name}`" for relation in allowed)
            text = f"neighboring_relation must be {needed} for `{type(event).__name__}`"
            return self.CompositionErrorDetails(event, f"{text}. Found {self.neighboring_relation}.")
        try:
            plan = plan_of(event, self._reading)
            plan.directions()
        except NotPrivate:
            self._unprotected = self._unprotected or (do_compose and count > 0)
            return None
        except Unanswerable as error:  # a field out of its domain is a ValueError instead
            return self.CompositionErrorDetails(invalid_event=event, error_message=str(error))
        if do_compose:
            for part, number in (checks.count("count", count) * plan).parts:
                self._counts[part] = self._counts.get(part, 0) + number
        return None
