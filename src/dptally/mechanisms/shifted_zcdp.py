"""A declared zero-concentrated guarantee with a constant on top."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dptally import checks
from dptally.accounting import group
from dptally.errors import InvalidArgument
from dptally.law import Law
from dptally.laws.moment_bound import ShiftedZCDPBound
from dptally.mechanisms.assumption import DECLARED, Assumption
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.pure_dp import PureDP
from dptally.mechanisms.registry import declared
from dptally.numerics.rounding import up

__all__ = ["ShiftedZCDP"]

_SUMMED = 1000  # reciprocals that are added one by one
_EULER = 0.5772156649015329


@declared(section="guarantees", plan="shifted_zcdp", example={"rho": 0.25, "xi": 0.1}, zero=("rho", "xi"))
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ShiftedZCDP(Mechanism):
    """Any (``xi``, ``rho``)-zCDP mechanism: every order a > 1 has Renyi divergence at most xi + rho a, both ways.

    [Bun, Steinke 2016, Def. 8.1]

    >>> round(ShiftedZCDP(rho=0.5, xi=1.0).renyi(8.0), 12)
    5.0
    """

    declared_rho: float
    xi: float
    json_name: ClassVar[str] = "shifted_zcdp"

    def __init__(self, rho: float, xi: float) -> None:
        object.__setattr__(self, "declared_rho", checks.nonnegative("rho", rho))
        object.__setattr__(self, "xi", checks.nonnegative("xi", xi))

    def assumptions(self) -> tuple[Assumption, ...]:
        return (DECLARED,)

    def laws(self) -> tuple[Law, ...]:
        if self.declared_rho == 0.0:  # no order exceeds xi, so no loss does: pure DP
            return PureDP(self.xi).laws()
        return (ShiftedZCDPBound(self.declared_rho, self.xi),)

    def grouped(self, size: int) -> ShiftedZCDP:
        """size^2 rho and size (1 + 1/2 + ... + 1/size) xi [Bun, Steinke 2016, Prop. 1.9 with a constant on top].

        Proof by induction: D_a over k records is at most k a / (k a - 1) D_b over k - 1 of them, b = (k a - 1) /
        (k - 1), plus D_(k a) over the last one, and k a / (k a - 1) <= k / (k - 1).
        """
        shift = up(size * _harmonic(size) * self.xi, 4) if self.xi > 0 else 0.0
        if not math.isfinite(shift):
            raise InvalidArgument("size", "small enough for the product to be a double", size)
        return ShiftedZCDP(group.concentrated(self.declared_rho, size).value, shift)


def _harmonic(size: int) -> float:
    """1 + 1/2 + ... + 1/size, within an ulp; of many terms the bound log(size) + Euler's constant + 1/(2 size)."""
    if size <= _SUMMED:
        return float(sum(Fraction(1, one) for one in range(1, size + 1)))
    return up(math.log(size) + _EULER + 0.5 / size, 8)
