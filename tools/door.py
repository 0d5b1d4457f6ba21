"""Write what follows from the declarations of the mechanisms: ``make door`` (``--check`` only compares).

src/dptally/mechanisms/table.py     the names of every mechanism, known before its file is loaded
src/dptally/mechanisms/__init__.pyi,
src/dptally/__init__.pyi            the public names with their types; at run time they load when used
docs/mechanisms.md                  the table between the marks
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import sys
from pathlib import Path

import dptally
from dptally import mechanisms
from dptally.mechanisms import registry

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "dptally"
BEGIN, END = "<!-- written by make door: begin -->", "<!-- end -->"


def found() -> dict[str, registry.Declaration]:
    """Every declaration in the files of mechanisms/, by public name."""
    for module in pkgutil.walk_packages(mechanisms.__path__, "dptally.mechanisms."):
        importlib.import_module(module.name)
    return dict(sorted(registry._SHIPPED.items(), key=lambda item: place(item[1])))


def place(entry: registry.Declaration) -> tuple[int, str, int, str]:
    """By section, then by family, the plain one first: gaussian, discrete_gaussian, laplace, discrete_laplace."""
    written = entry.plan or entry.json or entry.name
    return registry.SECTIONS.index(entry.section), written.rpartition("_")[2], len(written), entry.name


def table() -> str:
    lines = [
        '"""Written by ``make door`` from the declarations in the files of this package: do not edit."""',
        "# ruff: noqa: E501",
        "",
        "# ruff: noqa: E501",
        "",
        "from typing import NamedTuple",
        "",
        "",
        "class Row(NamedTuple):",
        '    """What is known of a mechanism before its file is loaded."""',
        "",
        "    module: str",
        "    json: str | None",
        "    plan: str | None",
        "    aliases: tuple[str, ...]",
        "    usage: str  #: how it is written in plan texts",
        "",
        "",
        "#: by public name",
        "TABLE: dict[str, Row] = {",
    ]
    for name, entry in found().items():
        row = (entry.target.__module__, entry.json, entry.plan, entry.aliases, entry.usage)
        lines.append(f"    {quoted(name)}: Row{quoted(row)},")
    return "\n".join([*lines, "}", ""])


def quoted(value: object) -> str:
    """The literal with double quotes, as the formatter writes it."""
    if isinstance(value, tuple):
        inside = ", ".join(quoted(item) for item in value)
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def stub(head: str, homes: dict[str, str], submodules: tuple[str, ...] = (), version: bool = False) -> str:
    """Explicit re-exports: type checkers see them, and nothing else."""
    lines = [f'"""{head} Written by ``make door``: do not edit."""', ""]
    lines += [f"from dptally import {name} as {name}" for name in submodules]
    lines += [f"from {home} import {name} as {name}" for name, home in homes.items()]
    out = [*lines[:2], *sorted(set(lines[2:]), key=order)]
    return "\n".join([*out, *(["", "__version__: str", "__all__: list[str]"] if version else []), ""])


def order(line: str) -> tuple[str, int, str]:
    """As the import sorter wants it: by module, then CONSTANTS, Classes, functions."""
    _, module, _, name, *_ = line.split()
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
    return module, kind, name


def door() -> str:
    homes = {name: home_of(f"dptally.{home}", name) for name, home in dptally._HOME.items()} | modules()
    head = "The public names of dptally, with their types."
    return stub(head, homes, dptally._MODULES, version=True)


def inner_door() -> str:
    return stub("The names of this package, with their types.", mechanisms._HOME | modules())


def modules() -> dict[str, str]:
    return {name: entry.target.__module__ for name, entry in found().items()}


def home_of(module: str, name: str) -> str:
    """The module that defines a name, where the package only passes it on."""
    lazy = getattr(importlib.import_module(module), "_HOME", {})
    return str(lazy.get(name, module))


def call(entry: registry.Declaration) -> str:
    """How it is written in Python."""
    shown = []
    for parameter in inspect.signature(entry.target).parameters.values():
        default = parameter.default
        plain = default is inspect.Parameter.empty or isinstance(default, property)
        shown.append(parameter.name if plain else f"{parameter.name}={default!r}")
    return f"{entry.name}({', '.join(shown)})"


def meaning(entry: registry.Declaration) -> str:
    text = " ".join(inspect.cleandoc(entry.target.__doc__ or "").split("\n\n")[0].split())
    return text.replace("``", "`").replace("|", "\\|").rstrip(".:")


def listing() -> str:
    lines: list[str] = []
    for section in registry.SECTIONS:
        rows = [row(entry) for entry in found().values() if entry.section == section]
        if rows:
            heads = [
                f"### {section.capitalize()}",
                "",
                "| write | what it is | in plan texts | in JSON |",
                "|---|---|---|---|",
            ]
            lines += [*heads, *rows, ""]
    return "\n".join(lines).rstrip()


def row(entry: registry.Declaration) -> str:
    texts = ", ".join(f"`{name}`" for name in dict.fromkeys((entry.plan, *entry.aliases)) if name)
    cells = (f"`{call(entry)}`", meaning(entry), texts or "-", f"`{entry.json}`" if entry.json else "-")
    return f"| {' | '.join(cells)} |"


def page() -> str:
    text = (ROOT / "docs" / "mechanisms.md").read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{listing()}\n\n{END}{after}"


WRITTEN = {
    PACKAGE / "mechanisms" / "table.py": table,
    PACKAGE / "mechanisms" / "__init__.pyi": inner_door,
    PACKAGE / "__init__.pyi": door,
    ROOT / "docs" / "mechanisms.md": page,
}


def stale() -> list[Path]:
    """The files that do not hold what the declarations say."""
    return [path for path, write in WRITTEN.items() if not path.exists() or not same(path, write())]


def same(path: Path, text: str) -> bool:
    old = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return old == text
    return ast.dump(ast.parse(old)) == ast.dump(ast.parse(text))


def main() -> int:
    if "--check" in sys.argv[1:]:
        for path in stale():
            print(f"{path.relative_to(ROOT)} does not hold what the mechanisms declare; run: make door")
        return 1 if stale() else 0
    for path in stale():
        path.write_text(WRITTEN[path](), encoding="utf-8")
        print("wrote", path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
