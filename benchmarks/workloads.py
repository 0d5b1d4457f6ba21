"""The same work for every tool: plain data, written to each tool's process as JSON."""

from __future__ import annotations

import random
from typing import Any

Workload = dict[str, Any]


def sampled(sigma: float, rate: float, count: int) -> Workload:
    return {"kind": "sampled_gaussian", "sigma": sigma, "rate": rate, "count": count}


def gaussian(sigma: float, count: int = 1) -> Workload:
    return {"kind": "gaussian", "sigma": sigma, "count": count}


def laplace(scale: float, count: int = 1) -> Workload:
    return {"kind": "laplace", "scale": scale, "count": count}


def sampled_laplace(scale: float, rate: float, count: int) -> Workload:
    return {"kind": "sampled_laplace", "scale": scale, "rate": rate, "count": count}


def discrete_gaussian(sigma: float, count: int = 1) -> Workload:
    return {"kind": "discrete_gaussian", "sigma": sigma, "count": count}


def response(p: float, count: int = 1) -> Workload:
    return {"kind": "randomized_response", "p": p, "count": count}


def guarantee(epsilon: float, delta: float, count: int = 1) -> Workload:
    return {"kind": "approx", "epsilon": epsilon, "delta": delta, "count": count}


def exponential(epsilon: float, count: int) -> Workload:
    return {"kind": "exponential", "epsilon": epsilon, "count": count}


def best_of(mean: float, sigma: float, rate: float, steps: int) -> Workload:
    """The best of a random number of DP-SGD runs (shape 0, the logarithmic law)."""
    return {"kind": "best_of", "mean": mean, "sigma": sigma, "rate": rate, "steps": steps, "count": 1}


def epsilon_of(name: str, delta: float, *parts: Workload) -> Workload:
    return {"name": name, "ask": "epsilon", "delta": delta, "parts": list(parts)}


def epsilons_of(name: str, deltas: list[float], *parts: Workload) -> Workload:
    """Many deltas of one plan; what is compared is the mean of the epsilons."""
    return {"name": name, "ask": "epsilons", "deltas": deltas, "parts": list(parts)}


def sigma_for(name: str, epsilon: float, delta: float, rate: float, steps: int) -> Workload:
    return {"name": name, "ask": "sigma", "epsilon": epsilon, "delta": delta, "rate": rate, "steps": steps}


def _distinct_steps(number: int) -> list[Workload]:
    draw = random.Random(20240607)
    return [sampled(round(draw.uniform(0.8, 3.0), 6), round(draw.uniform(0.001, 0.02), 6), 10) for _ in range(number)]


def _distinct_responses(number: int) -> list[Workload]:
    draw = random.Random(7)
    return [response(round(draw.uniform(0.505, 0.55), 6)) for _ in range(number)]


