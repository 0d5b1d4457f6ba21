"""Contract: secret meters. What one record adds over all steps stays within its budget on every path, exactly."""

from __future__ import annotations

import copy
import itertools
import math
import os
import pickle
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest

import dptally as dp
from dptally import noise
from dptally.release import IndividualSums


def silent(monkeypatch: pytest.MonkeyPatch, draws: Iterator[int] | None = None) -> None:
    """Noise that the test prescribes, in steps of the grid; none by default."""

    def draw(_sigma: Fraction, count: int) -> np.ndarray:
        return np.array([next(draws) if draws is not None else 0 for _ in range(count)], dtype=np.int64)

    monkeypatch.setattr(noise, "discrete_gaussian", draw)


@pytest.mark.parametrize("seed", range(4))
def test_no_record_passes_its_budget_and_nobody_else_notices(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    silent(monkeypatch)
    rng = np.random.default_rng(seed)
    sigma, rho, records = 10.0, 0.03, 6
    with_it, without = (IndividualSums(records, sigma, rho, grid=2.0**-6) for _ in range(2))
    spent = 0.0
    for _ in range(25):
        rows = rng.normal(size=(records, 3)) * rng.choice([0.1, 0.5, 2.0], size=(records, 1))
        absent = rows.copy()
        absent[0] = 0.0
        change = with_it.sum(rows) - without.sum(absent)
        assert np.all(change == np.round(rows[0] * 64) / 64) or np.all(change == 0)  # all of the record or nothing
        spent += float(change @ change) / (2 * sigma**2)
        assert spent <= rho
    assert spent > 0
    assert not change.any()  # by now it has stopped


def test_a_record_stops_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    silent(monkeypatch)
    sums = IndividualSums(1, sigma=1, rho=0.5, grid=Fraction(1, 4))  # one unit of norm in all
    assert sums.sum([[0.75]]).tolist() == [0.75]
    assert sums.sum([[0.75]]).tolist() == [0.0]
    assert sums.sum([[0.25]]).tolist() == [0.0]  # it would fit, but the record has stopped
    exact = IndividualSums(1, sigma=1, rho=0.5, grid=Fraction(1, 4))
    assert exact.sum([[1.0]]).tolist() == [1.0]
    assert exact.sum([[0.0]]).tolist() == [0.0]
    assert exact.sum([[0.25]]).tolist() == [0.0]


def test_every_path_of_two_steps_keeps_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real class on all noise of two steps, the second chosen by the first answer: Renyi divergences and delta."""
    sigma, rho, reach = 2, 0.4, 16
    weight = {z: math.exp(-(z**2) / (2 * sigma**2)) for z in range(-reach, reach + 1)}
    total = sum(weight.values())

    def played(record: Callable[[float], float], first: float) -> dict[tuple[float, float], float]:
        found: dict[tuple[float, float], float] = defaultdict(float)
        for draws in itertools.product(weight, repeat=2):
            silent(monkeypatch, iter(draws))
            sums = IndividualSums(2, sigma, rho, grid=1)
            one = float(sums.sum([[first], [1.0]])[0])
            two = float(sums.sum([[record(one)], [2.0 if one > 0 else 0.0]])[0])
            found[one, two] += weight[draws[0]] * weight[draws[1]] / total**2
        return found

    def greedy(answer: float) -> float:
        return 2.0 if answer > 1 else 1.0  # 2 does not fit after 1: 4/8 + 1/8 > 0.4

    present, absent = played(greedy, 1.0), played(lambda _: 0.0, 0.0)
    for p, q in ((present, absent), (absent, present)):
        common = [key for key in p if key in q]
        for order in (1.5, 2.0, 4.0):
            moment = sum(p[key] ** order * q[key] ** (1 - order) for key in common)
            assert math.log(moment) / (order - 1) <= order * rho + 1e-9
        lost = sum(p[key] for key in p if key not in q)
        for epsilon in (0.2, 0.7):
            delta = lost + sum(max(p[key] - math.exp(epsilon) * q[key], 0.0) for key in common)
            assert delta <= dp.ZCDP(rho).delta(epsilon)


def test_meters_are_secret() -> None:
    sums = IndividualSums(3, sigma=7, rho=Fraction(1, 3))
    sums.sum(np.ones((3, 2)))
    assert repr(sums) == str(sums) == "IndividualSums(sigma=7, rho=1/3)"
    assert not hasattr(sums, "__dict__")
    assert [name for name in dir(sums) if not name.startswith("_")] == ["mechanism", "sum"]
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="never copied"):
            leak(sums)
    with pytest.raises(dp.InvalidType):
        dp.to_json(sums)
    assert sums.mechanism.epsilon(1e-6) >= dp.ZCDP(1 / 3).epsilon(1e-6)


def test_the_noise_is_there_and_rows_that_are_no_numbers_count_as_zeros() -> None:
    sums = IndividualSums(2, sigma=50, rho=1)
    answers = np.concatenate([sums.sum([[math.nan, 1.0, 1.0], [0.0, math.inf, 0.0]]) for _ in range(200)])
    assert 40 < answers.std() < 60
    assert abs(answers.mean()) < 10
    odd = [[1.0, "7"], [10**400, 1.0], [object(), 1.0], np.array([1.0, None]), np.array(["1", "2"])]
    foreign = IndividualSums(5, sigma=1, rho=1).sum(odd)  # an error would show the record, and a text is no number
    assert np.abs(foreign).max() < 100
    huge = IndividualSums(1, sigma=1, rho=1)
    assert abs(huge.sum([[1e300]])[0]) < 100  # nobody could pay for that


def test_another_process_may_not_spend() -> None:
    sums = IndividualSums(1, sigma=1, rho=1)
    child = os.fork()
    if not child:
        try:
            sums.sum([[0.1]])
        except dp.InvalidType:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.parametrize(
    "bad", [None, "ab", 1.0, [1.0, 2.0], [[1.0]], [[], []], [[1.0], [1.0, 2.0]], [[1.0], 2.0], np.array([["a"], ["b"]])]
)
def test_bad_tables_are_refused(bad: object) -> None:
    with pytest.raises(dp.InvalidArgument, match="contributions"):
        IndividualSums(2, sigma=1, rho=1).sum(bad)


@pytest.mark.parametrize(
    "bad", [{"records": 0}, {"sigma": 0}, {"rho": 0}, {"rho": math.inf}, {"grid": 0.3}, {"rho": 1e30}, {"grid": 8.0}]
)
def test_bad_parameters_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(dp.InvalidArgument):
        IndividualSums(**{"records": 2, "sigma": 1, "rho": 1, **bad})
