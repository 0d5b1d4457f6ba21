"""What every mechanism is, and the questions that every mechanism and every plan answers.

A mechanism states its law once (``laws``); everything else is inherited. A float answer is always the
certified safe side; the interval holds both sides.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike

from dptally import checks
from dptally.accounting import certified, group, renyi, tradeoff
from dptally.checks import Floats
from dptally.errors import InvalidArgument, InvalidLaw, Unanswerable
from dptally.interval import Interval, IntervalArray
from dptally.later import later
from dptally.law import Composition, Law
from dptally.law.validity import ensure_valid
from dptally.mechanisms.assumption import Assumption
from dptally.mechanisms.registry import shipped
from dptally.mechanisms.value import Value

if TYPE_CHECKING:
    from dptally.accounting.loss import Loss
    from dptally.answers.explain import Explanation
    from dptally.mechanisms.composed import Composed

__all__ = ["Mechanism"]

_UNSTATED = (
    'its author states no theorem: write  theorem: ClassVar[str] = "Author year, Thm. number"  in the class of the '
    "mechanism (or of its law), for what says that its laws dominate it"
)


#: names of other libraries, and what is written here instead
_CALLED_HERE = {
    "get_epsilon": "epsilon(delta=...)",
    "get_delta": "delta(epsilon=...)",
    "get_privacy_spent": "epsilon(delta=...)",
    "compose": "plan + mechanism, or count * mechanism",
    "get_epsilon_for_delta": "epsilon(delta=...)",
    "get_delta_for_epsilon": "delta(epsilon=...)",
}


def no_attribute(value: object, name: str) -> AttributeError:
    """The error for a name that is not there; one of another library is answered with ours."""
    hint = _CALLED_HERE.get(name)
    text = f"{type(value).__name__!r} object has no attribute {name!r}"
    return AttributeError(f"{text}; here it is {hint}" if hint else text, name=name, obj=value)


class Mechanism(Value):
    """A frozen, hashable value that says what was run. ``k * m`` and ``m1 + m2`` compose."""

    __slots__ = ()

    #: for a mechanism from outside: why its laws dominate it (author, year, number); ours cite the laws' theorem
    theorem: ClassVar[str] = ""

    @abstractmethod
    def laws(self) -> tuple[Law, ...]:
        """The law of the privacy loss in each direction: (remove, add); one law where both are the same;
        none if nothing leaks.
        """

    if not TYPE_CHECKING:  # a checker shall go on to refuse unknown names

        def __getattr__(self, name: str) -> Any:
            """Nothing: but the names of other libraries are answered with ours."""
            raise no_attribute(self, name)

    @property
    def parts(self) -> tuple[tuple[Mechanism, int], ...]:
        """(mechanism, count) pairs in canonical order; a single mechanism is its own only part."""
        return ((self, 1),)

    def directions(self) -> tuple[Composition, ...]:
        """The composed law of the whole plan, once for each direction that differs."""
        stated = [(laws, count) for laws, count in ((_laws(mechanism), n) for mechanism, n in self.parts) if laws]
        number = max((len(laws) for laws, _ in stated), default=1)
        composed = [Composition.of((laws[min(d, len(laws) - 1)], n) for laws, n in stated) for d in range(number)]
        return tuple(dict.fromkeys(composed)) if number > 1 else tuple(composed)

    def _both_directions(self) -> tuple[Composition, Composition]:
        """(remove, add), also where they are alike."""
        both = self.directions()
        return both[0], both[-1]

    def laws_below(self) -> tuple[Law, ...] | None:
        """Laws of pairs that the mechanism certainly attains, where ``laws`` only bounds it from above.

        None: ``laws`` is the pair itself, so that it serves both ends of an interval. Empty: nothing is known from
        below.
        """
        return None

    def why_wide(self) -> str:
        """Where ``laws_below`` answers: what the two ends of an interval are."""
        return ""

    def _below(self) -> tuple[tuple[Composition, ...], str] | None:
        """The directions that the plan attains and why they differ from ``directions()``; None where they do not."""
        stated = [(part.laws_below(), part, n) for part, n in self.parts]
        why = "; ".join(dict.fromkeys(part.why_wide() for below, part, _ in stated if below is not None))
        if all(below is None for below, _, _ in stated):
            return None
        found = [(part.laws() if below is None else below, n) for below, part, n in stated]
        known = [(laws, n) for laws, n in found if laws]
        number = max((len(laws) for laws, _ in known), default=1)
        made = (Composition.of((laws[min(d, len(laws) - 1)], n) for laws, n in known) for d in range(number))
        return tuple(dict.fromkeys(made)), why

    # -- what it says of itself ----------------------------------------------------------------------------------

    def assumptions(self) -> tuple[Assumption, ...]:
        """What the caller stated with it and the library cannot check; nothing unless the mechanism says so."""
        return ()

    def theorems(self) -> tuple[str, ...]:
        """What says that the laws dominate the mechanism; for one from outside, only what its author states.

        A law class of ours is a formula there: who uses it proves that it applies, so its own theorem is not cited.
        One from outside that states none is refused with what to write.
        """
        if type(self).theorem:
            return (type(self).theorem,)
        own = shipped(type(self))
        stated = dict.fromkeys(law.theorem for law in self.laws() if own or _authored(law))
        found = tuple(theorem for theorem in stated if theorem)
        if not (found or own):
            raise InvalidLaw(type(self).__name__, (_UNSTATED,))
        return found

    def unsampled(self) -> Mechanism:
        """The same without sampling, which reveals at least as much; itself where nothing is sampled."""
        return self

    def keeps_tail(self) -> bool:
        """Whether ``unsampled()`` has the same tail limit, limsup epsilon / sqrt(-2 log delta(epsilon))."""
        return self.unsampled() is self

    def noise_parameter(self) -> str | None:
        """The parameter of which more is more private, such as sigma; None where there is no such one."""
        return None

    # -- composition -----------------------------------------------------------------------------------------

    def __add__(self, other: Mechanism) -> Composed:
        if not isinstance(other, Mechanism):
            return NotImplemented
        return _composed((*self.parts, *other.parts))

    def __radd__(self, other: int) -> Mechanism:
        return (
            self if isinstance(other, int) and not isinstance(other, bool) and other == 0 else NotImplemented
        )  # so that sum() works

    def __mul__(self, count: SupportsIndex | float) -> Composed:
        if isinstance(count, Mechanism):
            return NotImplemented
        times = checks.written_count("count", count)
        return _composed(tuple((mechanism, times * n) for mechanism, n in self.parts))

    __rmul__ = __mul__
    __array_ufunc__ = None  # so that numpy integers reach __rmul__ instead of broadcasting

    # -- questions -------------------------------------------------------------------------------------------

    @overload
    def epsilon(self, delta: float) -> float: ...
    @overload
    def epsilon(self, delta: Sequence[float] | Floats) -> Floats: ...
    def epsilon(self, delta: Any) -> Any:
        """The smallest epsilon at this delta, rounded up: never below the truth; inf only if no finite
        epsilon exists. An array of deltas is answered by an array, neighbours sharing their work.
        """
        return _epsilons(self.directions(), delta).upper  # what is attained from below is not asked for

    @overload
    def epsilon_interval(self, delta: float) -> Interval: ...
    @overload
    def epsilon_interval(self, delta: Sequence[float] | Floats) -> IntervalArray: ...
    def epsilon_interval(self, delta: Any) -> Any:
        """Certified bounds of the smallest epsilon >= 0 with delta(epsilon) <= delta."""
        above, below = _epsilons(self.directions(), delta), self._below()
        return above if below is None else _bounded(above, _epsilons(below[0], delta), below[1])

    def epsilon_curve(self, steps: Iterable[int], delta: float) -> list[float]:
        """epsilon after each number of steps, where one step is this plan: certified upper bounds, in the order given.

        Neighbouring numbers of steps share their work, so 200 of them cost little more than a few.
        """
        at = checks.probability("delta", delta)
        counts = [
            checks.count("steps", number) for number in checks.items("steps", "a list of numbers of steps", steps)
        ]
        return [box.upper for box in certified.epsilon_curve(self.directions(), counts, at)]

    def prove(self, *, delta: float | None = None, epsilon: float | None = None, digits: int = 12) -> Interval:
        """epsilon at ``delta``, or delta at ``epsilon``, enclosed in ball arithmetic (needs the extra ``proof``)."""
        from dptally.accounting.certified import proof

        if (delta is None) == (epsilon is None):
            raise InvalidArgument("delta, epsilon", "exactly one of the two", (delta, epsilon))
        if delta is not None:
            return proof.prove_epsilon(self.directions(), checks.probability("delta", delta), digits)
        return proof.prove_delta(self.directions(), checks.nonnegative("epsilon", epsilon), digits)

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: Sequence[float] | Floats) -> Floats: ...
    def delta(self, epsilon: Any) -> Any:
        """The smallest delta at this epsilon, rounded up; an array is answered by an array."""
        return _deltas(self.directions(), epsilon).upper

    @overload
    def delta_interval(self, epsilon: float) -> Interval: ...
    @overload
    def delta_interval(self, epsilon: Sequence[float] | Floats) -> IntervalArray: ...
    def delta_interval(self, epsilon: Any) -> Any:
        """Certified bounds of delta(epsilon) = sup over events S of P(S) - exp(epsilon) Q(S), the larger
        direction.
        """
        above, below = _deltas(self.directions(), epsilon), self._below()
        return above if below is None else _bounded(above, _deltas(below[0], epsilon), below[1])

    @overload
    def renyi(self, order: float) -> float: ...
    @overload
    def renyi(self, order: Sequence[float] | Floats) -> Floats: ...
    def renyi(self, order: Any) -> Any:
        """Renyi divergence of this order in [1, inf], the larger direction; order 1 is KL."""
        return _elementwise(lambda a: renyi.divergence(self.directions(), a), "order", order)

    @overload
    def alpha_divergence(self, order: float) -> float: ...
    @overload
    def alpha_divergence(self, order: Sequence[float] | Floats) -> Floats: ...
    def alpha_divergence(self, order: Any) -> Any:
        """Alpha divergence (exp((a-1) D_a) - 1) / (a (a-1)) of this order in [1, inf), the larger
        direction.
        """
        from dptally.accounting import alpha

        return _elementwise(lambda a: alpha.divergence(self.directions(), a), "order", order)

    def rho(self) -> float:
        """The smallest zCDP parameter, rounded up; inf if there is none."""
        from dptally.accounting import concentrated

        return concentrated.rho(self.directions())

    @overload
    def tradeoff(self, fpr: float) -> float: ...
    @overload
    def tradeoff(self, fpr: Sequence[float] | Floats) -> Floats: ...
    def tradeoff(self, fpr: Any) -> Any:
        """The smallest false-negative rate of any attacker with this false-positive rate, rounded down (the
        safe side).
        """
        directions = self.directions()
        return _elementwise(lambda rates: tradeoff.false_negative_rates(directions, rates), "fpr", fpr)

    def loss(self, direction: str = "remove") -> Loss:
        """The privacy loss as a random variable: certified cdf, tail, quantile, mean and variance; samples.

        ``direction`` "remove" is the loss with the record present against absent, "add" the other way round.
        """
        from dptally.accounting.loss import Loss

        if not isinstance(direction, str) or direction not in ("remove", "add"):
            raise InvalidArgument("direction", '"remove" or "add"', direction)
        forward, backward = self._both_directions()
        if direction == "add":
            forward, backward = backward, forward
        return Loss(forward, backward if forward.reverses(backward) else None, direction)

    def group(self, size: int) -> Mechanism:
        """The guarantee for ``size`` records together, as a plan: it answers under every framework.

        ``size`` records are added or removed together (under REPLACE: replaced). Noise grows its sensitivity, declared
        guarantees follow their definition's theorem, steps compose; see ``dptally.accounting.group``.
        """
        size = checks.count("size", size, 1)
        return self if size == 1 else self.grouped(size)

    def grouped(self, size: int) -> Mechanism:
        """What stands for ``size`` records, size >= 2: overridden where something sharper is known.

        Here by the profile: (e, d)-DP for one record is (size e, d (e^(size e) - 1)/(e^e - 1))-DP for the group
        [Vadhan 2017, Lemma 2.2], at every e. It holds for the neighbours that this mechanism names, if it names any.
        """
        from dptally.mechanisms.profile import Profile
        from dptally.mechanisms.stated_for import adjacencies

        named = adjacencies(self)
        if len(named) > 1:
            raise Unanswerable("a mechanism that names two adjacencies holds for no group under either")
        return Profile.from_points(group.profile(self.directions(), size), *named)

    def best_of(self, mean: float, law: str = "tnb", shape: float = 0.0) -> Mechanism:
        """Run this plan a random number of times and keep the best run, as a plan.

        ``law`` of the number of runs: "tnb" (truncated negative binomial; shape 0 logarithmic, 1 geometric),
        "geometric" or "poisson" (no shape); draw it before the search: ``dptally.release.draw_runs``.
        """
        whole: Mechanism = later("BestOf")(self, mean, law, shape)
        return whole

    def explain(self, delta: float) -> Explanation:
        """The answer at this delta with its route, theorems, assumptions and how to cite them."""
        answer: Explanation = later("explain")(self, delta)
        return answer

    def plot(self, kind: str = "profile", *, delta: float = 1e-5, ax: Any = None, **options: Any) -> Any:
        """Draw the plan and give the matplotlib axes (needs the extra ``plots``).

        ``kind`` is "profile", "tradeoff", "loss", "gdpt", "renyi", "compare" or "steps"; the last three are drawn at
        ``delta``. ``ax`` are axes to draw in; further options are those of ``dptally.report.plot_<kind>``.
        """
        return later("plot")(self, kind, delta=delta, ax=ax, **options)

    def _repr_html_(self) -> str:
        return str(later("plan_html")(self))

    def _repr_markdown_(self) -> str:
        return str(later("plan_markdown")(self))


def _composed(parts: tuple[tuple[Mechanism, int], ...]) -> Composed:
    """A composition, which is itself a mechanism and so stands later."""
    whole: Composed = later("Composed").of(parts)
    return whole


def _laws(mechanism: Mechanism) -> tuple[Law, ...]:
    """The laws of a part; those of a mechanism from outside are checked first, also where their class is ours."""
    laws = mechanism.laws()
    if not shipped(type(mechanism)):
        for law in laws:
            ensure_valid(law)
        mechanism.theorems()  # refused where its author states none
    return laws


def _authored(law: Law) -> bool:
    """Whether a law's theorem was written by the author of a class from outside, or given to this one law."""
    owner = next(cls for cls in type(law).__mro__ if "theorem" in vars(cls))
    if not shipped(owner):
        return True
    defaults = {field.default for field in fields(owner)} if is_dataclass(owner) else set()
    return isinstance(vars(owner)["theorem"], property) and law.theorem not in defaults


