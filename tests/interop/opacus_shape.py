"""The part of opacus that a drop-in meets, for machines without it; where opacus is installed, opacus itself."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from abc import ABC, abstractmethod
from collections import OrderedDict
from copy import deepcopy
from types import ModuleType
from typing import Any

INSTALLED = importlib.util.find_spec("opacus") is not None


class IAccountant(ABC):
    """The documented interface of an opacus accountant."""

    @abstractmethod
    def __init__(self) -> None: ...

    @abstractmethod
    def step(self, *, noise_multiplier: float, sample_rate: float) -> None: ...

    @abstractmethod
    def get_epsilon(self, delta: float, *args: Any, **kwargs: Any) -> float: ...

    @abstractmethod
    def __len__(self) -> int: ...

    @classmethod
    @abstractmethod
    def mechanism(cls) -> str: ...

    def get_optimizer_hook_fn(self, sample_rate: float) -> Any:
        return lambda optimizer: self.step(noise_multiplier=optimizer.noise_multiplier, sample_rate=sample_rate)

    def state_dict(self, destination: Any = None) -> Any:
        destination = OrderedDict() if destination is None else destination
        destination["history"] = deepcopy(self.history)  # type: ignore[attr-defined]
        destination["mechanism"] = self.mechanism()
        return destination


def install() -> None:
    """Put the shape where ``import opacus`` finds it."""
    package, accountants, registry = (
        ModuleType(f"opacus{end}") for end in ("", ".accountants", ".accountants.registry")
    )
    known: dict[str, type] = {}

    def register_accountant(mechanism: str, accountant: type, force: bool = False) -> None:
        if mechanism in known and not force:
            raise ValueError(mechanism)
        known[mechanism] = accountant

    registry._ACCOUNTANTS = known  # type: ignore[attr-defined]
    accountants.IAccountant = IAccountant  # type: ignore[attr-defined]
    accountants.registry = registry  # type: ignore[attr-defined]
    accountants.register_accountant = register_accountant  # type: ignore[attr-defined]
    accountants.create_accountant = lambda mechanism: known[mechanism]()  # type: ignore[attr-defined]
    package.accountants = accountants  # type: ignore[attr-defined]
    for module in (package, accountants, registry):
        sys.modules[module.__name__] = module


def remove() -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "opacus"]:
        del sys.modules[name]
    sys.modules.pop("dptally.interop.opacus", None)
