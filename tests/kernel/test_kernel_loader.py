"""When the kernel is used, when not, and what is said about it."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest

import dptally as dp
from dptally.accounting.certified.contour.compiled import ready
from dptally.law import Composition
from dptally.laws.gaussian import GaussianLaw
from dptally.numerics import compiled


def said(monkeypatch: pytest.MonkeyPatch, module: object, switch: str = "1") -> tuple[object, str]:
    monkeypatch.setenv("DPTALLY_KERNEL", switch)
    monkeypatch.setitem(sys.modules, "dptally._kernel", module)  # type: ignore[arg-type]
    monkeypatch.delattr(dp, "_kernel", raising=False)
    return compiled._loaded()


def test_a_kernel_of_this_version_is_used_and_no_other(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
    assert compiled.INTERFACE.startswith(f"{dp.__version__}/")
    assert module.interface == compiled.INTERFACE
    assert said(monkeypatch, module) == (module, "in use")
    assert said(monkeypatch, module, "0") == (None, "switched off by DPTALLY_KERNEL=0")
    assert said(monkeypatch, None) == (None, "not built")
    stale = said(monkeypatch, SimpleNamespace(interface="0.1.0/1"))
    assert stale == (None, f"built for 0.1.0/1, not for {compiled.INTERFACE}: make kernel")
    assert said(monkeypatch, SimpleNamespace())[0] is None


def test_the_command_line_says_so() -> None:
    for switch, words in (("0", "(compiled kernel: switched off by DPTALLY_KERNEL=0)"), ("1", "(compiled kernel: ")):
        run = subprocess.run(
            [sys.executable, "-m", "dptally", "--version"],
            env={"DPTALLY_KERNEL": switch, "PATH": ""}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert run.stdout.startswith(f"dptally, version {dp.__version__} ")
        assert words in run.stdout


def test_only_one_known_law_goes_to_the_kernel(in_use: ModuleType) -> None:
    remove, add = (direction.parts for direction in dp.dpsgd(1.0, 0.01, 1000).directions())
    assert ready(remove) is not None
    assert ready(add) is not None
    assert ready((*remove, (GaussianLaw(1.0), 1))) is None
    assert ready(((remove[0][0], 2**53 + 1),)) is None
    assert ready(Composition(((GaussianLaw(1.0), 1),)).parts) is None
    with compiled.switched(None):
        assert ready(remove) is None


def test_vast_counts_are_left_to_numpy(in_use: ModuleType) -> None:
    found = dp.dpsgd(1e6, 1e-6, 2**53).epsilon_interval(1e-6)
    with compiled.switched(None):
        assert dp.dpsgd(1e6, 1e-6, 2**53).epsilon_interval(1e-6) == found