def _epsilons(directions: tuple[Composition, ...], delta: Any) -> Any:
    """An interval for one delta, an array of them for an array."""
    if not checks.is_array(delta):
        return certified.epsilon_interval(directions, checks.probability("delta", delta))
    asked = [checks.probability("delta", value) for value in checks.reals("delta", delta).ravel().tolist()]
    return IntervalArray.of(certified.epsilon_intervals(directions, asked), np.shape(delta))


def _deltas(directions: tuple[Composition, ...], epsilon: Any) -> Any:
    if not checks.is_array(epsilon):
        return certified.delta_interval(directions, checks.nonnegative("epsilon", epsilon))
    asked = [checks.nonnegative("epsilon", value) for value in checks.reals("epsilon", epsilon).ravel().tolist()]
    return IntervalArray.of(certified.delta_intervals(directions, asked), np.shape(epsilon))


def _bounded(above: Any, below: Any, why: str) -> Any:
    """The upper ends of what bounds the plan, the lower ends of what it attains."""
    if isinstance(above, Interval):
        return Interval(min(below.lower, above.upper), above.upper, f"{above.method} ({why})")
    methods = tuple(f"{method} ({why})" for method in above.methods)
    return IntervalArray(np.minimum(below.lower, above.upper), above.upper, methods)


def _elementwise(function: Any, name: str, value: ArrayLike) -> Any:
    """Apply an array function to a scalar or an array, and answer in kind."""
    array = checks.reals(name, value)
    out = np.asarray(function(array), dtype=np.float64)
    return float(out) if array.ndim == 0 else out
