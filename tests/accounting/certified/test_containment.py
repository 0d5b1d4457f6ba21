"""Golden: some thousands of random plans on every code path contain truths that share no code with the library.

Each test counts its plans, and each has its power: the same intervals, narrowed by 1e-9 at either end, must fail.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
from flint import arb

import dptally as dp
import tables
from depth import sparse, thinned
from dptally.accounting.certified import engine
from dptally.accounting.certified.contour import chernoff, inversion
from dptally.accounting.certified.lattice import binomial
from dptally.accounting.certified.lattice import bracket as lattice
from dptally.accounting.certified.lattice import decisive as few_steps
from dptally.accounting.certified.route import bounds_at
from dptally.accounting.certified.routes import ROUTES
from dptally.accounting.certified.tuning import STANDARD
from dptally.interval import Interval
from dptally.law import Composition
from dptally.law.adjacency import Direction
from dptally.laws.sampled.gaussian.law import SampledGaussianLaw
from truth import (
    approx_delta,
    ball,
    floats,
    gaussian_delta,
    laplace_delta,
    one_step_delta,
    randomized_response_delta,
)
from truth.balls import precision
from truth.discrete import discrete_gaussian_delta
from truth.draws import log_uniform
from truth.losses import LaplaceLoss, Loss, SampledReplaceLoss
from walking import profiles_near

DeltaOf = Callable[[float], arb]
SHRINK = 1e-9


class Tally:
    """Counts what was asked, what was sharp, and that narrowed intervals are caught."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.caught = self.sharp = 0

    def delta(self, kind: str, bounds: tuple[float, float], exact: tuple[arb, arb] | arb, name: object) -> None:
        """Bounds of delta itself."""
        lower, upper = exact if isinstance(exact, tuple) else (exact, exact)
        self._judge(kind, bounds, name, lambda low, high: _meets(low, high, lower, upper))

    def log_delta(self, kind: str, bounds: tuple[float, float], exact: tuple[arb, arb] | arb, name: object) -> None:
        """Bounds of log delta; -inf and 0 are the trivial ones."""
        lower, upper = exact if isinstance(exact, tuple) else (exact, exact)
        with precision(200):
            lower, upper = lower.log(), upper.log()
        self.asked[kind] += 1
        assert _meets(*bounds, lower, upper) or (bounds[1] == 0 and not lower < bounds[0]), (name, bounds)
        if bounds[1] - bounds[0] < SHRINK:
            self.sharp += 1
            self.caught += not _meets(bounds[0] + SHRINK, bounds[1] - SHRINK, lower, upper)

    def epsilon(self, kind: str, box: Interval, delta: float, delta_of: DeltaOf, name: object) -> None:
        def inside(low: float, high: float) -> bool:
            with precision(400):
                above = low <= 0 or not delta_of(low) < ball(delta)
                return above and (high == math.inf or not delta_of(high) > ball(delta))

        self._judge(kind, (box.lower, box.upper), name, inside)

    def _judge(
        self, kind: str, bounds: tuple[float, float], name: object, inside: Callable[[float, float], bool]
    ) -> None:
        low, high = bounds
        self.asked[kind] += 1
        assert inside(low, high), (name, bounds)
        if low > 0 and high - low < SHRINK * high and self.sharp < 120:
            self.sharp += 1
            self.caught += not inside(low * (1 + SHRINK), high * (1 - SHRINK))

    def close(self, least: int) -> None:
        """At least that many plans in all; wherever an interval was sharp the narrowed one was caught."""
        assert sum(self.asked.values()) >= least, self.asked
        assert self.sharp >= thinned(80)
        assert self.caught == self.sharp


def _meets(low: float, high: float, lower: arb, upper: arb) -> bool:
    """Not certainly apart: the truth lies in lower .. upper, balls that are far smaller than SHRINK."""
    above = low == -math.inf or not ball(low) > upper
    return above and (high == math.inf or not ball(high) < lower)


# -- one step: closed forms ------------------------------------------------------------------------------------------


def profile_of(loss: Loss) -> DeltaOf:
    def delta_of(epsilon: float) -> arb:
        with precision(400):
            e = ball(epsilon)
            p, q = loss.above(e)
            return p - e.exp() * q

    return delta_of


