"""Contract: the facts behind an answer, the sources, and printed numbers that stay on the safe side."""

import importlib
import math
import pkgutil
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dptally.accounting
import dptally.laws
from dptally.accounting import approximate, concentrated, renyi
from dptally.accounting.citations import SOURCES, cited, unknown_tags
from dptally.accounting.explain import facts
from dptally.conversions import EDGES
from dptally.law import Law
from dptally.mechanisms import ApproxDP, Gaussian, Laplace, dpsgd
from dptally.numerics.shown import shown_down, shown_up


def all_laws(cls=Law):
    for child in cls.__subclasses__():
        if child.__module__.startswith("dptally."):
            yield child
        yield from all_laws(child)


def our_modules():
    """Every module below the two that hold theorems: only an imported law is among the subclasses."""
    for package in (dptally.laws, dptally.accounting):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(found.name)


def theorem_strings():
    for module in our_modules():
        yield from (text for name, text in vars(module).items() if name.endswith("THEOREM") and isinstance(text, str))
    yield from (edge.theorem for edge in EDGES)
    for table in (renyi.CONVERSIONS, concentrated.CONVERSIONS, approximate.COMPOSITIONS):
        yield from table.values()
    yield from (str(law.theorem) for law in all_laws() if isinstance(law.theorem, str) and law.theorem)


def test_every_source_that_a_theorem_names_is_in_the_table():
    assert unknown_tags(theorem_strings()) == ()


def test_every_theorem_names_a_source():
    for theorem in theorem_strings():
        assert cited([theorem]) or "basic composition" in theorem or "dptally" in theorem, theorem


def test_the_table_is_sound():
    assert len({source.tag for source in SOURCES}) == len(SOURCES)
    assert len({source.key for source in SOURCES}) == len(SOURCES)
    for source in SOURCES:
        assert str(source.year) in str(source)
        assert source.bibtex().startswith(f"@{source.entry[0]}{{{source.key},")
        assert "doi = {10." in source.bibtex() or not source.arxiv
    assert unknown_tags(["Nobody 1999, Thm. 1"]) == ("Nobody 1999",)


def test_facts_of_a_gaussian():
    found = facts(Gaussian(1.0).directions(), 1e-5, 1)
    assert found.epsilon.lower <= 4.377178095681224628 <= found.epsilon.upper
    assert found.mu == pytest.approx(1.0)
    assert found.rho == pytest.approx(0.5)
    assert found.advantage == pytest.approx(math.erf(0.5 / math.sqrt(2)))
    assert found.power_at_one_percent == pytest.approx(0.09236, abs=1e-4)
    assert "Dong, Roth, Su 2022" in {source.tag for source in found.sources}


def test_facts_of_plans_without_mu_or_rho():
    found = facts(ApproxDP(1.0, 0.01).directions(), 0.1, 1)
    assert found.mu is None
    assert found.rho is None
    found = facts(dpsgd(1.0, 0.1, 10).directions(), 1e-5, 10)
    assert found.rho is None
    assert any("each direction" in step for step in found.route)
    assert any("10 steps add" in step for step in found.route)
    nothing = facts((0 * Laplace(1.0)).directions(), 0.1, 0)
    assert nothing.theorems == ()
    assert nothing.epsilon.upper == 0


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 12))
def test_shown_numbers_are_on_their_side(value, digits):
    above, below = shown_up(value, digits), shown_down(value, digits)
    if math.isfinite(float(above)) and abs(value) > 1e-290:
        assert Decimal(above) >= Decimal(value)
        assert Decimal(below) <= Decimal(value)


def test_shown_infinity():
    assert shown_up(math.inf) == "inf"
