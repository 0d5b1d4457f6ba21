"""OpenDP: a measurement's privacy map, at the distance that the data may change by, as a declared guarantee."""

from __future__ import annotations

import re
from typing import Any

from dptally.errors import InvalidType, Unanswerable
from dptally.mechanisms import ZCDP, ApproxDP, Mechanism, PureDP

__all__ = ["from_opendp"]


def from_opendp(measurement: Any, d_in: Any) -> Mechanism:
    """The guarantee that ``measurement.map(d_in)`` states, by its output measure: pure, approximate or concentrated.

    A privacy profile (SmoothedMaxDivergence) is a function; fix its delta first, with OpenDP's make_fix_delta. The
    guarantee is what OpenDP proved, no more: a Gaussian measurement comes as zCDP, not as the Gaussian law.
    """
    measure = getattr(measurement, "output_measure", None)
    if measure is None or not callable(getattr(measurement, "map", None)):
        raise InvalidType("measurement", "an OpenDP measurement", measurement)
    kind = re.sub(r"[\s()]|<.*?>", "", str(measure))
    found = measurement.map(d_in)
    if kind == "MaxDivergence":
        return PureDP(found)
    if kind == "ZeroConcentratedDivergence":
        return ZCDP(found)
    if kind in ("ApproximateMaxDivergence", "FixedSmoothedMaxDivergence"):
        return ApproxDP(*found)
    if kind == "ApproximateZeroConcentratedDivergence" and found[1] == 0:
        return ZCDP(found[0])
    raise Unanswerable(
        f"no guarantee here for the measure {str(measure)[:60]!r}; fix its delta with make_fix_delta, or convert it to "
        "MaxDivergence or ZeroConcentratedDivergence"
    )
