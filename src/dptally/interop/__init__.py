"""Other tools: what they wrote down becomes a plan, and their accountants can be replaced by this one.

Readers (``from_dp_accounting``, ``from_opacus``) need nothing but dptally. Drop-ins live in modules of their own,
which import the other tool: ``dptally.interop.opacus``, ``.dp_accounting``, ``.flower``, ``.pipeline_dp``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dptally.interop.events import from_dp_accounting as from_dp_accounting
    from dptally.interop.opacus_history import from_opacus as from_opacus

_HOME = {"from_dp_accounting": "dptally.interop.events", "from_opacus": "dptally.interop.opacus_history"}


def __getattr__(name: str) -> Any:  # a reader loads when it is asked for
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
