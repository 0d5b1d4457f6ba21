"""Other tools' own accountant tests against dptally's drop-ins, from the installed packages: ``make interop``.

Run inside an environment that has the tool: ``python suites.py opacus`` or ``python suites.py dp_accounting``. The
tests are imported from where the tool installed them and run as they are; only the names of the tool's accountants
are exchanged for dptally's. A test may fail here for one of the reasons below, and for no other; each such test is
listed with dptally's certified interval where it asserts a number. A listed test that passes is an error too: the list
says no more than is true.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import math
import sys
import time
import unittest
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import binom, hypergeom

import dptally as dp

#: why a test of another tool may fail against a certified accountant
REASONS = {
    "error": "asserts the tool's own approximation error",
    "runs": "asserts the tool's Renyi bound of the best of a random number of runs; here a smaller one is proved",
    "fails": "asserts that the tool's own series does not converge and that its divergence is infinite",
    "refuses": "asserts that this accountant of the tool refuses what is answered here",
}


@dataclass(frozen=True)
class Expected:
    """A test that may fail: the beginning of its name, the reason, and the run whose epsilon it asserts."""

    test: str
    reason: str
    plan: dp.Mechanism | None = None
    delta: float = 0.0
    asserted: str = ""


_OPACUS_RUN = dp.dpsgd(1.5, 0.04, 2250)
OPACUS = (
    Expected("AccountingTest.test_rdp_accountant", "error", _OPACUS_RUN, 1e-5, "7.32911"),
    Expected("AccountingTest.test_gdp_accountant", "error", dp.dpsgd(1.5, 0.04, 2249), 1e-5, "in (6.59, 6.6)"),
    Expected("AccountingTest.test_prv_accountant", "error", dp.dpsgd(1.5, 0.04, 2249), 1e-5, "6.77740"),
    Expected(
        "AccountingTest.test_get_noise_multiplier_rdp_epochs", "error", dp.dpsgd(1.416, 0.04, 2250), 1e-5, "8 at 1.416"
    ),
    Expected(
        "AccountingTest.test_get_noise_multiplier_rdp_steps", "error", dp.dpsgd(1.3562, 0.04, 2000), 1e-5, "8 at 1.3562"
    ),
    Expected(
        "AccountingTest.test_get_noise_multiplier_prv_epochs",
        "error",
        dp.dpsgd(1.34765625, 0.04, 2250),
        1e-5,
        "8 at 1.34766",
    ),
    Expected(
        "AccountingTest.test_get_noise_multiplier_prv_steps", "error", dp.dpsgd(1.2915, 0.04, 2000), 1e-5, "8 at 1.2915"
    ),
    Expected(
        "AccountingTest.test_get_noise_multiplier_gdp",
        "error",
        dp.dpsgd(1.3232421875, 0.04, 2250),
        1e-5,
        "8 at 1.32324",
    ),
    Expected("AccountingTest.test_accountant_load_state_dict", "error", _OPACUS_RUN, 1e-5, "7.32911"),
    Expected("PRVAccountantTest.test_values", "error", dp.dpsgd(0.8, 0.001, 100), 1e-6, "0.270403 (the first of 34)"),
)


def _runs(case: str, plan: dp.Mechanism, delta: float, asserted: str) -> Expected:
    return Expected(f"RdpPrivacyAccountantTest.test_repeat_{case}", "runs", plan, delta, asserted)


def _best_of_gaussian_runs() -> Iterator[Expected]:
    """The best of runs with Gaussian noise: negative binomial of parameter gamma, and Poisson."""
    for name, rho, gamma in (("small", 0.01, 0.01), ("med", 1.0, 0.1), ("large", 10.0, 0.99)):
        run = dp.Gaussian(math.sqrt(0.5 / min(rho, -math.log(gamma))))
        for shape in (0, 0.5, 1, 5):
            mean = shape * (1 - gamma) / (gamma * (1 - gamma**shape)) if shape else (1 / gamma - 1) / -math.log(gamma)
            plan = run.best_of(mean, shape=shape)
            yield _runs(f"select_gaussian_negative_binomial_{name}{shape}", plan, 1e-5, "its Renyi divergences")
    for name, sigma, mean in (
        ("med_small", 1.0, 1.0),
        ("med_med", 1.0, 1e3),
        ("large_small", 1e3, 1.0),
        ("large_med", 1e3, 1e3),
        ("large_large", 1e3, 1e9),
    ):
        plan = dp.Gaussian(sigma).best_of(mean, law="poisson")
        yield _runs(f"and_select_gaussian_poisson_{name}", plan, 1e-5, "its Renyi divergences")


def _best_of_pure_runs() -> Iterator[Expected]:
    """The best of runs with Laplace noise, asserted to cost (2 + shape) epsilon, or its Renyi divergence."""
    for name, mean, shape in (
        ("logarithmic", 1000, 0),
        ("geometric", 1000, 1),
        ("negative binomial 0.5", 1000, 0.5),
        ("negative binomial 2", 100, 2),
        ("negative binomial 5", 1000, 5),
    ):
        plan = dp.Laplace(1.0).best_of(mean, shape=shape)
        yield _runs(f"select_pure_negative_binomial_{name}", plan, 1e-10, f"{2 + shape:g}")
    for name, epsilon, mean in (
        ("2", 0.1, 2),
        ("10", 10.0, 10),
        ("100", 1e-3, 100),
        ("10^4", 2.0, 1000),
        ("10^10", 1.0, 1e10),
    ):
        plan = dp.Laplace(1 / epsilon).best_of(mean, law="poisson")
        yield _runs(f"and_select_pure_poisson_mean{name}", plan, 1e-5, "its Renyi divergences")


def _refused_replacements() -> Iterator[Expected]:
    """Its PLD accountant has no Laplace noise under REPLACE_ONE; its RDP accountant has, with half the change."""
    laplace = dp.Laplace(1.0, 2.0)
    sampled = dp.PoissonSampled(dp.Laplace(1.0), 0.1, dp.REPLACE)
    cases = {1: laplace, 2: sampled, 3: dp.DiscreteLaplace(10.0, 2)}
    for number, plan in cases.items():
        name = f"PldPrivacyAccountantTest.test_composition_errors_for_neighboring_relation{number}"
        yield Expected(name, "refuses", plan, 1e-5, "a refusal")
    name = "PldPrivacyAccountantTest.test_poisson_subsampling_laplace_not_supported_for_replace_one"
    yield Expected(name, "refuses", sampled, 1e-5, "a refusal")


_FIXED_BATCH = dp.Sampled(dp.Gaussian(1.0), dp.FixedSize(batch_size=10, dataset_size=1000), steps=1)

DP_ACCOUNTING = (
    *_refused_replacements(),
    Expected(
        "RdpPrivacyAccountantTest.test_compute_rdp_poisson_sampled_gaussian",
        "error",
        dp.dpsgd(2.5, 0.01, 50),
        1e-5,
        "Renyi divergences to 9 digits",
    ),
    *_best_of_gaussian_runs(),
    *_best_of_pure_runs(),
    Expected(
        "RdpPrivacyAccountantTest.test_log_a_frac_early_termination",
        "fails",
        dp.PoissonSampled(dp.Gaussian(1.0), 0.1),
        1e-5,
        "an infinite divergence",
    ),
    Expected("RdpPrivacyAccountantTest.test_supports", "refuses", _FIXED_BATCH, 1e-5, "that add-or-remove is refused"),
    Expected("RdpPrivacyAccountantTest.test_laplace_repetition", "error", 100 * dp.Laplace(1.0), 1e-10, "100"),
)
_JAX_RATE = 1024 / 50_000
_JAX_RUN = dp.dpsgd(4.0, _JAX_RATE, 10_000)


def _jax_truncated(cap: int) -> dp.Mechanism:
    """Batches of 1024 on average, cut at ``cap``."""
    return dp.Sampled(dp.Gaussian(4.0), dp.TruncatedPoisson(_JAX_RATE, 50_000, cap), steps=10_000)


def _jax_users(per_record: float, counts: Callable[[int], float]) -> dp.Mechanism:
    """Two records of each user; ``counts``: the chance that so many of them are in a batch."""
    sizes = range(3)
    return 10_000 * dp.MixtureOfGaussians(4.0, tuple(per_record * one for one in sizes), tuple(map(counts, sizes)))


_JAX_USERS = _jax_users(1.0, lambda size: float(binom.pmf(size, 2, _JAX_RATE)))
_JAX_FIXED_USERS = _jax_users(2.0, lambda size: float(hypergeom.pmf(size, 50_000, 2, 1024)))
JAX_PRIVACY = (
    *(
        Expected(f"{suite}.test_compute_epsilon_{kind}", "error", _JAX_RUN, 1e-5, asserted)
        for suite in ("DpsgdTrainingAccountantTest", "DpsgdTrainingAccountantCycleLengthTest")
        for kind, asserted in (("via_rdp", "2.27535"), ("via_pld", "2.09245"), ("fixed_batch_size", "2.27535"))
    ),
    Expected("DpsgdTrainingAccountantCycleLengthTest.test_uneven_multiples", "error", _JAX_RUN, 1e-5, "2.27535"),
    *(
        Expected(
            f"DpsgdTrainingAccountantMaxBatchSizeTest.test_compute_epsilon_via_pld{number}",
            "error",
            _jax_truncated(cap),
            1e-5,
            asserted,
        )
        for number, cap, asserted in (
            (1, 1056, "4.06910"),
            (2, 1088, "2.45377"),
            (3, 1120, "2.11659"),
            (4, 1152, "2.09310"),
        )
    ),
    Expected("DpsgdTrainingUserLevelAccountantTest.test_compute_epsilon_via_pld", "error", _JAX_USERS, 1e-5, "5.00008"),
    Expected(
        "DpsgdTrainingUserLevelAccountantTest.test_compute_epsilon_fixed", "error", _JAX_FIXED_USERS, 1e-5, "11.48878"
    ),
    *(
        Expected(f"CalibrateTest.test_calibrate_{what}{kind}", "error", plan, 1e-5, asserted)
        for what in ("noise", "batch_size", "num_updates")
        for kind, plan, asserted in (
            ("_truncated", _jax_truncated(1056), "4.50055"),
            ("_user_level", _JAX_USERS, "5.00008"),
            ("", _JAX_RUN, "2.27535"),
        )
    ),
)


def _opacus() -> tuple[list[str], tuple[Expected, ...]]:
    """dptally's accountant under the names of opacus' three, in the registry and in the tests."""
    from opacus.accountants import registry

    from dptally.interop.opacus import DptallyAccountant

    names = [
        "opacus.tests.accountants_test",
        "opacus.tests.accounting_noise_multiplier_test",
        "opacus.tests.prv_accountant",
    ]
    for key in ("rdp", "gdp", "prv"):
        registry._ACCOUNTANTS[key] = DptallyAccountant
    for name in names:
        module = importlib.import_module(name)
        for known in ("RDPAccountant", "GaussianAccountant", "PRVAccountant"):
            if hasattr(module, known):
                setattr(module, known, DptallyAccountant)
    return names, OPACUS


def prv_values() -> str:
    """The reference values that opacus' tests carry from the PRV accountant, each an upper bound with error 0.01,
    beside ours.
    """
    from opacus.tests.prv_accountant import msr_values

    below = []
    for (noise, rate, steps), value in msr_values.items():
        box = dp.dpsgd(noise, rate, steps).epsilon_interval(1e-6)
        below += [value - box.upper, value - box.lower]
    return f"{len(msr_values)} values of the PRV accountant: ours lies {min(below):.4f} to {max(below):.4f} below"


def _exchange_dp_accounting() -> None:
    """dptally's accountant for the PLD and the RDP accountant, each with its reading of REPLACE_ONE."""
    from dp_accounting import pld, rdp
    from dp_accounting.pld import pld_privacy_accountant
    from dp_accounting.rdp import rdp_privacy_accountant

    from dptally.interop.dp_accounting import DptallyAccountant

    relation = pld_privacy_accountant.NeighborRel.ADD_OR_REMOVE_ONE

    class AsPld(DptallyAccountant):  # type: ignore[misc]
        def __init__(self, neighboring_relation: object = relation, **grid: object) -> None:
            del grid
            super().__init__(neighboring_relation, replace_sensitivity=2)

    class AsRdp(DptallyAccountant):  # type: ignore[misc]
        """Its tests read Renyi divergences at given orders: here those of the plan."""

        def __init__(self, orders: object = None, neighboring_relation: object = relation) -> None:
            super().__init__(neighboring_relation, replace_sensitivity=1)
            self._orders = np.array(rdp_privacy_accountant.DEFAULT_RDP_ORDERS if orders is None else orders)

        @property
        def _rdp(self) -> np.ndarray:
            open_ = np.full_like(self._orders, np.inf, dtype=np.float64)
            return open_ if self._unprotected else self.plan.renyi(self._orders)

    pld.PLDAccountant = pld_privacy_accountant.PLDAccountant = AsPld
    rdp.RdpAccountant = rdp_privacy_accountant.RdpAccountant = AsRdp


