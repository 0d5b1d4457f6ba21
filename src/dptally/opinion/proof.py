"""The proof file: a claim, the plan as JSON, and the numbers that decide it; run again by anybody.

The plan stands in it as a document of ``dp.to_json``, so that nothing has to be parsed again from prose. Where
python-flint is there and the plan is one that proof mode covers, the deciding number is an enclosure in ball
arithmetic; otherwise the certified interval. A digest tells whether the file was changed; whoever forges that too
finds every number computed again and compared.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dptally
from dptally.errors import DptallyError, InvalidArgument, Unanswerable
from dptally.interval import Interval
from dptally.mechanisms import Mechanism, from_json, to_json
from dptally.opinion.claim import Claim, Claimed
from dptally.opinion.verdict import STATUSES, Verdict, judged

__all__ = ["Verification", "document", "save", "verify"]

FORMAT = 1
_LONGEST = 2_000_000
_KEYS = {
    "dptally_proof",
    "status",
    "claim",
    "plan",
    "epsilon",
    "delta_at_claimed_epsilon",
    "balls",
    "made_by",
    "sha256",
}


_NUMBERS = ("epsilon", "delta_at_claimed_epsilon", "balls")


@dataclass(frozen=True, slots=True)
class Verification:
    """What came out when a proof file was run again."""

    confirmed: bool
    stated: str
    found: str
    interval: Interval
    balls: Interval | None
    text: str

    def to_dict(self) -> dict[str, Any]:
        balls = None if self.balls is None else {"lower": self.balls.lower, "upper": self.balls.upper}
        ends = {"lower": _written(self.interval.lower), "upper": _written(self.interval.upper)}
        out = {"confirmed": self.confirmed, "stated": self.stated, "found": self.found, "epsilon": ends}
        return out | {"balls": balls, "text": self.text}


def document(verdict: Verdict) -> dict[str, Any]:
    """The proof file's content."""
    plan = verdict.claim.plan
    if plan is None:
        raise Unanswerable("a claim about a run that is not described has no proof; answer its questions first")
    balls = _balls(plan, verdict.claimed)
    made = {
        "dptally_proof": FORMAT,
        "status": verdict.status,
        "claim": {"epsilon": _written(verdict.claimed.epsilon), "delta": verdict.claimed.delta},
        "plan": json.loads(to_json(plan)),
        "epsilon": _ends(verdict.interval),
        "delta_at_claimed_epsilon": _ends(verdict.delta_interval),
        "balls": None if balls is None else _ends(balls),
        "made_by": f"dptally {dptally.__version__}",
    }
    return made | {"sha256": _digest(made)}


def _digest(said: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in said.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def save(verdict: Verdict, path: Path) -> Path:
    path.write_text(json.dumps(document(verdict), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return path


def verify(source: str | Path) -> Verification:
    """Run a proof file again: the plan is read, everything is computed anew, and the verdict must be the same.

    The numbers in the file are not trusted: they are only compared.
    """
    said = _read(Path(source))
    try:
        plan = from_json(json.dumps(said["plan"]))
        claimed = Claimed(_number(said["claim"]["epsilon"]), _number(said["claim"]["delta"]))
        stated = [None if said[name] is None else _interval(said[name]) for name in _NUMBERS]
    except (KeyError, TypeError) as error:
        raise InvalidArgument("proof", "a whole proof file", f"{type(error).__name__} {error}"[:80]) from None
    verdict = judged(Claim(claimed, plan, source="proof file"))
    balls = _balls(plan, claimed)
    found = (verdict.interval, verdict.delta_interval, balls)
    faults = [
        f"the {name.replace('_', ' ')} of the file and of this run exclude each other"
        for name, one, other in zip(_NUMBERS, stated, found, strict=True)
        if not _meet(one, other)
    ]
    if not _meet(verdict.interval, balls):
        faults.append("the certified interval and ball arithmetic exclude each other")
    if said["sha256"] != _digest(said):
        faults.append("the file was changed after it was written")
    confirmed = verdict.status == said["status"] and not faults
    text = f"{STATUSES[verdict.status]}: {'confirmed' if confirmed else 'NOT confirmed'}"
    text = "; ".join([text, *faults, *([] if balls is None else [f"ball arithmetic: {balls}"])])
    return Verification(confirmed, said["status"], verdict.status, verdict.interval, balls, text)


def _meet(one: Interval | None, other: Interval | None) -> bool:
    """Two certified intervals of one number must meet; where one is missing nothing can be compared."""
    return one is None or other is None or (one.lower <= other.upper and other.lower <= one.upper)


def _balls(plan: Mechanism, claimed: Claimed) -> Interval | None:
    """The enclosure of epsilon in ball arithmetic, None where proof mode does not reach or is not installed."""
    try:
        return plan.prove(delta=claimed.delta, digits=8)
    except DptallyError:
        return None


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            raw = stream.read(_LONGEST + 1)
    except OSError as error:
        raise InvalidArgument("proof", "a readable file", str(path)[:200], str(error.strerror)) from None
    if len(raw) > _LONGEST:
        raise InvalidArgument("proof", f"at most {_LONGEST} bytes", str(path))
    from dptally.opinion.reading import json_document

    try:
        said = json_document(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise InvalidArgument("proof", "UTF-8 text", str(path)) from None
    if not isinstance(said, dict) or set(said) != _KEYS or said["dptally_proof"] != FORMAT:
        raise InvalidArgument("proof", f"a proof file of format {FORMAT}", str(path))
    if said["status"] not in STATUSES:
        raise InvalidArgument("status", f"one of {', '.join(STATUSES)}", said["status"])
    return said


def _interval(said: Mapping[str, Any]) -> Interval:
    return Interval(_number(said["lower"]), _number(said["upper"]))


def _ends(box: Interval) -> dict[str, Any]:
    return {"lower": _written(box.lower), "upper": _written(box.upper), "method": box.method}


def _written(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"


def _number(value: object) -> float:
    if value == "inf":
        return math.inf
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError("a number")
    return float(value)
