"""autodp: Renyi DP, and the analytical Fourier accountant."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from autodp import mechanism_zoo as zoo
from autodp import transformer_zoo as transformers

VERSION = version("autodp")


def _one(part: dict[str, Any]) -> Any:
    match part["kind"]:
        case "sampled_gaussian":
            return zoo.NoisySGD_Mechanism(part["rate"], part["sigma"], 1)
        case "gaussian":
            return zoo.ExactGaussianMechanism(part["sigma"])
        case "laplace":
            return zoo.LaplaceMechanism(part["scale"])
        case "randomized_response":
            return zoo.RandresponseMechanism(part["p"])
        case kind:
            raise NotImplementedError(f"no mechanism for {kind} with a Renyi curve")


def renyi(work: dict[str, Any]) -> float:
    if work["ask"] != "epsilon":
        raise NotImplementedError("not measured")
    mechanisms = [_one(part) for part in work["parts"]]
    whole = transformers.Composition()(mechanisms, [part["count"] for part in work["parts"]])
    return float(whole.get_approxDP(work["delta"]))


def fourier(work: dict[str, Any]) -> float:
    if work["ask"] != "epsilon" or len(work["parts"]) > 1:
        raise NotImplementedError("one kind of mechanism")
    (part,) = work["parts"]
    match part["kind"]:
        case "sampled_gaussian":
            parameters = {"prob": part["rate"], "sigma": part["sigma"], "coeff": part["count"]}
            sides = [
                zoo.SubsampleGaussianMechanism(parameters, phi_off=False, RDP_off=True, neighboring=side)
                for side in ("add_only", "remove_only")
            ]
            return max(float(side.approxDP(work["delta"])) for side in sides)
        case "laplace":
            one = zoo.LaplaceMechanism(part["scale"], phi_off=False, RDP_off=True)
        case "gaussian":
            one = zoo.GaussianMechanism(part["sigma"], phi_off=False, RDP_off=True)
        case "randomized_response":
            one = zoo.RandresponseMechanism(part["p"], phi_off=False, RDP_off=True)
        case kind:
            raise NotImplementedError(f"no characteristic function for {kind}")
    return float(transformers.ComposeAFA()([one], [part["count"]]).approxDP(work["delta"]))


METHODS = {"RDP": renyi, "AFA": fourier}
