"""Whatever is handed to the compiled module, the answer is an exception or a number: never a crash."""

from __future__ import annotations

import itertools
import math
import os
import random
import shutil
import subprocess
import sys
from array import array
from pathlib import Path
from types import ModuleType
from typing import Any

import kernel_built
import numpy as np
import pytest

from dptally.accounting.certified.contour.compiled import _packed
from dptally.accounting.certified.tuning import STANDARD

CHOICES = _packed(STANDARD.contour)
WRONG: tuple[Any, ...] = (
    *(None, "x", b"abc", [], {}, object(), 1j, math.nan, math.inf, -math.inf, -1.0, 0.0, 1e308, 5e-324, 2**70, -1),
    *(np.zeros((2, 2)), np.zeros(3, np.float32), np.zeros(3, np.int64), np.zeros(6)[::2], np.float64(2.0), True),
    *(array("d", [1.0]), array("q", [1]), memoryview(b"12345678"), np.full(4, np.nan), np.zeros(0), np.zeros(3, ">f8")),
)
#: calls that answer; each argument is replaced by everything wrong in turn
CALLS: dict[str, tuple[Any, ...]] = {
    "block": (0.01, 1.0, True, 950, 1000, 1050, False, -11.5, True, CHOICES, 1e7),
    "is_below": (0.01, 1.0, False, 1000, 1.8, -11.5, CHOICES, 1e7),
    "moment_table": (0.01, 1.0, True, np.array([0.5, 1.0]), np.empty(8)),
    "log_decay": (0.01, 1.0, True, 8.0, np.array([1.0, 2.0]), np.empty(2)),
    "laplace": (10, 3, bytes(range(256)), np.empty(4, np.int64)),
    "gaussian": (100, 11, 11, 24200, bytes(range(256)), np.empty(4, np.int64)),
    "characteristic": (0.01, 1.0, True, 8.0, 3.0, -40.0),
}


def hostile(module: Any) -> int:
    """Every argument of every function replaced by everything wrong; how many calls were refused."""
    refused = 0
    for name, good in CALLS.items():
        function = getattr(module, name)
        function(*good)
        for place, wrong in itertools.product(range(len(good)), WRONG):
            arguments = [x.copy() if isinstance(x, np.ndarray) else x for x in good]
            arguments[place] = wrong
            try:
                function(*arguments)
            except (TypeError, ValueError, BufferError, OverflowError):
                refused += 1
        for number in range(len(good)):
            try:
                function(*good[:number])
            except TypeError:
                refused += 1
    contour = module.block(*CALLS["block"]).contour(1000)
    for wrong in WRONG:
        for call in (contour.log_delta, contour.estimate, module.block(*CALLS["block"]).contour):
            try:
                call(wrong)
            except (TypeError, ValueError, OverflowError):
                refused += 1
        for pair in ((wrong, np.empty(6)), (np.ones(2), wrong), (np.ones(2), np.ones(5))):
            try:
                contour.log_delta_many(*pair)
            except (TypeError, ValueError, BufferError):
                refused += 1
    return refused


def extremes(module: Any, number: int) -> None:
    """Numbers of any size where numbers are due, cut and twisted choices: bounds or nothing."""
    draw = random.Random(2)

    def any_number() -> float:
        return draw.choice((1.0, -1.0)) * 10.0 ** draw.uniform(-320, 308) if draw.random() < 0.5 else draw.uniform(0, 1)

    for _ in range(number):
        choices = CHOICES.copy()
        for _ in range(draw.randrange(4)):
            choices[draw.randrange(len(choices))] = any_number()
        choices = choices[: draw.randrange(len(choices)) if draw.random() < 0.2 else None]
        rate, sigma = draw.choice((any_number(), 10.0 ** draw.uniform(-12, 0))), draw.choice((any_number(), 1.0, 0.3))
        count = float(draw.choice((1, 1000, 10**6, 2**53)))
        try:
            sought = draw.random() < 0.5, any_number()
            found = module.block(rate, sigma, draw.random() < 0.5, count, count, count, *sought, True, choices, 1e5)
            if found is not None:
                low, high, _ = found.contour(count).log_delta(any_number())
                assert low <= high <= 0
            module.is_below(rate, sigma, True, count, abs(any_number()), any_number(), choices, 1e5)
            theta = np.array([abs(any_number()) for _ in range(3)])
            module.moment_table(rate, sigma, draw.random() < 0.5, theta, np.empty(12))
            module.log_decay(rate, sigma, draw.random() < 0.5, float(theta[0]), theta, np.empty(3))
            module.characteristic(rate, sigma, True, float(theta[0]), float(theta[1]), -abs(any_number()))
        except ValueError:
            continue


def test_wrong_arguments_raise(module: ModuleType) -> None:
    assert hostile(module) > 500


def test_numbers_of_any_size(module: ModuleType) -> None:
    extremes(module, 400)


def test_a_block_serves_its_own_counts_only(module: ModuleType) -> None:
    block = module.block(*CALLS["block"])
    for count in (949, 1051, 1, 2**53):
        with pytest.raises(ValueError, match="other counts"):
            block.contour(count)
    assert block.contour(950) is not None
    assert block.contour(1050) is not None
    with pytest.raises(ValueError, match="in order"):
        module.block(0.01, 1.0, True, 1000, 950, 1050, *CALLS["block"][6:])


def test_objects_cannot_be_made_by_hand(module: ModuleType) -> None:
    block = module.block(*CALLS["block"])
    for kind in (type(block), type(block.contour(1000))):
        with pytest.raises(TypeError):
            kind()


def test_under_sanitizers(tmp_path: Path) -> None:
    """The same attacks with AddressSanitizer and UBSan in the compiled code, in a process of its own."""
    library = _sanitizer()
    path = kernel_built.build_to(tmp_path, *kernel_built.SANITIZED)
    script = f"""
import sys
sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1])]!r}
import kernel_built, test_kernel_input as attacks
module = kernel_built.load({str(path)!r})
assert attacks.hostile(module) > 500
attacks.extremes(module, 150)
print("clean")
"""
    environment = os.environ | {
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "DPTALLY_KERNEL": "0",
        "OPENBLAS_NUM_THREADS": "1",
    }
    result = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=500, check=False
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.strip().endswith("clean")


def _sanitizer() -> str:
    """libasan of the compiler; skips, and says so, without it."""
    if shutil.which("gcc") is None:
        pytest.skip("NO GCC: the kernel is not tested under sanitizers")
    answer = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=False)
    found = answer.stdout.strip()
    if sys.platform != "linux" or answer.returncode or not os.path.isabs(found):
        pytest.skip("NO ADDRESS SANITIZER: the kernel is not tested under it")
    return found
