"""Random parameters of plans, and a table that is filled row by row and continues where it stopped."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.progress import track


def log_uniform(draw: random.Random, low: float, high: float) -> float:
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def fill(data: Path, draws: Mapping[str, int], made: Callable[[str, int], list[Any] | None], every: int) -> None:
    """For each kind its number of rows, those that can be had; written down after each ``every`` of them."""
    found: dict[str, Any] = json.loads(data.read_text()) if data.exists() else {"done": [], "rows": []}
    found["done"] += [0] * (len(draws) - len(found["done"]))
    for which, (kind, number) in enumerate(draws.items()):
        for index in track(range(found["done"][which], number), description=kind):
            row = made(kind, index)
            if row is not None:
                found["rows"].append(row)
            found["done"][which] = index + 1
            if (index + 1) % every == 0 or index + 1 == number:
                rows = ",\n".join(json.dumps(row) for row in found["rows"])
                data.write_text(f'{{"done": {found["done"]}, "rows": [\n{rows}\n]}}\n')
