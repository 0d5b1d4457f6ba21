"""Contract: what a notebook shows of plans and answers. The numbers are the library's, every text is escaped, and
neither matplotlib nor a warning is needed.
"""

from __future__ import annotations

import math
import re
import sys
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dptally as dp
from dptally import later, release
from dptally.answers.explain import Explanation
from dptally.ledger.status import Balance, Status
from dptally.numerics.shown import shown_down, shown_up
from dptally.report import svg

GAUSSIAN = 4 * dp.Gaussian(sigma=4.0)


@pytest.fixture(autouse=True)
def no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def status(name: str = "ehr") -> Status:
    balances = Balance("", "rho", 0.1, 0.5, 0.4), Balance("<bob>", "rho", 0.1, None, None)
    told = {"kind": "zcdp", "theorem": "t", "adjacency": "add-remove", "unit": "row", "about": "", "failure": None}
    numbers: dict[str, Any] = {"delta": 1e-6, "epsilon": 1.25, "remaining": 0.4, "entries": 3}
    return Status(dataset=name, budget="ZCDP(0.5)", balance=balances[0], analysts=balances[1:], **told, **numbers)


def account() -> dp.Accountant:
    made = dp.Accountant(budget=3.0, delta=1e-5)
    made.step(dp.Gaussian(sigma=20.0), count=7)
    return made


SHOWN = {
    "plan": GAUSSIAN,
    "mechanism": dp.Laplace(scale=2.0),
    "nothing": 0 * dp.Gaussian(1.0),
    "failing": dp.ApproxDP(1.0, 1e-6),
    "interval": dp.Interval(1.0, 1.5, "a <method>"),
    "infinite": dp.Interval(0.0, math.inf),
    "intervals": GAUSSIAN.epsilon_interval([[1e-5, 1e-6], [0.0, 1e-9]]),
    "no intervals": GAUSSIAN.epsilon_interval([]),
    "comparison": dp.compare(GAUSSIAN, 1e-5),
    "explanation": GAUSSIAN.explain(1e-5),
    "accountant": account(),
    "empty accountant": dp.Accountant(),
    "status": status(),
}


def pictures(html: str) -> list[ET.Element]:
    return [ET.fromstring(found) for found in re.findall(r"<svg.*?</svg>", html, re.DOTALL)]


def well_formed(html: str) -> None:
    ET.fromstring(re.sub(r"&(?:le|amp);", "", html))


@pytest.mark.parametrize("name", SHOWN)
def test_every_value_has_a_card(name: str) -> None:
    value = SHOWN[name]
    html, markdown = value._repr_html_(), value._repr_markdown_()
    well_formed(html)
    assert html.startswith('<div class="dptally">')
    assert markdown.strip()
    assert "<script" not in html
    assert "style=" not in html
    assert "nan" not in html.lower().replace("maintenance", "")


def test_an_array_states_both_ends_of_each_answer_and_how_many_there_are() -> None:
    boxes = GAUSSIAN.epsilon_interval([10.0**-k for k in range(1, 26)])
    for text in (boxes._repr_html_(), boxes._repr_markdown_()):
        assert "25 answers" in text
        assert "and 5 more" in text
        assert shown_up(boxes[19].upper, 10) in text
        assert shown_down(boxes[0].lower, 10) in text
        assert shown_up(boxes[20].upper, 10) not in text


def test_a_plan_states_both_ends_and_its_profile() -> None:
    html = GAUSSIAN._repr_html_()
    box = GAUSSIAN.epsilon_interval(1e-9)
    for text in (shown_up(box.upper, 8), shown_down(box.lower, 8)):
        assert text in html
        assert text in GAUSSIAN._repr_markdown_()
    (picture,) = pictures(html)
    assert "delta against epsilon" in (picture[0].text or "")
    line = next(e for e in picture.iter() if e.tag.endswith("polyline"))
    assert len(line.attrib["points"].split()) == 23


def test_the_ends_are_told_apart_where_they_differ() -> None:
    assert "certified lower end" in dp.ZCDP(0.5)._repr_html_()
    assert "certified lower end" not in GAUSSIAN._repr_html_()


def test_a_plan_that_cannot_answer_says_why() -> None:
    class Silent(type(dp.PureDP(1.0))):  # type: ignore[misc]
        __slots__ = ()

        def epsilon_interval(self, delta: Any) -> Any:
            raise dp.Unanswerable("no <number> is known")

    silent = Silent(1.0)
    assert "no answer: no &lt;number&gt; is known" in silent._repr_html_()
    assert "<svg" not in silent._repr_html_()
    assert "no answer" in silent._repr_markdown_()


