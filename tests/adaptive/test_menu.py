"""Contract: no tree of adaptive choices exceeds a menu, and a menu of one item is its composition."""

from __future__ import annotations

import math

import pytest

import dptally as dp
from adaptive import trees
from depth import thinned
from dptally.accounting import adaptive as recursion
from dptally.cli.language import parse

MENUS = {
    "two coins": ([dp.PureDP(0.3), dp.PureDP(1.0)], [trees.pure(0.3), trees.pure(1.0)], 3),
    "three coins": ([dp.PureDP(0.2), dp.PureDP(0.5), dp.PureDP(1.1)], [trees.pure(e) for e in (0.2, 0.5, 1.1)], 2),
    "coins and a leak": (
        [dp.PureDP(0.3), dp.PureDP(1.0), dp.ApproxDP(0.0, 0.2)],
        [trees.pure(0.3), trees.pure(1.0), trees.leak(0.2)],
        2,
    ),
    "response": (
        [dp.RandomizedResponse(0.6, 3), dp.PureDP(0.7)],
        [trees.response(0.6, 3), trees.pure(0.7)],
        2,
    ),
}
EPSILONS = (0.0, 0.05, 0.3, 0.7, 1.2, 1.9, 2.5)


@pytest.mark.parametrize("name", MENUS)
def test_no_tree_of_choices_exceeds_the_menu(name: str) -> None:
    """All functions from histories to items, played out in 40 digits; the best is met to 0.1 %."""
    items, pairs, uses = MENUS[name]
    claimed = [dp.Menu(items, uses).delta(epsilon) for epsilon in EPSILONS]
    best = [trees.mpf(0)] * len(EPSILONS)
    for rows in trees.transcripts(pairs, uses):
        best = [max(before, trees.delta(rows, epsilon)) for before, epsilon in zip(best, EPSILONS, strict=True)]
    for attained, bound in zip(best, claimed, strict=True):
        assert attained <= bound
        assert bound <= attained * trees.mpf("1.002") + trees.mpf("1e-4")


def test_a_path_wise_epsilon_is_no_filter() -> None:
    """PureDP(0.3), then PureDP(1.0) after one answer and a 0.2 leak after the other. Both paths stay within (0.7, 0.2);
    the whole does not.
    """
    for second in (dp.PureDP(1.0), dp.ApproxDP(0.0, 0.2)):
        assert (dp.PureDP(0.3) + second).delta(0.7) <= 0.2 + 1e-12
    menu = [trees.pure(0.3), trees.pure(1.0), trees.leak(0.2)]
    chosen = {(): 0, (0,): 1, (1,): 2, (2,): 0}
    rows = list(trees._played(menu, chosen, 2, (), trees.mpf(1), trees.mpf(1)))
    attained = trees.delta(rows, 0.7)
    assert float(attained) == pytest.approx(0.2746, abs=5e-5)
    assert attained > 0.2
    assert dp.Menu([dp.PureDP(0.3), dp.PureDP(1.0), dp.ApproxDP(0.0, 0.2)], uses=2).delta(0.7) >= attained


