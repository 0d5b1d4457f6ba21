"""The kernel, compiled into a directory of its own: whatever lies beside the sources is neither used nor touched."""

from __future__ import annotations

import importlib.util
import runpy
import sys
import tempfile
from functools import cache
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BUILD = Path(__file__).parents[2] / "kernel" / "build.py"
SANITIZED = ("-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def build_to(directory: Path, *extra: str, script: Path = BUILD) -> Path:
    """The path of the module; skips, and says so, where nothing can be compiled."""
    if not script.exists():
        pytest.skip("the C sources are not here: installed from a wheel")
    recipe: dict[str, Any] = runpy.run_path(str(script))
    if recipe["compiler"]() is None:
        pytest.skip("NO C COMPILER: the kernel is not tested")
    return Path(recipe["build"](directory, extra))


@cache
def loaded() -> ModuleType:
    """Compiled once for each test process."""
    directory = Path(tempfile.mkdtemp(prefix="dptally-kernel-"))
    return load(build_to(directory))


def load(path: Path) -> ModuleType:
    loader = ExtensionFileLoader("dptally._kernel", str(path))
    spec = importlib.util.spec_from_loader("dptally._kernel", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules.pop("dptally._kernel", None)
    return module