def one_step(family: str, draw: random.Random) -> tuple[Composition, DeltaOf, float]:
    """A plan of one step, its truth, and an eps of the size of its losses."""
    sigma, rate, side = log_uniform(draw, 0.2, 20), log_uniform(draw, 1e-6, 0.999), draw.randrange(2)
    if family == "sampled gaussian":
        direction = ("remove", "add")[side]
        scale = -math.log1p(-rate) if side else math.log1p(rate * math.expm1(min(3 / sigma, 50)))
        plan = dp.dpsgd(sigma, rate, 1).directions()[side]
        return plan, lambda e: one_step_delta(sigma, rate, e, direction), scale
    if family == "replace":
        plan = dp.dpsgd(sigma, rate, 1, dp.REPLACE).directions()[0]
        return plan, profile_of(SampledReplaceLoss(sigma, rate)), rate / sigma
    scale, rate = log_uniform(draw, 0.2, 30), log_uniform(draw, 1e-4, 1)
    loss = LaplaceLoss(1 / Fraction(scale), rate, ("remove", "add")[side])
    directions = dp.PoissonSampled(dp.Laplace(scale), rate).directions()
    top = loss.most()
    assert top is not None
    return directions[side if len(directions) > 1 else 0], profile_of(loss), float(top)


@pytest.mark.parametrize("family", ["sampled gaussian", "replace", "sampled laplace"])
def test_one_step(family: str) -> None:
    draw, tally = random.Random(f"one step {family}"), Tally()
    for index in range(thinned(280)):
        composition, delta_of, scale = one_step(family, draw)
        epsilon = scale * draw.uniform(0.0, 1.3)
        answer = engine.delta_interval([composition], epsilon)
        tally.delta("delta", (answer.lower, answer.upper), delta_of(epsilon), (composition, epsilon))
        if family == "replace" and index % 8:  # its inverse is slow
            continue
        delta = 10 ** draw.uniform(-40, -1.5)
        box = engine.epsilon_interval([composition], delta)
        tally.epsilon("epsilon", box, delta, delta_of, (composition, delta))
    tally.close(thinned(310))


def test_gaussian_responses_guarantees_and_laplace_once() -> None:
    draw, tally = random.Random("one step, others"), Tally()
    for index in range(thinned(900)):
        kind = index % 3
        plan: object
        if kind == 0:
            sigma, scale = log_uniform(draw, 0.05, 200), 1.0
            plan, delta_of, scale = dp.Gaussian(sigma), lambda e, s=sigma: gaussian_delta(1 / Fraction(s), e), 3 / sigma
        elif kind == 1:
            categories, p = draw.choice((2, 3, 10)), draw.uniform(0.55, 0.98)
            plan, scale = dp.RandomizedResponse(p, categories), math.log(p * (categories - 1) / (1 - p))
            delta_of = lambda e, p=p, k=categories: randomized_response_delta(p, k, 1, e)  # noqa: E731
        else:
            width = log_uniform(draw, 0.1, 50)
            plan, scale = dp.Laplace(width), 1 / width
            delta_of = lambda e, w=width: laplace_delta(1 / Fraction(w), 1, e)  # noqa: E731
        directions = plan.directions()  # type: ignore[attr-defined]
        epsilon = scale * draw.uniform(0, 0.97)
        answer = engine.delta_interval(directions, epsilon)
        tally.delta("delta", (answer.lower, answer.upper), delta_of(epsilon), (plan, epsilon))
        delta = 10 ** draw.uniform(-30, -1.5)
        box = engine.epsilon_interval(directions, delta)
        tally.epsilon("epsilon", box, delta, delta_of, (plan, delta))
    tally.close(thinned(1800))


# -- contours: the matrix product of node sums -----------------------------------------------------------------------

NEAR = 1 - 2.0**-44  # a rate at which the sampled Gaussian is a Gaussian up to 1e-13


def near_one(draw: random.Random, counts: tuple[int, ...]) -> tuple[Composition, float, tuple[arb, arb]]:
    """Steps at a rate next to 1, through all the machinery of sampled steps.

    As measures q^T P_1 <= P, and a sample tells no more than everybody, so
    q^T delta_G(eps - T log q) <= delta(eps) <= delta_G(eps) with the Gaussian's delta_G (remove).
    """
    count = draw.choice(counts)
    sigma = max(0.4, math.sqrt(count) / log_uniform(draw, 0.03, 5))
    composition = Composition.of([(SampledGaussianLaw(NEAR, sigma, Direction.REMOVE), count)])
    mu = math.sqrt(count) / sigma
    epsilon = 0.5 * mu * mu + mu * draw.uniform(-0.5, 14)
    with precision(300):
        exact = ball(count).sqrt() / ball(sigma)
        upper = gaussian_delta(exact, epsilon)
        lower = ball(NEAR) ** count * gaussian_delta(exact, ball(epsilon) - count * ball(NEAR).log())
    return composition, epsilon, (lower, upper)


