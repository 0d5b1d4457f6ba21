"""Laws and contract: plan texts become plans, and mistakes are shown with their column."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dptally as dp
from dptally.cli.language import parse, template
from dptally.cli.syntax import PlanError
from dptally.mechanisms.registry import plan_names
from strategies import parts


@given(parts)
def test_what_a_plan_prints_is_a_plan_text(chosen: list[tuple[dp.Mechanism, int]]) -> None:
    plan = dp.Composed.of(chosen)
    assert parse(repr(plan)) == plan
    assert parse(repr(chosen[0][0])) == chosen[0][0]


def plan_or_column(text: str) -> dp.Mechanism | int:
    """The plan, or the column of the mistake."""
    try:
        return parse(text)
    except PlanError as error:
        return error.column


@given(st.one_of(st.text(max_size=60), st.text(alphabet="gaussiN()[],=*/+-. 019eSIGMA_", max_size=60)))
def test_any_text_is_a_plan_or_a_mistake_with_its_column(text: str) -> None:
    found = plan_or_column(text)
    assert isinstance(found, dp.Mechanism) or 1 <= found <= len(text) + 1


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("50*laplace(scale=5) + 10*gaussian(sigma=10)", 50 * dp.Laplace(5) + 10 * dp.Gaussian(10)),
        ("gaussian(4, sensitivity=2)", dp.Gaussian(4, 2)),
        ("3 * (laplace(1) + 2*rr(0.75))", 3 * dp.Laplace(1) + 6 * dp.RandomizedResponse(0.75)),
        ("laplace(5) * 3", 3 * dp.Laplace(5)),
        ("2 * 3 * laplace(5)", 6 * dp.Laplace(5)),
        ("laplace(1 + 4)", dp.Laplace(5)),
        ("dpsgd(1.1, 256/60000, steps=1_000)", dp.dpsgd(1.1, 256 / 60000, 1000)),
        ("poisson(gaussian(1), .5, replace)", dp.PoissonSampled(dp.Gaussian(1), 0.5, dp.REPLACE)),
        ("renyi(2, 0.1)", dp.RenyiDP((2,), (0.1,))),
        ("renyi([2, inf], [0.1, 3])", dp.RenyiDP((2, float("inf")), (0.1, 3))),
        ("profile([[1, 1e-5], [2, 1e-9]])", dp.Profile.from_points([(1, 1e-5), (2, 1e-9)])),
        ("  gdp( 1e0 )\n", dp.GaussianDP(1.0)),
        ("laplace(--5)", dp.Laplace(5)),
        ("0 * laplace(1)", dp.Composed.of([])),
    ],
)
def test_texts(text: str, plan: dp.Mechanism) -> None:
    assert parse(text) == plan


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("", 1, "empty"),
        ("gausian(1)", 1, "did you mean gaussian?"),
        ("zzz(1)", 1, "known: gaussian"),
        ("3 + qqqq", 5, "unknown name 'qqqq'"),
        ("laplace(1) + gaussian(1", 22, "never closed"),
        ("gaussian(1))", 12, "without an opening"),
        ("gaussian(1]", 11, "expected ',' or ')'"),
        ("[1, 2", 1, "never closed"),
        ("gaussian 4", 10, "unexpected '4'"),
        ("gaussian(1) +", 14, "ends too early"),
        ("* gaussian(1)", 1, "unexpected '*'"),
        ("gaussian", 1, "gaussian(sigma, sensitivity=1.0)"),
        ("poisson", 1, "adjacency=add_remove"),
        ("gaussian()", 1, "too few"),
        ("gaussian(1, 2, 3)", 16, "too many"),
        ("gaussian(sigma=1, 2)", 19, "by position follows"),
        ("gaussian(sigm=1)", 15, "did you mean sigma?"),
        ("gaussian(1, sigma=2)", 19, "given twice"),
        ("gaussian(-1)", 1, "sigma must be positive"),
        ("gaussian(nan)", 10, "NaN"),
        ("gaussian(1e999)", 1, "sigma must be positive and finite"),
        ("-3 * gaussian(1)", 1, "at least 0, got -3"),
        ("2.5 * gaussian(1)", 1, "got 2.5"),
        ("gaussian(1) * gaussian(2)", 15, "whole number only"),
        ("gaussian(1) / 2", 15, "whole number only"),
        ("1 + gaussian(1)", 1, "cannot be added"),
        ("[1] * gaussian(1)", 7, "a list and a plan"),
        ("replace", 1, "an adjacency"),
        ("gaussian(-replace)", 11, "a number is needed"),
        ("7", 1, "the number 7"),
        ("gaussian(1/0)", 12, "division by zero"),
        ("9" * 401, 1, "401 characters"),
        ("9" * 390 + "*" + "9" * 390, 392, "too large"),
        ("9" * 390 + " * 1.5", 394, "too large"),
        ("9" * 390 + " + 1.5", 1, "too large"),
        ("1.5.5", 4, "unexpected"),
        ("1__0.5", 1, "not a number"),
        ("gaussian(1_.)", 10, "not a number"),
        ("gaussian(SIGMA)", 10, "left open"),
        ("(" * 10_000, 51, "50 deep"),
        ("gaussian(" * 10_000, 459, "50 deep"),
        ("__import__('os')", 12, 'unexpected character "\'"'),
        ("__import__(1)", 1, "unknown name '__import__'"),
        ("x" * 500 + "(1)", 1, "..."),
        ("gaussian(1); 2", 12, "unexpected character ';'"),
    ],
)
def test_mistakes(text: str, column: int, words: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse(text)
    assert caught.value.column == column
    assert words in str(caught.value)
    line, caret = caught.value.pointed().split("\n")
    place = caret.index("^")
    assert len(line) <= 80
    if column <= len(text) and place < len(line):
        assert line[place] == text[column - 1]


def test_too_long_a_text() -> None:
    with pytest.raises(PlanError, match="10000000 characters"):
        parse("gaussian(1)+" * 833_333 + "    ")


def test_a_long_sum_is_read_at_once() -> None:
    plan = parse("+".join(f"laplace({n})" for n in range(1, 4_001)))
    assert len(plan.parts) == 4_000


def test_every_name_has_a_usage_in_its_error() -> None:
    for name in plan_names():
        with pytest.raises(PlanError, match=rf"{name}\("):
            parse(name)


def test_templates() -> None:
    make = template("STEPS * poisson(gaussian(1.0), 0.01) + gaussian(STEPS)")
    assert make.name == "STEPS"
    assert make(10) == 10 * dp.PoissonSampled(dp.Gaussian(1.0), 0.01) + dp.Gaussian(10.0)
    with pytest.raises(dp.InvalidType, match=r"at least 0, got 2\.5"):
        make(2.5)
    with pytest.raises(PlanError, match="column 1: count"):
        make(-1)
    with pytest.raises(PlanError, match="nothing is left open"):
        template("poisson(gaussian(1), 0.5, REPLACE)")
    with pytest.raises(PlanError, match="only one value may be left open, found RATE, SIGMA") as caught:
        template("poisson(gaussian(-SIGMA), [RATE])")
    assert caught.value.column == 28


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("noisy_max(4, noise=gaussian)", r"no theorem used here .* k \* Gaussian"),
        ("above_threshold(0.25, 0.5, noise=gaussian)", r"no theorem used here .* k \* Gaussian"),
        ("best_of(gaussian(4), 10, law=fixed)", r"k \* plan"),
    ],
)
def test_a_word_that_is_refused_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(PlanError, match=reason):
        parse(text)
