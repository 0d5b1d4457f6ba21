"""Contract: the ledger's commands, their output and their exit codes."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import dptally as dp
from dptally.cli.ledger_commands import group

PLAN = dp.to_json(1 * dp.Gaussian(sigma=2.0))
Run = Callable[..., Result]


@pytest.fixture
def run(sqlite_url: str) -> Run:
    def invoke(*arguments: str, code: int = 0) -> Result:
        result = CliRunner().invoke(group, list(arguments), env={"DPTALLY_LEDGER": sqlite_url})
        assert result.exit_code == code, result.output
        return result

    return invoke


@pytest.fixture
def account(run: Run) -> Run:
    run("create", "ehr", "--zcdp", "0.5", "--delta", "1e-15", "--about", "ward data")
    return run


@pytest.mark.parametrize(
    ("options", "budget"),
    [
        (["--pure", "1"], "PureDP(epsilon=1.0)"),
        (["--zcdp", "0.5"], "ZCDP(rho=0.5)"),
        (["--gdp", "1"], "GaussianDP(mu=1.0)"),
        (["--approx", "1", "1e-6"], "ApproxDP(epsilon=1.0, delta=1e-06)"),
    ],
)
def test_create_with_every_kind(run: Run, options: list[str], budget: str) -> None:
    assert budget in run("create", "d", *options).output


def test_create_with_terms(run: Run) -> None:
    options = ["--unit", "person:patient", "--adjacency", "add-remove", "--failure", "1e-9", "--delta", "1e-6"]
    made = json.loads(
        run("create", "d", "--zcdp", "1", *options, "--part", "ward=A", "--part", "ward=B", "--json").output
    )
    assert (made["unit"], made["adjacency"]) == ("person:patient", "add-remove")
    assert made["budget"] == "ZCDP(rho=1.0) with failure 1e-09"
    run("spend", "d", "gaussian(sigma=9)", "--partition", "ward", "--part", "A")
    assert "declared" in run("spend", "d", "gaussian(sigma=9)", "--partition", "ward", "--part", "C", code=2).output
    run("create", "e", "--zcdp", "1", "--unit", "people", code=2)
    run("create", "replace", "--approx", "3", "1e-5", "--adjacency", "replace")
    refused = run("spend", "replace", "poisson(gaussian(4.0), 0.01)", code=2).output
    assert "Nothing was debited" in refused
    assert "adjacency=REPLACE" in refused


def test_create_refuses_nonsense(run: Run, account: Run) -> None:
    run("create", "d", code=2)
    run("create", "d", "--pure", "1", "--zcdp", "1", code=2)
    assert "exists already" in run("create", "ehr", "--pure", "1", code=2).output


def test_a_budget_that_is_no_budget(run: Run) -> None:
    run("create", "d", "--pure", "-1", code=2)
    run("create", "d", "--pure", "0", code=2)


def test_spend_status_history(account: Run) -> None:
    said = account("spend", "ehr", PLAN, "--by", "alice", "--why", "counts", "--key", "q").output
    assert "rho 0.125, released" in said
    assert (
        "nothing was charged now"
        in account("spend", "ehr", PLAN, "--by", "alice", "--why", "counts", "--key", "q").output
    )
    seen = account("status").output
    assert "[##########..............................] rho 0.125 of 0.5, 0.375 left" in seen
    assert "alice: 0.125" in seen
    assert "at delta 1e-15" in seen
    assert json.loads(account("status", "ehr", "--json").output)[0]["remaining"] == pytest.approx(0.375)
    assert "Gaussian(sigma=2.0" in account("history", "ehr").output
    row = json.loads(account("history", "ehr", "--json", "--by", "alice", "--limit", "1").output)
    assert (row["key"], row["state"]) == ("q", "released")
    receipt = json.loads(account("spend", "ehr", PLAN, "--json", "--label", "x").output)
    assert receipt["state"] == "released"


def test_a_command_runs_after_the_debit_and_its_failure_burns(account: Run, tmp_path: Path) -> None:
    touch = [sys.executable, "-c", f"open({str(tmp_path / 'touched')!r}, 'a').write('x')"]
    account("spend", "ehr", PLAN, "--key", "k", "--", *touch)
    account("spend", "ehr", PLAN, "--key", "k", "--", *touch)  # a retry does not touch the data again
    assert (tmp_path / "touched").read_text() == "x"
    said = account("spend", "ehr", PLAN, "--", sys.executable, "-c", "raise SystemExit(7)", code=7).output
    assert "burnt" in said
    assert "0.25 of 0.5" in account("status").output


def test_a_program_that_is_not_there_costs_nothing(account: Run) -> None:
    said = account("spend", "ehr", PLAN, "--", "no-such-program-anywhere", code=2).output
    assert "nothing was debited" in said
    assert account("history", "ehr").output == ""


def test_bad_values_are_wrong_usage(account: Run) -> None:
    account("history", "ehr", "--limit", "-1", code=2)
    account("status", "--ledger", "nosuch://x", code=2)
    account("create", " d", "--zcdp", "1", code=2)


def test_the_group_alone_prints_its_help(account: Run) -> None:
    assert "dptally ledger create" in account().output


def test_refusals_have_exit_codes_of_their_own(account: Run, sqlite_url: str) -> None:
    big = dp.to_json(1 * dp.Gaussian(sigma=0.5))
    assert "It fits with sigma >= 1" in account("spend", "ehr", big, code=3).output
    assert "no dataset 'nobody'" in account("spend", "nobody", PLAN, code=2).output
    account("spend", "ehr", "{}", code=2)
    account("status", "--ledger", "sqlite:///nowhere/x.db", code=2)
    raw = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
    raw.execute("UPDATE dptally_accounts SET spent = 1")
    raw.commit()
    raw.close()
    assert "totals" in account("verify", code=4).output


def test_heads_are_exported_and_given_back(account: Run, tmp_path: Path) -> None:
    account("spend", "ehr", PLAN)
    head = tmp_path / "head.json"
    head.write_text(account("export").output)
    assert "agree" in account("verify", "--head", str(head)).output
    document = json.loads(head.read_text())
    document["chains"]["ehr"][0] += 5
    head.write_text(json.dumps(document))
    assert "old copy" in account("verify", "--head", str(head), code=4).output
    account("export", "--output", str(tmp_path / "all.jsonl"))
    assert dp.ledger.verify_export((tmp_path / "all.jsonl").read_text().splitlines()).datasets == 1


def test_reports(account: Run, tmp_path: Path) -> None:
    account("spend", "ehr", PLAN)
    assert account("report", "ehr").output.startswith("# Privacy ledger: ehr")
    account("report", "ehr", "--format", "html", "--output", str(tmp_path / "r.html"))
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")


def test_an_empty_ledger(run: Run) -> None:
    run("create", "x", "--pure", "1")
    assert "PureDP" in run("status", "x").output
    assert run("history", "x").output == ""
