"""Contract: DptallyAccountant is a PrivacyAccountant of dp-accounting, with certified answers."""

from __future__ import annotations

import math

import dp_accounting as da
import numpy as np
import pytest
from dp_accounting import dp_event as de

import dptally as dp
from dptally.interop.dp_accounting import DptallyAccountant

RELATION = da.NeighboringRelation
RUN = da.SelfComposedDpEvent(da.PoissonSampledDpEvent(0.01, da.GaussianDpEvent(1.0)), 1000)


def test_compose_ledger_and_answers() -> None:
    account = DptallyAccountant().compose(RUN).compose(da.LaplaceDpEvent(2.0), 3)
    plan = dp.dpsgd(1.0, 0.01, 1000) + 3 * dp.Laplace(2.0)
    assert account.plan == plan
    assert account.get_epsilon(1e-5) == plan.epsilon(1e-5)
    assert account.get_delta(2.0) == plan.delta(2.0)
    assert account.get_epsilon_interval(1e-5) == plan.epsilon_interval(1e-5)
    assert dp.from_dp_accounting(account.ledger) == plan
    assert account.neighboring_relation is RELATION.ADD_OR_REMOVE_ONE


def test_calibrates_with_the_package() -> None:
    def make(noise: float) -> da.DpEvent:
        return da.SelfComposedDpEvent(da.PoissonSampledDpEvent(0.01, da.GaussianDpEvent(noise)), 100)

    found = da.calibrate_dp_mechanism(DptallyAccountant, make, 1.0, 1e-5, tol=1e-4)
    assert dp.dpsgd(found, 0.01, 100).epsilon(1e-5) <= 1.0
    assert dp.dpsgd(found - 2e-4, 0.01, 100).epsilon(1e-5) > 1.0


def test_true_positive_rates_are_the_tradeoff() -> None:
    account = DptallyAccountant().compose(da.GaussianDpEvent(1.0))
    rates = account.get_true_positive_rates([0.01, 0.1], deltas=[1e-5])
    assert rates == pytest.approx(1 - dp.Gaussian(1.0).tradeoff([0.01, 0.1]))
    assert (DptallyAccountant().compose(da.NonPrivateDpEvent()).get_true_positive_rates(np.array([0.5])) == 1.0).all()


def test_nothing_and_everything() -> None:
    account = DptallyAccountant()
    assert account.get_epsilon(0.0) == 0.0
    assert account.get_delta(math.inf) == 0.0
    account.compose(da.ComposedDpEvent([da.NoOpDpEvent(), da.NonPrivateDpEvent()]))
    assert account.get_epsilon(0.5) == math.inf
    assert account.get_epsilon_interval(1.0).lower == 0.0
    assert account.get_delta(100.0) == 1.0
    approx = DptallyAccountant()
    approx._counts[dp.ApproxDP(1.0, 1e-5)] = 1
    assert approx.get_delta(math.inf) >= 1e-5


def test_supports_changes_nothing_and_names_the_event() -> None:
    account = DptallyAccountant()
    bad = da.ComposedDpEvent([da.GaussianDpEvent(1.0), da.NonPrivateDpEvent(), da.UnsupportedDpEvent()])
    assert not account.supports(bad)
    with pytest.raises(da.UnsupportedEventError, match="caused by subevent UnsupportedDpEvent"):
        account.compose(bad)
    assert account.get_epsilon(1e-5) == 0.0
    with pytest.raises(ValueError, match="noise_multiplier"):
        account.compose(da.GaussianDpEvent(-1.0))


@pytest.mark.parametrize(
    ("event", "good"),
    [
        (da.RandomizedResponseDpEvent(0.5, 3), {RELATION.REPLACE_ONE, RELATION.REPLACE_SPECIAL}),
        (da.SingleEpochTreeAggregationDpEvent(1.0, 8), {RELATION.REPLACE_SPECIAL}),
        (da.GaussianDpEvent(1.0), {RELATION.ADD_OR_REMOVE_ONE, RELATION.REPLACE_SPECIAL}),
    ],
)
def test_relations(event: da.DpEvent, good: set[da.NeighboringRelation]) -> None:
    for relation in RELATION:
        assert DptallyAccountant(relation).supports(event) is (relation in good)
    assert not DptallyAccountant(RELATION.REPLACE_ONE).supports(de.MixtureOfGaussiansDpEvent(1.0, [1.0], [1.0]))


