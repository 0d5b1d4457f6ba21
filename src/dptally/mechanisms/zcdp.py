"""A declared zero-concentrated guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dptally import checks
from dptally.law import Law, MomentBound
from dptally.law.law import Numbers
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.renyi_dp import real_orders
from dptally.numerics.rounding import up

__all__ = ["ZCDP", "ZCDPBound"]


@dataclass(frozen=True, slots=True)
class ZCDPBound(MomentBound):
    """K(t) <= rho t (t + 1) for t >= 0; rho adds."""

    rho: float
    theorem: ClassVar[str] = "Bun, Steinke 2016, Concentrated differential privacy, Def. 1.1 and Lemma 1.7"
    collapses: ClassVar[bool] = True

    @classmethod
    def collapse(cls, parts: tuple[tuple[Law, int], ...]) -> Law:
        rounded = [n * law.rho for law, n in parts if isinstance(law, ZCDPBound)]
        exact = len(parts) == 1 and parts[0][1] == 1
        return cls(rounded[0] if exact else up(math.fsum(rounded), 2))

    def log_moment(self, t: Numbers) -> Numbers:
        t = real_orders(self, t)
        # on [-1, 0] K is convex with both ends at most 0
        return np.where(t > 0, self.rho * t * (t + 1.0), 0.0)

    @property
    def mean(self) -> float:
        """An upper bound of the KL divergence."""
        return self.rho

    def closed_rho(self) -> float | None:
        return self.rho


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ZCDP(Mechanism):
    """Any ``rho``-zero-concentrated DP mechanism: every order a > 1 has Renyi divergence at most rho a.

    In both directions [Bun, Steinke 2016, Def. 1.1]

    >>> ZCDP(0.5).renyi(8.0)
    4.0
    """

    declared_rho: float
    json_name: ClassVar[str] = "zcdp"

    def __init__(self, rho: float) -> None:
        object.__setattr__(self, "declared_rho", checks.nonnegative("rho", rho))

    def laws(self) -> tuple[Law, ...]:
        return (ZCDPBound(self.declared_rho),) if self.declared_rho > 0 else ()
