"""Random losses of a plan, for plots and simulations: each step's loss is drawn and added.

Point masses are drawn by their multinomial counts, the continuous part by a table of its distribution function. Not a
sampler of noise, and not exact: see ``dptally.noise`` for those.
"""

from __future__ import annotations

import math

import numpy as np

from dptally.checks import Floats
from dptally.errors import InvalidArgument
from dptally.law import Composition, Law

__all__ = ["drawn"]

_MOST_DRAWS = 2 * 10**8
_AT_ONCE = 2 * 10**6
_POINTS = 8001
_REST = 1e-13  # what a table leaves out at each end


def drawn(composition: Composition, number: int, seed: int | None) -> Floats:
    """``number`` draws of the composed loss, from numpy's default generator with this seed."""
    generator = np.random.default_rng(seed)
    total = np.zeros(number)
    work = sum(n for law, n in composition.parts if _is_continuous(law)) * number
    if work > _MOST_DRAWS:
        raise InvalidArgument("n", f"at most {max(_MOST_DRAWS * number // work, 1)} draws of so many steps", number)
    for law, n in composition.parts:
        total += _of_law(law, n, number, generator)
    return total


def _is_continuous(law: Law) -> bool:
    return math.fsum(mass for _, mass in law.atoms()) + law.infinity_mass < 1 - 1e-9


def _of_law(law: Law, steps: int, number: int, generator: np.random.Generator) -> Floats:
    """The sum of ``steps`` independent losses of one law, ``number`` times."""
    atoms = law.atoms()
    losses = np.array([loss for loss, _ in atoms])
    masses = np.array([mass for _, mass in atoms] + [law.infinity_mass])
    rest = max(1.0 - float(masses.sum()), 0.0) if _is_continuous(law) else 0.0
    shares = np.append(masses, rest)
    counts = generator.multinomial(steps, shares / shares.sum(), size=number)
    total = counts[:, :-2] @ losses if losses.size else np.zeros(number)
    total = np.where(counts[:, -2] > 0, np.inf, total)
    if rest == 0:
        return np.asarray(total, dtype=np.float64)
    at, below = _table(law)
    often = counts[:, -1]
    for start in range(0, number, max(1, _AT_ONCE // max(int(often.max()), 1))):
        part = slice(start, start + max(1, _AT_ONCE // max(int(often.max()), 1)))
        many = often[part]
        values = np.interp(generator.random(int(many.sum())), below, at)
        ends = np.cumsum(many)
        sums = np.concatenate([[0.0], np.cumsum(values)])
        total[part] += sums[ends] - sums[ends - many]
    return np.asarray(total, dtype=np.float64)


def _table(law: Law) -> tuple[Floats, Floats]:
    """(losses, distribution function of the continuous part), increasing."""
    low, high = _ends(law)
    coarse = np.linspace(low, high, _POINTS)
    atoms = np.array(law.atoms()).reshape(-1, 2)

    def continuous(x: Floats) -> Floats:
        jumps = np.array([float(atoms[atoms[:, 0] > value, 1].sum()) for value in x]) if atoms.size else 0.0
        return np.asarray(law.tail(x) - jumps, dtype=np.float64)

    tails = continuous(coarse)
    whole = tails[0] - tails[-1]
    below = np.clip((tails[0] - tails) / whole, 0.0, 1.0)
    # finer where the distribution function is steep: every point of the second table has an equal share
    even = np.interp(np.linspace(0.0, 1.0, _POINTS), np.maximum.accumulate(below), coarse)
    at = np.unique(np.concatenate([coarse[:: _POINTS // 200], even]))
    tails = continuous(at)
    return at, np.maximum.accumulate(np.clip((tails[0] - tails) / (tails[0] - tails[-1]), 0.0, 1.0))


def _ends(law: Law) -> tuple[float, float]:
    """Losses between which all but 1e-13 of the continuous part lies."""
    centre = law.mean
    whole = 1.0 - law.infinity_mass

    def tail(x: float) -> float:
        return float(law.tail(np.array([x]))[0])

    width = 1e-6 + abs(centre)
    high = centre + width
    while high < law.supremum and tail(high) > _REST:
        width *= 2
        high = centre + width
    width = 1e-6 + abs(centre)
    low = centre - width
    while low > law.infimum and whole - tail(low) > _REST:
        width *= 2
        low = centre - width
    inside = 1 - 4e-16  # the ends of a bounded law may carry atoms
    low = max(low, law.infimum * (inside if law.infimum < 0 else 1.0)) if math.isfinite(law.infimum) else low
    return low, min(high, law.supremum * inside) if math.isfinite(law.supremum) else high
