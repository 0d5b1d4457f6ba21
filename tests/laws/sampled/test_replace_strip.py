"""Containment: the finer bound of REPLACE steps in a strip of the complex plane, against a dense sum over the strip's
edge.
"""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from dptally.laws.sampled.gaussian.replace_kernel import SampledReplaceNodes


def log_sizes(rate: float, scale: float, theta: float, reach: float, a: float) -> float:
    """log of the integral over t of the largest |phi(z) A(z)^{1 + theta + iu} A(-z)^{-theta - iu}|, z = t + ia and
    |u| <= reach, relative to its value at a = u = 0.
    """
    t = np.linspace(-60.0, 60.0, 24_001)

    def logs(height: float) -> tuple[np.ndarray, np.ndarray]:
        z = t + 1j * height
        up, down = (np.log1p(rate * np.expm1(x / scale - 0.5 / scale**2)) for x in (z, -z))
        size = (-0.5 * z * z + (1 + theta) * up - theta * down).real
        return size, np.abs((up - down).imag)

    with np.errstate(over="ignore"):
        whole, _ = logs(0.0)
        size, turn = logs(a)
    size = size + reach * turn
    return _log_sum(size) - _log_sum(whole)


def _log_sum(logs: np.ndarray) -> float:
    return float(logs.max() + np.log(np.exp(logs - logs.max()).sum()))


def cases() -> list[tuple[float, float, float, float]]:
    draw = random.Random("strip")
    return [
        (
            math.exp(draw.uniform(-8, -0.1)),
            math.exp(draw.uniform(-0.6, 2.0)),
            math.exp(draw.uniform(-2, 3)),
            math.exp(draw.uniform(4, 8)),
        )
        for _ in range(24)
    ]


@pytest.mark.parametrize(("rate", "scale", "theta", "reach"), cases())
def test_the_finer_bound_holds_and_is_finer(rate: float, scale: float, theta: float, reach: float) -> None:
    nodes = SampledReplaceNodes(rate, scale)
    a = np.minimum(np.array([0.02, 0.1, 0.5]) * scale, 3.0)
    fine, plain = nodes._log_strip(a, theta, reach, -34.0), nodes._log_most(a, theta, reach)
    for height, bound, other in zip(a.tolist(), fine.tolist(), plain.tolist(), strict=True):
        truth = log_sizes(rate, scale, theta, reach, height)
        assert truth <= bound
        assert truth <= other + 1e-9
        assert bound <= other + 1e-6 or bound <= truth + 0.1 * abs(truth) + 3.0


def test_power() -> None:
    """The truth comes close to the bound: one that is lower by a tenth is refuted in most cases."""
    refuted = 0
    for rate, scale, theta, reach in cases():
        height = min(0.1 * scale, 3.0)
        bound = float(SampledReplaceNodes(rate, scale)._log_strip(np.array([height]), theta, reach, -34.0)[0])
        refuted += log_sizes(rate, scale, theta, reach, height) > 0.9 * bound - 0.1
    assert refuted >= 12
