"""The row that a paper should print: epsilon, mu with its head, unit, adjacency, sampler, what else was released."""

from __future__ import annotations

import math

from dptally import checks
from dptally.answers.assumptions import assumptions
from dptally.errors import InvalidArgument, Unanswerable
from dptally.gdp.measure import Measurement, measure
from dptally.mechanisms import Mechanism
from dptally.numerics.shown import shown_down, shown_up
from dptally.report.tabular import Tabular

__all__ = ["paper_table"]

_NEAR = 1.05  # mu for every epsilon is printed where it is at most this multiple of mu on the head


def paper_table(plan: Mechanism, delta: float, *, unit: str, released: str = "", title: str = "") -> Tabular:
    """One line per fact, ready for LaTeX. ``released`` says what else left the data (tuning, evaluation); nothing said
    is printed as such.

    >>> from dptally import Gaussian
    >>> paper_table(Gaussian(2.0), 1e-6, unit="one image").rows[0]
    ('epsilon', '2.25409 at delta = 1e-06')
    """
    delta = checks.probability("delta", delta)
    if not isinstance(unit, str) or not unit.strip():
        raise InvalidArgument("unit", 'said, such as "one image"', unit)
    epsilon = plan.epsilon(delta)
    rows = [
        ("epsilon", f"{shown_up(epsilon)} at delta = {delta:g}"),
        ("mu", _mu(plan, epsilon)),
        ("unit of privacy", unit),
        ("adjacency", _stated(plan, "adjacency")),
        ("sampler", _stated(plan, "sampling")),
        ("true-positive rate at 1 % false positives", f"at most {shown_up(100 * (1 - plan.tradeoff(0.01)), 4)} %"),
        ("also released", released or "nothing else was stated"),
    ]
    return Tabular(("guarantee", "value"), tuple(rows), title or repr(plan))


def _mu(plan: Mechanism, epsilon: float) -> str:
    """mu for every epsilon where that costs little, else on the head up to the printed epsilon."""
    everywhere, head = _measured(plan, None), _measured(plan, min(max(epsilon, 1e-3), 1e6))
    if everywhere is not None and (head is None or everywhere.mu.upper <= _NEAR * head.mu.upper):
        return shown_up(everywhere.mu.upper)
    if head is None:
        return "none known"
    rest = f" (beyond: delta up to {shown_up(head.left_out, 3)})" if head.left_out > 0 else ""
    return f"{shown_up(head.mu.upper)} for epsilon up to {shown_down(head.head)}{rest}"


def _measured(plan: Mechanism, head: float | None) -> Measurement | None:
    """The measured mu, None where there is none."""
    try:
        found = measure(plan, head=head, tolerance=1e-4)
    except Unanswerable:
        return None
    return found if math.isfinite(found.mu.upper) else None


def _stated(plan: Mechanism, word: str) -> str:
    lines = [line for line in assumptions(plan) if line.startswith(word)]
    return lines[0].split(": ", 1)[1] if lines else "none"
