"""Every framework side by side: the same plan, the same delta, one epsilon each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from dptally import checks
from dptally.accounting import alpha, approximate, certified, concentrated, gaussian, optimal, pure, renyi
from dptally.accounting.answer import Answer
from dptally.accounting.moments import Asked, checked
from dptally.errors import InvalidArgument, Unanswerable
from dptally.law import Composition
from dptally.numerics.shown import shown_down

__all__ = ["Row", "rows"]

CERTIFIED_THEOREM = "delta(eps) = E[(1 - exp(eps - L))+]: Balle, Wang 2018, Thm. 5; Zhu, Dong, Wang 2022"


@dataclass(frozen=True, slots=True)
class Row:
    """What one framework says: ``epsilon`` is an upper bound, or None and ``reason`` says why."""

    framework: str
    epsilon: float | None
    order: float | None = None
    theorem: str = ""
    detail: str = ""
    reason: str = ""

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


Route = Callable[[Sequence[Composition], float], Answer]


def _certified(directions: Sequence[Composition], delta: float) -> Answer:
    box = certified.epsilon_interval(directions, delta)
    theorem = CERTIFIED_THEOREM
    if not all(composition.determined for composition in directions):
        theorem = renyi.epsilon(directions, delta).theorem
    detail = f"{box.method}; at least {shown_down(box.lower, 8)}"
    return Answer(box.upper, "certified", theorem, None, detail)


#: in the order that breaks ties: the certified accountant first
ROUTES: tuple[tuple[str, Route], ...] = (
    ("certified numerical", _certified),
    ("Gaussian DP", gaussian.epsilon),
    ("optimal composition", optimal.epsilon),
    ("Renyi DP, tightest conversion", renyi.epsilon),
    ("Renyi DP, Mironov's conversion", lambda d, delta: renyi.epsilon(d, delta, "mironov")),
    ("alpha-divergence DP", alpha.epsilon),
    ("Kairouz-Oh-Viswanath bound", lambda d, delta: approximate.epsilon(d, delta, "kairouz")),
    ("advanced composition", lambda d, delta: approximate.epsilon(d, delta, "advanced")),
    ("basic composition", lambda d, delta: approximate.epsilon(d, delta, "basic")),
    ("pure DP", pure.epsilon),
)

CONCENTRATED = (("zCDP, tightest conversion", "tightest"), ("zCDP, Bun-Steinke's conversion", "bun-steinke"))


def rows(plan: Asked, delta: float) -> tuple[Row, ...]:
    """One row per framework, the smallest epsilon first; those without an answer last, with the reason."""
    delta = checks.probability("delta", delta)
    directions = checked(plan)
    if not any(composition.parts for composition in directions):
        return tuple(Row(name, 0.0, detail="nothing was run") for name, _ in (*ROUTES, *CONCENTRATED))
    found = [_row(name, route, directions, delta) for name, route in ROUTES]
    found += _concentrated(directions, delta)
    return tuple(sorted(found, key=lambda row: math.inf if row.epsilon is None else min(row.epsilon, 1e308)))


def _concentrated(directions: Sequence[Composition], delta: float) -> list[Row]:
    """Both conversions from one rho: finding it is the expensive part."""
    try:
        rho = concentrated.rho(directions)
    except Unanswerable as refusal:
        return [Row(name, None, reason=str(refusal)) for name, _ in CONCENTRATED]
    if math.isinf(rho):
        return [Row(name, None, reason="the plan is not zCDP for any rho") for name, _ in CONCENTRATED]
    answers = [(name, concentrated.epsilon_from_rho(rho, delta, how)) for name, how in CONCENTRATED]
    return [Row(name, a.value, a.order, a.theorem, a.detail) for name, a in answers]


def _row(name: str, route: Route, directions: Sequence[Composition], delta: float) -> Row:
    try:
        answer = route(directions, delta)
    except (Unanswerable, InvalidArgument) as refusal:  # the framework's own limits: delta was checked above
        return Row(name, None, reason=str(refusal))
    return Row(name, answer.value, answer.order, answer.theorem, answer.detail)
