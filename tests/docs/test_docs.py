"""Contract: every code block of README.md and docs/ is true. Python runs as doctest or as a script, one
namespace a page; lines that start with ``dptally`` in shell blocks run as the real program.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
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


def commands(page: Path) -> list[str]:
    """Lines of shell blocks that call the program; a trailing backslash continues a line."""
    found = []
    for word, _, body in blocks(page):
        if word in ("", "sh", "bash", "console"):
            lines = body.replace("\\\n", " ").splitlines()
            found += [line.removeprefix("$ ").strip() for line in lines]
    return [line for line in found if re.match(r"(dptally|export) ", line)]


@pytest.mark.parametrize("page", [p for p in PAGES if any(c.startswith("dptally") for c in commands(p))], ids=name)
def test_shell_blocks(page: Path, tmp_path: Path) -> None:
    script = tmp_path / "answer.sh"  # the page about the ledger lets a command touch the data
    script.write_text("#!/bin/sh\necho 12\n")
    script.chmod(0o755)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for command in commands(page):
        if command.startswith("export "):
            key, _, value = command.removeprefix("export ").partition("=")
            environment[key] = value
            continue
        asked = re.search(r"# exit (\d)\s*$", command)
        line = re.sub(r"\s+#\s.*$", "", command)
        done = subprocess.run(  # shell: pages may redirect to a file
            line if ">" in line else shlex.split(line),
            shell=">" in line,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == (int(asked[1]) if asked else 0), f"{line}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr


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
