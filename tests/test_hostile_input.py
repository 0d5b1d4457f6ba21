"""Contract: hostile arguments everywhere. Nothing but a refusal or a sound number may come back.

Every public constructor and question meets every hostile value in every argument, alone and in random pairs
(a fixed seed). Allowed: InvalidArgument, InvalidType, Unanswerable, CannotCalibrate. Never: NaN, a negative
epsilon, an epsilon below the closed form, a numpy warning (pytest turns them into errors), another exception.
"""

import datetime
import itertools
import math
import random
import sys
from decimal import Decimal
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from dptally.accounting import approximate, concentrated, gaussian, optimal, pure, renyi
from dptally.answers.compare import compare
from dptally.answers.convert import convert
from dptally.answers.explain import explain
from dptally.conversions import EDGES, edge
from dptally.conversions.renyi import renyi_to_approx
from dptally.divergences import densities, inequalities
from dptally.divergences import finite as divergences
from dptally.errors import CannotCalibrate, InvalidArgument, Unanswerable
from dptally.interval import Interval
from dptally.meaning import attacks, bayes, outcomes
from dptally.mechanisms import (
    ZCDP,
    ApproxDP,
    Gaussian,
    GaussianDP,
    Laplace,
    Mechanism,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    RenyiDP,
    Sampled,
    dpsgd,
    registry,
)
from dptally.mechanisms.sampling.sampler import Sampler
from dptally.numerics import rounding
from dptally.numerics.normal import (
    gaussian_mu,
    gaussian_mu_of_pure,
    log_gaussian_delta,
    normal_tail_quantile,
)

ALLOWED = (InvalidArgument, Unanswerable, CannotCalibrate)

HOSTILE = [
    math.nan,
    math.inf,
    -math.inf,
    -1.0,
    -0.0,
    0,
    0.0,
    -1,
    True,
    False,
    "1",
    "nan",
    "",
    b"1",
    bytearray(b"1"),
    None,
    1j,
    complex(math.nan, 0),
    Decimal("0.5"),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    Decimal("-1"),
    Decimal("1e400"),
    Fraction(1, 3),
    Fraction(-1, 3),
    Fraction(10**400, 3),
    np.float64("nan"),
    np.float64(0.25),
    np.float32(0.1),
    np.float32("inf"),
    np.float16(0.1),
    np.longdouble("0.1"),
    np.int8(3),
    np.int64(-3),
    np.uint64(2**63),
    np.bool_(True),
    np.complex128(1),
    np.str_("1"),
    np.bytes_(b"1"),
    np.datetime64("2020-01-01"),
    np.array(0.5),
    np.array([0.5]),
    np.array([0.5, math.nan]),
    np.array([[0.5, 0.5]]),
    np.array([]),
    np.array(["a"]),
    np.array([None, 0.5], dtype=object),
    np.array([True, False]),
    [],
    [0.1],
    [0.1, [0.2]],
    [[0.1, 0.9]],
    ["a", "b"],
    [None],
    [10**400],
    (),
    {},
    {"a": 1},
    set(),
    object(),
    object,
    len,
    range(3),
    slice(1),
    datetime.timedelta(1),
    10**400,
    -(10**400),
    10**18,
    5e-324,
    1e-310,
    1e-300,
    1e-17,
    sys.float_info.max,
    1.0 + 2**-52,
    1.0 - 2**-53,
    0.3,
    3,
    3.0,
    2.0**53,
    1e5,
]


def square(u):
    return (u - 1.0) ** 2


def normal(x):
    return -0.5 * x * x - 0.5 * math.log(2 * math.pi)


PLANS = [
    Gaussian(2.0),
    Laplace(2.0),
    3 * RandomizedResponse(0.6) + ApproxDP(0.2, 1e-9),
    ZCDP(0.1),
    GaussianDP(0.5) + Laplace(3.0),
]

# name -> (callable, good arguments); each argument is replaced in turn
CONSTRUCTORS = {
    entry.name: (entry.target, entry.arguments())
    for entry in registry.declarations()
    if entry.json != "composed" and registry.shipped(entry.target)
} | {
    "k * m": (lambda count: count * Gaussian(2.0), {"count": 3}),
    "m * k": (lambda count: Laplace(2.0) * count, {"count": 3}),
}

