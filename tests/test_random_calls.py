"""Contract: random calls of everything public about random plans. Nothing but a refusal or a sound number comes back.

Every mechanism of the registry with ordinary and with extreme numbers, wrapped, counted and added; every question with
hostile arguments, alone and in arrays. 20,000 calls in the soak, a tenth in the suite.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dptally as dp
from depth import thinned
from dptally.mechanisms import registry

CALLS, PARTS = thinned(20_000), 20
Draw = random.Random

VAST = (
    0.0,
    1.0,
    5e-324,
    1e-300,
    1e-17,
    1 - 2.0**-53,
    1 + 2.0**-52,
    1e4,
    1e15,
    1e300,
    math.inf,
    -1.0,
    math.nan,
    True,
    "1",
)
WHOLE = (0, 1, 2, 3, 10, 1000, 10**6, 10**9, 2**53, -1, 10**30)


def _log_uniform(draw: Draw, low: float, high: float) -> float:
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def _like(draw: Draw, good: Any) -> Any:
    """A number near the good one, an ordinary one of its kind, or an extreme one."""
    if isinstance(good, bool) or not isinstance(good, (int, float)):
        return good
    way = draw.random()
    if isinstance(good, int):
        return good if way < 0.4 else draw.choice(WHOLE) if way < 0.6 else round(_log_uniform(draw, 1, 50))
    if way < 0.3:
        return good
    if way < 0.8:
        return draw.random() if 0 < good < 1 and draw.random() < 0.7 else good * _log_uniform(draw, 0.1, 10)
    return draw.choice(VAST) if way < 0.9 else _log_uniform(draw, 1e-12, 1e4)


DECLARED = [entry for entry in registry.declarations() if entry.json != "composed" and registry.shipped(entry.target)]


def _one(draw: Draw) -> dp.Mechanism | None:
    entry = draw.choice(DECLARED)
    built = entry.target(**{name: _like(draw, good) for name, good in entry.arguments().items()})
    if isinstance(built, dp.Mechanism):
        return built
    if hasattr(built, "unit"):
        inside = draw.choice((dp.Gaussian(2.0), dp.Laplace(2.0), dp.RandomizedResponse(0.7)))
        adjacency = draw.choice((dp.ADD_REMOVE, dp.REPLACE))
        return dp.Sampled(inside, built, **{built.unit: draw.choice((1, 3))}, adjacency=adjacency)
    return None


def _plan(draw: Draw) -> dp.Mechanism | None:
    plan = _one(draw)
    if plan is None:
        return None
    way = draw.random()
    if way < 0.15:
        return draw.choice((2, 3, 1000, 10**9)) * plan
    if way < 0.25:
        other = _one(draw)
        return plan if other is None else plan + other
    if way < 0.32:
        return dp.PoissonSampled(plan, _like(draw, 0.3), draw.choice((dp.ADD_REMOVE, dp.REPLACE)))
    if way < 0.38:
        return plan.best_of(_like(draw, 10.0), draw.choice(("tnb", "geometric", "poisson")), _like(draw, 0.5))
    if way < 0.42:
        return plan.group(_like(draw, 3))
    if way < 0.45:
        return dp.ShuffleModel(plan, _like(draw, 100))
    return plan


def _delta(draw: Draw) -> Any:
    return draw.choice(
        (1e-6, _log_uniform(draw, 1e-300, 1), draw.random(), *VAST[:8], [1e-6, 0.0, 1.0], draw.choice(VAST))
    )


def _epsilon(draw: Draw) -> Any:
    return draw.choice((1.0, _log_uniform(draw, 1e-12, 1e4), 0.0, np.array([0.0, 1.0, 50.0]), draw.choice(VAST)))


def _order(draw: Draw) -> Any:
    return draw.choice((2.0, 1.0, 1 + _log_uniform(draw, 1e-12, 1e6), [1.5, 3.0], math.inf, draw.choice(VAST)))


QUESTIONS: dict[str, Callable[[Draw, dp.Mechanism], Any]] = {
    "epsilon": lambda draw, plan: plan.epsilon(_delta(draw)),
    "epsilon_interval": lambda draw, plan: plan.epsilon_interval(_delta(draw)),
    "delta": lambda draw, plan: plan.delta(_epsilon(draw)),
    "delta_interval": lambda draw, plan: plan.delta_interval(_epsilon(draw)),
    "renyi": lambda draw, plan: plan.renyi(_order(draw)),
    "alpha": lambda draw, plan: plan.alpha_divergence(_order(draw)),
    "rho": lambda draw, plan: plan.rho(),
    "tradeoff": lambda draw, plan: plan.tradeoff(draw.choice((0.1, draw.random(), [0.0, 0.5, 1.0], draw.choice(VAST)))),
    "cdf": lambda draw, plan: plan.loss(draw.choice(("remove", "add"))).cdf(
        draw.choice((-1.0, 0.0, draw.random() * 5))
    ),
    "tail": lambda draw, plan: plan.loss().tail(draw.choice((-1.0, 0.0, _log_uniform(draw, 1e-9, 1e3)))),
    "variance": lambda draw, plan: plan.loss().variance,
    "convert": lambda draw, plan: dp.convert(plan, draw.choice(("approx", "renyi", "zcdp", "gaussian")), delta=1e-6),
    "text": lambda draw, plan: str(plan.explain(1e-6)) if draw.random() < 0.2 else repr(plan),
}


def sound(value: Any) -> bool:
    """Numbers that are neither NaN nor negative, ends in order; objects are their own business."""
    if isinstance(value, (dp.Interval, dp.IntervalArray)):
        return bool(np.all((np.asarray(value.lower) >= 0) & (np.asarray(value.lower) <= np.asarray(value.upper))))
    if isinstance(value, (float, np.ndarray)):
        return bool(np.all(np.asarray(value) >= 0))
    return True


def calls(seed: str, number: int) -> tuple[list[str], int]:
    """(what is wrong, how many were answered) of so many questions."""
    faults, answered, asked, index = [], 0, 0, 0
    while asked < number:
        index += 1
        draw, what = random.Random(f"{seed}/{index}"), "plan"
        plan: dp.Mechanism | None = None
        try:
            plan = _plan(draw)
            for _ in range(3 if plan is not None else 0):
                what, ask = draw.choice(list(QUESTIONS.items()))
                asked += 1
                value = ask(draw, plan)
                answered += 1
                if not sound(value):
                    faults.append(f"{seed}/{index} {plan!r} {what} answered {value!r}")
        except dp.DptallyError:
            asked += plan is None
        except Exception as error:  # that is what is looked for
            faults.append(f"{seed}/{index} {plan!r} {what} raised {type(error).__name__}: {error}")
    return faults, answered


@pytest.mark.parametrize("part", range(PARTS))
def test_random_calls(part: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "noise_multiplier .* hardly private")  # advice, and true
        faults, answered = calls(f"calls/{part}", CALLS // PARTS)
    assert faults == []
    assert answered > 0.3 * CALLS / PARTS  # refusals alone would prove nothing
