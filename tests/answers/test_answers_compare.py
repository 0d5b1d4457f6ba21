"""Contract: ``compare`` prints, sorts and serialises."""

import json

import pytest

from dptally.answers.compare import compare
from dptally.errors import InvalidArgument, InvalidType
from dptally.mechanisms import Gaussian, Laplace


def test_table():
    comparison = compare(10 * Gaussian(10.0) + 5 * Laplace(5.0), delta=1e-6)
    lines = str(comparison).splitlines()
    assert lines[0] == repr(comparison.plan)
    assert lines[3].split()[:2] == ["framework", "epsilon"]
    assert len(lines) == 5 + len(comparison.rows)
    assert any(line.startswith("pure DP") and "no answer: " in line for line in lines)
    columns = {line.index("  ", len(comparison.rows[0].framework)) for line in lines[5:6]}
    assert len(columns) == 1


def test_best_and_dict():
    comparison = compare(Gaussian(1.0), delta=1e-5)
    assert comparison.best.epsilon == min(row.epsilon for row in comparison.rows if row.epsilon is not None)
    assert comparison.best.epsilon == pytest.approx(4.377178095681, rel=1e-10)
    table = json.loads(json.dumps(comparison.to_dict()))
    assert table["delta"] == 1e-5
    assert table["rows"][0]["epsilon"] == comparison.best.epsilon


def test_bad_input():
    with pytest.raises(InvalidType, match="plan"):
        compare("Gaussian", delta=1e-5)
    with pytest.raises(InvalidArgument, match="delta"):
        compare(Gaussian(1.0), delta=2.0)
