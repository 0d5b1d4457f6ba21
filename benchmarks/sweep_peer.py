"""The plans of the sweep that dp-accounting can answer, asked of both in one run: time and accuracy beside each other.

    python benchmarks/sweep_peer.py                  # the first 100 such plans of seed 1, one table

Plans of Gaussian, Laplace and discrete noise, randomised response and declared (epsilon, delta), alone or (Gaussian and
Laplace noise) Poisson sampled under ADD_REMOVE, with delta at least 1e-10: below, a privacy loss distribution truncates
more than is asked for. dp-accounting's distributions are made with connect-the-dots at its own grid of 1e-4. Processor
time of one answer each, nothing kept from before. The excess is that of its epsilon over the lower end of the interval
of dptally, whose relative width is asked to be at most 1e-6.
"""

from __future__ import annotations

import argparse
import math
import signal
import statistics
import time
from collections.abc import Callable
from typing import Any

from dp_accounting.pld import privacy_loss_distribution as losses
from sweep import LEAST, Overdue, _give_up, question

import dptally as dp

GRID, PATIENCE, LARGEST = 1e-4, 10.0, 1e-10


def peer_law(mechanism: dp.Mechanism, rate: float = 1.0) -> Any:
    """The distribution of one step; NotImplementedError where there is none."""
    options: dict[str, Any] = {"value_discretization_interval": GRID, "use_connect_dots": True}
    match mechanism:
        case dp.Gaussian(sigma=sigma, sensitivity=s):
            return losses.from_gaussian_mechanism(sigma, sensitivity=s, sampling_prob=rate, **options)
        case dp.Laplace(scale=scale, sensitivity=s):
            return losses.from_laplace_mechanism(scale, sensitivity=s, sampling_prob=rate, **options)
        case dp.PoissonSampled(mechanism=inside, rate=inner) if mechanism.adjacency is dp.ADD_REMOVE and rate == 1.0:
            if isinstance(inside, dp.Gaussian | dp.Laplace):
                return peer_law(inside, inner)
        case dp.DiscreteGaussian(sigma=sigma, sensitivity=s) if rate == 1.0:
            return losses.from_discrete_gaussian_mechanism(sigma, sensitivity=s, **options)
        case dp.DiscreteLaplace(scale=scale, sensitivity=s) if rate == 1.0:
            return losses.from_discrete_laplace_mechanism(1 / scale, sensitivity=s, **options)
        case dp.RandomizedResponse(p=p, categories=k) if rate == 1.0:
            return losses.from_randomized_response((1 - p) * k / (k - 1), k, value_discretization_interval=GRID)
        case dp.ApproxDP(declared_epsilon=epsilon, declared_delta=delta) if rate == 1.0:
            return losses.from_privacy_parameters(
                losses.common.DifferentialPrivacyParameters(epsilon, delta), **options
            )
        case dp.PureDP(declared_epsilon=epsilon) if rate == 1.0:
            return losses.from_privacy_parameters(losses.common.DifferentialPrivacyParameters(epsilon, 0.0), **options)
    raise NotImplementedError(type(mechanism).__name__)


def parts_of(plan: dp.Mechanism) -> list[tuple[dp.Mechanism, int]]:
    return list(plan.parts) if isinstance(plan, dp.Composed) else [(plan, 1)]


def peer_epsilon(plan: dp.Mechanism, delta: float) -> float:
    total: Any = None
    for mechanism, count in parts_of(plan):
        law = peer_law(mechanism)
        law = law.self_compose(count) if count > 1 else law
        total = law if total is None else total.compose(law)
    return float(total.get_epsilon_for_delta(delta))


def known(plan: dp.Mechanism) -> bool:
    """Whether it has a distribution for every part, without making it."""
    simple = dp.Gaussian | dp.Laplace | dp.DiscreteGaussian | dp.DiscreteLaplace | dp.RandomizedResponse | dp.ApproxDP
    for mechanism, _ in parts_of(plan):
        sampled = isinstance(mechanism, dp.PoissonSampled)
        if sampled and not (
            mechanism.adjacency is dp.ADD_REMOVE and isinstance(mechanism.mechanism, dp.Gaussian | dp.Laplace)
        ):
            return False
        if not sampled and not isinstance(mechanism, simple | dp.PureDP):
            return False
    return True


def timed(answer: Callable[[], Any]) -> tuple[Any, float]:
    start = time.thread_time()
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        found: Any = answer()
    except Overdue:
        found = None
    except Exception as error:
        found = error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    return found, time.thread_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    signal.signal(signal.SIGPROF, _give_up)
    for warm in (dp.Gaussian(2.0), 3 * dp.PoissonSampled(dp.Gaussian(2.0), 0.1), 3 * dp.DiscreteGaussian(2.0)):
        warm.epsilon_interval(1e-5)
        peer_epsilon(warm, 1e-5)
    rows, index, faster = [], 0, []
    while len(rows) < chosen.plans:
        asked = question(chosen.seed, index)
        index += 1
        if not (asked.determined and asked.delta >= LARGEST and known(asked.plan)):
            continue
        own, own_time = timed(lambda plan=asked.plan, delta=asked.delta: plan.epsilon_interval(delta))
        other, other_time = timed(lambda plan=asked.plan, delta=asked.delta: peer_epsilon(plan, delta))
        width = (own.upper - own.lower) / max(own.upper, LEAST) if own.upper < math.inf else 0.0
        excess = math.nan
        if isinstance(other, float):
            excess = 0.0 if other == own.lower else (other - own.lower) / max(own.lower, LEAST)
        rows.append((index - 1, own_time, other_time, width, excess, other))
        if other_time < own_time and abs(excess) <= max(width, 1e-6):
            faster.append(index - 1)
        print(
            f"{index - 1:6d} {1e3 * own_time:8.2f} ms width {width:.1e}   dp-accounting {1e3 * other_time:9.2f} ms"
            f" excess {excess:9.2e} {'' if isinstance(other, float) else repr(other)[:60]}   {str(asked.plan)[:90]}"
        )
    answered = [row for row in rows if isinstance(row[5], float)]
    finite = [row for row in answered if math.isfinite(row[4])]
    ratios = sorted(row[2] / row[1] for row in answered)
    print(f"\n{len(rows)} plans; dp-accounting answers {len(answered)}, {len(finite)} of them with a finite epsilon")
    print(
        f"median of its time over ours {statistics.median(ratios):.1f}, least {ratios[0]:.2f}, largest {ratios[-1]:.0f}"
    )
    print(f"total {sum(r[1] for r in rows):.2f} s against {sum(r[2] for r in rows):.2f} s")
    print(
        f"its excess: median {statistics.median(abs(r[4]) for r in finite):.1e}, most {max(r[4] for r in finite):.1e}"
    )
    print(f"below the certified lower end: {sum(row[4] < -1e-12 for row in finite)}")
    print(f"faster at equal or better accuracy: {faster}")
    print(f"faster at any accuracy: {[row[0] for row in answered if row[2] < row[1]]}")


if __name__ == "__main__":
    main()
