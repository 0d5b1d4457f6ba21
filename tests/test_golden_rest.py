"""Golden: the reference values that belong to no single module, and a check that none of the 362 is left out."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import dptally as dp
import golden
from dptally.numerics.normal import log_gaussian_delta

#: k-fold Laplace goes through the lattice: certified, but only to some 1e-6 relative
LATTICE = 5e-6


@pytest.mark.parametrize("name", golden.ids("laplace.comp.delta"))
def test_delta_of_composed_laplace(name: str) -> None:
    given = golden.inputs(name)
    box = (int(given["k"]) * dp.Laplace(scale=1 / given["t"])).delta_interval(given["eps"])
    slack = 1e-13 * box.upper  # the inputs are decimals, the mechanism holds the nearest doubles
    assert box.lower - slack <= golden.value(name) <= box.upper + slack
    assert box.width <= LATTICE * box.upper


@pytest.mark.parametrize("name", golden.ids("laplace.comp.eps"))
def test_epsilon_of_composed_laplace(name: str) -> None:
    given = golden.inputs(name)
    box = (int(given["k"]) * dp.Laplace(scale=1 / given["t"])).epsilon_interval(given["delta"])
    assert box.lower - 1e-12 <= golden.value(name) <= box.upper + 1e-12
    assert box.width <= LATTICE * box.upper


def test_lemma_31_corrected() -> None:
    """F73: delta_mu(eps) is about mu e^{-a^2/2} / (sqrt(2 pi) a^2), a = -eps/mu + mu/2."""
    name = "gdp.lemma31.ratio.mu1.e10"
    a = -10 + 0.5
    low, high = (float(x) for x in log_gaussian_delta(1.0, 10.0))
    leading = -0.5 * a * a - 0.5 * math.log(2 * math.pi) - 2 * math.log(abs(a))
    assert math.isclose(math.exp(0.5 * (low + high) - leading), golden.value(name), rel_tol=1e-11)


@pytest.mark.parametrize(
    ("name", "naive"),
    [
        ("profile.sgd.eps_star", lambda e: math.exp(-e * e)),
        ("profile.icea.eps_star", lambda e: min(1.0, 4 * math.exp(-2) / e)),
    ],
)
def test_the_most_telling_guarantee(name: str, naive: object) -> None:
    """F70: eps* maximises (1 - delta(e)) / (1 + e^e)."""
    star = golden.value(name)

    def telling(e: float) -> float:
        return (1 - naive(e)) / (1 + math.exp(e))  # type: ignore[operator]

    assert all(telling(star) >= telling(star + step) for step in (-1e-3, -1e-6, 1e-6, 1e-3))
    curve = dp.gdp.refined(dp.gdp.noisy_sgd(2.0, 1.0, 2.0) if "sgd" in name else dp.gdp.icea(20, 4))
    at = float(curve.delta(0.0)) if hasattr(curve, "delta") else float(curve(0.0))
    assert math.isclose(at, 1 - 2 * telling(star), rel_tol=1e-9)


@pytest.mark.parametrize("name", golden.ids("ptr.pass"))
def test_propose_test_release_passes_as_derived(name: str) -> None:
    """F39: Pr[gamma + Lap(1/eps) > T], T = log(1/(2 delta))/eps, from the tail of the Laplace loss."""
    given = golden.inputs(name)
    gap = given["eps"] * (given["gamma"] - math.log(1 / (2 * given["delta"])) / given["eps"])
    tail = 0.5 * math.exp(gap) if gap < 0 else -math.expm1(-gap - math.log(2))
    assert math.isclose(tail, golden.value(name), rel_tol=1e-11)


def test_every_value_is_asked_for() -> None:
    """Each id, or the family it is parametrised by, is named in some test."""
    texts = "\n".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("test_*.py"))
    texts += "\n".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("*reference.py"))
    missing = []
    for name in golden.ids(""):
        pieces = name.split(".")
        prefixes = {".".join(pieces[:k]) for k in range(1, len(pieces) + 1)}
        if not any(f'"{p}"' in texts or f'"{p}.' in texts or f"'{p}" in texts for p in prefixes):
            missing.append(name)
    assert not missing
