"""Laplace noise on a Poisson sample under ADD_REMOVE: the generic law, with what contours need."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.law import Law
from dptally.law.adjacency import Direction
from dptally.law.characteristic import Characteristic, MomentTable
from dptally.laws.quadrature.losses import LossNodes
from dptally.laws.sampled import laplace_contour as contour
from dptally.laws.sampled.generic import SampledLaw
from dptally.numerics.rounding import EPS

__all__ = ["SampledLaplaceLaw"]


@dataclass(frozen=True, slots=True)
class SampledLaplaceLaw(SampledLaw):
    """The loss log A(w) under the mixture (REMOVE), or -log A(w) without the record (ADD); w is the loss of the noise
    alone, and inside stands its law.
    """

    has_characteristic: ClassVar[bool] = True

    @property
    def noise_reach(self) -> float:
        return self.inner.supremum

    @property
    def powers(self) -> contour.Powers:
        remove = self.side is Direction.REMOVE
        return contour.Powers(rising=remove, falling=not remove)

    def losses(self, rule: contour.Rule) -> LossNodes:
        remove = self.side is Direction.REMOVE
        inner, log_mass = (rule.w, rule.log_base + rule.w) if remove else (-rule.w, rule.log_base)
        nodes = self._mixed(inner, log_mass)
        # a node lies within a few ulps of r: d log A / dw is q e^w / A
        share = self.rate * np.exp(rule.w - (nodes.loss if remove else -nodes.loss))
        blur = 8 * EPS * (np.abs(nodes.loss) + self.noise_reach * share)
        slip = 8 * EPS * (8.0 + 2 * self.noise_reach + np.abs(nodes.log_mass))
        return replace(nodes, mass_error=slip, loss_error=blur)

    def atoms(self) -> tuple[tuple[float, float], ...]:
        """Half of the outputs without the record lie below, e^-r / 2 of them beyond; no e^r is formed."""
        q, r = self.rate, self.noise_reach
        low, high = (
            self._moved(-r if self.side is Direction.REMOVE else r),
            self._moved(r if self.side is Direction.REMOVE else -r),
        )
        if self.side is Direction.ADD:
            return ((high, 0.5 * math.exp(-r)), (low, 0.5))
        return ((low, 0.5 * ((1.0 - q) + q * math.exp(-r))), (high, 0.5 * ((1.0 - q) * math.exp(-r) + q)))

    def atom_rows(self, number: int) -> tuple[int, int]:
        return 0, number - 1

    def log_ends(self, theta: float) -> tuple[float, ...]:
        q, r = self.rate, self.noise_reach
        power = theta + 2 if self.side is Direction.REMOVE else 1 - theta
        head = math.log(0.25) + 0.5 * (math.log(q) - r) - 1.5 * math.log(q)
        return tuple(head + power * contour.log_a(q, w) - 1.5 * w for w in (-r, r))

    def moment_table(self, theta: Floats) -> MomentTable:
        return contour.moment_table(self, theta)

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> Characteristic | None:
        return contour.characteristic(self, theta, reach, log_tolerance)

    def log_decay(self, theta: float, start: Floats) -> Floats:
        return contour.log_decay(self, theta, start)

    def optimistic(self) -> Law:
        return self._least()