QUESTIONS = {
    "epsilon": ({"delta": 1e-6}, lambda m, delta: m.epsilon(delta)),
    "epsilon_interval": ({"delta": 1e-6}, lambda m, delta: m.epsilon_interval(delta)),
    "delta": ({"epsilon": 1.0}, lambda m, epsilon: m.delta(epsilon)),
    "delta_interval": ({"epsilon": 1.0}, lambda m, epsilon: m.delta_interval(epsilon)),
    "renyi": ({"order": 2.0}, lambda m, order: m.renyi(order)),
    "alpha_divergence": ({"order": 2.0}, lambda m, order: m.alpha_divergence(order)),
    "tradeoff": ({"fpr": 0.01}, lambda m, fpr: m.tradeoff(fpr)),
    "compare": ({"delta": 1e-6}, lambda m, delta: compare(m, delta)),
    "explain": ({"delta": 1e-6}, lambda m, delta: explain(m, delta)),
    "convert": ({"to": "approx", "delta": 1e-6}, lambda m, to, delta: convert(m, to, delta=delta)),
    "convert order": ({"to": "renyi", "order": 2.0}, lambda m, to, order: convert(m, to, order=order)),
}

DIRECTIONS = Gaussian(2.0).directions()
FUNCTIONS = {
    "outcomes.pure": (outcomes.pure, {"epsilon": 1.0, "before": 0.1}),
    "outcomes.approx": (outcomes.approx, {"epsilon": 1.0, "delta": 0.01, "before": 0.1}),
    "outcomes.renyi": (outcomes.renyi, {"order": 2.0, "epsilon": 1.0, "before": 0.1}),
    "outcomes.zcdp": (outcomes.zcdp, {"rho": 0.5, "before": 0.1}),
    "outcomes.gaussian": (outcomes.gaussian, {"mu": 0.5, "before": 0.1}),
    "outcomes.of_plan": (outcomes.of_plan, {"plan": Gaussian(2.0), "before": 0.1}),
    "outcomes.ratio": (lambda before: outcomes.largest_ratio(DIRECTIONS, before).ratio, {"before": 0.1}),
    "bayes.factor": (bayes.factor, {"epsilon": 1.0}),
    "bayes.moment": (bayes.moment, {"order": 2.0, "epsilon": 1.0}),
    "bayes.factor_tail": (bayes.factor_tail, {"order": 2.0, "epsilon": 1.0, "beta": 10.0}),
    "bayes.zcdp_factor_tail": (bayes.zcdp_factor_tail, {"rho": 0.5, "beta": 10.0}),
    "bayes.gaussian_factor_tail": (bayes.gaussian_factor_tail, {"mu": 0.5, "log_beta": 1.0}),
    "bayes.posterior": (bayes.posterior, {"prior": 0.1, "epsilon": 1.0}),
    "bayes.after_alarm": (
        lambda prior, fpr: bayes.after_alarm(DIRECTIONS, prior, fpr),
        {"prior": 0.1, "fpr": 0.1},
    ),
    "attacks.tpr": (lambda fpr: attacks.true_positive_rate(DIRECTIONS, fpr), {"fpr": 0.1}),
    "attacks.approx_advantage": (attacks.approx_advantage, {"epsilon": 1.0, "delta": 0.01}),
    "probability_range": (
        inequalities.probability_range,
        {"order": 2.0, "divergence": 1.0, "probability": 0.1},
    ),
    "weak_triangle": (inequalities.weak_triangle, {"order": 2.0, "split": 2.0, "first": 0.1, "second": 0.1}),
    "divergences.renyi": (divergences.renyi, {"p": [0.5, 0.5], "q": [0.25, 0.75], "order": 2.0}),
    "divergences.alpha": (divergences.alpha, {"p": [0.5, 0.5], "q": [0.25, 0.75], "order": 2.0}),
    "divergences.hockey_stick": (
        divergences.hockey_stick,
        {"p": [0.5, 0.5], "q": [0.25, 0.75], "epsilon": 0.1},
    ),
    "divergences.f_divergence": (divergences.f_divergence, {"p": [0.5, 0.5], "q": [0.25, 0.75], "f": square}),
    "densities.support": (
        lambda support: densities.total_variation(normal, normal, support),
        {"support": (-math.inf, math.inf)},
    ),
    "pure.epsilon": (lambda delta: pure.epsilon(Laplace(2.0).directions(), delta).value, {"delta": 1e-6}),
    "approximate.epsilon": (
        lambda delta: approximate.epsilon(Laplace(2.0).directions(), delta).value,
        {"delta": 1e-6},
    ),
    "optimal.composed_epsilon": (
        optimal.composed_epsilon,
        {"epsilon0": 0.1, "delta0": 1e-9, "count": 5, "delta": 1e-6},
    ),
    "renyi.epsilon": (lambda delta: renyi.epsilon(DIRECTIONS, delta).value, {"delta": 1e-6}),
    "concentrated.epsilon_from_rho": (
        lambda rho, delta: concentrated.epsilon_from_rho(rho, delta).value,
        {"rho": 0.1, "delta": 1e-6},
    ),
    "gaussian.epsilon_mu": (gaussian.epsilon_mu, {"mu": 1.0, "delta": 1e-6}),
    "gaussian.delta_mu": (gaussian.delta_mu, {"mu": 1.0, "epsilon": 1.0}),
    "gaussian.sigma_for": (gaussian.sigma_for, {"epsilon": 1.0, "delta": 1e-6, "sensitivity": 1.0}),
}
GOOD = {"epsilon": 0.5, "delta": 1e-3, "order": 4.0, "rho": 0.1, "mu": 0.5, "count": 3}
GOOD |= {"target_delta": 1e-2, "target_epsilon": 0.25}
for _i, _edge in enumerate(EDGES):
    FUNCTIONS[f"edge {_i} {_edge.source}->{_edge.target}"] = (
        _edge.function,
        {name: GOOD[name] for name in (*_edge.guarantee, *_edge.asked)},
    )


