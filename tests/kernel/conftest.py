"""Tests of the compiled kernel: each asks for the module, or for the engine with it in use."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import kernel_built
import pytest

from dptally.accounting.certified.contour import curve
from dptally.numerics import compiled


@pytest.fixture(scope="session")
def module() -> ModuleType:
    return kernel_built.loaded()


@pytest.fixture
def in_use(module: ModuleType) -> Iterator[ModuleType]:
    """The engine with the kernel; kept contours are forgotten before and after."""
    curve._kept.cache_clear()
    with compiled.switched(module):
        yield module
    curve._kept.cache_clear()
