"""Is a mechanism Gaussian DP for some mu? A verdict with its reason."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from dptally.errors import InvalidType
from dptally.gdp.curve import FADED, Curve
from dptally.gdp.tail import tail_of
from dptally.gdp.view import Profiled
from dptally.interval import Interval
from dptally.mechanisms import Mechanism

__all__ = ["Identification", "Verdict", "identify"]

_FARTHEST = 1024.0


class Verdict(Enum):
    """The three answers."""

    GDP = "GDP"
    NOT_GDP = "not GDP"
    HEAD_ONLY = "head only"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Identification:
    """``tail_limit`` bounds mu_t (None: unknown); every mu is at least mu_t, and mu_t need not be enough.

    ``enough`` is a mu that is certainly enough, inf where none is known in closed form: :func:`measure` finds
    the smallest. ``head`` is how far the profile is known (inf: everywhere).
    """

    verdict: Verdict
    tail_limit: Interval | None
    enough: float
    head: float
    reason: str

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reason}"


def identify(m: Profiled) -> Identification:
    """Whether ``m`` is mu-GDP for some mu: iff its tail limit mu_t is finite and delta(0) < 1.

    mu_t = limsup eps / sqrt(-2 log delta(eps))  [Liu et al. 2022, Thm. 3.2 and 3.3, as corrected: mu >= mu_t is
    necessary, not sufficient]. For plans it is decided through zCDP, which is the same property.

    >>> from dptally import ApproxDP, Laplace
    >>> print(identify(Laplace(scale=0.5)))
    GDP: the loss is at most 2, and delta is 0 from there on
    >>> identify(ApproxDP(1.0, 1e-6)).verdict
    <Verdict.NOT_GDP: 'not GDP'>
    """
    if isinstance(m, Curve):
        return _of_curve(m)
    if not isinstance(m, Mechanism):
        raise InvalidType("m", "a mechanism, a plan or a dptally.gdp.Curve", m)
    tail = tail_of(m)
    if math.isinf(tail.necessary):
        return Identification(Verdict.NOT_GDP, tail.limit, math.inf, math.inf, tail.reason)
    bounded = tail.limit == Interval(0.0, 0.0)
    if tail.shape is None and not bounded and not all(composition.determined for composition in m.directions()):
        text = "Renyi divergences are bounded at some orders only, which implies no mu"
        return Identification(Verdict.NOT_GDP, None, math.inf, math.inf, text)
    if bounded or tail.shape is not None or tail.enough < math.inf:
        return Identification(Verdict.GDP, tail.limit, tail.enough, math.inf, tail.reason)
    return Identification(Verdict.HEAD_ONLY, tail.limit, math.inf, 0.0, f"{tail.reason}; measure it on a head")


def _of_curve(curve: Curve) -> Identification:
    tail = tail_of(curve)
    if curve.delta(0.0) == 1.0:
        text = "delta(0) = 1: no mu covers epsilon 0; refine the curve first (dp.gdp.refined)"
        return Identification(Verdict.NOT_GDP, tail.limit, math.inf, math.inf, text)
    if math.isinf(tail.necessary):
        return Identification(Verdict.NOT_GDP, tail.limit, math.inf, math.inf, tail.reason)
    if tail.limit is not None and (tail.shape is not None or curve.zero_from < math.inf):
        return Identification(Verdict.GDP, tail.limit, math.inf, math.inf, tail.reason)
    return _by_evidence(curve)


def _by_evidence(curve: Curve) -> Identification:
    """A bare formula that never ends: only the head that was looked at is known.

    Where doubles fade away a value says nothing of the tail, and neither does one beyond the formula's reach.
    """
    looked = np.concatenate([[0.0], np.geomspace(2.0**-10, min(_FARTHEST, curve.reach), 161)])
    values = curve.deltas(looked)
    last = int(np.flatnonzero(values > FADED)[-1])
    head, delta = float(looked[last]), float(values[last])
    seen = head / math.sqrt(-2.0 * math.log(delta))
    text = f"known up to epsilon {head:.6g}, where delta is {delta:.3g} and eps/sqrt(-2 log delta) {seen:.6g}"
    if last + 1 < looked.size:
        text += " (beyond, delta is too small for doubles)"
    return Identification(Verdict.HEAD_ONLY, None, math.inf, head, text)
