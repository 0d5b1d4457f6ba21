"""The lecture notes on zero-concentrated DP: their claims, checked; Theorem 6.2 is unsafe as printed."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from exhibit import BLUE, INK, RED, Exhibit, Paper, figure, label, main, table

import dptally as dp
from dptally.accounting import concentrated, gaussian
from dptally.meaning import bayes
from dptally.release import mode_accuracy


def epsilon_as_printed(rho: float, delta: float) -> float:
    """Notes-faithful and WRONG: Theorem 6.2's rho + sqrt(2 rho log(1/delta))."""
    return rho + math.sqrt(2 * rho * math.log(1 / delta))


def theorem_6_2() -> Exhibit:
    drawn, (left, right) = figure(2, width=5.6, height=4.0)
    rhos = np.geomspace(1e-3, 10, 41)
    left.plot(
        rhos,
        [epsilon_as_printed(r, 1e-6) for r in rhos],
        color=RED,
        ls="--",
        label="printed: rho + sqrt(2 rho log(1/delta))",
    )
    left.plot(
        rhos,
        [concentrated.epsilon_from_rho(r, 1e-6, "bun-steinke").value for r in rhos],
        color=BLUE,
        ls="-.",
        label="correct: rho + 2 sqrt(rho log(1/delta))",
    )
    left.plot(
        rhos,
        [gaussian.epsilon_mu(math.sqrt(2 * r), 1e-6) for r in rhos],
        color=INK,
        lw=2,
        label="exact, Gaussian noise",
    )
    left.set(xscale="log", yscale="log")
    label(left, "epsilon at delta = 1e-6", "rho", "epsilon")
    for delta, colour, dash in ((1e-5, INK, "-"), (1e-6, RED, "--"), (1e-10, BLUE, "-.")):
        ratio = [gaussian.delta_mu(math.sqrt(2 * r), epsilon_as_printed(r, delta)) / delta for r in rhos]
        right.plot(rhos, ratio, color=colour, ls=dash, label=f"delta = {delta:g}")
    right.axhline(1, color=INK, lw=0.8)
    right.set(xscale="log", yscale="log")
    label(right, "true delta over claimed delta, as printed", "rho", "too large by")
    rows, numbers = [], {}
    for rho, delta in ((0.1, 1e-5), (1.0, 1e-6), (1.0, 1e-10), (5.0, 1e-10)):
        printed = epsilon_as_printed(rho, delta)
        truth = gaussian.delta_mu(math.sqrt(2 * rho), printed)
        right_one = concentrated.epsilon_from_rho(rho, delta, "bun-steinke").value
        exact = gaussian.epsilon_mu(math.sqrt(2 * rho), delta)
        rows.append(
            (
                rho,
                f"{delta:g}",
                f"{printed:.4f}",
                f"{truth:.3e}",
                f"{truth / delta:.4g} x",
                f"{right_one:.4f}",
                f"{exact:.4f}",
            )
        )
        numbers |= {
            f"printed.{rho:g}.{delta:g}": printed,
            f"true.{rho:g}.{delta:g}": truth,
            f"right.{rho:g}.{delta:g}": right_one,
            f"exact.{rho:g}.{delta:g}": exact,
        }
    return Exhibit(
        "zcdp-theorem-6-2",
        "Theorem 6.2 is unsafe",
        "unsafe",
        "rho-zCDP implies (rho + sqrt(2 rho log(1/delta)), delta)-DP.",
        "It does not. Gaussian noise is rho-zCDP and breaks it: with rho = 1 at delta = 1e-6 the printed "
        f"epsilon is {numbers['printed.1.1e-06']:.4f}, and there the true delta is "
        f"{numbers['true.1.1e-06']:.3e}. The correct conversion is rho + 2 sqrt(rho log(1/delta)), as Bun "
        "and Steinke prove and as the ADP paper's (38) has it.",
        "The minimum of rho a + log(1/delta)/(a-1) over orders a > 1 is rho + 2 sqrt(rho log(1/delta)). At "
        "the printed epsilon the loss, which is N(rho, 2 rho), is exceeded with probability about "
        "sqrt(delta). The library does not offer the printed form.",
        "rho and delta as in the table.",
        drawn,
        (
            table(
                (
                    "rho",
                    "delta",
                    "printed epsilon",
                    "true delta there",
                    "too large by",
                    "correct epsilon",
                    "exact, Gaussian",
                ),
                rows,
            ),
        ),
        numbers,
    )