def _dp_accounting() -> tuple[list[str], tuple[Expected, ...]]:
    _exchange_dp_accounting()
    names = ["dp_accounting.pld.pld_privacy_accountant_test", "dp_accounting.rdp.rdp_privacy_accountant_test"]
    return [*names, "dp_accounting.mechanism_calibration_test"], DP_ACCOUNTING


def _jax_privacy() -> tuple[list[str], tuple[Expected, ...]]:
    """jax-privacy makes its accountants by the names that dp-accounting gives them; its wheel carries its tests."""
    _exchange_dp_accounting()
    names = ["tests.accounting.analysis_test", "tests.accounting.calibrate_test", "tests.experimental.accounting_test"]
    return names, JAX_PRIVACY


TOOLS = {
    "opacus": ("opacus", _opacus),
    "dp_accounting": ("dp-accounting", _dp_accounting),
    "jax_privacy": ("jax-privacy", _jax_privacy),
}


class _Result(unittest.TestResult):
    """Collects what happened to each test by its name."""

    def __init__(self) -> None:
        super().__init__()
        self.passed: list[str] = []
        self.failed: dict[str, str] = {}

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.passed.append(_name(test))

    def addFailure(self, test: unittest.TestCase, err: object) -> None:
        self.failed[_name(test)] = _line(err)

    def addError(self, test: unittest.TestCase, err: object) -> None:
        self.failed[_name(test)] = _line(err)

    def addSubTest(self, test: unittest.TestCase, subtest: object, err: object) -> None:
        del subtest
        if err is not None:
            self.failed[_name(test)] = _line(err)


