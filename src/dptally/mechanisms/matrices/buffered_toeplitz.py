"""A buffered linear Toeplitz (BLT) strategy: a few exponentially decaying buffers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from dptally.errors import InvalidArgument
from dptally.matrices.bounds import Bounds
from dptally.matrices.series import buffered
from dptally.matrices.toeplitz import Column
from dptally.mechanisms.matrices.strategy import Steps, Strategy, entries, number_of_steps
from dptally.mechanisms.matrices.toeplitz_matrix import of_column
from dptally.mechanisms.registry import declared
from dptally.numerics.arrays import Floats

__all__ = ["BufferedToeplitz"]

_MOST_WORK = 5_000_000  # products of the expansion


@declared(
    section="matrices",
    plan="buffered_toeplitz",
    aliases=("blt",),
    example={"decays": (0.9, 0.5), "scales": (0.2, 0.1), "steps": 16},
    refuses={"decays": ((), (1.5, 0.5), 1.0), "scales": ((), (0.1,)), "steps": (10**7,)},
)
@dataclass(frozen=True, slots=True, repr=False)
class BufferedToeplitz(Strategy):
    """The lower triangular Toeplitz strategy with first column 1, sum s_k, sum s_k d_k, sum s_k d_k^2, ..

    One buffer for each decay d_k in [-1, 1], with output scale s_k [Dvijotham et al. 2024].

    >>> BufferedToeplitz(decays=[0.5], scales=[0.5], steps=3).array()
    array([[1.  , 0.  , 0.  ],
           [0.5 , 1.  , 0.  ],
           [0.25, 0.5 , 1.  ]])
    """

    decays: tuple[float, ...]
    scales: tuple[float, ...]
    steps: int
    json_name: ClassVar[str] = "buffered_toeplitz"

    def __post_init__(self) -> None:
        for name in ("decays", "scales"):
            given = entries(name, getattr(self, name), 1)
            object.__setattr__(self, name, tuple((given + 0.0).tolist()))
        object.__setattr__(self, "steps", number_of_steps("steps", self.steps))
        if len(self.decays) != len(self.scales):
            raise InvalidArgument("scales", f"as many as decays, {len(self.decays)}", len(self.scales))
        if not max(map(abs, self.decays)) <= 1:
            raise InvalidArgument("decays", "in [-1, 1]", self.decays)
        if len(self.decays) * self.steps > _MOST_WORK:
            raise InvalidArgument("steps", f"at most {_MOST_WORK} / number of buffers", self.steps)

    @property
    def length(self) -> int:
        return self.steps

    def squared(self, steps: Steps) -> Bounds:
        return _column(self.decays, self.scales, self.steps).bounds(*steps)

    def array(self) -> Floats:
        return of_column(_column(self.decays, self.scales, self.steps).center, self.steps)


@lru_cache(maxsize=32)
def _column(decays: tuple[float, ...], scales: tuple[float, ...], steps: int) -> Column:
    return buffered(decays, scales, steps)
