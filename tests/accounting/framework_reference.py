"""Independent references for the frameworks: golden values, and exact sums at 50 digits with mpmath."""

import math

import mpmath as mp

import golden
from golden import number as number


def rows(prefix):
    """(id, inputs, value) of every golden row whose id starts with ``prefix``, the 'printed' left out."""
    found = [name for name in golden.ids(prefix) if "printed" not in name]
    assert found, prefix
    return [(name, golden.inputs(name), golden.value(name)) for name in found]


def close(value, reference, relative=1e-11):
    return abs(value - reference) <= relative * abs(reference)


def above(value, reference, relative=1e-11):
    """On the safe side of the reference (up to its own 17 digits) and within ``relative`` of it."""
    return reference * (1 - 1e-16) <= value <= reference * (1 + relative)


def exact_optimal_delta(epsilon0, delta0, count, epsilon):
    """Kairouz, Oh, Viswanath 2015, Thm. 3.3, summed term by term; 400 digits outlast its cancellations."""
    with mp.workdps(400):
        odds, d, target = mp.exp(mp.mpf(epsilon0)), mp.mpf(delta0), mp.exp(mp.mpf(epsilon))
        high, low, total = odds**count, target, mp.mpf(0)
        for j in range(count + 1):
            total += math.comb(count, j) * max(high - low, 0)
            high, low = high / odds, low * odds
        return 1 - (1 - d) ** count * (1 - total / (1 + odds) ** count)


def exact_gaussian_delta(mu, epsilon):
    with mp.workdps(50):
        mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
        return mp.ncdf(-epsilon / mu + mu / 2) - mp.exp(epsilon) * mp.ncdf(-epsilon / mu - mu / 2)
