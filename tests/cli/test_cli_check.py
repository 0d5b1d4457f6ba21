"""Contract: ``dptally check``: exit codes, JSON, pages, proofs, bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_running import assert_refused, here

TRUE = "epsilon 1 at delta 1e-5: 5 * gaussian(10)"
REFUTED = "epsilon 5.28 at delta 1e-4: 50 * pure(0.2)"
OPEN = "epsilon 1 at delta 1e-5: rdp accountant"


@pytest.mark.parametrize(
    ("claim", "code", "status"), [(TRUE, 0, "loose"), (REFUTED, 1, "refuted"), (OPEN, 3, "undetermined")]
)
def test_exit_codes_and_json(capsys: pytest.CaptureFixture[str], claim: str, code: int, status: str) -> None:
    plain = here(capsys, "check", claim)
    assert plain.code == code
    told = here(capsys, "check", claim, "--json")
    assert told.code == code
    assert json.loads(told.out)["status"] == status
    brief = here(capsys, "check", claim, "--brief")
    assert brief.code == code
    assert brief.out.count("\n") <= 3
    assert json.loads(here(capsys, "check", claim, "--brief", "--json").out)["status"] == status


@pytest.mark.parametrize("bad", ["epsilon 1: gaussian(1)", "hello", "epsilon 1 at delta 1e-5: bananas", "@none.json"])
def test_what_cannot_be_read_exits_with_2(capsys: pytest.CaptureFixture[str], bad: str) -> None:
    assert_refused(here(capsys, "check", bad))


def test_with_json_an_error_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["check", "hello", "--json"], ["epsilon", "fancy(1)", "--delta", "1e-5", "--json"]):
        told = here(capsys, *arguments)
        assert told.code == 2
        assert set(json.loads(told.out)) == {"error", "exit_code"}
        assert told.err.startswith("Error: ")


def test_a_claim_or_a_proof_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(here(capsys, "check"), "CLAIM")
    assert_refused(here(capsys, "check", TRUE, "--verify", "x.json"), "CLAIM")


def test_pages_and_proofs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    proof, pages = tmp_path / "proof.json", [tmp_path / f"page.{end}" for end in ("html", "json", "txt")]
    for page in pages:
        assert here(capsys, "check", REFUTED, "-o", str(page), "--proof", str(proof)).code == 1
    assert "<svg" in pages[0].read_text()
    assert json.loads(pages[1].read_text())["status"] == "refuted"
    assert pages[2].read_text().startswith("REFUTED")
    again = here(capsys, "check", "--verify", str(proof))
    assert (again.code, "confirmed" in again.out) == (0, True)
    proof.write_text(proof.read_text().replace('"refuted"', '"true"'))
    told = here(capsys, "check", "--verify", str(proof), "--json")
    assert told.code == 1
    assert json.loads(told.out)["confirmed"] is False


def test_a_run_without_a_claim_takes_it_from_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    state.write_text(json.dumps({"history": [[2.0, 0.01, 100]], "mechanism": "prv"}))
    assert_refused(here(capsys, "check", str(state)), "--epsilon")
    assert here(capsys, "check", str(state), "--epsilon", "3", "--delta", "1e-5", "--brief").code == 0
    answer = here(capsys, "epsilon", f"@{state}", "--delta", "1e-5", "--json", "--brief")
    assert json.loads(answer.out)["epsilon"]["upper"] < 1


def test_tables_of_claims(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = tmp_path / "claims.csv"
    table.write_text(f'claim\n"{TRUE}"\n"{REFUTED}"\n"{OPEN}"\n')
    shown = here(capsys, "check", str(table))
    assert shown.code == 1
    assert all(word in shown.out for word in ("TRUE BUT LOOSE", "REFUTED", "NOT DETERMINED"))
    told = json.loads(here(capsys, "check", str(table), "--json").out)
    assert told["status"] == "refuted"
    assert [claim["status"] for claim in told["claims"]] == ["loose", "refuted", "undetermined"]
    assert_refused(here(capsys, "check", str(table), "--proof", str(tmp_path / "p.json")), "one claim")
    assert_refused(here(capsys, "check", str(table), "-o", str(tmp_path / "p.html")), "one claim")
    table.write_text(f'claim\n"{TRUE}"\n"{OPEN}"\n')
    assert here(capsys, "check", str(table)).code == 3


def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO(TRUE))
    assert here(capsys, "check", "-", "--brief").code == 0


def test_a_plan_may_be_the_repr_of_an_event(capsys: pytest.CaptureFixture[str]) -> None:
    event = "SelfComposedDpEvent(GaussianDpEvent(10.0), 5)"
    told = json.loads(here(capsys, "epsilon", event, "--delta", "1e-5", "--json", "--brief").out)
    assert told["plan"] == "5 * Gaussian(sigma=10.0, sensitivity=1.0)"
    power = json.loads(here(capsys, "epsilon", "1e6*laplace(1e9)", "--delta", "1e-5", "--json", "--brief").out)
    assert power["plan"].startswith("1000000 * Laplace")
