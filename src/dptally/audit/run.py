"""The audit of a mechanism that can be run often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dptally import checks
from dptally.audit.claim import measure_of
from dptally.audit.drawing import Progress, draw_both
from dptally.audit.events import best_event, roc
from dptally.audit.outputs import paired
from dptally.audit.result import AuditResult
from dptally.audit.views import VIEWS, fitted
from dptally.errors import InvalidArgument, InvalidType
from dptally.mechanisms import Mechanism

__all__ = ["CONFIDENCE", "run"]

CONFIDENCE = 1 - 1e-6


def run(
    mechanism: Callable[..., Any],
    d0: Any,
    d1: Any,
    claim: Mechanism,
    *,
    samples: int = 20_000,
    batched: bool = False,
    delta: float | None = None,
    quantity: str | None = None,
    views: tuple[str, ...] = tuple(VIEWS),
    confidence: float = CONFIDENCE,
    jobs: int = 1,
    progress: Progress | None = None,
) -> AuditResult:
    """Try to refute ``claim`` from runs of ``mechanism`` on two neighbouring datasets ``d0`` and ``d1``.

    ``mechanism(data)`` returns one output (or, if ``batched``, ``mechanism(data, size)`` returns ``size`` of
    them): numbers, rows of numbers, anything hashable, or a release. An eighth of the runs fits ways of
    telling the two datasets apart, an eighth selects one event among them, and the rest tests that event by
    Clopper-Pearson bounds; so the bound holds whatever was tried. ``quantity`` and ``delta`` say what is
    bounded: see :func:`dptally.audit.claim.measure_of`.

    >>> from dptally import PureDP, noise
    >>> claim = PureDP(1.0)
    >>> honest = run(lambda x: x + noise.discrete_laplace(1), 0, 1, claim, samples=2000)
    >>> broken = run(lambda x: x + noise.discrete_laplace(1) // 4, 0, 1, claim, samples=2000)
    >>> honest.verdict, broken.verdict
    ('not refuted', 'refuted')
    """
    measure, claimed = measure_of(claim, delta, quantity)
    samples = checks.count("samples", samples, least=8)
    confidence = checks.open_probability("confidence", confidence)
    jobs = checks.count("jobs", jobs, least=-1)
    if not callable(mechanism):
        raise InvalidType("mechanism", "a function of the data", mechanism)
    if jobs == 0:
        raise InvalidArgument("jobs", "at least 1, or -1 for every core", jobs)
    if not views or not set(views) <= set(VIEWS):
        raise InvalidArgument("views", f"some of {', '.join(VIEWS)}", views)
    first, second = paired(*draw_both(mechanism, (d0, d1), samples, batched, jobs, progress))
    # the bound's width comes from the last part, so the first two are as small as a choice allows
    eighth, rest = samples // 8, samples // 4
    fits = fitted(views, first[:eighth], second[:eighth])
    if not fits:
        raise InvalidArgument("views", "fit for this kind of output", views)
    failure = 1 - confidence
    event = best_event(fits, first[eighth:rest], second[eighth:rest], measure, failure, tests=samples - rest)
    lower, p, q = event.lower(first[rest:], second[rest:], measure, failure)
    return AuditResult(
        lower=lower,
        claimed=claimed,
        quantity=measure.name,
        delta=measure.delta,
        claim=claim,
        confidence=confidence,
        samples=samples,
        event=str(event),
        point=(q, p),
        roc=roc(event, first[rest:], second[rest:]),
    )
