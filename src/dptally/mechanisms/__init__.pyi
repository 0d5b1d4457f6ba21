"""The names of this package, with their types. Written by ``make door``: do not edit."""

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
from dptally.mechanisms.registry import register as register
from dptally.mechanisms.renyi_dp import RenyiDP as RenyiDP
from dptally.mechanisms.training import dpsgd as dpsgd
from dptally.mechanisms.zcdp import ZCDP as ZCDP
