"""Mechanisms that run on data: each returns the value with the mechanism that accounts for it."""

from dptally.release.accuracy import ModeAccuracy as ModeAccuracy
from dptally.release.accuracy import mode_accuracy as mode_accuracy
from dptally.release.answer import answer as answer
from dptally.release.batches import Batches as Batches
from dptally.release.batches import batches as batches
from dptally.release.column import DROP as DROP
from dptally.release.count import count as count
from dptally.release.function import ReleaseFunction as ReleaseFunction
from dptally.release.function import release_function as release_function
from dptally.release.histogram import histogram as histogram
from dptally.release.histogram import mode as mode
from dptally.release.loaders import inspect_loader as inspect_loader
from dptally.release.propose import mode_of_bits as mode_of_bits
from dptally.release.propose import propose_test_release as propose_test_release
from dptally.release.rectify import clip_and_rectify as clip_and_rectify
from dptally.release.released import Released as Released
from dptally.release.response import estimate_counts as estimate_counts
from dptally.release.response import randomized_response as randomized_response
from dptally.release.sampling import PoissonSample as PoissonSample
from dptally.release.sampling import poisson_sample as poisson_sample
from dptally.release.search import Searched as Searched
from dptally.release.search import draw_runs as draw_runs
from dptally.release.search import search as search
from dptally.release.total import bounded_sum as bounded_sum
from dptally.release.total import mean as mean
