"""Laws, by brute force on small grids: the tests of the private median and mean keep the promises of the proof.

On every small dataset the distance that the library computes is 0 where one record may move the answer by more than
the proposed bound, and moves by at most 1 between neighbours: that is all the proof asks for. The median's is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest

from dptally import ADD_REMOVE, REPLACE, noise, release
from dptally.errors import InvalidArgument
from dptally.mechanisms import ApproxDP, DiscreteGaussian, DiscreteLaplace
from dptally.release import stable

TOP = 3  # values are 0 to TOP
Data = tuple[int, ...]


def datasets(least: int, most: int) -> list[Data]:
    return [x for n in range(least, most + 1) for x in combinations_with_replacement(range(TOP + 1), n)]


@cache
def neighbours(x: Data, added: bool, replaced: bool) -> frozenset[Data]:
    found: set[Data] = set()
    less = {x[:i] + x[i + 1 :] for i in range(len(x))}
    if added:
        found |= less | {tuple(sorted((*x, v))) for v in range(TOP + 1)}
    if replaced:
        found |= {tuple(sorted((*y, v))) for y in less for v in range(TOP + 1)}
    return frozenset(found)


KINDS = {"added or removed": (True, False), "replaced": (False, True), "replaced, some missing": (True, True)}


def median(x: Data) -> int:
    return x[(len(x) + 1) // 2 - 1] if x else 0


def trimmed(x: Data, trim: int) -> Fraction:
    kept = x[trim : len(x) - trim] if len(x) > 2 * trim else ()
    return Fraction(sum(kept), len(kept)) if kept else Fraction(TOP, 2)


def steps(x: Data) -> np.ndarray:
    return np.array([0, *x, TOP], dtype=np.int64)


def true_distance(x: Data, unsafe: set[Data], kind: tuple[bool, bool], most: int) -> int | None:
    seen, edge = {x}, {x}
    for k in range(most + 1):
        if edge & unsafe:
            return k
        edge = {z for y in edge for z in neighbours(y, *kind)} - seen
        seen |= edge
    return None


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("limit", [0, 1, 2])
def test_the_distance_of_the_median(kind: str, limit: int) -> None:
    added, _ = KINDS[kind]
    everything = datasets(0, 8 if added else 6)
    unsafe = {x for x in everything if any(abs(median(y) - median(x)) > limit for y in neighbours(x, *KINDS[kind]))}
    away = {x: stable.distance_of_median(steps(x), limit, kind == "added or removed") for x in everything}
    assert unsafe
    for x in everything:
        if x in unsafe:
            assert away[x] == 0, x
        for y in neighbours(x, *KINDS[kind]):
            assert abs(away.get(y, away[x]) - away[x]) <= 1, (x, y)
    if kind == "replaced, some missing":
        return  # a lower bound there, and no more
    for x in datasets(1, 5):
        found = true_distance(x, unsafe, KINDS[kind], most=2)
        assert found == away[x] if found is not None else away[x] > 2, x


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("trim", [0, 1, 2])
def test_the_distance_of_the_mean(kind: str, trim: int) -> None:
    added, _ = KINDS[kind]
    everything = datasets(0, 7)
    values = {x: trimmed(x, trim) for x in datasets(0, 8)}
    for limit in (Fraction(1, 3), Fraction(1, 2), Fraction(3, 4), Fraction(3, 2)):
        away = {x: stable.distance_of_mean(steps(x), trim, limit, added) for x in everything}
        for x in everything:
            around = neighbours(x, *KINDS[kind])
            if any(abs(values[y] - values[x]) > limit for y in around):
                assert away[x] == 0, (x, limit)
            for y in around:
                assert abs(away.get(y, away[x]) - away[x]) <= 1, (x, y, limit)
        assert max(away.values()) >= 1  # the test can pass at all


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(noise, "discrete_laplace", lambda _: 0)
    monkeypatch.setattr(noise, "discrete_gaussian", lambda _: 0)
    return


OPTIONS = {"lower": 0, "upper": 1000, "local_sensitivity": 2, "epsilon": 1.0, "delta": 1e-6, "scale": 2}


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE])
def test_the_exact_part(no_noise: None, adjacency: object) -> None:
    near = [400 + i / 16 for i in range(65)]
    both: dict[str, object] = {**OPTIONS, "adjacency": adjacency}
    assert release.stable_median(near[::-1], **both).value == 402
    assert release.stable_median([*near, 5000, -5000, math.nan, None], **both).value == 402
    assert release.stable_median([0, 1000] * 40, **both).value is None
    assert release.stable_median([], **both).value is None
    assert release.stable_mean(near, **both, trim=20).value == 402
    assert release.stable_mean([*near, 1e9, -1e9], **both, trim=20).value == 402
    assert release.stable_mean(near[:39], **both, trim=20).value is None or adjacency is REPLACE
    assert release.stable_mean([500] * 520, **both, trim=0, missing=3).value == 500
    assert release.stable_mean([500] * 501, **both).value is None
    # integers and the same numbers as doubles give the same
    whole = np.repeat([3, 4, 5], [20, 30, 20])
    assert release.stable_median(whole, **both).value == release.stable_median(whole.astype(float), **both).value == 4


def test_what_it_costs() -> None:
    given: dict[str, object] = {**OPTIONS, "adjacency": REPLACE, "grid": 1}
    plan = release.stable_median.mechanism(**given)
    assert plan == DiscreteLaplace(1.0) + DiscreteLaplace(2.0, 2) + ApproxDP(0.0, 1e-6)
    assert plan.epsilon(1e-6) == pytest.approx(2.0, rel=1e-9)
    wide = release.stable_mean.mechanism(**{**given, "scale": None, "sigma": 4, "epsilon": 0.3, "trim": 3})
    assert DiscreteGaussian(4.0, 2) in [part for part, _ in wide.parts]
    (test,) = [part for part, _ in wide.parts if isinstance(part, DiscreteLaplace)]
    assert Fraction(test.scale) * Fraction(0.3) <= 1
    assert release.stable_mean.stated(**given, trim=3).query == "trimmed mean"


@pytest.mark.parametrize("call", [release.stable_median, release.stable_mean])
def test_bad_input(call: release.ReleaseFunction) -> None:
    for wrong in (
        {"local_sensitivity": 0}, {"local_sensitivity": 1000}, {"local_sensitivity": math.nan}, {"lower": 1000},
        {"epsilon": 0.0}, {"delta": 0.0}, {"delta": 1.0}, {"adjacency": "replace"}, {"scale": None}, {"sigma": 1},
        {"grid": 3}, {"missing": "x"}, {"unit": "x"},
    ):  # fmt: skip
        with pytest.raises(InvalidArgument):
            call([1.0], **{**OPTIONS, "adjacency": REPLACE, **wrong})
    with pytest.raises(InvalidArgument, match=r"release.answer"):
        call.mechanism(**{**OPTIONS, "adjacency": REPLACE, "local_sensitivity": 2000})
    for trim in (-1, 1.5, True):
        with pytest.raises(InvalidArgument, match="trim"):
            release.stable_mean([1.0], **OPTIONS, adjacency=REPLACE, trim=trim)


@pytest.mark.parametrize("call", [release.stable_median, release.stable_mean])
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE])
def test_every_dataset_is_answered(call: release.ReleaseFunction, adjacency: object) -> None:
    awkward = [[], [None], [math.nan] * 3, [10**400, -(10**400)], ["x", 1], [1e308, -1e308, 5e-324], [True, False]]
    for data in awkward:
        for bounds in ({}, {"lower": -1e300, "upper": 1e300}, {"lower": 0.1, "upper": 2.5}, {"missing": 1}):
            call(data, **{**OPTIONS, "local_sensitivity": 0.25, "adjacency": adjacency, **bounds})
