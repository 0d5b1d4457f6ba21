"""The compiled kernel, where it was built (``make kernel``): what it is for and what it proves is in docs/kernel.md.

Everything works without it. It is used where it can be loaded, was built for this version, and the environment variable
``DPTALLY_KERNEL`` is not 0.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

__all__ = ["INTERFACE", "described", "kernel", "switched"]

INTERFACE = "0.2.0/1"  # version and number of the functions' signatures: kernel/build.py compiles it in

_SWITCHED_OFF = "switched off by DPTALLY_KERNEL=0"


def _loaded() -> tuple[ModuleType | None, str]:
    """(the module or None, how to say so)."""
    if os.environ.get("DPTALLY_KERNEL", "") == "0":
        return None, _SWITCHED_OFF
    try:
        module = importlib.import_module("dptally._kernel")
    except ModuleNotFoundError:
        return None, "not built"
    except ImportError as failure:
        return None, f"cannot be loaded: {failure}"
    stamp = getattr(module, "interface", "none")
    if stamp != INTERFACE:
        return None, f"built for {stamp}, not for {INTERFACE}: make kernel"
    return module, "in use"


_module, _described = _loaded()


def kernel() -> Any:
    """The compiled module, or None."""
    return _module


def described() -> str:
    """Whether the kernel is in use, and if not, why."""
    return _described


@contextmanager
def switched(module: ModuleType | None) -> Iterator[None]:
    """With this module, or with none, for a while: for tests and benchmarks, in one thread."""
    global _module, _described
    kept = _module, _described
    _module, _described = module, "in use" if module is not None else "switched off"
    try:
        yield
    finally:
        _module, _described = kept
