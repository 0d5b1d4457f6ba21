"""Discrete Gaussian, any number of times: the loss is linear in the noise, so the sum has its own lattice."""

from __future__ import annotations

from flint import arb, arb_poly

from .balls import Number, ball, refine


def discrete_gaussian_delta(sigma: Number, shift: int, count: int, epsilon: Number) -> arb:
    """delta(eps) of ``count`` discrete Gaussians of parameter sigma, sensitivity ``shift``.

    A draw k under P has loss (shift^2 - 2 k shift) / (2 sigma^2). Weights e^{-k^2 / (2 sigma^2)} beyond the
    reach r add up to at most 2 e^{-r^2 / (2 sigma^2)} / (1 - e^{-r / sigma^2}); they enter as a ball.
    """

    def compute() -> arb:
        s, e = ball(sigma), ball(epsilon)
        rate = 1 / (2 * s * s)
        # far enough for sums beyond eps with much to spare
        reach = int(float(s) * 40 + 3 * float(e) * float(s) ** 2 / shift) + 10
        weights = [(-rate * k * k).exp() for k in range(-reach, reach + 1)]
        rest = 2 * (-rate * (reach + 1) ** 2).exp() / (1 - (-2 * rate * (reach + 1)).exp())
        total = sum(weights, arb(0)) + rest.union(arb(0))
        power = arb_poly([w / total for w in weights]) ** count
        value = arb(0)
        for j in range(2 * reach * count + 1):
            loss = (count * shift * shift - 2 * (j - reach * count) * shift) * rate
            if not loss > e:
                if loss <= e:
                    break
                continue  # on the edge: no gain either way
            value += power[j] * -(e - loss).expm1()
        # outcomes with a draw beyond the reach count at most with their mass
        return value + (count * rest / total).union(arb(0))

    return refine(compute, bits=400)
