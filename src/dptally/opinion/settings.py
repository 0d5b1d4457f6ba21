"""A training run by the numbers people report: noise, rate, steps, epochs, batch, dataset, sampler, adjacency."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dptally import checks
from dptally.errors import InvalidArgument, Unanswerable
from dptally.mechanisms import (
    ADD_REMOVE,
    Adjacency,
    BallsInBins,
    Cyclic,
    FixedSize,
    Gaussian,
    Mechanism,
    Sampled,
    ShuffledBatches,
    dpsgd,
)
from dptally.numerics.exact import between

__all__ = ["KEYS", "SAMPLERS", "Settings", "settings_of", "stated_settings"]

#: what a run may be described with, in mappings, tables and words alike
KEYS = ("noise_multiplier", "sample_rate", "steps", "epochs", "batch_size", "dataset_size", "sampler", "adjacency")
ADJACENCIES = {"add-remove": Adjacency.ADD_REMOVE, "replace": Adjacency.REPLACE}
_COUNTS = ("steps", "batch_size", "dataset_size")


@dataclass(frozen=True, slots=True)
class Settings:
    """What was said of a training run; None where nothing was said."""

    noise_multiplier: float
    sample_rate: float | None = None
    steps: int | None = None
    epochs: float | None = None
    batch_size: int | None = None
    dataset_size: int | None = None
    sampler: str | None = None
    adjacency: Adjacency | None = None

    def assumed(self) -> tuple[str, ...]:
        """What is taken for granted because nothing was said."""
        out = []
        if self.sampler is None:
            out.append("sampling: every record is included independently in every step (Poisson); not said")
        if self.adjacency is None:
            out.append("adjacency: one record added or removed; not said")
        return tuple(out)

    def unsaid(self) -> tuple[str, ...]:
        """What must be asked before the run can be judged: who joins a step, and how many steps there are."""
        asked = []
        if self.sample_rate is None and None in (self.batch_size, self.dataset_size):
            asked.append("sampling: at which rate, or which batch size of how many records?")
        if self.steps is None and self.epochs is None:
            asked.append("composition: how many steps or epochs?")
        return tuple(asked)

    @property
    def rate(self) -> float:
        """The sampling rate, as said or as batch size over dataset size, rounded up: more sampling reveals more."""
        if self.sample_rate is not None:
            return self.sample_rate
        return between(Fraction(*self.sizes("the sampling rate")))[1]

    @property
    def number_of_steps(self) -> int:
        """The steps, as said or as epochs over the rate, rounded up."""
        if self.steps is not None:
            return self.steps
        if self.epochs is None:
            raise InvalidArgument("steps", "said (steps, or epochs)", None)
        passes = Fraction(repr(self.epochs))
        if self.sample_rate is not None:
            if self.sample_rate == 0:
                raise InvalidArgument("sample_rate", "positive where the length is given in epochs", 0.0)
            return math.ceil(passes / Fraction(repr(self.sample_rate)))
        batch, records = self.sizes("the number of steps")
        return math.ceil(passes * records / batch)

    def sizes(self, what: str) -> tuple[int, int]:
        """(batch size, dataset size), both needed for ``what``."""
        if self.batch_size is None or self.dataset_size is None:
            raise InvalidArgument("batch_size, dataset_size", f"both said ({what} needs them)", self._said())
        if self.batch_size > self.dataset_size:
            raise InvalidArgument("batch_size", f"at most the dataset size {self.dataset_size}", self.batch_size)
        return self.batch_size, self.dataset_size

    def plan(self) -> Mechanism:
        """The plan under the sampler and adjacency that were said, or under Poisson and ADD_REMOVE."""
        return SAMPLERS[self.sampler or "poisson"](self, self.adjacency or ADD_REMOVE)

    def under(self, sampler: str, adjacency: Adjacency) -> Mechanism:
        """The same run under another sampler and adjacency."""
        return replace(self, sampler=sampler, adjacency=adjacency).plan()

    def _said(self) -> list[str]:
        return [key for key in KEYS if getattr(self, key) is not None]

    @property
    def steps_per_epoch(self) -> int:
        if self.batch_size is not None and self.dataset_size is not None:
            batch, records = self.sizes("an epoch")
            return math.ceil(Fraction(records, batch))
        if self.rate == 0:
            raise InvalidArgument("sample_rate", "positive", 0.0)
        return math.ceil(1 / Fraction(repr(self.rate)))

    @property
    def number_of_epochs(self) -> int:
        """Whole passes that cover all steps."""
        return math.ceil(Fraction(self.number_of_steps, self.steps_per_epoch))


def _poisson(settings: Settings, adjacency: Adjacency) -> Mechanism:
    return dpsgd(settings.noise_multiplier, settings.rate, settings.number_of_steps, adjacency)


def _fixed(settings: Settings, adjacency: Adjacency) -> Mechanism:
    batch, records = settings.sizes("a batch of fixed size")
    sampler = FixedSize(batch_size=batch, dataset_size=records)
    gaussian = Gaussian(settings.noise_multiplier)
    return Sampled(gaussian, sampler, steps=settings.number_of_steps, adjacency=adjacency)


def _partition(
    sampler: Callable[[int], BallsInBins | Cyclic | ShuffledBatches],
) -> Callable[[Settings, Adjacency], Mechanism]:
    """Samplers that split each epoch's data into batches."""

    def build(settings: Settings, adjacency: Adjacency) -> Mechanism:
        gaussian, batches = Gaussian(settings.noise_multiplier), sampler(settings.steps_per_epoch)
        return Sampled(gaussian, batches, epochs=settings.number_of_epochs, adjacency=adjacency)

    return build


