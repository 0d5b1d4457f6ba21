r"""The characteristic function of a law that is given by atoms, or by quadrature nodes of its density."""

from __future__ import annotations

import math

import numpy as np

from dptally.law.characteristic import MomentTable, NodeCharacteristic
from dptally.laws.quadrature.legendre import gauss_legendre
from dptally.laws.quadrature.losses import LossNodes
from dptally.numerics.arrays import Floats
from dptally.numerics.rounding import EPS

__all__ = ["characteristic_of", "exponential_rule", "table_of", "tilted_nodes"]

_MOST_POINTS = 640
_RHO = np.array([1.5, 2.0, 3.0, 5.0, 9.0, 17.0])


def tilted_nodes(
    losses: Floats,
    masses: Floats,
    theta: float,
    *,
    loss_error: float,
    mass_error: float,
    missing: float = 0.0,
    defect: float = 0.0,
) -> NodeCharacteristic:
    """phi at the tilt theta of masses at losses, together 1 - missing in truth.

    Each loss is off by at most ``loss_error`` relative to the largest, each mass by a relative ``mass_error``;
    ``defect`` bounds what the nodes differ from the law they stand for, relative to its moment. K = log1p(sum m
    (e^{theta l} - 1) - missing), whose rounding error is relative to theta E|L|.
    """
    size = float(np.abs(losses).max())
    with np.errstate(divide="ignore"):
        exponent = np.log(masses) + theta * losses
    top = float(exponent.max())
    raw = np.exp(exponent - top)
    total = math.fsum(raw)
    weights = raw / total
    centre = float(np.dot(weights, losses))
    errors = np.full_like(losses, loss_error * size) + EPS * (np.abs(losses) + abs(centre))
    weight_error = (
        mass_error + EPS * (8 + 2 * np.abs(exponent) + 2 * np.abs(theta * losses)) + theta * loss_error * size
    )
    log_moment = top + math.log(total)
    error = 1.01 * float(np.dot(weights, weight_error)) + 4 * EPS * (1 + abs(log_moment) + abs(top))
    if abs(log_moment) < 0.5 and theta * size < 600:
        lifted = masses * np.expm1(theta * losses)
        sharp = math.fsum(lifted) - missing
        error = float(np.dot(np.abs(lifted), np.full_like(losses, mass_error + 8 * EPS)))
        error += theta * size * (loss_error + EPS) * float(np.dot(masses, np.exp(theta * losses)))
        log_moment, error = math.log1p(sharp), 1.05 * error / (1 + sharp) + 4 * EPS * (abs(sharp) + missing)
    return NodeCharacteristic(
        losses=losses - centre,
        weights=weights,
        loss_error=errors,
        weight_error=weight_error,
        defect=2.2 * defect,
        log_moment=log_moment,
        log_moment_error=error + 2.2 * defect,
        centre=centre,
    )


def table_of(nodes: LossNodes, theta: Floats, defect: float) -> MomentTable:
    """K with error bounds, and its derivatives from the tilted nodes, which leave out at most ``defect`` of each."""
    moment = np.asarray(nodes.log_moment(theta), dtype=np.float64)
    error = nodes.log_moment_error(theta, moment) + 2.2 * defect
    with np.errstate(over="ignore", under="ignore"):
        weight = np.exp(nodes.log_mass + theta[:, None] * nodes.loss - moment[:, None])
    first = weight @ nodes.loss
    second = (weight * (nodes.loss - first[:, None]) ** 2).sum(axis=1)
    return MomentTable(theta, moment, error, first, second)


def characteristic_of(nodes: LossNodes, theta: float, defect: float) -> NodeCharacteristic:
    """phi at one tilt, likewise."""
    tilt = np.array([theta])
    moment = np.asarray(nodes.log_moment(tilt), dtype=np.float64)
    exponent = nodes.log_mass + theta * nodes.loss
    raw = np.exp(exponent - exponent.max())
    slip, blur = nodes.errors()
    return NodeCharacteristic.of(
        nodes.loss,
        raw / math.fsum(raw),
        loss_error=blur,
        weight_error=slip + theta * blur + EPS * (16 + 2 * np.abs(exponent) + 2 * np.abs(theta * nodes.loss)),
        defect=2.2 * defect,
        log_moment=float(moment[0]),
        log_moment_error=float(nodes.log_moment_error(tilt, moment)[0]) + 2.2 * defect,
    )


def exponential_rule(real: float, imag: float, log_tolerance: float) -> tuple[Floats, Floats] | None:
    r"""Gauss-Legendre nodes and weights on [-1, 1] that integrate e^{cx}, Re c = real, \|Im c\| <= imag.

    The error is at most (64/15) S rho^{-2n} / (1 - rho^{-2}) with S = exp(\|real\| (rho + 1/rho)/2 + imag (rho -
    1/rho)/2), the supremum on the Bernstein ellipse [Trefethen 2008, Thm. 4.5]; the integral of e^{real x} is at
    least e^{\|real\|}/(1 + \|real\|).
    """
    long, tall = 0.5 * (_RHO + 1 / _RHO), 0.5 * (_RHO - 1 / _RHO)
    log_top = abs(real) * (long - 1) + imag * tall + math.log(64 / 15) - np.log1p(-(_RHO**-2)) + math.log1p(abs(real))
    needed = np.ceil((log_top - log_tolerance) / (2 * np.log(_RHO)))
    number = _rounded(int(max(4.0, needed.min())))
    return None if number > _MOST_POINTS else gauss_legendre(number)


def _rounded(number: int) -> int:
    """The next number with three significant bits: a few rules serve all plans."""
    unit = 1 << max(0, number.bit_length() - 3)
    return -(-number // unit) * unit
