"""Contract: ``dptally release``, from a file to answers with error bars and a debit."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("click")

from dptally.cli.program import run
from dptally.ledger import Ledger


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = range(900)
    table = pa.table(
        {
            "patient_id": [i % 300 for i in rows],
            "ward": ["ABC"[(i + i // 300) % 3] for i in rows],
            "floor": [i % 2 for i in rows],
            "los_days": [float(i % 30) for i in rows],
            "age": [i % 90 for i in rows],
            "day": pa.array([20454 + i % 3 for i in rows], pa.date32()),
            "old": [i % 3 == 0 for i in rows],
        }
    )
    pq.write_table(table, tmp_path / "visits.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPTALLY_LEDGER", f"sqlite:///{tmp_path}/budget.db")
    return tmp_path


PERSON = ["release", "visits.parquet", "--person", "patient_id", "--max-groups", "3"]
ASK = ["--by", "ward", "--keys", "A,B,C", "--count", "--mean", "los_days", "--each", "los_days", "0", "60"]
PAY = ["--budget", "zcdp(0.05)", "--open-account", "zcdp(0.5)"]


def test_a_release(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--median", "age", "--bins", "age", "0", "90", "10", "--sum", "los_days", "--variance", "los_days"]
    command = [*PERSON, *ASK, *more, *PAY]
    assert run([*command, "--preview"]) == 0
    said = capsys.readouterr().out
    assert "rho 0.05; 0.5 left; 10 such queries fit" in said
    assert "persons: sigma" in said
    assert run([*command, "--preview", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["price"]["fits"] == 10
    assert run([*command, "--sql"]) == 0
    assert "SELECT c, " in capsys.readouterr().out
    assert run([*command, "--key", "k", "--why", "board", "--analyst", "alice", "--output", "board.html"]) == 0
    said = capsys.readouterr().out
    for word in ("persons", "los_days_mean", "age_q50", "rho 0.05 from visits, entry 1; 0.45 left", "board.html"):
        assert word in said
    assert "<!doctype html>" in (folder / "board.html").read_text(encoding="utf-8")
    assert run([*command, "--key", "k", "--why", "board", "--analyst", "alice"]) == 0
    assert "statement: visits-1.md" in capsys.readouterr().out
    assert "| ward | persons |" in (folder / "visits-1.md").read_text(encoding="utf-8")
    assert run([*command, "--key", "k", "--why", "board", "--analyst", "alice", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["left"] == pytest.approx(0.45)
    assert [row["ward"] for row in told["rows"]] == ["A", "B", "C"]
    with Ledger.open(f"sqlite:///{folder}/budget.db", create=True) as ledger:
        assert len(ledger.history("visits")) == 1


def test_rows_keys_of_all_kinds_and_private_groups(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "wards.txt").write_text("A\nB\n")
    base = ["release", "visits.parquet", *PAY, "--count"]
    assert run([*base, "--by", "ward", "--keys", "@wards.txt", "--where", "age >= 10"]) == 0
    assert run([*base, "--by", "floor", "--by", "old", "--keys", "0,1"]) == 2
    assert "a list for each" in capsys.readouterr().err
    assert run([*base, "--by", "floor", "--by", "old", "--keys", "floor=0,1", "--keys", "old=true,false"]) == 0
    assert run([*base, "--by", "day", "--keys", "2026-01-01"]) == 0
    private = [*PERSON, "--by", "ward", "--private", "60", "--count", "--dataset", "people", "--budget", "zcdp(0.05)"]
    assert run([*private, "--open-account", "approx(3, 1e-5)"]) == 0
    assert "rows" in capsys.readouterr().out


def test_exit_codes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PERSON, *ASK, "--budget", "zcdp(0.05)"]) == 2
    assert "--open-account must be given: the ledger has no account 'visits' yet" in capsys.readouterr().err
    assert run([*PERSON, *ASK, "--budget", "zcdp(0.7)", "--open-account", "zcdp(0.5)"]) == 3
    assert "left of" in capsys.readouterr().err
    assert run([*PERSON, *ASK, "--budget", "zcdp(0.7)", "--json"]) == 3
    assert "error" in json.loads(capsys.readouterr().out)
    for wrong, word in (
        (["--mean", "age"], "--each age LOW HIGH"),
        (["--median", "los_days"], "--bins los_days LOW HIGH WIDTH"),
        (["--median", "age", "--bins", "age", "0", "90", "0"], "1 to 1024 bins"),
        (["--where", "random() < 1"], "randomness"),
        (["--output", "nowhere/board.html"], "a folder that can be written to"),
    ):
        assert run([*PERSON, *ASK, *wrong, *PAY]) == 2
        assert word in capsys.readouterr().err
    assert run(["release", "visits.parquet", "--by", "floor", "--keys", "x", "--count", *PAY]) == 2
    assert run(["release", "visits.parquet", "--person", "patient_id", "--by", "ward", "--count", *PAY]) == 2
    assert "write --max-groups 3" in capsys.readouterr().err
    assert run([*PERSON, "--by", "ward", "--count", *PAY]) == 2
    assert "write --keys A,B,C, or --private 60" in capsys.readouterr().err
    assert run(["release", "nowhere.parquet", "--count", *PAY]) == 2
    assert run(["release", "visits.parquet", "--count", *PAY]) == 2  # the account is kept for persons
    assert "is kept for person:patient_id" in capsys.readouterr().err


def test_a_bar_follows_the_engine(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On a terminal: the bar asks the engine how far it is, and goes away."""
    import time

    from dptally.cli import output

    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    shares = iter([None, 0.25, *[0.5] * 1000])
    asked: list[float | None] = []
    with output.progress("asking", lambda: asked.append(next(shares)) or asked[-1]):
        time.sleep(0.45)
    assert asked[:2] == [None, 0.25]
    assert "asking" in capsys.readouterr().err
