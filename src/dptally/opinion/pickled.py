"""The history inside a checkpoint that torch saved, read without executing anything of it.

A checkpoint is a zip with a pickle. Pickle is a program; this reader knows its instructions for plain values
(numbers, texts, lists, dictionaries, tuples) and puts an inert mark where the program would call or import
something. Nothing is imported, called or built from it; torch is not needed.
"""

from __future__ import annotations

import io
import pickletools
import struct
import warnings
import zipfile
import zlib
from typing import Any

from dptally.errors import InvalidArgument

__all__ = ["plain", "read_checkpoint", "read_pickle"]

LARGEST = 50_000_000  # bytes of the pickle itself; tensors are stored beside it and are not read
_MOST_STEPS = 5_000_000
_MOST_VALUES, _DEEPEST = 1_000_000, 20

_VALUES = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
}
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_IGNORED = {"PROTO", "FRAME", "STOP"}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


#: what zipfile raises on a damaged archive
_BROKEN = (NotImplementedError, EOFError, RuntimeError, OSError, ValueError, KeyError, IndexError)


class _Inert:
    """Stands where the pickle asked for a class, a call or stored data."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "(not read)"


_INERT = _Inert()
_MARK = object()


def read_checkpoint(raw: bytes) -> Any:
    """The plain values of a torch checkpoint (zip) or of a bare pickle."""
    if raw[:2] != b"PK":
        return read_pickle(raw)
    try:
        return read_pickle(_unzipped(raw))
    except (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, *_BROKEN) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument("checkpoint", "a whole zip file", type(error).__name__) from None


def _unzipped(raw: bytes) -> bytes:
    """The pickle in a checkpoint; never more than LARGEST bytes of it."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        names = [info for info in archive.infolist() if info.filename.endswith("data.pkl")]
        if len(names) != 1:
            raise InvalidArgument("checkpoint", "one with one data.pkl, as torch.save writes it", len(names))
        if names[0].file_size > LARGEST:
            raise InvalidArgument("checkpoint", f"one whose pickle has at most {LARGEST} bytes", names[0].file_size)
        with archive.open(names[0]) as stream:
            return stream.read(LARGEST + 1)


