"""Contract: randomness only from the system, never shared or copied; bad input is refused first."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
import subprocess
import sys
import threading
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from noise_reference import Forbidden, Hashed, Scripted

from dptally import noise
from dptally.errors import InvalidArgument, InvalidType
from dptally.noise import grid, parameters, scalar, vector
from dptally.noise.source import BLOCK, SYSTEM, SystemBytes, _Generation

F = Fraction


def test_the_source_hands_out_each_byte_once():
    source = SystemBytes()
    pieces = [source.take(n) for n in (8, 8, BLOCK, 8, BLOCK + 1, BLOCK - 8, 8)]
    assert [len(p) for p in pieces] == [8, 8, BLOCK, 8, BLOCK + 1, BLOCK - 8, 8]
    assert len({p[:8] for p in pieces}) == len(pieces)


def test_the_source_is_never_copied():
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="never copied"):
            attempt(SYSTEM)


def test_the_buffer_is_dropped_after_a_fork():
    """In a process of its own, for a fork beside other threads is not a thing to do in a test run."""
    program = """
import os
from dptally.noise.source import SYSTEM
SYSTEM.take(1)  # so that there is a buffer to inherit
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.write(write, SYSTEM.take(16))
    os._exit(0)
os.waitpid(child, 0)
print(SYSTEM.take(16).hex(), os.read(read, 16).hex())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    mine, theirs = done.stdout.split()
    assert len(mine) == len(theirs) == 32
    assert mine != theirs


