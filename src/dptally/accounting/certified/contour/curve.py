"""Many numbers of steps at once: neighbouring counts share tilt, period, cut-off and the values of phi."""

from __future__ import annotations

from collections.abc import Sequence

from dptally.accounting.certified.bounds import Ends
from dptally.accounting.certified.contour.inversion import Inversion, tilted
from dptally.accounting.certified.contour.nodes import Grid, Nodes
from dptally.accounting.certified.contour.saddle import Saddle, at_delta
from dptally.accounting.certified.contour.tables import scaled
from dptally.accounting.certified.solve import epsilon_ends
from dptally.accounting.certified.tuning import STANDARD, Tuning
from dptally.law import Composition

__all__ = ["curve"]


def curve(
    composition: Composition, counts: Sequence[int], log_target: tuple[float, float], tuning: Tuning = STANDARD
) -> dict[int, Ends]:
    """Certified bounds of eps for each number of repetitions, at a delta whose log lies in ``log_target``.

    Counts that the contours cannot answer are left out.
    """
    found: dict[int, Ends] = {}
    if not composition.parts or not all(type(law).has_characteristic for law, _ in composition.parts):
        return found
    ordered = sorted({count for count in counts if count > 0})
    while ordered:
        block = [count for count in ordered if count <= tuning.contour.curve_ratio * ordered[0]] or ordered[:1]
        ordered = ordered[len(block) :]
        found.update(_block(composition, block, log_target, tuning))
    return found


def _block(
    composition: Composition, counts: list[int], log_target: tuple[float, float], tuning: Tuning
) -> dict[int, Ends]:
    """The recipe of a single contour for all of them: only the power of phi differs."""
    middle = counts[len(counts) // 2]
    found = tilted([(law, middle * n) for law, n in composition.parts], at_delta(log_target[0]), tuning.contour)
    if found is None:
        return {}
    tilts, row, _ = found
    ends = [(Saddle.of(row, c / middle), scaled(tilts, c / middle)) for c in (counts[0], counts[-1])]
    # what decays for the fewest steps decays for all
    grid = Grid.of(ends, [(law, counts[0] * n) for law, n in composition.parts], tuning.contour)
    if grid is None:
        return {}
    log_tolerance = grid.log_tolerance(tuning.contour, counts[-1] * composition.steps)
    nodes = Nodes.of(composition.parts, ends[0][0].theta, grid, log_tolerance, tuning.contour.most_work)
    if nodes is None:
        return {}
    answers: dict[int, Ends] = {}
    for count in counts:
        times = count / middle
        contour = Inversion.of(nodes, grid, Saddle.of(row, times), scaled(tilts, times), count)
        answers[count] = epsilon_ends(contour, log_target, tuning.search)
    return answers