def test_a_slow_plan_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dptally.report.notebook._PATIENCE", -1.0)
    html = (3 * dp.Gaussian(sigma=17.5))._repr_html_()
    assert "1e-05" in html
    assert "1e-09" not in html
    assert "<svg" not in html


def test_a_release_shows_its_value_and_cost() -> None:
    made = release.count(["a", "b"], sigma=20.0)
    html = made._repr_html_()
    assert f"<td>{made.value}</td>" in html
    assert shown_up(made.mechanism.epsilon(1e-5), 8) in html
    assert str(made.value) in made._repr_markdown_()


def test_texts_are_escaped() -> None:
    html = status("<img src=x>")._repr_html_()
    assert "<img" not in html
    assert "&lt;bob&gt;" in html
    assert "<img" not in status("<img src=x>")._repr_markdown_()


def test_a_budget_is_a_meter() -> None:
    (meter, _) = pictures(account()._repr_html_())
    spent = account().epsilon(1e-5)
    filled = next(e for e in meter.iter() if e.tag.endswith("rect"))
    assert float(filled.attrib["width"]) == pytest.approx(258 * spent / 3.0, abs=0.06)
    assert account().budget_delta == 1e-5
    assert dp.Accountant().budget_delta is None


@pytest.mark.parametrize(("share", "least", "most"), [(0.0, 0, 0), (1e-9, 2, 2), (1 - 1e-9, 256, 256), (1.0, 258, 258)])
def test_a_meter_is_full_or_empty_only_where_it_is(share: float, least: float, most: float) -> None:
    (drawn,) = pictures(svg.meter(share, "x"))
    assert least <= float(drawn[1].attrib["width"]) <= most


def test_bars_of_far_values_are_logarithmic() -> None:
    rows = [
        svg.Bar("a", 1.0, "1"),
        svg.Bar("b", 1000.0, "1000"),
        svg.Bar("c", None, "-"),
        svg.Bar("d", math.inf, "inf"),
    ]
    (drawn,) = pictures(svg.bars(rows, "x"))
    widths = [float(e.attrib["width"]) for e in drawn.iter() if e.tag.endswith("rect")]
    assert len(widths) == 3
    assert widths[1] < 15 * widths[0]
    assert widths[1] == widths[2]
    assert pictures(svg.bars([], "nothing"))


def test_ticks_are_round() -> None:
    assert svg.Axis("x", 0.0, 10.0).ticks() == [0, 2, 4, 6, 8, 10]
    assert svg.Axis("x", 1e-6, 1.0, log=True).ticks() == pytest.approx([1e-6, 1e-4, 1e-2, 1.0])
    assert svg.Axis("x", 1.0, 100.0, log=True).part(0.0) == 0.0


def test_a_mark_near_the_end_is_written_before_it() -> None:
    marks = [svg.Mark(0.1, 0.5, "first"), svg.Mark(1.0, 0.5, "last word"), svg.Mark(0.5, 0.5)]
    (drawn,) = pictures(svg.chart([], svg.Axis("x", 0, 1), svg.Axis("y", 0, 1), "t", marks))
    anchors = {e.text: e.attrib.get("text-anchor") for e in drawn.iter() if e.text in ("first", "last word")}
    assert anchors == {"first": "start", "last word": "end"}


def test_the_table_of_later_names_is_true() -> None:
    for name in later.LATER:
        if name != "serve":  # the page needs its extra
            assert callable(later.later(name)), name
    assert isinstance(SHOWN["explanation"], Explanation)


def test_plot_asks_for_its_extra() -> None:
    with pytest.raises(dp.MissingExtra, match="plots"):
        GAUSSIAN.plot()
    with pytest.raises(dp.InvalidArgument, match="one of profile, tradeoff"):
        GAUSSIAN.plot("pie")
    with pytest.raises(dp.InvalidArgument, match="plot_profile"):
        GAUSSIAN.plot("profile", budget=3.0)
    with pytest.raises(dp.InvalidArgument, match="delta"):
        GAUSSIAN.plot("compare", delta=2.0)


def test_the_source_holds_no_style_sheet() -> None:
    """The page forbids inline styles; the pictures must do without."""
    text = Path(svg.__file__).read_text(encoding="utf-8")
    assert "style=" not in text
