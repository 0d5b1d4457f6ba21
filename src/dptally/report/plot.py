"""``plan.plot``: every picture of a plan under one name."""

from __future__ import annotations

from typing import Any

from dptally import checks, report
from dptally.errors import InvalidArgument
from dptally.mechanisms import Mechanism

__all__ = ["KINDS", "plot"]

#: kind -> what it shows
KINDS = {
    "profile": "delta against epsilon, every framework and the certified band",
    "tradeoff": "false negatives against false positives of the best attacker",
    "loss": "the privacy loss of one step",
    "gdpt": "the Gaussian DP of the plan, with its staircases",
    "renyi": "Renyi divergence against the order (delta)",
    "compare": "every framework's epsilon as a bar (delta)",
    "steps": "epsilon after 1, 2, ... runs of the plan (delta, steps, budget)",
}
_AT_A_DELTA = ("renyi", "compare", "steps")


def plot(plan: Mechanism, kind: str = "profile", *, delta: float = 1e-5, ax: Any = None, **options: Any) -> Any:
    """Draw a plan; the matplotlib axes come back. ``kind`` is one of ``KINDS``; ``delta`` serves those that have one.

    Further options are those of the picture: ``steps=`` and ``budget=`` for "steps", ``points=`` for most.
    """
    if kind not in KINDS:
        raise InvalidArgument("kind", f"one of {', '.join(KINDS)}", kind)
    if kind in _AT_A_DELTA:
        options["delta"] = checks.probability("delta", delta)
    if kind == "steps":
        options.setdefault("steps", 1000)
    draw = getattr(report, f"plot_{kind}")
    try:
        return draw(plan, ax=ax, **options)
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        raise InvalidArgument("options", f"those of dptally.report.plot_{kind}", sorted(options)) from None
