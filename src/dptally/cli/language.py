"""Plans as text: ``50 * laplace(scale=5) + 10 * gaussian(sigma=10)``. Parsed, never evaluated.

The names are a closed list; one value may be left open in UPPER CASE for ``dptally calibrate``. What a plan
prints in Python is a plan text too.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, SupportsIndex

from dptally.cli.syntax import Call, Join, Negative, Node, Number, PlanError, Series, Word, tree
from dptally.errors import DptallyError, InvalidType
from dptally.mechanisms import ADD_REMOVE, REPLACE, Adjacency, Composed, Mechanism, registry

__all__ = ["Template", "parse", "template"]

_WORDS: dict[str, float | Adjacency] = {
    "inf": math.inf,
    "add_remove": ADD_REMOVE,
    "replace": REPLACE,
}
_LARGEST = 10**400  # beyond, an integer helps nobody and only costs time


Value = Any  # a number, an adjacency, a mechanism, or a tuple of them


@dataclass(frozen=True, slots=True)
class Template:
    """A plan with one open value. Calling it with a number gives the plan."""

    text: str
    name: str
    node: Node

    def __call__(self, value: float) -> Mechanism:
        return _plan(self.text, self.node, {self.name: value})


def parse(text: str) -> Mechanism:
    """The plan that a text describes.

    >>> parse("50*laplace(scale=5) + 10*gaussian(10)")
    10 * Gaussian(sigma=10.0, sensitivity=1.0) + 50 * Laplace(scale=5.0, sensitivity=1.0)
    >>> parse("1000 * poisson(gaussian(1.0), rate=256/60000, adjacency=replace)").parts[0][1]
    1000
    """
    return _plan(text, tree(text), {})


def template(text: str) -> Template:
    """A plan with exactly one open value, written in UPPER CASE (it may stand in several places).

    >>> template("1000 * poisson(gaussian(SIGMA), 0.01)")(2.0) == parse("1000*poisson(gaussian(2), 0.01)")
    True
    """
    node = tree(text)
    words = [word for word in _words(node) if _open(word.name)]
    names = sorted({word.name for word in words})
    if not names:
        raise PlanError(text, 0, "nothing is left open; write the value to be found in UPPER CASE, as SIGMA")
    if len(names) > 1:
        second = next(word for word in words if word.name != words[0].name)
        raise PlanError(text, second.at, f"only one value may be left open, found {', '.join(names)}")
    return Template(text, names[0], node)


def _open(name: str) -> bool:
    return (
        name.isupper()
        and name.lower() not in _WORDS
        and name.lower() != "nan"
        and registry.find_plan(name, installed=False) is None
    )


def _words(node: Node) -> Iterator[Word]:
    if isinstance(node, Word):
        yield node
    elif isinstance(node, Negative):
        yield from _words(node.of)
    elif isinstance(node, (Series, Join)):
        for item in node.items:
            yield from _words(item)
    elif isinstance(node, Call):
        for _, item in node.arguments:
            yield from _words(item)


def _plan(text: str, node: Node, values: dict[str, float]) -> Mechanism:
    found = _Builder(text, values).build(node)
    if not isinstance(found, Mechanism):
        raise PlanError(text, node.at, f"this is {_kind(found)}, not a mechanism; write for example gaussian(sigma=4)")
    return found


def _kind(value: Value) -> str:
    if isinstance(value, Mechanism):
        return "a plan"
    if isinstance(value, tuple):
        return "a list"
    if isinstance(value, Adjacency):
        return "an adjacency"
    return f"the number {value:.6g}" if isinstance(value, (int, float)) else f"the value {value!r}"


@dataclass(frozen=True, slots=True)
class _Builder:
    text: str
    values: dict[str, float]

    def fail(self, node: Node, reason: str) -> PlanError:
        return PlanError(self.text, node.at, reason)

    def placed(self, node: Node, error: DptallyError, reason: str) -> DptallyError:
        """The error with its column; but calibrate must see that an open value has the wrong type, to go on with
        integers.
        """
        return error if self.values and isinstance(error, InvalidType) else self.fail(node, reason)

    def build(self, node: Node) -> Value:
        if isinstance(node, Number):
            return node.value
        if isinstance(node, Word):
            return self.word(node)
        if isinstance(node, Series):
            return tuple(self.build(item) for item in node.items)
        if isinstance(node, Negative):
            return -self.number(node.of, "after a minus sign")
        if isinstance(node, Call):
            return self.call(node)
        return self.sum(node) if node.signs[0] == "+" else self.product(node)

    def word(self, node: Word) -> Value:
        if node.name in self.values:
            return self.values[node.name]
        if node.name.lower() in _WORDS:
            return _WORDS[node.name.lower()]
        if node.name.lower() == "nan":
            raise self.fail(node, "NaN is not a number that a plan can use")
        if registry.find_plan(node.name) is not None:
            raise self.fail(node, f"{node.name} needs its parameters in brackets: {_usage(node.name)}")
        if _open(node.name):
            raise self.fail(node, f"{node.name} is left open; only dptally calibrate finds a value")
        raise self.fail(
            node, f"unknown name {_cut(node.name)!r}{_nearest(node.name, [*registry.plan_names(), *_WORDS])}"
        )

    def number(self, node: Node, where: str) -> float:
        value = self.build(node)
        if isinstance(value, (int, float)):
            return value
        raise self.fail(node, f"a number is needed {where}, this is {_kind(value)}")

    def sum(self, node: Join) -> Value:
        items = [self.build(item) for item in node.items]
        if all(isinstance(item, Mechanism) for item in items):
            return Composed.of((item, 1) for item in items)
        if all(isinstance(item, (int, float)) for item in items):
            try:
                return self.bounded(node, sum(items))
            except OverflowError:
                raise self.fail(node, "the number is too large") from None
        odd = next(i for i, item in enumerate(items) if not isinstance(item, Mechanism))
        raise self.fail(node.items[odd], f"{_kind(items[odd])} cannot be added to a plan")

    def product(self, node: Join) -> Value:
        value = self.build(node.items[0])
        for sign, item in zip(node.signs, node.items[1:], strict=True):
            value = self.times(node, item, value, self.build(item), sign)
        return value

    def times(self, node: Join, item: Node, left: Value, right: Value, sign: str) -> Value:
        plans = isinstance(left, Mechanism) + isinstance(right, Mechanism)
        if isinstance(left, (tuple, Adjacency)) or isinstance(right, (tuple, Adjacency)):
            raise self.fail(item, f"{_kind(left)} and {_kind(right)} cannot be multiplied")
        if plans == 2 or (plans and sign == "/"):
            raise self.fail(item, "a plan can be multiplied by a whole number only; plans are joined with +")
        if plans:
            plan, count = (left, right) if isinstance(left, Mechanism) else (right, left)
            return self.repeated(node, plan, count)
        if sign == "/" and right == 0:
            raise self.fail(item, "division by zero")
        try:
            return self.bounded(item, left * right if sign == "*" else left / right)
        except OverflowError:
            raise self.fail(item, "the number is too large") from None

    def repeated(self, node: Join, plan: Mechanism, count: SupportsIndex) -> Composed:
        try:
            return plan * count
        except DptallyError as error:
            raise self.placed(node, error, str(error)) from None

    def bounded(self, node: Node, value: float) -> float:
        if abs(value) > _LARGEST and isinstance(value, int):
            raise self.fail(node, "the number is too large")
        return value

    def call(self, node: Call) -> Mechanism:
        declared = registry.find_plan(node.name)
        if declared is None:
            raise self.fail(node, f"unknown name {_cut(node.name)!r}{_nearest(node.name, registry.plan_names())}")
        known = list(inspect.signature(declared.make).parameters)
        given: dict[str, object] = {}
        for i, (keyword, item) in enumerate(node.arguments):
            name = self.parameter(node, i, keyword, item, known, given)
            given[name] = self.argument(item, name, declared)
        try:
            made: Mechanism = declared.make(**given)
        except DptallyError as error:
            raise self.placed(node, error, f"in {declared.plan}: {error}") from None
        except TypeError:  # only the signature is left to be wrong: every maker checks its values
            raise self.fail(node, f"too few parameters; write {_usage(node.name)}") from None
        return made

    def argument(self, node: Node, name: str, declared: registry.Declaration) -> object:
        """One argument: one of the words that its parameter takes, else a value."""
        words = {str(choice).lower(): choice for choice in declared.choices.get(name, ())}
        if not words:
            return self.build(node)
        if isinstance(node, Word) and node.name.lower() in words:
            return words[node.name.lower()]
        if isinstance(node, Word) and all(isinstance(choice, str) for choice in words.values()):
            return _cut(node.name)  # its maker says why not, and what to write instead
        raise self.fail(node, f"{name} must be one of {', '.join(words)}")

    def parameter(
        self, node: Call, i: int, keyword: str | None, item: Node, known: list[str], given: dict[str, object]
    ) -> str:
        """The name of argument i, which may be given by position before any keyword."""
        if keyword is None:
            if i >= len(known) or any(word is not None for word, _ in node.arguments[:i]):
                late = i < len(known)
                reason = "a value by position follows one by name" if late else "too many parameters"
                raise self.fail(item, f"{reason}; write {_usage(node.name)}")
            return known[i]
        if keyword not in known:
            near = _nearest(keyword, known)
            raise self.fail(item, f"{node.name} has no parameter {_cut(keyword)!r}{near} in {_usage(node.name)}")
        if keyword in given:
            raise self.fail(item, f"{keyword} is given twice")
        return keyword


def _usage(name: str) -> str:
    """How a name is written, such as gaussian(sigma, sensitivity=1.0)."""
    declared = registry.find_plan(name)
    assert declared is not None
    return declared.usage


def _nearest(name: str, known: Any) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name.lower()[:40], list(known), 1, 0.6)
    return f"; did you mean {near[0]}?" if near else f" (known: {', '.join(known)})"


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
