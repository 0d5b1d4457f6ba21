"""Running the mechanism many times, in this process or in many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from dptally.audit.outputs import plain
from dptally.errors import InvalidArgument, MissingExtra

__all__ = ["Progress", "draw_both"]

Progress = Callable[[int, int], None]
Task = tuple[int, int]

_PIECES = 32  # of each dataset's runs: often enough for a progress bar, seldom enough to cost nothing


def _run(mechanism: Callable[..., Any], data: Any, size: int, batched: bool) -> list[Any]:
    if not batched:
        return [plain(mechanism(data)) for _ in range(size)]
    outputs = list(plain(mechanism(data, size)))
    if len(outputs) != size:
        raise InvalidArgument("mechanism", "a function that returns ``size`` outputs", len(outputs))
    return outputs


def draw_both(
    mechanism: Callable[..., Any],
    datasets: tuple[Any, Any],
    samples: int,
    batched: bool,
    jobs: int,
    progress: Progress | None,
) -> tuple[list[Any], list[Any]]:
    """``samples`` outputs on each dataset. With jobs other than 1 by joblib: processes, or the back end it is
    set to.
    """
    tasks = [(which, size) for which in (0, 1) for size in _sizes(samples)]
    drawn: tuple[list[Any], list[Any]] = ([], [])
    done = 0
    for (which, _), outputs in _results(mechanism, datasets, tasks, batched, jobs):
        drawn[which].extend(outputs)
        done += len(outputs)
        if progress is not None:
            progress(done, 2 * samples)
    return drawn


def _sizes(samples: int) -> list[int]:
    pieces = min(_PIECES, samples)
    return [samples // pieces + (i < samples % pieces) for i in range(pieces)]


def _results(
    mechanism: Callable[..., Any], datasets: tuple[Any, Any], tasks: list[Task], batched: bool, jobs: int
) -> Iterator[tuple[Task, list[Any]]]:
    if jobs == 1:
        for which, size in tasks:
            yield (which, size), _run(mechanism, datasets[which], size, batched)
        return
    try:
        import joblib
    except ImportError:
        raise MissingExtra("joblib", "audit") from None
    with joblib.Parallel(n_jobs=jobs) as pool:
        for group in _groups(tasks, 2 * joblib.effective_n_jobs(jobs)):
            calls = [joblib.delayed(_run)(mechanism, datasets[which], size, batched) for which, size in group]
            yield from zip(group, pool(calls), strict=True)


def _groups(tasks: Iterable[Task], size: int) -> Iterator[list[Task]]:
    remaining = iter(tasks)
    while group := list(islice(remaining, size)):
        yield group
