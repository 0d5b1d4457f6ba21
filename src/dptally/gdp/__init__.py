"""Gaussian differential privacy of any mechanism: identify it, measure its mu, amplify it (the GDPT
toolkit).
"""

from dptally.gdp.amplify import Rate as Rate
from dptally.gdp.amplify import Rectified as Rectified
from dptally.gdp.amplify import rate_for as rate_for
from dptally.gdp.amplify import rectify as rectify
from dptally.gdp.curve import Curve as Curve
from dptally.gdp.curve import GaussianTail as GaussianTail
from dptally.gdp.identify import Identification as Identification
from dptally.gdp.identify import Verdict as Verdict
from dptally.gdp.identify import identify as identify
from dptally.gdp.measure import Measurement as Measurement
from dptally.gdp.measure import algorithm_one as algorithm_one
from dptally.gdp.measure import measure as measure
from dptally.gdp.measure import measure_until as measure_until
from dptally.gdp.profiles import envelope as envelope
from dptally.gdp.profiles import icea as icea
from dptally.gdp.profiles import laplace as laplace
from dptally.gdp.profiles import naive as naive
from dptally.gdp.profiles import noisy_sgd as noisy_sgd
from dptally.gdp.profiles import refined as refined
from dptally.gdp.profiles import root_log as root_log
from dptally.gdp.subsampling import with_replacement as with_replacement
from dptally.gdp.subsampling import without_replacement as without_replacement
from dptally.gdp.summary import Summary as Summary
from dptally.gdp.summary import summary as summary
from dptally.gdp.transform import Band as Band
from dptally.gdp.transform import staircase as staircase
from dptally.gdp.transform import transform as transform
