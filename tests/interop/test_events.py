"""Contract: every event of dp-accounting becomes the plan it describes, or is refused by name; never guessed.

Truths: dp-accounting's own PLD accountant (another code, another method) to its error, and closed forms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import dp_accounting as da
import pytest
from dp_accounting import dp_event as de
from hypothesis import given
from hypothesis import strategies as st

import dptally as dp
from dptally.interop.events import EVENTS

ANSWERED = [
    (da.NoOpDpEvent(), dp.Composed(())),
    (da.GaussianDpEvent(1.5), dp.Gaussian(1.5)),
    (da.LaplaceDpEvent(2.0), dp.Laplace(2.0)),
    (de.DiscreteLaplaceDpEvent(0.5, 3), dp.DiscreteLaplace(2.0, 3)),
    (da.ZCDpEvent(0.25), dp.ZCDP(0.25)),
    (da.SelfComposedDpEvent(da.GaussianDpEvent(2.0), 3), 3 * dp.Gaussian(2.0)),
    (da.ComposedDpEvent([da.GaussianDpEvent(2.0), da.LaplaceDpEvent(1.0)]), dp.Gaussian(2.0) + dp.Laplace(1.0)),
    (da.PoissonSampledDpEvent(0.01, da.GaussianDpEvent(1.0)), dp.PoissonSampled(dp.Gaussian(1.0), 0.01)),
    (da.PoissonSampledDpEvent(0.0, da.GaussianDpEvent(0.0)), dp.Composed(())),
    (da.SingleEpochTreeAggregationDpEvent(4.0, 7), 3 * dp.Gaussian(4.0)),
    (da.SingleEpochTreeAggregationDpEvent(4.0, [1, 8, 3]), 4 * dp.Gaussian(4.0)),
    (da.RandomizedResponseDpEvent(1.0, 4), dp.Composed(())),
]


@pytest.mark.parametrize(("event", "plan"), ANSWERED, ids=lambda x: type(x).__name__)
def test_events_become_plans(event: object, plan: dp.Mechanism) -> None:
    assert dp.from_dp_accounting(event) == plan
    assert dp.from_dp_accounting(repr(event)) == plan
    assert dp.from_dp_accounting(event.to_named_tuple()) == plan  # type: ignore[attr-defined]


def test_every_event_of_the_package_is_in_the_table() -> None:
    names = {name for name in dir(de) if name.endswith("DpEvent") and name != "DpEvent"}
    assert names <= set(EVENTS)
    for name in names:
        declared = [field.name for field in getattr(de, name).__attrs_attrs__]
        assert list(EVENTS[name].fields) == declared, name


@pytest.mark.parametrize(
    "event",
    [
        da.GaussianDpEvent(0.8),
        da.SelfComposedDpEvent(da.LaplaceDpEvent(3.0), 7),
        de.DiscreteLaplaceDpEvent(0.7, 2),
        da.SelfComposedDpEvent(da.PoissonSampledDpEvent(0.1, da.GaussianDpEvent(1.3)), 20),
        da.PoissonSampledDpEvent(0.3, da.LaplaceDpEvent(0.9)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_agrees_with_the_loss_distributions_of_the_package(event: da.DpEvent, delta: float) -> None:
    theirs = da.pld.PLDAccountant(value_discretization_interval=1e-4).compose(event).get_epsilon(delta)
    box = dp.from_dp_accounting(event).epsilon_interval(delta)
    assert theirs * (1 + 1e-6) + 1e-9 >= box.lower  # their answer is an upper bound, but for its rounding
    assert theirs <= box.upper + 3e-3  # and near


def test_randomized_response_is_the_closed_form() -> None:
    """k buckets, a uniform answer with probability p: the pure epsilon is log(1 + k (1 - p) / p)."""
    for p, k in [(0.1, 3), (0.7, 2), (0.5, 11)]:
        box = dp.from_dp_accounting(da.RandomizedResponseDpEvent(p, k)).epsilon_interval(0.0)
        truth = math.log(1 + k * (1 - p) / p)
        assert box.lower - 1e-12 <= truth <= box.upper + 1e-15


def test_events_of_newer_sources_are_read_from_text() -> None:
    """Two events are not in 0.6.0; fields as in the newest source: (sigma, sensitivity, dimension)."""
    assert dp.from_dp_accounting("EpsilonDeltaDpEvent(epsilon=1.0, delta=1e-6)") == dp.ApproxDP(1.0, 1e-6)
    one = "DiscreteGaussianDpEvent(sigma=2.0, sensitivity=3.0, dimension=1)"
    assert dp.from_dp_accounting(one) == dp.DiscreteGaussian(2.0, 3)
    unknown = dp.from_dp_accounting("DiscreteGaussianDpEvent(2.0, 3.0)")
    assert unknown == dp.ZCDP(9 / 8)
    assert dp.from_dp_accounting("DiscreteGaussianDpEvent(2.0, 0.0)") == dp.Composed(())


def test_zero_concentration_with_a_constant_on_top() -> None:
    assert dp.from_dp_accounting(da.ZCDpEvent(1.0, 0.5)) == dp.ShiftedZCDP(1.0, 0.5)
    assert dp.from_dp_accounting(da.ZCDpEvent(1.0)) == dp.ZCDP(1.0)
    with pytest.raises(dp.InvalidArgument, match="xi"):
        dp.from_dp_accounting(da.ZCDpEvent(1.0, -0.5))


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (da.GaussianDpEvent(-1.0), "Noise multiplier"),
        (da.PoissonSampledDpEvent(1.1, da.GaussianDpEvent(1.0)), "Sampling rate"),
        (da.SingleEpochTreeAggregationDpEvent(1.0, [-3]), "non-negative"),
    ],
    ids=repr,
)
def test_a_field_out_of_its_domain_is_told_in_their_words_and_ours(event: da.DpEvent, words: str) -> None:
    with pytest.raises(ValueError, match=f"{words}.*must be"):
        dp.from_dp_accounting(event)


@pytest.mark.parametrize(
    "text", ["dp_accounting.GaussianDpEvent(noise_multiplier=np.float64(1.5))", "GaussianDpEvent( 1.5 )"]
)
def test_texts_of_logs(text: str) -> None:
    assert dp.from_dp_accounting(text) == dp.Gaussian(1.5)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (da.NonPrivateDpEvent(), "no epsilon is finite"),
        (da.GaussianDpEvent(0.0), "no noise"),
        (de.DiscreteLaplaceDpEvent(0.0, 1), "no noise"),
        (da.RandomizedResponseDpEvent(0.0, 3), "always tells the truth"),
        (da.UnsupportedDpEvent(), "no description"),
        (da.SampledWithReplacementDpEvent(100, 10, da.GaussianDpEvent(1.0)), "without replacement"),
        (da.PoissonSampledDpEvent(0.1, da.ComposedDpEvent([da.LaplaceDpEvent(1.0)] * 2)), "same sample"),
        ("FancyNewDpEvent(noise=1)", "none is guessed"),
        ("GaussianDpEvent(noise_multiplier=1.0, adaptive=2)", "unknown here"),
    ],
    ids=str,
)
def test_refusals(event: object, words: str) -> None:
    with pytest.raises(dp.Unanswerable, match=words):
        dp.from_dp_accounting(event)


def test_an_event_with_a_new_field_is_refused() -> None:
    @dataclass
    class GaussianDpEvent:
        noise_multiplier: float
        adaptive: bool = False

    with pytest.raises(dp.Unanswerable, match="adaptive"):
        dp.from_dp_accounting(GaussianDpEvent(1.0))


@pytest.mark.parametrize("event", [da.GaussianDpEvent(1.0), da.LaplaceDpEvent(1.0), de.DiscreteLaplaceDpEvent(1.0, 1)])
def test_a_replacement_asks_what_noise_is_a_multiple_of(event: object) -> None:
    with pytest.raises(dp.Unanswerable, match="replace_sensitivity=2"):
        dp.from_dp_accounting(event, adjacency=dp.REPLACE)
    one = dp.from_dp_accounting(event, adjacency=dp.REPLACE, replace_sensitivity=1)
    two = dp.from_dp_accounting(event, adjacency=dp.REPLACE, replace_sensitivity=2)
    assert one == dp.from_dp_accounting(event)
    assert two.parameters()["sensitivity"] == 2 * one.parameters()["sensitivity"]


def test_sampled_replacements_need_the_norm_of_a_record() -> None:
    event = da.PoissonSampledDpEvent(0.1, da.GaussianDpEvent(1.0))
    assert dp.from_dp_accounting(event, dp.REPLACE, 2) == dp.PoissonSampled(dp.Gaussian(1.0), 0.1, dp.REPLACE)
    with pytest.raises(dp.Unanswerable, match="norm of one record"):
        dp.from_dp_accounting(event, dp.REPLACE, 1)


def _sampled(sampler: Any, **length: int) -> dp.Mechanism:
    return dp.Sampled(dp.Gaussian(1.5), sampler, **length)


#: events whose mechanism is one of dptally's: those of newer sources as text
OF_ITS_OWN = [
    (da.SampledWithoutReplacementDpEvent(100, 10, da.GaussianDpEvent(1.5)), _sampled(dp.FixedSize(10, 100), steps=1)),
    (
        da.TruncatedSubsampledGaussianDpEvent(100, 0.1, 20, 1.5),
        _sampled(dp.TruncatedPoisson(0.1, 100, 20), steps=1),
    ),
    (
        "RandomAllocationDpEvent(event=GaussianDpEvent(1.5), num_selected=2, num_steps=10)",
        _sampled(dp.RandomAllocation(10, 2), epochs=1),
    ),
    ("RandomAllocationDpEvent(GaussianDpEvent(1.5), 10, 10)", 10 * dp.Gaussian(1.5)),
    ("RandomAllocationDpEvent(GaussianDpEvent(1.5), 0, 10)", dp.Composed(())),
    (
        de.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.5]),
        dp.MixtureOfGaussians(1.0, (0.0, 1.0), (0.5, 0.5)),
    ),
    (de.RepeatAndSelectDpEvent(da.GaussianDpEvent(2.0), 10.0, 1.0), dp.Gaussian(2.0).best_of(10.0, shape=1.0)),
    (de.RepeatAndSelectDpEvent(da.GaussianDpEvent(2.0), 10.0, math.inf), dp.Gaussian(2.0).best_of(10.0, law="poisson")),
    (de.RepeatAndSelectDpEvent(da.GaussianDpEvent(2.0), 1.0, 0.5), dp.Gaussian(2.0)),
    ("ExponentialMechanismDpEvent(epsilon=1.0)", dp.ExponentialMechanism(1.0)),
    ("PermuteAndFlipDpEvent(epsilon=1.0)", dp.PermuteAndFlip(1.0)),
    ("PermuteAndFlipDpEvent(0.0)", dp.Composed(())),
]


@pytest.mark.parametrize(("event", "plan"), OF_ITS_OWN, ids=lambda x: x if isinstance(x, str) else type(x).__name__)
def test_events_with_a_mechanism_of_their_own(event: object, plan: dp.Mechanism) -> None:
    found = dp.from_dp_accounting(event)
    assert found == plan
    assert dp.from_dp_accounting(event if isinstance(event, str) else repr(event)) == plan
    assert 0 <= found.epsilon(delta=1e-5) < math.inf


def test_more_steps_cannot_be_selected_than_there_are() -> None:
    with pytest.raises(dp.InvalidArgument, match="num_selected must be at most num_steps = 10"):
        dp.from_dp_accounting("RandomAllocationDpEvent(GaussianDpEvent(1.5), 11, 10)")


def test_samples_of_nothing_cost_nothing() -> None:
    for event in (
        da.SampledWithoutReplacementDpEvent(100, 0, da.GaussianDpEvent(1.0)),
        da.TruncatedSubsampledGaussianDpEvent(100, 0.0, 20, 1.0),
        de.MixtureOfGaussiansDpEvent(1.0, [0.0], [1.0]),
        de.DiscreteLaplaceDpEvent(1.0, 0),
        da.SingleEpochTreeAggregationDpEvent(1.0, 0),
    ):
        assert dp.from_dp_accounting(event).epsilon(delta=0.0) == 0.0


@pytest.mark.parametrize(
    "bad",
    [
        da.GaussianDpEvent(-1.0),
        da.GaussianDpEvent(math.nan),
        da.GaussianDpEvent("1"),
        da.PoissonSampledDpEvent(1.5, da.GaussianDpEvent(1.0)),
        da.SelfComposedDpEvent(da.GaussianDpEvent(1.0), -2),
        da.SelfComposedDpEvent(da.GaussianDpEvent(1.0), 2.5),
        da.ComposedDpEvent("abc"),
        17,
        None,
        [],
        da.GaussianDpEvent,
        "gaussian(1)",
        "GaussianDpEvent(1.0",
        "GaussianDpEvent(1.0) + 1",
        "GaussianDpEvent(1, 2)",
        "GaussianDpEvent(1, noise_multiplier=2)",
        "GaussianDpEvent(noise_multiplier=1, noise_multiplier=2)",
        "GaussianDpEvent()",
        "GaussianDpEvent(__import__('os'))",
        "SelfComposedDpEvent(event=GaussianDpEvent(1), 3)",
        "GaussianDpEvent(np.float64())",
        "GaussianDpEvent(foo)",
        "SelfComposedDpEvent(GaussianDpEvent(1.0), None)",
        "ComposedDpEvent([[GaussianDpEvent(1.0)]])",
        "GaussianDpEvent(" + "9" * 500 + ")",
        "ComposedDpEvent(" + "[" * 60 + "]" * 60 + ")",
    ],
    ids=lambda x: repr(x)[:40],
)
def test_bad_events_are_errors_with_a_reason(bad: object) -> None:
    with pytest.raises(dp.InvalidArgument):
        dp.from_dp_accounting(bad)


def test_arguments_are_checked() -> None:
    with pytest.raises(dp.InvalidType, match="adjacency"):
        dp.from_dp_accounting(da.NoOpDpEvent(), adjacency="replace")  # type: ignore[arg-type]
    with pytest.raises(dp.InvalidArgument, match="replace_sensitivity"):
        dp.from_dp_accounting(da.NoOpDpEvent(), replace_sensitivity=3)


def test_an_event_inside_itself_is_refused() -> None:
    event: object = da.GaussianDpEvent(1.0)
    for _ in range(80):
        event = da.SelfComposedDpEvent(event, 1)
    with pytest.raises(dp.InvalidArgument, match="deep"):
        dp.from_dp_accounting(event)


@given(st.floats(0.05, 50.0), st.integers(1, 9))
def test_a_scale_is_rounded_to_the_side_that_tells_more(step: float, reach: int) -> None:
    found = dp.from_dp_accounting(de.DiscreteLaplaceDpEvent(step, reach))
    assert 1.0 / found.parameters()["scale"] >= step * (1 - 2**-53)
    assert found.parameters()["scale"] == pytest.approx(1.0 / step, rel=3e-16)
