"""Contract: the page of the founding results is what its calls give, and every test that it names exists."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from mpmath import diff, exp, findroot, mp, mpf, ncdf, npdf

import dptally as dp
from dptally import gdp
from dptally.accounting import alpha, approximate, group, renyi
from dptally.meaning import bayes, outcomes

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "founding-results.md").read_text(encoding="utf-8")
WRITER = runpy.run_path(str(ROOT / "docs" / "founding_results.py"), run_name="founding_results")
ROWS = re.findall(r"^\| F(\d+) \| (.*?) \| `(.*?)` \| (.*?) \| `(.*?)` \|$", PAGE, re.MULTILINE)


def test_one_row_for_every_result() -> None:
    assert [int(number) for number, *_ in ROWS] == list(range(1, len(WRITER["ROWS"]) + 1))
    assert len(ROWS) >= 84 + 24
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
    assert name in functions, f"F{number}"


ASKED = [
    "accounting.group.pure",
    "accounting.group.renyi",
    "accounting.group.stable",
    "accounting.group.two_records",
    "meaning.outcomes.of_plan",
    "meaning.outcomes.largest_ratio",
    "meaning.bayes.factor_exceeds",
    "meaning.bayes.after_alarm",
    "accounting.approximate.implied_delta",
    "accounting.alpha.smallest_epsilon",
    "accounting.alpha.smallest_noise",
    "divergences.inequalities.weak_triangle",
    "accounting.optimal.epsilon",
    "accounting.gaussian.mu_interval",
    "accounting.loss.Loss",
    "divergences.finite.renyi",
    "gdp.without_replacement",
    "gdp.with_replacement",
    "gdp.root_log",
    "release.mode_accuracy",
    "release.stable_median",
    "release.stable_mean",
    "conversions.edge",
]


def test_what_the_papers_ask_for_is_found_from_the_door_and_in_the_reference() -> None:
    """A fresh interpreter finds each behind ``dp.`` and two dots; the reference has its signature."""
    code = "import dptally as dp\n" + "\n".join(f"dp.{name}" for name in ASKED)
    subprocess.run([sys.executable, "-c", code], check=True)
    reference = (ROOT / "docs" / "reference-api.md").read_text(encoding="utf-8")
    for name in ASKED:
        module, _, function = name.rpartition(".")
        section = reference.split(f"\n## dptally.{module}\n")[1].split("\n## dptally")[0]
        assert re.search(rf"^### {function}$", section, re.MULTILINE), name
        assert re.search(rf"^{function}\(", section, re.MULTILINE), name


def test_functions_of_a_plan_take_a_plan() -> None:
    """A plan goes in without a warning; its directions are still accepted, with one."""
    plan = 3 * dp.Laplace(2.0)
    for ask in (
        lambda p: group.two_records(p, 2.0).value,
        lambda p: outcomes.of_plan(p, 0.01).upper,
        lambda p: bayes.factor_exceeds(p, 2.0).upper,
        lambda p: alpha.epsilon(p, 1e-5).value,
        lambda p: approximate.epsilon(p, 1e-5, "basic").value,
        lambda p: renyi.epsilon(p, 1e-5).value,
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            of_plan = ask(plan)
        with pytest.warns(DeprecationWarning, match="pass the plan"):
            assert ask(plan.directions()) == of_plan


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
