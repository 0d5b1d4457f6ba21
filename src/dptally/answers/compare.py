"""``dp.compare``: every framework's epsilon for one plan, as a table."""

from __future__ import annotations

from dataclasses import dataclass

from dptally import checks
from dptally.accounting.compare import Row, rows
from dptally.errors import InvalidType
from dptally.later import later
from dptally.mechanisms.mechanism import Mechanism
from dptally.numerics.shown import shown_up

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The frameworks' answers, the smallest first. ``str()`` is a plain-text table."""

    plan: Mechanism
    delta: float
    rows: tuple[Row, ...]

    @property
    def best(self) -> Row:
        """The smallest epsilon of all."""
        return self.rows[0]

    def to_dict(self) -> dict[str, object]:
        """Plain values: the plan as text, delta, and one dictionary per row."""
        return {"plan": repr(self.plan), "delta": self.delta, "rows": [row.to_dict() for row in self.rows]}

    def __str__(self) -> str:
        table = [("framework", "epsilon", "order", "theorem")]
        for row in self.rows:
            if row.epsilon is None:
                table.append((row.framework, "-", "-", f"no answer: {row.reason}"))
            else:
                order = "-" if row.order is None else f"{row.order:.6g}"
                table.append((row.framework, shown_up(row.epsilon, 8), order, row.theorem))
        widths = [max(len(line[column]) for line in table) for column in range(3)]
        lines = [
            f"{name:<{widths[0]}}  {epsilon:>{widths[1]}}  {order:>{widths[2]}}  {theorem}".rstrip()
            for name, epsilon, order, theorem in table
        ]
        head = f"{self.plan!r}\nat delta = {self.delta!r}, every epsilon rounded up"
        return "\n".join([head, "", lines[0], "-" * len(lines[0]), *lines[1:]])

    def _repr_html_(self) -> str:
        return str(later("comparison_html")(self))

    def _repr_markdown_(self) -> str:
        return str(later("comparison_markdown")(self))


def compare(plan: Mechanism, delta: float) -> Comparison:
    """Every applicable framework's epsilon at this delta, the tightest first, each with its theorem.

    A framework that cannot answer is listed with its reason.

    >>> from dptally.mechanisms import Gaussian
    >>> compare(Gaussian(sigma=1.0), delta=1e-5).rows[-1].framework
    'pure DP'
    """
    if not isinstance(plan, Mechanism):
        raise InvalidType("plan", "a mechanism or a composition of mechanisms", plan)
    delta = checks.probability("delta", delta)
    return Comparison(plan, delta, rows(plan.directions(), delta))
