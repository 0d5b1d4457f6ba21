"""YAML read strictly: no aliases, no repeated keys, and of the plain scalars only what is a number, a flag or nothing
in every version of YAML; the rest stays text (1:30 is not 90, 010 not 8, "no" not false).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from dptally.errors import DptallyError, InvalidArgument, MissingExtra

__all__ = ["held", "read_yaml"]

DEEPEST = 50
_PREFIX = "tag:yaml.org,2002:"
_PLAIN = {
    "int": (r"[-+]?(?:0|[1-9][0-9]{0,400})", "-+0123456789"),
    "float": (
        r"[-+]?(?:(?:0|[1-9][0-9]{0,400})(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][-+]?[0-9]{1,4})?",
        "-+.0123456789",
    ),
    "bool": (r"true|false|True|False", "tfTF"),
    "null": (r"null|~|", "n~\0"),
}


def read_yaml(text: str, name: str) -> object:
    """The document in ``text``; ``name`` is what a refusal calls it."""
    try:
        import yaml
    except ImportError:
        raise MissingExtra("PyYAML", "reports") from None
    try:
        for depth, event in _nested(yaml.parse(text, Loader=yaml.SafeLoader)):
            if isinstance(event, yaml.AliasEvent) or depth > DEEPEST:
                raise InvalidArgument("YAML", f"without aliases and at most {DEEPEST} deep", name)
        return yaml.load(text, Loader=_loader(yaml))  # a SafeLoader that knows fewer tags
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, DptallyError):
            raise
        raise InvalidArgument("claim file", "valid YAML", name, type(error).__name__) from None


def held(text: str) -> float:
    """A number of a document as a double; 1e999 is none, and infinity is said in words."""
    value = float(text)
    if math.isinf(value) and "inf" not in text:
        raise InvalidArgument("number", "one that a double can hold", text)
    return value


def _nested(events: Any) -> Iterator[tuple[int, Any]]:
    depth = 0
    for event in events:
        kind = type(event).__name__
        depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        yield depth, event


def _loader(yaml: Any) -> Any:
    """A SafeLoader with the scalars above and mappings whose keys differ."""

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            texts = [key for key in keys if isinstance(key, str)]
            if len(set(texts)) < len(keys):
                raise InvalidArgument("YAML", "a document whose keys are texts, each said once", texts[:8])
            return super().construct_mapping(node, deep)

    for tag, (pattern, first) in _PLAIN.items():
        Loader.add_implicit_resolver(
            _PREFIX + tag, re.compile(rf"(?:{pattern})$"), ["" if c == "\0" else c for c in first]
        )
    Loader.add_constructor(_PREFIX + "float", lambda loader, node: held(loader.construct_scalar(node)))
    Loader.add_constructor(_PREFIX + "int", lambda loader, node: int(loader.construct_scalar(node)))
    return Loader
