"""Choosing an event on one part of the samples and testing it on another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dptally.audit.bounds import Counts, Measure, lower_probability, upper_probability
from dptally.audit.views import Outputs, View
from dptally.checks import Floats

__all__ = ["Event", "best_event", "roc"]

_THRESHOLDS = 256
_CAUTION = 0.05  # of the guess, from the samples that choose, of what the samples that test will show


@dataclass(frozen=True, slots=True)
class Event:
    """{score >= threshold} or {score <= threshold}, with P the law on dataset ``likelier`` (0 or 1)."""

    view: View
    threshold: float
    above: bool
    likelier: int

    def __str__(self) -> str:
        side = ">=" if self.above else "<="
        return f"{self.view.name}: score {side} {self.threshold:.6g}, likelier on d{self.likelier}"

    def count(self, outputs: Outputs) -> int:
        score = self.view.score(outputs)
        return int(np.count_nonzero(score >= self.threshold if self.above else score <= self.threshold))

    def lower(self, test0: Outputs, test1: Outputs, measure: Measure, failure: float) -> tuple[float, float, float]:
        """(lower bound of the measure, lower bound of P(S), upper bound of Q(S)) from samples that did not
        choose S.
        """
        tests = (test0, test1) if self.likelier == 0 else (test1, test0)
        p = lower_probability(self.count(tests[0]), len(tests[0]), failure / 2)
        q = upper_probability(self.count(tests[1]), len(tests[1]), failure / 2)
        return float(measure.lower(p, q)), float(p), float(q)


def best_event(
    views: list[View], select0: Outputs, select1: Outputs, measure: Measure, failure: float, tests: int
) -> Event:
    """The event that promises the largest lower bound from so many test runs on each dataset, over views,
    thresholds, sides, directions.

    The promise is cautious (likely bounds of both probabilities, and from them the certified ones that the
    test would give), lest a rare event be chosen for a lucky count.
    """
    best: tuple[float, Event] | None = None
    for view in views:
        thresholds, above0, above1, below0, below1 = _counts(view.score(select0), view.score(select1))
        for above, first, second in ((True, above0, above1), (False, below0, below1)):
            for likelier, k, other in ((0, first, second), (1, second, first)):
                n, m = (len(select0), len(select1)) if likelier == 0 else (len(select1), len(select0))
                likely, seldom = lower_probability(k, n, _CAUTION), upper_probability(other, m, _CAUTION)
                p = lower_probability(tests * likely, tests, failure / 2)
                q = upper_probability(tests * seldom, tests, failure / 2)
                bounds = measure.lower(p, q)
                i = int(np.argmax(bounds))
                if best is None or bounds[i] > best[0]:
                    best = float(bounds[i]), Event(view, float(thresholds[i]), above, likelier)
    assert best is not None, "there is always a view"
    return best[1]


def _counts(score0: Floats, score1: Floats) -> tuple[Floats, Counts, Counts, Counts, Counts]:
    pooled = np.unique(np.concatenate([score0, score1]))
    if len(pooled) > _THRESHOLDS:  # evenly by rank, and the ends
        pooled = pooled[np.unique(np.linspace(0, len(pooled) - 1, _THRESHOLDS).astype(int))]
    sorted0, sorted1 = np.sort(score0), np.sort(score1)
    above0, above1 = (len(s) - np.searchsorted(s, pooled, side="left") for s in (sorted0, sorted1))
    below0, below1 = (np.searchsorted(s, pooled, side="right") for s in (sorted0, sorted1))
    return pooled, above0, above1, below0, below1


def roc(event: Event, test0: Outputs, test1: Outputs) -> tuple[tuple[float, float], ...]:
    """(Q(S), P(S)) as seen on the test samples for the event's view at each threshold: for the picture only."""
    _, above0, above1, below0, below1 = _counts(event.view.score(test0), event.view.score(test1))
    seen0, seen1 = (above0, above1) if event.above else (below0, below1)
    p, q = seen0 / len(test0), seen1 / len(test1)
    pairs = zip(q, p, strict=True) if event.likelier == 0 else zip(p, q, strict=True)
    return tuple(sorted((float(a), float(b)) for a, b in pairs))
