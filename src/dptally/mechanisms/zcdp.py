"""A declared zero-concentrated guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dptally import checks
from dptally.accounting import group
from dptally.law import Law
from dptally.laws.moment_bound import ZCDPBound
from dptally.mechanisms.assumption import DECLARED, Assumption
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.registry import declared

__all__ = ["ZCDP"]


@declared(section="guarantees", plan="zcdp", example={"rho": 0.25}, zero=("rho",), definition="zcdp")
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ZCDP(Mechanism):
    """Any ``rho``-zero-concentrated DP mechanism: every order a > 1 has Renyi divergence at most rho a.

    In both directions [Bun, Steinke 2016, Def. 1.1]

    >>> round(ZCDP(0.5).renyi(8.0), 12)
    4.0
    """

    declared_rho: float
    json_name: ClassVar[str] = "zcdp"

    def __init__(self, rho: float) -> None:
        object.__setattr__(self, "declared_rho", checks.nonnegative("rho", rho))

    def assumptions(self) -> tuple[Assumption, ...]:
        return (DECLARED,)

    def laws(self) -> tuple[Law, ...]:
        return (ZCDPBound(self.declared_rho),) if self.declared_rho > 0 else ()

    def grouped(self, size: int) -> ZCDP:
        return ZCDP(group.concentrated(self.declared_rho, size).value)