def cases(good, pairs, seed):
    """Every hostile value in every argument, then random pairs of them in two arguments."""
    for name in good:
        for value in HOSTILE:
            yield good | {name: value}
    if len(good) > 1:
        generator = random.Random(seed)
        for _ in range(pairs):
            first, second = generator.sample(list(good), 2)
            yield good | {first: generator.choice(HOSTILE), second: generator.choice(HOSTILE)}


def sound(value):
    """True for what may come back: numbers that are not NaN and not negative, and objects made of such."""
    if isinstance(value, Interval):
        return 0 <= value.lower <= value.upper
    if isinstance(value, (float, np.floating)):
        return bool(value >= 0)
    if isinstance(value, np.ndarray):
        return bool(np.all(value >= 0))
    return True


def attempt(where, call, arguments, seen):
    seen[0] += 1
    try:
        value = call(**arguments)
    except ALLOWED:
        return None
    except Exception as error:
        pytest.fail(f"{where}({arguments!r}) raised {type(error).__name__}: {error}")
    if not sound(value):
        pytest.fail(f"{where}({arguments!r}) answered {value!r}")
    return value


COUNTED = [0]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    call, good = FUNCTIONS[name]
    for arguments in cases(good, 60, name):
        attempt(name, call, arguments, COUNTED)


# a mixed plan asks the numerical engine, which takes its time: no question of it twice, none that asks often
REPEATED = ("epsilon", "delta", "compare", "explain", "tradeoff", "convert")
ASKED = [(plan, name) for plan in PLANS for name in QUESTIONS if len(plan.parts) == 1 or name not in REPEATED]


def too_vast(where, arguments):
    """Finite numbers that the numerical engine still stumbles over; what it answers below is asked."""
    limits = {"delta_interval": 1e15, "PureDP": 1e307, "ApproxDP": 1e307}
    value = arguments.get("epsilon", 0)
    value = value.item() if isinstance(value, (np.integer, np.floating)) else value
    return isinstance(value, (int, float)) and limits.get(where, math.inf) < value < math.inf


