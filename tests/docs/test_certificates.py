"""Contract: the proofs speak of the code that is there. Every name in backticks on the pages of the certificates
resolves, no page and no theorem names an internal list, and the list of errata is a page of the manual.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from dptally.accounting.certified.routes import ROUTES

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src" / "dptally").rglob("*.py"))
PAGES = sorted((ROOT / "docs").glob("certificates*.md"))
CODE = re.compile(r"`([A-Za-z_][\w./]*(?:\(\))?)`")
INTERNAL = re.compile(r"\bE0\d\d-\d+\b|\b(?:GDPT|ADP) paper\b")


def names() -> set[str]:
    """Every class, function, method, attribute and constant of the package, bare and behind its class; every file."""
    found = {path.relative_to(ROOT / "src" / "dptally").as_posix() for path in SOURCES}
    found |= {path.name for path in SOURCES} | {f"{path.parent.name}/{path.name}" for path in SOURCES}
    found |= {path.stem for path in SOURCES}
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                found |= {node.name, f"{path.stem}.{node.name}"}
            if isinstance(node, ast.ClassDef):
                inside = [entry.name for entry in node.body if isinstance(entry, ast.FunctionDef)]
                inside += [entry.target.id for entry in node.body if isinstance(entry, ast.AnnAssign)]
                found |= {f"{node.name}.{name}" for name in inside} | set(inside)
            if isinstance(node, ast.Assign):
                targets = (ast.walk(target) for target in node.targets)
                found |= {name.id for part in targets for name in part if isinstance(name, ast.Name)}
            if isinstance(node, ast.arg):
                found.add(node.arg)
    return found


def _resolves(name: str, known: set[str]) -> bool:
    return name in known or (ROOT / name).exists() or all(part in known for part in name.split("."))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_in_a_proof_is_in_the_code(page: Path) -> None:
    known = names()
    named = {name.removesuffix("()") for name in CODE.findall(page.read_text(encoding="utf-8"))}
    known |= {path.name for path in (ROOT / "tests").rglob("*.py")}
    # inversion.Inversion._sum: a file, a class, a method (which may be inherited)
    missing = {name for name in named if not _resolves(name, known)}
    assert sorted(missing) == []
    assert len(named) > 1


TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def _tests() -> set[tuple[str, str]]:
    """(the end of a path, function) of every test, for every end of its path."""
    found = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        parts = path.relative_to(ROOT / "tests").parts
        ends = {"/".join(parts[i:]) for i in range(len(parts))}
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found |= {(end, node.name) for end in ends}
    return found


def test_every_route_and_exit_names_a_test_that_is_there() -> None:
    text = (ROOT / "docs" / "certificates.md").read_text(encoding="utf-8")
    named = set(TEST.findall(text))
    assert len(named) > 10
    assert sorted(named - _tests()) == []
    rows = [line for line in text[text.index("## 12.") :].splitlines() if line.startswith("| ")][1:]
    assert all(TEST.search(row) for row in rows), rows
    assert all(len(cells := row.strip("| ").split(" | ")) == 4 and all(cells) for row in rows), rows  # none left empty
    for route in ROUTES:
        assert any(f"`{type(route).__name__}`" in row for row in rows), route
    walk = "".join(
        (ROOT / "src/dptally/accounting/certified" / name).read_text() for name in ("walk.py", "direction.py")
    )
    exits = re.findall(r'(?:Visit\(|Interval\([^"]*)"([a-z][^"]*)"', walk)
    assert len(exits) > 4
    for label in exits:
        assert any(label in row for row in rows), label


@pytest.mark.parametrize("path", [*SOURCES, *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda path: path.name)
def test_theorems_name_author_year_and_number(path: Path) -> None:
    if path.name in ("reference-papers.md", "founding-results.md"):
        return  # they tell the story of the papers and introduce these names
    assert INTERNAL.findall(path.read_text(encoding="utf-8")) == []
