"""Tuning: the number of runs is drawn first, then exactly so many are made and the best one is kept.

The number comes from the law that ``plan.best_of(mean, law, shape)`` accounts for, by comparing random bits with its
distribution function to as many digits as it takes: no float decides. It is drawn before anything is run; a number
that was chosen by looking at results is another mechanism, for which these answers do not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

from dptally.errors import InvalidArgument, InvalidType
from dptally.laws.tuning.runs import NegativeBinomialRuns, PoissonRuns, Runs
from dptally.mechanisms.best_of import BestOf, checked_runs, law_of_runs
from dptally.mechanisms.mechanism import Mechanism
from dptally.noise.source import SYSTEM, ByteSource, forget

__all__ = ["Searched", "draw_runs", "search"]

_BYTES, _DIGITS = 24, 80  # at first; doubled where they do not decide
_MOST_DRAWN, _LONGEST = 1e5, 1e6  # of E K, of 1/g


def draw_runs(mean: float, law: str = "tnb", shape: float = 0.0, *, _source: ByteSource = SYSTEM) -> int:
    """The number of runs of ``plan.best_of(mean, law, shape)``, from the system's randomness: draw it once, first.

    "tnb" and "geometric" give at least 1, "poisson" may give 0. The number itself is not to be published.

    >>> draw_runs(1.0)
    1
    """
    number, name, stated = checked_runs(mean, law, shape)
    runs = law_of_runs(number, name, stated)
    _check_work(number, runs)
    try:
        drawn, bits = int.from_bytes(_source.take(_BYTES), "big"), 8 * _BYTES
        digits = _DIGITS
        while (found := _inverse(runs, drawn, bits, digits)) is None:
            drawn, bits = drawn << 8 * _BYTES | int.from_bytes(_source.take(_BYTES), "big"), bits + 8 * _BYTES
            digits += _DIGITS
        return found
    finally:
        forget(_source)


def _check_work(mean: float, runs: Runs) -> None:
    """A draw takes K steps of about a microsecond, on average the mean; a heavy tail ends at some multiple of 1/g."""
    if mean > _MOST_DRAWN:
        raise InvalidArgument("mean", f"at most {_MOST_DRAWN:g} runs, where they are to be drawn and made", mean)
    if isinstance(runs, NegativeBinomialRuns) and runs.g * _LONGEST < 1:
        raise InvalidArgument(
            "mean",
            f"such that the number of runs is hardly ever above {14 * _LONGEST:g}, where they are to be made",
            mean,
            'take a smaller mean, a larger shape, or law="geometric"',
        )


def _inverse(runs: Runs, drawn: int, bits: int, digits: int) -> int | None:
    """The K whose step of the distribution function holds all of [drawn, drawn + 1) / 2^bits; None if undecided."""
    with localcontext() as context:
        context.prec = digits
        low = Decimal(drawn) / Decimal(2**bits)
        high = Decimal(drawn + 1) / Decimal(2**bits)
        total, doubt = Decimal(0), Decimal(10) ** (20 - digits)
        for count, chance in _chances(runs):
            total += chance
            if high < total - doubt:
                return count
            if low < total + doubt:
                return None
            if chance < doubt and total > 1 - 2 * doubt:
                return None  # so far out that more digits are needed
    raise AssertionError("a distribution function ends at one")


def _chances(runs: Runs) -> Iterator[tuple[int, Decimal]]:
    """(k, P(K = k)), each within 10^6 units in the last place of the context for k up to some millions."""
    if isinstance(runs, PoissonRuns):
        mean, chance, count = Decimal(runs.mean), (-Decimal(runs.mean)).exp(), 0
        while True:
            yield count, chance
            count += 1
            chance = chance * mean / count
    assert isinstance(runs, NegativeBinomialRuns)
    g, eta = Decimal(runs.g), Decimal(runs.shape)
    if g == 1:
        yield 1, Decimal(1)
        return
    # P(K = 1) = f'(0) = m g^{eta+1}, then each is the one before times (1 - g)(k + eta)/(k + 1)
    length = -g.ln()
    mean = (1 - g) / g * (1 / length if eta == 0 else eta / (1 - (-eta * length).exp()))
    chance, count = mean * (-(eta + 1) * length).exp(), 1
    while True:
        yield count, chance
        chance = chance * (1 - g) * (count + eta) / (count + 1)
        count += 1


@dataclass(frozen=True, slots=True)
class Searched:
    """The best trial of a search, and what it cost; ``trial`` is None where no run was drawn, or none was completed.

    Publish its parameters, its value and what it made, and nothing else: its number and its times tell how many runs
    there were.
    """

    trial: Any
    mechanism: Mechanism


def search(
    study: Any,
    objective: Callable[[Any], Any],
    plan: Mechanism,
    mean: float,
    law: str = "tnb",
    shape: float = 0.0,
    *,
    _source: ByteSource = SYSTEM,
) -> Searched:
    """Run ``objective`` in an Optuna-shaped study exactly as often as a drawn number says, and keep the best trial.

    ``plan`` accounts for one call of the objective, score included. The study must be new (a search that goes on is a
    number of runs chosen afterwards), with trials that do not look at one another: ``RandomSampler`` and ``NopPruner``.
    The study holds every trial, and is as secret as the data; of the answer only ``trial`` may be published, without
    its number and its times. A trial that was given up counts as a run below all others.
    """
    if not isinstance(plan, Mechanism):
        raise InvalidType("plan", "the plan that accounts for one run", plan)
    if not callable(objective):
        raise InvalidType("objective", "a function of a trial", objective)
    _check_study(study)
    mechanism = BestOf(plan, mean, law, shape)
    number = draw_runs(mean, law, shape, _source=_source)
    if number:
        study.optimize(objective, n_trials=number)
    made = len(study.trials)
    if made != number:
        raise InvalidArgument("study", f"run as often as was drawn, {number} times", f"{made} trials")
    return Searched(_best(study) if number else None, mechanism)


def _best(study: Any) -> Any:
    """Optuna raises ValueError where no trial was completed: then nothing is published."""
    try:
        return study.best_trial
    except ValueError:
        return None


def _check_study(study: Any) -> None:
    for name in ("optimize", "trials", "sampler", "pruner"):
        if not hasattr(study, name):
            raise InvalidType("study", f"a study with .optimize, .trials, .sampler and .pruner (no {name} here)", study)
    if len(study.trials):
        raise InvalidArgument(
            "study",
            "new: how many runs are made is drawn before the first one",
            f"a study with {len(study.trials)} trials",
            "create another study; what was run already is composed: k * plan",
        )
    for name, wanted in (("sampler", "RandomSampler"), ("pruner", "NopPruner")):
        given = type(getattr(study, name)).__name__
        if given != wanted:
            raise InvalidArgument(
                f"study.{name}",
                f"a {wanted}: runs must be independent of one another",
                given,
                "runs chosen by earlier results are composed: k * plan",
            )
