"""Laws: every release answers on every dataset, and no neighbour moves it by more than it pays for.

The datasets are all those of up to three records from a list of values that are awkward in every way: missing, NaN,
infinite, wider than 64 bits, of another type, undeclared. The neighbours are all of theirs, the empty one included.
What is compared is what the noise is added to.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction as F
from typing import Any, NoReturn

import numpy as np
import pytest

from dptally import ADD_REMOVE, REPLACE, noise, release
from dptally.errors import InvalidArgument
from dptally.mechanisms import DiscreteGaussian, DiscreteLaplace
from dptally.noise import grid as grids
from dptally.release import DROP, propose, response
from dptally.release.additive import Additive

HOSTILE = [None, math.nan, math.inf, -math.inf, 10**400, -(10**400), 2**70, "x", [1], b"1", True, 1j, Decimal("sNaN"),
           F(1, 3), np.float32(2.5), np.int64(-7), {}, object(), 0.3, -2, 0, 7, 1e-300, float]  # fmt: skip
ADJACENCIES = [ADD_REMOVE, REPLACE]


def datasets(values: list[object], most: int = 2) -> Iterator[tuple[object, ...]]:
    for size in range(most + 1):
        yield from itertools.combinations_with_replacement(values, size)


def neighbours(data: tuple[object, ...], values: list[object], adjacency: object) -> Iterator[tuple[object, ...]]:
    for place in range(len(data)):
        rest = data[:place] + data[place + 1 :]
        if adjacency is ADD_REMOVE:
            yield rest
        else:
            yield from ((*rest[:place], value, *rest[place:]) for value in values)


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What noise was to be added to, in the order of the releases; the noise itself is left out."""
    seen: list[object] = []
    monkeypatch.setattr(Additive, "add", lambda self, steps: seen.append(steps) or steps)
    monkeypatch.setattr(Additive, "add_each", lambda self, steps: seen.append(steps.tolist()) or steps)
    return seen


def pairs(values, adjacency, run, exact, most=2):
    """(what noise is added to, the same for a neighbour), for every pair."""
    known: dict[int, object] = {}

    def of(data):
        key = tuple(map(id, data))
        if key not in known:
            exact.clear()
            run(list(data))
            known[key] = list(exact)
        return known[key]

    for data in datasets(values, most):
        mine = of(data)
        for other in neighbours(data, values, adjacency):
            yield mine, of(other)


BOUNDS = [(0, 4), (-3, 5), (2, 6), (-6, -2), (F(1, 4), F(7, 2)), (-0.125, 1e18), (2**60, 2**61)]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("missing", [DROP, 0, 3])
def test_sums_move_by_no_more_than_their_sensitivity(bounds, adjacency, missing, exact):
    options = {
        "lower": bounds[0],
        "upper": bounds[1],
        "adjacency": adjacency,
        "missing": missing,
        "scale": float(bounds[1]) + 8,
    }
    run = lambda data: release.bounded_sum(data, **options)  # noqa: E731
    (mechanism, _), *_ = release.bounded_sum.mechanism(**options).parts
    moves = [abs(mine[0] - theirs[0]) for mine, theirs in pairs(HOSTILE, adjacency, run, exact)]
    assert max(moves) <= mechanism.sensitivity
    assert max(moves) >= 0.99 * mechanism.sensitivity, "and some pair needs all of it"


