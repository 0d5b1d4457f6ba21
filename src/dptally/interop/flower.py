"""Flower with certified answers: an accountant of its protocol, for ``accountant=`` of its DP strategies.

    from dptally.interop.flower import DptallyAccountant
    strategy = DifferentialPrivacyServerSideFixedClipping(..., accountant=DptallyAccountant(config))

``config`` is Flower's PrivacyConfig and events are its GaussianPrivacyEvent; both are read by their fields.
"""

from __future__ import annotations

from typing import Any

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType, MissingExtra
from dptally.interop.event_text import Node
from dptally.interop.events import Reading, plan_of
from dptally.interval import Interval
from dptally.mechanisms import ADD_REMOVE, REPLACE, Composed, Mechanism

__all__ = ["DptallyAccountant"]

_SCHEMA = 1
_NAME = "dptally"
_FIELDS = ("noise_multiplier", "sample_size", "population_size")
_RELATIONS = {"add-or-remove-one": ADD_REMOVE, "replace-one": REPLACE}
_SETTINGS = ("target_delta", "population_size", "neighboring_relation", "sampling_method", "max_epsilon")

Event = tuple[float, int, int]


class DptallyAccountant:
    """Client-level accounting of Flower's rounds, with certified upper bounds.

    ``replace_sensitivity`` is asked for where clients are sampled without replacement: 2 if noise is a multiple of one
    client's clipping norm, 1 if it is a multiple of the change. States of Flower's own accountant load too.
    """

    def __init__(self, config: Any, *, replace_sensitivity: int | None = None) -> None:
        self._config = config
        stated = _stated(config)
        if stated["neighboring_relation"] not in _RELATIONS:
            raise InvalidArgument("neighboring_relation", f"one of {', '.join(_RELATIONS)}", stated)
        self._reading = Reading(_RELATIONS[stated["neighboring_relation"]], replace_sensitivity)
        self._sampling = stated["sampling_method"]
        self._releases: list[tuple[Event, int]] = []

    @property
    def config(self) -> Any:
        return self._config

    @property
    def num_releases(self) -> int:
        return sum(count for _, count in self._releases)

    @property
    def plan(self) -> Composed:
        """Everything composed so far, as a dptally plan."""
        return Composed.of((self._plan(event), count) for event, count in self._releases)

    def compose(self, event: Any, count: int = 1) -> None:
        """Record ``count`` equal releases; an event that no theorem covers is refused and nothing is recorded."""
        kept = self._checked(event)
        self._plan(kept)
        self._releases.append((kept, checks.count("count", count, 1)))

    def get_epsilon(self, delta: float) -> float:
        return self.plan.epsilon(delta)

    def get_epsilon_interval(self, delta: float) -> Interval:
        return self.plan.epsilon_interval(delta)

    def get_delta(self, epsilon: float) -> float:
        return self.plan.delta(epsilon)

    def get_privacy_spent(self, delta: float | None = None) -> Any:
        """Flower's PrivacySpent at ``delta``, or at the configured one."""
        try:
            from flwr.supercore.privacy_accounting import PrivacySpent  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise MissingExtra("flwr") from None
        at = self._config.target_delta if delta is None else delta
        return PrivacySpent(self.get_epsilon(at), at, self.num_releases, _NAME)

    def would_exceed(self, event: Any, max_epsilon: float | None = None, count: int = 1) -> bool:
        """Whether the release would pass the limit; records nothing."""
        limit = self._config.max_epsilon if max_epsilon is None else max_epsilon
        if limit is None:
            raise InvalidArgument("max_epsilon", "given here or in PrivacyConfig", None)
        more = checks.count("count", count, 1) * self._plan(self._checked(event))
        return bool((self.plan + more).epsilon(self._config.target_delta) > checks.positive("max_epsilon", limit))

    def state_dict(self) -> dict[str, object]:
        """Plain values, in the shape of Flower's own accountant."""
        releases = [{"event": dict(zip(_FIELDS, e, strict=True)), "count": n} for e, n in self._releases]
        return {"schema_version": _SCHEMA, "backend": _NAME, "config": _stated(self._config), "compositions": releases}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Take over a state of this accountant, or of Flower's for the same configuration."""
        if not isinstance(state, dict) or state.get("schema_version") != _SCHEMA:
            raise InvalidArgument("state", f"a state of schema_version {_SCHEMA}", state)
        if state.get("config") != _stated(self._config):
            raise InvalidArgument("state", "one of the same PrivacyConfig", state.get("config"))
        releases = state.get("compositions")
        if not isinstance(releases, list):
            raise InvalidType("compositions", "a list", releases)
        found = [self._release(entry) for entry in releases]
        for event, _ in found:
            self._plan(event)
        self._releases = found

    def _release(self, entry: Any) -> tuple[Event, int]:
        try:
            event = tuple(entry["event"][name] for name in _FIELDS)
            count = entry["count"]
        except (KeyError, TypeError):
            raise InvalidType("compositions", "releases with event and count", entry) from None
        return self._checked_fields(*event), checks.count("count", count, 1)

    def _checked(self, event: Any) -> Event:
        try:
            return self._checked_fields(*(getattr(event, name) for name in _FIELDS))
        except AttributeError:
            raise InvalidType("event", "a GaussianPrivacyEvent", event) from None

    def _checked_fields(self, noise: object, sample: object, population: object) -> Event:
        found = checks.positive("noise_multiplier", noise), checks.count("sample_size", sample, 1)
        everybody = checks.count("population_size", population, 1)
        if everybody != self._config.population_size:
            raise InvalidArgument(
                "population_size", f"that of PrivacyConfig, {self._config.population_size}", everybody
            )
        if found[1] > everybody:
            raise InvalidArgument("sample_size", f"at most the population size {everybody}", found[1])
        return *found, everybody

    def _plan(self, event: Event) -> Mechanism:
        noise, sample, population = event
        gaussian = Node("GaussianDpEvent", (noise,))
        node = {
            "no-amplification": gaussian,
            "poisson": Node("PoissonSampledDpEvent", (sample / population, gaussian)),
            "without-replacement": Node("SampledWithoutReplacementDpEvent", (population, sample, gaussian)),
        }.get(self._sampling)
        if node is None:
            raise InvalidArgument("sampling_method", "one of Flower's sampling methods", self._sampling)
        plan = plan_of(node, self._reading)
        plan.directions()
        return plan


def _stated(config: Any) -> dict[str, Any]:
    """The configuration as plain values; enumerations by their text."""
    try:
        found = {name: getattr(config, name) for name in _SETTINGS}
    except AttributeError:
        raise InvalidType("config", "Flower's PrivacyConfig", config) from None
    return {name: getattr(value, "value", value) for name, value in found.items()}
