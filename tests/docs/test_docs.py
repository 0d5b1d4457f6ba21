"""Contract: every code block of README.md and docs/ is true. Python runs as doctest or as a script, one
namespace a page; lines that start with ``dptally`` in shell blocks run as the real program.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<word>\w*)[^\n]*\n(?P<body>.*?)^```\s*$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(page: Path) -> list[tuple[str, int, str]]:
    """(language, line, text) of every fenced block, but for those below a line "<!-- not run -->"."""
    text = page.read_text(encoding="utf-8")
    found = [m for m in FENCE.finditer(text) if not text[: m.start()].endswith("<!-- not run -->\n")]
    return [(m["word"], text.count("\n", 0, m.start()) + 2, m["body"]) for m in found]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [p for p in PAGES if any(w == "python" for w, _, _ in blocks(p))], ids=name)
def test_python_blocks(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {"__name__": "__main__"}
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    said: list[str] = []
    for word, line, body in blocks(page):
        if word != "python":
            continue
        if ">>>" in body:
            case = doctest.DocTestParser().get_doctest(body, space, name(page), str(page), line - 1)
            runner.run(case, out=said.append, clear_globs=False)
            space = case.globs
        else:
            exec(compile("\n" * (line - 1) + body, str(page), "exec"), space)
    assert runner.failures == 0, "\n".join(said)


def commands(page: Path) -> list[tuple[str, str]]:
    """(command, what the page shows below it) of shell blocks: all lines that call the program or set a variable."""
    found: list[tuple[str, str]] = []
    for word, _, body in blocks(page):
        if word not in ("", "sh", "bash", "console"):
            continue
        prompted = re.split(r"^\$ ", body.replace("\\\n", " "), flags=re.MULTILINE)
        if len(prompted) > 1:
            found += [(text.split("\n", 1)[0].strip(), text.split("\n", 1)[1]) for text in prompted[1:]]
        else:
            found += [(line.strip(), "") for line in prompted[0].splitlines()]
    return [(line, shown) for line, shown in found if re.match(r"(dptally|export) ", line)]


@pytest.mark.parametrize("page", [p for p in PAGES if any(c.startswith("dptally") for c, _ in commands(p))], ids=name)
def test_shell_blocks(page: Path, tmp_path: Path) -> None:
    script = tmp_path / "answer.sh"  # the page about the ledger lets a command touch the data
    script.write_text("#!/bin/sh\necho 12\n")
    script.chmod(0o755)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"}
    for command, shown in commands(page):
        if command.startswith("export "):
            key, _, value = command.removeprefix("export ").partition("=")
            environment[key] = value
            continue
        done = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )
        said = done.stdout + done.stderr
        assert done.returncode == (2 if shown.startswith("Error:") else 0), f"{command}\n{said}"
        assert "Traceback" not in said
        if shown:
            assert doctest.OutputChecker().check_output(shown, said, FLAGS), f"{command}\n{said}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text):
        if not re.match(r"https?:", target):
            assert (page.parent / target).exists(), target


def test_every_page_is_in_the_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"[\w/-]+\.md", menu))
    assert listed == {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")}