def test_a_dropped_value_moves_a_sum_by_its_whole_value():
    """Under REPLACE the sensitivity is max(M, W), not W."""
    options = {"lower": 90, "upper": 100, "adjacency": REPLACE, "scale": 1, "grid": 1}
    assert release.bounded_sum.mechanism(**options) == DiscreteLaplace(1.0, 100)
    assert release.bounded_sum.mechanism(**options, missing=95) == DiscreteLaplace(1.0, 10)
    assert release.bounded_sum.mechanism(**{**options, "lower": -100, "upper": -90}) == DiscreteLaplace(1.0, 100)
    assert release.bounded_sum.mechanism(**{**options, "lower": -3, "upper": 5}) == DiscreteLaplace(1.0, 8)


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize(
    ("adjacency", "missing", "counted"),
    [
        (ADD_REMOVE, DROP, True),
        (ADD_REMOVE, 3, True),
        (REPLACE, DROP, True),
        (REPLACE, DROP, False),
        (REPLACE, 3, False),
    ],
)
def test_means_move_by_no_more_than_their_sensitivity(bounds, adjacency, missing, counted, exact):
    options = {
        "lower": bounds[0],
        "upper": bounds[1],
        "adjacency": adjacency,
        "missing": missing,
        "scale": float(bounds[1]) + 8,
    }
    options |= {"count_sigma": 3} if counted else {}
    run = lambda data: release.mean(data, **options)  # noqa: E731
    parts = [part for part, _ in release.mean.mechanism(**options).parts]
    reach = next(part.sensitivity for part in parts if isinstance(part, DiscreteLaplace))
    assert (DiscreteGaussian(3.0) in parts) == counted
    largest = 0
    for mine, theirs in pairs(HOSTILE, adjacency, run, exact):
        assert len(mine) == len(theirs) == 1 + counted
        largest = max(largest, abs(mine[0] - theirs[0]))
        if counted:
            assert abs(mine[1] - theirs[1]) <= 1
    assert 0.99 * reach <= largest <= reach


def test_means_with_gaps(exact):
    plain = {"lower": 0, "upper": 8, "scale": 1, "grid": F(1, 4)}
    data = [1.0, None, 3.0, math.nan]
    assert release.mean(data, **plain, adjacency=ADD_REMOVE, count_scale=1).value == 2.0
    assert release.mean(data, **plain, adjacency=REPLACE, count_scale=1).value == 2.0  # left out, the count is private
    assert release.mean(data, **plain, adjacency=REPLACE).value == 3.0  # the middle, twice, and n is public
    assert release.mean(data, **plain, adjacency=REPLACE, missing=0).value == 1.0
    assert release.mean(data, **plain, adjacency=ADD_REMOVE, count_scale=1, missing=99).value == 5.0
    for adjacency, count in ((ADD_REMOVE, {"count_scale": 1}), (REPLACE, {}), (REPLACE, {"count_scale": 1})):
        assert release.mean([], **plain, adjacency=adjacency, **count).value == 4.0


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_counts_move_by_one(adjacency, exact):
    for missing in (False, True):
        run = lambda data, m=missing: release.count([0] * len(data), where=data, scale=1, missing=m)  # noqa: E731
        assert max(abs(mine[0] - theirs[0]) for mine, theirs in pairs(HOSTILE, adjacency, run, exact)) == 1
    run = lambda data: release.count(data, scale=1)  # noqa: E731
    assert max(abs(mine[0] - theirs[0]) for mine, theirs in pairs(HOSTILE, adjacency, run, exact)) <= 1


CATEGORIES = [[0, 1, 2], ["x", None, 7], ["x", "other"], [True], ["other"], [0.3, "other", 10**400]]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("categories", CATEGORIES, ids=str)
def test_histograms_move_one_count_or_two(categories, adjacency, exact):
    for missing in (None, DROP, categories[0]):
        options = {"categories": categories, "adjacency": adjacency, "missing": missing, "scale": 1}
        ((_, counts),) = release.histogram.mechanism(**options).parts
        run = lambda data, o=options: release.histogram(data, **o)  # noqa: E731
        for mine, theirs in pairs(HOSTILE, adjacency, run, exact):
            moves = [abs(a - b) for a, b in zip(mine[0], theirs[0], strict=True)]
            assert max(moves) <= 1
            assert sum(moves) <= counts
        for data in datasets(HOSTILE):
            assert release.mode(list(data), **options).value in categories


