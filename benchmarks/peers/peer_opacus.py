"""opacus: its three accountants, without any training."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from opacus.accountants import create_accountant
from opacus.accountants.utils import get_noise_multiplier

VERSION = version("opacus")


def _answer(work: dict[str, Any], mechanism: str) -> float:
    if work["ask"] == "sigma":
        return float(
            get_noise_multiplier(
                target_epsilon=work["epsilon"],
                target_delta=work["delta"],
                sample_rate=work["rate"],
                steps=work["steps"],
                accountant=mechanism,
            )
        )
    if any(part["kind"] not in ("sampled_gaussian", "gaussian") for part in work["parts"]):
        raise NotImplementedError("sampled Gaussians only")
    accountant = create_accountant(mechanism)
    accountant.history = [(part["sigma"], part.get("rate", 1.0), part["count"]) for part in work["parts"]]
    return float(accountant.get_epsilon(work["delta"]))


METHODS = {
    "PRV": lambda work: _answer(work, "prv"),
    "RDP": lambda work: _answer(work, "rdp"),
    "GDP (CLT)": lambda work: _answer(work, "gdp"),
}
