"""A plan written down as plain data, and its losses: what the tables of truths hold."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .losses import GaussianLoss, LaplaceLoss, Loss, ResponseLoss, SampledGaussianLoss, SampledReplaceLoss

Row = dict[str, Any]  # family, number, direction, parts, epsilon, lower, upper


def losses_of(row: Row) -> list[tuple[Loss, int]]:
    """The losses of one direction of the plan, with their counts; all parameters are exactly the doubles given."""
    return [(_loss(part, row["direction"]), part["count"]) for part in row["parts"]]


def _loss(part: dict[str, Any], direction: str) -> Loss:
    match part["kind"]:
        case "sampled gaussian":
            return SampledGaussianLoss(part["sigma"], part["rate"], direction)
        case "sampled gaussian, replace":
            return SampledReplaceLoss(part["sigma"], part["rate"])
        case "sampled laplace":
            return LaplaceLoss(1 / Fraction(part["scale"]), part["rate"], direction)
        case "laplace":
            return LaplaceLoss(1 / Fraction(part["scale"]))
        case "gaussian":
            return GaussianLoss(1 / Fraction(part["sigma"]))
        case "response":
            return ResponseLoss(part["p"])
    raise ValueError(f"no such kind: {part['kind']}")
