"""Contract: plans from files and from the standard input."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import dptally as dp
from dptally.cli.plans import PLAN, load

HOSPITAL = """
title = "A hospital's year"
unit = "one patient"

[[query]]
name = "ward counts"
plan = "discrete_laplace(scale=20)"
count = 40

[[query]]
plan = "20 * gaussian(sigma=30)"
"""
EXPECTED = 40 * dp.DiscreteLaplace(20) + 20 * dp.Gaussian(30)


def written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_toml(tmp_path: Path) -> None:
    path = written(tmp_path, "plan.toml", HOSPITAL)
    for text in (path, f"@{path}"):
        found = load(text)
        assert (found.mechanism, found.title, found.unit) == (EXPECTED, "A hospital's year", "one patient")


@pytest.mark.parametrize(
    ("name", "text", "plan"),
    [
        ("one.toml", 'plan = "laplace(5)"', dp.Laplace(5)),
        ("one.json", '{"plan": "3*laplace(5)"}', 3 * dp.Laplace(5)),
        ("two.json", '{"plan": "laplace(5)", "query": [{"plan": "laplace(5)"}]}', 2 * dp.Laplace(5)),
        ("whole.json", dp.to_json(EXPECTED), EXPECTED),
        ("one.txt", "laplace(5)\n", dp.Laplace(5)),
        ("one.plan", dp.to_json(EXPECTED), EXPECTED),
    ],
)
def test_other_files(tmp_path: Path, name: str, text: str, plan: dp.Mechanism) -> None:
    assert load(written(tmp_path, name, text)).mechanism == plan


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("3 * laplace(5)"))
    assert load("-").mechanism == 3 * dp.Laplace(5)
    assert load(dp.to_json(EXPECTED)).mechanism == EXPECTED


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.toml", "plan = ", "valid TOML"),
        ("a.toml", "x = " + "[" * 10_000, "50 brackets deep"),
        ("a.toml", "colour = 1", "colour"),
        ("a.toml", "title = 'x'", r'"plan" or with'),
        ("a.toml", "title = 1\nplan = 'laplace(1)'", "title must be a text"),
        ("a.toml", "query = 3", r"\[\[query\]\]"),
        ("a.toml", "query = [3]", "query 1 must be a table"),
        ("a.toml", "[[query]]\nplan = 3", "query 1.plan"),
        ("a.toml", "[[query]]\nplan = 'laplace(1)'\ncount = -2", "count must be"),
        ("a.toml", "[[query]]\nplan = 'lapace(1)'", "did you mean laplace"),
        ("a.json", "{", "valid JSON"),
        ("a.json", "[" * 10_000, "50 brackets deep"),
        ("a.json", "[1]", "list"),
        ("a.json", '{"schema": 2, "mechanism": {}}', "schema"),
        ("a.txt", "gaussian(1)\n" * 90_000, "at most 1000000 bytes"),
    ],
)
def test_refused_files(tmp_path: Path, name: str, text: str, words: str) -> None:
    with pytest.raises(dp.InvalidArgument, match=words):
        load(written(tmp_path, name, text))


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(dp.InvalidArgument, match="No such file"):
        load("@nowhere.toml")
    (tmp_path / "latin.toml").write_bytes(b"\xff\xfe\xe4")
    with pytest.raises(dp.InvalidArgument, match="UTF-8"):
        load(str(tmp_path / "latin.toml"))


def test_completion_of_plans() -> None:
    context, parameter = None, None
    found = PLAN.shell_complete(context, parameter, "disc")  # type: ignore[arg-type]
    assert [item.value for item in found] == ["discrete_gaussian(", "discrete_laplace("]
    assert PLAN.shell_complete(context, parameter, "@pl")[0].type == "file"  # type: ignore[arg-type]
