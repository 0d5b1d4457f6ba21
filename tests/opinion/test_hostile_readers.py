"""Laws: readers of claims meet hostile text and files without executing, crashing or guessing.

10,000 mutations with DPTALLY_SOAK set, a tenth of them otherwise. Each is read (not judged): the outcome is claims
with sane numbers, or a DptallyError of bounded length.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import random
import time
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dptally as dp
from dptally.interop.event_text import looks_like_event
from dptally.opinion.pickled import plain, read_checkpoint, read_pickle
from dptally.opinion.reading import claims_of

ROUNDS = 10_000 if os.environ.get("DPTALLY_SOAK") else 1_000

SENTENCES = [
    "epsilon 1.62 at delta 1e-5: DP-SGD noise 1, rate 0.01, 1000 steps, gdp accountant",
    "(3, 10^-5)-DP: noise multiplier 1.1, batch size 256, dataset size 60,000 and 15 epochs, shuffled, add-remove",
    "epsilon 2 at delta 0: 50*laplace(scale=5) + 3 * poisson(gaussian(1.0), rate=256/60000, adjacency=replace)",
    "eps=1, delta=1e-6: SelfComposedDpEvent(event=PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)), count=1000)",
    "epsilon 3 at delta 1e-5: --N=60000 --batch_size=256 --noise_multiplier=1.1 --epochs=15 --delta=1e-5",
    "DP-SGD performed over 60000 examples with 600 examples per iteration, noise multiplier 1.0 for 10 epochs without "
    "microbatching. Example-level DP with add-or-remove-one adjacency at delta = 1e-05 computed with RDP accounting: "
    "Epsilon with each example occurring once per epoch: 16.7 Epsilon assuming Poisson sampling (*): 2.1",
]
FILES = {
    ".json": json.dumps({"epsilon": 2.0, "delta": 1e-5, "history": [[1.0, 0.01, 1000]], "mechanism": "rdp"}),
    ".yaml": "epsilon: 2.0\ndelta: 1.0e-5\nnoise_multiplier: 1.0\nsample_rate: 0.01\nsteps: 1000\n",
    ".toml": 'epsilon = 2.0\ndelta = 1e-5\nplan = "10 * gaussian(5)"\n',
    ".csv": "epsilon,delta,noise_multiplier,sample_rate,steps\n1.62,1e-5,1,0.01,1000\n2,1e-5,1,0.01,1000\n",
    ".txt": SENTENCES[0],
}
HOSTILE = [
    *("__import__('os').system('true')", "\x00", "\ud800", "NaN", "inf", "-", "1e999", "9" * 500, "((((", "]]]]", "{}"),
    *("!!python/object/apply:os.system", "&a [*a]", "*a", "\n", ",", ";", " and ", ":", "%", "/0", "10^9999", "é", "𝟙"),
    *(
        "lambda: 0",
        "${x}",
        "<script>",
        "../../etc/passwd",
        "@",
        "True",
        "None",
        '"',
        "'",
        "\\",
        "\t",
        "1_000",
        "٣",
        "=",
        "x",
    ),
]


def mutated(text: str, dice: random.Random) -> str:
    """One to four edits: remove, repeat, exchange, or insert something unpleasant."""
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(text) + 1)
        end = min(len(text), at + dice.randint(1, 12))
        kind = dice.randrange(5)
        if kind == 0:
            text = text[:at] + text[end:]
        elif kind == 1:
            text = text[:end] + text[at:end] * dice.randint(1, 3) + text[end:]
        elif kind == 2:
            text = text[:at] + dice.choice(HOSTILE) + text[at:]
        elif kind == 3:
            text = text[:at] + dice.choice("0123456789.eE+-*/()[]{},:;= \"'") + text[at + 1 :]
        else:
            other = dice.choice(SENTENCES)
            text = text[:at] + other[dice.randrange(len(other)) :][: dice.randint(1, 40)] + text[end:]
    return text


def outcome(call: Callable[[], Any]) -> Any:
    """What a call answers, or the text of one of our own errors; any other error is a failure."""
    try:
        return call()
    except dp.DptallyError as error:
        return str(error)


def read(source: object, *claimed: float) -> None:
    """Claims with sane numbers, or an error of bounded length."""
    found = outcome(lambda: claims_of(source, *claimed))
    if isinstance(found, str):
        assert len(found) < 3000
        return
    assert found
    for claim in found:
        assert claim.claimed.epsilon >= 0
        assert 0 <= claim.claimed.delta <= 1
        assert claim.plan is not None or claim.questions


def test_mutated_sentences() -> None:
    dice = random.Random(1)
    for _ in range(ROUNDS // 2):
        read(mutated(dice.choice(SENTENCES), dice))


def test_mutated_files(tmp_path: Path) -> None:
    dice = random.Random(2)
    for i in range(3 * ROUNDS // 10):
        ending, text = dice.choice(list(FILES.items()))
        path = tmp_path / f"claim{i % 7}{ending}"
        path.write_bytes(mutated(text, dice).encode("utf-8", "surrogatepass"))
        read(path)


class Bomb:
    """A pickle of this runs a command when an unpickler loads it."""

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("touch executed",)


def checkpoint(inside: object, protocol: int = 2) -> bytes:
    """What torch.save writes around a pickle."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(inside, protocol=protocol))
        archive.writestr("archive/version", "3\n")
    return out.getvalue()


