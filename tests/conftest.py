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

#: families that `make quick` leaves out: soak tests by nature, real processes and servers, whole pages, other tools
SLOW = (
    "accounting/certified/",
    "audit/",
    "cli/test_cli_real.py",
    "docs/test_docs.py",
    "gdp/test_gdp_algorithms.py",
    "gdp/test_gdp_golden.py",
    "laws/sampled/",
    "ledger/test_ledger_crashes.py",
    "ledger/test_ledger_machine.py",
    "ledger/test_ledger_races.py",
    "noise/test_noise_power.py",
    "papers/",
    "report/test_report_pictures.py",
    "test_hostile_input.py",
    "truth/",
    "typing/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and item.path.relative_to(here).as_posix().startswith(SLOW):
            item.add_marker(pytest.mark.slow)


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