def test_contours_of_sampled_steps_next_to_rate_one() -> None:
    draw, tally = random.Random("contours near one"), Tally()
    for _ in range(thinned(1000)):
        composition, epsilon, exact = near_one(draw, (2, 5, 20, 100, 1000))
        found = inversion.for_epsilon(composition, epsilon)
        if found is not None:
            tally.log_delta("contour", found.log_delta(epsilon)[:2], exact, (composition, epsilon))
    tally.close(thinned(800))


def test_contours_of_sampled_steps_of_the_table() -> None:
    """Each row at its saddle and off it; both directions."""
    tally, rows = Tally(), [row for row in tables.sampled() if row[2] > 2]
    factors = (1.0, 0.9, 1.08)
    for index, (*plan, epsilon, lower, upper) in enumerate(rows):
        composition = tables.sampled_composition(*plan)
        found = inversion.for_epsilon(composition, factors[index % 3] * epsilon)
        if found is not None:
            tally.log_delta("contour", found.log_delta(epsilon)[:2], (ball(lower), ball(upper)), (plan, epsilon))
    tally.close(int(0.7 * len(rows)))


def responses_beside_gaussian(mu: arb, p: float, count: int, epsilon: float) -> arb:
    """The Gaussian profile averaged over the binomial loss."""
    with precision(300):
        a, b = ball(p), 1 - ball(p)
        step = (a / b).log()
        terms = (
            math.comb(count, j) * a**j * b ** (count - j) * gaussian_delta(mu, ball(epsilon) - (2 * j - count) * step)
            for j in range(count + 1)
        )
        return sum(terms, ball(0))


def test_contours_of_responses_beside_a_gaussian() -> None:
    draw, tally = random.Random("responses and a Gaussian"), Tally()
    for _ in range(thinned(500)):
        sigma, p, count = log_uniform(draw, 0.3, 10), draw.uniform(0.51, 0.95), draw.choice((1, 3, 9))
        directions = (dp.Gaussian(sigma) + count * dp.RandomizedResponse(p)).directions()
        with precision(300):
            mu = 1 / ball(sigma)
        epsilon = draw.uniform(0, 6) / sigma + count * (2 * p - 1) * math.log(p / (1 - p))
        answer = engine.delta_interval(directions, epsilon)
        exact = responses_beside_gaussian(mu, p, count, epsilon)
        tally.delta(answer.method, (answer.lower, answer.upper), exact, (sigma, p, count, epsilon))
    tally.close(thinned(500))


# -- rare large losses, few steps ------------------------------------------------------------------------------------


def test_every_route_next_to_rate_one() -> None:
    """Whatever routes the engine has, needed or not; the lattice, which takes longest, has its own tests."""
    draw, tally = random.Random("every route"), Tally()
    for _ in range(thinned(100)):
        composition, epsilon, exact = near_one(draw, (30, 100, 400))
        for route in ROUTES:
            if "lattice" not in route.name:
                for found in profiles_near(route, composition, epsilon):
                    low, high, _ = bounds_at(found, epsilon)
                    tally.log_delta(route.name, (low, high), exact, (route.name, composition, epsilon))
    tally.close(thinned(30))


@pytest.mark.parametrize("family", ["remove", "tiny rate", "add", "mix"])
def test_every_route_on_few_steps(family: str) -> None:
    """Rare large losses: the enclosures of the table, whatever routes the engine has but the lattices."""
    rows = sparse([row for row in tables.few_steps() if row["family"] == family], every=4)
    answers = informative = 0
    for row in rows:
        composition, exact = tables.composition_of(row), (row["lower"], row["upper"])
        for route in ROUTES:
            if "lattice" in route.name:
                continue
            for found in profiles_near(route, composition, row["epsilon"]):
                low, high, _ = bounds_at(found, row["epsilon"])
                assert tables.log_outside(low, high, exact) <= 0, (route.name, row, low, high)
                answers += 1
                # power: bounds as narrow as the truth would be caught if they were elsewhere
                informative += tables.log_outside(high + 0.01, high + 0.02, exact) > 0
    assert informative >= 0.7 * answers


