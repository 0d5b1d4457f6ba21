"""Statistical: every sampler and release is audited. The bound stays below the claim and comes near it.

The bytes are fixed, so a run is repeated bit for bit. With other bytes each case would be refuted wrongly
with probability at most 1e-6: the confidence that it states.
"""

from __future__ import annotations

import inspect
import itertools
import math

import numpy as np
import pytest
from fixed_bytes import fix_bytes

from depth import sparse
from dptally import ADD_REMOVE, REPLACE, audit, noise, release
from dptally.audit.claim import measure_of
from dptally.mechanisms import DiscreteLaplace
from dptally.release import ReleaseFunction

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

CASES = audit.suite()

# what is public and draws nothing, or releases nothing
EXEMPT = {
    "noise.grid_sensitivity": "arithmetic",
    "noise.natural_grid": "arithmetic",
    "release.Released": "the type of a release",
    "release.PoissonSample": "the type of a sample",
    "release.Batches": "the type of batches",
    "release.ReleaseFunction": "the type of a release function",
    "release.release_function": "makes a release function of a function; every one it made is audited",
    "release.ModeAccuracy": "the type of an accuracy",
    "release.mode_accuracy": "arithmetic: how often a mode is right, from a lead that the caller supposes",
    "release.draw_runs": "draws a number of runs that depends on no data: release/test_release_search.py",
    "release.search": "runs the caller's own plan, which is accounted by best_of",
    "release.Searched": "the type of a search's result",
    "release.inspect_loader": "reads the settings of a loader, no record",
    "release.ThresholdStream": "what above_threshold asks, query by query",
    "release.estimate_counts": "reads answers that are already public",
}


@pytest.mark.parametrize("case", sparse(CASES, every=5), ids=lambda case: case.name)
def test_the_claim_stands_and_the_bound_is_near_it(case, monkeypatch):
    fix_bytes(monkeypatch, case.name)
    result = case.run()
    assert not result.refuted, result
    assert result.lower >= 0.9 * (result.claimed if case.attainable is None else case.attainable), result


def public(module):
    kept = lambda x: inspect.isfunction(x) or inspect.isclass(x) or isinstance(x, ReleaseFunction)  # noqa: E731
    names = {name for name, value in vars(module).items() if kept(value) and not name.startswith("_")}
    return {f"{module.__name__.split('.')[-1]}.{name}" for name in names}


def test_nothing_is_left_out():
    """Every public name is the target of a case, or is exempt for a reason; and no name is both."""
    audited = {case.target for case in CASES}
    assert audited | set(EXEMPT) == public(noise) | public(release)
    assert not audited & set(EXEMPT)


def test_every_kind_of_noise_and_adjacency_is_audited():
    """Additive releases: scale and sigma, and each adjacency that changes the account."""
    names = {case.name for case in CASES}
    for release_ in ("count", "answer"):
        assert {f"release.{release_}", f"release.{release_}, sigma"} <= names
    for release_, other in (
        ("bounded_sum", "one replaced"),
        ("mean", "size unknown"),
        ("histogram", "one replaced"),
        ("mode", "one replaced"),
    ):
        wanted = {"", ", sigma", f", {other}", f", sigma, {other}"}
        assert {f"release.{release_}{which}" for which in wanted} <= names


def test_only_a_few_claims_have_no_tight_pair():
    """The mode of a replaced record with Laplace noise, the exponential mechanism in few runs, a short stream."""
    loose = {case.target for case in CASES if case.attainable is not None}
    assert loose == {"release.mode", "release.choose", "release.quantile", "release.top_k", "release.above_threshold"}


def test_the_claims_are_those_of_the_releases():
    """Most cases take the claim from the release itself; the histograms are run by whole arrays."""
    bins = {case.name: case.claim for case in CASES if case.target == "release.histogram"}
    for name, claim in bins.items():
        adjacency = REPLACE if "replaced" in name else ADD_REMOVE
        each = claim if adjacency is ADD_REMOVE else claim.parts[0][0]
        noise_of = {"sigma": each.sigma} if "sigma" in name else {"scale": each.scale}
        assert release.histogram([0], categories=(0, 1), adjacency=adjacency, **noise_of).mechanism == claim


def winning(first, second, scale):
    """P(first + Z0 >= second + Z1) for discrete Laplace draws, summed over a square by brute force."""
    a = math.exp(-1 / scale)
    z = np.arange(-120, 121)
    pmf = (1 - a) / (1 + a) * a ** np.abs(z)
    joint = np.outer(pmf, pmf)
    return float(joint[(first + z)[:, None] >= (second + z)[None, :]].sum())


def test_what_the_mode_of_two_can_attain_is_computed():
    (case,) = (case for case in CASES if case.name == "release.mode, one replaced")
    ((each, two),) = case.claim.parts
    assert two == 2
    scale = each.scale
    exact = math.log(winning(1, 1, scale) / winning(0, 2, scale))
    assert case.attainable == pytest.approx(exact, rel=1e-12)
    _, claimed = measure_of(case.claim, None, None)
    assert exact < 0.9 * claimed


def test_no_pair_of_two_categories_is_tight_by_an_event_that_runs_can_see():
    """The claim is approached as the counts part, by ever rarer events: with probability 1e-4 or more on the
    rarer side none comes to 0.93 of it, which is what a certified 0.9 would take.
    """
    for scale, apart in itertools.product((0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0), range(-2, 40)):
        likely, rare = winning(1, apart - 1, scale), winning(0, apart, scale)
        if rare >= 1e-4:
            assert math.log(likely / rare) < 0.93 * 2 / scale
    scale = 0.5  # and the claim is right: far out the ratio goes to it
    assert math.log(winning(1, 39, scale) / winning(0, 40, scale)) > 0.98 * 2 / scale
    assert (2 * DiscreteLaplace(scale)).epsilon(0) == pytest.approx(2 / scale)
