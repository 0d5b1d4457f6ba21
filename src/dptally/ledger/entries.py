"""What the ledger writes and gives back: requests, entries, and the JSON bodies that the chain signs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType
from dptally.ledger.chain import canonical
from dptally.ledger.names import identifier, name, prose
from dptally.ledger.pricing import check_work
from dptally.ledger.terms import amount_from_json
from dptally.ledger.units import Amount
from dptally.mechanisms.json import from_json, to_json
from dptally.mechanisms.mechanism import Mechanism

__all__ = ["Entry", "Fresh", "Request", "Spend", "State", "entry_in", "name", "prose", "settle_body", "spend_body"]

State = Literal["reserved", "released", "burnt"]
_quoted = json.encoder.encode_basestring_ascii
_quoted_plan = lru_cache(maxsize=1024)(_quoted)  # long, full of quotes, and the same again and again

MOST_LABELS = 32
_LONGEST = 1e10  # seconds, some 300 years: what a calendar of four digits holds


@dataclass(frozen=True, slots=True)
class Request:
    """One spend to ask for. ``partition`` and ``part`` name the disjoint part that the plan touches."""

    plan: Mechanism
    by: str = ""
    why: str = ""
    key: str | None = None
    labels: Sequence[str] = ()
    partition: str = ""
    part: str = ""
    expires: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.plan, Mechanism):
            raise InvalidType("plan", "a mechanism or a sum of mechanisms, such as 10 * Gaussian(sigma=40)", self.plan)
        check_work(self.plan)
        prose("by", self.by)
        if self.by:
            object.__setattr__(self, "by", identifier("by", self.by))
        if self.by == "*":
            raise InvalidArgument("by", "the name of one analyst", self.by)
        prose("why", self.why)
        if self.key is not None:
            object.__setattr__(self, "key", name("key", self.key))
        if isinstance(self.labels, (str, bytes)) or not isinstance(self.labels, Iterable):
            raise InvalidType("labels", "a sequence of texts", self.labels)
        labels = {name("labels", label) for label in itertools.islice(self.labels, MOST_LABELS + 1)}
        if len(labels) > MOST_LABELS:
            raise InvalidArgument("labels", f"at most {MOST_LABELS}", f"{MOST_LABELS + 1} or more")
        object.__setattr__(self, "labels", tuple(sorted(labels)))
        prose("partition", self.partition)
        prose("part", self.part)
        if bool(self.partition) != bool(self.part):
            raise InvalidArgument("partition, part", "given together", (self.partition, self.part))
        if self.partition:
            object.__setattr__(self, "partition", identifier("partition", self.partition))
            object.__setattr__(self, "part", identifier("part", self.part))
        if self.expires is not None:
            object.__setattr__(self, "expires", checks.positive("expires", self.expires))
            if not self.expires <= _LONGEST:
                raise InvalidArgument("expires", f"at most {_LONGEST:g} seconds", self.expires, "leave it out")


@dataclass(frozen=True, slots=True)
class Entry:
    """One spend as the ledger holds it. ``cost`` is what was charged, in ``symbol``."""

    dataset: str
    number: int
    at: str
    by: str
    why: str
    key: str | None
    labels: tuple[str, ...]
    partition: str
    part: str
    plan_json: str
    cost: float
    symbol: str
    expires: str | None
    hash: str
    state: State
    value: Any = None
    amount: Amount = field(repr=False, default=Amount((0,)))
    call: str = field(repr=False, default="")
    kept: bool = field(repr=False, default=False)  # whether a value was stored, be it None

    @property
    def plan(self) -> Mechanism:
        """The plan, read back from its JSON."""
        return plan_from_json(self.plan_json)

    def ended(self, state: State, value: Any, kept: bool) -> Entry:
        """This spend as it stands after its ending (``dataclasses.replace`` takes three times as long)."""
        return Entry(
            self.dataset,
            self.number,
            self.at,
            self.by,
            self.why,
            self.key,
            self.labels,
            self.partition,
            self.part,
            self.plan_json,
            self.cost,
            self.symbol,
            self.expires,
            self.hash,
            state,
            value,
            self.amount,
            self.call,
            kept,
        )


class Fresh(NamedTuple):
    """A spend that was charged a moment ago; its entry is made when somebody looks at it."""

    dataset: str
    number: int
    at: str
    request: Request
    plan_json: str
    call: str
    cost: float
    symbol: str
    amount: Amount
    expires: str | None
    hash: str
    state: State = "reserved"

    @property
    def by(self) -> str:
        return self.request.by

    def entry(self) -> Entry:
        asked = self.request
        return Entry(
            self.dataset,
            self.number,
            self.at,
            asked.by,
            asked.why,
            asked.key,
            tuple(asked.labels),
            asked.partition,
            asked.part,
            self.plan_json,
            self.cost,
            self.symbol,
            self.expires,
            self.hash,
            self.state,
            None,
            self.amount,
            self.call,
        )


Spend = Entry | Fresh


def entry_in(spend: Spend) -> Entry:
    return spend.entry() if isinstance(spend, Fresh) else spend


# -- the clock -----------------------------------------------------------------------------------------------


def now() -> datetime:
    return datetime.now(UTC)


@lru_cache(maxsize=64)
def stamp(moment: datetime) -> str:
    """UTC with microseconds: fixed width, so that texts sort like times."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


