"""Statistical: the kernel's noise against its exact probabilities, total alpha 1e-9; power: planted faults in the C."""

from __future__ import annotations

import math
import random
import shutil
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import kernel_built
import numpy as np
import pytest

from depth import thinned
from dptally import noise
from dptally.noise import vector
from dptally.numerics import compiled
from noise.noise_reference import Hashed, Scripted, chi_square, gaussian_cdf, laplace_cdf

pytestmark = pytest.mark.statistical
ALPHA = 1e-9 / 100  # fewer than 100 p-values in this file
DRAWS = thinned(4_000_000)

F = Fraction
SCALES = [
    F(1, 10), F(1, 7), F(2, 7), F(1, 3), F(5, 9), F(13, 11), F(7, 5), F(3, 2), F(22, 7), F(10, 3), F(17, 3), F(99, 10),
    F(1000, 7), F(123456789, 1000), F(10**6 + 3), F(2**38 - 1, 2**35),
]  # fmt: skip
SIGMAS = [
    F(1, 4), F(2, 7), F(1, 3), F(5, 9), F(13, 11), F(7, 5), F(3, 2), F(22, 7), F(10, 3), F(17, 3), F(99, 10),
    F(1000, 7), F(6001), F(math.e),
]  # fmt: skip


@pytest.mark.usefixtures("in_use")
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_laplace_has_its_exact_probabilities(scale: Fraction) -> None:
    draws = noise.discrete_laplace(scale, size=DRAWS)
    assert draws.dtype == np.int64
    assert chi_square(draws, lambda x: laplace_cdf(scale, x), scale) > ALPHA


@pytest.mark.usefixtures("in_use")
@pytest.mark.parametrize("sigma", SIGMAS, ids=str)
def test_gaussian_has_its_exact_probabilities(sigma: Fraction) -> None:
    draws = noise.discrete_gaussian(sigma, size=DRAWS)
    assert chi_square(draws, lambda x: gaussian_cdf(sigma, x), sigma) > ALPHA


def test_a_parameter_two_percent_off_is_rejected(in_use: ModuleType) -> None:
    sigma = F(10, 3)
    for factor in (F(51, 50), F(49, 50)):
        for draw, cdf in ((noise.discrete_laplace, laplace_cdf), (noise.discrete_gaussian, gaussian_cdf)):
            draws = draw(sigma * factor, size=max(DRAWS, 1_000_000))
            assert chi_square(draws, lambda x, cdf=cdf: cdf(sigma, x), sigma, cells=24) < ALPHA


#: (what stands in noise.c, what stands there instead)
FAULTS = {
    "a coin cut to its first byte": ("if (drawn != digit) return drawn < digit;", "return drawn < digit;"),
    "zero with two signs": ("if (!(negative && size == 0)) return", "return"),
    "a series that begins too late": ("uint64_t k = 2;", "uint64_t k = 3;"),
    "words that are not redrawn": (">= left_over) return", ">= 0) return"),
    "a proposal that is not weighed": ("if (exp_of_sum(bytes, whole, rest, law->bottom) && ", "if ("),
}
LARGE = ("zero with two signs", "a series that begins too late", "a proposal that is not weighed")


