"""Contract: pandas, polars and Arrow columns are columns, and are not copied without need."""

from __future__ import annotations

import numpy as np
import pytest

from dptally import ADD_REMOVE, release
from dptally.release import column


def series(kind, values):
    if kind == "pandas":
        return pytest.importorskip("pandas").Series(values)
    if kind == "polars":
        return pytest.importorskip("polars").Series(values)
    return pytest.importorskip("pyarrow").array(values)


KINDS = ["pandas", "polars", "arrow"]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_every_library(kind):
    numbers = series(kind, [1.5, 2.5, 9.0])
    total = release.bounded_sum(numbers, lower=0, upper=4, adjacency=ADD_REMOVE, scale=1)
    assert isinstance(total.value, float)
    assert isinstance(release.count(numbers, where=series(kind, [True, False, True]), scale=1).value, int)
    words = series(kind, ["a", "b", "a"])
    assert release.mode(words, categories=["a", "b"], adjacency=ADD_REMOVE, scale=0.01).value == "a"
    answers = release.randomized_response(words, p=1 - 2**-50, categories=["a", "b"])
    assert answers.value.tolist() == ["a", "b", "a"]
    bits = series(kind, [1, 1, 0])
    assert release.mode_of_bits(bits, epsilon=1.0, delta=0.1, adjacency=ADD_REMOVE).value in (1, None)


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_are_left_out_or_count_as_what_was_chosen(kind):
    gappy = series(kind, [1.5, None])
    assert column.numeric("data", gappy).tolist() == [1.5]
    assert column.numeric("data", gappy, 2.5).tolist() == [1.5, 2.5]


def test_columns_of_the_newer_types():
    """Nullable, Arrow-backed, chunked, sliced and encoded columns; a gap in any of them is left out."""
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    numbers = [
        pandas.Series([1, 2, 9], dtype="Int64"),
        pandas.Series([1.0, 2.0], dtype="double[pyarrow]"),
        pandas.Series([1.0, 2.0, 9.0])[[True, False, True]],
        polars.concat([polars.Series([1.0]), polars.Series([2.0])], rechunk=False),
        arrow.chunked_array([[1.5], [2.5, 3.0]]),
        arrow.array([1.0, 2.0, 3.0])[1:],
    ]
    total = lambda data: release.bounded_sum(data, lower=0, upper=4, adjacency=ADD_REMOVE, scale=1, grid=1)  # noqa: E731
    for data in numbers:
        assert isinstance(total(data).value, int)
    gaps = [
        pandas.Series([1, None], dtype="Int64"),
        pandas.Series([1.0, None], dtype="double[pyarrow]"),
        polars.Series([1, None]),
        polars.Series([True, None]),
        arrow.array([1, None]),
        arrow.nulls(2),
    ]
    for data in gaps:
        assert isinstance(total(data).value, int)
        assert len(column.numeric("data", data)) < 2
    words = [
        pandas.Series(["a", "b"], dtype="category"),
        polars.Series(["a", "b"], dtype=polars.Enum(["a", "b"])),
        arrow.array(["a", "b"]).dictionary_encode(),
    ]
    for data in words:
        bins = release.histogram(data, categories="ab", adjacency=ADD_REMOVE, scale=0.01)
        assert bins.value.tolist() == [1, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_not_copied(kind):
    numbers = series(kind, np.arange(1000, dtype=np.float64))
    assert np.shares_memory(column.numeric("data", numbers), np.asarray(numbers))


@pytest.mark.parametrize("kind", KINDS)
def test_samples_keep_their_type(kind):
    numbers = series(kind, list(range(50)))
    sample = release.poisson_sample(numbers, 0.5).records
    assert type(sample) is type(numbers)
    assert set(np.asarray(sample).tolist()) <= set(range(50))


def test_frames_are_sampled_by_rows():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": range(50), "b": range(50)})
    assert (release.poisson_sample(frame, 1).records == frame).all().all()


class Frame:
    """What poisson_sample asks of a table: rows by a mask, in the manner of pandas or of polars and Arrow."""

    def __init__(self, rows, manner):
        self.rows = np.asarray(rows)
        setattr(self, manner, self if manner == "loc" else lambda mask: Frame(self.rows[mask], manner))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, mask):
        return Frame(self.rows[mask], "loc")


@pytest.mark.parametrize("manner", ["loc", "filter"])
def test_tables_are_sampled_in_their_own_manner(manner):
    assert release.poisson_sample(Frame(range(9), manner), 1).records.rows.tolist() == list(range(9))


def test_numpy_vectors_are_not_copied():
    numbers = np.arange(10.0)
    assert column.numeric("data", numbers) is numbers
    assert np.shares_memory(column.numeric("data", np.array([True, False])), np.array([True])) is False
    mask = np.array([True, False])
    assert column.flags("where", mask) is mask
