"""Release functions: what they cost is known from their arguments, before any data are looked at."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec

from dptally.errors import InvalidArgument, InvalidType
from dptally.law.adjacency import Adjacency
from dptally.mechanisms import Mechanism
from dptally.release.released import ROW, Released

__all__ = ["ReleaseFunction", "Stated", "checked_unit", "release_function"]

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Stated:
    """What a release will be: everything about it but the value.

    ``labels`` are the values that may come out, where they are declared; ``numbers`` how many numbers do.
    """

    mechanism: Mechanism
    query: str
    adjacency: Adjacency | None = None
    unit: str = ROW
    labels: Sequence[Any] = ()
    numbers: int = 1

    def released(self, value: Any) -> Released:
        return Released(value, self.mechanism, self.query, self.adjacency, self.unit)


class ReleaseFunction(Generic[P]):
    """A function of data that returns a :class:`Released`, and says beforehand what it will cost.

    ``f(data, **arguments)`` runs it, ``f.mechanism(**arguments)`` is the mechanism that accounts for it, and
    ``f.stated(**arguments)`` all that is known without the data. Arguments that are data themselves (a
    condition) or functions of them may be given or left out there; they are not looked at.
    """

    __wrapped__: Callable[P, Released]

    def __init__(
        self, run: Callable[P, Released], state: Callable[..., Stated], data: str, secret: Sequence[str]
    ) -> None:
        functools.update_wrapper(self, run)
        self._state = state
        self._data = data
        self._secret = frozenset({data, *secret})

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Released:
        return self.__wrapped__(*args, **kwargs)

    def mechanism(self, **arguments: Any) -> Mechanism:
        """The mechanism that accounts for a run with these arguments. It needs no data."""
        return self.stated(**arguments).mechanism

    def stated(self, **arguments: Any) -> Stated:
        """What a run with these arguments will be, but for its value; bad arguments are refused as there."""
        known = inspect.signature(self.__wrapped__).parameters
        for name in arguments:
            if name not in known:
                wanted = f"one of the arguments of {self.__name__}: {', '.join(known)}"  # type: ignore[attr-defined]
                raise InvalidArgument("arguments", wanted, name)
        given = self.stating(arguments)
        try:
            return self._state(**given)
        except TypeError as error:
            if isinstance(error, InvalidType):
                raise
            missing = [name for name, p in inspect.signature(self._state).parameters.items() if _needed(p, given)]
            if not missing:
                raise
            raise InvalidArgument(missing[0], "given", "nothing") from None

    def stating(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the arguments that say what will be released: they are no data, nor functions of them."""
        return {name: value for name, value in arguments.items() if name not in self._secret}

    def run(self, data: Any, arguments: dict[str, Any] | Any) -> Released:
        """Run on the data, whatever the name of that argument is."""
        return self.__wrapped__(**{self._data: data, **arguments})  # type: ignore[call-arg]

    def __repr__(self) -> str:
        return f"<release function {self.__name__}>"  # type: ignore[attr-defined]

    def __reduce__(self) -> str:
        return self.__qualname__  # type: ignore[attr-defined,no-any-return]


def _needed(parameter: inspect.Parameter, given: dict[str, Any]) -> bool:
    return parameter.default is inspect.Parameter.empty and parameter.name not in given


def release_function(
    state: Callable[..., Stated], data: str = "data", secret: Sequence[str] = ()
) -> Callable[[Callable[P, Released]], ReleaseFunction[P]]:
    """Make a release function of one that runs, and of one that states from the same arguments what will be.

    ``data`` is the name of the argument that the data are; ``secret`` names other arguments that are made from
    data or look at them, which ``state`` does not get.
    """

    def made(run: Callable[P, Released]) -> ReleaseFunction[P]:
        return ReleaseFunction(run, state, data, secret)

    return made


def checked_unit(unit: object) -> str:
    """``row``, or ``person:<column>``."""
    named = isinstance(unit, str) and (unit == ROW or unit.startswith("person:"))
    if named and str(unit).removeprefix("person:").strip():
        return str(unit)
    raise InvalidArgument("unit", "'row', or 'person:<column>' with the column that names the person", unit)
