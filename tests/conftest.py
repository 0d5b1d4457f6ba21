"""One hypothesis profile for the whole suite: the same examples every time, and no deadline on a busy
machine; and the arithmetic of the engine for tests of what it calls.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))  # the helpers golden.py and truth/ are imported by name

settings.register_profile(
    "suite", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")


@pytest.fixture
def quiet() -> Iterator[None]:
    """As in the engine: intermediate infinities are meant."""
    with np.errstate(all="ignore"):
        yield


@pytest.fixture(autouse=True)
def _registry_as_shipped() -> Iterator[None]:
    """What a test registers is gone after it."""
    from dptally.mechanisms import registry

    before = dict(registry._FOREIGN)
    yield
    registry._FOREIGN.clear()
    registry._FOREIGN.update(before)
