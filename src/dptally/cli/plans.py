"""Where plans come from: a text, a file (TOML or JSON, an opacus state), or the standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from dptally.cli.language import parse
from dptally.cli.syntax import DEEPEST, LONGEST
from dptally.documents import read_json
from dptally.errors import InvalidArgument
from dptally.interop.event_text import looks_like_event
from dptally.mechanisms import Composed, Mechanism

__all__ = ["PLAN", "Plan", "PlanParameter", "load", "of_text"]

_ENDINGS = (".toml", ".json", ".plan", ".txt")


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan with what its file says about it."""

    mechanism: Mechanism
    title: str = ""
    unit: str = ""


def load(text: str) -> Plan:
    """The plan behind a command-line argument: ``@file``, an existing file, ``-`` or a plan text.

    >>> load("3 * laplace(5)").mechanism
    3 * Laplace(scale=5.0, sensitivity=1.0)
    """
    if text == "-":
        return of_text(sys.stdin.read(LONGEST + 1))
    if text.startswith("@"):
        return _of_file(Path(text[1:]))
    if len(text) < 1000 and text.endswith(_ENDINGS):
        return _of_file(Path(text))
    return of_text(text)


def of_text(text: str) -> Plan:
    """A plan text, JSON or a DpEvent's repr; never the name of a file."""
    if looks_like_event(text):
        from dptally.interop import from_dp_accounting

        return Plan(from_dp_accounting(text))
    if text.lstrip()[:1] != "{":
        return Plan(parse(text))
    from dptally.mechanisms import from_json

    return Plan(from_json(text))


def _of_file(path: Path) -> Plan:
    try:
        with path.open("rb") as stream:
            raw = stream.read(LONGEST + 1)
    except OSError as error:
        raise InvalidArgument("plan file", "readable", str(path), str(error.strerror)) from None
    if len(raw) > LONGEST:
        raise InvalidArgument("plan file", f"at most {LONGEST} bytes", str(path))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgument("plan file", "UTF-8 text", str(path), str(error)) from None
    if path.suffix == ".toml":
        return _of_document(_toml(text, path), path)
    if path.suffix == ".json":
        return _of_json(text, path)
    return of_text(text)


def _toml(text: str, path: Path) -> dict[str, Any]:
    import tomllib

    _shallow(text, path)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgument("plan file", "valid TOML", str(path), str(error)) from None


def _of_json(text: str, path: Path) -> Plan:
    """What ``dp.to_json`` writes, the state of an opacus accountant, or the same keys as in TOML."""
    document = read_json(text, f"plan file {str(path)!r}", longest=LONGEST)
    if isinstance(document, dict) and "schema" in document:
        return of_text(text)
    if isinstance(document, dict) and ("history" in document or "privacy_accountant_state_dict" in document):
        from dptally.interop import from_opacus

        return Plan(from_opacus(document))
    return _of_document(document, path)


def _shallow(text: str, path: Path) -> None:
    """Refuse deep nesting before a recursive reader meets it."""
    depth = 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if depth > DEEPEST:
            raise InvalidArgument("plan file", f"at most {DEEPEST} brackets deep", str(path))


def _of_document(document: Any, path: Path) -> Plan:
    """Keys: title, unit, and either plan (a text) or query (tables with plan, count and name)."""
    known = {"title", "unit", "plan", "query"}
    if not isinstance(document, dict) or not set(document) <= known:
        odd = sorted(set(document) - known) if isinstance(document, dict) else type(document).__name__
        raise InvalidArgument("plan file", f"a table with some of the keys {sorted(known)}", odd)
    said = {key: document.get(key, "") for key in ("title", "unit")}
    for key, value in said.items():
        if not isinstance(value, str):
            raise InvalidArgument(key, "a text", value)
    parts = list(_parts(document, path))
    mechanism = parts[0][0] if len(parts) == 1 and parts[0][1] == 1 else Composed.of(parts)
    return Plan(mechanism, **said)


def _parts(document: dict[str, Any], path: Path) -> Iterator[tuple[Mechanism, int]]:
    queries = document.get("query", [])
    if "plan" in document:
        queries = [{"plan": document["plan"]}, *queries] if isinstance(queries, list) else queries
    if not isinstance(queries, list) or not queries:
        raise InvalidArgument("plan file", 'one with a "plan" or with [[query]] tables', str(path))
    for number, query in enumerate(queries, 1):
        where = f"query {number}"
        if not isinstance(query, dict) or not {"plan"} <= set(query) <= {"plan", "count", "name"}:
            raise InvalidArgument(where, 'a table with "plan", and perhaps "count" and "name"', query)
        if not isinstance(query["plan"], str):
            raise InvalidArgument(f"{where}.plan", "a plan text", query["plan"])
        yield parse(query["plan"]), query.get("count", 1)


class PlanParameter(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on only
    """A click parameter that becomes a :class:`Plan`."""

    name = "plan"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Plan:
        del param, ctx
        return value if isinstance(value, Plan) else load(str(value))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        from dptally.mechanisms.registry import plan_names

        del ctx, param
        if incomplete.startswith("@"):
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(f"{name}(") for name in plan_names() if name.startswith(incomplete)]


PLAN = PlanParameter()
