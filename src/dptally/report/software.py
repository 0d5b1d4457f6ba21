"""How to cite dptally itself."""

from __future__ import annotations

import dptally

__all__ = ["dptally_bibtex"]


def dptally_bibtex() -> str:
    """The BibTeX entry of this version.

    >>> dptally_bibtex().splitlines()[0]
    '@software{dptally,'
    """
    fields = {
        "author": "{The dptally developers}",
        "title": "{dptally: certified differential-privacy accounting}",
        "version": dptally.__version__,
        "year": "2026",
    }
    return "@software{dptally,\n" + ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items()) + "\n}"