def claims() -> Exhibit:
    mu = 0.7
    rho = dp.Gaussian(1 / mu).rho()
    tail = bayes.gaussian_factor_tail(mu, 1.0)
    normal = 0.5 * math.erfc((1.0 - rho) / math.sqrt(2 * rho) / math.sqrt(2))
    added = (dp.Gaussian(2.0) + dp.Gaussian(3.0)).rho()
    order = 4.0
    moment = math.exp((order - 1) * dp.Gaussian(2.0).renyi(order))
    rows = (
        (
            "Claim 4.3: the Gaussian loss is N(rho, 2 rho)",
            f"P[L > 1] = {normal:.10f}",
            f"{tail:.10f}",
            "confirmed",
        ),
        (
            "Claim 5.1: losses add; rho adds",
            f"1/8 + 1/18 = {1 / 8 + 1 / 18:.10f}",
            f"{added:.10f}",
            "confirmed",
        ),
        (
            "Def. 6.1: E exp((a-1) L) <= exp(a (a-1) rho), tight for Gaussian noise",
            f"{math.exp(order * (order - 1) / 8):.10f}",
            f"{moment:.10f}",
            "confirmed",
        ),
        (
            "k-fold composition is k rho",
            f"100 / 800 = {100 / 800:.10f}",
            f"{(100 * dp.Gaussian(20.0)).rho():.10f}",
            "confirmed",
        ),
        (
            "epsilon-DP is epsilon^2/2-zCDP (epsilon = 1)",
            f"{0.5:.10f}",
            f"{dp.PureDP(1.0).rho():.10f}",
            "true; epsilon tanh(epsilon/2) is sharp",
        ),
        (
            "the same, epsilon = 5",
            f"{12.5:.10f}",
            f"{dp.PureDP(5.0).rho():.10f}",
            "true; epsilon tanh(epsilon/2) is sharp",
        ),
        (
            "Propose-test-release",
            "no test given",
            "dptally.release.propose_test_release",
            "ours, with its proof, in the manual",
        ),
    )
    return Exhibit(
        "zcdp-claims",
        "The other claims",
        "confirmed",
        "The Gaussian privacy loss, additivity, the moment form of zCDP, and pure DP inside it.",
        "All hold; see the table.",
        "epsilon^2/2 is valid and loose: the smallest rho of an epsilon-DP mechanism is epsilon tanh(epsilon/2).",
        "mu = 0.7, sigma = 2, 3 and 20, order 4.",
        tables=(table(("claim", "notes", "ours", "verdict"), rows),),
        numbers={
            "tail": tail,
            "normal": normal,
            "added": added,
            "pure.5": dp.PureDP(5.0).rho(),
            "moment": moment,
        },
    )


GAPS = range(1, 401)
EPSILON, KINDS, DELTAS = 0.5, (2, 1_000, 1_000_000), (1e-2, 1e-6, 1e-10)


@cache
def failures(epsilon: float, delta: float, kinds: int) -> tuple[list[float], list[float]]:
    """(the histogram errs, propose-test-release is silent) for every lead of the mode from 1 on."""
    found = [mode_accuracy(2 * g, g, epsilon, delta, categories=max(kinds, 3)) for g in GAPS]
    if kinds == 2:  # the lead of two kinds is as odd as their number
        found = [mode_accuracy(3 * g, g, epsilon, delta) for g in GAPS]
    return [one.histogram_wrong for one in found], [one.propose_silent for one in found]


def first_below(values: list[float], most: float = 0.01) -> int:
    """The smallest lead from which on the failure stays at or below ``most``."""
    return 1 + max((g for g, value in zip(GAPS, values, strict=True) if value > most), default=0)


