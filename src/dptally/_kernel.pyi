# what kernel/module.c defines; the module is there after `make kernel` only
from typing import Any, final

interface: str

@final
class Contour:
    @property
    def saddle(self) -> float: ...
    def log_delta(self, epsilon: float, /) -> tuple[float, float, float]: ...
    def estimate(self, epsilon: float, /) -> float: ...
    def log_delta_many(self, epsilon: Any, out: Any, /) -> None: ...

@final
class Block:
    @property
    def number(self) -> int: ...
    def contour(self, count: float, /) -> Contour | None: ...

def block(
    rate: float,
    scale: float,
    remove: bool,
    first: float,
    middle: float,
    last: float,
    is_epsilon: bool,
    value: float,
    shorter: bool,
    choices: Any,
    most_work: float,
    /,
) -> Block | None: ...
def is_below(
    rate: float,
    scale: float,
    remove: bool,
    count: float,
    epsilon: float,
    log_delta: float,
    choices: Any,
    most_work: float,
    /,
) -> bool: ...
def laplace(numerator: int, denominator: int, pool: Any, out: Any, /) -> tuple[int, int]: ...
def gaussian(numerator: int, scale: int, step: int, bottom: int, pool: Any, out: Any, /) -> tuple[int, int]: ...
def moment_table(rate: float, scale: float, remove: bool, theta: Any, out: Any, /) -> None: ...
def log_decay(rate: float, scale: float, remove: bool, theta: float, start: Any, out: Any, /) -> None: ...
def characteristic(
    rate: float, scale: float, remove: bool, theta: float, reach: float, log_tolerance: float, /
) -> tuple[bytes, float, float, float, float] | None: ...