STATE = OrderedDict(history=[(1.0, 0.01, 1000), (1.5, 0.01, 10)], mechanism="prv")


@pytest.mark.parametrize("protocol", range(5))
def test_checkpoints_are_read_without_pickle(protocol: int, tmp_path: Path) -> None:
    whole = {"module_state_dict": OrderedDict(weight=Bomb()), "privacy_accountant_state_dict": STATE, "epoch": 3}
    path = tmp_path / "checkpoint.pt"
    for raw in (checkpoint(whole, protocol), pickle.dumps(whole, protocol=protocol)):
        path.write_bytes(raw)
        (claim,) = claims_of(path, 3.0, 1e-5)
        assert claim.plan == dp.dpsgd(1.0, 0.01, 1000) + dp.dpsgd(1.5, 0.01, 10)


def test_nothing_in_a_checkpoint_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "bomb.pt"
    for inside in (Bomb(), {"history": Bomb()}, {"history": [Bomb()]}, {"history": [(Bomb(), 0.1, 1)]}, [Bomb()]):
        for protocol in range(5):
            path.write_bytes(checkpoint(inside, protocol))
            with pytest.raises(dp.InvalidArgument):
                claims_of(path, 3.0, 1e-5)
    assert not (tmp_path / "executed").exists()
    pickle.loads(pickle.dumps(Bomb()))  # the test can fail: pickle itself does run it
    assert (tmp_path / "executed").exists()


