"""Contract: every command's answers, JSON, refusals and exit codes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from cli_running import Outcome, assert_refused, here

import dptally as dp
from dptally.cli import main
from dptally.cli.program import COMMANDS, cli

Run = Callable[..., Outcome]
PLAN = "10 * gaussian(sigma=10)"
MECHANISM = 10 * dp.Gaussian(10)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "160")  # wide enough for every table
    return lambda *arguments: here(capsys, *arguments)


def answer(outcome: Outcome) -> Any:
    assert outcome.code == 0, outcome
    return json.loads(outcome.out)


def test_help(run: Run) -> None:
    whole = run("--help")
    assert run().out == whole.out
    for name in COMMANDS:
        assert name in whole.out
        text = run(name, "--help").out
        assert "Usage: dptally" in text
        if name not in ("ledger", "card"):
            assert "--json" in text
    assert dp.__version__ in run("--version").out


def test_epsilon(run: Run) -> None:
    found = answer(run("epsilon", PLAN, "--delta", "1e-5", "--compare", "--budget", "9", "--json"))
    assert found["epsilon"]["upper"] == MECHANISM.epsilon(1e-5)
    assert found["within_budget"] is True
    assert found["comparison"][0]["framework"] == "certified numerical"
    assert found["meaning"]["gaussian_mu"] == pytest.approx(math.sqrt(0.1))
    assert "meaning" not in answer(run("epsilon", PLAN, "--delta", "1e-5", "--brief", "--json"))
    text = run("epsilon", PLAN, "--delta", "1e-5", "--compare").out
    assert "Gaussian DP with mu = 0.31" in text
    assert "zCDP, Bun-Steinke's conversion" in text
    assert "no answer: " in text
    assert "within the budget of 9" in run("epsilon", PLAN, "--delta", "1e-5", "--budget", "9").out
    assert_refused(run("epsilon", PLAN, "--delta", "1e-5", "--budget", "nan"), "budget")
    assert_refused(run("epsilon", PLAN, "--delta", "2"), "delta must be in [0, 1]")


def test_an_infinite_epsilon_is_said_in_json(run: Run) -> None:
    assert answer(run("epsilon", "gaussian(1)", "--delta", "0", "--brief", "--json"))["epsilon"]["upper"] == "inf"


def test_delta(run: Run) -> None:
    found = answer(run("delta", PLAN, "--epsilon", "1", "--json", "--budget", "1"))
    assert found["delta"]["upper"] == MECHANISM.delta(1.0)
    over = run("delta", PLAN, "--epsilon", "0.1", "--budget", "1e-9")
    assert over.code == 1
    assert over.out.startswith("delta = 0.0")
    assert "meaning" not in answer(run("delta", PLAN, "--epsilon", "1", "--json", "--brief"))


@pytest.mark.parametrize(
    ("options", "rate", "steps"),
    [
        ("--sample-rate 0.01 --steps 100", 0.01, 100),
        ("--batch-size 256 --dataset-size 60000 --epochs 1", 256 / 60000, 235),
        ("--sample-rate 0.01 --epochs 1.5", 0.01, 150),
    ],
)
def test_dpsgd(run: Run, options: str, rate: float, steps: int) -> None:
    base = ["dpsgd", "--noise-multiplier", "1.1", "--delta", "1e-5", "--json", "--brief"]
    found = answer(run(*base, *options.split()))
    assert found["plan"] == repr(dp.dpsgd(1.1, rate, steps))


def test_dpsgd_of_replaced_records(run: Run) -> None:
    plan = ("--noise-multiplier", "2", "--sample-rate", "0.5", "--steps", "1", "--delta", "1e-5")
    found = answer(run("dpsgd", *plan, "--json", "--brief", "--adjacency", "replace"))
    assert found["plan"] == repr(dp.dpsgd(2.0, 0.5, 1, dp.REPLACE))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--steps 10", "say the sampling once"),
        ("--steps 10 --sample-rate 0.1 --batch-size 3", "say the sampling once"),
        ("--steps 10 --batch-size 3", "go together"),
        ("--steps 10 --batch-size 30 --dataset-size 20", "at most the dataset size"),
        ("--sample-rate 0.1", "say the length once"),
        ("--sample-rate 0.1 --steps 3 --epochs 2", "say the length once"),
        ("--sample-rate 0 --epochs 2", "positive when"),
        ("--sample-rate 1.1 --epochs 2", "in [0, 1]"),
        ("--sample-rate 0.1 --epochs nan", "epochs"),
        ("--sample-rate 0.1 --steps -1", "steps"),
    ],
)
def test_ambiguous_training_is_refused(run: Run, options: str, words: str) -> None:
    assert_refused(run("dpsgd", "--noise-multiplier", "1", "--delta", "1e-5", *options.split()), words)


def test_calibrate(run: Run) -> None:
    arguments = ("calibrate", "10*gaussian(SIGMA)", "--epsilon", "1", "--delta", "1e-6")
    found = answer(run(*arguments, "--json"))
    assert found["name"] == "SIGMA"
    assert (10 * dp.Gaussian(found["value"])).epsilon(1e-6) <= 1.0
    assert (10 * dp.Gaussian(found["value"] * (1 - 1e-6))).epsilon(1e-6) > 1.0
    text = run(*arguments).out
    assert text.startswith(f"SIGMA = {found['value']!r}\n")
    assert "certainly meets epsilon = 1, delta = 1e-06" in text
    assert "value" in answer(run("calibrate", "gaussian(SIGMA)", "--mu", "0.5", "--json"))
    assert "mu = 0.5" in run("calibrate", "gaussian(SIGMA)", "--mu", "0.5").out
    assert_refused(run("calibrate", "gaussian(1)", "--mu", "1"), "nothing is left open")
    assert_refused(run("calibrate", "gaussian(SIGMA)", "--epsilon", "1"), "delta")


@pytest.mark.parametrize("plan", ["STEPS * gaussian(10)", "dpsgd(10, 1.0, STEPS)"])
def test_calibrated_counts_are_whole(run: Run, plan: str) -> None:
    found = answer(run("calibrate", plan, "--epsilon", "2", "--delta", "1e-5", "--json"))
    assert found["value"] == 25
    assert (25 * dp.Gaussian(10)).epsilon(1e-5) <= 2.0 < (26 * dp.Gaussian(10)).epsilon(1e-5)


def test_a_target_that_cannot_be_met(run: Run) -> None:
    missed = run("calibrate", "gaussian(SIGMA) + approx(0, 1e-3)", "--epsilon", "0.5", "--delta", "1e-6")
    assert missed.code == 1
    assert missed.err.startswith("Error: ")


def test_curve(run: Run, tmp_path: Path) -> None:
    arguments = ("curve", "gaussian(10)", "--steps", "1..100", "--delta", "1e-5", "--points", "3")
    found = answer(run(*arguments, "--json"))
    assert [row["steps"] for row in found["curve"]] == [1, 50, 100]
    assert found["curve"][-1]["epsilon"] == dp.Gaussian(10).epsilon_curve([100], 1e-5)[0]
    assert "stop_after" not in found
    over = run(*arguments, "--budget", "2", "--plot", str(tmp_path / "c.png"))
    assert over.code == 1
    assert "stop after step 25: one more would pass the budget of 2" in over.out
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(run(*arguments, "--budget", "2", "--json").out)["stop_after"] == 25
    assert "all 100 steps are within" in run(*arguments, "--budget", "5").out
    assert "the first step passes" in run(*arguments, "--budget", "0.1").out
    for steps in ("5..2", "0..3", "x", "1..", "-1..3"):
        assert_refused(run("curve", "gaussian(10)", f"--steps={steps}", "--delta", "1e-5"), "steps")


def test_convert(run: Run) -> None:
    found = answer(run("convert", "zcdp(0.5)", "--to", "approx", "--delta", "1e-6", "--json"))
    expected = dp.convert(dp.ZCDP(0.5), to="approx", delta=1e-6).parameters()
    assert found["guarantee"] == {"name": "approx_dp", **expected}
    assert "RenyiDP(orders=(2.0,), epsilons=(1.0" in run("convert", "zcdp(0.5)", "--to", "renyi", "--order", "2").out
    assert_refused(run("convert", "zcdp(0.5)", "--to", "approx"), "delta or epsilon")
    assert_refused(run("convert", "zcdp(0.5)", "--to", "pure"), "pure")


def test_gdp(run: Run) -> None:
    found = answer(run("gdp", "laplace(scale=0.5)", "--json"))
    assert found["mu"]["lower"] <= 1.800905193 + 1e-9
    assert found["mu"]["upper"] >= 1.800905193 - 1e-9
    assert (found["verdict"], found["head"]) == ("GDP", "inf")
    text = run("gdp", "laplace(scale=0.5)", "--head", "0.5").out
    assert "measured for epsilon <= 0.5 only" in text
    assert run("gdp", "approx(1, 1e-6)").out.startswith("no mu is enough")
    assert answer(run("gdp", "zcdp(0.5)", "--json"))["mu"]["upper"] < 1.540457
    assert "beyond, delta is at most" in run("gdp", "renyi([2],[0.1])").out  # not GDP, but on a head
    assert_refused(run("gdp", "renyi([2],[0.1])", "--whole"), "head")


def test_gdp_of_a_plan_has_the_head_of_the_card(run: Run) -> None:
    plan = "100 * poisson(gaussian(1.0), 0.01)"
    found = answer(run("gdp", plan, "--json"))
    page = json.loads(run("card", plan, "--json").out)
    assert found["head"] == page["head"] == pytest.approx(3.68985, abs=1e-4)
    assert found["mu"]["upper"] == page["mu"]["upper"] < 0.5
    assert found["left_out"] == page["left_out"] < 2e-15
    assert found["closed_mu"] == page["closed_mu"] == pytest.approx(10.0)
    text = run("gdp", plan).out
    assert "mu = 10" in text
    assert "beyond, delta is at most" in text
    assert "50-zCDP" in run("gdp", plan, "--identify").out or "50.0001-zCDP" in run("gdp", plan, "--identify").out


def test_gdp_identify_rectify_rate(run: Run) -> None:
    assert answer(run("gdp", "laplace(scale=0.5)", "--identify", "--json"))["verdict"] == "GDP"
    assert "every mu is at least" in run("gdp", "gaussian(2)", "--identify").out
    mended = answer(run("gdp", "approx(1, 1e-6)", "--rectify", "0", "10", "--head", "5", "--json"))
    assert mended["scale"] == 2.0
    assert "add Laplace noise" in run("gdp", "approx(1, 1e-6)", "--rectify", "0", "10", "--head", "5").out
    assert_refused(run("gdp", "approx(1, 1e-6)", "--rectify", "0", "10"), "--head")
    rate = answer(run("gdp", "laplace(scale=0.5)", "--rate", "0.9782783981", "--json"))
    assert rate["rate"] == pytest.approx(0.5, abs=1e-6)
    assert "not used" in run("gdp", "laplace(scale=0.5)", "--rate", "0.5").out
    assert_refused(run("gdp", "laplace(1)", "--rate", "1", "--identify"), "at most one")


def test_group_outcomes_adp(run: Run) -> None:
    found = answer(run("group", "10 * gaussian(sigma=20)", "--size", "4", "--delta", "1e-6", "--json"))
    assert found["epsilon"]["upper"] == (10 * dp.Gaussian(5.0)).epsilon(1e-6)
    assert "4 records together" in run("group", "gaussian(20)", "--size", "4", "--delta", "1e-6").out
    assert_refused(run("group", "gaussian(20)", "--size", "0", "--delta", "1e-6"), "size")
    event = answer(run("outcomes", "50 * laplace(scale=20)", "--before", "0.01", "--json"))
    box = dp.meaning.outcomes.of_plan(50 * dp.Laplace(20.0), 0.01)
    assert (event["outcomes"][0]["lower"], event["outcomes"][0]["upper"]) == (box.lower, box.upper)
    assert "factor 12.18" in run("outcomes", "50 * laplace(scale=20)").out
    assert "without bound" in run("outcomes", "gaussian(1)").out
    moved = answer(run("outcomes", "gaussian(1)", "--factor", "10", "--json"))["factors"][0]
    assert moved["upper"] == dp.meaning.bayes.factor_exceeds(dp.Gaussian(1.0), 10.0).upper
    assert "more than 10 times with probability at most 0.0782" in run("outcomes", "gaussian(1)", "--factor", "10").out
    assert answer(run("adp", "--count", "50", "--sigma", "100", "--delta", "1e-5", "--json"))[
        "epsilon"
    ] == pytest.approx(0.341807021221)
    assert "order 25" in run("adp", "--count", "1000", "--epsilon", "1", "--delta", "1e-5", "--integers").out
    assert_refused(run("adp", "--count", "50", "--delta", "1e-5"), "exactly one")


def test_calibrate_for_other_definitions(run: Run) -> None:
    assert answer(run("calibrate", "gaussian(SIGMA)", "--rho", "0.02", "--json"))["value"] == pytest.approx(5.0)
    assert "sigma" not in run("calibrate", "gaussian(SIGMA)", "--renyi", "10", "0.05").err
    assert "renyi = 10, 0.05" in run("calibrate", "gaussian(SIGMA)", "--renyi", "10", "0.05").out


def test_risk(run: Run) -> None:
    found = answer(run("risk", "gaussian(1)", "--fpr", "0.01", "--json"))
    assert found["rates"] == [{"fpr": 0.01, "true_positive_rate": pytest.approx(0.0923623, abs=1e-6)}]
    assert found["advantage"] == pytest.approx(0.3829249, abs=1e-6)
    text = run("risk", "gaussian(1)", "--fpr", "0", "--fpr", "0.1").out
    assert "0.389144" in text
    assert "membership advantage" in text


def test_explain(run: Run) -> None:
    assert run("explain", PLAN, "--delta", "1e-5").out == f"{MECHANISM.explain(1e-5)}\n"
    assert "@article{" in run("explain", PLAN, "--delta", "1e-5", "--bibtex").out
    assert answer(run("explain", PLAN, "--delta", "1e-5", "--json"))["plan"] == repr(MECHANISM)


@pytest.mark.parametrize(
    ("picture", "options"),
    [
        ("steps", "--delta 1e-5 --steps 50 --points 4"),
        ("profile", ""),
        ("tradeoff", "--points 4"),
        ("renyi", ""),
        ("gdpt", "--head 1 --points 5"),
        ("compare", "--delta 1e-5"),
    ],
)
def test_every_picture_has_a_word(run: Run, monkeypatch: pytest.MonkeyPatch, picture: str, options: str) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr("dptally.report.figure.saved", lambda ax, path: drawn.append((ax, path)))
    assert run("plot", picture, "laplace(2)", *options.split()).out == f"drawn in dptally-{picture}.png\n"
    ((ax, path),) = drawn
    assert str(path) == f"dptally-{picture}.png"
    assert "Laplace(scale=2.0)" in ax.get_title()


def test_plot(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("plot", "loss", "laplace(2)").out == "drawn in dptally-loss.png\n"
    assert Path("dptally-loss.png").read_bytes().startswith(b"\x89PNG")
    found = answer(run("plot", "noise", "gaussian(SIGMA)", "--delta", "1e-5", "-o", "noise.svg", "--json"))
    assert found["file"] == "noise.svg"
    assert "<svg" in Path("noise.svg").read_text()
    assert_refused(run("plot", "renyi", "laplace(2)", "--delta", "2"), "delta")
    assert_refused(run("plot", "loss", "laplace(2)", "-o", "x.bmp"), ".png or .svg")
    assert_refused(run("plot", "loss", "laplace(2)", "-o", "nowhere/x.png"), "nowhere/x.png: No such file")
    assert_refused(run("plot", "pie", "laplace(2)"), "pie")


def test_card(run: Run, tmp_path: Path) -> None:
    arguments = ("card", "laplace(2)", "--delta", "1e-5", "--unit", "one patient")
    assert run(*arguments).out.startswith("# Privacy guarantee\n")
    assert answer(run(*arguments, "--json"))["unit"] == "one patient"
    for name, opening in (("c.html", "<!doctype html>"), ("c.md", "# "), ("c.json", "{")):
        written = run(*arguments, "--output", str(tmp_path / name))
        assert written.out == ""
        assert (tmp_path / name).read_text().startswith(opening)


def test_audit(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cli_audited.py").write_text(
        "from dptally import noise\nhonest = lambda x: x + noise.discrete_laplace(1)\n"
        "broken = lambda x: x + noise.discrete_laplace(1) // 4\nnumber = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    options = ("--claim", "pure(1)", "--samples", "2000")
    honest = run("audit", "cli_audited:honest", *options)
    assert honest.code == 0
    assert honest.out.startswith("cli_audited:honest: not refuted")
    broken = run("audit", "cli_audited:broken", *options, "--json")
    assert broken.code == 1
    assert json.loads(broken.out)[0]["verdict"] == "refuted"
    assert_refused(run("audit"), "TARGET")
    assert_refused(run("audit", "cli_audited:honest"), "--claim")
    assert_refused(run("audit", "cli_audited", *options), "module:function")
    assert_refused(run("audit", "cli_audited:gone", *options), "can be imported")
    assert_refused(run("audit", "cli_audited:number", *options), "a function")
    assert_refused(run("audit", "cli_audited:honest", *options, "--d0", "{"), "valid JSON")
    assert_refused(run("audit", "--self", "--only", "zzz"), "only")


def test_the_audit_of_ourselves(run: Run) -> None:
    found = answer(run("audit", "--self", "--only", "noise.bernoulli_exp", "--json"))
    assert [entry["target"] for entry in found] == ["noise.bernoulli_exp"]


def test_ledger_is_there(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/b.db"
    assert "created 'd'" in run("ledger", "create", "d", "--zcdp", "0.5", "--ledger", url).out
    assert_refused(run("ledger", "spend", "d", "gausian(1)", "--ledger", url), "did you mean gaussian?")
    with pytest.raises(SystemExit) as done:
        run("ledger", "spend", "d", "gaussian(sigma=10)", "--ledger", url)
    assert done.value.code == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(run: Run, shell: str) -> None:
    assert "_DPTALLY_COMPLETE" in run("completion", shell).out
    assert "_DPTALLY_COMPLETE" in answer(run("completion", shell, "--json"))["script"]


def test_unknown_commands(run: Run) -> None:
    assert_refused(run("epsilonn"), "did you mean epsilon?")
    assert_refused(run("zzzzzz"), "see dptally --help")
    assert_refused(run("epsilon", "gaussian(1)", "--detla", "1"), "--detla")


def test_a_terminal_is_shown_the_place(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    outcome = here(capsys, "convert", "3 * gausian(1)", "--to", "zcdp")
    assert outcome.err.splitlines()[1:] == ["  3 * gausian(1)", "      ^"]


def test_moving_signs_go_to_stderr(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert here(capsys, "epsilon", "gaussian(1)", "--delta", "1e-5").out.startswith("epsilon = 4.3771781")
    found = here(capsys, "audit", "--self", "--only", "noise.bernoulli_exp", "--json")
    assert json.loads(found.out)[0]["verdict"] == "not refuted"


def test_interrupted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(dp.Gaussian, "epsilon_interval", interrupt)
    assert here(capsys, "epsilon", "gaussian(1)", "--delta", "1e-5").code == 130


def test_main_exits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["dptally", "epsilon", "gaussian(1)", "--delta", "7"])
    with pytest.raises(SystemExit) as done:
        main()
    assert done.value.code == 2


@pytest.mark.parametrize(("gone", "shown"), [("click", "pip install 'dptally[cli]'"), ("other", None)])
def test_without_click(monkeypatch: pytest.MonkeyPatch, gone: str, shown: str | None) -> None:
    import builtins

    ordinary = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name == "dptally.cli.program":
            raise ModuleNotFoundError(name=gone)
        return ordinary(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(SystemExit if shown else ModuleNotFoundError) as raised:
        main()
    assert shown is None or shown in str(raised.value)


def test_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    from dptally.cli.demo import main as demo

    demo()
    text = capsys.readouterr().out
    assert "certified: 2.460867" in text
    assert "40 x DiscreteLaplace" in text
    assert "no attacker's TPR - FPR is above" in text


def test_the_group_knows_its_commands() -> None:
    context = click.Context(cli)
    assert cli.list_commands(context) == list(COMMANDS)
    assert cli.get_command(context, "zzz") is None
