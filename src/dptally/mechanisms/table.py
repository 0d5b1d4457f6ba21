"""Written by ``make door`` from the declarations in the files of this package: do not edit."""

from typing import NamedTuple


class Row(NamedTuple):
    """What is known of a mechanism before its file is loaded."""

    module: str
    json: str | None
    plan: str | None
    aliases: tuple[str, ...]
    usage: str  #: how it is written in plan texts


#: by public name
TABLE: dict[str, Row] = {
    "Gaussian": Row("dptally.mechanisms.gaussian", "gaussian", "gaussian", (), "gaussian(sigma, sensitivity=1.0)"),
    "DiscreteGaussian": Row(
        "dptally.mechanisms.discrete_gaussian",
        "discrete_gaussian",
        "discrete_gaussian",
        (),
        "discrete_gaussian(sigma, sensitivity=1)",
    ),
    "Laplace": Row("dptally.mechanisms.laplace", "laplace", "laplace", (), "laplace(scale, sensitivity=1.0)"),
    "DiscreteLaplace": Row(
        "dptally.mechanisms.discrete_laplace",
        "discrete_laplace",
        "discrete_laplace",
        (),
        "discrete_laplace(scale, sensitivity=1)",
    ),
    "RandomizedResponse": Row(
        "dptally.mechanisms.randomized_response",
        "randomized_response",
        "randomized_response",
        ("rr",),
        "randomized_response(p, categories=2)",
    ),
    "AlphaDP": Row("dptally.mechanisms.alpha_dp", "alpha_dp", "alpha", (), "alpha(alpha, epsilon)"),
    "ApproxDP": Row("dptally.mechanisms.approx_dp", "approx_dp", "approx", (), "approx(epsilon, delta)"),
    "GaussianDP": Row("dptally.mechanisms.gaussian_dp", "gaussian_dp", "gdp", (), "gdp(mu)"),
    "Profile": Row("dptally.mechanisms.profile", "profile", "profile", (), "profile(points)"),
    "PureDP": Row("dptally.mechanisms.pure_dp", "pure_dp", "pure", (), "pure(epsilon)"),
    "RenyiDP": Row("dptally.mechanisms.renyi_dp", "renyi_dp", "renyi", (), "renyi(orders, epsilons)"),
    "ZCDP": Row("dptally.mechanisms.zcdp", "zcdp", "zcdp", (), "zcdp(rho)"),
    "dpsgd": Row(
        "dptally.mechanisms.training",
        None,
        "dpsgd",
        (),
        "dpsgd(noise_multiplier, sample_rate, steps, adjacency=add_remove, epochs, batch_size, dataset_size)",
    ),
    "PoissonSampled": Row(
        "dptally.mechanisms.poisson_sampled",
        "poisson_sampled",
        "poisson",
        (),
        "poisson(mechanism, rate, adjacency=add_remove)",
    ),
    "Composed": Row("dptally.mechanisms.composed", "composed", None, (), ""),
}