def remark_7_1() -> Exhibit:
    drawn, (left, right) = figure(2, width=5.6, height=4.0)
    numbers: dict[str, float] = {}
    for kinds, dash in zip(KINDS, ("-", "--", "-."), strict=True):
        wrong, _ = failures(EPSILON, 1e-6, kinds)
        numbers[f"histogram.{kinds}"] = first_below(wrong)
        left.plot(GAPS, wrong, color=BLUE, ls=dash, label=f"histogram, {kinds:,} categories")
    for delta, dash in zip(DELTAS, ("-", "--", "-."), strict=True):
        _, silent = failures(EPSILON, delta, 2)
        numbers[f"propose.{delta:g}"] = first_below(silent)
        left.plot(GAPS, silent, color=RED, ls=dash, label=f"propose-test-release, delta = {delta:g}")
    left.set(yscale="log", ylim=(1e-12, 1.5), xlim=(0, 160))
    label(left, f"how often each fails, epsilon = {EPSILON:g}", "lead of the mode", "failure")
    kinds = np.unique(np.geomspace(3, 1e12, 49).astype(np.int64)).tolist()
    for delta, dash, colour in zip(DELTAS, ("-", "--", "-."), (INK, RED, BLUE), strict=True):
        needed = [boundary(EPSILON, delta, gap, kinds) for gap in (20, 40, 80, 160)]
        right.plot((20, 40, 80, 160), needed, color=colour, ls=dash, marker="o", ms=4, label=f"delta = {delta:g}")
        numbers |= {f"kinds.{gap}.{delta:g}": k for gap, k in zip((20, 40, 80, 160), needed, strict=True)}
    right.set(xscale="log", yscale="log")
    label(right, "below the line the histogram is better", "lead of the mode", "categories")
    rows = [
        (f"{epsilon:g}", f"{delta:g}", *(first_below(failures(epsilon, delta, k)[0]) for k in KINDS),
         first_below(failures(epsilon, delta, 2)[1]))
        for epsilon in (0.5, 1.0)
        for delta in DELTAS
    ]  # fmt: skip
    return Exhibit(
        "zcdp-remark-7-1",
        "Remark 7.1: the mode by a noisy histogram, or by propose-test-release?",
        "confirmed",
        "An exercise without an answer: contrast the accuracy of a noisy histogram with that of propose-test-release.",
        "Exact probabilities of failure (a wrong mode; no answer), at every lead of the mode. Both fall like "
        "e^(-epsilon lead). The histogram's has the number of categories before it, the other's 1/delta. So with two "
        "categories the histogram fails more rarely at every lead at delta = 1e-6 and 1e-10, and needs no delta; "
        "propose-test-release is better where the lead passes its test and the categories are more than about "
        "4/(epsilon delta lead). To fail in at "
        f"most 1 % of all cases at epsilon = {EPSILON:g}, the histogram of two categories needs a lead of "
        f"{numbers['histogram.2']:.0f}, of a million {numbers['histogram.1000000']:.0f}; propose-test-release at "
        f"delta = 1e-6 needs {numbers['propose.1e-06']:.0f}, whatever their number. It is silent where the "
        "histogram is wrong.",
        "Nothing to differ from.",
        "epsilon = 0.5, one record added or removed, all other categories as high as the lead allows. n enters only "
        "through the lead.",
        drawn,
        (table(("epsilon", "delta", *(f"histogram, {k:,}" for k in KINDS), "propose-test-release"), rows,
               "The smallest lead at which each fails in at most 1 % of all cases"),),
        numbers,
    )  # fmt: skip


def boundary(epsilon: float, delta: float, gap: int, kinds: list[int]) -> int:
    """The smallest number of categories, of those given, at which propose-test-release fails more rarely."""
    found = (k for k in kinds if mode_accuracy(gap, gap, epsilon, delta, categories=k).better != "histogram")
    return next(found, kinds[-1])


def paper() -> Paper:
    return Paper(
        "zcdp",
        "Zero-concentrated differential privacy",
        "Lecture notes on zCDP (informal, unpublished)",
        "A clear introduction to the privacy loss as a random variable. One constant is wrong, and it is "
        "the one that people copy.",
        (theorem_6_2(), claims(), remark_7_1()),
    )


if __name__ == "__main__":
    main(paper)
