"""Contract: ``dptally report`` in all forms and formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_running import assert_refused, here

from dptally.cli.reports import FORMATS

PLAN = "3 * gaussian(sigma=5)"


@pytest.mark.parametrize(("form", "kind"), [(form, kind) for form, kinds in FORMATS.items() for kind in kinds])
def test_every_form_in_every_format(capsys: pytest.CaptureFixture[str], form: str, kind: str) -> None:
    arguments = ["report", form, PLAN, "--delta", "1e-6", "--unit", "one patient", "--format", kind, "--steps", "20"]
    found = here(capsys, *arguments)
    assert found.code == 0, found.err
    if kind == "json":
        json.loads(found.out)
    starts = {"latex": "\\begin{tabular}", "markdown": ("|", "#"), "yaml": "url_slug", "bibtex": "@software"}
    if kind in starts:
        assert found.out.startswith(starts[kind])


def test_files_and_facts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    facts = ["--fact", "curator=A hospital", "--fact", "model=Central", "--title", "Ward counts"]
    found = here(
        capsys, "report", "registry", PLAN, "--delta", "1e-6", "--unit", "one patient", *facts, "-o", str(path)
    )
    assert found.code == 0
    assert "still to be filled in" in found.err
    basic = json.loads(path.read_text())["deployment"]["basic"]
    assert (basic["name"], basic["data_curators"]) == ("Ward counts", ["A hospital"])
    assert here(capsys, "report", "nist", PLAN, "--delta", "1e-6", "--json").out.startswith("{")


def test_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(here(capsys, "report", "registry", PLAN, "--delta", "1e-6"), "unit")
    assert_refused(here(capsys, "report", "nist", PLAN, "--delta", "1e-6", "--format", "latex"), "format")
    assert_refused(
        here(capsys, "report", "registry", PLAN, "--delta", "1e-6", "--unit", "x", "--fact", "oops"), "NAME=TEXT"
    )