@pytest.mark.parametrize(
    ("item", "uses"),
    [
        (dp.PureDP(0.1), 20),
        (dp.Laplace(4.0), 7),
        (dp.Gaussian(6.0), 10),
        (dp.PoissonSampled(dp.Gaussian(1.0), 0.02), 8),
        (dp.ApproxDP(0.2, 1e-7), 12),
        (2 * dp.Laplace(3.0), 4),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_menu_of_one_item_is_its_composition(item: dp.Mechanism, uses: int) -> None:
    menu, plan = dp.Menu([item], uses), uses * item
    truth, box = plan.epsilon_interval(1e-5), menu.epsilon_interval(1e-5)
    assert truth.lower * (1 - 1e-14) <= box.upper <= truth.upper * 1.01
    assert box.lower == 0.0


def test_more_to_choose_from_and_more_uses_cost_more() -> None:
    small = dp.Menu([dp.Gaussian(5.0)], 4).epsilon(1e-6)
    assert dp.Menu([dp.Gaussian(5.0), dp.Laplace(6.0)], 4).epsilon(1e-6) >= small * (1 - 1e-3)  # the lattices differ
    assert dp.Menu([dp.Gaussian(5.0)], 5).epsilon(1e-6) > small * 1.05


@pytest.mark.parametrize("seed", range(thinned(6)))
def test_masses_dominate_every_item_at_every_epsilon(seed: int) -> None:
    """What the recursion rests on, asked between the lattice points and beyond them."""
    item = (dp.Laplace(2.0), dp.Gaussian(1.5), dp.PureDP(0.77), dp.ApproxDP(0.4, 1e-3), dp.RandomizedResponse(0.9, 4))[
        seed % 5
    ]
    forward, backward = item._both_directions()
    for step in (0.03, 0.1, 0.37):
        masses = recursion._masses(forward, backward, step, 30.0)
        for epsilon in (0.0, 0.011, 0.2, 0.5432, 1.0, 2.22, 5.0):
            at = [step * (masses.first + k) for k in range(len(masses.mass))]
            bound = masses.infinite + math.fsum(
                float(p) * -math.expm1(epsilon - loss)
                for p, loss in zip(masses.mass, at, strict=True)
                if loss > epsilon
            )
            assert bound * (1 + 1e-13) >= item.delta_interval(epsilon).lower
        assert masses.infinite + math.fsum(masses.mass) >= 1.0


def test_pure_menus_stay_pure_and_tiny_deltas_are_not_lost() -> None:
    assert dp.Menu([dp.PureDP(1.0)], 1000).epsilon(0.0) == 1000.0
    assert dp.Menu([dp.PureDP(0.25), dp.Laplace(8.0)], 6).epsilon(0.0) == pytest.approx(1.5, rel=1e-12)
    table = recursion.menu_table(dp.Menu([dp.PureDP(0.001)], 2000).pairs(), 2000)
    assert 0 < table.delta[-2] < 1e-290  # 2^-2000 is no double, and is not rounded to nothing
    assert table.points[-1] == (pytest.approx(2.0), 0.0)
    assert dp.Menu([dp.Gaussian(5.0)], 3).epsilon(0.0) == math.inf
    far = dp.Menu([dp.Gaussian(5.0)], 3).epsilon(1e-200)
    assert (3 * dp.Gaussian(5.0)).epsilon(1e-200) <= far <= 1.05 * (3 * dp.Gaussian(5.0)).epsilon(1e-200)


def test_a_menu_is_a_plan() -> None:
    menu = dp.Menu([dp.Gaussian(4.0), dp.Laplace(3.0)], uses=3)
    assert menu == dp.Menu([dp.Laplace(3.0), dp.Gaussian(4.0), dp.Laplace(3.0)], uses=3)
    assert dp.from_json(dp.to_json(menu)) == menu
    assert parse(repr(menu)) == menu
    assert (menu + dp.Laplace(10.0)).epsilon(1e-6) > menu.epsilon(1e-6)
    assert menu.group(2).epsilon(1e-6) > menu.epsilon(1e-6)
    assert "docs/adaptive.md" in str(menu.explain(1e-6))
    assert dp.Menu([dp.Laplace(3.0)], uses=0).epsilon(0.0) == 0.0
    assert dp.Menu([dp.PureDP(0.5), dp.ApproxDP(0.0, 0.1)], 1).delta(0.5) == pytest.approx(0.1)
    assert dp.Menu([0 * dp.Laplace(1.0)], 3).epsilon(0.0) == 0.0


def test_what_a_menu_refuses() -> None:
    with pytest.raises(dp.Unanswerable, match="Renyi"):
        dp.Menu([dp.ZCDP(0.1)], 2).epsilon(1e-6)
    with pytest.raises(dp.InvalidArgument, match="not menus"):
        dp.Menu([dp.Menu([dp.PureDP(1.0)], 2)], 2)
    with pytest.raises(dp.InvalidArgument, match="at most 64"):
        dp.Menu([dp.PureDP(0.1 + i / 100) for i in range(65)], 2)
    with pytest.raises(dp.InvalidArgument, match="too long"):
        recursion._check_work(2.1e9)
    with pytest.raises(dp.Unanswerable, match="not an item"):
        dp.Menu([dp.PureDP(1.0)], 2).uses_of(dp.PureDP(0.5))


def test_losses_of_every_size_are_answered() -> None:
    assert dp.Menu([dp.PureDP(700.0)], 3).epsilon(1e-6) == pytest.approx(2100.0 - 1e-6, abs=1e-8)
    assert dp.Menu([dp.PureDP(1e-300)], 2).epsilon(0.0) == pytest.approx(2e-300, rel=1e-12)
    assert dp.Menu([dp.Gaussian(1e-3)], 3).epsilon(1e-6) >= (3 * dp.Gaussian(1e-3)).epsilon_interval(1e-6).lower
    assert dp.Menu([dp.ApproxDP(0.0, 1.0)], 2).epsilon(0.5) == math.inf
    with pytest.raises(dp.Unanswerable, match=r"1e[+]16"):
        dp.Menu([dp.Gaussian(1e-40)], 2).epsilon(1e-6)


def test_the_odometer_covers_the_whole_account() -> None:
    menu = dp.Menu([dp.PureDP(0.3), dp.Laplace(5.0)], 4)
    pairs = menu.pairs()
    readings = [recursion.odometer(pairs, spent, 4, 1e-3) for spent in range(5)]
    assert readings[0] == 0.0
    assert readings == sorted(readings)
    assert readings[4] > menu.epsilon(1e-3)
    assert readings[4] <= 1.2 + 1e-9  # four times the largest loss