WORKLOADS: list[Workload] = [
    epsilon_of("DP-SGD sigma 1, q .01, T 1e3, delta 1e-5", 1e-5, sampled(1.0, 0.01, 1000)),
    epsilon_of("DP-SGD sigma 1, q .01, T 1e6, delta 1e-5", 1e-5, sampled(1.0, 0.01, 10**6)),
    epsilon_of("DP-SGD sigma 1, q .01, T 1e9, delta 1e-5", 1e-5, sampled(1.0, 0.01, 10**9)),
    epsilon_of("DP-SGD sigma 1, q .01, T 1e3, delta 1e-10", 1e-10, sampled(1.0, 0.01, 1000)),
    epsilon_of("DP-SGD sigma 1, q .01, T 1e3, delta 1e-25", 1e-25, sampled(1.0, 0.01, 1000)),
    epsilon_of("DP-SGD sigma 1, q .01, T 1e3, delta 1e-100", 1e-100, sampled(1.0, 0.01, 1000)),
    epsilon_of("DP-SGD sigma 1, q .01, T 1e3, delta 1e-300", 1e-300, sampled(1.0, 0.01, 1000)),
    epsilon_of("DP-SGD sigma .3, q 1e-4, T 1e5, delta 1e-5", 1e-5, sampled(0.3, 1e-4, 10**5)),
    epsilon_of("DP-SGD sigma .6, q 1e-3, T 1e5, delta 1e-5", 1e-5, sampled(0.6, 1e-3, 10**5)),
    epsilon_of("DP-SGD sigma 2, q .1, T 1e6, delta 1e-5", 1e-5, sampled(2.0, 0.1, 10**6)),
    epsilon_of("DP-SGD sigma 2, q .001, T 1e6, delta 1e-14", 1e-14, sampled(2.0, 0.001, 10**6)),
    epsilon_of("300 distinct sampled Gaussians x 10 steps, delta 1e-5", 1e-5, *_distinct_steps(300)),
    epsilon_of("Laplace scale 10, 50-fold, delta 1e-5", 1e-5, laplace(10.0, 50)),
    epsilon_of("Laplace scale 10, 1000-fold, delta 1e-5", 1e-5, laplace(10.0, 1000)),
    epsilon_of("100 distinct randomised responses, delta 1e-5", 1e-5, *_distinct_responses(100)),
    epsilon_of("Randomised response p .501, 1e4-fold, delta 1e-5", 1e-5, response(0.501, 10**4)),
    epsilon_of("Randomised response p .55, 100-fold, delta 1e-5", 1e-5, response(0.55, 100)),
    epsilon_of("(5, 0)-DP, 10-fold, delta 1e-5", 1e-5, guarantee(5.0, 0.0, 10)),
    epsilon_of(
        "(.1, 1e-8)-DP, 100-fold, and a Gaussian sigma 2, delta 1e-5",
        1e-5,
        guarantee(0.1, 1e-8, 100),
        gaussian(2.0),
    ),
    epsilon_of("Gaussian sigma 10, 100-fold, delta 1e-15", 1e-15, gaussian(10.0, 100)),
    epsilon_of(
        "50 Laplace scale 5 + 10 Gaussian sigma 10 + DP-SGD sigma 1, q .01, T 1e3, delta 1e-6",
        1e-6,
        laplace(5.0, 50),
        gaussian(10.0, 10),
        sampled(1.0, 0.01, 1000),
    ),
    epsilon_of("Few steps: sigma 1.488, q 6.5e-4, T 6, delta 6e-16", 6e-16, sampled(1.488, 6.5e-4, 6)),
    epsilon_of("Few steps: sigma .8, q .05, T 3, delta 1e-10", 1e-10, sampled(0.8, 0.05, 3)),
    epsilon_of("Few steps: sigma 1, q 1e-5, T 30, delta 1e-30", 1e-30, sampled(1.0, 1e-5, 30)),
    epsilon_of(
        "DP-SGD sigma 1, q .01, T 1e3 + discrete Gaussian sigma 5, delta 1e-5",
        1e-5,
        sampled(1.0, 0.01, 1000),
        discrete_gaussian(5.0),
    ),
    epsilon_of(
        "Discrete Gaussians sigma 8, 9 and 10, delta 1e-5",
        1e-5,
        *(discrete_gaussian(sigma) for sigma in (8.0, 9.0, 10.0)),
    ),
    epsilon_of("Discrete Gaussian sigma 4, 10-fold, delta 1e-5", 1e-5, discrete_gaussian(4.0, 10)),
    epsilon_of("Laplace scale 1 on samples, q .1, 100-fold, delta 1e-5", 1e-5, sampled_laplace(1.0, 0.1, 100)),
    epsilons_of(
        "DP-SGD sigma 1, q .01, T 1e3, a thousand deltas from 1e-12 to 1e-2",
        [10 ** (-12 + 10 * i / 999) for i in range(1000)],
        sampled(1.0, 0.01, 1000),
    ),
    epsilon_of("Exponential mechanism of .1, 100-fold, delta 1e-6", 1e-6, exponential(0.1, 100)),
    epsilon_of("The best of 10 runs: DP-SGD sigma 2, q .01, T 1e3, delta 1e-5", 1e-5, best_of(10.0, 2.0, 0.01, 1000)),
    sigma_for("Sigma for (1, 1e-6), q .01, T 1e3", 1.0, 1e-6, 0.01, 1000),
    sigma_for("Sigma for (1, 1e-6), q .001, T 1e5", 1.0, 1e-6, 0.001, 10**5),
]