def test_mutated_checkpoints(tmp_path: Path) -> None:
    dice, path = random.Random(3), tmp_path / "state.pt"
    seeds = [checkpoint({"history": STATE["history"]}), pickle.dumps(STATE, 2), pickle.dumps(dict(STATE), 4)]
    for _ in range(ROUNDS // 5):
        raw = bytearray(dice.choice(seeds))
        for _ in range(dice.randint(1, 6)):
            at = dice.randrange(len(raw))
            if dice.random() < 0.5:
                raw[at] = dice.randrange(256)
            else:
                del raw[at : at + dice.randint(1, 9)]
        path.write_bytes(bytes(raw))
        read(path, 3.0, 1e-5)


def test_values_that_hold_each_other_are_refused() -> None:
    doubled: object = (1, 2)
    for _ in range(40):
        doubled = (doubled, doubled)
    with pytest.raises(dp.InvalidArgument, match="larger one"):
        plain(read_pickle(pickle.dumps(doubled)))
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(dp.InvalidArgument, match="larger one"):
        plain(read_pickle(pickle.dumps(circle)))
    as_key = b"\x80\x02}(K\x01K\x02\x86q\x00h\x00\x86K\x01u."  # a dictionary with a tuple of tuples for a key
    assert read_pickle(as_key) == {}


@pytest.mark.parametrize(
    "raw", [b"", b"PK", b"PK\x03\x04" + bytes(30), b"\x80\x02.", b"\x80\x02h\x07.", b"(.", b"garbage"]
)
def test_broken_checkpoints(raw: bytes) -> None:
    with pytest.raises(dp.InvalidArgument):
        read_checkpoint(raw)


def test_a_zip_bomb_is_not_unpacked() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.pkl", bytes(60_000_000))
    with pytest.raises(dp.InvalidArgument, match="at most"):
        read_checkpoint(out.getvalue())
    two = io.BytesIO()
    with zipfile.ZipFile(two, "w") as archive:
        archive.writestr("a/data.pkl", b"N.")
        archive.writestr("b/data.pkl", b"N.")
    with pytest.raises(dp.InvalidArgument, match=r"one data\.pkl"):
        read_checkpoint(two.getvalue())


def test_mutated_event_texts() -> None:
    dice = random.Random(4)
    seed = "ComposedDpEvent(events=[SelfComposedDpEvent(event=PoissonSampledDpEvent(sampling_probability=0.01, "
    seed += "event=GaussianDpEvent(noise_multiplier=np.float64(1.0))), count=100), LaplaceDpEvent(noise_multiplier=2)])"
    assert looks_like_event(seed)
    for _ in range(ROUNDS // 5):
        found = outcome(lambda: dp.from_dp_accounting(mutated(seed, dice)))
        assert isinstance(found, dp.Mechanism) or len(found) < 3000


RUN = "noise 1, rate 0.01, 1000 steps"


@pytest.mark.parametrize(
    "text",
    [
        f"ε = 1.62, δ = 10⁻⁵: {RUN}",
        f"ϵ ≤ 1.62 and δ ≤ 10^{{−5}}: {RUN}",
        f"epsilon at most 1.62 at delta 1 × 10⁻⁵: {RUN}",
        f"(ε, δ) = (1.62, 1·10^-5)-DP: {RUN}",
        f"epsilon below 1.62 at delta 1e−5: {RUN}",
        "epsilon 1.62 at delta 1e-5: noise 1, rate 1 %, 1,000 steps",
        f"epsilon{' ' * 3000}1.62{' ' * 3000}at{chr(9) * 3000}delta 1e-5:{chr(160) * 3000}{RUN}",
    ],
)
def test_printed_numbers_are_read_as_typed_ones(text: str) -> None:
    (claim,) = claims_of(text)
    assert (claim.claimed.epsilon, claim.claimed.delta) == (1.62, 1e-5)
    assert claim.plan == dp.dpsgd(1.0, 0.01, 1000)


@pytest.mark.parametrize(
    "text",
    [
        f"epsilon 1,62 at delta 1e-5: {RUN}",
        f"epsilon 1,620 at delta 1e-5: {RUN}",
        f"epsilon 1.62 at delta 10-5: {RUN}",
        f"epsilon 1.62 at delta 10−5: {RUN}",
        f"epsilon at least 1.62 at delta 1e-5: {RUN}",
        f"epsilon > 1.62 at delta 1e-5: {RUN}",
        f"epsilon 1e999 at delta 1e-5: {RUN}",
        "epsilon 1.62 at delta 1e-5: noise 1, rate 0.01, 1.000 steps",
        "epsilon 1.62 at delta 1e-5: noise 1,500, rate 0.01, 1000 steps",
        "epsilon 1.62 at delta 1e-5: noise 1, rate 0,01, 1000 steps",
        "epsilon 1.62 at delta 1e-5: noise 1, rate 0.01, 1 000 steps",
        "epsilon 1.62 at delta 1e-5: noise 1, rate 0.01, 1000 steps, not Poisson",
    ],
)
def test_what_could_mean_two_things_is_refused(text: str) -> None:
    with pytest.raises(dp.InvalidArgument):
        claims_of(text)


ROW = "delta: 1e-5\nnoise_multiplier: 1\nsample_rate: 0.01\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", f"{ROW}steps: 1000\nepsilon: 1\nepsilon: 2\n"),
        ("a.yaml", f"{ROW}steps: 1000\nepsilon: 1:30\n"),
        ("a.yaml", f"{ROW}steps: 01000\nepsilon: 2\n"),
        ("a.yaml", f"{ROW}steps: 1000\nepsilon: 1e999\n"),
        ("a.yaml", f"{ROW}steps: 1000\nepsilon: 1,62\n"),
        ("a.yaml", f"{ROW}steps: 1000\nepsilon: 2\n---\nepsilon: 3\n"),
        ("a.toml", 'epsilon = 1e999\ndelta = 1e-5\nplan = "gaussian(1)"\n'),
        ("a.csv", 'epsilon,delta,noise_multiplier,sample_rate,steps\n"1,62",1e-5,1,0.01,1000\n'),
        ("a.csv", "epsilon,delta,noise_multiplier,sample_rate,steps\n1.62,1e-5,1,0.01,1.000\n"),
        ("a.csv", "epsilon;delta;noise_multiplier;sample_rate;steps\n1,62;1e-5;1;0,01;1000\n"),
    ],
)
def test_documents_that_could_mean_two_things_are_refused(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(dp.InvalidArgument):
        claims_of(path)


def test_numbers_of_yaml_are_those_of_json(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(f"{ROW}steps: 1000\nepsilon: 2.\n", encoding="utf-8")
    (claim,) = claims_of(path)
    assert (claim.claimed.epsilon, claim.claimed.delta) == (2.0, 1e-5)


def test_every_claim_of_a_row_is_read(tmp_path: Path) -> None:
    """A printed statement makes two."""
    path = tmp_path / "a.csv"
    path.write_text(f'claim\n"{SENTENCES[5]}"\n', encoding="utf-8")
    assert len(claims_of(path)) == 2


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    """A pipe would never end."""
    for make in (os.mkfifo, os.mkdir):
        path = tmp_path / f"{make.__name__}.json"
        make(path)
        with pytest.raises(dp.InvalidArgument, match="a file"):
            claims_of(path, 1.0, 1e-5)
    with pytest.raises(dp.InvalidArgument):
        claims_of(Path("/dev/zero"), 1.0, 1e-5)


@pytest.mark.parametrize("atom", ["(", " ", "1,", "9", "the ", "noise 1 ", "accountant ", "1 examples with ", "⁻", "a"])
@pytest.mark.parametrize("head", ["", "epsilon ", "epsilon 1.62 ", "epsilon 1.62 at delta 1e-5: ", "DP-SGD performed "])
def test_long_texts_are_read_in_linear_time(head: str, atom: str) -> None:
    started = time.process_time()
    read(head + atom * (200_000 // len(atom)) + "!")
    assert time.process_time() - started < 2.0


def test_a_checkpoint_names_its_accountant(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    for inside in (dict(STATE), {"privacy_accountant_state_dict": dict(STATE)}):
        path.write_bytes(checkpoint(inside))
        (claim,) = claims_of(path, 3.0, 1e-5)
        assert claim.accountant == "prv"
