r"""A mixture of pairs that also reveals which of them it was: its profile is the mixture of the profiles.

M(z) = sum_i p_i M_i(z); everything that contour inversion needs is put together from the parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dptally.checks import Floats
from dptally.law import Law
from dptally.law.characteristic import Characteristic, MomentTable, NodeCharacteristic
from dptally.law.law import Numbers
from dptally.numerics.rounding import EPS

__all__ = ["MixedLaw"]

_RARE = 0.05  # of the decay of the others: shares of parts whose own decay is not looked at


@dataclass(frozen=True, slots=True)
class MixedLaw(Law):
    """``parts``: (law, probability) pairs; the probabilities are taken as they are, to 4 ulps each."""

    parts: tuple[tuple[Law, float], ...]
    cited: str
    has_characteristic: ClassVar[bool] = True

    @property
    def theorem(self) -> str:  # type: ignore[override]
        return self.cited

    def _logs(self) -> Floats:
        return np.asarray(np.log(np.array([share for _, share in self.parts])), dtype=np.float64)

    def log_moment(self, t: Numbers) -> Numbers:
        t = np.asarray(t)
        logs = np.stack([np.asarray(law.log_moment(t)) + math.log(share) for law, share in self.parts])
        top = logs.real.max(axis=0)
        safe = np.where(np.isfinite(top), top, 0.0)
        if np.iscomplexobj(logs) or not bool((np.abs(t) < 1e6).all()):
            return np.asarray(safe + np.log(np.exp(logs - safe).sum(axis=0)))
        # near one: log1p of the mean of expm1, so that K keeps its relative accuracy
        small = np.stack(
            [np.expm1(np.minimum(np.asarray(law.log_moment(t)), 1.0)) * share for law, share in self.parts]
        )
        near = np.log1p(small.sum(axis=0))
        return np.asarray(np.where(logs.max(axis=0) < 0.5, near, safe + np.log(np.exp(logs - safe).sum(axis=0))))

    @property
    def mean(self) -> float:
        return math.fsum(share * law.mean for law, share in self.parts)

    @property
    def supremum(self) -> float:
        return max(law.supremum for law, _ in self.parts)

    @property
    def infimum(self) -> float:
        return min(law.infimum for law, _ in self.parts)

    def log_profile(self, epsilon: Floats) -> tuple[Floats, Floats]:
        ends = [law.log_profile(epsilon) for law, _ in self.parts]
        logs = self._logs()
        with np.errstate(invalid="ignore"):
            low = np.logaddexp.reduce([end[0] + log for end, log in zip(ends, logs, strict=True)])
            high = np.logaddexp.reduce([end[1] + log for end, log in zip(ends, logs, strict=True)])
        slack = EPS * (16.0 + 4 * float(np.abs(logs).max()))
        low = low - slack - 4 * EPS * np.where(np.isfinite(low), np.abs(low), 0.0)
        high = high + slack + 4 * EPS * np.where(np.isfinite(high), np.abs(high), 0.0)
        return np.asarray(low), np.asarray(np.minimum(high, 0.0))

    def tail(self, loss: Floats) -> Floats:
        return np.asarray(sum(share * law.tail(loss) for law, share in self.parts))

    def density(self, loss: Floats) -> Floats:
        return np.asarray(sum(share * law.density(loss) for law, share in self.parts))

    def breakpoints(self) -> tuple[float, ...]:
        return tuple(sorted({point for law, _ in self.parts for point in law.breakpoints()}))

    # -- contour inversion ---------------------------------------------------------------------------------

    def moment_table(self, theta: Floats) -> MomentTable:
        tables = [law.moment_table(theta) for law, _ in self.parts]
        logs = np.stack([table.moment for table in tables]) + self._logs()[:, None]
        with np.errstate(invalid="ignore"):
            total = np.logaddexp.reduce(logs)
            weight = np.exp(logs - total)
            error = (weight * np.stack([table.error for table in tables])).sum(axis=0) * 1.1
            first = (weight * np.stack([table.first for table in tables])).sum(axis=0)
            second = (weight * np.stack([table.second + table.first**2 for table in tables])).sum(axis=0) - first**2
        return MomentTable(theta, total, error + EPS * (32 + 4 * np.abs(logs).max(axis=0)), first, second)

    def characteristic(self, theta: float, reach: float, log_tolerance: float) -> Characteristic | None:
        found = [law.characteristic(theta, reach, log_tolerance) for law, _ in self.parts]
        nodes = [one for one in found if isinstance(one, NodeCharacteristic)]
        if len(nodes) < len(self.parts):
            return None
        logs = np.array([one.log_moment for one in nodes]) + self._logs()
        total = float(np.logaddexp.reduce(logs))
        share = np.exp(logs - total)
        share = share / share.sum()
        errors = np.array([one.log_moment_error for one in nodes])
        moment_error = float(share @ errors) * 1.1 + EPS * (32 + 4 * float(np.abs(logs).max()))
        # the share of a part errs by its own moment's error and by that of the whole
        doubt = 1.1 * errors + moment_error
        return NodeCharacteristic.of(
            np.concatenate([one.losses + one.centre for one in nodes]),
            np.concatenate([one.weights * part for one, part in zip(nodes, share, strict=True)]),
            loss_error=np.concatenate([one.loss_error + EPS * (np.abs(one.losses) + abs(one.centre)) for one in nodes]),
            weight_error=np.concatenate([one.weight_error + extra for one, extra in zip(nodes, doubt, strict=True)]),
            defect=float(sum(one.defect * part for one, part in zip(nodes, share, strict=True))) * 1.1,
            log_moment=total,
            log_moment_error=moment_error,
        )

    def log_decay(self, theta: float, start: Floats) -> Floats:
        table = [law.moment_table(np.array([theta])) for law, _ in self.parts]
        logs = np.array([float(one.moment[0]) for one in table]) + self._logs()
        if not np.isfinite(logs).all():
            return np.zeros_like(start)
        slack = 2 * max(float(one.error[0]) for one in table) + 1e-12
        share = logs - float(np.logaddexp.reduce(logs))
        order = np.argsort(-share).tolist()
        total = self.parts[order[0]][0].log_decay(theta, start) + share[order[0]]
        for i in order[1:]:
            # |phi| <= 1 is enough for a part that is small beside what the others have lost
            rare = share[i] < math.log(_RARE) + float(np.log(-np.expm1(np.minimum(total, -1e-300)).max()))
            total = np.logaddexp(total, share[i] if rare else share[i] + self.parts[i][0].log_decay(theta, start))
        return np.asarray(np.minimum(total + slack, 0.0))