def test_the_two_accountants_of_the_package_disagree_and_both_readings_are_here() -> None:
    """0.6.0: RDP and PLD answer one Gaussian event under REPLACE_ONE with half and twice the noise."""
    event, delta = da.GaussianDpEvent(3.0), 1e-5
    pld = da.pld.PLDAccountant(RELATION.REPLACE_ONE).compose(event).get_epsilon(delta)
    rdp = da.rdp.RdpAccountant(neighboring_relation=RELATION.REPLACE_ONE).compose(event).get_epsilon(delta)
    norm = DptallyAccountant(RELATION.REPLACE_ONE, replace_sensitivity=2).compose(event).get_epsilon(delta)
    change = DptallyAccountant(RELATION.REPLACE_ONE, replace_sensitivity=1).compose(event).get_epsilon(delta)
    assert pld == pytest.approx(norm, rel=1e-3)
    assert change < rdp < 1.5 * change < norm
    with pytest.raises(da.UnsupportedEventError, match="replace_sensitivity"):
        DptallyAccountant(RELATION.REPLACE_ONE).compose(event)


def test_counts_of_randomized_response_are_counted() -> None:
    """0.6.0's PLD accountant ignores the count of this event: ten answers cost what one does."""
    event = da.RandomizedResponseDpEvent(0.5, 2)
    once = da.pld.PLDAccountant(RELATION.REPLACE_ONE).compose(event).get_epsilon(1e-6)
    ten = da.pld.PLDAccountant(RELATION.REPLACE_ONE).compose(event, 10).get_epsilon(1e-6)
    ours = DptallyAccountant(RELATION.REPLACE_ONE).compose(event, 10).get_epsilon(1e-6)
    assert ours == (10 * dp.RandomizedResponse(0.75)).epsilon(1e-6)
    assert ours > 5 * once
    assert ten == pytest.approx(once) or ten == pytest.approx(ours, rel=1e-3)


def test_arguments_are_checked() -> None:
    with pytest.raises(dp.InvalidArgument, match="neighboring_relation"):
        DptallyAccountant("add")  # type: ignore[arg-type]
    with pytest.raises(dp.InvalidArgument, match="replace_sensitivity"):
        DptallyAccountant(replace_sensitivity=3)


@pytest.mark.parametrize(("lie", "buckets"), [(0.2, 2), (0.5, 4), (0.9, 10)])
def test_a_special_record_is_answered_by_a_uniform_bucket(lie: float, buckets: int) -> None:
    """delta by enumeration of the two kinds of buckets, in both directions; not by the pair of two true answers."""
    account = DptallyAccountant(da.NeighboringRelation.REPLACE_SPECIAL).compose(
        da.RandomizedResponseDpEvent(lie, buckets)
    )
    told = [1 - lie + lie / buckets] + [lie / buckets] * (buckets - 1)
    for epsilon in (0.0, 0.3, 0.7):
        odds = math.exp(epsilon)
        remove = sum(max(0.0, p - odds / buckets) for p in told)
        add = sum(max(0.0, 1 / buckets - odds * p) for p in told)
        box = account.get_delta_interval(epsilon)
        assert box.lower - 1e-15 <= max(remove, add) <= box.upper + 1e-15
        assert box.width < 1e-14


def test_the_count_of_a_special_response_is_kept() -> None:
    account = DptallyAccountant(da.NeighboringRelation.REPLACE_SPECIAL)
    account.compose(da.RandomizedResponseDpEvent(0.5, 4), 10)
    assert account.get_epsilon(1e-9) > 5 * math.log(2.5)
