"""The grammar of plans: text to a tree. Nothing is looked up or computed here, and nothing is ever evaluated
by Python.

    sum     = product { "+" product }
    product = value { ("*" | "/") value }
    value   = { "-" } ( number | NAME | word | call | "(" list ")" | "[" list "]" )
    call    = word "(" [ argument { "," argument } ] ")"        argument = [ word "=" ] sum
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from dptally.errors import InvalidArgument

__all__ = [
    "DEEPEST",
    "LONGEST",
    "Call",
    "Join",
    "Negative",
    "Node",
    "Number",
    "PlanError",
    "Series",
    "Word",
    "tree",
]

LONGEST = 1_000_000  # characters
DEEPEST = 50  # brackets inside brackets
_LONGEST_NUMBER = 400  # characters

_POWER = re.compile(r"\d[\d_]{0,15}[eE]\+?\d{1,2}", re.ASCII)
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>[()\[\],=*/+-])|(?P<end>\Z))"
)


class PlanError(InvalidArgument):
    """A plan text that cannot be read. ``column`` counts from 1; ``pointed()`` shows the place."""

    def __init__(self, text: str, at: int, reason: str) -> None:
        self.text, self.column, self.reason = text, at + 1, reason
        self.argument, self.requirement, self.value = "plan", "a plan", reason
        Exception.__init__(self, f"plan, column {at + 1}: {reason}")

    def pointed(self) -> str:
        """The part of the text around the place, and a caret below it."""
        start = max(0, self.column - 1 - 40)
        shown = self.text[start : start + 76].expandtabs(1)
        line = "".join(c if c.isprintable() else " " for c in shown)
        return f"  {line}\n  {' ' * (self.column - 1 - start)}^"


@dataclass(frozen=True, slots=True)
class Number:
    at: int
    value: float  # an int where it was written as one


@dataclass(frozen=True, slots=True)
class Word:
    at: int
    name: str


@dataclass(frozen=True, slots=True)
class Series:
    """Several values in brackets."""

    at: int
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Negative:
    at: int
    of: Node


@dataclass(frozen=True, slots=True)
class Join:
    """``items`` joined by ``signs``; a sum has plus signs only, a product stars and slashes."""

    at: int
    items: tuple[Node, ...]
    signs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    at: int
    name: str
    arguments: tuple[tuple[str | None, Node], ...]


Node = Number | Word | Series | Negative | Join | Call


@dataclass(frozen=True, slots=True)
class Token:
    at: int
    kind: str
    text: str


def tree(text: str) -> Node:
    """The tree of one plan text; a mistake is shown with its column."""
    if len(text) > LONGEST:
        raise PlanError("", 0, f"the text has {len(text)} characters; at most {LONGEST} are read")
    return _Reader(text).whole()


def _tokens(text: str) -> list[Token]:
    found, at = [], 0
    while True:
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            raise PlanError(text, at, f"unexpected character {text[at]!r}")
        kind = str(match.lastgroup)
        found.append(Token(match.start(kind), kind, match.group(kind)))
        at = match.end()
        if kind == "end":
            return found


class _Reader:
    """Recursive descent over the tokens; the depth is bounded before Python's own stack could be."""

    __slots__ = ("depth", "position", "text", "tokens")

    def __init__(self, text: str) -> None:
        self.text, self.position, self.depth = text, 0, 0
        self.tokens = _tokens(text)

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def failure(self, token: Token, reason: str) -> PlanError:
        return PlanError(self.text, token.at, reason)

    def take(self) -> Token:
        token = self.token
        self.position += 1
        return token

    def accept(self, *signs: str) -> Token | None:
        return self.take() if self.token.kind == "sign" and self.token.text in signs else None

    def whole(self) -> Node:
        if self.token.kind == "end":
            raise self.failure(self.token, 'the plan is empty; write for example "10 * gaussian(sigma=4)"')
        out = self.sum()
        if self.token.kind != "end":
            found = self.token.text
            reason = "a closing bracket without an opening one" if found in ")]" else f"unexpected {found!r}"
            raise self.failure(self.token, reason)
        return out

    def sum(self) -> Node:
        return self.joined(self.product, "+")

    def product(self) -> Node:
        return self.joined(self.value, "*", "/")

    def joined(self, part: Callable[[], Node], *signs: str) -> Node:
        at = self.token.at
        items, used = [part()], []
        while sign := self.accept(*signs):
            used.append(sign.text)
            items.append(part())
        return items[0] if not used else Join(at, tuple(items), tuple(used))

    def value(self) -> Node:
        minus, at = False, self.token.at
        while self.accept("-"):
            minus = not minus
        found = self.atom()
        return Negative(at, found) if minus else found

    def atom(self) -> Node:
        token = self.take()
        if token.kind == "number":
            return Number(token.at, self.number(token))
        if token.kind == "word":
            opened = self.accept("(")
            return Call(token.at, token.text, self.arguments(opened)) if opened else Word(token.at, token.text)
        if token.kind == "sign" and token.text in "([":
            return self.series(token)
        if token.kind == "end":
            self.position -= 1
            raise self.failure(token, "the plan ends too early")
        raise self.failure(token, f"unexpected {token.text!r}")

    def number(self, token: Token) -> float:
        if len(token.text) > _LONGEST_NUMBER:
            raise self.failure(token, f"a number of {len(token.text)} characters; at most {_LONGEST_NUMBER} are read")
        try:
            if _POWER.fullmatch(token.text):  # a count may be written 1e6
                digits, _, zeros = token.text.lower().replace("_", "").partition("e")
                return int(digits + "0" * int(zeros))
            return int(token.text) if token.text.replace("_", "").isdigit() else float(token.text)
        except ValueError:
            raise self.failure(token, f"{token.text!r} is not a number") from None

    def series(self, opened: Token) -> Node:
        """One value in round brackets is that value; otherwise a series."""
        closing = ")" if opened.text == "(" else "]"
        self.deeper(opened)
        items, commas = [], 0
        while not self.accept(closing):
            items.append(self.sum())
            if self.accept(","):
                commas += 1
            elif not (self.token.kind == "sign" and self.token.text == closing):
                self.unclosed(opened, closing)
        self.depth -= 1
        return items[0] if closing == ")" and len(items) == 1 and not commas else Series(opened.at, tuple(items))

    def arguments(self, opened: Token) -> tuple[tuple[str | None, Node], ...]:
        self.deeper(opened)
        found: list[tuple[str | None, Node]] = []
        while not self.accept(")"):
            found.append(self.argument())
            if not self.accept(",") and not (self.token.kind == "sign" and self.token.text == ")"):
                self.unclosed(opened, ")")
        self.depth -= 1
        return tuple(found)

    def argument(self) -> tuple[str | None, Node]:
        after = self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        if self.token.kind == "word" and after.kind == "sign" and after.text == "=":
            name = self.take().text
            self.take()
            return name, self.sum()
        return None, self.sum()

    def deeper(self, opened: Token) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.failure(opened, f"brackets are nested more than {DEEPEST} deep")

    def unclosed(self, opened: Token, closing: str) -> NoReturn:
        if self.token.kind == "end":
            raise self.failure(opened, f"this bracket is never closed with {closing!r}")
        raise self.failure(self.token, f"expected ',' or {closing!r}, found {self.token.text!r}")
