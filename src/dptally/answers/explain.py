"""``plan.explain``: one readable page about one answer, with the sources to cite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dptally import checks
from dptally.accounting.explain import Facts, facts
from dptally.answers.assumptions import assumptions
from dptally.errors import InvalidType
from dptally.later import later
from dptally.mechanisms.mechanism import Mechanism
from dptally.numerics.shown import shown_down, shown_up

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer, its route, its theorems and assumptions, and what it means. ``str()`` is the page."""

    plan: Mechanism
    facts: Facts
    parts: tuple[tuple[str, int, str], ...]
    assumptions: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON (an infinite epsilon stays a float infinity)."""
        f = self.facts
        return {
            "plan": repr(self.plan),
            "delta": f.delta,
            "epsilon": {"lower": f.epsilon.lower, "upper": f.epsilon.upper, "method": f.epsilon.method},
            "route": list(f.route),
            "theorems": list(f.theorems),
            "sources": [str(source) for source in f.sources],
            "assumptions": list(self.assumptions),
            "parts": [{"mechanism": name, "count": n, "theorem": theorem} for name, n, theorem in self.parts],
            "meaning": {
                "true_positive_rate_at_1_percent_false_positives": f.power_at_one_percent,
                "advantage": f.advantage,
                "gaussian_mu": f.mu,
                "zcdp_rho": f.rho,
            },
        }

    def bibtex(self) -> str:
        """The sources as BibTeX entries."""
        return "\n\n".join(source.bibtex() for source in self.facts.sources)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        return str(later("explanation_html")(self))

    def _repr_markdown_(self) -> str:
        return str(later("explanation_markdown")(self))

    def _lines(self) -> Iterator[str]:
        f = self.facts
        yield f"epsilon = {shown_up(f.epsilon.upper, 8)} at delta = {f.delta!r}"
        yield f"  rounded up; the truth is at least {shown_down(f.epsilon.lower, 8)} ({f.epsilon.method})"
        yield from _section("plan", (f"{count:>8} x {name}" for name, count, _ in self.parts))
        yield from _section("what it means", _meaning(f))
        yield from _section("assumptions", self.assumptions)
        yield from _section("route", (f"{i}. {step}" for i, step in enumerate(f.route, 1)))
        yield from _section("theorems", f.theorems)
        yield from _section("sources", (f"[{source.tag}] {source}" for source in f.sources))


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield ""
    yield title
    for line in lines:
        yield f"  {line}"


def _meaning(f: Facts) -> Iterator[str]:
    power = shown_up(100 * f.power_at_one_percent, 4)
    yield f"an attacker with 1 % false positives finds at most {power} % of the members"
    yield f"no attacker's TPR - FPR (membership advantage) is above {shown_up(f.advantage, 4)}"
    if f.mu is not None:
        yield f"Gaussian DP with mu = {shown_up(f.mu)}"
    if f.rho is not None:
        yield f"zero-concentrated DP with rho = {shown_up(f.rho)}"
    if not f.determined:
        yield "these are upper bounds from Renyi divergences only: the guarantee does not fix more"


def explain(plan: Mechanism, delta: float) -> Explanation:
    """How the epsilon of this plan at this delta was found, on which theorems it rests, and what it means.

    >>> from dptally.mechanisms import Gaussian
    >>> print(str(explain(Gaussian(sigma=1.0), delta=1e-5)).splitlines()[0])
    epsilon = 4.3771781 at delta = 1e-05
    """
    delta = checks.probability("delta", delta)
    if not isinstance(plan, Mechanism):
        raise InvalidType("plan", "a mechanism or a composition of mechanisms", plan)
    parts = tuple((repr(m), n, "; ".join(m.theorems())) for m, n in plan.parts)
    found = facts(plan.directions(), delta, sum(n for m, n in plan.parts if m.laws()), plan.theorems())
    if any(part.laws_below() is not None for part, _ in plan.parts):  # the laws bound the plan from above alone
        found = replace(found, epsilon=plan.epsilon_interval(delta))
    return Explanation(plan, found, parts, tuple(assumptions(plan)))
