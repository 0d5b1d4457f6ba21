"""Numbers for readers: fewer digits, never on the unsafe side."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

__all__ = ["shown_down", "shown_up"]


def shown_up(value: float, digits: int = 6) -> str:
    """``value`` with that many significant digits, rounded up: read back, it is not below ``value``.

    >>> shown_up(1.0000001), shown_up(0.1), shown_up(2.5e-7, 1)
    ('1.00001', '0.1', '3e-07')
    """
    return _shown(value, digits, ROUND_CEILING)


def shown_down(value: float, digits: int = 6) -> str:
    """``value`` with that many significant digits, rounded down.

    >>> shown_down(1.9999999)
    '1.99999'
    """
    return _shown(value, digits, ROUND_FLOOR)


def _shown(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return str(value)
    # the shortest decimal that reads back as the double stands for it: 0.1 stays 0.1
    rounded = Context(prec=digits, rounding=rounding).create_decimal(Decimal(repr(float(value))))
    return f"{float(rounded):.{digits}g}"  # at most 15 digits survive the trip through a double
