"""What balls and bins and k of t share: the laws of one epoch of random allocation."""

from __future__ import annotations

import math

from dptally.law import Law
from dptally.law.adjacency import ADD_REMOVE, Adjacency, Direction
from dptally.laws.gaussian import GaussianLaw
from dptally.mechanisms.sampling.sampler import Sampler, Step, refused

__all__ = ["allocation_laws", "allocation_laws_below"]

_KNOWN = "Gaussian noise, and under ADD_REMOVE bounded losses (Laplace, randomised response) used once in an epoch"
_STEEPEST = 8.0  # losses up to which a lattice of ratios is fine enough


def allocation_laws(
    sampler: Sampler, step: Step, blocks: tuple[tuple[int, int], ...], adjacency: Adjacency
) -> tuple[Law, ...]:
    """The laws of one epoch that uses a record once in each of some blocks: (steps of a block, how many of them)."""
    from dptally.laws.sampled.allocation.epochs import AllocationEpochsLaw
    from dptally.laws.sampled.allocation.law import AllocationLaw
    from dptally.laws.sampled.allocation.replace import AllocationReplaceLaw

    laws = step.laws()
    if not laws:
        return ()
    if not isinstance(laws[0], GaussianLaw):
        if adjacency is not ADD_REMOVE:
            raise refused(sampler, step, adjacency, _KNOWN)
        return _bounded(sampler, step, laws, blocks, adjacency)
    sigma = step.noise
    assert sigma is not None
    shift = 1.0 / sigma
    if all(size == 1 for size, _ in blocks):
        alone = laws[0] if adjacency is ADD_REMOVE else step.doubled().laws()[0]
        assert isinstance(alone, GaussianLaw)
        times = sum(number for _, number in blocks)
        return (GaussianLaw(math.nextafter(times * alone.variance, math.inf) if times > 1 else alone.variance),)
    found = [
        AllocationEpochsLaw.of(tuple((AllocationLaw(shift, size, side), number) for size, number in blocks))
        for side in Direction
    ]
    return tuple(found) if adjacency is ADD_REMOVE else (AllocationReplaceLaw(found[0]),)


def allocation_laws_below(
    sampler: Sampler, step: Step, steps: int, times: int, adjacency: Adjacency
) -> tuple[Law, ...] | None:
    """What is attained where the laws are a bound: the sum of all steps, and under REPLACE a record that contributes
    nothing instead of one that does.
    """
    sigma = step.noise
    if sigma is None or times == steps or (times == 1 and adjacency is ADD_REMOVE):
        return None
    change = 1 if adjacency is ADD_REMOVE else 2
    mu = change * times / (sigma * steps**0.5) * (1 - 1e-14)
    whole: tuple[Law, ...] = (GaussianLaw(mu * mu),)
    return (*allocation_laws(sampler, step, ((steps, 1),), ADD_REMOVE), *whole) if times == 1 else whole


def _bounded(
    sampler: Sampler, step: Step, laws: tuple[Law, ...], blocks: tuple[tuple[int, int], ...], adjacency: Adjacency
) -> tuple[Law, ...]:
    """Steps of bounded loss, without mass at infinity in either direction."""
    from dptally.laws.sampled.allocation.bounded import BoundedAllocationLaw
    from dptally.laws.sampled.allocation.bounded_epochs import BoundedEpochsLaw

    law, reverse = laws[0], laws[-1]
    bound_only = any(part.laws_below() is not None for part, _ in step.mechanism.parts)
    if bound_only or law.attained_once or law.optimistic() is not law:  # selection: no pair is attained step by step
        raise refused(sampler, step, adjacency, f"{_KNOWN}, and not for selection")
    bounded = math.isfinite(law.supremum) and math.isfinite(law.infimum) and law.supremum <= _STEEPEST
    if not bounded or law.infinity_mass or reverse.infinity_mass or len(blocks) != 1 or blocks[0][1] > 1:
        raise refused(sampler, step, adjacency, _KNOWN)
    if blocks[0][0] == 1:
        return laws
    epoch = [BoundedAllocationLaw(law, reverse, blocks[0][0], side) for side in Direction]
    if law.listed_atoms() is not None:  # finely spread losses would blur them: the engine's own lattice is sharper
        return tuple(epoch)
    return tuple(BoundedEpochsLaw.of(((side, 1),)) for side in epoch)
