"""What was run: one frozen law per file; declared guarantees; sampling; composition; JSON.

A name loads its module on first use: a plan waits for its own mechanisms only.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dptally.law.adjacency import ADD_REMOVE as ADD_REMOVE
    from dptally.law.adjacency import REPLACE as REPLACE
    from dptally.law.adjacency import Adjacency as Adjacency
    from dptally.mechanisms.alpha_dp import AlphaDP as AlphaDP
    from dptally.mechanisms.approx_dp import ApproxDP as ApproxDP
    from dptally.mechanisms.composed import Composed as Composed
    from dptally.mechanisms.discrete_gaussian import DiscreteGaussian as DiscreteGaussian
    from dptally.mechanisms.discrete_laplace import DiscreteLaplace as DiscreteLaplace
    from dptally.mechanisms.gaussian import Gaussian as Gaussian
    from dptally.mechanisms.gaussian_dp import GaussianDP as GaussianDP
    from dptally.mechanisms.json import from_json as from_json
    from dptally.mechanisms.json import to_json as to_json
    from dptally.mechanisms.laplace import Laplace as Laplace
    from dptally.mechanisms.mechanism import Mechanism as Mechanism
    from dptally.mechanisms.poisson_sampled import PoissonSampled as PoissonSampled
    from dptally.mechanisms.profile import Profile as Profile
    from dptally.mechanisms.pure_dp import PureDP as PureDP
    from dptally.mechanisms.randomized_response import RandomizedResponse as RandomizedResponse
    from dptally.mechanisms.renyi_dp import RenyiDP as RenyiDP
    from dptally.mechanisms.training import dpsgd as dpsgd
    from dptally.mechanisms.zcdp import ZCDP as ZCDP

#: name -> module. No module bears the name of what it exports: loading it would hide the export
_HOME = {
    "ADD_REMOVE": "dptally.law.adjacency",
    "REPLACE": "dptally.law.adjacency",
    "Adjacency": "dptally.law.adjacency",
    "AlphaDP": "dptally.mechanisms.alpha_dp",
    "ApproxDP": "dptally.mechanisms.approx_dp",
    "Composed": "dptally.mechanisms.composed",
    "DiscreteGaussian": "dptally.mechanisms.discrete_gaussian",
    "DiscreteLaplace": "dptally.mechanisms.discrete_laplace",
    "Gaussian": "dptally.mechanisms.gaussian",
    "GaussianDP": "dptally.mechanisms.gaussian_dp",
    "Laplace": "dptally.mechanisms.laplace",
    "Mechanism": "dptally.mechanisms.mechanism",
    "PoissonSampled": "dptally.mechanisms.poisson_sampled",
    "Profile": "dptally.mechanisms.profile",
    "PureDP": "dptally.mechanisms.pure_dp",
    "RandomizedResponse": "dptally.mechanisms.randomized_response",
    "RenyiDP": "dptally.mechanisms.renyi_dp",
    "ZCDP": "dptally.mechanisms.zcdp",
    "dpsgd": "dptally.mechanisms.training",
    "from_json": "dptally.mechanisms.json",
    "to_json": "dptally.mechanisms.json",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
