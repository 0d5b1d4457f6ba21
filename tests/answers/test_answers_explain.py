"""Contract: the page that ``explain`` writes."""

import json

import pytest

from dptally.answers.explain import explain
from dptally.errors import InvalidArgument, InvalidType
from dptally.mechanisms import ZCDP, Gaussian, GaussianDP, Laplace, PureDP, dpsgd

PLAN = dpsgd(1.0, 0.01, 1000) + GaussianDP(0.05)


@pytest.fixture(scope="module")
def explanation():
    return explain(PLAN, 1e-6)


def test_the_page_has_every_section_and_the_answer(explanation):
    page = str(explanation)
    for title in ("plan", "what it means", "assumptions", "route", "theorems", "sources"):
        assert f"\n{title}\n" in page
    assert page.startswith("epsilon = ")
    assert "at delta = 1e-06" in page
    assert "1000 x PoissonSampled" in page
    assert "the privacy losses of 1001 steps add" in page
    assert "rate 0.01" in page
    assert "ADD_REMOVE" in page
    assert "not checked" in page
    assert "[Zhu, Dong, Wang 2022] Yuqing Zhu" in page


def test_the_printed_epsilon_is_not_below_the_answer(explanation):
    printed = float(str(explanation).split()[2])
    assert printed >= explanation.facts.epsilon.upper
    assert printed == pytest.approx(PLAN.epsilon(1e-6), rel=1e-6)


def test_dict_and_bibtex():
    explanation = explain(Gaussian(2.0), 1e-5)
    table = json.loads(json.dumps(explanation.to_dict()))
    assert table["epsilon"]["upper"] == Gaussian(2.0).epsilon(1e-5)
    assert table["meaning"]["gaussian_mu"] == pytest.approx(0.5)
    assert table["parts"][0]["count"] == 1
    assert "@article{dong2022gaussian," in explanation.bibtex()
    assert "Gaussian DP with mu = 0.5" in str(explanation)


def test_renyi_only_and_nothing():
    page = str(explain(ZCDP(0.5), 1e-5))
    assert "upper bounds from Renyi divergences only" in page
    assert "rho = 0.5" in page
    assert "declared guarantees are taken as true" in page
    assert "every record joins" not in str(explain(Laplace(2.0) + PureDP(0.1), 1e-3))
    page = str(explain(0 * Gaussian(1.0), 1e-5))
    assert page.startswith("epsilon = 0 at")
    assert "nothing was run" in page


def test_bad_input():
    with pytest.raises(InvalidArgument, match="delta"):
        explain(Gaussian(1.0), -1.0)
    with pytest.raises(InvalidType, match="plan"):
        explain("plan", 0.1)
