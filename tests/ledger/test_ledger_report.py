"""Contract: statements say what was spent by whom, what is left and where it stops, and are well formed."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest

import dptally as dp
from dptally.ledger import Balance, Ledger
from dptally.ledger.statement import bar


@pytest.fixture
def ledger(sqlite_url: str) -> Iterator[Ledger]:
    with Ledger.open(sqlite_url) as made:
        made.create(
            "d",
            budget=dp.ZCDP(0.5),
            delta=1e-9,
            analysts={"bob": dp.ZCDP(0.25)},
            about="wards | <b>",
            parts={"ward": ["A"]},
        )
        with made.spend("d", dp.ZCDP(0.125), by="alice", why="a | b <i>&"):
            pass
        with made.spend("d", dp.ZCDP(0.0625), by="bob", partition="ward", part="A"):
            pass
        yield made


def test_markdown(ledger: Ledger) -> None:
    text = ledger.report("d")
    lines = text.splitlines()
    assert "| budget | ZCDP(rho=0.5) |" in lines
    assert "| spent | 0.1875 |" in lines
    assert "| left | 0.3125 |" in lines
    assert any(line.startswith("| stopping point | 5 more like the last") for line in lines)
    assert any("a \\| b &lt;i&gt;&amp;" in line for line in lines)
    assert "| bob | 1 | 0.0625 | 0.25 | 0.1875 |" in lines
    assert any(line.startswith("dataset [###############....") for line in lines)
    table = [line for line in lines if line.startswith("|") and "2026" not in line]
    assert all(line.count("|") - line.count("\\|") in (3, 6, 10) for line in table)


def test_html_is_well_formed_and_escaped(ledger: Ledger) -> None:
    text = ledger.report("d", "html")
    root = ET.fromstring(text.removeprefix("<!doctype html>").replace('<meta charset="utf-8">', ""))
    assert len(root.findall(".//rect")) == 2
    assert "<i>" not in text


def test_json(ledger: Ledger) -> None:
    document = json.loads(ledger.report("d", "json"))
    assert document["balance"]["left"] == pytest.approx(0.3125)
    assert document["more_like_the_last"] == 5
    assert [release["by"] for release in document["releases"]] == ["alice", "bob"]
    assert document["releases"][1]["part"] == "A"
    assert document["releases"][0]["plan"] == json.loads(dp.to_json(dp.ZCDP(0.125)))


def test_empty_unnamed_and_long_histories(ledger: Ledger) -> None:
    ledger.create("empty", budget=dp.ApproxDP(1, 1e-6))
    assert "Nothing was spent." in ledger.report("empty")
    assert "Nothing was spent." in ledger.report("empty", "html")
    assert "failure probability left" in ledger.report("empty")
    ledger.create("long", budget=dp.PureDP(1e3))
    ledger.spend_batch("long", [dp.PureDP(0.1)] * 450)
    html = ledger.report("long", "html")
    assert html.count("<rect") == 150  # three releases in each bar
    assert "(not named)" in html
    ledger.spend("long", dp.PureDP(0))
    assert "stopping point" not in ledger.report("long")
    with pytest.raises(dp.InvalidArgument, match="format"):
        ledger.report("long", "pdf")


def test_the_stopping_point_counts_failures_too(ledger: Ledger) -> None:
    ledger.create("a", budget=dp.ApproxDP(4, 1e-6))
    ledger.spend("a", dp.ApproxDP(0.01, 1e-7))
    assert json.loads(ledger.report("a", "json"))["more_like_the_last"] == 4


@pytest.mark.parametrize(
    ("spent", "cap", "shown"),
    [
        (0.0, 1.0, "[........]"),
        (1e-9, 1.0, "[#.......]"),
        (0.999999, 1.0, "[#######.]"),
        (1.0, 1.0, "[########]"),
    ],
)
def test_bars_are_honest_at_their_ends(spent: float, cap: float | None, shown: str) -> None:
    assert bar(Balance("", "rho", spent, cap, None), width=8) == shown


def test_a_bar_without_a_cap() -> None:
    assert bar(Balance("", "rho", 1.0, None, None), width=3) == "[---]"