def test_few_steps_on_coarse_lattices() -> None:
    """The certificate holds for any step of the lattice: a coarse one is wide, quick, and as easily wrong."""
    coarse = replace(STANDARD.deciding, width=3e-4)
    asked = 0
    rows = [row for row in tables.sampled() if row[2] == 2][::2] + [
        (part["sigma"], part["rate"], part["count"], row["direction"], row["epsilon"], row["lower"], row["upper"])
        for row in tables.few_steps()
        for part in row["parts"][:1]
        if row["family"] in ("remove", "add", "tiny rate")
    ]
    for *plan, epsilon, lower, upper in sparse(rows, every=4):
        composition = tables.sampled_composition(*plan)
        bound = chernoff.chernoff_log_delta(composition, epsilon)
        found = few_steps.for_epsilon(composition, epsilon, bound, coarse)
        if found is not None:
            low, high, _ = found.log_delta(epsilon)
            assert tables.log_outside(low, high, (lower, upper)) <= 0, (plan, epsilon, low, high)
            # power: bounds that were moved by their width and a little more would be apart
            assert tables.log_outside(high + 1e-4, high + 2e-4, (lower, upper)) > 0 or upper > 1.00009 * lower
            asked += low > -math.inf
    assert asked >= 0.7 * len(sparse(rows, every=4))


# -- lattices and binomial sums --------------------------------------------------------------------------------------


@pytest.mark.parametrize("effort", [0.01, 0.05])
def test_lattice_of_laplace(effort: float) -> None:
    draw = random.Random(f"lattice Laplace {effort}")
    for _ in range(thinned(300)):
        scale, count = log_uniform(draw, 0.3, 30), draw.choice((2, 2, 3, 5, 9))
        epsilon = count / scale * draw.uniform(0.02, 0.97)
        composition = (count * dp.Laplace(scale)).directions()[0]
        low, high = lattice.log_delta(composition, epsilon, effort=effort)
        exact = floats(laplace_delta(1 / Fraction(scale), count, epsilon))
        assert tables.log_outside(low, high, exact) <= 0, (scale, count, epsilon)
        assert tables.log_outside(high + SHRINK, high + 1.0, exact) > 0  # power: above its upper end there is nothing


def test_lattice_of_discrete_gaussians() -> None:
    draw = random.Random("lattice discrete")
    for _ in range(60):
        sigma, shift, count = log_uniform(draw, 0.4, 4), draw.choice((1, 1, 2)), draw.choice((2, 3, 6))
        mean = count * shift**2 / (2 * sigma**2)
        epsilon = mean + shift / sigma * math.sqrt(count) * draw.uniform(-0.5, 7)
        if epsilon <= 0:
            continue
        composition = (count * dp.DiscreteGaussian(sigma, shift)).directions()[0]
        low, high = lattice.log_delta(composition, epsilon, effort=0.05)
        exact = floats(discrete_gaussian_delta(sigma, shift, count, epsilon))
        assert tables.log_outside(low, high, exact) <= 0, (sigma, shift, count, epsilon)
        assert tables.log_outside(high + SHRINK, high + 1.0, exact) > 0


def test_lattice_of_different_responses() -> None:
    draw = random.Random("lattice responses")
    for _ in range(thinned(300)):
        parts = [(draw.uniform(0.52, 0.9), draw.choice((1, 2, 3))) for _ in range(draw.choice((2, 3)))]
        exact, epsilon, composition = different_responses(parts, draw.uniform(0.02, 0.95))
        low, high = lattice.log_delta(composition, epsilon, effort=0.03)
        assert tables.log_outside(low, high, exact) <= 0, (parts, epsilon)
        assert tables.log_outside(high + SHRINK, high + 1.0, exact) > 0


def different_responses(parts: list[tuple[float, int]], share: float) -> tuple[tuple[float, float], float, Composition]:
    """Every outcome of a few responses with their own truth probabilities, counted exactly."""
    with precision(200):
        outcomes = [(arb(1), arb(0))]  # probability under P, loss
        for p, count in parts:
            a, b = ball(p), 1 - ball(p)
            step = (a / b).log()
            outcomes = [
                (mass * math.comb(count, j) * a**j * b ** (count - j), loss + (2 * j - count) * step)
                for mass, loss in outcomes
                for j in range(count + 1)
            ]
        epsilon = share * sum(count * math.log(p / (1 - p)) for p, count in parts)
        total = sum((mass * (1 - (ball(epsilon) - loss).exp()).max(arb(0)) for mass, loss in outcomes), arb(0))
        first, *others = (count * dp.RandomizedResponse(p) for p, count in parts)
        return floats(total), epsilon, sum(others, first).directions()[0]


