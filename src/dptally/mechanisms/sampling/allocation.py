"""What balls and bins and k of t share: the laws of one epoch of random allocation."""

from __future__ import annotations

import math

from dptally.law import Law
from dptally.law.adjacency import ADD_REMOVE, Adjacency, Direction
from dptally.laws.gaussian import GaussianLaw
from dptally.mechanisms.sampling.sampler import Sampler, Step, refused

__all__ = ["allocation_laws"]

_KNOWN = "Gaussian noise, and bounded losses (Laplace, randomised response) used once in an epoch, under ADD_REMOVE"
_STEEPEST = 8.0  # losses up to which a lattice of ratios is fine enough


def allocation_laws(
    sampler: Sampler, step: Step, blocks: tuple[tuple[int, int], ...], adjacency: Adjacency
) -> tuple[Law, ...]:
    """The laws of one epoch that uses a record once in each of some blocks: (steps of a block, how many of them)."""
    from dptally.laws.sampled.allocation.epochs import AllocationEpochsLaw
    from dptally.laws.sampled.allocation.law import AllocationLaw

    laws = step.laws()
    if not laws:
        return ()
    if adjacency is not ADD_REMOVE:
        raise refused(sampler, step, adjacency, _KNOWN)
    if not isinstance(laws[0], GaussianLaw):
        return _bounded(sampler, step, laws, blocks, adjacency)
    sigma = step.noise
    assert sigma is not None
    shift = 1.0 / sigma
    if all(size == 1 for size, _ in blocks):
        times = sum(number for _, number in blocks)
        return (GaussianLaw(math.nextafter(times * laws[0].variance, math.inf) if times > 1 else laws[0].variance),)
    found = []
    for side in Direction:
        parts = tuple((AllocationLaw(shift, size, side), number) for size, number in blocks)
        found.append(AllocationEpochsLaw.of(parts))
    return tuple(found)


def _bounded(
    sampler: Sampler, step: Step, laws: tuple[Law, ...], blocks: tuple[tuple[int, int], ...], adjacency: Adjacency
) -> tuple[Law, ...]:
    """Steps of bounded loss, without mass at infinity in either direction; one use in an epoch."""
    from dptally.laws.sampled.allocation.bounded import BoundedAllocationLaw

    law, reverse = laws[0], laws[-1]
    bound_only = any(part.laws_below() is not None for part, _ in step.mechanism.parts)
    if bound_only or law.attained_once or law.optimistic() is not law:  # selection: no pair is attained step by step
        raise refused(sampler, step, adjacency, f"{_KNOWN}, and not for selection")
    bounded = math.isfinite(law.supremum) and math.isfinite(law.infimum) and law.supremum <= _STEEPEST
    if not bounded or law.infinity_mass or reverse.infinity_mass or len(blocks) > 1 or blocks[0][1] > 1:
        raise refused(sampler, step, adjacency, _KNOWN)
    if blocks[0][0] == 1:
        return laws
    return tuple(BoundedAllocationLaw(law, blocks[0][0], side) for side in Direction)
