"""How long selection, tuning and the shuffle model take: ``python benchmarks/bench_selection.py``.

Process time, the best of three, each without what an earlier run has kept. With ``--peers``, in an environment that has
dp-accounting, autodp or opendp: what they answer to the same questions, an epsilon at the same delta by whatever they
have for it.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

Ask = Callable[[], float]


def ours() -> dict[str, Ask]:
    import dptally as dp

    run = dp.dpsgd(2.0, 0.01, 1000)
    local, pure = dp.RandomizedResponse(0.6, 3), dp.PureDP(1.0)
    return {
        "100 x ExponentialMechanism(0.1), 1e-6": lambda: (100 * dp.ExponentialMechanism(0.1)).epsilon(1e-6),
        "9 x 0.2 and 4 x 0.5, the worst order, 1.7e-5": lambda: (
            9 * dp.ExponentialMechanism(0.2) + 4 * dp.ExponentialMechanism(0.5)
        ).epsilon(1.7e-5),
        "1e6 x ExponentialMechanism(0.001), 1e-6": lambda: (10**6 * dp.ExponentialMechanism(0.001)).epsilon(1e-6),
        "50 x PermuteAndFlip(0.1), 1e-6": lambda: (50 * dp.PermuteAndFlip(0.1)).epsilon(1e-6),
        "100 x ExponentialMechanism(0.1) + Gaussian(5), 1e-6": lambda: (
            100 * dp.ExponentialMechanism(0.1) + dp.Gaussian(5.0)
        ).epsilon(1e-6),
        "DP-SGD(2, 0.01, 1000), 1e-5": lambda: run.epsilon(1e-5),
        "its best of 10, shape 0": lambda: run.best_of(mean=10).epsilon(1e-5),
        "its best of 10, geometric": lambda: run.best_of(mean=10, law="geometric").epsilon(1e-5),
        "its best of 10, Poisson": lambda: run.best_of(mean=10, law="poisson").epsilon(1e-5),
        "shuffled 3-ary response, 1e6 users, 1e-6": lambda: dp.ShuffleModel(local, 10**6).epsilon(1e-6),
        "shuffled clones of 1-LDP, 1e6 users, 1e-6": lambda: dp.ShuffleModel(pure, 10**6).epsilon(1e-6),
        "shuffled Laplace noise, 1e6 users, 1e-6": lambda: dp.ShuffleModel(dp.Laplace(1.0), 10**6).epsilon(1e-6),
    }


def peers() -> dict[str, Ask]:
    """What others have for these questions, where they can be imported."""
    return {name: ask for rows in (_dp_accounting, _opendp, _autodp) for name, ask in rows().items()}


def _dp_accounting() -> dict[str, Ask]:
    try:
        import dp_accounting
        from dp_accounting import pld, rdp
    except ImportError:
        return {}
    step = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(2.0))
    run = dp_accounting.SelfComposedDpEvent(step, 1000)
    laplace = dp_accounting.SelfComposedDpEvent(dp_accounting.LaplaceDpEvent(10.0), 50)

    def best(shape: float) -> float:
        event = dp_accounting.dp_event.RepeatAndSelectDpEvent(run, 10, shape)
        return float(rdp.RdpAccountant().compose(event).get_epsilon(1e-5))

    def pure() -> float:
        one = pld.privacy_loss_distribution.from_privacy_parameters(
            pld.privacy_loss_distribution.common.DifferentialPrivacyParameters(0.1, 0.0)
        )
        return float(one.self_compose(100).get_epsilon_for_delta(1e-6))

    return {
        "dp-accounting, 100 x 0.1-DP, 1e-6 (it has no bounded range)": pure,
        "dp-accounting, 50 x Laplace pair of ratio 0.1, 1e-6": lambda: float(
            pld.PLDAccountant().compose(laplace).get_epsilon(1e-6)
        ),
        "dp-accounting, DP-SGD by PLD, 1e-5": lambda: float(pld.PLDAccountant().compose(run).get_epsilon(1e-5)),
        "dp-accounting, best of 10 by RDP, shape 0": lambda: best(0.0),
        "dp-accounting, best of 10 by RDP, geometric": lambda: best(1.0),
    }


def _opendp() -> dict[str, Ask]:
    try:
        import opendp.prelude as odp
    except ImportError:
        return {}
    odp.enable_features("contrib", "honest-but-curious")

    def hundred() -> float:
        """zCDP of report noisy max with Gumbel noise, a hundred times, turned into epsilon."""
        domain = odp.vector_domain(odp.atom_domain(T=float, nan=False), size=3)
        maker = odp.m.make_noisy_max(domain, odp.linf_distance(T=float), odp.zero_concentrated_divergence(), scale=20.0)
        rho = 100 * maker.map(d_in=1.0)
        return float(rho + 2 * math.sqrt(rho * math.log(1e6)))

    return {"opendp, 100 x noisy max (Gumbel, zCDP), 1e-6": hundred}


def _autodp() -> dict[str, Ask]:
    try:
        from autodp import mechanism_zoo, transformer_zoo
    except ImportError:
        return {}

    def hundred() -> float:
        one = mechanism_zoo.PureDP_Mechanism(eps=0.1, name="one")
        return float(transformer_zoo.Composition()([one], [100]).get_approxDP(1e-6))

    return {"autodp, 100 x 0.1-DP, 1e-6 (it has no bounded range)": hundred}


def _forget() -> None:
    """Every cache of the package, so that nothing of an earlier run is used."""
    for name, module in list(sys.modules.items()):
        if name.startswith("dptally"):
            for kept in vars(module).values():
                if hasattr(kept, "cache_clear"):
                    kept.cache_clear()


def main() -> None:
    rows = peers() if "--peers" in sys.argv else ours()
    for _, ask in list(rows.items())[:1]:
        ask()  # what loads once
    for name, ask in rows.items():
        best, answer = math.inf, math.nan
        for _ in range(3):
            _forget()
            start = time.process_time()
            answer = ask()
            best = min(best, time.process_time() - start)
        print(f"{name:62} {1e3 * best:9.1f} ms   {answer:.7g}")


if __name__ == "__main__":
    main()
