"""dp-accounting: privacy loss distributions by connect-the-dots (default grid 1e-4, and 1e-5), and Renyi
DP.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import dp_accounting
import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_distribution as losses
from dp_accounting.rdp import RdpAccountant

VERSION = version("dp-accounting")
_NO_EVENT = {"approx", "discrete_gaussian", "exponential"}


def _event(part: dict[str, Any]) -> Any:
    match part["kind"]:
        case "sampled_gaussian":
            return dp_event.PoissonSampledDpEvent(part["rate"], dp_event.GaussianDpEvent(part["sigma"]))
        case "gaussian":
            return dp_event.GaussianDpEvent(part["sigma"])
        case "laplace":
            return dp_event.LaplaceDpEvent(part["scale"])
        case "sampled_laplace":
            return dp_event.PoissonSampledDpEvent(part["rate"], dp_event.LaplaceDpEvent(part["scale"]))
        case "randomized_response":
            return dp_event.RandomizedResponseDpEvent(2 * (1 - part["p"]), 2)
        case "best_of":
            step = dp_event.PoissonSampledDpEvent(part["rate"], dp_event.GaussianDpEvent(part["sigma"]))
            run = dp_event.SelfComposedDpEvent(step, part["steps"])
            return dp_event.RepeatAndSelectDpEvent(run, part["mean"], 0.0)
        case kind:
            raise NotImplementedError(f"no event for {kind}")


def _accountant(accountant: Any, work: dict[str, Any]) -> float:
    for part in work["parts"]:
        event = _event(part)
        if not accountant.supports(event):
            raise NotImplementedError(f"{type(accountant).__name__} refuses {type(event).__name__}")
        accountant.compose(event, part["count"])
    if work["ask"] == "epsilons":
        return sum(float(accountant.get_epsilon(delta)) for delta in work["deltas"]) / len(work["deltas"])
    return float(accountant.get_epsilon(work["delta"]))


def _calibrated(make: Any, work: dict[str, Any]) -> float:
    return float(
        dp_accounting.calibrate_dp_mechanism(
            make,
            lambda sigma: dp_event.SelfComposedDpEvent(
                dp_event.PoissonSampledDpEvent(work["rate"], dp_event.GaussianDpEvent(sigma)), work["steps"]
            ),
            work["epsilon"],
            work["delta"],
        )
    )


def _loss(part: dict[str, Any], grid: float) -> Any:
    match part["kind"]:
        case "approx":
            guarantee = dp_accounting.pld.common.DifferentialPrivacyParameters(part["epsilon"], part["delta"])
            return losses.from_privacy_parameters(guarantee, value_discretization_interval=grid)
        case "exponential":  # it knows no bounded range: pure DP is what it has for it
            guarantee = dp_accounting.pld.common.DifferentialPrivacyParameters(part["epsilon"], 0.0)
            return losses.from_privacy_parameters(guarantee, value_discretization_interval=grid)
        case "gaussian":
            return losses.from_gaussian_mechanism(part["sigma"], value_discretization_interval=grid)
        case "sampled_gaussian":
            return losses.from_gaussian_mechanism(
                part["sigma"], value_discretization_interval=grid, sampling_prob=part["rate"]
            )
        case "discrete_gaussian":
            return losses.from_discrete_gaussian_mechanism(part["sigma"], value_discretization_interval=grid)
        case kind:
            raise NotImplementedError(f"no loss distribution for {kind}")


def _pld(work: dict[str, Any], grid: float) -> float:
    if work["ask"] == "sigma":
        return _calibrated(lambda: PLDAccountant(value_discretization_interval=grid), work)
    # what its accountant has no event for, and many deltas, which it would compose for anew each time
    if work["ask"] == "epsilons" or {part["kind"] for part in work["parts"]} & _NO_EVENT:
        total = losses.identity(value_discretization_interval=grid)
        for part in work["parts"]:
            total = total.compose(_loss(part, grid).self_compose(part["count"]))
        if work["ask"] == "epsilons":
            return float(np.mean([total.get_epsilon_for_delta(delta) for delta in work["deltas"]]))
        return float(total.get_epsilon_for_delta(work["delta"]))
    return _accountant(PLDAccountant(_relation(work), value_discretization_interval=grid), work)


def _relation(work: dict[str, Any]) -> Any:
    """Its accountants take randomised response only where a record is replaced, which is the same pair as
    ours.
    """
    replaced = any(part["kind"] == "randomized_response" for part in work["parts"])
    return (
        dp_accounting.NeighboringRelation.REPLACE_ONE
        if replaced
        else dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    )


def renyi(work: dict[str, Any]) -> float:
    if work["ask"] == "sigma":
        return _calibrated(RdpAccountant, work)
    return _accountant(RdpAccountant(neighboring_relation=_relation(work)), work)


METHODS = {"PLD 1e-4": lambda work: _pld(work, 1e-4), "PLD 1e-5": lambda work: _pld(work, 1e-5), "RDP": renyi}
