"""The certified numerical accountant: two-sided bounds that include rounding, for any mix and any delta."""

from dptally.accounting.certified.engine import Profile as Profile
from dptally.accounting.certified.engine import delta_interval as delta_interval
from dptally.accounting.certified.engine import delta_intervals as delta_intervals
from dptally.accounting.certified.engine import delta_profile as delta_profile
from dptally.accounting.certified.engine import epsilon_curve as epsilon_curve
from dptally.accounting.certified.engine import epsilon_interval as epsilon_interval
from dptally.accounting.certified.engine import epsilon_intervals as epsilon_intervals
from dptally.numerics.assumptions import require_accurate_functions

require_accurate_functions()
