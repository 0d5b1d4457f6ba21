"""The outcome of an audit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dptally.errors import MissingExtra
from dptally.mechanisms import Mechanism

__all__ = ["AuditResult"]


@dataclass(frozen=True, slots=True)
class AuditResult:
    """A statistical lower bound beside the claim. It can refute the claim; it can never prove it.

    ``lower``: the true value of ``quantity`` (epsilon at ``delta``, or mu) is at least this with confidence
    ``confidence``. ``claimed``: what the claim says. ``samples``: runs on each dataset, or canaries.
    """

    lower: float
    claimed: float
    quantity: str
    delta: float
    claim: Mechanism
    confidence: float
    samples: int
    event: str
    point: tuple[float, float] = field(default=(0.0, 0.0), repr=False)
    roc: tuple[tuple[float, float], ...] = field(default=(), repr=False)

    @property
    def refuted(self) -> bool:
        return self.lower > self.claimed

    @property
    def verdict(self) -> str:
        return "refuted" if self.refuted else "not refuted"

    def __str__(self) -> str:
        at = f" at delta {self.delta:g}" if self.quantity == "epsilon" and self.delta > 0 else ""
        return (
            f"{self.verdict}: {self.quantity}{at} >= {self.lower:.4g} with confidence 1 - "
            f"{1 - self.confidence:.2g}, "
            f"claimed {self.claimed:.4g} ({self.samples} samples; {self.event})"
        )

    def plot(self, axes: Any = None) -> Any:
        """Draw what was seen beside the most that the claim allows; returns the matplotlib axes."""
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise MissingExtra("matplotlib", "plots") from None
        if axes is None:
            axes = plt.subplots(figsize=(5, 5), layout="constrained")[1]
        fpr = np.linspace(0, 1, 101)
        axes.plot(fpr, 1 - self.claim.tradeoff(fpr), color="black", label="most that the claim allows")
        if self.roc:
            axes.plot(*zip(*self.roc, strict=True), ".", color="tab:blue", label="seen on the test half")
            axes.plot(*self.point, "o", color="tab:red", label="certified bounds of the chosen event")
        axes.plot([0, 1], [0, 1], ":", color="grey")
        axes.set(xlabel="false-positive rate", ylabel="true-positive rate", title=f"audit: {self.verdict}")
        axes.legend(loc="lower right")
        return axes
