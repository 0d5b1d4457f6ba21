"""Binary-tree aggregation as a strategy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dptally.matrices.bounds import Bounds
from dptally.matrices.tree import node_matrix, tree_bounds
from dptally.mechanisms.matrices.strategy import Steps, Strategy, number_of_steps
from dptally.mechanisms.registry import declared
from dptally.numerics.arrays import Floats

__all__ = ["BinaryTree"]


@declared(section="matrices", plan="binary_tree", example={"steps": 8}, refuses={"steps": (0, 10**7)})
@dataclass(frozen=True, slots=True, repr=False)
class BinaryTree(Strategy):
    """The sums over all nodes of a binary tree that are complete after ``steps`` steps: one row for each.

    A node covers the steps from j 2^l to (j + 1) 2^l and is released with the last of them. One participation costs
    sqrt(1 + floor(log2 steps)) [Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song 2011].

    >>> BinaryTree(steps=3).array()
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.],
           [1., 1., 0.]])
    """

    steps: int
    json_name: ClassVar[str] = "binary_tree"

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", number_of_steps("steps", self.steps))

    @property
    def length(self) -> int:
        return self.steps

    def squared(self, steps: Steps) -> Bounds:
        return tree_bounds(self.steps, *steps)

    def array(self) -> Floats:
        return node_matrix(self.steps)

    def bandwidth(self) -> int | None:
        return 1 if self.steps == 1 else None
