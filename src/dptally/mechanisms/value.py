"""A frozen value with named parameters: what mechanisms are, and what mechanisms are built from."""

from __future__ import annotations

from abc import ABC
from dataclasses import fields
from typing import Any, ClassVar

__all__ = ["Value"]


class Value(ABC):
    """Equal parameters make equal values; it prints as what builds it, and JSON documents can hold it."""

    __slots__ = ()

    #: the name in JSON documents
    json_name: ClassVar[str]

    def parameters(self) -> dict[str, Any]:
        """What it was built from, under the names that its constructor takes.

        A parameter whose name is also a question (PureDP's epsilon) is kept in a field called
        declared_<name>.
        """
        stored: Any = fields(self)  # type: ignore[arg-type]
        return {field.name.removeprefix("declared_"): getattr(self, field.name) for field in stored}

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters().items())
        return f"{type(self).__name__}({given})"
