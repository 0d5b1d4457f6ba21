"""The facts behind one answer: both ends, the route, the theorems, and what an attacker could do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dptally import checks
from dptally.accounting import certified, concentrated, gaussian, renyi, tradeoff
from dptally.accounting.citations import Source, cited
from dptally.accounting.compare import CERTIFIED_THEOREM
from dptally.accounting.moments import Asked, checked
from dptally.errors import Unanswerable
from dptally.interval import Interval
from dptally.law import Composition

__all__ = ["Facts", "facts"]

ATTACKS = "attacks: Wasserman, Zhou 2010, Thm. 2.4; Dong, Roth, Su 2022, Prop. 2.12"
ADDITION = "adaptively chosen steps: Dong, Roth, Su 2022, Thm. 3.2; Zhu, Dong, Wang 2022, Thm. 10"


@dataclass(frozen=True, slots=True)
class Facts:
    """What ``explain`` prints, on the safe side. ``mu`` and ``rho`` are None where none is known."""

    delta: float
    epsilon: Interval
    determined: bool
    route: tuple[str, ...]
    theorems: tuple[str, ...]
    power_at_one_percent: float
    advantage: float
    mu: float | None
    rho: float | None

    @property
    def sources(self) -> tuple[Source, ...]:
        return cited(self.theorems)


def facts(plan: Asked, delta: float, steps: int, theorems: Sequence[str] | None = None) -> Facts:
    """What is known of epsilon at this delta without the mechanisms' names; ``steps`` is for the text.

    theorems: what says that the laws dominate what was run; by default what the laws cite.
    """
    delta = checks.probability("delta", delta)
    directions = checked(plan)
    box = certified.epsilon_interval(directions, delta)
    determined = all(composition.determined for composition in directions)
    return Facts(
        delta,
        box,
        determined,
        _route(directions, determined, steps, box.method),
        _theorems(_cited(directions) if theorems is None else theorems, determined, steps, box.method),
        tradeoff.true_positive_rate(directions, 0.01),
        tradeoff.advantage(directions),
        _finite(gaussian.mu(directions)),
        _rho(directions),
    )


def _route(directions: Sequence[Composition], determined: bool, steps: int, method: str) -> tuple[str, ...]:
    if not steps:
        return ("nothing was run, so nothing leaks",)
    kind = "dominating pair of distributions" if determined else "bound on its Renyi divergences"
    sides = "both directions alike" if len(directions) == 1 else "each direction apart, the worse one counts"
    out = [f"every step is replaced by a {kind} ({sides})"]
    if steps > 1:
        out.append(f"the privacy losses of {steps} steps add")
    out.append(f"epsilon is found by: {method}")
    return tuple(out)


def _cited(directions: Sequence[Composition]) -> list[str]:
    return list(dict.fromkeys(law.theorem for c in directions for law, _ in c.parts if law.theorem))


def _theorems(laws: Sequence[str], determined: bool, steps: int, method: str) -> tuple[str, ...]:
    if not steps:
        return ()
    by_renyi = not determined or "Chernoff" in method
    conversion = renyi.CONVERSIONS["tightest"] if by_renyi else CERTIFIED_THEOREM
    return (*laws, *([ADDITION] if steps > 1 else []), conversion, ATTACKS)


def _rho(directions: Sequence[Composition]) -> float | None:
    """The smallest rho where every law has a closed one: a search would cost more than the answer."""
    if any(law.closed_rho() is None for c in directions for law, _ in c.parts):
        return None
    try:
        return _finite(concentrated.rho(directions))
    except Unanswerable:
        return None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
