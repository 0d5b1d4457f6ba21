"""Contract: statements say what was spent by whom, what is left and where it stops, and are well formed."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from fractions import Fraction

import pytest
from click.testing import CliRunner

import dptally as dp
from dptally.cli.ledger_commands import group
from dptally.ledger import Balance, Ledger
from dptally.ledger.statement import bar, visible


@pytest.fixture
def ledger(sqlite_url: str) -> Iterator[Ledger]:
    with Ledger.open(sqlite_url, create=True) as made:
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


def test_names_and_reasons_are_inert_in_every_format(sqlite_url: str) -> None:
    """Markup, links, pictures and HTML of an analyst are shown, not obeyed."""
    evil = "<script>alert(1)</script> [x](javascript:1) ![p](http://e.example/p.png) `a` www.e.example *b*"
    with Ledger.open(sqlite_url.replace("budget", "evil"), create=True) as ledger:
        ledger.create("d <script>", budget=dp.PureDP(1.0), about=evil, analysts={"```<script>": dp.PureDP(0.5)})
        ledger.spend("d <script>", dp.PureDP(0.25), by="```<script>", why=f"{evil}\n\n# heading\n```\n<script>")
        markdown, html = ledger.report("d <script>"), ledger.report("d <script>", "html")
    assert "<script" not in markdown
    assert "](" not in markdown.replace("\\](", "")
    assert "http://" not in markdown
    assert "www." not in markdown
    assert "\n# heading" not in markdown
    assert sum(line.startswith("```") for line in markdown.splitlines()) == 2
    assert "<script" not in html


def test_what_an_older_ledger_holds_is_made_visible() -> None:
    assert visible("a\u202eb\x1b[2Jc\u200d") == "a\\u202eb\\x1b[2Jc\\u200d"
    assert visible("two\nlines é 漢") == "two\nlines é 漢"


@pytest.mark.parametrize("bad", ["a\nb", "a\u202eb", "a\u200bb", "a\tb", "a\x1b[2J", "\ufeffa", "a\u2028b"])
def test_names_with_invisible_characters_are_refused(sqlite_url: str, bad: str) -> None:
    with Ledger.open(sqlite_url.replace("budget", "names"), create=True) as ledger:
        ledger.create("d", budget=dp.PureDP(1.0))
        with pytest.raises(dp.InvalidArgument):
            ledger.create(bad, budget=dp.PureDP(1.0))
        for words in ({"by": bad}, {"key": bad}, {"labels": [bad]}, {"partition": "p", "part": bad}):
            with pytest.raises(dp.InvalidArgument) as caught:
                ledger.spend("d", dp.PureDP(0.1), **words)  # type: ignore[arg-type]
            assert bad not in str(caught.value)
        with pytest.raises(dp.InvalidArgument):
            ledger.spend("d", dp.PureDP(0.1), why="a\u202eb")
        ledger.spend("d", dp.PureDP(0.1), why="two\nlines")


def test_what_is_spent_is_shown_rounded_up_and_what_is_left_rounded_down(sqlite_url: str) -> None:
    with Ledger.open(sqlite_url, create=True) as ledger:
        ledger.create("d", budget=dp.PureDP(1.0), delta=1e-6, failure=1e-7, analysts={"bob": dp.PureDP(1 / 3)})
        for epsilon in (0.1234561, 0.0002, 1e-9):
            receipt = ledger.spend("d", dp.PureDP(epsilon), by="bob")
            assert Fraction(re.search(r"epsilon=([^,]+),", repr(receipt)).group(1)) >= Fraction(receipt.cost)  # type: ignore[union-attr]
        ledger.spend("d", dp.ApproxDP(0.01, 1.23456789e-8), by="bob")
        status, page = ledger.status("d"), ledger.report("d")
        with pytest.raises(dp.BudgetExceeded) as caught:
            ledger.spend("d", dp.PureDP(0.20000001), by="bob")
        refusal = caught.value
    run = " ".join(CliRunner().invoke(group, ["status", "d", "--ledger", sqlite_url]).output.split())  # however wide
    whole, bob, failure = status.balance, status.analysts[0], status.failure
    assert failure is not None
    shown = {
        name: Fraction(re.search(pattern, text).group(1))  # type: ignore[union-attr]
        for name, pattern, text in [
            ("spent", r"epsilon (\S+) of", run),
            ("left", r", (\S+) left", run),
            ("bob", r"bob: (\S+) of", run),
            ("odometer", r"1e-06: (\S+) \(odometer", run),
            ("page spent", r"\| spent \| (\S+) \|", page),
            ("page left", r"\| left \| (\S+) \|", page),
            ("failure left", r"failure probability left \| (\S+) of", page),
            ("refused left", r"has epsilon (\S+) left", str(refusal)),
            ("refused need", r"needs epsilon (\S+)\. ", str(refusal)),
        ]
    }
    assert shown["spent"] >= Fraction(whole.spent)
    assert shown["page spent"] >= Fraction(whole.spent)
    assert shown["bob"] >= Fraction(bob.spent)
    assert shown["odometer"] >= Fraction(status.epsilon or 0)
    assert shown["left"] <= Fraction(whole.left or 0)
    assert shown["page left"] <= Fraction(whole.left or 0)
    assert shown["failure left"] <= Fraction(failure.left or 0)
    assert shown["refused left"] <= Fraction(refusal.left)
    assert shown["refused need"] >= Fraction(refusal.requested)
