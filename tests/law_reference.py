"""Independent references for laws: sums over atoms and integrals over densities with mpmath."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mpmath as mp
import numpy as np

from dptally.law import Law
from dptally.numerics.rounding import EPS

mp.mp.dps = 60

TILTS: tuple[complex, ...] = (
    1e-12,
    1e-6,
    0.01,
    0.3,
    1.0,
    3.0,
    10.0,
    -1e-6,
    -0.3,
    -0.5,
    -0.7,
    1e-9j,
    1e-6 + 1e-3j,
    0.5 + 1j,
    2 + 30j,
)

Expectation = Callable[[Callable[[mp.mpf], mp.mpf]], mp.mpf]


def over_atoms(atoms: Sequence[tuple[mp.mpf, mp.mpf]]) -> Expectation:
    return lambda f: mp.fsum(mass * f(loss) for loss, mass in atoms)


def log_moment(expect: Expectation, t: complex) -> mp.mpc:
    z = mp.mpc(t)
    return mp.log1p(expect(lambda loss: mp.expm1(z * loss)))


def log_profile(expect: Expectation, epsilon: float) -> mp.mpf:
    e = mp.mpf(epsilon)
    delta = expect(lambda loss: -mp.expm1(e - loss) if loss > e else mp.mpf(0))
    return mp.log(delta) if delta > 0 else mp.mpf("-inf")


def moment_error(law: Law, t: complex, truth: mp.mpc) -> float:
    """|K - truth| / |truth|, the imaginary part up to a multiple of 2 pi."""
    given = np.asarray(t) if isinstance(t, complex) else np.asarray(float(t))
    gap = mp.mpc(complex(law.log_moment(given))) - truth
    gap = mp.mpc(gap.real, mp.fmod(gap.imag + mp.pi, 2 * mp.pi) - mp.pi)
    if gap.imag < -mp.pi:
        gap += mp.mpc(0, 2 * mp.pi)
    return float(abs(gap) / abs(truth))


def check_moments(law: Law, expect: Expectation, tilts: Sequence[complex] = TILTS, ulps: float = 32.0) -> None:
    for t in tilts:
        truth = log_moment(expect, t)
        allowed = ulps * (1 if not isinstance(t, complex) else 8 / min(1.0, float(abs(mp.exp(truth)))))
        assert moment_error(law, t, truth) <= allowed * EPS, t


def check_profile(law: Law, expect: Expectation, epsilons: Sequence[float], width: float = 1e-11) -> None:
    lower, upper = law.log_profile(np.asarray(epsilons, dtype=np.float64))
    for epsilon, low, high in zip(epsilons, lower.tolist(), upper.tolist(), strict=True):
        truth = log_profile(expect, epsilon)
        assert low <= truth <= high, epsilon
        if mp.isfinite(truth) and width < mp.inf:
            assert high - low <= width * (1 + abs(truth)), epsilon
