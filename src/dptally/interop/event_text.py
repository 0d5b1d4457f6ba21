"""The repr of a DpEvent as text, as it stands in people's logs. Parsed, never evaluated.

    value = number | "None" | text | name "(" arguments ")" | "[" values "]" | "(" values ")"

A name may carry its package (``dp_accounting.GaussianDpEvent``), and numbers may be numpy's (``np.float64(1.0)``).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

from dptally.errors import InvalidArgument

__all__ = ["Node", "looks_like_event", "read_event_text"]

LONGEST = 1_000_000  # characters
DEEPEST = 50  # brackets inside brackets
_LONGEST_NUMBER = 400

_START = re.compile(r"\s*(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*DpEvent\s*\(")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<word>[+-]?(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)|(?P<sign>[()\[\],=])|(?P<end>\Z))",
    re.ASCII,
)
_NUMPY = re.compile(r"(?:np|numpy)\.(?:float|int|uint)\d+|float|int", re.ASCII)
_INFINITIES = {"inf": math.inf, "+inf": math.inf, "-inf": -math.inf, "math.inf": math.inf, "np.inf": math.inf}


@dataclass(frozen=True, slots=True)
class Node:
    """An event by name with its fields; those given by position stand in ``ordered``."""

    name: str
    ordered: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)


def looks_like_event(text: str) -> bool:
    """Whether a text begins as the repr of a DpEvent does.

    >>> looks_like_event("GaussianDpEvent(noise_multiplier=1.0)"), looks_like_event("gaussian(1.0)")
    (True, False)
    """
    return _START.match(text) is not None


def read_event_text(text: str) -> Node:
    """The tree that a repr shows; what does not follow the grammar is refused with its column.

    >>> read_event_text("SelfComposedDpEvent(event=GaussianDpEvent(2.0), count=3)").named["count"]
    3
    """
    if len(text) > LONGEST:
        raise InvalidArgument("event", f"at most {LONGEST} characters", f"{len(text)} characters")
    reader = _Reader(text)
    found = reader.value()
    reader.expect("end")
    if not isinstance(found, Node):
        raise InvalidArgument("event", "the repr of a DpEvent", text)
    return found


class _Reader:
    """Recursive descent; the depth is bounded before Python's own stack could be."""

    __slots__ = ("at", "depth", "kind", "start", "text", "word")

    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0
        self.kind, self.word, self.start = "", "", 0
        self.advance()

    def fail(self, reason: str) -> InvalidArgument:
        return InvalidArgument("event", "the repr of a DpEvent", self.text, f"column {self.start + 1}: {reason}")

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            self.start = self.at
            raise self.fail(f"unexpected {self.text[self.at : self.at + 10].strip()[:1]!r}")
        self.kind = str(match.lastgroup)
        self.word, self.start, self.at = match.group(self.kind), match.start(self.kind), match.end()

    def expect(self, kind: str) -> None:
        if self.kind != kind:
            raise self.fail(f"unexpected {self.word[:40]!r}" if self.word else "the text ends too early")

    def accept(self, sign: str) -> bool:
        if self.kind != "sign" or self.word != sign:
            return False
        self.advance()
        return True

    def value(self) -> Any:
        if self.kind == "number":
            return self.number()
        if self.kind == "word":
            return self.named()
        for opening, closing in (("[", "]"), ("(", ")")):
            if self.accept(opening):
                return tuple(item for _, item in self.items(closing, keywords=False))
        raise self.fail(f"unexpected {self.word[:40]!r}" if self.word else "the text ends too early")

    def number(self) -> float:
        word = self.word
        if len(word) > _LONGEST_NUMBER:
            raise self.fail(f"a number of {len(word)} characters")
        self.advance()
        return int(word) if word.lstrip("+-").isdigit() else float(word)

    def named(self) -> Any:
        word = self.word
        self.advance()
        if self.accept("("):
            given = self.items(")", keywords=True)
            if _NUMPY.fullmatch(word):
                return self.wrapped(given)
            return self.event(word, given)
        if word == "None":
            return None
        if word in _INFINITIES:
            return _INFINITIES[word]
        raise self.fail(f"{word[:40]!r} is neither a number nor an event")

    def wrapped(self, given: list[tuple[str | None, Any]]) -> Any:
        """The number inside ``np.float64(...)``."""
        if len(given) != 1 or given[0][0] is not None or isinstance(given[0][1], (Node, tuple)) or given[0][1] is None:
            raise self.fail("a number type holds one number")
        return given[0][1]

    def event(self, word: str, given: list[tuple[str | None, Any]]) -> Node:
        name = word.rsplit(".", 1)[-1]
        ordered = [item for keyword, item in given if keyword is None]
        named = {keyword: item for keyword, item in given if keyword is not None}
        if len(ordered) + len(named) < len(given):
            raise self.fail(f"a field of {name[:40]} is given twice")
        if any(keyword is not None for keyword, _ in given[: len(ordered)]):
            raise self.fail("a value by position follows one by name")
        return Node(name, tuple(ordered), named)

    def items(self, closing: str, keywords: bool) -> list[tuple[str | None, Any]]:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.fail(f"brackets are nested more than {DEEPEST} deep")
        found: list[tuple[str | None, Any]] = []
        while not self.accept(closing):
            found.append(self.item(keywords))
            if not self.accept(",") and not (self.kind == "sign" and self.word == closing):
                raise self.fail(f"expected ',' or {closing!r}")
        self.depth -= 1
        return found

    def item(self, keywords: bool) -> tuple[str | None, Any]:
        if keywords and self.kind == "word" and self.text[self.at :].lstrip()[:1] == "=":
            keyword = self.word
            self.advance()
            self.advance()
            return keyword, self.value()
        return None, self.value()
