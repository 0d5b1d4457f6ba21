"""A Merkle tree beside each chain: proofs that an entry is in a head, and that one head continues another.

The leaves are the hashes of the entries. The tree is that of RFC 6962: a tree of n leaves splits at the
largest power of two below n. Entry i stores the root of the largest complete subtree that ends with it (none
for odd i, where that is its own hash), so a proof reads O(log^2 n) entries and an append none: the complete
subtrees that are still open, the *peaks*, stand beside the chain's head.

Leaves and nodes are hashed with different prefixes, so neither passes for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

__all__ = ["NODE", "Read", "check_consistency", "check_inclusion", "consistency", "extended", "inclusion", "root"]

NODE = b"dptally ledger node 1\x00"
Read = Callable[[int], tuple[str, str | None]]  # entry number -> (hash, node)


def joined(left: str, right: str) -> str:
    return sha256(NODE + bytes.fromhex(left) + bytes.fromhex(right)).hexdigest()


def extended(peaks: list[str], number: int, leaf: str) -> str | None:
    """Append entry ``number`` to the peaks, in place; the node that the entry stores."""
    top, rest = leaf, number
    while not rest & 1:
        top = joined(peaks.pop(), top)
        rest >>= 1
    peaks.append(top)
    return None if number & 1 else top


def root(peaks: Sequence[str], empty: str) -> str:
    """The root of the tree; ``empty`` (where the chain begins) for a tree without leaves."""
    if not peaks:
        return empty
    top = peaks[-1]
    for left in reversed(peaks[:-1]):
        top = joined(left, top)
    return top


# -- proofs --------------------------------------------------------------------------------------------------


def inclusion(read: Read, number: int, size: int) -> tuple[str, ...]:
    """The siblings on the way from entry ``number`` (from 1) to the root of the first ``size`` entries."""
    return tuple(_path(read, number - 1, 0, size))


def check_inclusion(leaf: str, number: int, size: int, path: Sequence[str], top: str) -> bool:
    """Whether the path leads from the leaf to the root."""
    if not 1 <= number <= size:
        return False
    found, rest = _climb(leaf, number - 1, size, list(path))
    return rest == [] and found == top


def consistency(read: Read, old: int, new: int) -> tuple[str, ...]:
    """The hashes that show the first ``old`` entries to be a beginning of the first ``new``."""
    return tuple(_subproof(read, old, 0, new, True)) if 0 < old < new else ()


def check_consistency(old: int, old_root: str, new: int, new_root: str, proof: Sequence[str]) -> bool:
    """Whether the proof shows that the new tree continues the old one."""
    if not 0 < old <= new:
        return old == 0 and not proof
    if old == new:
        return not proof and old_root == new_root
    rest = list(proof)
    found = _both(old, new, True, rest, old_root)
    return found == (old_root, new_root) and not rest


def _split(size: int) -> int:
    return 1 << ((size - 1).bit_length() - 1)


def _tree(read: Read, start: int, size: int) -> str:
    """The root over the entries start + 1 .. start + size."""
    if size & (size - 1):
        left = _split(size)
        return joined(_tree(read, start, left), _tree(read, start + left, size - left))
    end = start + size
    digest, node = read(end)
    if size == 1:
        return digest
    if end & -end == size:
        return node or ""
    half = size // 2
    return joined(_tree(read, start, half), _tree(read, start + half, half))


def _path(read: Read, place: int, start: int, size: int) -> list[str]:
    if size == 1:
        return []
    left = _split(size)
    if place < left:
        return [*_path(read, place, start, left), _tree(read, start + left, size - left)]
    return [*_path(read, place - left, start + left, size - left), _tree(read, start, left)]


def _climb(leaf: str, place: int, size: int, path: list[str]) -> tuple[str | None, list[str]]:
    if size == 1:
        return leaf, path
    if not path:
        return None, []
    left, sibling = _split(size), path[-1]
    inner, rest = (
        _climb(leaf, place, left, path[:-1]) if place < left else _climb(leaf, place - left, size - left, path[:-1])
    )
    if inner is None:
        return None, rest
    return (joined(inner, sibling) if place < left else joined(sibling, inner)), rest


def _subproof(read: Read, old: int, start: int, size: int, whole: bool) -> list[str]:
    if old == size:
        return [] if whole else [_tree(read, start, size)]
    left = _split(size)
    if old <= left:
        return [*_subproof(read, old, start, left, whole), _tree(read, start + left, size - left)]
    return [*_subproof(read, old - left, start + left, size - left, False), _tree(read, start, left)]


def _both(old: int, size: int, whole: bool, proof: list[str], old_root: str) -> tuple[str, str] | None:
    """The roots of the old and of the new tree that the proof amounts to. Reads the proof from its end."""
    if old == size:
        if whole:
            return old_root, old_root
        return (top := proof.pop(), top) if proof else None
    if not proof:
        return None
    left, sibling = _split(size), proof.pop()
    if old <= left:
        inner = _both(old, left, whole, proof, old_root)
        return None if inner is None else (inner[0], joined(inner[1], sibling))
    inner = _both(old - left, size - left, False, proof, old_root)
    return None if inner is None else (joined(sibling, inner[0]), joined(sibling, inner[1]))