SAMPLERS: dict[str, Callable[[Settings, Adjacency], Mechanism]] = {
    "poisson": _poisson,
    "fixed size": _fixed,
    "balls in bins": _partition(BallsInBins),
    "cyclic": _partition(Cyclic),
    "shuffled": _partition(ShuffledBatches),
}


def settings_of(said: Mapping[str, Any]) -> Settings:
    """Settings from what was said; each value is checked and every contradiction refused.

    >>> settings_of({"noise_multiplier": 1.0, "batch_size": 256, "dataset_size": 60000, "epochs": 15}).number_of_steps
    3516
    """
    return _consistent(stated_settings(said))


def stated_settings(said: Mapping[str, Any]) -> Settings:
    """What was said, each value checked by itself; it may not be enough (``Settings.unsaid``)."""
    odd = sorted(set(said) - set(KEYS))
    if odd:
        raise InvalidArgument("claim", f"described with some of {', '.join(KEYS)}", odd)
    if "noise_multiplier" not in said:
        raise InvalidArgument("noise_multiplier", "said", sorted(said))
    made_of: dict[str, Any] = {"noise_multiplier": checks.positive("noise_multiplier", said["noise_multiplier"])}
    if "sample_rate" in said:
        made_of["sample_rate"] = checks.probability("sample_rate", said["sample_rate"])
    if "epochs" in said:
        made_of["epochs"] = checks.positive("epochs", said["epochs"])
    made_of |= {key: checks.count(key, _whole(said[key]), 1) for key in _COUNTS if key in said}
    if "sampler" in said:
        made_of["sampler"] = _one_of("sampler", said["sampler"], SAMPLERS)
    if "adjacency" in said:
        made_of["adjacency"] = said["adjacency"]
        if not isinstance(said["adjacency"], Adjacency):
            made_of["adjacency"] = ADJACENCIES[_one_of("adjacency", said["adjacency"], ADJACENCIES)]
    return Settings(**made_of)


def _one_of(name: str, value: object, known: Mapping[str, Any]) -> str:
    text = value.strip().lower().replace("_", "-" if name == "adjacency" else " ") if isinstance(value, str) else value
    if not isinstance(text, str) or text not in known:
        raise InvalidArgument(name, f"one of {', '.join(known)}", value)
    return text


def _whole(value: object) -> object:
    """1e6 is a count; 1.5 is not."""
    return int(value) if isinstance(value, float) and math.isfinite(value) and value == int(value) else value


def _consistent(settings: Settings) -> Settings:
    """What is said twice must agree; what is needed must be there."""
    sized = settings.batch_size is not None and settings.dataset_size is not None
    if settings.sample_rate is not None and sized:
        batch, records = settings.sizes("the sampling rate")
        if abs(settings.sample_rate - batch / records) > 0.005 * settings.sample_rate:
            raise InvalidArgument("sample_rate", f"batch_size / dataset_size = {batch}/{records}", settings.sample_rate)
    if settings.steps is not None and settings.epochs is not None:
        wanted = replace(settings, steps=None).number_of_steps
        if wanted != settings.steps:
            raise InvalidArgument("steps", f"what {settings.epochs:g} epochs are, {wanted}", settings.steps)
    if not 0 <= settings.rate <= 1:
        raise InvalidArgument("sample_rate", "in [0, 1]", settings.rate)
    if settings.number_of_steps > 2**53:
        raise Unanswerable(f"{settings.number_of_steps} steps are too many to count")
    return settings