def test_undeclared_values_are_other_where_that_is_declared(exact):
    data = ["a", "b", None, math.nan, [1], "c", 3]
    of = lambda categories, **rule: release.histogram(  # noqa: E731
        data, categories=categories, adjacency=ADD_REMOVE, scale=1, **rule
    ).value.tolist()
    assert of(["a", "b"]) == [1, 1]
    assert of(["a", "other"]) == [1, 6]
    assert of(["a", "other"], missing=DROP) == [1, 0]
    assert of(["a", "b"], missing="b") == [1, 6]
    assert of(["a", None]) == [1, 1]
    assert of(["NaN", "a"]) == [0, 1]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_margins_of_bits_keep_their_distance(adjacency):
    """All datasets of up to five records from 0, 1 and something else: the distance moves by at most 1 between
    neighbours, and is 0 where a neighbour has another mode.
    """
    values = [0, 1, None]
    distance = lambda data: propose._distance_of_margin(data.count(1) - data.count(0), adjacency)  # noqa: E731
    mode = lambda data: int(data.count(1) > data.count(0))  # noqa: E731
    for data in datasets(values, 5):
        for other in neighbours(data, values, adjacency):
            assert abs(distance(data) - distance(other)) <= 1
            if mode(data) != mode(other):
                assert distance(data) == distance(other) == 0
    for data in datasets(HOSTILE):
        release.mode_of_bits(list(data), epsilon=1.0, delta=0.1, adjacency=adjacency)
    assert release.mode_of_bits([None] * 50 + [1] * 60, epsilon=1.0, delta=1e-6, adjacency=adjacency).value == 1


def test_randomised_answers_for_foreign_values():
    """There is one for every record, and those for foreign values are uniform: within every ratio that is paid for."""
    for data in datasets(HOSTILE):
        made = release.randomized_response(list(data), p=0.75, categories=("x", "y", "z"))
        assert len(made.value) == len(data)
        assert set(made.value.tolist()) <= {"x", "y", "z"}
    p, k = F(5, 8), 4
    q = (1 - p) / (k - 1)
    rows = [[p if i == j else q for j in range(k)] for i in range(k)]
    uniform = [sum(column) / k for column in zip(*rows, strict=True)]
    assert uniform == [F(1, k)] * k
    apart = lambda a, b, e: sum(max(x - e * y, 0) for x, y in zip(a, b, strict=True))  # noqa: E731
    for e in (F(1, 3), F(1), F(3, 2), F(2), F(5)):
        claimed = apart(rows[0], rows[1], e)
        assert max(apart(row, uniform, e) for row in rows) <= claimed
        assert max(apart(uniform, row, e) for row in rows) <= claimed
    many = response._filled(np.full(30_000, -1), 3)
    assert np.abs(np.bincount(many, minlength=3) - 10_000).max() < 7 * math.sqrt(30_000 * 2 / 9)
    assert response._filled(np.array([2, 0]), 3).tolist() == [2, 0]
    chosen = release.randomized_response([None] * 50, p=1 - 2**-50, categories=("x", "y"), missing="y")
    assert set(chosen.value.tolist()) == {"y"}


def test_answers_that_are_no_number_count_as_what_was_chosen(exact):
    for value in (None, math.nan, math.inf, -math.inf, np.float64("nan")):
        assert release.answer(value, sensitivity=1, scale=1, grid=1).value == 0
        assert release.answer(value, sensitivity=1, scale=1, grid=1, missing=7).value == 7
    for value in (2**70, -(2**70), np.int64(3), np.float32(2.5), F(5, 2), np.array(4.0), np.longdouble(1)):
        assert release.answer(value, sensitivity=1, scale=1, grid=F(1, 2)).value == float(value)
    assert release.answer(10**400, sensitivity=1, scale=1).value == math.inf
    with pytest.raises(InvalidArgument, match="missing"):
        release.answer(1.0, sensitivity=1, scale=1, missing=math.nan)


def test_algorithms_that_return_an_integer_beyond_every_double(monkeypatch):
    monkeypatch.setattr(noise, "discrete_laplace", lambda scale: 0)
    options = {"lower": 0, "upper": 1, "head_epsilon": 1.0, "mu": 1.0}
    assert release.clip_and_rectify(lambda _: 10**400, [], **options).value == 1.0
    assert release.clip_and_rectify(lambda _: -(10**400), [], **options).value == 0.0


