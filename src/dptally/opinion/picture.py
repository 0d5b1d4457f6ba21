"""The picture of a verdict: delta against epsilon, what was spent and what was claimed, as SVG by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dptally.errors import DptallyError
from dptally.opinion.verdict import Verdict

__all__ = ["picture"]

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _POINTS = 620.0, 260.0, 62.0, 36.0, 25
_INK, _CLAIM = "#0b4f8a", "#b5461d"


def picture(verdict: Verdict) -> str:
    """An SVG of the certified profile around the claim; empty where there is no finite profile to draw."""
    points = _profile(verdict)
    if len(points) < 2:
        return ""
    epsilon, delta = verdict.claimed
    lowest, highest = _decades([value for _, value in points] + ([delta] if delta > 0 else []))
    most = points[-1][0]

    def place(x: float, y: float) -> tuple[float, float]:
        across = _LEFT + (x / most) * (_WIDTH - _LEFT - 12)
        up = (math.log10(max(y, 10.0**lowest)) - lowest) / (highest - lowest)
        return across, _HEIGHT - _BOTTOM - up * (_HEIGHT - _BOTTOM - 12)

    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in points))
    x, y = place(min(epsilon, most), delta)
    parts = [
        f'<svg role="img" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" width="{_WIDTH:.0f}" '
        'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="11" fill="currentColor">',
        "<title>delta against epsilon: the certified curve and the claimed point</title>",
        *_axes(lowest, highest, most, place(0.0, 10.0**highest)[1]),
        f'<polyline class="tone-0" fill="none" stroke="{_INK}" stroke-width="2" points="{line}"/>',
        f'<circle class="tone-1" cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{_CLAIM}"/>',
        f'<text x="{min(x + 8, _WIDTH - 60):.1f}" y="{min(y + 16, _HEIGHT - _BOTTOM - 4):.1f}">claimed</text>',
        "</svg>",
    ]
    return "".join(parts)


def _profile(verdict: Verdict) -> list[tuple[float, float]]:
    """(epsilon, certified upper end of delta) from 0 to beyond the claim and the truth."""
    plan, ends = verdict.claim.plan, (verdict.claimed.epsilon, verdict.interval.upper)
    reach = 1.3 * max((value for value in ends if math.isfinite(value)), default=0.0)
    if plan is None or not reach > 0 or verdict.interval.method == "not determined":
        return []
    steps = [reach * i / (_POINTS - 1) for i in range(_POINTS)]
    try:
        return [(x, plan.delta(x)) for x in steps]
    except DptallyError:
        return []


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around the values, at most 20 of them."""
    logs = [math.log10(value) for value in values if value > 0] or [0.0]
    highest = math.ceil(max(logs))
    lowest = max(math.floor(min(logs)), highest - 20)
    return (lowest - 1, highest) if lowest == highest else (lowest, highest)


def _axes(lowest: int, highest: int, most: float, top: float) -> list[str]:
    base = _HEIGHT - _BOTTOM
    step = max(1, (highest - lowest) // 5)
    out = [
        f'<path d="M{_LEFT},{top:.1f} V{base} H{_WIDTH - 12}" fill="none" stroke="#888"/>',
        f'<text x="{(_LEFT + _WIDTH) / 2:.0f}" y="{_HEIGHT - 4}" text-anchor="middle">epsilon</text>',
        f'<text x="12" y="{(top + base) / 2:.0f}" transform="rotate(-90 12 {(top + base) / 2:.0f})">delta</text>',
    ]
    for power in range(lowest, highest + 1, step):
        y = base - (power - lowest) / (highest - lowest) * (base - top)
        out.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">1e{power}</text>')
    for i in range(5):
        x = _LEFT + i / 4 * (_WIDTH - _LEFT - 12)
        out.append(f'<text x="{x:.0f}" y="{base + 14}" text-anchor="middle">{most * i / 4:.3g}</text>')
    return out
