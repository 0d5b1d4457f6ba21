"""PipelineDP with certified budgets: a budget accountant that counts every mechanism.

from dptally.interop.pipeline_dp import DptallyBudgetAccountant
accountant = DptallyBudgetAccountant(total_epsilon=1, total_delta=1e-6)
"""

from __future__ import annotations

from dptally.errors import InvalidArgument, MissingExtra
from dptally.interop.budgets import THRESHOLD_SHARE, Request, base_noise, plan_at
from dptally.mechanisms import Mechanism

__all__ = ["DptallyBudgetAccountant"]

try:
    from pipeline_dp.budget_accounting import (  # pyright: ignore[reportMissingImports]
        BudgetAccountant,
        MechanismSpec,
        MechanismSpecInternal,
        MechanismType,
    )
except ImportError:
    raise MissingExtra("pipeline-dp") from None

_KINDS = {
    MechanismType.LAPLACE: "laplace",
    MechanismType.LAPLACE_THRESHOLDING: "laplace",
    MechanismType.GAUSSIAN: "gaussian",
    MechanismType.GAUSSIAN_THRESHOLDING: "gaussian",
    MechanismType.GENERIC: "generic",
    MechanismType.TRUNCATED_GEOMETRIC: "generic",
}


class DptallyBudgetAccountant(BudgetAccountant):  # type: ignore[misc]  # PipelineDP has no types of its own
    """Splits one (epsilon, delta) among all mechanisms of a pipeline by a common, certified noise level.

    Each mechanism is composed as often as its count says; thresholds share a quarter of delta, each application its
    part.
    """

    def __init__(
        self,
        total_epsilon: float,
        total_delta: float,
        num_aggregations: int | None = None,
        aggregation_weights: list[float] | None = None,
    ) -> None:
        super().__init__(total_epsilon, total_delta, num_aggregations, aggregation_weights)
        self.base_noise_std: float | None = None

    def request_budget(
        self,
        mechanism_type: MechanismType,
        sensitivity: float = 1,
        weight: float = 1,
        count: int = 1,
        noise_standard_deviation: float | None = None,
        name: str = "",
    ) -> MechanismSpec:
        """A spec that is filled in by compute_budgets()."""
        if self._finalized:
            raise InvalidArgument("request_budget", "called before compute_budgets()", mechanism_type)
        if noise_standard_deviation is not None:
            raise InvalidArgument("noise_standard_deviation", "None: the accountant finds it", noise_standard_deviation)
        if self._total_delta == 0 and mechanism_type is not MechanismType.LAPLACE:
            raise InvalidArgument("total_delta", f"above 0 for {mechanism_type.value}", 0)
        spec = MechanismSpec(mechanism_type=mechanism_type, name=name, _count=count)
        inside = MechanismSpecInternal(mechanism_spec=spec, sensitivity=sensitivity, weight=weight)
        self._register_mechanism(inside)
        return spec

    def compute_budgets(self) -> None:
        """Fill in every spec."""
        self._check_aggregation_restrictions()
        if self._scopes_stack:
            raise InvalidArgument("compute_budgets", "called outside of a budget scope", len(self._scopes_stack))
        self._finalize()
        if not self._mechanisms:
            return
        requests = self._requests()
        base = base_noise(requests, self._total_epsilon, self._total_delta)
        self.base_noise_std = base
        uses = sum(one.count for one in requests if one.thresholding)
        left = self._delta_left(requests)
        for mechanism, one in zip(self._mechanisms, requests, strict=True):
            spec = mechanism.mechanism_spec
            if one.kind == "generic":
                spec.set_eps_delta(*one.guarantee(base, self._total_epsilon, left))
            else:
                spec.set_noise_standard_deviation(one.deviation(base))
            if one.thresholding:
                spec.set_thresholding_delta(THRESHOLD_SHARE * self._total_delta / uses)

    @property
    def plan(self) -> Mechanism:
        """What the pipeline runs, as a dptally plan; thresholds are beside it."""
        if self.base_noise_std is None:
            raise InvalidArgument("plan", "asked after compute_budgets()", None)
        requests = self._requests()
        return plan_at(requests, self.base_noise_std, self._total_epsilon, self._delta_left(requests))

    def _requests(self) -> list[Request]:
        return [
            Request(
                _KINDS[one.mechanism_spec.mechanism_type],
                float(one.sensitivity),
                float(one.weight),
                int(one.mechanism_spec.count),
                bool(one.mechanism_spec.mechanism_type.is_thresholding_mechanism),
            )
            for one in self._mechanisms
        ]

    def _delta_left(self, requests: list[Request]) -> float:
        share = THRESHOLD_SHARE if any(one.thresholding for one in requests) else 0.0
        return float(self._total_delta) * (1.0 - share)
