"""Proofs from the Merkle tree: small texts that are checked against a head, without the chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from dptally.errors import ChainBroken, InvalidArgument, InvalidType
from dptally.ledger import merkle
from dptally.ledger.chain import Head, canonical
from dptally.ledger.reading import HEAD_LIMIT, read_object, read_whole
from dptally.ledger.schema import entries

__all__ = ["Consistency", "Inclusion", "prove_consistency", "prove_inclusion"]


@dataclass(frozen=True, slots=True)
class Inclusion:
    """Entry ``number`` with this ``hash`` is among the first ``size`` entries of a dataset's chain."""

    ledger: str
    dataset: str
    number: int
    hash: str
    size: int
    path: tuple[str, ...]

    def check(self, head: Head) -> None:
        """Raise ChainBroken unless the entry is in the ledger that this head is the head of."""
        length, _ = head.chains.get(self.dataset, (0, ""))
        top = head.roots.get(self.dataset, "")
        if head.ledger != self.ledger or length != self.size or not top:
            raise InvalidArgument(
                "head", f"the head of ledger {self.ledger} at {self.size} entries of {self.dataset!r}", length
            )
        if not _sound(merkle.check_inclusion, self.hash, self.number, self.size, self.path, top):
            raise ChainBroken(self.dataset, self.number, "the proof does not lead to the root of this head")

    def to_json(self) -> str:
        facts = {"dataset": self.dataset, "hash": self.hash, "ledger": self.ledger, "number": self.number}
        return canonical({**facts, "dptally_inclusion": 1, "path": list(self.path), "size": self.size})

    @classmethod
    def from_json(cls, text: str) -> Inclusion:
        try:
            raw = read_object(text, "text", HEAD_LIMIT)
            if raw["dptally_inclusion"] != 1:
                raise ValueError("another format")
            return cls(
                _text(raw["ledger"]),
                _text(raw["dataset"]),
                read_whole("number", raw["number"], 1),
                _text(raw["hash"]),
                read_whole("size", raw["size"], 1),
                tuple(map(_text, raw["path"])),
            )
        except (ValueError, KeyError, TypeError):
            pass
        raise InvalidArgument("text", "the JSON text that Inclusion.to_json() wrote", "something else")


@dataclass(frozen=True, slots=True)
class Consistency:
    """A later head continues an earlier one: nothing that the earlier one held was changed."""

    ledger: str
    paths: Mapping[str, tuple[str, ...]] = field(hash=False)

    def check(self, old: Head, new: Head) -> None:
        """Raise ChainBroken at the first chain of ``old`` that ``new`` does not continue."""
        if not (self.ledger == old.ledger == new.ledger):
            raise InvalidArgument("head", f"of ledger {self.ledger}", (old.ledger, new.ledger))
        for name, (length, _) in old.chains.items():
            size, _ = new.chains.get(name, (0, ""))
            tops = old.roots.get(name, ""), new.roots.get(name, "")
            if not _sound(merkle.check_consistency, length, tops[0], size, tops[1], self.paths.get(name, ())):
                raise ChainBroken(name, None, "the later head does not continue the earlier one")

    def to_json(self) -> str:
        paths = {name: list(path) for name, path in self.paths.items()}
        return canonical({"dptally_consistency": 1, "ledger": self.ledger, "paths": paths})

    @classmethod
    def from_json(cls, text: str) -> Consistency:
        try:
            raw = read_object(text, "text", HEAD_LIMIT)
            if raw["dptally_consistency"] != 1:
                raise ValueError("another format")
            return cls(_text(raw["ledger"]), {name: tuple(map(_text, path)) for name, path in raw["paths"].items()})
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
        raise InvalidArgument("text", "the JSON text that Consistency.to_json() wrote", "something else")


def prove_inclusion(connection: sa.Connection, ledger: str, dataset: str, number: int, size: int) -> Inclusion:
    read = _reader(connection, dataset)
    return Inclusion(ledger, dataset, number, read(number)[0], size, merkle.inclusion(read, number, size))


def prove_consistency(connection: sa.Connection, ledger: str, old: Head, new: Head) -> Consistency:
    paths = {}
    for name, (length, _) in old.chains.items():
        size = new.chains.get(name, (0, ""))[0]
        if size < length:
            raise ChainBroken(name, size + 1, "it is missing: the chain is shorter than the earlier head")
        paths[name] = merkle.consistency(_reader(connection, name), length, size)
    return Consistency(ledger, paths)


def _reader(connection: sa.Connection, dataset: str) -> merkle.Read:
    known: dict[int, tuple[str, str | None]] = {}

    def read(number: int) -> tuple[str, str | None]:
        if number not in known:
            here = entries.c.dataset == dataset, entries.c.seq == number
            row = connection.execute(sa.select(entries.c.hash, entries.c.node).where(*here)).one_or_none()
            if row is None:
                raise ChainBroken(dataset, number, "it is missing")
            known[number] = row.hash, row.node
        return known[number]

    return read


def _sound(check: Any, *arguments: object) -> bool:
    """A proof with hashes that are no hashes proves nothing."""
    try:
        return bool(check(*arguments))
    except ValueError:
        return False


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidType("text", "a string", value)
    return value