@pytest.mark.parametrize(("plan", "name"), ASKED, ids=[f"{plan!r}.{name}" for plan, name in ASKED])
def test_questions(plan, name):
    good, ask = QUESTIONS[name]
    for arguments in cases(good, 20, name):
        if len(plan.parts) > 1 and too_vast(name, arguments):
            continue
        attempt(f"{plan!r}.{name}", lambda **kw: ask(plan, **kw), arguments, COUNTED)


ALLOCATED = ("BallsInBins", "RandomAllocation")  # a question of theirs takes seconds: tests/batching asks them


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_constructors_and_what_they_answer(name):
    build, good = CONSTRUCTORS[name]
    for arguments in cases(good, 120, name):
        mechanism = attempt(name, build, arguments, COUNTED)
        if mechanism is None or too_vast(name, arguments):
            continue
        if isinstance(mechanism, Sampler):  # it answers through a mechanism that runs on its batches
            run = Sampled(Gaussian(2.0), mechanism, **{mechanism.unit: 1})
            attempt(f"{run!r}.directions", run.directions, {}, COUNTED)
            if name not in ALLOCATED:
                delta = attempt(f"{run!r}.delta", run.delta, {"epsilon": 0.5}, COUNTED)
                assert delta is None or delta <= 1
                attempt(f"{run!r}.renyi", run.renyi, {"order": 2.0}, COUNTED)
            continue
        if not isinstance(mechanism, Mechanism):  # a strategy or a way of taking part: it answers through a matrix
            continue
        if name in ("dpsgd", "training"):  # extreme rates and noises cost the engine seconds each: it has its own tests
            attempt(f"{mechanism!r}.renyi", mechanism.renyi, {"order": 2.0}, COUNTED)
            continue
        epsilon = attempt(f"{mechanism!r}.epsilon", mechanism.epsilon, {"delta": 1e-6}, COUNTED)
        delta = attempt(f"{mechanism!r}.delta", mechanism.delta, {"epsilon": 0.5}, COUNTED)
        attempt(f"{mechanism!r}.renyi", mechanism.renyi, {"order": 2.0}, COUNTED)
        if all(count == 1 for _, count in mechanism.parts):
            attempt(f"{mechanism!r}.tradeoff", mechanism.tradeoff, {"fpr": 0.01}, COUNTED)
        assert delta is None or delta <= 1
        truth = TRUTHS.get(name, lambda *_: None)(*(arguments[key] for key in good))
        if truth is not None and epsilon is not None:
            with mp.workdps(40):
                assert truth(mp.mpf(epsilon)) <= mp.mpf(1e-6), (mechanism, epsilon)


def gaussian_truth(sigma, sensitivity):
    """The exact profile of the Gaussian mechanism, from the arguments as given."""
    with mp.workdps(60):
        mu = exact(sensitivity) / exact(sigma)

    def profile(epsilon):
        with mp.workdps(60 + int(min(mu * mu, 2000))):
            if epsilon == mp.inf:
                return mp.mpf(0)
            tails = [mp.erfc((epsilon / mu + s * mu / 2) / mp.sqrt(2)) / 2 for s in (-1, 1)]
            return tails[0] - mp.exp(epsilon) * tails[1]

    return profile if 1e-6 < mu < 40 else None


def laplace_truth(scale, sensitivity):
    with mp.workdps(60):
        t = exact(sensitivity) / exact(scale)
    return lambda epsilon: max(mp.mpf(0), 1 - mp.exp((epsilon - t) / 2)) if epsilon < t else mp.mpf(0)


def pure_truth(epsilon0):
    with mp.workdps(60):
        e = exact(epsilon0)
    return lambda epsilon: max(mp.mpf(0), (1 - mp.exp(epsilon - e)) / (1 + mp.exp(-e)))


def response_truth(p, categories):
    """Two of k answers matter: p against (1 - p)/(k - 1)."""
    with mp.workdps(60):
        high, low = exact(p), (1 - exact(p)) / (int(categories) - 1)
        return lambda epsilon: max(mp.mpf(0), high - mp.exp(epsilon) * low, low - mp.exp(epsilon) * high)


