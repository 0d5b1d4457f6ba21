"""The explorer's answers: what the page says of a plan, ready to be shown. Every function is a task of a worker.

A slider waits for :func:`quick` alone: one epsilon, two pictures, a few numbers, all from arrays of questions. What
takes longer (every framework, the noise for a target, every sampler) is asked for afterwards.
"""

from __future__ import annotations

import math
import re
import shlex
from typing import Any

import numpy as np

from dptally import checks
from dptally.accounting.tradeoff import detection_curve
from dptally.answers.assumptions import assumptions
from dptally.answers.batching import NAMES, batching
from dptally.answers.compare import compare
from dptally.cli.plans import of_text
from dptally.errors import DptallyError, InvalidArgument
from dptally.interval import Interval
from dptally.law.adjacency import ADD_REMOVE
from dptally.mechanisms import Gaussian, Mechanism, PoissonSampled
from dptally.numerics.shown import shown_down, shown_up
from dptally.opinion.claim import Claim, Claimed
from dptally.opinion.context import remedy
from dptally.report import svg
from dptally.report.card import card as card_of
from dptally.report.figure import short
from dptally.report.software import dptally_bibtex

__all__ = ["bibtex", "card", "epsilon", "more", "noise", "quick", "samplers"]

_LONGEST = 20_000  # characters of a plan
_DELTAS = tuple(10.0 ** (-power / 2) for power in range(2, 31))  # 1e-1 to 1e-15
_RATES = tuple(float(rate) for rate in np.logspace(-4, 0, 41))
_SLOPES = 24
_STEPS = 13
_QUICK_SAMPLERS = ("poisson", "fixed-size", "cyclic")


def _plan(text: str) -> Mechanism:
    if len(text) > _LONGEST:
        raise InvalidArgument("plan", f"at most {_LONGEST} characters", f"{len(text)} characters")
    return of_text(text).mechanism


def _shown(box: Interval, digits: int = 7) -> dict[str, str]:
    return {"lower": shown_down(box.lower, digits), "upper": shown_up(box.upper, digits), "method": box.method}


def epsilon(text: str, delta: float) -> dict[str, Any]:
    """Both ends of epsilon as numbers, for programs."""
    box = _plan(text).epsilon_interval(delta)
    ends = {"lower": _finite(box.lower), "upper": _finite(box.upper), "method": box.method}
    return {"plan": text, "delta": delta, "epsilon": ends}


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"


# -- what a slider waits for -----------------------------------------------------------------------------------


def quick(text: str, delta: float) -> dict[str, Any]:
    """Epsilon with both ends, the profile and the attacker's curve, what it means, and the lines that give the same."""
    plan = _plan(text)
    box = plan.epsilon_interval(checks.probability("delta", delta))
    curve, meaning = _attacker(plan)
    return {
        "plan": short(plan, _LONGEST),
        "delta": f"{delta:g}",
        "epsilon": _shown(box),
        "profile": _profile(plan, delta, box),
        "attacker": curve,
        "meaning": meaning,
        "assumptions": list(assumptions(plan)),
        "python": python_line(plan, delta),
        "command": f"dptally epsilon {shlex.quote(text)} --delta {delta:g}",
        "form": training_form(plan),
    }


def _profile(plan: Mechanism, delta: float, box: Interval) -> str:
    boxes = plan.epsilon_interval(list(_DELTAS))
    upper = [(float(e), d) for e, d in zip(boxes.upper, _DELTAS, strict=True) if math.isfinite(e)]
    lower = [(float(e), d) for e, d in zip(boxes.lower, _DELTAS, strict=True) if math.isfinite(e)]
    most = max((e for e, _ in upper), default=0.0)
    if not most > 0:
        return ""
    lines = [svg.Line(upper, "at most", 0)]
    if any(u - w > 0.01 * most for (u, _), (w, _) in zip(upper, lower, strict=False)):
        lines.append(svg.Line(lower, "at least", 1))
    drawn = math.isfinite(box.upper) and _DELTAS[-1] <= delta <= _DELTAS[0]
    marks = [svg.Mark(box.upper, delta, f"epsilon {shown_up(box.upper, 4)}")] if drawn else []
    x, y = svg.Axis("epsilon", 0.0, 1.04 * most), svg.Axis("delta", _DELTAS[-1], _DELTAS[0], log=True)
    return svg.chart(lines, x, y, "delta against epsilon, with the answer marked", marks)


def _attacker(plan: Mechanism) -> tuple[str, list[str]]:
    """The most that any attacker finds at each false-positive rate, drawn and in words."""
    rates = np.array([*_RATES, 0.01, 0.001, 0.1])
    try:
        found = detection_curve(plan.directions(), rates, _SLOPES)[0]
    except DptallyError as refusal:
        return "", [f"what an attacker can do is not known: {refusal}"]
    powers = [min(float(power), 1.0) for power in found]
    line = svg.Line(list(zip(_RATES, powers, strict=False)), "any attacker, at most", 0)
    guess = svg.Line([(_RATES[0], _RATES[0]), (1.0, 1.0)], "guessing", 4)
    axes = svg.Axis("false-positive rate", _RATES[0], 1.0, log=True), svg.Axis("true positives", 1e-4, 1.0, log=True)
    title = "largest true-positive rate against the false-positive rate"
    picture = svg.chart([line, guess], *axes, title, rising=True)
    words = [
        f"an attacker with {100 * rate:g} % false positives finds at most {shown_up(100 * power, 4)} % of the members"
        for rate, power in zip((0.01, 0.001, 0.1), powers[-3:], strict=True)
    ]
    return picture, [words[1], words[0], words[2]]


