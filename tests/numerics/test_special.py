"""Contract: the special functions are scipy's own objects, however and whenever scipy.special is loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

_SAME = """
import scipy.special
assert all(getattr(special, name) is getattr(scipy.special, name) for name in special.__all__)
import scipy.integrate, scipy.stats
assert abs(scipy.stats.norm.cdf(0.3) - special.ndtr(0.3)) < 1e-15
assert scipy.integrate.quad(scipy.special.erfcx, 0, 1)[0] > 0.5
"""


def _run(text: str) -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_compiled_module_loads_alone_and_the_package_loads_after_it() -> None:
    _run(
        "import sys\nfrom dptally.numerics import special\n"
        "assert 'scipy.special' not in sys.modules\nassert 'scipy.special._ufuncs' in sys.modules\n" + _SAME
    )


def test_the_package_may_be_there_first() -> None:
    _run("import scipy.special\nfrom dptally.numerics import special\n" + _SAME)


def test_with_other_threads_the_package_is_loaded_whole() -> None:
    _run(
        "import sys, threading\nstop = threading.Event()\nother = threading.Thread(target=stop.wait)\nother.start()\n"
        "try:\n    from dptally.numerics import special\nfinally:\n    stop.set(); other.join()\n"
        "assert 'scipy.special' in sys.modules\n" + _SAME
    )


def test_a_scipy_that_is_laid_out_otherwise_is_loaded_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    import scipy.special

    from dptally.numerics import special

    load = importlib.import_module

    def no_compiled_module(name: str) -> object:
        if name.endswith("._ufuncs"):
            raise ImportError(name)
        assert name not in sys.modules, "the empty package was left behind"
        return scipy.special

    monkeypatch.delitem(sys.modules, "scipy.special")
    monkeypatch.setattr(special.threading, "active_count", lambda: 1)
    monkeypatch.setattr(special.importlib, "import_module", no_compiled_module)
    assert special._compiled() is scipy.special
    monkeypatch.undo()
    assert load("scipy.special") is scipy.special


def test_no_other_module_imports_scipy_special() -> None:
    from pathlib import Path

    import dptally

    root = Path(dptally.__file__).parent
    found = [path.name for path in root.rglob("*.py") if "scipy.special import" in path.read_text(encoding="utf-8")]
    assert found == []
