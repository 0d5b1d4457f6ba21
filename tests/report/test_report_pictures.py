"""Golden: the pictures draw the library's answers, checked by the data that was drawn."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dptally as dp
from dptally import report
from dptally.report import figure

plt = figure.pyplot()
LAPLACE = dp.Laplace(scale=2.0)
GAUSSIAN = 4 * dp.Gaussian(sigma=4.0)  # mu = 1/2


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    yield
    plt.close("all")


def line(ax: Any, label: str) -> tuple[np.ndarray, np.ndarray]:
    """The data of the only line whose label starts so."""
    (found,) = [one for one in ax.get_lines() if str(one.get_label()).startswith(label)]
    return np.asarray(found.get_xdata(), float), np.asarray(found.get_ydata(), float)


def test_steps_with_a_budget() -> None:
    ax = report.plot_steps(dp.Gaussian(10.0), 100, 1e-5, budget=2.0, points=9)
    steps, epsilons = line(ax, "certified")
    assert (steps[0], steps[-1], len(steps)) == (1, 100, 9)
    assert epsilons.tolist() == dp.Gaussian(10.0).epsilon_curve([int(n) for n in steps], 1e-5)
    assert epsilons[-1] == pytest.approx((100 * dp.Gaussian(10.0)).epsilon(1e-5), rel=1e-9)
    assert [part.tolist() for part in line(ax, "stop after step 25")] == [[25.0], [2.0]]
    assert set(line(ax, "budget 2")[1]) == {2.0}


@pytest.mark.parametrize(("budget", "stop"), [(0.1, None), (0.5, 2), (50.0, 10)])
def test_the_stopping_point(budget: float, stop: int | None) -> None:
    found = report.epsilon_curve(dp.Gaussian(10.0), [5, 10], 1e-5, budget)
    assert found.stop == stop
    if stop is not None:
        assert (stop * dp.Gaussian(10.0)).epsilon(1e-5) <= budget
    report.plot_steps(dp.Gaussian(10.0), 10, 1e-5, budget, points=3)


def test_a_curve_of_no_steps() -> None:
    with pytest.raises(dp.InvalidArgument, match="steps"):
        report.epsilon_curve(LAPLACE, [], 1e-5)
    assert report.epsilon_curve(LAPLACE, [2, 1, 2], 1e-5).steps == (1, 2)


def test_profile() -> None:
    deltas = [1e-2, 1e-6, 1e-10]
    ax = report.plot_profile(GAUSSIAN, deltas)
    epsilons, drawn = line(ax, "certified upper end")
    assert drawn.tolist() == deltas
    assert epsilons.tolist() == [GAUSSIAN.epsilon(delta) for delta in deltas]
    rows = {row.framework: row.epsilon for row in dp.compare(GAUSSIAN, 1e-6).rows}
    name = "Renyi DP, tightest conversion"
    assert line(ax, name)[0][1] == rows[name]
    assert ax.get_yscale() == "log"


def test_profile_of_a_guarantee_without_finite_epsilons() -> None:
    ax = report.plot_profile(dp.ApproxDP(1.0, 0.5), [1e-2, 1e-3])
    assert np.isinf(line(ax, "certified upper end")[0]).all()


def test_tradeoff_of_gaussian_noise_is_its_own_fit() -> None:
    ax = report.plot_tradeoff(GAUSSIAN, points=8)
    rates, wrong = line(ax, "no attacker")
    assert wrong == pytest.approx(GAUSSIAN.tradeoff(rates), rel=1e-12)
    assert "mu = 0.5 (fit" in [str(text.get_label()) for text in ax.get_lines()][1]
    assert line(ax, "mu-GDP")[1] == pytest.approx(wrong, abs=1e-9)
    (inset,) = ax.child_axes
    assert (inset.get_xscale(), inset.get_yscale()) == ("log", "log")
    assert inset.get_lines()[0].get_ydata() == pytest.approx(1 - wrong[1:-1])


def test_tradeoff_is_nowhere_drawn_above_the_truth() -> None:
    plan = 3 * dp.Laplace(2.0) + dp.Gaussian(2.0)
    rates, wrong = line(report.plot_tradeoff(plan), "no attacker")
    between = np.array([1e-4, 0.0123, 0.0777, 0.1511, 0.43, 0.7, 0.95])
    drawn, best = np.interp(between, rates, wrong), plan.tradeoff(between)
    assert (drawn <= best * (1 + 1e-6)).all()
    assert (drawn >= best - 2e-3).all()


def test_the_steps_of_a_longer_plan_are_its_runs() -> None:
    ax = report.plot_steps(GAUSSIAN, 30, 1e-5, budget=5.0)
    assert ax.get_xlabel() == "runs of the whole plan"
    assert line(ax, "stop after run")[1] == [5.0]
    assert report.plot_steps(dp.Gaussian(4.0), 3, 1e-5).get_xlabel() == "steps"


def test_tradeoff_with_a_given_or_without_a_mu() -> None:
    assert len(line(report.plot_tradeoff(LAPLACE, points=4, mu=1.0), "mu-GDP, mu = 1 (given)")[0]) > 100
    for plan in (dp.RenyiDP((2.0,), (0.5,)), dp.ApproxDP(0.0, 1.0)):
        labels = [str(one.get_label()) for one in report.plot_tradeoff(plan, points=4).get_lines()]
        assert not any("mu-GDP" in label for label in labels)


def test_renyi() -> None:
    ax = report.plot_renyi(GAUSSIAN, 1e-5, points=10)
    orders, values = line(ax, "Renyi divergence")
    assert values == pytest.approx(0.125 * orders)
    (order,), (value,) = line(ax, "chosen order")
    assert value == GAUSSIAN.renyi(order)
    assert orders[0] < order < orders[-1]


def test_renyi_of_plans_at_the_border() -> None:
    assert report.plot_renyi(dp.Composed.of([]), 1e-5).get_yscale() == "linear"
    orders, _ = line(report.plot_renyi(dp.RenyiDP((2.0, 4.0), (0.1, 0.3)), 1e-5), "Renyi")
    assert orders.max() <= 4.0


def test_gdpt_lies_between_its_stairs() -> None:
    ax = report.plot_gdpt(LAPLACE, steps=10, points=11)
    epsilons, values = line(ax, "G (GDPT)")
    band = dp.gdp.transform(LAPLACE, epsilons)
    assert values.tolist() == band.upper.tolist()
    upper, lower = (patch.get_data() for patch in ax.patches)
    cells = np.minimum(np.searchsorted(upper.edges, epsilons, "right") - 1, 9)
    assert (values <= upper.values[cells]).all()
    assert (values[:-1] >= lower.values[cells][:-1]).all()
    assert epsilons[-1] == LAPLACE.epsilon(1e-6)
    assert line(report.plot_gdpt(LAPLACE, head=0.25, points=3), "G (GDPT)")[0][-1] == 0.25
    assert line(report.plot_gdpt(dp.ApproxDP(0.5, 1e-3), points=3), "G (GDPT)")[0][-1] == 1.0


def test_plans_with_hardly_any_privacy_are_drawn() -> None:
    steps, epsilons = line(report.plot_steps(dp.PureDP(800.0), 1000, 1e-5), "certified")
    assert (epsilons <= 800 * steps * (1 + 1e-12)).all()
    assert (epsilons >= 800 * steps - 1).all()
    loud = dp.Gaussian(1e-3)
    assert line(report.plot_tradeoff(loud), "no attacker")[1][1:].max() < 1e-300
    assert np.isinf(line(report.plot_gdpt(loud, points=4), "G (GDPT)")[1][0])


def test_loss_of_continuous_noise() -> None:
    losses, density = line(report.plot_loss(GAUSSIAN), "density")
    assert np.trapezoid(density, losses) == pytest.approx(1.0, abs=5e-3)  # a thousandth is cut at either end
    mean = np.trapezoid(density * losses, losses)
    assert mean == pytest.approx(0.125, abs=5e-3)


def test_loss_with_point_masses() -> None:
    ax = report.plot_loss(dp.RandomizedResponse(0.75))
    losses, masses = _stems(ax)
    assert losses == pytest.approx([-math.log(3), math.log(3)])
    assert masses == pytest.approx([0.25, 0.75])
    mixed = report.plot_loss(dp.Laplace(1.0) + 3 * dp.DiscreteLaplace(2.0))
    texts = [text.get_text() for text in mixed.get_legend().get_texts()]
    assert any("3 x TwoPoint" in text for text in texts)
    assert any("1 x Laplace" in text for text in texts)


def _stems(ax: Any) -> tuple[list[float], list[float]]:
    (stems,) = ax.containers
    return list(stems.markerline.get_xdata()), list(stems.markerline.get_ydata())


def test_loss_that_is_not_there() -> None:
    with pytest.raises(dp.Unanswerable, match="nothing was run"):
        report.plot_loss(dp.Composed.of([]))
    with pytest.raises(dp.Unanswerable, match="Renyi"):
        report.plot_loss(dp.ZCDP(0.5))


def test_noise() -> None:
    ax = report.plot_noise(dp.Gaussian, 1e-6, epsilons=[0.5, 2.0], name="SIGMA")
    (drawn,) = ax.get_lines()
    assert drawn.get_ydata()[0] == dp.calibrate(dp.Gaussian, epsilon=0.5, delta=1e-6)
    assert ax.get_title() == "SIGMA in Gaussian(sigma=SIGMA)"
    assert len(report.plot_noise(dp.Gaussian, 1e-6).get_lines()[0].get_xdata()) == 9


def test_comparison_bars() -> None:
    found = dp.compare(GAUSSIAN, 1e-5)
    ax = report.plot_compare(GAUSSIAN, 1e-5)
    expected = [row.epsilon for row in found.rows if row.epsilon is not None]
    assert [bar.get_width() for bar in ax.patches] == expected
    assert "no answer: " in ax.get_xlabel()
    assert report.plot_compare(dp.dpsgd(1.0, 0.01, 100), 1e-5).get_xscale() == "log"
    assert not report.plot_compare(dp.ApproxDP(1.0, 1.0), 1e-5).patches


@pytest.mark.parametrize("name", ["a.png", "a.svg", "b.PNG"])
def test_files(tmp_path: Path, name: str) -> None:
    path = report.saved(report.plot_compare(LAPLACE, 1e-5), tmp_path / name)
    opening = path.read_bytes()[:300]
    assert opening.startswith(b"\x89PNG") or b"<?xml" in opening
    assert not plt.get_fignums()


def test_the_same_picture_gives_the_same_svg(tmp_path: Path) -> None:
    first, second = (
        report.saved(report.plot_compare(LAPLACE, 1e-5), tmp_path / name).read_text() for name in ("1.svg", "2.svg")
    )
    assert first == second


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(dp.InvalidArgument, match=r"png or \.svg"):
        report.saved(None, tmp_path / "a.exe")


def test_given_axes_are_used() -> None:
    ax = plt.subplots()[1]
    assert report.plot_compare(LAPLACE, 1e-5, ax=ax) is ax


def test_styles_differ_without_colour() -> None:
    assert len({(str(style["linestyle"]), style["marker"]) for style in figure.STYLES}) == len(figure.STYLES)


def test_long_plans_are_cut() -> None:
    assert figure.short(sum((dp.Laplace(s) for s in range(2, 30)), dp.Laplace(1))).endswith("...")


def test_matplotlib_loads_when_used() -> None:
    code = "import sys, dptally.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(dp.MissingExtra, match="plots"):
        figure.pyplot()


@pytest.mark.parametrize("kind", ["profile", "tradeoff", "loss", "gdpt", "renyi", "compare", "steps"])
def test_a_plan_draws_itself(kind: str) -> None:
    options: dict[str, Any] = {"steps": {"steps": 5, "points": 3}, "gdpt": {"points": 4}}.get(kind, {})
    ax = GAUSSIAN.plot(kind, **options)
    assert ax.get_title() or ax.get_xlabel()
    assert GAUSSIAN.plot("compare", ax=figure.axes_or_new(None)).figure is not ax.figure
