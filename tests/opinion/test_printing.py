"""Contract: the page about a verdict, and the guarantee card, print on one sheet. Printed by Chromium where it is."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import dptally as dp
from dptally import report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")


def sheets(html: str, folder: Path) -> int:
    page, paper = folder / "page.html", folder / "page.pdf"
    page.write_text(html, encoding="utf-8")
    printed = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", f"--print-to-pdf={paper}"]
    subprocess.run([str(CHROMIUM), *printed, page.as_uri()], check=True, capture_output=True, timeout=60)
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", paper.read_bytes()))


def test_a_page_prints_on_one_sheet(tmp_path: Path) -> None:
    """With all sections, and as many sources as a plan of seven kinds of mechanisms has."""
    said = "noise 0.638, batch size 256, dataset size 60000, 70 epochs, clipping norm 1, user level, CLT accountant"
    page = dp.check(f"epsilon 8.68 at delta 1e-5: {said}").page()
    assert len(list(page.sections())) >= 10
    longer = replace(page, theorems=4 * page.theorems[:3], sources=4 * page.sources[:3])
    assert sheets(longer.to_html(), tmp_path) == 1


def test_a_card_prints_on_one_sheet(tmp_path: Path) -> None:
    card = report.card(dp.dpsgd(1.0, 0.01, 1000), deltas=(1e-9, 1e-6), unit="one patient")
    assert sheets(card.to_html(), tmp_path) == 1


def test_two_sheets_are_counted(tmp_path: Path) -> None:
    assert sheets("<p>one<p style='break-before:page'>two", tmp_path) == 2
