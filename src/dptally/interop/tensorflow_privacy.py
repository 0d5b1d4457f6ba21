"""The twin of tensorflow-privacy's compute_dp_sgd_privacy_statement: the same arguments, certified numbers.

tensorflow-privacy is not needed. Its own printed statement is read by ``dp.check``.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dptally import checks
from dptally.errors import DptallyError
from dptally.mechanisms import Gaussian, Mechanism, dpsgd
from dptally.numerics.shown import shown_up

__all__ = ["compute_dp_sgd_privacy_statement"]


def compute_dp_sgd_privacy_statement(
    number_of_examples: int,
    batch_size: int,
    num_epochs: float,
    noise_multiplier: float,
    delta: float,
    used_microbatching: bool = True,
    max_examples_per_user: int | None = None,
    accountant_type: object = None,
) -> str:
    """What a DP-SGD run guarantees, under Poisson sampling and in any order of the data, for an example and for a user.

    With microbatching the change of an average is twice its clipping norm: the noise counts half. ``accountant_type``
    is not needed: the answers are certified.

    >>> print(compute_dp_sgd_privacy_statement(60000, 600, 10, 1.0, 1e-5, used_microbatching=False).splitlines()[2])
      Poisson sampling:               epsilon 1.82824
    """
    del accountant_type
    epochs = Fraction(repr(checks.positive("num_epochs", num_epochs)))
    noise = checks.positive("noise_multiplier", noise_multiplier) / (2.0 if used_microbatching else 1.0)
    delta = checks.probability("delta", delta)
    sampled = dpsgd(noise, epochs=float(epochs), batch_size=batch_size, dataset_size=number_of_examples)
    ordered = math.ceil(epochs) * Gaussian(noise)
    lines = [
        f"DP-SGD: {number_of_examples} examples, batches of {batch_size}, noise multiplier {noise_multiplier:g}, "
        f"{num_epochs:g} epochs, {'with' if used_microbatching else 'without'} microbatching.",
        f"For one example added or removed, at delta = {delta:g}:",
        f"  Poisson sampling:               epsilon {shown_up(sampled.epsilon(delta))}",
        f"  each example once per epoch:    epsilon {shown_up(ordered.epsilon(delta))}",
    ]
    if max_examples_per_user is None:
        lines.append("For one user: no guarantee without a bound on the examples of a user.")
    else:
        lines += _user_lines(sampled, noise, math.ceil(epochs), delta, max_examples_per_user)
    return "\n".join([*lines, "Poisson sampling is what was accounted for; shuffled batches are not that.", ""])


def _user_lines(sampled: Mechanism, noise: float, passes: int, delta: float, most: int) -> list[str]:
    """A user with ``most`` examples: all in one batch where the order is arbitrary, a group where they are sampled."""
    number = checks.count("max_examples_per_user", most, 1)
    ordered = passes * Gaussian(noise, float(number))
    return [
        f"For one user with at most {number} examples, at delta = {delta:g}:",
        f"  Poisson sampling:               {_group(sampled, number, delta)}",
        f"  each example once per epoch:    epsilon {shown_up(ordered.epsilon(delta))}",
    ]


def _group(plan: Mechanism, number: int, delta: float) -> str:
    if number == 1:
        return f"epsilon {shown_up(plan.epsilon(delta))}"
    try:
        return f"epsilon {shown_up(plan.group(number).epsilon(delta))}"
    except DptallyError as refusal:
        return f"no answer: {refusal}"