def test_samples_of_nothing_are_empty():
    assert release.poisson_sample([], 0.5).records == []
    assert release.poisson_sample(np.zeros((0, 3)), 0.5).records.shape == (0, 3)


def test_a_column_is_summed_alike_whatever_type_it_came_in(exact):
    """One missing value makes doubles, or objects, of a column of integers in many libraries."""
    rng = random.Random(5)
    for bounds in BOUNDS:
        whole = [rng.randrange(-20, 20) for _ in range(30)] + [2**62, -(2**62), 2**53 + 1]
        forms = [np.array(whole), np.array(whole, dtype=np.float64), np.array(whole, dtype=object), whole]
        options = {"lower": bounds[0], "upper": bounds[1], "adjacency": ADD_REMOVE, "scale": float(bounds[1]) + 8}
        assert len({release.bounded_sum(form, **options).value for form in forms}) == 1
        assert len({release.mean(form, **options, count_scale=1).value for form in forms}) == 1
        unsigned = np.array([1, 2**64 - 1, 5], dtype=np.uint64)
        assert len({release.bounded_sum(f, **options).value for f in (unsigned, unsigned.astype(object))}) == 1


def test_sums_are_right_by_exact_arithmetic(exact):
    values = [None, 0.25, 3, -9, math.nan, 10**400, "x", True]
    for lower, upper in BOUNDS[:5]:
        for missing in (DROP, 3):
            instead = None if missing is DROP else F(missing)
            run = {"lower": lower, "upper": upper, "adjacency": ADD_REMOVE, "scale": 64, "grid": F(1, 8)}
            for data in datasets(values, 3):
                exact.clear()
                release.bounded_sum(list(data), **run, missing=missing)
                known = {0.25: F(1, 4), 3: F(3), -9: F(-9), 10**400: F(10**400), True: F(1)}
                numbers = [known.get(x, instead) if isinstance(x, (int, float)) else instead for x in data]
                clipped = [min(max(x, F(lower)), F(upper)) for x in numbers if x is not None]
                assert exact[0] == grids.floor_steps(sum(clipped, F(0)) + F(1, 16), -3)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_gaps_of_every_library(kind, exact):
    library = pytest.importorskip("pyarrow" if kind == "arrow" else kind)
    column = {"pandas": lambda x: library.Series(x), "polars": lambda x: library.Series(x, strict=False),
              "arrow": lambda x: library.array(x)}[kind]  # fmt: skip
    numbers = {"lower": 0, "upper": 9, "adjacency": ADD_REMOVE, "scale": 1, "grid": 1}
    for data, total in (([1, None, 3], 4), ([1.5, None], 2), ([None, None], 0), ([], 0)):
        assert release.bounded_sum(column(data), **numbers).value == total
    words = {"categories": ["a", "b"], "adjacency": ADD_REMOVE, "scale": 1}
    assert release.histogram(column(["a", None, "c"]), **words).value.tolist() == [1, 0]
    assert release.count(column([1, 2, 3]), where=column([True, None, False]), scale=1).value == 1
    assert release.count(column([1, 2, 3]), where=column([1, None, 0]), scale=1).value == 1


def raising(*_: object) -> NoReturn:
    raise RuntimeError("private")


METHODS = ["__hash__", "__eq__", "__float__", "__int__", "__index__", "__bool__", "__str__", "__repr__", "__lt__",
           "__gt__", "__len__", "__iter__", "__array__", "__getattribute__", "__class__", "as_integer_ratio",
           "numerator", "is_finite", "adjusted", "item"]  # fmt: skip
BASES = [(object, ()), (int, (1,)), (float, (1.5,)), (str, ("a",)), (tuple, ((1,),)), (F, (1, 3)), (Decimal, ("2",)),
         (np.float64, (1.5,))]  # fmt: skip


