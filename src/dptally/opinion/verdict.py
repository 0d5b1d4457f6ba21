"""The verdict on a claim: true, loose, refuted or undetermined, by how much and why."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import dptally
from dptally.errors import DptallyError
from dptally.interval import Interval
from dptally.numerics.shown import shown_down, shown_up
from dptally.opinion import reading
from dptally.opinion.accountants import known, matches
from dptally.opinion.claim import Claim, Claimed

__all__ = ["LOOSE", "STATUSES", "Verdict", "check", "check_all", "judged"]

LOOSE = 1.01  #: a claim above this multiple of the certified upper end is called loose
#: decimals such as 0.1 are held as doubles, in claims and in plans: what agrees to this relative distance is equal
DECIMALS = 1e-12
STATUSES = {
    "refuted": "REFUTED",
    "true": "TRUE",
    "loose": "TRUE BUT LOOSE",
    "undetermined": "NOT DETERMINED",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What holds of a claim. ``interval`` has both certified ends of the true epsilon at the claimed delta;
    ``delta_interval`` those of the true delta at the claimed epsilon.
    """

    status: str
    claim: Claim
    interval: Interval
    delta_interval: Interval
    reasons: tuple[str, ...]

    @property
    def claimed(self) -> Claimed:
        """The claimed numbers, ``.epsilon`` and ``.delta``."""
        return self.claim.claimed

    @property
    def headline(self) -> str:
        return f"{STATUSES[self.status]}: epsilon {self.claimed.epsilon:g} at delta {self.claimed.delta:g}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; infinity is the string "inf"."""
        return {
            "status": self.status,
            "claimed": {"epsilon": _finite(self.claimed.epsilon), "delta": self.claimed.delta},
            "epsilon": _ends(self.interval),
            "delta_at_claimed_epsilon": _ends(self.delta_interval),
            "reasons": list(self.reasons),
            "assumed": list(self.claim.assumed),
            "questions": list(self.claim.questions),
            "notes": list(self.claim.notes),
            "accountant": self.claim.accountant,
            "source": self.claim.source,
            "plan": None if self.claim.plan is None else repr(self.claim.plan),
            "dptally": dptally.__version__,
        }

    def save_proof(self, path: str | Path) -> Path:
        """Write what another person needs to run this again: ``dptally check --verify FILE``."""
        from dptally.opinion.proof import save

        return save(self, Path(path))

    def page(self, samplers: bool = False) -> Any:
        """The page about this verdict, with ``to_text()``, ``to_html()`` and ``to_dict()``; with ``samplers`` the run
        is accounted for under every sampler, which may take a minute.
        """
        from dptally.opinion.page import page

        return page(self, samplers)

    def __str__(self) -> str:
        return "\n".join([self.headline, *(f"  {reason}" for reason in self.reasons)])


def check(source: object, epsilon: float | None = None, delta: float | None = None) -> Verdict:
    """The verdict on one claim: a text ("epsilon 1.62 at delta 1e-5: DP-SGD noise 1, rate 0.01, 1000 steps"), a
    mapping, or the path of a file. ``epsilon`` and ``delta`` complete a source that describes a run but claims
    nothing, such as a checkpoint.

    >>> check("epsilon 1.62 at delta 1e-5: DP-SGD noise 1, rate 0.01, 1000 steps, gdp accountant").status
    'refuted'
    """
    claims = reading.claims_of(source, epsilon, delta)
    if len(claims) > 1 and "statement" not in claims[0].source:
        from dptally.errors import InvalidArgument

        raise InvalidArgument("claim", "one claim", f"{len(claims)} claims", "ask dptally.opinion.check_all(...)")
    return judged(claims[0])


def check_all(source: object, epsilon: float | None = None, delta: float | None = None) -> tuple[Verdict, ...]:
    """The verdict on each claim of a source, such as a CSV file."""
    return tuple(judged(claim) for claim in reading.claims_of(source, epsilon, delta))


def judged(claim: Claim) -> Verdict:
    """Judge a claim: refuted or true only by a certified end, up to the rounding of its decimals."""
    epsilon, delta = claim.claimed
    unknown = Interval(0.0, math.inf, "not determined"), Interval(0.0, 1.0, "not determined")
    if claim.plan is None:
        return Verdict("undetermined", claim, *unknown, ("the run is not described well enough to judge the claim",))
    try:
        box = claim.plan.epsilon_interval(delta)
        risk = claim.plan.delta_interval(epsilon) if math.isfinite(epsilon) else Interval(0.0, 0.0, "claimed infinite")
    except DptallyError as refusal:
        return Verdict("undetermined", claim, *unknown, (str(refusal),))
    status = _status(claim.claimed, box, risk)
    return Verdict(status, claim, box, risk, tuple(_reasons(status, claim, box, risk)))


def _status(claimed: Claimed, box: Interval, risk: Interval) -> str:
    if claimed.epsilon > LOOSE * box.upper:
        return "loose"
    if claimed.epsilon >= box.upper * (1.0 - DECIMALS):
        return "true"
    if claimed.epsilon < box.lower * (1.0 - DECIMALS) or claimed.delta < risk.lower * (1.0 - DECIMALS):
        return "refuted"
    return "true" if claimed.delta >= risk.upper else "undetermined"


def _reasons(status: str, claim: Claim, box: Interval, risk: Interval) -> list[str]:
    epsilon, delta = claim.claimed
    out = [f"certified: {shown_down(box.lower, 8)} <= epsilon <= {shown_up(box.upper, 8)} at delta = {delta:g}"]
    if status == "refuted":
        out.append(_excess(epsilon, delta, box, risk))
        if box.lower <= epsilon * 1.0005:
            out.append("the difference is that of rounding the epsilon down; rounded up it would be true")
        out += _declared(claim)
    elif status == "loose":
        out.append(f"the claim is {epsilon / box.upper if box.upper else math.inf:.4g} times what was spent")
    elif status == "true" and epsilon < box.upper:
        out.append("the claim is the certified end, up to the rounding of its decimals")
    elif status == "undetermined":
        out.append("the claim lies between the certified ends")
    found = known(claim.accountant)
    if found is not None:
        out.append(f"{claim.accountant} accountant: {found.worth}")
    elif claim.accountant:
        out.append(f"{claim.accountant} accountant: not known here")
    if claim.plan is not None and status in ("refuted", "loose"):
        out += islice(matches(claim, claim.plan), 1)
    return out


def _excess(epsilon: float, delta: float, box: Interval, risk: Interval) -> str:
    least = f"the truth is at least {shown_down(box.lower)}"
    if not delta:
        return f"{least}; at the claimed epsilon delta is at least {shown_down(risk.lower)}, not 0"
    times = f"{shown_down(risk.lower / delta, 3)} times the claim"
    return f"{least}; at epsilon = {epsilon:g} delta is at least {shown_down(risk.lower)}, {times}"


def _declared(claim: Claim) -> list[str]:
    """A declared guarantee is judged by the worst mechanism that has it."""
    parts = claim.plan.parts if claim.plan is not None else ()
    names = sorted(
        {
            type(m).__name__
            for m, _ in parts
            if any(f.startswith("declared") for f in getattr(m, "__dataclass_fields__", ()))
        }
    )
    if not names:
        return []
    return [f"{', '.join(names)} is a declared guarantee: some mechanism that has it exceeds the claim"]


def _ends(box: Interval) -> dict[str, Any]:
    return {"lower": _finite(box.lower), "upper": _finite(box.upper), "method": box.method}


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"
