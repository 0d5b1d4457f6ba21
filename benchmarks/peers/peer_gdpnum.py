"""gdpnum: its connect-the-dots accountant for DP-SGD."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from gdpnum import CTDAccountant

VERSION = version("gdpnum")


def connect_the_dots(work: dict[str, Any]) -> float:
    if work["ask"] != "epsilon" or any(part["kind"] not in ("sampled_gaussian", "gaussian") for part in work["parts"]):
        raise NotImplementedError("epsilon of sampled Gaussians only")
    accountant = CTDAccountant()
    accountant.history = [(part["sigma"], part.get("rate", 1.0), part["count"]) for part in work["parts"]]
    return float(accountant.get_epsilon(delta=work["delta"]))


METHODS = {"CTD": connect_the_dots}