def exact(value):
    """The double that was accepted (and is printed): a Fraction or Decimal stands for its nearest double."""
    return mp.mpf(float(value))


TRUTHS = {
    "Gaussian": gaussian_truth,
    "Laplace": laplace_truth,
    "PureDP": pure_truth,
    "RandomizedResponse": response_truth,
}


def test_the_generator_is_large_and_repeats_itself():
    """At least 10,000 hostile calls, whatever part of this file a worker runs."""
    single = [len(HOSTILE) * len(good) + 60 * (len(good) > 1) for _, good in FUNCTIONS.values()]
    asked = [QUESTIONS[name][0] for _, name in ASKED]
    single += [len(HOSTILE) * len(good) + 20 * (len(good) > 1) for good in asked]
    single += [len(HOSTILE) * len(good) + 120 * (len(good) > 1) for _, good in CONSTRUCTORS.values()]
    assert sum(single) >= 10_000
    once, again = (list(itertools.islice(cases({"a": 1, "b": 2}, 50, "seed"), 300)) for _ in range(2))
    assert repr(once) == repr(again)


def test_the_test_can_fail():
    with pytest.raises(pytest.fail.Exception):
        attempt("nan", lambda x: math.nan, {"x": 1}, [0])
    with pytest.raises(pytest.fail.Exception):
        attempt("negative", lambda x: -1e-300, {"x": 1}, [0])
    with pytest.raises(pytest.fail.Exception):
        attempt("error", lambda x: 1 / 0, {"x": 1}, [0])


# -- what these arguments once broke -------------------------------------------------------------------------


@pytest.mark.parametrize("x", [0.0, 5e-324, 1.0, -1.0, sys.float_info.max, -sys.float_info.max, math.inf])
def test_rounding_at_the_ends_of_the_doubles(x):
    assert rounding.up(x, 3) > x or x == math.inf
    assert rounding.down(x, 3) < x
    assert rounding.up(x, 3) == rounding.up(np.array([x]), 3)[0] == -rounding.down(-x, 3)
    assert rounding.down(x, 3) == rounding.down(np.array([x]), 3)[0]


@pytest.mark.parametrize(
    ("mu", "epsilon"), [(1e100, 1e151), (1e80, 1e151), (30.0, 2e150), (2e75, 1e150), (1e-300, 1e-149)]
)
def test_the_gaussian_profile_contains_the_truth_at_vast_arguments(mu, epsilon):
    """Left of mu^2/2 delta is 1 however large epsilon is; right of it log delta is about -x^2/2."""
    lower, upper = (float(bound) for bound in log_gaussian_delta(mu, epsilon))
    with mp.workdps(400):
        x = mp.mpf(epsilon) / mp.mpf(mu) - mp.mpf(mu) / 2
        assert lower <= (0 if x < 0 else -x * x / 2) <= upper


def test_the_mu_of_vast_epsilons_is_bounded_on_both_sides():
    for epsilon in (1e30, 1e100, 1e190, 1e200, sys.float_info.max):
        lower, upper = (float(bound) for bound in gaussian_mu(epsilon, 1e-6))
        middle = math.sqrt(2.0) * math.sqrt(epsilon)  # delta goes from 0 to 1 within a few units of it
        assert 0 < lower <= middle * (1 + 1e-14)
        assert upper >= middle * (1 - 1e-14)
        assert middle * (2 - 1e-13) <= gaussian_mu_of_pure(epsilon) <= middle * (2 + 1e-13)


def test_tail_quantiles_far_below_the_doubles():
    lower, upper = normal_tail_quantile(np.array([-1e297, -1e299, -sys.float_info.max, -math.inf]))
    truth = math.sqrt(2.0) * np.sqrt([1e297, 1e299, sys.float_info.max, math.inf])
    assert np.all(lower <= truth)
    assert np.all(upper >= truth)


