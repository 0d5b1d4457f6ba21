"""Contract: the page of the founding results is what its calls give, and every test that it names exists."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest
from mpmath import diff, exp, findroot, mp, mpf, ncdf, npdf

import dptally as dp
from dptally import gdp

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "founding-results.md").read_text(encoding="utf-8")
WRITER = runpy.run_path(str(ROOT / "docs" / "founding_results.py"), run_name="founding_results")
ROWS = re.findall(r"^\| F(\d+) \| (.*?) \| `(.*?)` \| (.*?) \| `(.*?)` \|$", PAGE, re.MULTILINE)


def test_one_row_for_every_result() -> None:
    assert [int(number) for number, *_ in ROWS] == list(range(1, len(WRITER["ROWS"]) + 1))
    assert len(ROWS) >= 84 + 10
    assert "see papers/" not in PAGE
    assert "not software" not in PAGE


@pytest.mark.parametrize("start", range(0, len(ROWS), 16))
def test_every_call_gives_its_number(start: int) -> None:
    space = WRITER["namespace"]()
    for number, _, call, value, _ in ROWS[start : start + 16]:
        found = WRITER["shown"](eval(call, dict(space)))
        ours, theirs = (re.findall(r"-?[\d.]+(?:e-?\d+)?|inf|True|False|[a-z-]+", text) for text in (found, value))
        assert len(ours) == len(theirs), f"F{number}: {found}"
        for one, other in zip(ours, theirs, strict=True):
            if re.match(r"-?[\d.]", one):
                assert float(one) == pytest.approx(float(other), rel=1e-4), f"F{number}: {found}"
            else:
                assert one == other, f"F{number}: {found}"


@pytest.mark.parametrize(("number", "test"), [(row[0], row[4]) for row in ROWS])
def test_every_test_exists(number: str, test: str) -> None:
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert name in functions if name else any(one.startswith("test_") for one in functions), f"F{number}"


def test_F3_a_sensitivity_is_a_scale() -> None:
    """Delta enters as Delta/sigma or Delta/b only."""
    for left, right in (
        (dp.Gaussian(2.0, sensitivity=3.0), dp.Gaussian(4.0, sensitivity=6.0)),
        (dp.Laplace(2.0, sensitivity=0.5), dp.Laplace(8.0, sensitivity=2.0)),
    ):
        assert left.epsilon(1e-5) == right.epsilon(1e-5)
        assert left.renyi(3.0) == right.renyi(3.0)


def test_F81_the_derivative_of_section_5_1() -> None:
    """Corrected: with mu = G(eps), G' = (Phi(b)-type slope of delta_mu against that of the profile); it is negative.

    For pure DP with eps0 = 1 the numeric derivative at 0.3 is -0.254539 (E004-11), here by mpmath and by the library.
    """
    e0 = mpf(1)

    def transform(e: mpf) -> mpf:
        delta = (exp(e0) - exp(e)) / (1 + exp(e0))
        return findroot(lambda m: ncdf(-e / m + m / 2) - exp(e) * ncdf(-e / m - m / 2) - delta, mpf("1.2"))

    with mp.workdps(30):
        assert float(diff(transform, mpf("0.3"))) == pytest.approx(-0.254539, abs=1e-6)
    low, high = gdp.transform(dp.PureDP(1.0), 0.2999), gdp.transform(dp.PureDP(1.0), 0.3001)
    assert (high.midpoint - low.midpoint) / 0.0002 == pytest.approx(-0.254539, abs=1e-5)
    assert float(npdf(0)) > 0.39  # the bound of the slope in eps alone is Mills' ratio at 0, sqrt(pi/2)
