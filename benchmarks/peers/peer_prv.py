"""prv-accountant: (lower, estimate, upper) at a stated error of epsilon."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import prv_accountant as prv

VERSION = version("prv-accountant")


def _variable(part: dict[str, Any]) -> Any:
    match part["kind"]:
        case "sampled_gaussian":
            return prv.PoissonSubsampledGaussianMechanism(part["rate"], part["sigma"])
        case "gaussian":
            return prv.GaussianMechanism(part["sigma"])
        case "laplace":
            return prv.LaplaceMechanism(1 / part["scale"])
        case "approx":
            if part["delta"] == 0:
                return prv.PureDPMechanism(part["epsilon"])
            return prv.ApproximateDPMechanism(part["epsilon"], part["delta"])
        case kind:
            raise NotImplementedError(f"no random variable for {kind}")


def _epsilon(work: dict[str, Any], error: float) -> tuple[float, float, float]:
    if work["ask"] != "epsilon":
        raise NotImplementedError("no calibration")
    counts = [part["count"] for part in work["parts"]]
    accountant = prv.PRVAccountant(
        [_variable(part) for part in work["parts"]],
        eps_error=error,
        delta_error=work["delta"] / 1000,
        max_self_compositions=counts,
    )
    lower, estimate, upper = accountant.compute_epsilon(work["delta"], counts)
    return lower, estimate, upper


METHODS = {"error .1": lambda work: _epsilon(work, 0.1), "error .01": lambda work: _epsilon(work, 0.01)}
