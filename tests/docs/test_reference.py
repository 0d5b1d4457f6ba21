"""Contract: the reference pages hold every public name, every conversion and every source. They are written by
docs/reference.py; run it when this fails.
"""

from __future__ import annotations

import importlib
import inspect
import re
import runpy
from pathlib import Path

import dptally as dp
from dptally.accounting.citations import SOURCES
from dptally.conversions import EDGES

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_public_name() -> None:
    page = (DOCS / "reference-names.md").read_text(encoding="utf-8")
    assert [name for name in dp._HOME if f"| `{name}" not in page] == []


def test_every_framework_function_with_its_signature() -> None:
    page = (DOCS / "reference-names.md").read_text(encoding="utf-8")
    for name in ("accounting.renyi", "accounting.group", "meaning.outcomes", "meaning.bayes", "meaning.attacks"):
        module = importlib.import_module(f"dptally.{name}")
        section = page.split(f"## dptally.{name}\n", 1)[1].split("\n## ", 1)[0]
        functions = [one for one in module.__all__ if inspect.isfunction(getattr(module, one))]
        assert [one for one in functions if f"| `{one}(" not in section] == []
    assert "loss(direction='remove')" in page
    assert "group(size)" in page


def test_every_conversion_and_source() -> None:
    page = (DOCS / "reference-theorems.md").read_text(encoding="utf-8")
    assert [edge.function.__name__ for edge in EDGES if f"`{edge.function.__name__}`" not in page] == []
    assert [source.tag for source in SOURCES if f"**{source.tag}.**" not in page] == []


def test_the_writer_still_works() -> None:
    writer = runpy.run_path(str(DOCS / "reference.py"), run_name="reference")
    for name in ("names_page", "theorems_page"):
        page = writer[name]()
        assert sum(line.startswith("|") for line in page.splitlines()) > 50
    assert writer["signature"](dp.Adjacency) == ""
    assert writer["signature"](dp.calibrate).startswith("(make, ")


def test_every_function_with_its_parameters_and_types() -> None:
    page = (DOCS / "reference-api.md").read_text(encoding="utf-8")
    writer = runpy.run_path(str(DOCS / "reference.py"), run_name="reference")
    seen = 0
    for section, members in writer["public"]():
        text = page.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
        for name, value in members:
            assert f"\n### {name}\n" in text, (section, name)
            entry = text.split(f"\n### {name}\n", 1)[1].split("\n### ", 1)[0]
            for parameter in inspect.signature(value).parameters if inspect.isfunction(value) else ():
                assert parameter in entry, (section, name, parameter)
                seen += 1
    assert seen > 300
    for name in ("epsilon", "delta_interval", "tradeoff", "explain", "plot", "loss", "prove"):
        assert f"#### Mechanism.{name}\n" in page
    assert re.search(r"calibrate\(\n    make: ", page)
