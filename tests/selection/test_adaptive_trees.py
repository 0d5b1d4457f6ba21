"""Laws: choices that depend on earlier ones, in any order and beside others, with all transcripts counted."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dptally as dp
from depth import thinned
from selection.worst_case import exponential, permute_and_flip

Step = tuple[str, float]
MECHANISMS = {"em": dp.ExponentialMechanism, "coin": dp.PureDP, "flip": dp.PermuteAndFlip}


def pair(rng: np.random.Generator, kind: str, size: float) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes of one step on two neighbouring datasets."""
    if kind == "coin":
        heads = 1 / (1 + math.exp(-size))
        return np.array([heads, 1 - heads]), np.array([1 - heads, heads])
    candidates = 2 if kind == "flip" or rng.random() < 0.7 else 3
    scores = rng.normal(0.0, rng.choice([0.5, 2 / size]), candidates)
    moved = scores + rng.choice([-1.0, 1.0], candidates)
    choose = exponential if kind == "em" else permute_and_flip
    return choose(scores[None], size)[0], choose(moved[None], size)[0]


def transcripts(rng: np.random.Generator, left: list[Step], p: float, q: float) -> list[tuple[float, float]]:
    """(P, Q) of every transcript; which step comes next, and its scores, depend on what came before."""
    if not left:
        return [(p, q)]
    place = int(rng.integers(len(left)))
    rest = left[:place] + left[place + 1 :]
    return [
        end
        for a, b in zip(*pair(rng, *left[place]), strict=True)
        for end in transcripts(rng, rest, p * float(a), q * float(b))
    ]


@pytest.mark.parametrize("seed", range(thinned(60)))
def test_no_tree_of_choices_exceeds_the_plan(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.choice([0.1, 0.5, 1.0, 2.0], 2)
    steps: list[Step] = [("em", float(rng.choice(sizes))) for _ in range(int(rng.integers(1, 4)))]
    if seed % 2:
        steps.append([("coin", 0.4), ("flip", 0.6)][seed % 4 // 2])
    plan: dp.Mechanism = sum((MECHANISMS[kind](size) for kind, size in steps[1:]), MECHANISMS[steps[0][0]](steps[0][1]))
    total = sum(size for _, size in steps)
    at = [0.1 * total, 0.6 * total]
    claimed = plan.delta(np.array(at))
    for _ in range(20):
        p, q = np.array(transcripts(rng, steps, 1.0, 1.0)).T
        for epsilon, most in zip(at, claimed.tolist(), strict=True):
            for one, other in ((p, q), (q, p)):
                assert np.maximum(one - math.exp(epsilon) * other, 0.0).sum() <= most * (1 + 1e-10) + 1e-15
