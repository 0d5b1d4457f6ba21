"""jax-privacy with certified answers: a configuration that it takes wherever it takes a PldAccountantConfig.

from dptally.interop.jax_privacy import DptallyAccountantConfig
accountant = analysis.DpsgdTrainingAccountant(dp_accountant_config=DptallyAccountantConfig())
"""

from __future__ import annotations

from dptally.errors import MissingExtra
from dptally.interop.dp_accounting import DptallyAccountant

__all__ = ["DptallyAccountantConfig"]

try:
    from dp_accounting.pld import PLDAccountant
    from jax_privacy.accounting.accountants import PldAccountantConfig  # pyright: ignore[reportMissingImports]
except ImportError:
    raise MissingExtra("jax-privacy") from None


class _Accountant(DptallyAccountant, PLDAccountant):  # type: ignore[misc]
    """A PLDAccountant by name only: jax-privacy asks for that class where a user has several records."""


class DptallyAccountantConfig(PldAccountantConfig):  # type: ignore[misc]  # jax-privacy is untyped
    """Makes certified accountants; a discretization is not needed and changes nothing."""

    def create_accountant(self) -> DptallyAccountant:
        """A new accountant, for one record added or removed."""
        return _Accountant()