class Twin:
    """The algorithms once more, in Fractions and by the same bytes: what the kernel must draw, byte for byte."""

    def __init__(self, pool: bytes) -> None:
        self.pool, self.at = pool, 0

    def byte(self) -> int:
        self.at += 1
        return self.pool[self.at - 1]

    def coin(self, p: Fraction) -> bool:
        """Whether a uniform number, read as digits to base 256, lies below p."""
        if p >= 1:
            return True
        while p:
            digit, p = divmod(256 * p, 1)
            drawn = self.byte()
            if drawn != digit:
                return drawn < digit
        return False

    def below(self, bound: int) -> int:
        number = -(-(bound - 1).bit_length() // 8)
        while number:
            word = int.from_bytes([self.byte() for _ in range(number)]) * bound
            if word % 256**number >= 256**number % bound:
                return word // 256**number
        return 0

    def exp(self, x: Fraction) -> bool:
        """True with probability e^-x."""
        whole, rest = divmod(x, 1)
        k = 1
        while self.coin(F(1, k)) and self.coin(rest):
            k += 1
        return k % 2 == 1 and all(self.exp_of_one() for _ in range(int(whole)))

    def exp_of_one(self) -> bool:
        k = 2
        while self.coin(F(1, k)):
            k += 1
        return k % 2 == 1

    def laplace(self, scale: Fraction) -> int:
        while True:
            low, high = self.below(scale.numerator), 0
            if not self.exp(F(low, scale.numerator)):
                continue
            while self.exp_of_one():
                high += 1
            size, negative = (low + scale.numerator * high) // scale.denominator, self.byte() & 1
            if size or not negative:
                return -size if negative else size

    def gaussian(self, variance: Fraction) -> int:
        scale = math.isqrt(variance.numerator // variance.denominator) + 1
        while True:
            drawn = self.laplace(F(scale))
            if self.exp((abs(drawn) - variance / scale) ** 2 / (2 * variance)):
                return drawn


def agrees(module: ModuleType, number: int) -> bool:
    """Whether the kernel draws what its twin draws, and uses as many bytes."""
    pool = Hashed("twin").take(200 * number)
    out = np.empty(number, dtype=np.int64)
    for scale in (F(7, 5), F(1000, 7), F(203), F(2**38 - 5, 7), F(1, 3)):
        twin = Twin(pool)
        expected = [twin.laplace(scale) for _ in range(number)]
        if module.laplace(scale.numerator, scale.denominator, pool, out) != (number, twin.at):
            return False
        if out.tolist() != expected:
            return False
    for sigma in (F(7, 5), F(1000, 7), F(203), F(6001), F(1, 4), F(2001, 1000), F(12345, 2)):
        variance, twin = sigma**2, Twin(pool)
        expected = [twin.gaussian(variance) for _ in range(number)]
        constants = vector._gaussian_constants(variance.numerator, variance.denominator)
        assert vector._kernel_takes(variance.numerator, *constants)
        if module.gaussian(variance.numerator, *constants, pool, out) != (number, twin.at):
            return False
        if out.tolist() != expected:
            return False
    return True


def test_the_kernel_draws_what_its_twin_draws(module: ModuleType) -> None:
    assert agrees(module, thinned(20_000))


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(tmp_path: Path, fault: str) -> None:
    right, wrong = FAULTS[fault]
    source = kernel_built.BUILD.parent
    shutil.copytree(source, tmp_path / "kernel")
    (tmp_path / "src").symlink_to(source.parent / "src")
    text = (tmp_path / "kernel" / "noise.c").read_text()
    assert right in text
    (tmp_path / "kernel" / "noise.c").write_text(text.replace(right, wrong))
    module = kernel_built.load(kernel_built.build_to(tmp_path, "-O0", script=tmp_path / "kernel" / "build.py"))
    assert not agrees(module, 400)
    if fault not in LARGE:  # a bias of 1/256 or less
        return
    with compiled.switched(module):
        one = noise.discrete_laplace(F(7, 5), size=300_000), noise.discrete_gaussian(F(7, 5), size=300_000)
    values = (chi_square(x, lambda at, f=f: f(F(7, 5), at), F(7, 5)) for x, f in zip(one, CDFS, strict=True))
    assert min(values) < ALPHA


CDFS = (laplace_cdf, gaussian_cdf)


def test_the_bytes_decide_the_draws_however_they_are_cut(module: ModuleType) -> None:
    script = Hashed("cut").take(1 << 16)
    whole = np.empty(1000, dtype=np.int64)
    made, used = module.gaussian(100, 11, 11, 2 * 100 * 121, script, whole)
    assert made == 1000
    assert used < len(script)
    draw = random.Random(1)
    pieces, pool, rest = np.empty(1000, dtype=np.int64), b"", script
    filled = 0
    while filled < 1000:
        cut = draw.randrange(1, 40)
        pool, rest = pool + rest[:cut], rest[cut:]
        made, used = module.gaussian(100, 11, 11, 2 * 100 * 121, pool, pieces[filled:])
        filled, pool = filled + made, pool[used:]
    np.testing.assert_array_equal(pieces, whole)


def test_each_byte_is_used_once_and_only_what_was_taken(in_use: ModuleType) -> None:
    source = Scripted(Hashed("once").take(1 << 14))
    assert len(noise.discrete_laplace(F(10, 3), size=200, _source=source)) == 200  # the script ends in an error
    twice = [noise.discrete_laplace(F(10, 3), 200, _source=Scripted(Hashed("once").take(1 << 14))) for _ in range(2)]
    np.testing.assert_array_equal(*twice)


def test_widths_are_checked(in_use: ModuleType) -> None:
    out = np.empty(4, dtype=np.int64)
    for wrong in ((2**38 + 1, 1), (0, 1), (1, 0), (-1, 1), (2**63, 1)):
        with pytest.raises((ValueError, OverflowError)):
            in_use.laplace(*wrong, bytes(64), out)
    for wrong in ((100, 0, 11, 5), (100, 2**39, 1, 5), (100, 11, 2**40, 5), (2**64, 1, 1, 1), (1, 1, 1, 0)):
        with pytest.raises((ValueError, OverflowError)):
            in_use.gaussian(*wrong, bytes(64), out)
    for buffers in ((None, out), (bytes(8), None), (bytes(8), bytes(32)), (bytes(8), out[::2]), (out, out), ("x", out)):
        with pytest.raises((TypeError, ValueError, BufferError)):
            in_use.laplace(10, 3, *buffers)
    assert in_use.laplace(10, 3, b"", out) == (0, 0)
    assert in_use.laplace(10, 3, bytes(64), out[:0]) == (0, 0)
    # what the kernel does not take goes to numpy and to Python integers
    for sigma in (F(math.pi), F(10**12), F(10**25 + 7, 10**24 + 1)):
        assert len(noise.discrete_gaussian(sigma, size=20)) == 20
        assert len(noise.discrete_laplace(sigma, size=20)) == 20
    assert vector.laplace(Hashed("wide"), (1 << 38) + 1, 1, 20).dtype == np.int64


def test_a_run_of_heads_without_end_is_an_error(module: ModuleType) -> None:
    """Bytes of zeros make every coin of bias 1/k come up heads: no honest source does that."""
    with pytest.raises(OverflowError):
        module.laplace(1, 1, _heads(), np.empty(1, dtype=np.int64))


def _heads() -> bytes:
    """Coins of exp(-1) that all succeed: heads at k = 2, tails at k = 3, so often that the run is too long."""
    return bytes([0, 255]) * ((1 << 23) + 2)
