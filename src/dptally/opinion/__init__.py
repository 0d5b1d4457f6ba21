"""The second opinion: somebody's claim in, a verdict out, with a proof that others can run again."""

from dptally.opinion.claim import Claim as Claim
from dptally.opinion.claim import Claimed as Claimed
from dptally.opinion.proof import verify as verify
from dptally.opinion.verdict import Verdict as Verdict
from dptally.opinion.verdict import check as check
from dptally.opinion.verdict import check_all as check_all