def hostile(base: type, arguments: tuple[object, ...], names: list[str]) -> Any:
    """A value whose methods of these names raise."""
    properties = ("__class__", "numerator")
    body: dict[str, Any] = {name: property(raising) if name in properties else raising for name in names}
    if "__eq__" in body:
        body.setdefault("__hash__", lambda self: hash("a"))  # so that it is compared with a category
    return type("Hostile", (base,), body)(*arguments)


EVERY_RELEASE = {
    "count": lambda data: release.count(data, where=data, sigma=3),
    "sum": lambda data: release.bounded_sum(data, lower=0, upper=2, adjacency=ADD_REMOVE, sigma=3),
    "mean": lambda data: release.mean(data, lower=0, upper=2, adjacency=ADD_REMOVE, sigma=3, count_sigma=3),
    "histogram": lambda data: release.histogram(data, categories=["a", 1, (1,)], adjacency=ADD_REMOVE, sigma=3),
    "mode": lambda data: release.mode(data, categories=["a", "other"], adjacency=ADD_REMOVE, sigma=3),
    "quantile": lambda data: release.quantile(data, q=0.5, candidates=[0, 1], epsilon=1, adjacency=ADD_REMOVE),
    "bits": lambda data: release.mode_of_bits(data, epsilon=1, delta=1e-3, adjacency=ADD_REMOVE),
    "response": lambda data: release.randomized_response(data, p=0.75, categories=["a", "b"]),
    "median": lambda data: release.stable_median(
        data, lower=0, upper=2, local_sensitivity=1, epsilon=1, delta=1e-3, adjacency=ADD_REMOVE, sigma=3
    ),
    "trimmed mean": lambda data: release.stable_mean(
        data, lower=0, upper=2, local_sensitivity=1, epsilon=1, delta=1e-3, adjacency=ADD_REMOVE, sigma=3
    ),
    "choose": lambda data: release.choose(data, candidates=range(len(data)), epsilon=1),
    "top k": lambda data: release.top_k(data, candidates=range(len(data)), k=2, epsilon=1),
    "above threshold": lambda data: release.above_threshold(data, threshold=5, epsilon1=1, epsilon2=1),
    "individual": lambda data: release.IndividualSums(len(data), sigma=3, rho=1).sum([[one, 1.0] for one in data]),
    "sample": lambda data: release.poisson_sample(data, rate=0.5),
}


@pytest.mark.parametrize("names", [*([name] for name in METHODS), METHODS], ids=lambda names: "+".join(names[:2]))
def test_a_record_whose_own_methods_raise_is_a_foreign_value(names: list[str]) -> None:
    for base, arguments in BASES:
        try:
            record = hostile(base, arguments, names)
        except RuntimeError:
            continue  # there is no such object
        for run in EVERY_RELEASE.values():
            run(["a", record, 1, None])
            run(np.fromiter(["a", record, 1, None], dtype=object, count=4))


@pytest.mark.parametrize("base", [float, int, F, np.float64])
def test_a_number_whose_own_methods_raise_counts_as_missing(base: type, exact: list[Any]) -> None:
    number = hostile(base, (3,), ["__float__", "__int__", "__index__", "as_integer_ratio", "numerator", "item"])
    release.answer(number, sensitivity=1, sigma=3, grid=1, missing=1)
    assert exact[-1] in (1, 3)
    release.clip_and_rectify(lambda _: number, [], lower=0, upper=8, head_epsilon=10, mu=1)


def test_a_record_that_equals_everything_moves_one_count(exact: list[Any]) -> None:
    class Chameleon:
        """Says that it is each of the others."""

        def __hash__(self) -> int:
            return hash("a")

        def __eq__(self, other: object) -> bool:
            return True

    options: dict[str, Any] = {"categories": ["a", "b", "other"], "adjacency": ADD_REMOVE, "sigma": 3}
    rest = ["a"] * 5 + ["b"] * 3
    release.histogram(rest, **options)
    release.histogram([Chameleon(), *rest], **options)
    without, with_it = exact
    assert sum(abs(x - y) for x, y in zip(without, with_it, strict=True)) == 1
