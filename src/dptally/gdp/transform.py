"""The Gaussian differential privacy transformation G(eps) = mu_GDP(eps, delta(eps)), and its staircase
bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from dptally import checks
from dptally.checks import Floats
from dptally.errors import InvalidArgument
from dptally.gdp.view import Profiled, View, view_of
from dptally.interval import Interval
from dptally.numerics.normal import gaussian_mu_log

__all__ = ["Band", "band_of", "staircase", "transform"]


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Certified bounds of a curve over epsilon: what a plot draws."""

    epsilon: Floats
    lower: Floats
    upper: Floats


@overload
def transform(m: Profiled, epsilon: float) -> Interval: ...
@overload
def transform(m: Profiled, epsilon: list[float] | Floats) -> Band: ...
def transform(m: Profiled, epsilon: Any) -> Any:
    """Certified bounds of the GDPT: the mu with delta_mu(epsilon) = delta(epsilon), epsilon >= 0.

    m is mu-GDP iff mu >= G(epsilon) for every epsilon >= 0; G is 0 where delta is 0 and inf where delta is 1.
    A number gives an Interval, an array a Band.  [Liu et al. 2022, Def. 4.1 and Cor. 4.1]

    >>> from dptally import Laplace
    >>> box = transform(Laplace(scale=0.5), 1.0)
    >>> round(box.lower, 10), round(box.upper, 10)
    (1.6859908712, 1.6859908712)
    """
    values = _epsilons(epsilon)
    band = band_of(view_of(m), values.ravel())
    if values.ndim == 0:
        return Interval(float(band.lower[0]), float(band.upper[0]), "GDPT")
    return Band(values, band.lower.reshape(values.shape), band.upper.reshape(values.shape))


def _epsilons(epsilon: ArrayLike) -> Floats:
    values = checks.reals("epsilon", epsilon)
    if not ((values >= 0) & np.isfinite(values)).all():
        raise InvalidArgument("epsilon", "at least 0 and finite", epsilon)
    return values


def band_of(view: View, epsilon: Floats) -> Band:
    low, high = view.log_delta(epsilon)
    return Band(epsilon, gaussian_mu_log(epsilon, low)[0], gaussian_mu_log(epsilon, high)[1])


def staircase(m: Profiled, head: float, steps: int) -> Band:
    """The staircase bounds G- and G+ on [0, head]: value i holds on [x_i, x_{i+1}), x_i = i head / steps.

    G-(x_i) = mu_GDP(x_i, delta(x_{i+1})) <= G <= mu_GDP(x_{i+1}, delta(x_i)) = G+(x_i)  [Liu et al. 2022, Thm.
    4.3]

    >>> from dptally import Laplace
    >>> band = staircase(Laplace(scale=5.0), head=0.2, steps=100)
    >>> bool(band.lower.max() < 0.239105583 < band.upper.max())
    True
    """
    head, steps = checks.positive("head", head), checks.count("steps", steps, 1)
    x = np.arange(steps + 1, dtype=np.float64) * (head / steps)
    low, high = view_of(m).log_delta(x)
    return Band(x[:-1], gaussian_mu_log(x[:-1], low[1:])[0], gaussian_mu_log(x[1:], high[:-1])[1])
