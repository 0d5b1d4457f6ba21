"""One noise level for a whole pipeline: the least that keeps all its mechanisms within a total budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dptally import checks
from dptally.calibration import calibrate
from dptally.errors import InvalidArgument
from dptally.mechanisms import ApproxDP, Composed, Gaussian, Laplace, Mechanism

__all__ = ["THRESHOLD_SHARE", "Request", "base_noise", "plan_at"]

THRESHOLD_SHARE = 0.25  #: of delta, kept for thresholds, as PipelineDP does
_ROOT = math.sqrt(2.0)


@dataclass(frozen=True, slots=True)
class Request:
    """One mechanism of a pipeline: ``kind`` is "laplace", "gaussian" or "generic"; the noise's standard deviation is
    sensitivity * base / weight.
    """

    kind: str
    sensitivity: float = 1.0
    weight: float = 1.0
    count: int = 1
    thresholding: bool = False

    def deviation(self, base: float) -> float:
        return self.sensitivity * base / self.weight

    def guarantee(self, base: float, epsilon: float, delta: float) -> tuple[float, float]:
        """(epsilon, delta) of a generic mechanism: that of Laplace noise of its deviation, and a share of delta."""
        own = _ROOT * self.weight / base
        return own, min(1.0, own / epsilon * delta)


def base_noise(requests: Sequence[Request], epsilon: float, delta: float) -> float:
    """The least base at which everything together is certainly (epsilon, delta)-DP, thresholds included.

    >>> round(base_noise([Request("gaussian", count=10)], 1.0, 1e-6), 3)
    13.36
    """
    epsilon, delta = checks.positive("epsilon", epsilon), checks.probability("delta", delta)
    if not requests:
        raise InvalidArgument("requests", "at least one mechanism", requests)
    left = delta * (1.0 - THRESHOLD_SHARE) if any(one.thresholding for one in requests) else delta
    return calibrate(lambda base: plan_at(requests, base, epsilon, left), epsilon=epsilon, delta=left)


def plan_at(requests: Sequence[Request], base: float, epsilon: float, delta: float) -> Mechanism:
    """The plan of all mechanisms at one base."""
    return Composed.of((_mechanism(one, base, epsilon, delta), one.count) for one in requests)


def _mechanism(one: Request, base: float, epsilon: float, delta: float) -> Mechanism:
    if one.kind == "gaussian":
        return Gaussian(one.deviation(base), one.sensitivity)
    if one.kind == "laplace":
        return Laplace(math.nextafter(one.deviation(base) / _ROOT, 0.0), one.sensitivity)
    if one.kind == "generic":
        return ApproxDP(*one.guarantee(base, epsilon, delta))
    raise InvalidArgument("kind", "laplace, gaussian or generic", one.kind)
