r"""What the best of K runs certainly reveals: the ranking by the privacy loss itself.

Rank runs by their loss. The winner's loss exceeds x if any run's does: with probability hit(P(L > x)) against
hit(Q(L > x)). Which of a few intervals it lies in is a pair that the winner reveals by post-processing, so it bounds
the mechanism from below over all rankings, and composes. In a = e^x the profile H is convex with slope -Q(L > x), so

    (H(a) - H(a+)) / (a+ - a)  <=  Q(L > x)  <=  (H(a-) - H(a)) / (a - a-),      P(L > x) = H(a) + a Q(L > x);

each interval counts with the least it can have under P and the most it can have under Q, p_i and q_i, if p_i > q_i, and
all the rest is one more outcome with what is left, 1 - sum p_i and 1 - sum q_i. That is a pair whose profile is nowhere
above the true one: for a >= 1 the rest counts nothing and sum (p_i - a q_i)+ is attained; for a < 1 it is 1 - a, which
every pair has, or sum (p_i - a q_i), which is attained.
"""

from __future__ import annotations

import numpy as np

from dptally.checks import Floats
from dptally.laws.atoms import AtomicLaw
from dptally.laws.tuning.law import TUNING_THEOREM
from dptally.laws.tuning.runs import NegativeBinomialRuns, Runs
from dptally.numerics.rounding import SMALLEST, down, up

__all__ = ["attained_law"]


def attained_law(
    edges: Floats, step: float, lower: Floats, upper: Floats, runs: Runs, *, ranked: bool = True
) -> AtomicLaw | None:
    """``lower``, ``upper``: bounds of delta at edges - step, edges, edges + step (three rows); None: nothing is known.

    The edges increase from above ``step``.
    ``ranked=False``: all runs tie, and the winner is a run like any other, if there is one.
    """
    if not ranked and runs.none > 0:
        return None
    counted = runs if ranked else NegativeBinomialRuns(0.0, 1.0)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        backward = up((upper[0] - lower[1]) / -np.expm1(-down(edges - (edges - step))), 8)
        forward = np.maximum(down((lower[1] - upper[2]) / np.expm1(up((edges + step) - edges)), 8), 0.0)
        shrink = np.exp(-edges)
        q_most, q_least = np.minimum(up(backward * shrink, 8), 1.0), np.maximum(down(forward * shrink, 8), 0.0)
        p_most, p_least = np.minimum(up(upper[1] + backward), 1.0), np.maximum(down(lower[1] + forward), 0.0)
        p_after, q_after = np.append(p_most[1:], 0.0), np.append(q_least[1:], 0.0)
        known = (p_least > p_after) & (q_most >= q_after)
        p = counted.hits(np.where(known, p_least, 0.0), np.where(known, p_after, 0.0))[0]
        q = up(counted.hits(np.where(known, q_most, 0.0), np.where(known, q_after, 0.0))[1] + SMALLEST)
        kept = (p > 1e-290) & (q > 1e-290) & (q < p * (1 - 1e-12))
        p, q = p[kept], q[kept]
        # the rest: what is left of both
        p, q = np.append(p, down(1.0 - up(p.sum(), 64), 2)), np.append(q, up(1.0 - down(q.sum(), 64), 2))
        losses = down(np.log(p / q) - 1e-15, 4)
    if not kept.any() or not p[-1] > 0:
        return None
    order = np.argsort(losses, kind="stable")
    points = tuple(zip(losses[order].tolist(), p[order].tolist(), strict=True))
    return AtomicLaw(points, cited=TUNING_THEOREM)
