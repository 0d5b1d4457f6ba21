"""Statistical: the audits' power. Every planted bug is refuted, with fixed bytes; the suite's right mechanisms are
not.
"""

from __future__ import annotations

import pytest
from fixed_bytes import fix_bytes
from planted import PLANTED

from dptally import audit

pytestmark = pytest.mark.statistical


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name)
def test_every_planted_bug_is_refuted(bug, monkeypatch):
    fix_bytes(monkeypatch, bug.name)
    result = audit.run(
        bug.mechanism, bug.d0, bug.d1, bug.claim, samples=bug.samples, batched=bug.batched, **bug.options
    )
    assert result.refuted, result


def test_there_are_enough_of_them():
    assert len({bug.name for bug in PLANTED}) >= 20