def test_binomial_sums() -> None:
    draw, tally = random.Random("binomial"), Tally()
    for _ in range(thinned(450)):
        epsilon0, count = log_uniform(draw, 1e-3, 4), draw.choice((2, 3, 10, 30))
        at = epsilon0 * count * draw.uniform(0, 0.98)
        directions = (count * dp.ApproxDP(epsilon0, 0.0)).directions()
        bounds = binomial.log_delta(directions[0], at)
        assert bounds is not None
        tally.log_delta("delta", bounds, approx_delta(epsilon0, 0.0, count, at), (epsilon0, count, at))
        # well above what the largest of all losses costs: next to it see test_the_largest_loss_is_rounded_up
        delta = max(10 ** draw.uniform(-30, -1), 1e-6 * (1 + math.exp(-epsilon0)) ** -count)
        box = engine.epsilon_interval(directions, delta)
        truth = lambda e, x=epsilon0, n=count: approx_delta(x, 0.0, n, e)  # noqa: E731
        tally.epsilon(box.method, box, delta, truth, (epsilon0, count, delta))
    tally.close(thinned(900))


def test_mass_at_infinity() -> None:
    """delta next to the mass at infinity: the finite rest is a difference of nearly equal doubles."""
    draw, tally = random.Random("infinity"), Tally()
    for _ in range(thinned(250)):
        epsilon0, mass, count = log_uniform(draw, 1e-2, 2), log_uniform(draw, 1e-12, 1e-3), draw.choice((1, 2, 9))
        plan = count * dp.ApproxDP(epsilon0, mass)
        largest = (1 + math.exp(-epsilon0)) ** -count  # the probability of the largest loss
        delta = float(1 - (1 - Fraction(mass)) ** count + Fraction(largest * 10 ** draw.uniform(-5, -1)))
        box = engine.epsilon_interval(plan.directions(), delta)
        truth = lambda e, x=epsilon0, d=mass, n=count: approx_delta(x, d, n, e)  # noqa: E731
        tally.epsilon("epsilon", box, delta, truth, (plan, delta))
    tally.close(thinned(250))


@pytest.mark.parametrize(("epsilon0", "count"), [(0.1, 10), (1.3380036811121792, 10), (1.1268884532256165, 9)])
def test_the_largest_loss_is_rounded_up(epsilon0: float, count: int) -> None:
    """n eps as a double may lie below the exact product: delta is not zero there, nor is it an upper bound of eps."""
    directions = (count * dp.PureDP(epsilon0)).directions()
    exact = count * Fraction(epsilon0)
    below = float(exact) if Fraction(float(exact)) <= exact else math.nextafter(float(exact), 0.0)
    answer = engine.delta_interval(directions, below)
    truth = approx_delta(epsilon0, 0.0, count, below)
    assert not ball(answer.upper) < truth
    box = engine.epsilon_interval(directions, 1e-30)
    assert not approx_delta(epsilon0, 0.0, count, box.upper) > ball(1e-30)


@pytest.mark.parametrize(
    ("plan", "delta"),
    [
        (10 * dp.ApproxDP(1.3380036811121792, 0), 3.536120210141218e-24),
        (9 * dp.ApproxDP(1.1268884532256165, 8.823565093033093e-10), 7.941208555702068e-09),
        (3 * dp.PoissonSampled(dp.Laplace(1), 0.1), 1e-17),
        (2 * dp.PureDP(1) + 3 * dp.PureDP(0.3) + dp.Laplace(3), 1e-20),
    ],
)
def test_next_to_the_largest_loss(plan: dp.Mechanism, delta: float) -> None:
    """Of steps that all lose nearly the most they can, the largest loss is known: both ends are sharp."""
    box = engine.epsilon_interval(plan.directions(), delta)
    assert box.upper - box.lower < 1e-9 * box.upper


def test_every_distance_from_the_largest_loss() -> None:
    draw, tally = random.Random("distance"), Tally()
    for _ in range(thinned(120)):
        epsilon0, count = log_uniform(draw, 1e-2, 3), draw.choice((2, 3, 10))
        plan, delta = count * dp.PureDP(epsilon0), (1 + math.exp(-epsilon0)) ** -count * log_uniform(draw, 1e-26, 0.5)
        truth = lambda e, x=epsilon0, n=count: approx_delta(x, 0.0, n, e)  # noqa: E731
        tally.epsilon("epsilon", engine.epsilon_interval(plan.directions(), delta), delta, truth, (plan, delta))
    tally.close(thinned(120))
