"""One hypothesis profile for the whole suite: the same examples every time, and no deadline on a busy
machine; and the arithmetic of the engine for tests of what it calls.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# the numpy code is the reference: the suite tests it, and tests/kernel the kernel beside it
os.environ["DPTALLY_KERNEL"] = os.environ.get("DPTALLY_TEST_KERNEL", "0")
sys.path.insert(0, str(Path(__file__).parent))  # the helpers golden.py and truth/ are imported by name

#: families that `make quick` leaves out: soak tests by nature, real processes and servers, whole pages, other tools
SLOW = (
    "accounting/",
    "audit/",
    "cli/test_cli_real.py",
    "docs/test_docs.py",
    "gdp/",
    "kernel/",
    "laws/",
    "ledger/test_ledger_crashes.py",
    "ledger/test_ledger_filters.py",
    "ledger/test_ledger_machine.py",
    "ledger/test_ledger_races.py",
    "ledger/test_ledger_tampering.py",
    "noise/",
    "papers/",
    "release/",
    "report/test_report_pictures.py",
    "test_golden_rest.py",
    "test_hostile_input.py",
    "truth/",
    "typing/",
)
#: depth, not breadth: what these run is covered by other tests, so `make cover` leaves them out
DEPTH = (
    "accounting/certified/test_containment",
    "audit/test_audit_suite.py",
    "exact/",
    "truth/",
)
#: one file of each of them that is fast, and tells early that something is wrong
FAST = ("accounting/certified/test_engine.py", "accounting/test_explain.py", "gdp/test_gdp_contract.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        name = item.path.relative_to(here).as_posix() if item.path.is_relative_to(here) else ""
        if name.startswith(SLOW) and name not in FAST:
            item.add_marker(pytest.mark.slow)
        if name.startswith(DEPTH):
            item.add_marker(pytest.mark.depth)


settings.register_profile(
    "suite", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", parent=settings.get_profile("suite"), max_examples=15)
settings.load_profile("quick" if os.environ.get("DPTALLY_QUICK") else "suite")


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
