"""dptally: certified bounds in floating point, and in ball arithmetic."""

from __future__ import annotations

from typing import Any

import dptally as dp
import dptally.mechanisms  # names load on first use; the peers' imports are not counted either

VERSION = dp.__version__


def _plan(work: dict[str, Any]) -> Any:
    plan: Any = 0
    for part in work["parts"]:
        match part["kind"]:
            case "sampled_gaussian":
                plan = plan + dp.dpsgd(part["sigma"], part["rate"], part["count"])
            case "gaussian":
                plan = plan + part["count"] * dp.Gaussian(part["sigma"])
            case "laplace":
                plan = plan + part["count"] * dp.Laplace(part["scale"])
            case "sampled_laplace":
                plan = plan + part["count"] * dp.PoissonSampled(dp.Laplace(part["scale"]), part["rate"])
            case "discrete_gaussian":
                plan = plan + part["count"] * dp.DiscreteGaussian(part["sigma"])
            case "randomized_response":
                plan = plan + part["count"] * dp.RandomizedResponse(part["p"])
            case "exponential":
                plan = plan + part["count"] * dp.ExponentialMechanism(part["epsilon"])
            case "best_of":
                run = dp.dpsgd(part["sigma"], part["rate"], part["steps"])
                plan = plan + part["count"] * run.best_of(mean=part["mean"])
            case "approx":
                plan = plan + part["count"] * dp.ApproxDP(part["epsilon"], part["delta"])
    return plan


def certified(work: dict[str, Any]) -> Any:
    if work["ask"] == "sigma":
        found = dp.calibrate(
            lambda sigma: dp.dpsgd(sigma, work["rate"], work["steps"]),
            epsilon=work["epsilon"],
            delta=work["delta"],
        )
        return float(getattr(found, "value", found))
    if work["ask"] == "epsilons":
        boxes = _plan(work).epsilon_interval(delta=work["deltas"])
        return float(boxes.lower.mean()), float(boxes.upper.mean()), float(boxes.upper.mean())
    box = _plan(work).epsilon_interval(delta=work["delta"])
    return box.lower, box.upper, box.upper


def proof(work: dict[str, Any]) -> Any:
    if work["ask"] != "epsilon":
        raise NotImplementedError("proofs answer epsilon and delta")
    from dptally.accounting.certified.proof import prove_epsilon

    try:
        box = prove_epsilon(_plan(work).directions(), work["delta"])
    except dp.Unanswerable as reason:
        raise NotImplementedError(str(reason)) from None
    return box.lower, box.upper, box.upper


METHODS = {"certified": certified, "proof": proof}
