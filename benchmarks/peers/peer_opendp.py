"""opendp: Gaussians by zCDP, Laplace by adding up; it has no accountant for sampled mechanisms."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import opendp.prelude as dp

VERSION = version("opendp")
dp.enable_features("contrib")


def composed(work: dict[str, Any]) -> float:
    if work["ask"] != "epsilon":
        raise NotImplementedError("not measured")
    kinds = {part["kind"] for part in work["parts"]}
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    if kinds == {"gaussian"}:
        (part,) = work["parts"]
        one = space >> dp.m.then_gaussian(part["sigma"])
        whole = dp.c.make_composition([one] * part["count"])
        return float(dp.c.make_zCDP_to_approxDP(whole).map(1.0).epsilon(work["delta"]))
    if kinds == {"laplace"}:
        (part,) = work["parts"]
        one = space >> dp.m.then_laplace(part["scale"])
        return float(dp.c.make_composition([one] * part["count"]).map(1.0))
    raise NotImplementedError("Gaussians or Laplace only, not sampled")


METHODS = {"composition": composed}
