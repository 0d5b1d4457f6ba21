"""The one list of mechanisms: each is declared once, in its own file, and everybody else asks here.

How a file declares a mechanism (or another value that plans are written with, or a function that builds a plan)::

    @declared(section="noise", plan="gaussian", aliases=("normal",), example={"sigma": 2.0, "sensitivity": 0.5})
    @dataclass(frozen=True, slots=True)
    class Gaussian(Mechanism):
        sigma: float
        sensitivity: float = 1.0
        json_name: ClassVar[str] = "gaussian"

    json_name   its name in JSON documents (a function that only builds a plan has none)
    section     where the manual lists it, one of SECTIONS
    plan        its name in plan texts; None: it cannot be written there. The class's own name in lower case is
                always an alias, so that what a plan prints is a plan text too
    aliases     further names in plan texts
    maker       what plan texts call instead of the class, where they take other arguments
    example     keyword arguments of one valid value (or a function that gives them, where building them needs
                another mechanism's file): the contract tests run on it
    zero        parameters for which 0 is a valid value; everywhere else the contract tests want it refused
    refuses     further values, by parameter, that the constructor must refuse
    choices     parameters that take one of a few words or flags: {"noise": ("gumbel", "laplace")},
                {"monotone": (True, False)}
    definition  for a declared guarantee: the definition it states, as ``dp.convert(to=...)`` calls it

Then run ``make door``: it writes mechanisms/table.py (so that a name is known before its file is loaded), the typed
door ``__init__.pyi`` and the tables of docs/mechanisms.md. JSON, plan texts, the help of the command line, ``convert``,
the contract tests and ``dp.<Name>`` follow. A test compares what is written with what is declared.

Mechanisms of other packages join by :func:`register`, or by an entry point of the group ``dptally.mechanisms`` whose
name is the JSON name and whose value is the class.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from dptally.errors import InvalidArgument, InvalidType
from dptally.mechanisms.table import TABLE

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from dptally.mechanisms.mechanism import Mechanism

__all__ = [
    "ENTRY_POINTS",
    "SECTIONS",
    "Declaration",
    "declarations",
    "declared",
    "find_declared",
    "find_json",
    "find_plan",
    "json_name_of",
    "json_names",
    "plan_names",
    "plan_usages",
    "register",
    "shipped",
]

ENTRY_POINTS = "dptally.mechanisms"  #: the group in which other packages name their mechanisms
SECTIONS = ("noise", "guarantees", "sampling", "selection", "matrices", "shuffling", "composition")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_RESERVED = ("inf", "nan", "add_remove", "replace", "true", "false")  # words of plan texts

Declarable = TypeVar("Declarable", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a mechanism's file says of it; see the head of this module."""

    target: Callable[..., Any]
    json: str | None
    plan: str | None
    aliases: tuple[str, ...] = ()
    section: str = "noise"
    maker: Callable[..., Any] | None = None
    example: Mapping[str, Any] | Callable[[], Mapping[str, Any]] = field(default_factory=dict)
    zero: tuple[str, ...] = ()
    refuses: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    choices: Mapping[str, tuple[str | bool, ...]] = field(default_factory=dict)
    definition: str | None = None

    @property
    def name(self) -> str:
        """The public Python name."""
        return str(getattr(self.target, "__name__", self.target))

    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of the example."""
        return dict(self.example() if callable(self.example) else self.example)

    def takes_words(self, parameter: str) -> bool:
        """Whether a parameter may be a word or a flag; of a class from outside that is not known, so yes."""
        return parameter in self.choices or not shipped(self.target)

    @property
    def make(self) -> Callable[..., Any]:
        """What a plan text calls."""
        return self.maker or self.target

    @property
    def usage(self) -> str:
        """How it is written in a plan text, such as gaussian(sigma, sensitivity=1.0); empty where it cannot be."""
        if self.plan is None:
            return ""
        shown = []
        for parameter in inspect.signature(self.make).parameters.values():
            default = parameter.default
            if default is inspect.Parameter.empty or default is None:  # None: one of several ways to say it
                shown.append(parameter.name)
            else:
                shown.append(f"{parameter.name}={getattr(default, 'name', str(default)).lower()}")
        return f"{self.plan}({', '.join(shown)})"

    @property
    def written(self) -> tuple[str, ...]:
        """Every name in plan texts, the first one first; none where it cannot be written."""
        return () if self.plan is None else tuple(dict.fromkeys((self.plan, *self.aliases, self.name.lower())))


_SHIPPED: dict[str, Declaration] = {}  # by Python name, filled as the files load
_FOREIGN: dict[str, Declaration] = {}  # by JSON name


def declared(
    *,
    section: str,
    plan: str | None = None,
    aliases: tuple[str, ...] = (),
    maker: Callable[..., Any] | None = None,
    example: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
    zero: tuple[str, ...] = (),
    refuses: Mapping[str, tuple[object, ...]] | None = None,
    choices: Mapping[str, tuple[str | bool, ...]] | None = None,
    definition: str | None = None,
) -> Callable[[Declarable], Declarable]:
    """Declare the class or function below it; for mechanisms shipped with dptally."""

    def declare(target: Declarable) -> Declarable:
        entry = Declaration(
            target,
            getattr(target, "json_name", None),
            plan,
            aliases,
            section,
            maker,
            example or {},
            zero,
            dict(refuses or {}),
            dict(choices or {}),
            definition,
        )
        _SHIPPED[entry.name] = entry
        return target

    return declare


def register(
    cls: type[Mechanism],
    *,
    json: str | None = None,
    plan: str | None = None,
    aliases: tuple[str, ...] = (),
    example: Mechanism | None = None,
) -> type[Mechanism]:
    """Let JSON documents, ledgers and plan texts hold a mechanism that does not come with dptally.

    json: its name in documents, by default ``cls.json_name``. plan: its name in plan texts; None: it cannot be written
    there. The laws of ``example`` are checked at once (see ``dp.check_law``); without one they are checked when the
    mechanism is first asked. Without registration a mechanism answers every question, but cannot be stored. Gives the
    class back, so it may decorate it.
    """
    from dptally.mechanisms.mechanism import Mechanism as Base

    if not (isinstance(cls, type) and issubclass(cls, Base)) or inspect.isabstract(cls):
        raise InvalidType("cls", "a mechanism class with laws()", cls)
    if shipped(cls):
        raise InvalidArgument("cls", "a class that does not come with dptally", cls.__name__)
    _check_storable(cls)
    entry = Declaration(cls, getattr(cls, "json_name", None) if json is None else json, plan, tuple(aliases))
    _check_names(entry)
    if example is not None:
        if type(example) is not cls:
            raise InvalidType("example", f"a {cls.__name__}", example)
        example.directions()
    _FOREIGN[str(entry.json)] = entry
    return cls


def shipped(target: Callable[..., Any]) -> bool:
    """Whether a class (or a function) comes with dptally."""
    return target.__module__.partition(".")[0] == __name__.partition(".")[0]


# -- asking ----------------------------------------------------------------------------------------------------


def declarations() -> Iterator[Declaration]:
    """Every declaration, which loads every mechanism: for tables, tests and help, not for answers."""
    for name in TABLE:
        yield _load(name)
    for point in _entry_points():
        _register_entry_point(point.name)
    yield from _FOREIGN.values()


def find_json(name: str) -> Declaration | None:
    """The declaration of this JSON name, None if there is none; loads no other mechanism."""
    found = _known_json(name)
    if found is None and _register_entry_point(name):
        found = _known_json(name)
    return found


def find_declared(cls: type) -> Declaration | None:
    """The declaration of a class, shipped or registered; None where it was never declared."""
    if cls in (entry.target for entry in _SHIPPED.values()):
        return _SHIPPED[cls.__name__]
    return next((entry for entry in _FOREIGN.values() if entry.target is cls), None)


def json_name_of(cls: type) -> str | None:
    """The name under which documents store values of this class, None where they cannot."""
    registered = next((json for json, entry in _FOREIGN.items() if entry.target is cls), None)
    if registered is not None:
        return registered
    name = getattr(cls, "json_name", None)
    entry = find_json(name) if isinstance(name, str) else None
    return name if entry is not None and entry.target is cls else None


def json_names() -> list[str]:
    """Every name that a document may use."""
    own = [row.json for row in TABLE.values() if row.json is not None]
    return sorted({*own, *_FOREIGN, *(point.name for point in _entry_points())})


def find_plan(name: str, installed: bool = True) -> Declaration | None:
    """The declaration of a name in plan texts, in any case; loads no other mechanism.

    installed: look among the entry points too, which costs some milliseconds.
    """
    found = _known_plan(name.lower())
    if found is None and installed and _register_entry_point(name.lower()):
        found = _known_plan(name.lower())
    return found


def plan_names() -> tuple[str, ...]:
    """The first name of everything that plan texts can hold."""
    own = [row.plan for row in TABLE.values() if row.plan is not None]
    foreign = [entry.plan for entry in _FOREIGN.values() if entry.plan is not None]
    return tuple(dict.fromkeys([*own, *foreign, *(point.name for point in _entry_points())]))


def plan_usages() -> list[str]:
    """How everything that plan texts can hold is written; loads no shipped mechanism."""
    return [row.usage for row in TABLE.values() if row.usage] + [e.usage for e in _FOREIGN.values() if e.usage]


def _known_json(name: str) -> Declaration | None:
    own = next((public for public, row in TABLE.items() if row.json == name), None)
    return _load(own) if own is not None else _FOREIGN.get(name)


def _known_plan(name: str) -> Declaration | None:
    for public, row in TABLE.items():
        if row.plan is not None and name in (row.plan, *row.aliases, public.lower()):
            return _load(public)
    return next((entry for entry in _FOREIGN.values() if name in entry.written), None)


def _load(name: str) -> Declaration:
    if name not in _SHIPPED:
        importlib.import_module(TABLE[name].module)
    return _SHIPPED[name]


@cache
def _entry_points() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points

    return tuple(entry_points(group=ENTRY_POINTS))


def _register_entry_point(name: str) -> bool:
    """Load and register the installed mechanism of that name, if there is one."""
    point = next((point for point in _entry_points() if point.name == name), None)
    if point is not None and name not in _FOREIGN:
        register(_loaded(point), json=name, plan=name)
    return point is not None


def _loaded(point: EntryPoint) -> Any:
    """What an entry point names; one that leads nowhere is refused with the package to blame."""
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        blamed = f" of {point.dist.name}" if point.dist is not None else ""
        requirement = f"a mechanism that the entry point{blamed} ({point.value}) can load"
        raise InvalidArgument("name", requirement, point.name, str(error)) from error


# -- checks ----------------------------------------------------------------------------------------------------


def _check_storable(cls: type[Mechanism]) -> None:
    """A value that is rebuilt from ``parameters()``, compared and hashed."""
    params = getattr(cls, "__dataclass_params__", None)
    if not getattr(params, "frozen", False) or cls.__hash__ is None:
        raise InvalidArgument("cls", "a frozen dataclass, so that equal values compare and hash alike", cls.__name__)
    taken = inspect.signature(cls).parameters
    stored = (entry.name.removeprefix("declared_") for entry in fields(cls))  # type: ignore[arg-type]
    missing = [name for name in stored if name not in taken]
    if missing and "parameters" not in vars(cls):
        raise InvalidArgument(
            "cls", f"built by its own fields (not {', '.join(missing)})", list(taken), "define parameters()"
        )


def _check_names(entry: Declaration) -> None:
    for argument, name in (("json", entry.json), *(("plan", word) for word in entry.written[:1])):
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidArgument(argument, "a name of small letters, digits and _, beginning with a letter", name)
    assert entry.json is not None
    other = _known_json(entry.json)
    if other is not None and not _same(other.target, entry.target):
        raise InvalidArgument("json", f"a name that {other.name} does not have", entry.json)
    for word in entry.written:
        _check_word(word, entry)


def _check_word(word: object, entry: Declaration) -> None:
    if not isinstance(word, str) or not _NAME.fullmatch(word) or word in _RESERVED:
        raise InvalidArgument("plan, aliases", "names of small letters, digits and _ that plans do not use", word)
    known = _known_plan(word)
    if known is not None and not _same(known.target, entry.target):
        raise InvalidArgument("plan, aliases", f"names that {known.name} does not have", word)


def _same(one: object, other: object) -> bool:
    """The same class, perhaps defined again (a notebook's cell that ran twice)."""

    def place(value: object) -> tuple[object, object]:
        return getattr(value, "__module__", None), getattr(value, "__qualname__", None)

    return one is other or place(one) == place(other)
