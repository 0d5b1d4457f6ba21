"""What is known of the accountants people name: what kind of number they give, and how it can be reproduced."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from dptally.accounting.compare import ROUTES, Route
from dptally.errors import DptallyError
from dptally.law import Composition
from dptally.mechanisms import GaussianDP, Mechanism
from dptally.numerics.shown import shown_up
from dptally.opinion.claim import Claim

__all__ = ["KNOWN", "Known", "central_limit_mu", "known", "matches"]


@dataclass(frozen=True, slots=True)
class Known:
    """One way of accounting: the names it goes by, and what its number is worth."""

    names: str
    worth: str


#: the first pattern that is found in an accountant's name counts
KNOWN = (
    Known(
        r"gdp|clt|central.?limit|gaussian",
        "a central-limit approximation: it is no bound, and too small where steps are few, noise small or the rate "
        "large",
    ),
    Known(r"moment|abadi", "Renyi divergences of integer orders and an older conversion: an upper bound, often loose"),
    Known(
        r"rdp|renyi|r[eé]nyi",
        "Renyi divergences at chosen orders and a conversion: an upper bound, usually loose",
    ),
    Known(
        r"prv",
        "a numerical composition with an error bound of its own (often 0.01): its reported value includes that error, "
        "its estimate does not; very small deltas are out of its reach",
    ),
    Known(
        r"pld|loss.?distribution",
        "a numerical composition on a grid: an upper bound where it rounds pessimistically and delta is well above "
        "its rounding errors",
    ),
    Known(r"zcdp|concentrated", "zero-concentrated DP and a conversion: an upper bound, loose for sampled mechanisms"),
    Known(r"advanced|strong", "advanced composition: an upper bound, loose beside the optimum"),
    Known(r"basic|naive|sequential", "epsilons added up: an upper bound, far from the optimum for many steps"),
    Known(r"dptally", "certified bounds"),
)


#: the frameworks that people report
_COMMON = (
    "Gaussian DP",
    "Renyi DP, tightest conversion",
    "Renyi DP, Mironov's conversion",
    "advanced composition",
    "basic composition",
    "pure DP",
)


def known(accountant: str) -> Known | None:
    """What is known of an accountant by its name."""
    return next((one for one in KNOWN if accountant and re.search(one.names, accountant, re.IGNORECASE)), None)


def central_limit_mu(noise: float, rate: float, steps: int) -> float:
    """mu of the central limit theorem for DP-SGD, rate sqrt(steps (exp(1/noise^2) - 1)): an approximation, never an
    answer of this library  [Bu, Dong, Long, Su 2020, Cor. 3].
    """
    power = noise**-2
    return rate * math.sqrt(steps * math.expm1(power)) if power < 700 else math.inf


def matches(claim: Claim, plan: Mechanism) -> Iterator[str]:
    """Which known computation gives the claimed epsilon, to the digits that were claimed."""
    for name, value in _candidates(claim, plan):
        if _agrees(claim.claimed.epsilon, value):
            yield f"the claimed epsilon is that of {name} ({shown_up(value)})"


def _candidates(claim: Claim, plan: Mechanism) -> Iterator[tuple[str, float]]:
    delta, settings = claim.claimed.delta, claim.settings
    parts = plan.parts
    if settings is not None or len(parts) == 1:
        mu = _mu_of(claim, plan)
        if 0 < mu < math.inf:
            text = f"the central limit theorem's mu = {mu:.4g}, which is no bound"
            yield from ((text, value) for value in _asked(lambda: GaussianDP(mu).epsilon(delta)))
    if claim.claimed.epsilon < plan.epsilon_interval(delta).lower:
        return  # the frameworks below are bounds: none of them gives less than the truth
    directions = plan.directions()
    for name, route in ROUTES:
        if name in _COMMON:
            yield from ((name, value) for value in _asked(partial(_value, route, directions, delta)))


def _mu_of(claim: Claim, plan: Mechanism) -> float:
    """mu of a plan of equal sampled Gaussian steps, 0 if it is another plan."""
    if claim.settings is not None:
        run = claim.settings
        return central_limit_mu(run.noise_multiplier, run.rate, run.number_of_steps)
    step, count = plan.parts[0]
    stated = step.parameters()
    inside = stated.get("mechanism")
    if not isinstance(inside, Mechanism) or "rate" not in stated:
        return 0.0
    noise = inside.parameters()
    if set(noise) != {"sigma", "sensitivity"}:
        return 0.0
    return central_limit_mu(noise["sigma"] / noise["sensitivity"], stated["rate"], count)


def _value(route: Route, directions: Sequence[Composition], delta: float) -> float:
    return route(directions, delta).value


def _asked(question: Callable[[], float]) -> Iterator[float]:
    """An answer, or nothing where the question has none."""
    try:
        yield question()
    except DptallyError:
        return


def _agrees(claimed: float, value: float) -> bool:
    """Whether the claim is this value to three significant digits or better."""
    return math.isfinite(value) and abs(claimed - value) <= max(5e-4 * abs(value), 0.51 * _last_digit(claimed))


def _last_digit(value: float) -> float:
    """The place of the last digit that was written, at most a hundredth of the value."""
    text = f"{value!r}"
    if "e" in text or "." not in text:
        return 0.0
    return min(10.0 ** -len(text.split(".")[1]), 0.01 * value)
