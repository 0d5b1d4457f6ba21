"""A checklist after NIST SP 800-226 (Guidelines for Evaluating Differential Privacy Guarantees, 2025).

Each line is a question of an evaluation, in our words, with what accounting can say to it; what it cannot know is left
to the evaluator. It is no certification.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from dptally import checks
from dptally.errors import InvalidArgument
from dptally.mechanisms import Mechanism
from dptally.numerics.shown import shown_up
from dptally.report.card import Card, card

__all__ = ["Checklist", "Line", "nist"]

OPEN = "to be answered by the evaluator"


@dataclass(frozen=True, slots=True)
class Line:
    """One question: its subject, the question, what is known, and whether accounting settles it."""

    subject: str
    question: str
    answer: str
    settled: bool


@dataclass(frozen=True, slots=True)
class Checklist:
    """The checklist of a plan."""

    title: str
    lines: tuple[Line, ...]

    def to_dict(self) -> dict[str, object]:
        return {"title": self.title, "lines": [asdict(line) for line in self.lines]}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2) + "\n"

    def to_markdown(self) -> str:
        rows = [f"# {self.title}", "", "| | subject | question | answer |", "|---|---|---|---|"]
        for line in self.lines:
            cells = (line.subject, line.question, line.answer)
            rows.append(
                f"| {'x' if line.settled else ' '} | {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
            )
        done = sum(line.settled for line in self.lines)
        return "\n".join(
            [*rows, "", f"{done} of {len(self.lines)} settled by the account; the rest is the evaluator's.", ""]
        )


def nist(plan: Mechanism, delta: float, *, unit: str = "", title: str = "") -> Checklist:
    """The checklist of a plan at ``delta``; ``unit`` is what one record stands for.

    >>> from dptally import Gaussian
    >>> nist(Gaussian(sigma=2.0), 1e-6, unit="one patient").lines[1].answer
    'one patient'
    """
    delta = checks.probability("delta", delta)
    if not isinstance(unit, str):
        raise InvalidArgument("unit", "a text", unit)
    page = card(plan, (delta,), title=title, unit=unit)
    heading = f"Evaluation after NIST SP 800-226: {title or 'privacy guarantee'}"
    return Checklist(heading, tuple(_lines(page, unit)))


def _lines(page: Card, unit: str) -> Iterator[Line]:
    delta, box = page.epsilons[0]
    yield Line(
        "epsilon and delta",
        "Which privacy-loss parameters hold for everything that was released?",
        f"epsilon {shown_up(box.upper, 8)} at delta {delta:g} (certified, {box.method})",
        True,
    )
    yield Line(
        "unit of privacy",
        "Whose data changes between neighbours: an event, a person, a household?",
        unit or OPEN,
        bool(unit),
    )
    yield Line(
        "neighbours", "Is a record added or removed, or replaced?", page.adjacency, "as stated" not in page.adjacency
    )
    yield Line(
        "small delta",
        "Is delta well below one over the number of people?",
        f"delta {delta:g}; the number is {OPEN}",
        False,
    )
    yield Line(
        "variant", "Which variant of differential privacy, and what are its other readings?", _variants(page), True
    )
    yield Line(
        "mechanisms", "Which mechanisms ran, how often?", "; ".join(f"{n} x {m}" for n, m, _ in page.mechanisms), True
    )
    yield Line(
        "sampling",
        "Does the sampler that ran match the one that was accounted for?",
        f"accounted: {page.sampling}",
        False,
    )
    yield Line(
        "composition",
        "Do all releases over time share one budget?",
        "all releases of this plan; further ones: " + OPEN,
        False,
    )
    yield Line("sensitivity", "Is the bound on one unit's contribution enforced in code?", OPEN, False)
    yield Line("proof", "On which theorems does the claim rest?", "; ".join(page.theorems) or "nothing was run", True)
    yield Line("risk", "What can an attacker achieve?", _risk(page), True)
    yield Line(
        "randomness", "Is the noise drawn from a secure source, and safe against floating-point attacks?", OPEN, False
    )
    yield Line("side channels", "Do timing, errors or sizes of outputs tell more than the answers?", OPEN, False)
    yield Line("tuning and previews", "Were parameters chosen, or results looked at, outside the account?", OPEN, False)
    yield Line("unprotected parts", "What is released without protection (totals, schemas, public data)?", OPEN, False)
    yield Line("trust", "Who sees raw data: a central curator, a shuffler, nobody?", OPEN, False)
    yield Line("access", "Who holds the raw data, and how is it kept and deleted?", OPEN, False)
    yield Line("utility and bias", "How large is the error, for small groups too?", OPEN, False)


def _variants(page: Card) -> str:
    rho = "no finite rho" if page.rho is None else f"rho {shown_up(page.rho)}"
    return f"(epsilon, delta); Gaussian DP: {page.gaussian}; zero-concentrated DP: {rho}"


def _risk(page: Card) -> str:
    rates = "; ".join(f"{100 * x:g} % false positives: at most {shown_up(100 * y, 4)} % found" for x, y in page.risk)
    return f"{rates}; advantage at most {shown_up(page.advantage, 4)}"
