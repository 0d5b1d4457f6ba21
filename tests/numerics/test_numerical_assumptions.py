"""The elementary functions of this machine are as accurate as the certificates assume, and worse ones are refused."""

from __future__ import annotations

import numpy as np
import pytest

from dptally.errors import Unanswerable
from dptally.numerics.assumptions import require_accurate_functions


def test_this_machine() -> None:
    require_accurate_functions.cache_clear()
    require_accurate_functions()


def test_a_sloppy_function_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    exp = np.exp
    monkeypatch.setattr(np, "exp", lambda x: exp(x) * (1 + 1e-15))
    require_accurate_functions.cache_clear()
    with pytest.raises(Unanswerable, match="ulps"):
        require_accurate_functions()
    monkeypatch.undo()
    require_accurate_functions.cache_clear()
