"""Exact noise: randomness from the operating system, outcomes decided by integers."""

from dptally.noise.grid import grid_gaussian as grid_gaussian
from dptally.noise.grid import grid_laplace as grid_laplace
from dptally.noise.grid import grid_sensitivity as grid_sensitivity
from dptally.noise.grid import natural_grid as natural_grid
from dptally.noise.response import randomized_response as randomized_response
from dptally.noise.samplers import bernoulli as bernoulli
from dptally.noise.samplers import bernoulli_exp as bernoulli_exp
from dptally.noise.samplers import discrete_gaussian as discrete_gaussian
from dptally.noise.samplers import discrete_laplace as discrete_laplace
from dptally.noise.samplers import uniform_below as uniform_below
from dptally.noise.selection import exponential_choice as exponential_choice
from dptally.noise.selection import permute_and_flip as permute_and_flip