def _name(test: unittest.TestCase) -> str:
    return f"{type(test).__name__}.{test._testMethodName}"


def _line(err: object) -> str:
    kind, value = err[:2]  # type: ignore[index]
    return " ".join(f"{kind.__name__}: {value}".split())


def run(tool: str) -> dict[str, object]:
    """Run a tool's tests; every failure is matched with its reason."""
    package, prepare = TOOLS[tool]
    names, expected = prepare()
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    result, started = _Result(), time.perf_counter()
    suite.run(result)
    rows = [_row(name, said, expected) for name, said in sorted(result.failed.items())]
    return {
        "tool": package,
        "version": importlib.metadata.version(package),
        "dptally": dp.__version__,
        "passed": len([name for name in result.passed if name not in result.failed]),
        "explained": [row for row in rows if row["reason"]],
        "unexplained": [row for row in rows if not row["reason"]],
        "stale": [one.test for one in expected if not any(name.startswith(one.test) for name in result.failed)],
        "skipped": len(result.skipped),
        "seconds": round(time.perf_counter() - started, 1),
    }


def _row(name: str, said: str, expected: tuple[Expected, ...]) -> dict[str, object]:
    found = max((one for one in expected if name.startswith(one.test)), key=lambda one: len(one.test), default=None)
    reason = "" if found is None else REASONS[found.reason]
    row: dict[str, object] = {"test": name, "said": said[:300], "reason": reason}
    if found is not None and found.plan is not None:
        box = found.plan.epsilon_interval(found.delta)
        row |= {"asserted": found.asserted, "delta": found.delta, "certified": [box.lower, box.upper]}
    return row


def _lines(found: dict[str, object]) -> Iterator[str]:
    yield f"{found['tool']} {found['version']}: {found['passed']} passed in {found['seconds']} s"
    for kind in ("explained", "unexplained"):
        for row in found[kind]:  # type: ignore[attr-defined]
            ends = row.get("certified")
            said = f"; asserted {row['asserted']}, certified at {row.get('delta'):g} " if ends else ""
            number = f"{said}[{ends[0]:.6f}, {ends[1]:.6f}]" if ends else ""
            yield f"  {kind}: {row['test']}: {row['reason'] or row['said']}{number}"
    for name in found["stale"]:  # type: ignore[attr-defined]
        yield f"  listed, but it passes: {name}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", choices=sorted(TOOLS))
    parser.add_argument("--json", type=Path, help="write the figures here")
    given = parser.parse_args()
    found = run(given.tool)
    print("\n".join(_lines(found)))
    if given.tool == "opacus":
        print(prv_values())
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 1 if found["unexplained"] or found["stale"] else 0


if __name__ == "__main__":
    sys.exit(main())
