"""The printed statement and the command-line flags of tensorflow-privacy."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from dptally.errors import InvalidArgument
from dptally.mechanisms import Gaussian
from dptally.opinion.claim import Claim, Claimed
from dptally.opinion.settings import settings_of
from dptally.opinion.words import number, quantity

__all__ = ["claims_of_statement", "flags_of", "looks_like_flags", "looks_like_statement"]

HALVED = "microbatching: the noise counts half"
_N = r"([\d.,]{1,40}(?:e[+-]?\d{1,3})?)"
_RUN = re.compile(
    rf"DP-SGD\s+performed\s+over\s+{_N}\s+examples\s+with\s+{_N}\s+examples\s+per\s+iteration,\s+"
    rf"noise\s+multiplier\s+{_N}\s+for\s+{_N}\s+epochs\s+(with|without)\s+microbatching",
    re.IGNORECASE,
)
_EXAMPLES = re.compile(
    rf"Example-level\s+DP\s+with\s+add-or-remove-one\s+adjacency\s+at\s+delta\s*=\s*{_N}\s+computed\s+with\s+"
    rf"(\w{{1,20}})\s+accounting:\s+Epsilon\s+with\s+each\s+example\s+occurring\s+once\s+per\s+epoch:\s+{_N}\s+"
    rf"Epsilon\s+assuming\s+Poisson\s+sampling\s+\(\*\):\s+{_N}",
    re.IGNORECASE,
)
_FLAG = re.compile(
    r"--?(N|batch_size|noise_multiplier|epochs|delta|used_microbatching|accountant_type)[= ]([^\s]{1,60})"
)
_MICROBATCHING = re.compile(r"--?(no)?used_microbatching(?![\w=])(?!\s+(?:true|false)\b)", re.IGNORECASE)
_YES_NO = {"true": True, "1": True, "false": False, "0": False}


def looks_like_statement(text: str) -> bool:
    return "DP-SGD" in text and "performed" in text and "examples" in text


def claims_of_statement(text: str) -> list[Claim]:
    """The claims that a statement makes for one example: under Poisson sampling, and in any order of the data."""
    run, levels = _RUN.search(text), _EXAMPLES.search(text)
    if run is None or levels is None:
        raise InvalidArgument(
            "statement", "one that tensorflow-privacy's compute_dp_sgd_privacy_statement prints", text[:80]
        )
    records, batch, epochs = (number(run[i]) for i in (1, 2, 4))
    noise = quantity("noise_multiplier", run[3])
    halved = run[5].lower() == "with"
    multiplier = noise / 2 if halved else noise  # exact: a microbatch's average changes by twice its clipping norm
    delta, accountant = quantity("delta", levels[1]), levels[2].lower()
    notes = (HALVED,) if halved else ()
    settings = settings_of(
        {
            "noise_multiplier": multiplier,
            "batch_size": batch,
            "dataset_size": records,
            "epochs": epochs,
            "sampler": "poisson",
            "adjacency": "add-remove",
        }
    )
    printed = "tensorflow-privacy statement"
    poisson = Claim(
        Claimed(quantity("epsilon", levels[4]), delta),
        settings.plan(),
        accountant,
        f"{printed}, Poisson sampling",
        settings,
        notes=notes,
    )
    passes = math.ceil(Fraction(repr(epochs)))
    ordered = Claim(
        Claimed(quantity("epsilon", levels[3]), delta),
        passes * Gaussian(multiplier),
        accountant,
        f"{printed}, each example once per epoch",
        notes=notes,
    )
    return [poisson, ordered]


def looks_like_flags(text: str) -> bool:
    return re.search(r"(?:^|\s)--?noise_multiplier[= ]", text) is not None


def flags_of(text: str) -> dict[str, Any]:
    """What the flags of tensorflow-privacy's program say: numbers, ``used_microbatching`` and ``accountant_type``.

    >>> flags_of("--N=60000 --batch_size=256 --noise_multiplier=1.1 --epochs=15 --delta=1e-5")["dataset_size"]
    60000.0
    """
    said: dict[str, Any] = {}
    for name, value in _found_flags(text):
        key = "dataset_size" if name == "N" else name
        if key in said:
            raise InvalidArgument(key, "said once", value)
        said[key] = _value(key, value)
    return said


def _value(key: str, text: str) -> float | bool | str:
    if key == "accountant_type":
        return text.lower()
    if key != "used_microbatching":
        return quantity(key, text)
    if text.lower() not in _YES_NO:
        raise InvalidArgument(key, "true or false", text)
    return _YES_NO[text.lower()]


def _found_flags(text: str) -> Iterator[tuple[str, str]]:
    rest = re.sub(r"^\s*(?:python3?\s+)?\S*compute_dp_sgd_privacy\S*", "", text)
    rest = _MICROBATCHING.sub(lambda flag: f"--used_microbatching={'false' if flag[1] else 'true'}", rest)
    left = _FLAG.sub("", rest).replace("\\", "").strip()
    if left:
        wanted = (
            "only --N, --batch_size, --noise_multiplier, --epochs, --delta, --used_microbatching, --accountant_type"
        )
        raise InvalidArgument("flags", f"only {wanted}", left[:60])
    return iter([(match[1], match[2]) for match in _FLAG.finditer(rest)])
