"""Write reference-names.md, reference-api.md, reference-theorems.md from the source: ``python docs/reference.py``."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from enum import Enum
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


def parameters(value: object) -> inspect.Signature | None:
    """The signature without ``self``; None where there is none worth showing (an enumeration is not called)."""
    if isinstance(value, type) and issubclass(value, Enum):
        return None
    try:
        found = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    kept = [p for p in found.parameters.values() if p.name not in ("self", "cls")]
    return found.replace(parameters=[plain(p) for p in kept])


def plain(parameter: inspect.Parameter) -> inspect.Parameter:
    """A default that has no literal is shown by name."""
    default = parameter.default
    if default is inspect.Parameter.empty:
        return parameter
    named = inspect.isfunction(default) or inspect.isclass(default) or isinstance(default, property)
    return parameter.replace(default=Shown("...")) if named or "<" in repr(default) else parameter


class Shown(str):
    """A text that prints without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def signature(value: object) -> str:
    found = parameters(value)
    if found is None:
        return ""
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    text = str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    if len(text) <= 110:
        return text
    names = [f"{p.name}=" if p.default is not inspect.Parameter.empty else p.name for p in bare]
    return f"({', '.join(names)})"


# -- the page with every parameter ---------------------------------------------------------------------------


def public() -> list[tuple[str, list[tuple[str, object]]]]:
    """(section, members) of all that is documented."""
    home = [(name, getattr(dp, name)) for name in sorted(dp._HOME, key=str.lower) if hasattr(dp, name)]
    found = [("dptally", [(n, v) for n, v in home if inspect.isfunction(v) or inspect.isclass(v)])]
    for module_name in (*MODULES, *FRAMEWORKS):
        found.append((f"dptally.{module_name}", members_of(module_name)))
    return [(name, members) for name, members in found if members]


def unwrapped(value: object) -> object:
    """The function below a decorator that makes a value of it, as a release function is; else the value."""
    return getattr(value, "__wrapped__", value)


def members_of(module_name: str) -> list[tuple[str, object]]:
    module = importlib.import_module(f"dptally.{module_name}")
    listed = set(module.__all__) if module_name in FRAMEWORKS else set(vars(module))
    kept = [
        (n, v)
        for n, v in vars(module).items()
        if n in listed and not n.startswith("_") and (inspect.isfunction(unwrapped(v)) or inspect.isclass(v))
    ]
    return sorted((n, v) for n, v in kept if str(getattr(v, "__module__", "")).startswith("dptally"))


def methods(value: object) -> list[tuple[str, object]]:
    """The public methods that a class adds, in the order of its source; an error has none of its own."""
    if not isinstance(value, type) or issubclass(value, Exception | Enum):
        return []
    own = [(n, v) for n, v in vars(value).items() if not n.startswith("_")]
    functions = [(n, getattr(v, "__func__", v)) for n, v in own]
    return [(n, v) for n, v in functions if inspect.isfunction(v) and v.__doc__]


def typed(name: str, value: object) -> str:
    """The call with types and defaults, one parameter a line where it is long."""
    found = parameters(value)
    if found is None:
        return name
    given = list(written(found))
    returns = "" if found.return_annotation is inspect.Signature.empty else f" -> {annotation(found.return_annotation)}"
    returns = "" if isinstance(value, type) else returns
    line = f"{name}({', '.join(given)}){returns}"
    if len(line) <= 100:
        return line
    lines = ",\n    ".join(given)
    return f"{name}(\n    {lines},\n){returns}"


def written(found: inspect.Signature) -> Iterator[str]:
    """Each parameter as it stands in the source, with the star before those that need their name."""
    starred = False
    for p in found.parameters.values():
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.kind is p.KEYWORD_ONLY and not starred:
            yield "*"
        starred = starred or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        kind = "" if p.annotation is p.empty else f": {annotation(p.annotation)}"
        yield f"{stars}{p.name}{kind}" + ("" if p.default is p.empty else f" = {p.default!r}")


def annotation(value: object) -> str:
    return value if isinstance(value, str) else inspect.formatannotation(value)


def prose(value: object) -> str:
    """A docstring up to its examples, as Markdown."""
    text = inspect.cleandoc(getattr(value, "__doc__", None) or "").split(">>>")[0].rstrip()
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`")
    return re.sub(r"<(?=\w)", "&lt;", text)


def entry(name: str, value: object, level: str) -> list[str]:
    source = inspect.getsourcefile(unwrapped(value))  # type: ignore[arg-type]
    where = Path(source).relative_to(PACKAGE.parent.parent).as_posix() if source else ""
    lines = ["", f"{level} {name}", "", "```py", typed(name, value), "```", ""]
    lines += [prose(value), ""] if prose(value) else []
    return [*lines, f"<small>`{where}`</small>"]


def api_page() -> str:
    lines = [
        "# Reference: every function and class",
        "",
        "Written by `docs/reference.py` from the source: signatures with types and defaults, what each does, and",
        "where it stands. All arguments may be passed by keyword.",
    ]
    seen: set[int] = set()
    for section, members in public():
        lines += ["", f"## {section}"]
        for name, value in members:
            lines += entry(name, value, "###")
            if id(value) not in seen:
                for method, function in methods(value):
                    lines += entry(f"{name}.{method}", function, "####")
            seen.add(id(value))
    return "\n".join(lines) + "\n"


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
        known = inspect.isfunction(value) or inspect.isclass(value)
        shown = name + (signature(value) if known else "")
        about = first_sentence(value.__doc__) if known else f"a value of `{type(value).__name__}`"
        lines.append(f"| `{shown}` | {about} |")
    lines += ["", "## Questions of every mechanism and plan", "", "| question | answer |", "|---|---|"]
    for name, member in sorted(vars(dp.Mechanism).items()):
        if not name.startswith("_") and inspect.isfunction(member) and member.__doc__:
            lines.append(f"| `{name}{signature(member)}` | {first_sentence(member.__doc__)} |")
    for module_name in (*MODULES, *FRAMEWORKS):
        module, members = importlib.import_module(f"dptally.{module_name}"), members_of(module_name)
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
    (HERE / "reference-api.md").write_text(api_page(), encoding="utf-8")
    (HERE / "reference-theorems.md").write_text(theorems_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
