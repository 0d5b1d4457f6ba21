"""A limit of processor time on work whose size nobody can tell beforehand."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

__all__ = ["TookTooLong", "within"]

T = TypeVar("T")
_EVERY = 32  # calls between two looks at the clock


class TookTooLong(BaseException):
    """Raised in the midst of the work: no handler inside it may take this for an answer."""


def within(seconds: float, work: Callable[[], T]) -> T:
    """Do the work, or raise :class:`TookTooLong` once it has taken so many seconds of this thread's processor time.

    The clock is looked at where Python calls a function, by the hook for profilers. Under a profiler, and inside work
    that is limited already, there is no limit of its own.
    """
    if sys.getprofile() is not None:
        return work()
    calls, deadline = 0, time.thread_time() + seconds

    def look(_frame: FrameType, _event: str, _argument: Any) -> None:
        nonlocal calls
        calls += 1
        if calls % _EVERY == 0 and time.thread_time() > deadline:
            raise TookTooLong

    sys.setprofile(look)
    try:
        return work()
    finally:
        sys.setprofile(None)
