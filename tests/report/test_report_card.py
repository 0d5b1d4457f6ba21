"""Contract: the guarantee card says everything it must, on the safe side, in three forms."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest

import dptally as dp
from dptally.report import Card, card

PLAN = 40 * dp.Laplace(scale=20.0)
SAMPLED = dp.dpsgd(1.0, 0.01, 100)


@pytest.fixture(scope="module")
def page() -> Card:
    return card(PLAN, [1e-5, 1e-15], title="Ward | counts <2026>", unit="one patient")


def test_the_numbers_are_the_library_s(page: Card) -> None:
    assert page.epsilons == tuple((delta, PLAN.epsilon_interval(delta)) for delta in (1e-5, 1e-15))
    assert page.rho == PLAN.rho()
    assert page.mu is not None
    assert page.risk[1] == (0.01, pytest.approx(1 - PLAN.tradeoff(0.01), rel=1e-9))
    assert page.mechanisms[0][:2] == (40, repr(dp.Laplace(20.0)))
    assert page.version == dp.__version__


def test_json(page: Card) -> None:
    found = json.loads(page.to_json())
    fields = "unit adjacency sampling mechanisms epsilons mu rho risk theorems version cite assumptions sources plan"
    assert set(fields.split()) <= set(found)
    assert found["epsilons"][1]["upper"] == PLAN.epsilon(1e-15)
    assert found["sampling"] == "none"


def test_markdown(page: Card) -> None:
    text = page.to_markdown()
    assert text.startswith("# Ward \\| counts <2026>\n")
    for words in (
        "one patient",
        "| 1e-15 |",
        "rho = ",
        "mu = ",
        "## Theorems used",
        "## How to cite",
        "at least",
    ):
        assert words in text
    assert f"dptally {dp.__version__}" in text


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [str(value) for name, value in attrs if name in ("src", "href")]
        assert tag != "script"

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_self_contained_and_escaped(page: Card) -> None:
    read = _Page()
    read.feed(page.to_html())
    assert read.links == []
    assert "Ward | counts <2026>" in read.text
    assert "<2026>" not in page.to_html()
    assert "url(" not in page.to_html()
    assert "@import" not in page.to_html()


def test_html_fits_a_telephone_and_a_dark_screen() -> None:
    text = card(SAMPLED, [1e-5]).to_html()
    assert '<meta name="viewport"' in text
    assert "prefers-color-scheme:dark" in text
    assert "<th></th>" not in text, "a header row without words"
    assert text.count("<table>") == text.count('<div class="wide">'), "a wide table scrolls by itself"
    assert "mechanism=<wbr>Gaussian(<wbr>sigma=<wbr>1.0" in text, "a long name may be broken"
    assert '<span class="number">1e-05</span>' in text, "a number may not"


def test_sampling_and_adjacency_are_stated() -> None:
    page = card(SAMPLED, [1e-5])
    assert page.adjacency == "ADD_REMOVE"
    assert "rate 0.01" in page.sampling
    assert page.mu is not None
    assert page.mu.upper < 0.5  # measured up to the epsilon of the smallest delta, not the 10 of every epsilon
    assert page.head == SAMPLED.epsilon(1e-5)
    assert page.closed_mu == pytest.approx(10.0)
    text = page.to_markdown()
    assert "for epsilon up to" in text
    assert "| Gaussian DP, every epsilon | mu = 10" in text
    assert page.headline.endswith("one record (not stated otherwise)")


def test_an_infinite_epsilon_is_written() -> None:
    found = json.loads(card(dp.ApproxDP(1.0, 0.1), [1e-5]).to_json())
    assert found["epsilons"][0]["upper"] == "inf"
    assert found["rho"] is None
    assert found["mu"] == {"lower": "inf", "upper": "inf"}
    assert card(dp.RenyiDP((2.0,), (0.1,)), [1e-5]).rho is None


def test_one_delta_is_enough() -> None:
    assert card(dp.Gaussian(1.0), 1e-5).headline == card(dp.Gaussian(1.0), [1e-5]).headline
    for bad in ([], "x", [2.0], None):
        with pytest.raises(dp.DptallyError):
            card(dp.Gaussian(1.0), bad)  # type: ignore[arg-type]
