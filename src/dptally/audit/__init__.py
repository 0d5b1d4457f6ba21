"""Statistical lower bounds that test an implementation: they can refute a claim, never prove it."""

from dptally.audit.granularity import Granularity as Granularity
from dptally.audit.granularity import granularity as granularity
from dptally.audit.one_run import guess_p_value as guess_p_value
from dptally.audit.one_run import one_run as one_run
from dptally.audit.result import AuditResult as AuditResult
from dptally.audit.run import run as run
from dptally.audit.suite import Case as Case
from dptally.audit.suite import suite as suite
