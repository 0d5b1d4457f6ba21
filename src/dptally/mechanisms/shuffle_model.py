"""The shuffle model: every user randomises a report, and only the multiset of reports is published."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dptally import checks
from dptally.errors import InvalidArgument, InvalidType, Unanswerable
from dptally.law import Law
from dptally.law.adjacency import ADD_REMOVE, REPLACE, Adjacency
from dptally.laws.shuffling import blanket
from dptally.laws.shuffling.blanket import Blanket
from dptally.laws.shuffling.law import SHUFFLING_THEOREM, attained_by, shuffled_law
from dptally.mechanisms.assumption import Assumption, joined
from dptally.mechanisms.laplace import Laplace
from dptally.mechanisms.mechanism import Mechanism
from dptally.mechanisms.randomized_response import RandomizedResponse
from dptally.mechanisms.registry import declared
from dptally.mechanisms.stated_for import adjacencies
from dptally.mechanisms.unary_encoding import UnaryEncoding
from dptally.numerics.exact import quotient

__all__ = ["ShuffleModel"]

_LARGEST = 20.0  # epsilon of one report
_MOST_USERS = 10**9
_LEAST = 1e-6  # epsilon of one report
_FEW = 200  # users


def _example() -> dict[str, object]:
    return {"local": RandomizedResponse(0.6, 3), "users": 20}


@declared(
    section="shuffling",
    plan="shuffle_model",
    aliases=("shuffle",),
    example=_example,
    refuses={"local": (1.0, None), "users": (0, 2.0)},
)
@dataclass(frozen=True, slots=True, repr=False)
class ShuffleModel(Mechanism):
    """``users`` people each send one report of ``local``, and a shuffler forgets who sent which.

    Neighbours differ in one user's value (REPLACE). ``RandomizedResponse`` and ``UnaryEncoding`` by their own privacy
    blanket, ``Laplace`` (its ``sensitivity`` is the range of the values) by a blanket that dominates it, any other
    mechanism with a largest loss epsilon by the clones of an epsilon-LDP randomiser. Valid for every data set of the
    others; each user reports once, by itself.

    >>> round(ShuffleModel(RandomizedResponse(0.6, 3), 1000).epsilon(1e-6), 3)
    0.149
    """

    local: Mechanism
    users: int
    json_name: ClassVar[str] = "shuffle_model"
    adjacency: ClassVar[Adjacency] = REPLACE

    def __post_init__(self) -> None:
        if not isinstance(self.local, Mechanism):
            raise InvalidType("local", "the mechanism with which each user randomises a report", self.local)
        object.__setattr__(self, "users", checks.count("users", self.users, least=1))
        if self.users > _MOST_USERS:
            raise InvalidArgument("users", f"at most {_MOST_USERS:g}", self.users)

    def laws(self) -> tuple[Law, ...]:
        if not self.local.directions()[0].parts:
            return ()
        return (shuffled_law(_blanket(self.local), self.users),)

    def laws_below(self) -> tuple[Law, ...] | None:
        """The pairs of data sets in which all others have one value; each is attained, so the larger answer counts."""
        if not self.local.directions()[0].parts:
            return None
        return tuple(attained_by(one, self.users) for one in _attained(self.local, self.users))

    def why_wide(self) -> str:
        known = bool(_attained(self.local, self.users)) or not self.local.directions()[0].parts
        return f"upper end: every data set of the other users; lower end: {'one of them' if known else 'none known'}"

    def theorems(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((SHUFFLING_THEOREM, *self.local.theorems())))

    def assumptions(self) -> tuple[Assumption, ...]:
        texts = (
            Assumption(
                "adjacency", "adjacency in the shuffle model: one of the {} users has another value", (str(self.users),)
            ),
            Assumption(
                "other",
                "shuffling: every user sends one report, randomised by itself, and nobody learns the "
                "order or the sender of the reports",
            ),
        )
        return joined((*self.local.assumptions(), *texts))


def _blanket(local: Mechanism) -> Blanket:
    """The blanket that bounds a local randomiser from above; refused where no theorem covers it."""
    if isinstance(local, RandomizedResponse):
        return blanket.response_blanket(Fraction(local.p), local.categories)
    if isinstance(local, UnaryEncoding):
        return blanket.unary_blanket(Fraction(local.p), Fraction(local.q), local.categories)
    epsilon = _largest_loss(local)
    return blanket.three_point_blanket(epsilon) if isinstance(local, Laplace) else blanket.clones(epsilon)


def _largest_loss(local: Mechanism) -> float:
    if ADD_REMOVE in adjacencies(local):
        raise Unanswerable(
            f"the shuffle model of {local!r} is not answered: its largest loss is for a record that is there or not "
            "(ADD_REMOVE), and a user's value is replaced by another; state the sampling under REPLACE, or its "
            "guarantee for two values as PureDP(epsilon)"
        )
    directions = local.directions()
    if isinstance(local, Laplace):
        epsilon = quotient(local.sensitivity, local.scale)[1]
    else:
        epsilon = max(composition.supremum_interval.upper for composition in directions)
    exposed = max(composition.infinity_mass_interval.upper for composition in directions)
    if exposed > 0 or epsilon == math.inf:
        raise Unanswerable(
            f"the shuffle model of {local!r} is not answered: its reports have no largest loss (they are not "
            "epsilon-LDP), and no theorem used here covers them; choose randomized response, unary encoding, Laplace "
            "noise or another mechanism of pure differential privacy"
        )
    if not _LEAST <= epsilon <= _LARGEST:
        raise Unanswerable(
            f"the shuffle model is answered for reports with a largest loss between {_LEAST:g} and {_LARGEST:g}, not "
            f"{epsilon:.6g}: the report by itself, {local!r}, is a valid bound"
        )
    return epsilon


def _attained(local: Mechanism, users: int) -> list[Blanket]:
    """Data sets in which all other users have the same value, where their pair is known exactly.

    A third value hides least where many report; that of the user itself where few do.
    """
    if isinstance(local, RandomizedResponse):
        p, categories = Fraction(local.p), local.categories
        own = [blanket.homogeneous_response(p, categories, third=False)] if categories == 2 or users <= _FEW else []
        return own + ([blanket.homogeneous_response(p, categories, third=True)] if categories > 2 else [])
    if isinstance(local, UnaryEncoding) and local.categories > 2:
        return [blanket.homogeneous_unary(Fraction(local.p), Fraction(local.q))]
    return []
