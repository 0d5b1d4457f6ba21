"""What an answer takes for granted, in words: sensitivity, adjacency, sampling, adaptivity, noise."""

from __future__ import annotations

from collections.abc import Iterator

from dptally.mechanisms.mechanism import Mechanism

__all__ = ["assumptions"]


def assumptions(plan: Mechanism) -> Iterator[str]:
    """What the caller stated and the library cannot check.

    >>> from dptally.mechanisms.laplace import Laplace
    >>> next(assumptions(Laplace(scale=5)))
    'sensitivity: neighbouring datasets change each query by at most that much (not checked)'
    """
    named = [_stated(mechanism) for mechanism, _ in plan.parts]
    if any("sensitivity" in stated for stated in named):
        yield "sensitivity: neighbouring datasets change each query by at most that much (not checked)"
    adjacencies = sorted({repr(stated["adjacency"]) for stated in named if "adjacency" in stated})
    if adjacencies:
        yield f"adjacency where sampling mixes datasets: {', '.join(adjacencies)}"
    else:
        yield "adjacency: the one under which the sensitivities and guarantees were stated"
    rates = sorted({float(str(stated["rate"])) for stated in named if "rate" in stated})
    if rates:
        shown = ", ".join(repr(rate) for rate in rates)
        yield f"sampling: every record joins every step by its own coin, rate {shown}; not shuffled batches"
    if any(key.startswith("declared") for stated in named for key in stated):
        yield "declared guarantees are taken as true"
    yield "steps may be chosen adaptively, but their list is fixed before the first (else use a ledger)"
    yield "the noise is drawn exactly and its random bits are secret"


def _stated(mechanism: Mechanism) -> dict[str, object]:
    """The parameters of a mechanism and of what it wraps, by name."""
    out: dict[str, object] = {}
    for name in getattr(mechanism, "__dataclass_fields__", ()):
        value = getattr(mechanism, name)
        out[name] = value
        if isinstance(value, Mechanism):
            out = _stated(value) | out
    return out
