"""What stands around a verdict: the same run under other samplers and adjacencies, and the noise that it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dptally.calibration import calibrate
from dptally.errors import CannotCalibrate, DptallyError
from dptally.interval import Interval
from dptally.mechanisms import Adjacency, Composed, Mechanism
from dptally.opinion.claim import Claim
from dptally.opinion.settings import SAMPLERS

__all__ = ["Reading", "Remedy", "readings", "remedy"]

_NOISE = ("sigma", "scale")
_QUICK = ("poisson", "fixed size", "cyclic")


@dataclass(frozen=True, slots=True)
class Reading:
    """The same run under one sampler and adjacency: both ends of epsilon, or the reason why there is no answer."""

    sampler: str
    adjacency: str
    interval: Interval | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Remedy:
    """The factor on all noise that makes the claim true, and the noise of a training run by itself."""

    factor: float
    noise_multiplier: float | None
    plan: Mechanism


def readings(claim: Claim, every: bool = False) -> tuple[Reading, ...]:
    """A training run under both adjacencies, with the samplers that answer at once and as it was said, or with
    ``every`` sampler (that may take a minute); other plans have one reading, as they stand.

    What shuffled batches cost lies at or below what batches in a fixed order (cyclic) do.
    """
    run = claim.settings
    if run is None:
        return ()
    out = []
    for sampler in SAMPLERS if every else dict.fromkeys((run.sampler or "poisson", *_QUICK)):
        for adjacency in Adjacency:
            try:
                box = run.under(sampler, adjacency).epsilon_interval(claim.claimed.delta)
                out.append(Reading(sampler, adjacency.value, box))
            except DptallyError as refusal:
                out.append(Reading(sampler, adjacency.value, None, str(refusal)))
    return tuple(out)


def remedy(claim: Claim) -> Remedy | None:
    """The least noise that meets the claim, all noise of the plan widened alike; None where there is no noise to
    widen or no width will do.
    """
    plan = claim.plan
    if plan is None or not 0 < claim.claimed.epsilon < math.inf or widened(plan, 1.0) is None:
        return None

    def make(factor: float) -> Mechanism:
        made = widened(plan, factor)
        return plan if made is None else made

    try:
        factor = calibrate(make, epsilon=claim.claimed.epsilon, delta=claim.claimed.delta)
    except (CannotCalibrate, DptallyError):
        return None
    noise = claim.settings.noise_multiplier * factor if claim.settings is not None else None
    return Remedy(factor, noise, make(factor))


def widened(plan: Mechanism, factor: float) -> Mechanism | None:
    """The plan with every noise width multiplied; None if some part has none."""
    parts = []
    for mechanism, count in plan.parts:
        wider = _wider(mechanism, factor)
        if wider is None:
            return None
        parts.append((wider, count))
    return Composed.of(parts) if parts else None


def _wider(mechanism: Mechanism, factor: float) -> Mechanism | None:
    stated: dict[str, Any] = mechanism.parameters()
    inside = stated.get("mechanism")
    width = next((name for name in _NOISE if name in stated), None)
    if isinstance(inside, Mechanism):
        deeper = _wider(inside, factor)
        return None if deeper is None else type(mechanism)(**(stated | {"mechanism": deeper}))
    if width is None:
        return None
    return type(mechanism)(**(stated | {width: stated[width] * factor}))