def read_pickle(raw: bytes) -> Any:
    """The value that a pickle describes, with inert marks for whatever is not a plain value."""
    if len(raw) > LARGEST:
        raise InvalidArgument("checkpoint", f"one whose pickle has at most {LARGEST} bytes", len(raw))
    machine = _Machine()
    try:
        _run(machine, raw)
    except (IndexError, KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument("checkpoint", "a file that torch.save or pickle wrote", type(error).__name__) from None
    return machine.result()


def _run(machine: _Machine, raw: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # texts of other versions hold odd escapes
        for place, (opcode, argument, _) in enumerate(pickletools.genops(raw)):
            if place > _MOST_STEPS:
                raise InvalidArgument("checkpoint", f"one of at most {_MOST_STEPS} instructions", place)
            machine.take(opcode.name, argument)


def plain(value: Any) -> Any:
    """A copy that shares nothing with itself: values that hold each other many times or in a circle are refused
    before anything walks through them.
    """
    left = [_MOST_VALUES]

    def copied(inside: Any, depth: int) -> Any:
        left[0] -= 1
        if left[0] < 0 or depth > _DEEPEST:
            raise InvalidArgument(
                "checkpoint", f"one of at most {_MOST_VALUES} values, {_DEEPEST} deep", "a larger one"
            )
        if isinstance(inside, dict):
            return {key: copied(entry, depth + 1) for key, entry in inside.items()}
        if isinstance(inside, (list, tuple)):
            return [copied(entry, depth + 1) for entry in inside]
        return inside

    return copied(value, 0)


class _Machine:
    """The stack machine of pickle, restricted to plain values."""

    __slots__ = ("memo", "stack")

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def result(self) -> Any:
        if len(self.stack) != 1 or self.stack[0] is _MARK:
            raise InvalidArgument("checkpoint", "a file that torch.save or pickle wrote", "an unfinished pickle")
        return self.stack[0]

    def take(self, name: str, argument: Any) -> None:
        if name in _VALUES:
            self.stack.append(argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _TUPLES:
            self.replace(_TUPLES[name], tuple(self.stack[-_TUPLES[name] :]))
        elif name not in _IGNORED:
            handler = getattr(self, f"do_{name.lower()}", None)
            if handler is None:
                raise InvalidArgument("checkpoint", "made of plain values", f"the pickle instruction {name}")
            handler(argument)

    def replace(self, number: int, value: Any) -> None:
        """The last ``number`` values become one."""
        if len(self.stack) < number:
            raise IndexError(number)
        del self.stack[len(self.stack) - number :]
        self.stack.append(value)

    def since_mark(self) -> list[Any]:
        above = next((i for i, value in enumerate(reversed(self.stack)) if value is _MARK), None)
        if above is None:
            raise ValueError("no mark")
        place = len(self.stack) - 1 - above
        found = self.stack[place + 1 :]
        del self.stack[place:]
        return found

    # -- containers ------------------------------------------------------------------------------------------

    def do_mark(self, argument: Any) -> None:
        del argument
        self.stack.append(_MARK)

    def do_empty_dict(self, argument: Any) -> None:
        del argument
        self.stack.append({})

    def do_empty_list(self, argument: Any) -> None:
        del argument
        self.stack.append([])

    def do_list(self, argument: Any) -> None:
        del argument
        self.stack.append(self.since_mark())

    def do_tuple(self, argument: Any) -> None:
        del argument
        self.stack.append(tuple(self.since_mark()))

    def do_dict(self, argument: Any) -> None:
        del argument
        made: dict[Any, Any] = {}
        self.fill(made, self.since_mark())
        self.stack.append(made)

    def do_setitem(self, argument: Any) -> None:
        del argument
        pair = [self.stack.pop(-2), self.stack.pop()]
        self.fill(self.stack[-1], pair)

    def do_setitems(self, argument: Any) -> None:
        del argument
        found = self.since_mark()
        self.fill(self.stack[-1], found)

    def do_append(self, argument: Any) -> None:
        del argument
        value = self.stack.pop()
        self.extend([value])

    def do_appends(self, argument: Any) -> None:
        del argument
        self.extend(self.since_mark())

    def extend(self, values: list[Any]) -> None:
        if isinstance(self.stack[-1], list):
            self.stack[-1].extend(values)

    def fill(self, target: Any, flat: list[Any]) -> None:
        """Keys are texts and numbers: a nested key could take for ever to hash."""
        if isinstance(target, dict):
            for key, value in zip(flat[::2], flat[1::2], strict=True):
                if isinstance(key, (str, int, float)):
                    target[key] = value

    # -- memo and stack --------------------------------------------------------------------------------------

    def do_memoize(self, argument: Any) -> None:
        del argument
        self.memo[len(self.memo)] = self.stack[-1]

    def do_put(self, argument: Any) -> None:
        self.memo[int(argument)] = self.stack[-1]

    do_binput = do_long_binput = do_put

    def do_get(self, argument: Any) -> None:
        self.stack.append(self.memo[int(argument)])

    do_binget = do_long_binget = do_get

    def do_pop(self, argument: Any) -> None:
        del argument
        self.stack.pop()

    # -- what would import, call or load: an inert mark ----------------------------------------------------------

    def do_global(self, argument: Any) -> None:
        self.stack.append(("global", str(argument)))

    def do_stack_global(self, argument: Any) -> None:
        del argument
        self.replace(2, ("global", f"{self.stack[-2]} {self.stack[-1]}"))

    def do_reduce(self, argument: Any) -> None:
        """A call: only an empty ordered dictionary has a plain meaning, that of an empty dictionary."""
        del argument
        ordered = self.stack[-2] == ("global", "collections OrderedDict") and self.stack[-1] == ()
        self.replace(2, {} if ordered else _INERT)

    def do_newobj(self, argument: Any) -> None:
        del argument
        self.replace(2, _INERT)

    def do_build(self, argument: Any) -> None:
        """State for an object: dropped (an ordered dictionary's own attributes)."""
        del argument
        self.stack.pop()

    def do_binpersid(self, argument: Any) -> None:
        """Stored data, such as a tensor's numbers."""
        del argument
        self.replace(1, _INERT)
