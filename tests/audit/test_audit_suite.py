"""Statistical: every sampler and release is audited. The bound stays below the claim and comes near it.

Each audit fails wrongly with probability 1e-6, which is the confidence that it states.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dptally import audit, noise, release

pytestmark = [pytest.mark.statistical, pytest.mark.slow]


@pytest.mark.parametrize("case", audit.suite(), ids=lambda case: case.name)
def test_the_claim_stands_and_the_bound_is_near_it(case):
    result = case.run()
    assert not result.refuted, result
    if case.tight:
        assert result.lower >= 0.9 * result.claimed, result


def test_nothing_is_left_out():
    names = " ".join(case.name for case in audit.suite())
    quiet = {"grid_sensitivity", "natural_grid", "Released", "PoissonSample", "estimate_counts"}
    for module, prefix in ((noise, "noise"), (release, "release")):
        source = Path(module.__file__).read_text()
        public = {line.split(" as ")[1] for line in source.splitlines() if " as " in line}
        for name in public - quiet:
            assert f"{prefix}.{name}" in names, name
