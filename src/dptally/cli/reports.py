"""``dptally report``: a plan in the forms that others accept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dptally.cli.output import delta_option, plan_argument, working
from dptally.cli.plans import Plan
from dptally.errors import InvalidArgument

__all__ = ["report"]

#: form -> formats, the first by default
FORMATS = {
    "registry": ("yaml", "json"),
    "nist": ("markdown", "json"),
    "paper": ("latex", "markdown", "csv", "json"),
    "compare": ("markdown", "latex", "csv", "json"),
    "profile": ("markdown", "latex", "csv", "json"),
    "steps": ("csv", "latex", "markdown", "json"),
    "bibtex": ("bibtex",),
}
_ENDINGS = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".md": "markdown", ".tex": "latex", ".csv": "csv"}
_DELTAS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)


@click.command()
@click.argument("form", type=click.Choice(list(FORMATS)))
@plan_argument
@delta_option()
@click.option("--unit", default="", help='What one record stands for, such as "one patient".')
@click.option("--title", default="", help="The title, or the name of the data product.")
@click.option("--released", default="", help="For paper: what else was released (tuning, evaluation).")
@click.option("--fact", "facts", multiple=True, help="For registry: a fact as NAME=TEXT, such as curator=WHO.")
@click.option("--steps", type=click.IntRange(1), default=1000, show_default=True, help="For steps: the last one.")
@click.option("--format", "wanted", help="yaml, json, markdown, latex or csv; by default as --output ends.")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="A file instead of the screen.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def report(form: str, plan: Plan, output: Path | None, wanted: str | None, as_json: bool, **said: Any) -> None:
    """Print PLAN as a FORM that others accept: a registry record, a NIST SP 800-226 checklist, a table for a paper.

    \b
    Examples:
      dptally report paper "1000 * poisson(gaussian(1.0), 0.01)" --delta 1e-5 --unit "one image"
      dptally report compare "50 * laplace(scale=20)" --delta 1e-9 --format latex
      dptally report bibtex "50 * laplace(scale=20)" --delta 1e-9
    """
    kind = "json" if as_json else wanted or (_ENDINGS.get(output.suffix.lower()) if output is not None else None)
    kind = kind or FORMATS[form][0]
    if kind not in FORMATS[form]:
        raise InvalidArgument("format", f"one of {', '.join(FORMATS[form])} for {form}", kind)
    said["unit"] = said["unit"] or plan.unit
    said["title"] = said["title"] or plan.title
    with working("accounting"):
        text = _MAKERS[form](plan, said, kind)
    if output is None:
        click.echo(text, nl=not text.endswith("\n"))
    else:
        output.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
        click.echo(f"written to {output}", err=True)


def _registry(plan: Plan, said: dict[str, Any], kind: str) -> str:
    from dptally.report.registry import registry

    facts = dict(_fact(text) for text in said["facts"])
    if said["title"]:
        facts.setdefault("name", said["title"])
    made = registry(plan.mechanism, said["delta"], unit=said["unit"], **facts)
    if made.missing:
        click.echo(f"still to be filled in: {', '.join(made.missing)}", err=True)
    return made.to_yaml() if kind == "yaml" else made.to_json()


def _fact(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidArgument("fact", "NAME=TEXT", text)
    return name.strip(), value.strip()


def _nist(plan: Plan, said: dict[str, Any], kind: str) -> str:
    from dptally.report.nist import nist

    made = nist(plan.mechanism, said["delta"], unit=said["unit"], title=said["title"])
    return made.to_json() if kind == "json" else made.to_markdown()


def _table(made: Any, kind: str) -> str:
    import json

    return json.dumps(made.to_dict(), indent=2, allow_nan=False) if kind == "json" else str(made.text(kind))


def _paper(plan: Plan, said: dict[str, Any], kind: str) -> str:
    from dptally.report.paper import paper_table

    named = {"unit": said["unit"], "released": said["released"], "title": said["title"]}
    return _table(paper_table(plan.mechanism, said["delta"], **named), kind)


def _compare(plan: Plan, said: dict[str, Any], kind: str) -> str:
    from dptally.answers.compare import compare
    from dptally.report.tabular import comparison_table

    return _table(comparison_table(compare(plan.mechanism, said["delta"])), kind)


def _profile(plan: Plan, said: dict[str, Any], kind: str) -> str:
    from dptally.report.tabular import profile_table

    return _table(profile_table(plan.mechanism, sorted({*_DELTAS, said["delta"]}, reverse=True)), kind)


def _steps(plan: Plan, said: dict[str, Any], kind: str) -> str:
    from dptally.report.steps import epsilon_curve
    from dptally.report.tabular import curve_table

    last = said["steps"]
    asked = sorted({max(1, round(last * i / 20)) for i in range(1, 21)})
    return _table(curve_table(epsilon_curve(plan.mechanism, asked, said["delta"])), kind)


def _bibtex(plan: Plan, said: dict[str, Any], kind: str) -> str:
    from dptally.report.software import dptally_bibtex

    del kind
    return f"{dptally_bibtex()}\n\n{plan.mechanism.explain(said['delta']).bibtex()}"


_MAKERS: dict[str, Callable[[Plan, dict[str, Any], str], str]] = {
    "registry": _registry,
    "nist": _nist,
    "paper": _paper,
    "compare": _compare,
    "profile": _profile,
    "steps": _steps,
    "bibtex": _bibtex,
}
