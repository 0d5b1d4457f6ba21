"""Counting in one pass gives what counting value by value gives, whatever the column and the categories are."""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pytest

from dptally.release import tally
from dptally.release.histogram import _counts

INTEGERS = [0, 1, 2, 3, -1, 7, 255, -128, 2**31, -(2**31), 2**62, 2**63 - 2, 2**63 - 1, -(2**63)]
TEXTS = ["", "a", "b", "ab", "ba", "abc", "α", "\U0001f600", "a ", " a", "a\0b", "longer than most of them"]


def slowly(data: Sequence[Any], categories: Sequence[Hashable], place: int) -> list[int]:
    counts = [0] * len(categories)
    for value in data:
        at = next((i for i, category in enumerate(categories) if category == value), place)
        if at >= 0:
            counts[at] += 1
    return counts


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64, np.bool_])
def test_integers_of_every_width(kind: type[np.generic]) -> None:
    draw = random.Random(str(kind))
    whole = kind is np.bool_ or np.issubdtype(kind, np.integer)
    assert whole
    for _ in range(60):
        low, high = (0, 1) if kind is np.bool_ else (np.iinfo(kind).min, np.iinfo(kind).max)  # type: ignore[type-var]
        some = [x for x in (*INTEGERS, int(low), int(high)) if low <= x <= high]
        data = np.array([draw.choice(some) for _ in range(draw.randrange(50))], dtype=kind)
        near = draw.sample(INTEGERS, draw.randrange(1, 5)) if draw.random() < 0.4 else list(range(-2, 5))
        categories = [*dict.fromkeys(near), "other"][: draw.randrange(1, 9)]
        place = categories.index("other") if "other" in categories else -1
        assert _counts(data, categories, None).tolist() == slowly(data.tolist(), categories, place)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_doubles_next_to_whole_numbers(kind: type[np.floating[Any]]) -> None:
    draw = random.Random(str(kind))
    beside = [np.nextafter(kind(3), kind(x)) for x in (2, 4)]
    some = [0.0, -0.0, 1.0, 3.0, *beside, -7.0, 2.5, 1e4, np.nan, np.inf, -np.inf, np.finfo(kind).smallest_subnormal]
    marks = [0, 1.0, True, np.int8(3), -7, 9, np.float32(-2), 2.5, np.nan, np.inf, 2**53, 10**4, "text", "other", None]
    ways = set()
    for _ in range(400):
        data = np.array([draw.choice(some) for _ in range(draw.randrange(50))], dtype=kind)[:: draw.choice((1, 2, -1))]
        categories = list(dict.fromkeys(draw.sample(marks[: draw.choice((7, len(marks)))], draw.randrange(1, 7))))
        place = categories.index("other") if "other" in categories else -1
        assert _counts(data, categories, None).tolist() == slowly(data.tolist(), categories, place)
        ways.add(tally.occurrences(data, categories) is None)
    assert ways == {True, False}


def test_text_of_every_width() -> None:
    draw = random.Random("texts")
    for _ in range(300):
        some = draw.sample(TEXTS, draw.randrange(1, len(TEXTS)))
        data = np.array([draw.choice(some) for _ in range(draw.randrange(50))], dtype=str)
        data = data[:: draw.choice((1, 2, -1))]
        categories = [*draw.sample(TEXTS, draw.randrange(1, 6)), *draw.choice(([], ["other"], ["a\0"]))]
        place = categories.index("other") if "other" in categories else -1
        assert _counts(data, categories, None).tolist() == slowly(data.tolist(), categories, place)


def test_lists_of_anything() -> None:
    draw = random.Random("objects")
    some: list[Any] = [*TEXTS, 1, 1.0, True, 0, None, 2.5, float("nan"), (1, 2), [1], {}]
    for _ in range(200):
        data = [draw.choice(some[: draw.choice((len(TEXTS), len(some)))]) for _ in range(draw.randrange(50))]
        categories = [*draw.sample(TEXTS, 3), 1, (1, 2), None, "other"][draw.randrange(5) :]
        assert _counts(data, categories, None).tolist() == slowly(data, categories, categories.index("other"))


def test_categories_that_share_a_slot_are_counted_by_sorting() -> None:
    many = [f"{i:05d}" for i in range(70_000)]
    data = np.array(many + many[:10])
    assert tally.occurrences(data, many) is None
    assert _counts(data, many, None).tolist() == [2] * 10 + [1] * 69_990


def test_integers_far_apart_are_counted_by_sorting() -> None:
    data = np.array([0, 10**9, 10**9, 5])
    assert tally.occurrences(data, [0, 10**9]) is None
    assert _counts(data, [0, 10**9], None).tolist() == [1, 2]
    assert _counts(data, ["zero"], None).tolist() == [0]