def test_a_declared_order_is_used_exactly():
    """Beyond the last order nothing is known, so the best order is often that one."""
    declared = RenyiDP(orders=(2.0, 8.0), epsilons=(0.1, 0.4)).epsilon(1e-6)
    assert declared == pytest.approx(renyi_to_approx(8.0, 0.4, 1e-6), rel=1e-13)
    bounded = RenyiDP(orders=(2.0, math.inf), epsilons=(0.1, 3.0))
    assert bounded.renyi(math.inf) == 3.0
    assert bounded.epsilon(0.0) == 3.0
    assert pure.epsilon((2 * bounded).directions()).value >= 6.0


def test_noise_too_small_for_the_quadrature_is_refused_with_a_reason():
    for multiplier in (1e-6, 1e-17, 1e-90):
        with pytest.raises(Unanswerable, match="points"):
            dpsgd(multiplier, 0.1, 3).renyi(2.0)
    assert dpsgd(1e-3, 0.1, 3).renyi(2.0) > 1e6


def test_nothing_leaks_from_an_empty_plan():
    empty = (0 * Laplace(2.0)).directions()
    assert optimal.epsilon(empty, 1e-6).value == optimal.delta(empty, 1.0).value == 0


def test_tradeoff_answers_in_the_shape_of_the_question():
    table = Gaussian(2.0).tradeoff(np.array([[0.1, 0.2], [0.3, 0.4]]))
    assert table.shape == (2, 2)
    assert table[1, 0] == Gaussian(2.0).tradeoff(0.3)
    assert Gaussian(2.0).tradeoff(np.array([])).shape == (0,)


def test_epsilon_of_a_vast_mu_is_half_its_square():
    for mu in (1e14, 1e20, 1e50, 1e100):
        for delta in (1e-300, 0.5, 0.9):
            assert gaussian.epsilon_mu(mu, delta) == pytest.approx(0.5 * mu * mu, rel=2e-12)
            assert gaussian.delta_mu(mu, gaussian.epsilon_mu(mu, delta)) <= delta


def test_orders_beyond_the_quadrature_are_refused_and_rho_does_without_them():
    rare = PoissonSampled(Gaussian(0.5), 1e-9)
    with pytest.raises(Unanswerable, match="points"):
        rare.renyi(sys.float_info.max)
    assert rare.rho() == pytest.approx(0.5 / 0.25, rel=1e-12)  # that of the noise without sampling
    vast = PoissonSampled(PureDP(1e308), 0.5).renyi(30.0)  # 30e308 is not a double, but the largest loss is one
    assert 1e308 <= vast <= 1e308 * (1 + 1e-14)


def test_suprema_that_add_up_beyond_the_doubles():
    vast = 3 * RenyiDP(orders=(2.0, math.inf), epsilons=(3.0, sys.float_info.max))
    assert vast.rho() == math.inf
    assert 0 < vast.epsilon(1e-6) < 30


def test_a_loss_of_zero_that_is_sometimes_infinite_composes():
    """The mass at infinity is all that such a step adds."""
    both = 3 * ApproxDP(0.0, 1e-9) + 2 * Gaussian(2.0) + Laplace(2.0)
    alone = (2 * Gaussian(2.0) + Laplace(2.0)).delta_interval(1.0)
    together = both.delta_interval(1.0)
    assert together.lower <= alone.upper + 3e-9
    assert together.upper >= alone.lower + 2.9e-9 * (1 - alone.upper)


@pytest.mark.parametrize("wrong", [0.5, None, "12", np.array([0.5]), [[0.1]]])
@pytest.mark.parametrize(
    ("ask", "name"),
    [
        (lambda wrong: Laplace(1.0).loss(wrong), "direction"),
        (lambda wrong: Laplace(1.0).epsilon_curve(wrong, 1e-5), "steps"),
        (lambda wrong: edge(wrong, "approx"), "source"),
        (lambda wrong: edge("renyi", wrong), "target"),
    ],
)
def test_arguments_of_other_shapes_are_refused_by_name(ask, name, wrong):
    with pytest.raises(InvalidArgument, match=name):
        ask(wrong)


def test_an_empty_array_is_no_name_of_a_definition_or_direction():
    for ask in (lambda: Laplace(1.0).loss(np.array([])), lambda: edge(np.array([]), "approx")):
        with pytest.raises(InvalidArgument):
            ask()
