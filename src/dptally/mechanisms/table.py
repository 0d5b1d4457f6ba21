"""Written by ``make door`` from the declarations in the files of this package: do not edit."""
# ruff: noqa: E501

# ruff: noqa: E501

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
    "MixtureOfGaussians": Row(
        "dptally.mechanisms.mixture_of_gaussians",
        "mixture_of_gaussians",
        "mixture_of_gaussians",
        ("mog",),
        "mixture_of_gaussians(sigma, sensitivities, probabilities)",
    ),
    "Laplace": Row("dptally.mechanisms.laplace", "laplace", "laplace", (), "laplace(scale, sensitivity=1.0)"),
    "DiscreteLaplace": Row(
        "dptally.mechanisms.discrete_laplace",
        "discrete_laplace",
        "discrete_laplace",
        (),
        "discrete_laplace(scale, sensitivity=1)",
    ),
    "SpecialResponse": Row(
        "dptally.mechanisms.special_response",
        "special_response",
        "special_response",
        (),
        "special_response(lie, buckets)",
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
    "ShiftedZCDP": Row("dptally.mechanisms.shifted_zcdp", "shifted_zcdp", "shifted_zcdp", (), "shifted_zcdp(rho, xi)"),
    "RandomAllocation": Row(
        "dptally.mechanisms.sampling.random_allocation",
        "random_allocation",
        "random_allocation",
        ("allocation",),
        "random_allocation(steps, times=1)",
    ),
    "ShuffledBatches": Row(
        "dptally.mechanisms.sampling.shuffled_batches",
        "shuffled_batches",
        "shuffled_batches",
        ("shuffled",),
        "shuffled_batches(steps_per_epoch)",
    ),
    "BallsInBins": Row(
        "dptally.mechanisms.sampling.balls_in_bins",
        "balls_in_bins",
        "balls_in_bins",
        ("bins",),
        "balls_in_bins(steps_per_epoch)",
    ),
    "Cyclic": Row("dptally.mechanisms.sampling.cyclic", "cyclic", "cyclic", (), "cyclic(steps_per_epoch)"),
    "dpsgd": Row(
        "dptally.mechanisms.training_runs",
        None,
        "dpsgd",
        (),
        "dpsgd(noise_multiplier, sample_rate, steps, adjacency=add_remove, epochs, batch_size, dataset_size)",
    ),
    "Poisson": Row("dptally.mechanisms.sampling.poisson", "poisson", None, (), ""),
    "PoissonSampled": Row(
        "dptally.mechanisms.poisson_sampled",
        "poisson_sampled",
        "poisson",
        (),
        "poisson(mechanism, rate, adjacency=add_remove)",
    ),
    "TruncatedPoisson": Row(
        "dptally.mechanisms.sampling.truncated_poisson",
        "truncated_poisson",
        "truncated_poisson",
        (),
        "truncated_poisson(rate, dataset_size, cap)",
    ),
    "Sampled": Row(
        "dptally.mechanisms.sampling.sampled",
        "sampled",
        "sampled",
        (),
        "sampled(mechanism, sampler, steps, epochs, adjacency=add_remove)",
    ),
    "FixedSize": Row(
        "dptally.mechanisms.sampling.fixed_size", "fixed_size", "fixed_size", (), "fixed_size(batch_size, dataset_size)"
    ),
    "training": Row(
        "dptally.mechanisms.training_runs",
        None,
        "training",
        (),
        "training(noise_multiplier, sampler, steps, epochs, dataset_size, batch_size, adjacency=add_remove, per_user=1)",
    ),
    "ExponentialMechanism": Row(
        "dptally.mechanisms.selection.exponential_mechanism",
        "exponential_mechanism",
        "exponential",
        ("exponential_mechanism", "em"),
        "exponential(epsilon)",
    ),
    "PermuteAndFlip": Row(
        "dptally.mechanisms.selection.permute_and_flip",
        "permute_and_flip",
        "permute_and_flip",
        (),
        "permute_and_flip(epsilon)",
    ),
    "TopK": Row("dptally.mechanisms.selection.top_k", "top_k", "top_k", (), "top_k(epsilon, k)"),
    "NoisyMax": Row(
        "dptally.mechanisms.selection.noisy_max",
        "noisy_max",
        "noisy_max",
        (),
        "noisy_max(scale, sensitivity=1.0, noise=gumbel, monotone=false)",
    ),
    "BestOf": Row("dptally.mechanisms.best_of", "best_of", "best_of", (), "best_of(plan, mean, law=tnb, shape=0.0)"),
    "BoundedRange": Row(
        "dptally.mechanisms.selection.bounded_range", "bounded_range", "bounded_range", (), "bounded_range(epsilon)"
    ),
    "AboveThreshold": Row(
        "dptally.mechanisms.selection.above_threshold",
        "above_threshold",
        "above_threshold",
        ("sparse_vector", "svt"),
        "above_threshold(epsilon1, epsilon2, hits=1, noise=laplace)",
    ),
    "Banded": Row("dptally.mechanisms.matrices.banded_matrix", "banded", "banded", (), "banded(bands)"),
    "FixedBins": Row("dptally.mechanisms.matrices.participation", "fixed_bins", "fixed_bins", (), "fixed_bins(bins)"),
    "DenseMatrix": Row("dptally.mechanisms.matrices.dense_matrix", "dense_matrix", "dense", (), "dense(rows)"),
    "BandedInverse": Row(
        "dptally.mechanisms.matrices.banded_inverse",
        "banded_inverse",
        "banded_inverse",
        (),
        "banded_inverse(coefficients, steps)",
    ),
    "MatrixMechanism": Row(
        "dptally.mechanisms.matrices.matrix_mechanism",
        "matrix_mechanism",
        "matrix",
        ("matrix_mechanism",),
        "matrix(strategy, sigma, participation)",
    ),
    "PoissonParts": Row(
        "dptally.mechanisms.matrices.participation", "poisson_parts", "poisson_parts", (), "poisson_parts(rate, parts)"
    ),
    "Toeplitz": Row(
        "dptally.mechanisms.matrices.toeplitz_matrix", "toeplitz", "toeplitz", (), "toeplitz(coefficients, steps)"
    ),
    "BufferedToeplitz": Row(
        "dptally.mechanisms.matrices.buffered_toeplitz",
        "buffered_toeplitz",
        "buffered_toeplitz",
        ("blt",),
        "buffered_toeplitz(decays, scales, steps)",
    ),
    "BinaryTree": Row(
        "dptally.mechanisms.matrices.binary_tree", "binary_tree", "binary_tree", (), "binary_tree(steps)"
    ),
    "UnaryEncoding": Row(
        "dptally.mechanisms.unary_encoding",
        "unary_encoding",
        "unary_encoding",
        ("rappor",),
        "unary_encoding(p, q, categories)",
    ),
    "ShuffleModel": Row(
        "dptally.mechanisms.shuffle_model",
        "shuffle_model",
        "shuffle_model",
        ("shuffle",),
        "shuffle_model(local, users)",
    ),
    "Composed": Row("dptally.mechanisms.composed", "composed", None, (), ""),
    "Menu": Row("dptally.mechanisms.menu", "menu", "menu", (), "menu(items, uses)"),
}