def python_line(plan: Mechanism, delta: float) -> str:
    """What gives the same answer in Python."""
    form = training_form(plan)
    if form is not None:
        made = f"dp.dpsgd(noise_multiplier={form['noise']}, sample_rate={form['rate']}, steps={form['steps']})"
    else:
        made = re.sub(r"\b([A-Z]\w*)(?=\()", r"dp.\1", repr(plan))
        made = re.sub(r"\b(ADD_REMOVE|REPLACE)\b", r"dp.\1", made)
        made = re.sub(r"\binf\b", 'float("inf")', made)
    return f"import dptally as dp\n\nplan = {made}\nplan.epsilon(delta={delta:g})"


def training_form(plan: Mechanism) -> dict[str, str] | None:
    """Noise, rate and steps where the plan is a DP-SGD run, which the sliders can hold."""
    if len(plan.parts) != 1:
        return None
    ((part, count),) = plan.parts
    if not isinstance(part, PoissonSampled) or part.adjacency is not ADD_REMOVE:
        return None
    inner = part.mechanism
    if not isinstance(inner, Gaussian) or inner.sensitivity != 1.0:
        return None
    return {"noise": repr(inner.sigma), "rate": repr(part.rate), "steps": str(count)}


# -- what comes afterwards -------------------------------------------------------------------------------------


def more(text: str, delta: float) -> dict[str, Any]:
    """Every framework's epsilon, and epsilon over the steps."""
    plan = _plan(text)
    found = compare(plan, checks.probability("delta", delta))
    shown = [svg.Bar(r.framework, r.epsilon, "-" if r.epsilon is None else shown_up(r.epsilon, 5)) for r in found.rows]
    rows = [
        {
            "framework": row.framework,
            "epsilon": "-" if row.epsilon is None else shown_up(row.epsilon, 7),
            "theorem": row.theorem if row.epsilon is not None else f"no answer: {row.reason}",
        }
        for row in found.rows
    ]
    return {"rows": rows, "bars": svg.bars(shown, "epsilon by framework", 520), "steps": _steps(plan, delta)}


def _steps(plan: Mechanism, delta: float) -> str:
    """Epsilon after each number of steps up to twice the plan's; of runs of the whole where it has several parts."""
    if not plan.parts:
        return ""
    one, now = plan.parts[0] if len(plan.parts) == 1 else (plan, 1)
    last = max(2 * now, 4)
    counts = sorted({max(1, round(last * (i / (_STEPS - 1)) ** 1.5)) for i in range(_STEPS)} | {now})
    found = one.epsilon_curve(counts, delta)
    points = [(float(n), e) for n, e in zip(counts, found, strict=True) if math.isfinite(e)]
    most = max((e for _, e in points), default=0.0)
    if not most > 0:
        return ""
    here = dict(points).get(float(now))
    marks = [] if here is None else [svg.Mark(float(now), here, "this plan", before=True)]
    name = "steps" if len(plan.parts) == 1 else "runs of the whole plan"
    x, y = svg.Axis(name, 0.0, float(last)), svg.Axis("epsilon", 0.0, 1.05 * most)
    return svg.chart([svg.Line(points, "at most", 0)], x, y, f"epsilon against {name}", marks)


def noise(text: str, target: float, delta: float) -> dict[str, Any]:
    """The least noise with which the plan meets a target, all noise widened alike."""
    plan = _plan(text)
    claimed = Claimed(checks.nonnegative("target", target), checks.probability("delta", delta))
    found = remedy(Claim(claimed, plan))
    if found is None:
        return {"target": f"{target:g}", "factor": None}
    box = found.plan.epsilon_interval(delta)
    form = training_form(found.plan)
    return {
        "target": f"{target:g}",
        "factor": shown_up(found.factor, 6),
        "plan": short(found.plan, _LONGEST),
        "noise": None if form is None else shown_up(float(form["noise"]), 7),
        "epsilon": _shown(box),
    }


def samplers(noise_text: str, rate_text: str, steps_text: str, records: int, delta: float, every: bool) -> Any:
    """What each way of drawing batches costs; those that take seconds only with ``every``."""
    noise_multiplier, rate = checks.positive("noise", float(noise_text)), checks.probability("rate", float(rate_text))
    records = checks.count("records", records, 2)
    size = min(max(round(rate * records), 1), records)
    epochs = max(1, round(checks.count("steps", int(steps_text), 1) * size / records))
    names = tuple(NAMES) if every else _QUICK_SAMPLERS
    found = batching(noise_multiplier, records, size, epochs, delta, names=names)
    rows = [
        {
            "name": row.name,
            "about": NAMES[row.name],
            "lower": "-" if row.epsilon is None else shown_down(row.epsilon.lower, 6),
            "upper": row.reason if row.epsilon is None else shown_up(row.epsilon.upper, 6),
        }
        for row in found
    ]
    return {"rows": rows, "batch": size, "records": records, "epochs": epochs, "every": every}


def card(text: str, delta: float, form: str) -> str:
    """The guarantee card as "html" or "markdown"."""
    made = card_of(_plan(text), (checks.probability("delta", delta),))
    return made.to_html() if form == "html" else made.to_markdown()


def bibtex(text: str, delta: float) -> str:
    """The sources of the answer, and this software."""
    return f"{dptally_bibtex()}\n\n{_plan(text).explain(delta).bibtex()}\n"
