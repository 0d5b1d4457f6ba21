"""Contract: what is packaged. One version, extras that are complete and small, and a README that stands alone."""

from __future__ import annotations

import json
import re
import runpy
import sys
import tomllib
import types
from pathlib import Path
from typing import Any

import pytest

import dptally as dp

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def readme(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The hook of the build, without the builder."""
    interface = types.ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = object  # type: ignore[attr-defined]
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    return runpy.run_path(str(ROOT / "tools" / "readme.py"))


def test_the_version_stands_in_one_place() -> None:
    assert "version" in PROJECT["project"]["dynamic"]
    assert "version" not in PROJECT["project"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", dp.__version__)
    assert "version:" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8").replace("cff-version:", "")


def test_all_has_every_extra_and_nothing_heavy() -> None:
    extras: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
    listed = set(re.findall(r"[\w-]+", extras["all"][0].split("[", 1)[1]))
    assert listed == set(extras) - {"all"}
    assert "python-flint>=0.9" in extras["proof"]
    named = {re.match(r"[\w-]+", need)[0].lower() for needs in extras.values() for need in needs}  # type: ignore[index]
    assert named.isdisjoint({"torch", "tensorflow", "jax", "pyspark", "opacus"})
    core = {re.match(r"[\w-]+", need)[0] for need in PROJECT["project"]["dependencies"]}  # type: ignore[index]
    assert core == {"numpy", "scipy", "click", "rich"}


def test_the_source_package_has_what_the_readme_names() -> None:
    kept = set(PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
    for path in re.findall(r"\]\(([^)\s#]+)", README):
        if not path.startswith("http"):
            assert path in kept or path.split("/")[0] in kept, path
    assert {"Makefile", "tools", "examples", "papers", "benchmarks"} <= kept
    assert all((ROOT / path).exists() for path in kept)


def test_the_readme_stands_alone_on_an_index(readme: dict[str, Any]) -> None:
    text = readme["alone"](README)
    assert not re.search(r"\]\((?!https?:)", text)
    assert "The ledger" in text
    assert "pip install dptally" in text.split("```")[1]  # first of all
    found = readme["alone"]("[a](docs/a.md) ![p](p.png) [b](https://b.example)", "https://home.example/")
    assert found.split() == [
        "[a](https://home.example/docs/a.md)",
        "![p](https://home.example/p.png)",
        "[b](https://b.example)",
    ]
    hook = readme["Readme"]()
    hook.root = str(ROOT)
    metadata: dict[str, Any] = {}
    hook.update(metadata)
    assert metadata["readme"] == {"content-type": "text/markdown", "text": text}
    assert metadata["urls"] == readme["urls"]()


def test_addresses_are_of_the_one_home_or_are_not_there(readme: dict[str, Any]) -> None:
    assert "urls" in PROJECT["project"]["dynamic"]
    assert readme["urls"]("") == {}
    home = "https://home.example/"
    found = readme["urls"](home)
    assert {"Source", "Documentation", "Changelog"} <= set(found)
    for address in found.values():
        assert (ROOT / address.removeprefix(home)).exists()
    assert readme["HOME"] == "" or readme["HOME"].startswith("https://")


def test_the_readme_counts_the_gallery_s_badges() -> None:
    from collections import Counter

    papers = json.loads((ROOT / "src" / "dptally" / "web" / "papers.json").read_text(encoding="utf-8"))
    for paper in papers:
        seen = Counter(exhibit["verdict"] for exhibit in paper["exhibits"])
        badges = [str(seen[name]) for name in ("confirmed", "corrected", "unsafe", "not reproducible")]
        assert f"| {' | '.join([paper['title'], *badges])} |" in README


def test_the_files_of_the_page_are_in_the_package() -> None:
    web = Path(dp.__file__).parent / "web"
    for name in ("templates/base.html", "static/style.css", "static/explorer.js", "papers.json"):
        assert (web / name).stat().st_size > 100
