"""DpEvents of dp-accounting as plans: one line per event, read by name and fields, so that nothing is imported.

An event that is unknown, or that has a field unknown here, is refused: its meaning cannot be guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from dataclasses import fields as dataclass_fields
from fractions import Fraction
from typing import Any

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType, Unanswerable
from dptally.interop.event_text import DEEPEST, Node, looks_like_event, read_event_text
from dptally.mechanisms import (
    ADD_REMOVE,
    REPLACE,
    ZCDP,
    Adjacency,
    ApproxDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    FixedSize,
    Gaussian,
    Laplace,
    Mechanism,
    MixtureOfGaussians,
    PermuteAndFlip,
    PoissonSampled,
    RandomAllocation,
    RandomizedResponse,
    Sampled,
    TruncatedPoisson,
)
from dptally.mechanisms.shifted_zcdp import ShiftedZCDP
from dptally.mechanisms.special_response import SpecialResponse

__all__ = ["EVENTS", "Kind", "NotPrivate", "from_dp_accounting"]

_WRAPPER = ("module_name", "class_name")  # the fields that to_named_tuple() adds
#: what a field out of its domain is told in dp-accounting's own words, which its users' handlers look for
_NEEDED = {
    "noise_multiplier": "a non-negative Noise multiplier",
    "sampling_probability": "a Sampling rate between 0 and 1",
    "step_counts": "non-negative step counts",
}


class NotPrivate(Unanswerable):
    """The event protects nothing: no epsilon is finite."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How events are read here: the neighbours, what a replacement changes, and which sampling stands around.

    ``special``: a record is replaced by a special one, which stands for none (dp-accounting's REPLACE_SPECIAL).
    """

    adjacency: Adjacency
    replace_sensitivity: int | None
    special: bool = False
    sampling: str = ""
    depth: int = 0

    def inside(self, sampling: str = "") -> Reading:
        if self.depth > DEEPEST:
            raise InvalidArgument("event", f"nested at most {DEEPEST} deep", "a deeper event")
        return replace(self, sampling=sampling or self.sampling, depth=self.depth + 1)

    def change(self, event: str) -> float:
        """The `sensitivity` of a unit of noise: a record's norm where sampling needs it, else what a neighbour
        changes.
        """
        if self.adjacency is ADD_REMOVE:
            return 1.0
        if self.replace_sensitivity is None:
            raise Unanswerable(
                f"under REPLACE, {event} does not say what its noise is a multiple of: one record's norm C (then a "
                "replacement changes up to 2 C; the PLD accountant of dp-accounting reads it so) or the change itself "
                "(its RDP accountant). Write replace_sensitivity=2 for the first, replace_sensitivity=1 for the second"
            )
        if not self.sampling:
            return float(self.replace_sensitivity)
        if self.replace_sensitivity == 2:
            return 1.0
        if self.sampling == "fixed":  # batches of equal size: only the change matters, and it is twice this norm
            return 0.5
        raise Unanswerable(
            f"{event} sampled record by record under REPLACE needs the norm of one record, and replace_sensitivity=1 "
            "bounds only the change; write replace_sensitivity=2 with the noise per unit of one record's norm"
        )


Fields = dict[str, Any]
Build = Callable[[Fields, Reading], Mechanism]


@dataclass(frozen=True, slots=True)
class Kind:
    """An event's fields in their order, the defaults, how it becomes a plan, and how exactly."""

    fields: tuple[str, ...]
    build: Build
    answer: str
    defaults: Fields = field(default_factory=dict)


def from_dp_accounting(
    event: object, adjacency: Adjacency = ADD_REMOVE, replace_sensitivity: int | None = None
) -> Mechanism:
    """The plan that a DpEvent of dp-accounting describes: the event, its repr as text, or its named tuple.

    An event that releases data unprotected, an unknown one, and one without a theorem raise Unanswerable. Under
    REPLACE a Gaussian or Laplace event needs ``replace_sensitivity``: 2 if its noise is a multiple of one record's
    norm, 1 if it is a multiple of the change. Where a field must be converted (scale = 1 / noise_parameter), it is
    rounded to the side that tells more.

    >>> from_dp_accounting("SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)), 1000)")
    1000 * PoissonSampled(mechanism=Gaussian(sigma=1.0, sensitivity=1.0), rate=0.01, adjacency=ADD_REMOVE)
    """
    if not isinstance(adjacency, Adjacency):
        raise InvalidType("adjacency", "ADD_REMOVE or REPLACE", adjacency)
    if replace_sensitivity is not None and replace_sensitivity not in (1, 2):
        raise InvalidArgument("replace_sensitivity", "1, 2 or None", replace_sensitivity)
    if isinstance(event, str):
        if not looks_like_event(event):
            raise InvalidArgument("event", 'the repr of a DpEvent, such as "GaussianDpEvent(1.0)"', event)
        event = read_event_text(event)
    plan = plan_of(event, Reading(adjacency, None if replace_sensitivity is None else int(replace_sensitivity)))
    plan.directions()  # what no theorem covers is refused now, not at the first question
    return plan


def plan_of(event: object, reading: Reading) -> Mechanism:
    """The plan of one event under a reading; the tree below it is read the same way."""
    reading = reading.inside()
    name = _name(event)
    if name not in EVENTS:
        raise Unanswerable(
            f"no plan for the event {name[:60]!r}: its meaning is not known here, and none is guessed. Known: "
            f"{', '.join(sorted(EVENTS))}"
        )
    kind = EVENTS[name]
    try:
        return kind.build(_fields(event, name, kind), reading)
    except InvalidArgument as error:
        if error.argument.startswith("event"):
            raise
        needed = f"one with {_NEEDED.get(error.argument, 'valid fields')}"
        raise InvalidArgument(f"event {name}", needed, error.value, str(error)) from None


# -- reading an event's name and fields ----------------------------------------------------------------------


def _name(event: object) -> str:
    if isinstance(event, Node):
        return event.name
    if isinstance(event, Mapping) and isinstance(event.get("class_name"), str):
        return str(event["class_name"])
    named = getattr(event, "class_name", None)
    if isinstance(named, (str, bytes)) and hasattr(event, "_fields"):
        return named.decode("utf-8", "replace") if isinstance(named, bytes) else named
    if isinstance(event, type) or event is None or isinstance(event, (int, float, Sequence, Mapping)):
        raise InvalidType("event", "a DpEvent, its repr as text, or its named tuple", event)
    return type(event).__name__


def _fields(event: object, name: str, kind: Kind) -> Fields:
    given = _given(event, name, kind)
    odd = sorted(set(given) - set(kind.fields))
    if odd:
        raise Unanswerable(f"{name} has a field unknown here ({', '.join(odd)[:80]}): its meaning cannot be guessed")
    given = kind.defaults | given
    missing = [one for one in kind.fields if one not in given]
    if missing:
        raise InvalidArgument(f"event {name}", f"given with {', '.join(kind.fields)}", sorted(given))
    return given


def _given(event: object, name: str, kind: Kind) -> Fields:
    if isinstance(event, Node):
        if len(event.ordered) > len(kind.fields):
            raise InvalidArgument(f"event {name}", f"given with {', '.join(kind.fields)}", len(event.ordered))
        placed = dict(zip(kind.fields, event.ordered, strict=False))
        if set(placed) & set(event.named):
            raise InvalidArgument(f"event {name}", "given with each field once", sorted(set(placed) & set(event.named)))
        return placed | event.named
    if isinstance(event, Mapping):
        return {str(key): value for key, value in event.items() if key not in _WRAPPER}
    return {key: getattr(event, key) for key in _field_names(event, kind)}


def _field_names(event: object, kind: Kind) -> list[str]:
    """All fields that the event itself declares, so that a new one is noticed."""
    declared = getattr(type(event), "__attrs_attrs__", None)
    if declared is not None:
        return [attribute.name for attribute in declared]
    if is_dataclass(event):
        return [one.name for one in dataclass_fields(event)]
    named = getattr(event, "_fields", None)
    if named is not None:
        return [one for one in named if one not in _WRAPPER]
    return [one for one in kind.fields if hasattr(event, one)]


# -- one function per event ------------------------------------------------------------------------------------


def _nothing(given: Fields, reading: Reading) -> Mechanism:
    del given, reading
    return Composed(())


def _open(given: Fields, reading: Reading) -> Mechanism:
    del given, reading
    raise NotPrivate("NonPrivateDpEvent releases data without protection: no epsilon is finite")


def _unsupported(given: Fields, reading: Reading) -> Mechanism:
    del given, reading
    raise Unanswerable("UnsupportedDpEvent says that no description exists: there is nothing to account")


def _noise(name: str, value: object) -> float:
    """A multiplier of noise; zero protects nothing."""
    number = checks.nonnegative(name, value)
    if number == 0.0:
        raise NotPrivate(f"{name} 0 adds no noise: no epsilon is finite")
    return number


def _gaussian(given: Fields, reading: Reading) -> Mechanism:
    return Gaussian(_noise("noise_multiplier", given["noise_multiplier"]), reading.change("GaussianDpEvent"))


def _laplace(given: Fields, reading: Reading) -> Mechanism:
    return Laplace(_noise("noise_multiplier", given["noise_multiplier"]), reading.change("LaplaceDpEvent"))


def _discrete_laplace(given: Fields, reading: Reading) -> Mechanism:
    step = checks.nonnegative("noise_parameter", given["noise_parameter"])
    reach = checks.count("sensitivity", given["sensitivity"])
    if reach == 0:
        return Composed(())
    if step == 0.0:  # exp(-0 |x|) is no distribution, and that package reads it as no noise
        raise NotPrivate("DiscreteLaplaceDpEvent with noise_parameter 0 describes no noise")
    change = reading.change("DiscreteLaplaceDpEvent") * reach
    if change != int(change):
        raise Unanswerable("half a sensitivity of a discrete event has no meaning; write replace_sensitivity=2")
    scale = 1.0 / step
    if Fraction(scale) * Fraction(step) > 1:  # the wider noise would tell less than the event does
        scale = math.nextafter(scale, 0.0)
    return DiscreteLaplace(scale, int(change))


def _discrete_gaussian(given: Fields, reading: Reading) -> Mechanism:
    """Exact on the integers; in many or unknown dimensions sensitivity^2 / (2 sigma^2)-zCDP
    [Canonne, Kamath, Steinke 2020, Thm. 14].
    """
    sigma = _noise("sigma", given["sigma"])
    change = checks.nonnegative("sensitivity", given["sensitivity"]) * reading.change("DiscreteGaussianDpEvent")
    dimension = given["dimension"]
    if dimension is not None:
        dimension = checks.count("dimension", dimension, 1)
    if change == 0.0:
        return Composed(())
    if dimension == 1 and change == int(change):
        return DiscreteGaussian(sigma, int(change))
    rho = Fraction(change) ** 2 / (2 * Fraction(sigma) ** 2)
    return ZCDP(_rounded_up(rho))


def _rounded_up(value: Fraction) -> float:
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def _response(given: Fields, reading: Reading) -> Mechanism:
    """With probability p a uniform answer of k, else the true one: the truth is told with 1 - p + p/k."""
    buckets = checks.count("num_buckets", given["num_buckets"], 1)
    lie = Fraction(checks.probability("noise_parameter", given["noise_parameter"]))
    if buckets == 1 or lie == 1:
        return Composed(())
    if lie == 0:
        raise NotPrivate("RandomizedResponseDpEvent with noise_parameter 0 always tells the truth")
    if reading.special:
        return SpecialResponse(float(lie), buckets)
    return RandomizedResponse(_rounded_up(1 - lie + lie / buckets), buckets)


def _declared(given: Fields, reading: Reading) -> Mechanism:
    del reading
    return ApproxDP(given["epsilon"], given["delta"])


def _concentrated(given: Fields, reading: Reading) -> Mechanism:
    del reading
    xi = checks.nonnegative("xi", given["xi"])
    return ShiftedZCDP(given["rho"], xi) if xi else ZCDP(given["rho"])


def _repeated(given: Fields, reading: Reading) -> Mechanism:
    times = checks.count("count", given["count"])
    return times * plan_of(given["event"], reading) if times else Composed(())


def _composed(given: Fields, reading: Reading) -> Mechanism:
    events = given["events"]
    if isinstance(events, (str, bytes)) or not isinstance(events, Sequence):
        raise InvalidType("event ComposedDpEvent", "one with a list of events", events)
    return Composed.of((plan_of(one, reading), 1) for one in events)


def _poisson(given: Fields, reading: Reading) -> Mechanism:
    rate = checks.probability("sampling_probability", given["sampling_probability"])
    if rate == 0.0:
        return Composed(())
    return PoissonSampled(plan_of(given["event"], reading.inside("poisson")), rate, reading.adjacency)


def _without_replacement(given: Fields, reading: Reading) -> Mechanism:
    batch = checks.count("sample_size", given["sample_size"])
    records = checks.count("source_dataset_size", given["source_dataset_size"])
    if batch == 0 or records == 0:
        return Composed(())
    inside = plan_of(given["event"], reading.inside("fixed"))
    return Sampled(inside, FixedSize(batch_size=batch, dataset_size=records), steps=1, adjacency=reading.adjacency)


def _with_replacement(given: Fields, reading: Reading) -> Mechanism:
    del given, reading
    raise Unanswerable(
        "refused: SampledWithReplacementDpEvent has no tight theorem here (one record may be drawn several times); "
        "sample without replacement, or each record independently"
    )


def _truncated(given: Fields, reading: Reading) -> Mechanism:
    rate = checks.probability("sampling_probability", given["sampling_probability"])
    records = checks.count("dataset_size", given["dataset_size"])
    cap = checks.count("truncated_batch_size", given["truncated_batch_size"])
    if rate == 0.0 or records == 0 or cap == 0:
        return Composed(())
    inside = _gaussian({"noise_multiplier": given["noise_multiplier"]}, reading.inside("poisson"))
    sampler = TruncatedPoisson(rate=rate, dataset_size=records, cap=cap)
    return Sampled(inside, sampler, steps=1, adjacency=reading.adjacency)


def _allocation(given: Fields, reading: Reading) -> Mechanism:
    """Each record takes part in ``num_selected`` of ``num_steps`` steps, a uniform subset of its own."""
    steps = checks.count("num_steps", given["num_steps"])
    times = checks.count("num_selected", given["num_selected"])
    if times == 0:
        return Composed(())
    if times >= steps:
        if times > steps:
            raise InvalidArgument("num_selected", f"at most num_steps = {steps}", times)
        return steps * plan_of(given["event"], reading)
    inside = plan_of(given["event"], reading.inside("allocation"))
    return Sampled(inside, RandomAllocation(steps=steps, times=times), epochs=1, adjacency=reading.adjacency)


def _mixture(given: Fields, reading: Reading) -> Mechanism:
    if reading.adjacency is REPLACE:
        raise Unanswerable("MixtureOfGaussiansDpEvent is a pair for one record added or removed; not under REPLACE")
    if all(one == 0 for one in given["sensitivities"]):
        return Composed(())
    sigma = _noise("standard_deviation", given["standard_deviation"])
    return MixtureOfGaussians(sigma, tuple(given["sensitivities"]), tuple(given["sampling_probs"]))


def _tree(given: Fields, reading: Reading) -> Mechanism:
    """A record enters one leaf and the full nodes above it, at most ceil(log2(steps + 1)) of them, each with its
    own noise: as many Gaussian releases as the deepest tree has levels of full nodes
    [Kairouz, McMahan, Song, Thakkar, Thakurta, Xu 2021, Thm. D.1].
    """
    noise = _noise("noise_multiplier", given["noise_multiplier"])
    counts = given["step_counts"]
    counts = counts if isinstance(counts, Sequence) and not isinstance(counts, str) else (counts,)
    steps = [checks.count("step_counts", one) for one in counts]
    depth = max((one.bit_length() for one in steps), default=0)
    if not depth:
        return Composed(())
    return depth * Gaussian(noise, reading.change("SingleEpochTreeAggregationDpEvent"))


def _best_of(given: Fields, reading: Reading) -> Mechanism:
    """Shape infinity is Poisson's law; any other law is never 0, so with a mean of 1 there is always one run."""
    inside = plan_of(given["event"], reading)
    shape = checks.real("shape", given["shape"])
    if shape == math.inf:
        return inside.best_of(given["mean"], law="poisson")
    if given["mean"] == 1 and shape > -1:
        return inside
    return inside.best_of(given["mean"], law="tnb", shape=shape)


def _selection(mechanism: Callable[[float], Mechanism]) -> Build:
    def build(given: Fields, reading: Reading) -> Mechanism:
        del reading
        epsilon = checks.nonnegative("epsilon", given["epsilon"])
        return mechanism(epsilon) if epsilon else Composed(())

    return build


#: every event of dp-accounting 0.6.0 and of its sources of August 2026
EVENTS: dict[str, Kind] = {
    "NoOpDpEvent": Kind((), _nothing, "exact"),
    "NonPrivateDpEvent": Kind((), _open, "refused"),
    "UnsupportedDpEvent": Kind((), _unsupported, "refused"),
    "GaussianDpEvent": Kind(("noise_multiplier",), _gaussian, "exact"),
    "LaplaceDpEvent": Kind(("noise_multiplier",), _laplace, "exact"),
    "DiscreteLaplaceDpEvent": Kind(("noise_parameter", "sensitivity"), _discrete_laplace, "exact"),
    "DiscreteGaussianDpEvent": Kind(
        ("sigma", "sensitivity", "dimension"),
        _discrete_gaussian,
        "exact in dimension 1, else bounded",
        {"sensitivity": 1.0, "dimension": None},
    ),
    "RandomizedResponseDpEvent": Kind(("noise_parameter", "num_buckets"), _response, "exact"),
    "EpsilonDeltaDpEvent": Kind(("epsilon", "delta"), _declared, "exact"),
    "ZCDpEvent": Kind(("rho", "xi"), _concentrated, "exact", {"xi": 0.0}),
    "SelfComposedDpEvent": Kind(("event", "count"), _repeated, "exact"),
    "ComposedDpEvent": Kind(("events",), _composed, "exact"),
    "PoissonSampledDpEvent": Kind(("sampling_probability", "event"), _poisson, "exact"),
    "SampledWithoutReplacementDpEvent": Kind(
        ("source_dataset_size", "sample_size", "event"), _without_replacement, "exact"
    ),
    "SampledWithReplacementDpEvent": Kind(
        ("source_dataset_size", "sample_size", "event"), _with_replacement, "refused"
    ),
    "TruncatedSubsampledGaussianDpEvent": Kind(
        ("dataset_size", "sampling_probability", "truncated_batch_size", "noise_multiplier"), _truncated, "bounded"
    ),
    "RandomAllocationDpEvent": Kind(
        ("event", "num_selected", "num_steps"), _allocation, "exact for one step of many, else bounded"
    ),
    "MixtureOfGaussiansDpEvent": Kind(("standard_deviation", "sensitivities", "sampling_probs"), _mixture, "exact"),
    "SingleEpochTreeAggregationDpEvent": Kind(("noise_multiplier", "step_counts"), _tree, "exact"),
    "RepeatAndSelectDpEvent": Kind(("event", "mean", "shape"), _best_of, "bounded"),
    "ExponentialMechanismDpEvent": Kind(("epsilon",), _selection(ExponentialMechanism), "exact"),
    "PermuteAndFlipDpEvent": Kind(("epsilon",), _selection(PermuteAndFlip), "exact"),
}
