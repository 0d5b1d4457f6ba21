"""One tool, one workload, one process: read the workload from standard input, print one line of JSON.

Usage: python runner.py MODULE METHOD. Only the standard library is imported before the tool itself, so the
import time and the memory are the tool's own.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

MEMORY_LIMIT = 6 << 30  # bytes of data: beyond it the tool gets a MemoryError
ENOUGH = 3.0  # seconds of repetition for the best of several
SLOW = 10.0  # a first call beyond this is not repeated


def peak() -> float:
    """Peak resident memory in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def numbers(answer: Any) -> dict[str, float | None]:
    """A float is the tool's answer; three are (lower, answer, upper)."""
    if isinstance(answer, tuple):
        lower, value, upper = (float(x) for x in answer)
        return {"lower": lower, "value": value, "upper": upper}
    return {"value": float(answer)}


def moved(work: dict[str, Any], turn: int) -> dict[str, Any]:
    """The same work with parameters that were not asked for before: no tool is timed on what it remembers."""
    change = 1 + turn * 1e-12
    if work["ask"] == "sigma":
        return {**work, "epsilon": work["epsilon"] * change}
    parts = [
        {key: value * change if key in ("sigma", "scale", "p", "epsilon") else value for key, value in part.items()}
        for part in work["parts"]
    ]
    return {**work, "parts": parts}


def measure(call: Callable[[dict[str, Any]], Any], work: dict[str, Any]) -> dict[str, Any]:
    times: list[float] = []
    answers: list[Any] = []
    while not times or (times[0] < SLOW and (len(times) < 2 or (sum(times) < ENOUGH and len(times) < 7))):
        asked = moved(work, len(times))
        start = time.process_time()
        answers.append(call(asked))
        times.append(time.process_time() - start)
    return {**numbers(answers[0]), "first": times[0], "best": min(times)}


def main() -> None:
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))
    module, method = sys.argv[1:3]
    work = json.load(sys.stdin)
    start = time.perf_counter()
    tool = importlib.import_module(module)
    out: dict[str, Any] = {"import": time.perf_counter() - start, "version": tool.VERSION}
    try:
        out |= measure(tool.METHODS[method], work)
    except NotImplementedError as reason:
        out["skipped"] = str(reason) or "not offered"
    except MemoryError:
        out["error"] = f"MemoryError beyond {MEMORY_LIMIT >> 30} GB"
    except (
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as failure:
        out["error"] = f"{type(failure).__name__}: {' '.join(str(failure).split())[:160]}"
    out["peak"] = peak()
    print("\n" + json.dumps(out))


if __name__ == "__main__":
    main()