RAW_FORK = """
import ctypes, os, sys
from dptally import noise
from dptally.noise import source
from dptally.noise.source import SYSTEM
if sys.argv[1] == "no page":
    source._GENERATION.page = None
if sys.argv[1] == "same id":  # as in a new namespace, where every first process is number 1
    os.getpid = lambda: 1
if sys.argv[1] == "between":
    noise.discrete_laplace(1000)
else:
    SYSTEM.take(1)  # within a draw: there is a block to inherit
libc = ctypes.CDLL(None)
libc.fork.restype = ctypes.c_int
read, write = os.pipe()
child = libc.fork()  # below Python: no hook of Python's runs
many = lambda: bytes(str([noise.discrete_laplace(1000) for _ in range(20)]), "ascii")
drawn = many() if sys.argv[1] == "between" else SYSTEM.take(32)
if child == 0:
    os.write(write, drawn)
    os._exit(0)
os.waitpid(child, 0)
print(os.read(read, 4096).hex(), drawn.hex())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks below Python by way of the C library")
@pytest.mark.parametrize("case", ["page", "no page", "same id", "between"])
def test_a_fork_below_python_draws_other_noise(case):
    program = [sys.executable, "-c", RAW_FORK, case]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    theirs, mine = done.stdout.split()
    assert len(mine) >= 64
    assert mine != theirs


def test_nothing_is_left_between_draws():
    """What no process holds, no checkpoint or snapshot of it can draw again."""
    for draw in (
        lambda: noise.discrete_laplace(3),
        lambda: noise.discrete_laplace(3, size=5),
        lambda: noise.discrete_gaussian(3),
        lambda: noise.discrete_gaussian(3, size=100),
        lambda: noise.uniform_below(6),
        lambda: noise.uniform_below(6, size=3),
        lambda: noise.bernoulli(F(1, 3)),
        lambda: noise.bernoulli(F(1, 3), size=3),
        lambda: noise.bernoulli_exp(1),
        lambda: noise.bernoulli_exp(1, size=3),
        lambda: noise.randomized_response(np.array([0, 1]), 0.75),
        lambda: noise.grid_laplace(0.5, 1, 1),
        lambda: noise.grid_gaussian([0.5, 1.0], 1, 1),
    ):
        draw()
        assert (SYSTEM._block, SYSTEM._used) == (b"", 0)


def test_a_block_belongs_to_one_process(monkeypatch):
    source = SystemBytes()
    first = source.take(8)
    block = source._block
    assert len(block) == BLOCK <= 1024, "small: what is lost or found with it is little"
    assert block.startswith(first)
    monkeypatch.setattr("os.getpid", lambda: -1)
    source.take(8)
    assert source._block != block
    source.drop()


def test_a_wiped_page_is_noticed_once(monkeypatch):
    made = _Generation()
    assert not made.wiped()
    if made.page is not None:
        made.page[0] = 0  # what the kernel does in a child
        assert made.wiped()
        assert made.forks == 1
        assert not made.wiped()
    monkeypatch.setattr(sys, "platform", "other")
    assert _Generation().page is None
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("dptally.noise.source._WIPE_ON_FORK", -1)  # an older kernel
    assert _Generation().page is None


def test_a_dropped_buffer_is_gone():
    source = SystemBytes()
    source.take(8)
    source.drop()
    assert (source._block, source._used) == (b"", 0)


def test_threads_do_not_share_a_buffer():
    SYSTEM.take(1)
    before = (SYSTEM._block, SYSTEM._used)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(SYSTEM.take(16)))
    thread.start()
    thread.join()
    assert len(seen[0]) == 16
    assert (SYSTEM._block, SYSTEM._used) == before


def test_no_sampler_takes_a_seed():
    for name in ("uniform_below", "bernoulli", "bernoulli_exp", "discrete_laplace", "discrete_gaussian",
                 "randomized_response", "grid_laplace", "grid_gaussian"):  # fmt: skip
        assert not {"seed", "rng", "random_state"} & set(inspect.signature(getattr(noise, name)).parameters)


def test_no_float_decides_an_outcome():
    for module in (scalar, vector):
        source = inspect.getsource(module)
        for word in ("float", "np.random", "import random", "math.exp", "np.exp", "log("):
            assert word not in source.replace("No float appears", ""), (module.__name__, word)


BAD_SCALES = [0, -1, F(-1, 3), math.nan, math.inf, True, "1", None, -0.0, np.float64("nan"), Decimal("NaN")]


@pytest.mark.parametrize("scale", BAD_SCALES, ids=repr)
@pytest.mark.parametrize("draw", [noise.discrete_laplace, noise.discrete_gaussian])
def test_bad_scales_are_refused_before_any_randomness(draw, scale):
    with pytest.raises(InvalidArgument, match="must be"):
        draw(scale, size=10, _source=Forbidden())


@pytest.mark.parametrize("size", [-1, 2.0, True, "3"])
def test_bad_sizes_are_refused(size):
    for draw in (noise.discrete_laplace, noise.discrete_gaussian, noise.bernoulli_exp, noise.uniform_below):
        with pytest.raises(InvalidArgument, match="size"):
            draw(1, size=size, _source=Forbidden())


@pytest.mark.parametrize("p", [-0.1, 1.5, math.nan, True, "0.5"])
def test_bad_probabilities_are_refused(p):
    with pytest.raises(InvalidArgument, match="p must be"):
        noise.bernoulli(p, _source=Forbidden())
    with pytest.raises(InvalidArgument, match="p must be"):
        noise.randomized_response(np.array([0]), p, 2, _source=Forbidden())


def test_other_bad_input_is_refused():
    with pytest.raises(InvalidArgument, match="bound"):
        noise.uniform_below(0, _source=Forbidden())
    with pytest.raises(InvalidArgument, match="x must be at least 0"):
        noise.bernoulli_exp(-1, _source=Forbidden())
    for values in (np.array([0.5]), np.array([[0, 1]]), np.array(["a"])):
        with pytest.raises(InvalidArgument, match="vector of integers"):
            noise.randomized_response(values, 0.5, 2, _source=Forbidden())
    with pytest.raises(InvalidArgument, match="a code outside"):
        noise.randomized_response(np.array([0, 7]), 0.5, 3, _source=Forbidden())
    with pytest.raises(InvalidArgument, match="categories"):
        noise.randomized_response(np.array([0]), 0.5, 1, _source=Forbidden())
    for step in (0.3, 0, -1, F(1, 3), F(2) ** 2000):
        with pytest.raises(InvalidArgument, match="grid"):
            noise.grid_laplace(1.0, 1, step, _source=Forbidden())
    for value in (math.nan, math.inf, np.array([1.0, math.nan])):
        with pytest.raises(InvalidArgument, match="finite"):
            noise.grid_gaussian(value, 1, 1, _source=Forbidden())
    with pytest.raises(InvalidType, match="real numbers"):
        noise.grid_laplace("one", 1, 1, _source=Forbidden())


def test_numbers_of_every_kind_are_taken_at_their_exact_value():
    assert parameters.rational("x", 0.1) == F(3602879701896397, 36028797018963968)
    assert parameters.rational("x", Decimal("0.1")) == F(1, 10)
    assert parameters.rational("x", np.float32(0.5)) == F(1, 2)
    assert parameters.rational("x", np.int64(3)) == 3


def test_what_no_double_holds_has_no_account():
    assert parameters.double("scale", F(5, 2)) == 2.5
    for value in (F(10, 3), F(2**60 + 1), F(10) ** 400):
        with pytest.raises(InvalidArgument, match="exactly a double"):
            parameters.double("scale", value)


def test_an_injected_source_makes_draws_repeatable():
    first, second = (noise.discrete_gaussian(F(7, 5), 5000, _source=Hashed("a")) for _ in range(2))
    assert (first == second).all()
    assert not (first == noise.discrete_gaussian(F(7, 5), 5000, _source=Hashed("b"))).all()


def test_a_run_too_long_for_64_bits_is_finished_in_python_integers(monkeypatch):
    """A geometric part of 2^20 at a 54-bit scale: no honest source gets there, so the run is set by hand."""
    monkeypatch.setattr(vector, "_runs_of_exp_of_one", lambda source, count: np.full(count, 1 << 20))
    draws = vector.laplace(SYSTEM, 1 << 54, 1, 20)
    assert draws.dtype == object
    assert all((1 << 74) <= abs(x) < (1 << 74) + (1 << 54) for x in draws)
    narrowed = vector.laplace(SYSTEM, 1 << 54, 1 << 40, 20)
    assert narrowed.dtype == np.int64
    assert all((1 << 34) <= abs(int(x)) < (1 << 34) + (1 << 14) for x in narrowed)


def test_a_gaussian_proposal_beyond_the_width_is_decided_in_python_integers(monkeypatch):
    far = 1 << 40
    monkeypatch.setattr(vector, "laplace", lambda source, n, d, count: np.array([far, 0, 1, -1] * 50))
    draws = vector.gaussian(SYSTEM, 49, 25, 30)
    assert set(draws.tolist()) <= {0, 1, -1}, "exp(-2^79) never happens"


def test_the_scalar_uniform_redraws_what_is_not_below_the_bound():
    assert scalar.below(Scripted(bytes([0b11100000, 0b01000000])), 6) == 2  # 7 is redrawn
    assert scalar.below(Scripted(b""), 1) == 0
    assert noise.uniform_below(6, _source=Scripted(bytes([0b00100000]))) == 1


def test_the_vector_uniform_redraws_what_is_left_over():
    # 2^16 mod 6 = 4: words 0, 10923, ... have a low half below 4 and are redrawn
    script = np.array([0, 65535, 32768 + 5, 6], dtype=np.uint16)
    assert vector.below(Scripted(script.tobytes()), 6, 3).tolist() == [5, 3, 0]


@given(st.floats(-1e300, 1e300), st.integers(-40, 40))
def test_rounding_to_the_grid_is_exact(x, exponent):
    exact = math.floor(F(x) / F(2) ** exponent + F(1, 2))
    assert int(grid.to_grid(x, exponent)) == exact


@given(st.floats(-1e6, 1e6), st.integers(0, 50), st.floats(0, 1), st.integers(-12, 3))
def test_rounding_moves_neighbours_by_no_more_than_the_grid_sensitivity(x, k, part, exponent):
    """|x - y| <= s in exact arithmetic implies a move of at most ceil(s / grid) steps, ties included."""
    step = F(2) ** exponent
    y = float(F(x) + k * step + F(part) * step)
    distance = abs(F(x) - F(y))
    if distance:
        moved = abs(int(grid.to_grid(x, exponent)) - int(grid.to_grid(y, exponent)))
        assert moved <= noise.grid_sensitivity(distance, step)


def test_integers_are_rounded_to_coarse_grids_and_wide_ones_stay_exact():
    assert grid.to_grid(np.array([1, 2, 3, 7]), 2).tolist() == [0, 1, 1, 2]
    assert grid.to_grid(np.array([2**64 - 1], dtype=np.uint64), 0).tolist() == [2**64 - 1]
    assert grid.to_grid(np.array([5, 6]), 0).tolist() == [5, 6]
    assert grid.to_grid(1e300, -40).item() == int(1e300) << 40
    assert noise.grid_laplace(1e300, 1, F(1, 2**40)) == 1e300
    assert grid.from_grid(-(2**1100), 0) == -math.inf


@pytest.mark.parametrize("draw", [noise.grid_laplace, noise.grid_gaussian])
def test_values_at_the_end_of_64_bits_do_not_wrap(draw):
    for end, sign in ((2**63 - 1, 1), (-(2**63), -1), (2**63 - 10, 1)):
        for values in ([end] * 32, np.full(32, end)):
            assert (sign * draw(values, 2, 1) > 9e18).all()
    assert (draw(np.full(32, 2**64 - 1, dtype=np.uint64), 2, 1) > 1.8e19).all()
    assert draw([2**70, 1], 2, 1)[0] == pytest.approx(2.0**70)
    assert draw(2**70, 2, F(1, 4)) == pytest.approx(2.0**70)
    assert draw([10**400, -(10**400)], 2, 1).tolist() == [math.inf, -math.inf]


def test_integers_beside_floats_are_not_rounded():
    assert grid.to_grid([2**53 + 1, 0.5], 0).tolist() == [2**53 + 1, 1]
    assert grid.to_grid([2**63 + 1, -1], 0).tolist() == [2**63 + 1, -1]
    assert grid.to_grid([np.int64(3), 2**70, F(1, 2)], 0).tolist() == [3, 2**70, 1]
    for bad in ([2**70, "x"], [2**70, True], [2**70, None], [2**70, 1j]):
        with pytest.raises(InvalidType, match="real numbers"):
            grid.to_grid(bad, 0)
    with pytest.raises(InvalidArgument, match="finite"):
        grid.to_grid([2**70, math.inf], 0)


def test_the_natural_grid_is_a_power_of_two_of_a_sixty_fourth_of_the_scale_or_less():
    for scale in (1, 0.3, 1000, F(1, 7), 1e-9):
        step = noise.natural_grid(scale)
        assert step <= F(scale) / 64 < 2 * step
        parameters.power_of_two("grid", step)


@given(st.fractions(max_denominator=10**6), st.integers(-70, 70), st.integers(-70, 70))
def test_steps_are_exact_floors_and_ceilings(value, exponent, onto):
    step = F(2) ** exponent
    assert grid.floor_steps(value, exponent) == math.floor(value / step)
    assert grid.ceil_steps(value, exponent) == math.ceil(value / step)
    steps = value.numerator
    assert grid.rescaled(steps, exponent, onto) == math.floor(steps * step / F(2) ** onto + F(1, 2))
