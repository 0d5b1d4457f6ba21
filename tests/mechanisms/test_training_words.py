"""Contract: a run by epochs and batches; arguments that look swapped; the names of other libraries."""

from __future__ import annotations

import pytest

import dptally as dp


def test_epochs_batches_and_records() -> None:
    assert dp.dpsgd(1.1, epochs=15, batch_size=256, dataset_size=60000) == dp.dpsgd(1.1, 256 / 60000, 3516)
    assert dp.dpsgd(1.1, epochs=15, sample_rate=0.01) == dp.dpsgd(1.1, 0.01, 1500)
    assert dp.dpsgd(1.1, epochs=0.07, sample_rate=0.07).parts[0][1] == 1
    assert dp.dpsgd(1.1, batch_size=10, dataset_size=100, steps=7) == dp.dpsgd(1.1, 0.1, 7)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"sample_rate": 0.1},
        {"steps": 10},
        {"sample_rate": 0.1, "steps": 10, "epochs": 1},
        {"sample_rate": 0.1, "batch_size": 1, "dataset_size": 10, "steps": 1},
        {"batch_size": 1, "steps": 1},
        {"batch_size": 11, "dataset_size": 10, "steps": 1},
        {"sample_rate": 0.0, "epochs": 1},
        {"batch_size": 1, "dataset_size": 10, "epochs": 0},
    ],
    ids=str,
)
def test_what_is_said_twice_or_not_at_all_is_refused(given: dict[str, float]) -> None:
    with pytest.raises(dp.InvalidArgument):
        dp.dpsgd(1.0, **given)  # type: ignore[arg-type]


def test_swapped_arguments_are_noticed() -> None:
    with pytest.warns(UserWarning, match="swapped"):
        dp.dpsgd(0.01, 1.0, 100)


@pytest.mark.parametrize("name", ["get_epsilon", "get_delta", "get_privacy_spent", "compose"])
def test_names_of_other_libraries_are_answered_with_ours(name: str) -> None:
    with pytest.raises(AttributeError, match="here it is"):
        getattr(dp.Gaussian(1.0), name)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = (2 * dp.Gaussian(1.0)).nonsense