# -- bodies --------------------------------------------------------------------------------------------------


def ending_of(request: Request, at: datetime) -> str | None:
    """When a reservation that is made now can no longer be released."""
    return None if request.expires is None else stamp(at + timedelta(seconds=request.expires))


def spend_body(
    request: Request, plan_json: str, dataset: str, number: int, call: str, cost: Amount, at: str, expires: str | None
) -> str:
    """A spend as canonical JSON, written out: what ``chain.canonical`` makes of these fields, in less time."""
    return (
        f'{{"at":"{at}","by":{_quoted(request.by)},"call":"{call}","cost":{cost.text()},"dataset":{_quoted(dataset)},'
        f'"expires":{_text_or_null(expires)},"key":{_text_or_null(request.key)},'
        f'"labels":[{",".join(map(_quoted, request.labels))}],"part":{_quoted(request.part)},'
        f'"partition":{_quoted(request.partition)},"plan":{_quoted_plan(plan_json)},"seq":{number},"type":"spend",'
        f'"why":{_quoted(request.why)}}}'
    )


def _text_or_null(text: str | None) -> str:
    return "null" if text is None else _quoted(text)


def settle_body(dataset: str, number: int, of: int, state: State, value: Any, at: datetime, call: str, by: str) -> str:
    """``call`` tells the transaction that settled from every other attempt to settle the same spend. Canonical
    JSON, written out like that of a spend.
    """
    kept = "" if value is None else f',"value":{canonical(value)}'
    return (
        f'{{"at":"{stamp(at)}","by":{_quoted(by)},"call":"{call}","dataset":{_quoted(dataset)},"of":{of},'
        f'"seq":{number},"state":"{state}","type":"settle"{kept}}}'
    )


def state_of(spend: Mapping[str, Any], settled: Mapping[str, Any] | None, at: datetime) -> State:
    """An expired reservation counts as burnt: it can no longer be released, and what it cost stays spent."""
    if settled is not None:
        state: State = settled["state"]
        return state
    return "burnt" if spend["expires"] is not None and spend["expires"] <= stamp(at) else "reserved"


def facts_of(request: Request, plan_json: str) -> dict[str, Any]:
    """The fields of a request that its key stands for."""
    return {
        "plan": plan_json,
        "by": request.by,
        "why": request.why,
        "labels": list(request.labels),
        "partition": request.partition,
        "part": request.part,
    }


def differences(spend: Mapping[str, Any], request: Request, plan_json: str) -> tuple[str, ...]:
    """The fields in which a request differs from the one that holds its key."""
    return tuple(field for field, value in facts_of(request, plan_json).items() if spend[field] != value)


def cost_of(spend: Mapping[str, Any]) -> Amount:
    return amount_from_json(spend["cost"])


plan_to_json = lru_cache(maxsize=1024)(to_json)
plan_from_json = lru_cache(maxsize=1024)(from_json)
