"""Write reference-names.md and reference-theorems.md from the source: ``python docs/reference.py``."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import dptally as dp
from dptally.accounting.citations import SOURCES
from dptally.conversions import EDGES

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "src" / "dptally"
CITED = re.compile(r"\[([^\[\]]*(?:\b(?:19|20)\d\d\b|\bpaper\b|\bibid\b)[^\[\]]*)\]")
MODULES = ("gdp", "noise", "release", "audit", "ledger", "meaning", "conversions", "report")
#: modules whose functions are called by their own name, dp.accounting.renyi.epsilon(...): those of __all__
FRAMEWORKS = (
    *(
        f"accounting.{name}"
        for name in ("pure", "approximate", "optimal", "renyi", "concentrated", "alpha", "gaussian")
    ),
    *("accounting.group", "accounting.tradeoff", "accounting.loss"),
    *(f"meaning.{name}" for name in ("outcomes", "bayes", "attacks")),
    *(f"divergences.{name}" for name in ("finite", "densities", "inequalities")),
)


def first_sentence(text: str | None) -> str:
    joined = " ".join((text or "").split())
    return re.split(r"(?<=[.:])\s", joined + " ")[0].rstrip(".:").replace("|", "\\|").replace("``", "`")


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("``", "`").replace("*", "\\*").replace("<", "&lt;")


def signature(value: object) -> str:
    try:
        found = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values() if p.name != "self"]
    text = str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return "(...)" if "<" in text or len(text) > 90 else text


def names_page() -> str:
    lines = [
        "# Reference: the public names",
        "",
        "Written by `docs/reference.py` from the source. `import dptally as dp`.",
        "",
    ]
    lines += ["## dptally", "", "| name | what it is |", "|---|---|"]
    missing = []
    for name in sorted(dp._HOME, key=str.lower):
        try:
            value = getattr(dp, name)
        except (ImportError, AttributeError):
            missing.append(name)
            continue
        shown = name + (signature(value) if inspect.isfunction(value) or inspect.isclass(value) else "")
        about = first_sentence(value.__doc__ if inspect.isfunction(value) or inspect.isclass(value) else repr(value))
        lines.append(f"| `{shown}` | {about} |")
    lines += ["", "## Questions of every mechanism and plan", "", "| question | answer |", "|---|---|"]
    for name, member in sorted(vars(dp.Mechanism).items()):
        if not name.startswith("_") and inspect.isfunction(member) and member.__doc__:
            lines.append(f"| `{name}{signature(member)}` | {first_sentence(member.__doc__)} |")
    for module_name in (*MODULES, *FRAMEWORKS):
        module = importlib.import_module(f"dptally.{module_name}")
        listed = set(module.__all__) if module_name in FRAMEWORKS else set(vars(module))
        members = [
            (n, v)
            for n, v in vars(module).items()
            if n in listed and not n.startswith("_") and (inspect.isfunction(v) or inspect.isclass(v))
        ]
        members = [(n, v) for n, v in members if str(getattr(v, "__module__", "")).startswith("dptally")]
        if members:
            lines += [
                "",
                f"## dptally.{module_name}",
                "",
                first_sentence(module.__doc__) + ".",
                "",
                "| name | what it is |",
                "|---|---|",
            ]
            lines += [f"| `{n}{signature(v)}` | {first_sentence(v.__doc__)} |" for n, v in sorted(members)]
    if missing:
        print("not there yet:", ", ".join(missing))
    return "\n".join(lines) + "\n"


def cited_in(path: Path) -> list[tuple[str, str]]:
    """(where, theorem) for every citation in the docstrings of one file."""
    found = []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node, clean=True) or ""
            where = "the file" if isinstance(node, ast.Module) else f"`{node.name}`"
            found += [(where, theorem) for theorem in CITED.findall(text)]
    return list(dict.fromkeys(found))


def theorems_page() -> str:
    lines = [
        "# Reference: every theorem",
        "",
        "Written by `docs/reference.py` from the source: what is proved by whom, and where it is used.",
        "`plan.explain(delta)` prints the theorems behind one answer, with BibTeX.",
        "",
    ]
    lines += [
        "## Conversions between definitions",
        "",
        "The first edge of a pair is the tightest; docs/frameworks.md says where it is the best possible.",
        "",
        "| from | to | gives | function | theorem |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| {e.source} | {e.target} | {e.gives} | `{e.function.__name__}` | {cell(e.theorem)} |" for e in EDGES]
    lines += ["", "## Beside the code"]
    for path in sorted(PACKAGE.rglob("*.py")):
        rows = cited_in(path)
        if rows:
            lines += ["", f"### {path.relative_to(PACKAGE)}", "", "| where | theorem |", "|---|---|"]
            lines += [f"| {where} | {cell(theorem)} |" for where, theorem in rows]
    lines += ["", "## Sources", ""]
    lines += [f"- **{source.tag}.** {source}" for source in sorted(SOURCES, key=lambda s: (s.year, s.tag))]
    return "\n".join(lines) + "\n"


def main() -> None:
    (HERE / "reference-names.md").write_text(names_page(), encoding="utf-8")
    (HERE / "reference-theorems.md").write_text(theorems_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
