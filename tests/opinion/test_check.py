"""Contract: verdicts follow the certified ends, whatever form a claim has; what was not said is listed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dptally as dp
from dptally.opinion import Claim, Claimed, check_all, verify
from dptally.opinion.accountants import central_limit_mu, known
from dptally.opinion.verdict import LOOSE, judged

RUN = dp.dpsgd(1.0, 0.01, 1000)
QUICK = 3 * dp.Gaussian(2.0)
ENDS = QUICK.epsilon_interval(1e-5)
BOX = RUN.epsilon_interval(1e-5)
WORDS = "DP-SGD noise 1, rate 0.01, 1000 steps"


@pytest.mark.parametrize(
    ("epsilon", "status"),
    [
        (0.0, "refuted"),
        (1.62, "refuted"),
        ((1 - 1e-9) * ENDS.lower, "refuted"),
        ((1 - 1e-14) * ENDS.lower, "true"),
        (ENDS.upper, "true"),
        (1.001 * ENDS.upper, "true"),
        (LOOSE * ENDS.upper, "true"),
        (LOOSE * ENDS.upper * 1.0001, "loose"),
        (30.0, "loose"),
        (math.inf, "loose"),
    ],
)
def test_the_status_follows_the_certified_ends(epsilon: float, status: str) -> None:
    verdict = judged(Claim(Claimed(epsilon, 1e-5), QUICK))
    assert verdict.status == status
    assert verdict.interval == ENDS
    assert (verdict.claimed.epsilon, verdict.claimed.delta) == (epsilon, 1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "epsilon 10 at delta 0: 50 * laplace(scale=5)",
        "epsilon 0.3 at delta 0: 3 * pure(0.1)",
        "epsilon 0.7 at delta 0: 7 * laplace(10)",
        "epsilon 1.1 at delta 1e-6: approx(1.1, 1e-6)",
    ],
)
def test_sums_of_decimals_are_what_they_are_on_paper(text: str) -> None:
    """0.1 is no double: three of them are not refuted for 0.3."""
    assert dp.check(text).status == "true"


def test_between_the_ends_nothing_is_decided() -> None:
    """Renyi bounds do not fix the profile: the lower end is far below."""
    plan = dp.ZCDP(0.5)
    box = plan.epsilon_interval(1e-6)
    assert box.lower < box.upper
    inside = 0.5 * (box.lower + box.upper)
    verdict = judged(Claim(Claimed(inside, 1e-6), plan))
    assert verdict.status == "undetermined"
    assert "between the certified ends" in str(verdict)


@pytest.mark.parametrize(
    "text",
    [
        f"epsilon 1.83 at delta 1e-5: {WORDS}",
        "eps = 1.83, delta = 1e-5: noise multiplier 1.0, sampling rate 1%, steps 1e3",
        "(1.83, 10^-5)-DP: DP-SGD with noise 1 and sample rate 1/100 and 1,000 iterations",
        "ε=1.83, δ=1 x 10^-5: sigma = 1; q rate 0.01".replace("q ", "") + "; 1000 updates",
        "epsilon 1.83 at delta 1e-5: dpsgd(1, 0.01, 1000)",
        "epsilon 1.83 at delta 1e-5: 1e3 * poisson(gaussian(1), 0.01), dptally accountant",
        "epsilon 1.83 at delta 1e-5: SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)), 1000)",
        f"epsilon 1.83 at delta 1e-5: {dp.to_json(RUN)}",
        "epsilon 1.83 at delta 1e-5: noise 1, batch size 600, dataset size 60,000, 10 epochs",
        "epsilon 1.83 at delta 1e-5: noise 1, 600 batch size, 60000 examples, 10 epochs, add or remove adjacency",
        "epsilon 1.83 at delta 1e-5: --N=60000 --batch_size=600 --noise_multiplier=1.0 --epochs=10 --delta=1e-5",
        "epsilon 1.83 at delta 1e-5: noise 1, rate 0.01, 1000 steps, Poisson sampling, clipping norm 1.2, user level",
    ],
)
def test_one_claim_in_many_words(text: str) -> None:
    verdict = dp.check(text)
    assert verdict.status == "true", verdict
    assert verdict.interval.upper == pytest.approx(BOX.upper, abs=1e-9)


def test_what_was_not_said_is_listed() -> None:
    assert len(dp.check(f"epsilon 2 at delta 1e-5: {WORDS}").claim.assumed) == 2
    said = dp.check(f"epsilon 2 at delta 1e-5: {WORDS}, Poisson sampled, replace-one neighbours")
    assert said.claim.assumed == ()
    assert said.interval == dp.dpsgd(1.0, 0.01, 1000, dp.REPLACE).epsilon_interval(1e-5)
    assert said.status == "refuted"


def test_an_undescribed_run_is_asked_for() -> None:
    for text in ("epsilon 2 at delta 1e-5:", "epsilon 2 at delta 1e-5: rdp accountant"):
        verdict = dp.check(text)
        assert verdict.status == "undetermined"
        assert len(verdict.claim.questions) == 4
        assert (verdict.interval.lower, verdict.interval.upper) == (0.0, math.inf)
        with pytest.raises(dp.Unanswerable, match="questions"):
            verdict.save_proof("never.json")


@pytest.mark.parametrize("sampler", ["shuffled", "fixed size batches", "balls in bins"])
def test_other_samplers_are_answered_or_undetermined(sampler: str) -> None:
    text = f"epsilon 3 at delta 1e-5: noise 1, batch size 5, dataset size 10, 1 epoch, {sampler}"
    verdict = dp.check(text)
    assert verdict.status in ("undetermined", "true", "loose", "refuted")
    if verdict.claim.plan is None:
        assert verdict.status == "undetermined"
        assert "does not have" in verdict.claim.questions[0]


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "hello",
        "epsilon 1: gaussian(1)",
        "epsilon at delta 1e-5: gaussian(1)",
        "epsilon 1 at delta 2: gaussian(1)",
        "epsilon -1 at delta 1e-5: gaussian(1)",
        "epsilon nan at delta 1e-5: gaussian(1)",
        "epsilon 1 at delta 1e-5: gaussian(1",
        "epsilon 1 at delta 1e-5: fancy(1)",
        "epsilon 1 at delta 1e-5: rate 0.01, 10 steps",
        "epsilon 1 at delta 1e-5: noise 1, rate 1.5, 10 steps",
        "epsilon 1 at delta 1e-5: noise 0, rate 0.5, 10 steps",
        "epsilon 1 at delta 1e-5: noise 1, rate 0.01, 10.5 steps",
        "epsilon 1 at delta 1e-5: noise 1, rate 0.01, 10 steps, bananas",
        "epsilon 1 at delta 1e-5: noise 1, noise 2, rate 0.01, 10 steps",
        "epsilon 1 at delta 1e-5: noise 1, rate 1/0, 10 steps",
        "epsilon 1 at delta 1e-5: noise 1e999, rate 0.1, 10 steps",
        "epsilon 1 at delta 1e-5: noise 1, batch 100, dataset 10, 5 epochs",
        "epsilon 1 at delta 1e-5: noise 1, rate 0.5, batch 10, dataset 100, 5 epochs",
        "epsilon 1 at delta 1e-5: noise 1, rate 0.1, 5 epochs, 51 steps",
        "epsilon 1 at delta 1e-5: noise 1, rate 0, 5 epochs",
        "epsilon 1 at delta 1e-5: --noise_multiplier=1 --bad=2",
        "epsilon 1 at delta 1e-5: --noise_multiplier=1 --delta=1e-6",
        "epsilon 1 at delta 1e-5: --noise_multiplier=1 --noise_multiplier=1",
        "DP-SGD performed over many examples",
        '{"epsilon": 1}',
        "{]",
        17,
        None,
        {},
        {"epsilon": 1, "delta": 1e-5},
        {"epsilon": 1, "delta": 1e-5, "plan": "gaussian(1)", "event": "GaussianDpEvent(1)"},
        {"epsilon": 1, "delta": 1e-5, "plan": "gaussian(1)", "color": "red"},
        {"epsilon": 1, "delta": 1e-5, "plan": 17},
        {"epsilon": 1, "delta": 1e-5, "plan": "gaussian(1)", "adjacency": "replace"},
        {"epsilon": 1, "delta": 1e-5, "event": "GaussianDpEvent(1)", "adjacency": "near"},
        {"epsilon": 1, "delta": 1e-5, "noise_multiplier": 1, "sample_rate": 0.1, "steps": 3, "sampler": "dice"},
        {"epsilon": 1, "delta": 1e-5, "noise_multiplier": 1, "accountant": 5},
        {1: 2},
    ],
    ids=lambda x: str(x)[:50],
)
def test_what_cannot_be_read_is_an_error_with_a_reason(bad: object) -> None:
    with pytest.raises(dp.DptallyError) as caught:
        dp.check(bad)
    assert len(str(caught.value)) < 1000


def test_mappings() -> None:
    claim = {"epsilon": 1.83, "delta": 1e-5}
    run = {"noise_multiplier": 1, "sample_rate": 0.01, "steps": 1000, "sampler": "poisson", "adjacency": "add_remove"}
    event = "SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)), 1000)"
    for more in (
        run,
        {"plan": RUN},
        {"plan": repr(RUN)},
        {"plan": json.loads(dp.to_json(RUN))},
        {"event": event},
        {"event": event, "adjacency": dp.ADD_REMOVE},
        {"history": [[1.0, 0.01, 1000]], "mechanism": "prv", "other": 3},
        {"privacy_accountant_state_dict": {"history": [[1.0, 0.01, 1000]]}, "module_state_dict": 0},
    ):
        assert dp.check(claim | more).status == "true", more
    assert dp.check({"history": [[1.0, 0.01, 1000]]}, epsilon=1.83, delta=1e-5).status == "true"
    with pytest.raises(dp.InvalidArgument, match="said once"):
        dp.check(claim | {"plan": RUN}, epsilon=3.0)
    with pytest.raises(dp.InvalidArgument, match="said once"):
        dp.check("epsilon 1 at delta 1e-5: gaussian(1)", delta=1e-5)


def test_the_reasons_name_the_accountant_and_what_it_computed() -> None:
    said = str(dp.check(f"epsilon 1.62 at delta 1e-5: {WORDS}, gdp accountant"))
    assert "4.66 times the claim" in said
    assert "central limit theorem's mu = 0.4145" in said
    assert "no bound" in said
    assert "Mironov" in str(dp.check("epsilon 2.54 at delta 1e-5: dpsgd(1, 0.01, 1000), opacus rdp accountant"))
    assert "rounding the epsilon down" in str(dp.check(f"epsilon 1.828 at delta 1e-5: {WORDS}"))
    assert "declared guarantee" in str(dp.check("epsilon 5.28 at delta 1e-4: 50 * pure(0.2)"))
    assert "not known here" in str(dp.check("epsilon 9 at delta 1e-5: gaussian(1), pocket accountant"))
    assert "not 0" in str(dp.check("epsilon 1 at delta 0: laplace(0.5)"))


@pytest.mark.parametrize(
    ("name", "word"), [("opacus gdp", "no bound"), ("RDP", "Renyi"), ("PRV", "error"), ("pld", "grid")]
)
def test_known_accountants(name: str, word: str) -> None:
    found = known(name)
    assert found is not None
    assert word in found.worth


def test_unknown_accountants_and_tiny_noise() -> None:
    assert known("pocket") is None
    assert known("") is None
    assert central_limit_mu(0.01, 0.5, 10) == math.inf


def test_to_dict_is_json() -> None:
    out = json.loads(json.dumps(dp.check(f"epsilon 1.62 at delta 1e-5: {WORDS}").to_dict(), allow_nan=False))
    assert out["status"] == "refuted"
    assert out["claimed"] == {"epsilon": 1.62, "delta": 1e-5}
    assert out["epsilon"]["lower"] <= out["epsilon"]["upper"]
    infinite = dp.check("epsilon 2 at delta 1e-5:").to_dict()
    assert infinite["epsilon"]["upper"] == "inf"


# -- proofs ------------------------------------------------------------------------------------------------------


def test_a_proof_is_run_again_and_not_believed(tmp_path: Path) -> None:
    verdict = dp.check("epsilon 1 at delta 1e-5: 3 * gaussian(10)")
    path = verdict.save_proof(tmp_path / "proof.json")
    again = verify(path)
    assert again.confirmed
    assert again.found == verdict.status == "loose"
    assert again.balls is None or verdict.interval.lower <= again.balls.upper
    said = json.loads(path.read_text())
    for key, value in (("status", "refuted"), ("epsilon", {"lower": 5.0, "upper": 6.0, "method": ""})):
        path.write_text(json.dumps(said | {key: value}))
        assert not verify(path).confirmed
    json.dumps(again.to_dict())


def _changed(document: Any) -> Iterator[Any]:
    """The document with each leaf exchanged for another one."""
    if isinstance(document, (dict, list)):
        places = list(document) if isinstance(document, dict) else range(len(document))
        for place in places:
            for other in _changed(document[place]):
                copy = json.loads(json.dumps(document))
                copy[place] = other
                yield copy
    elif isinstance(document, str):
        yield document + "x"
    else:
        yield 1.0 if not document else document * 1.0001 if isinstance(document, float) else document + 1


@pytest.mark.parametrize(
    "claim",
    [
        "epsilon 1.62 at delta 1e-5: noise 1, rate 0.01, 1000 steps, gdp accountant",
        "epsilon 10.5 at delta 0: 50 * laplace(scale=5)",
        "epsilon 4.5 at delta 1e-5: zcdp(0.5)",
    ],
)
def test_every_changed_field_of_a_proof_is_found(claim: str, tmp_path: Path) -> None:
    path = dp.check(claim).save_proof(tmp_path / "proof.json")
    assert verify(path).confirmed
    count = 0
    for changed in _changed(json.loads(path.read_text(encoding="utf-8"))):
        path.write_text(json.dumps(changed), encoding="utf-8")
        with contextlib.suppress(dp.DptallyError):
            assert not verify(path).confirmed, changed
        count += 1
    assert count > 12


@pytest.mark.parametrize("name", ["epsilon", "delta_at_claimed_epsilon"])
def test_numbers_are_compared_even_where_the_digest_is_forged(name: str, tmp_path: Path) -> None:
    path = dp.check("epsilon 1.62 at delta 1e-5: noise 1, rate 0.01, 1000 steps").save_proof(tmp_path / "proof.json")
    said = json.loads(path.read_text(encoding="utf-8"))
    said[name] = {key: end * 1.01 if key != "method" else end for key, end in said[name].items()}
    rest = {key: value for key, value in said.items() if key != "sha256"}
    said["sha256"] = hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    path.write_text(json.dumps(said), encoding="utf-8")
    found = verify(path)
    assert not found.confirmed
    assert "exclude each other" in found.text


def test_proofs_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    dp.check("epsilon 1 at delta 1e-5: gaussian(10)").save_proof(path)
    good = json.loads(path.read_text())
    bad_claim = good | {"claim": {"epsilon": "x", "delta": 1e-5}}
    for text in ("[]", "{", json.dumps({**good, "extra": 1}), json.dumps(bad_claim), json.dumps(good | {"claim": {}})):
        path.write_text(text)
        with pytest.raises(dp.InvalidArgument):
            verify(path)
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(dp.InvalidArgument, match="UTF-8"):
        verify(path)
    path.write_text(json.dumps(good | {"status": "perhaps"}))
    with pytest.raises(dp.InvalidArgument, match="status"):
        verify(path)
    with pytest.raises(dp.InvalidArgument, match="readable"):
        verify(tmp_path / "none.json")


# -- pages -------------------------------------------------------------------------------------------------------


def test_the_page_has_the_readings_the_noise_and_a_picture() -> None:
    verdict = dp.check(f"epsilon 1.62 at delta 1e-5: {WORDS}")
    page = verdict.page()
    text, html, out = page.to_text(), page.to_html(), page.to_dict()
    assert "poisson, replace" in text
    assert "<svg" in html
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")
    noise = out["noise_that_makes_it_true"]["noise_multiplier"]
    assert dp.dpsgd(noise, 0.01, 1000).epsilon(1e-5) <= 1.62 < dp.dpsgd(0.999 * noise, 0.01, 1000).epsilon(1e-5)
    rows = {(row["sampler"], row["adjacency"]): row["epsilon"] for row in out["readings"]}
    assert rows["poisson", "add-remove"]["upper"] == BOX.upper
    assert rows["poisson", "replace"]["lower"] > BOX.upper
    json.dumps(out, allow_nan=False)


def test_every_sampler_is_tried_on_request() -> None:
    run = {"noise_multiplier": 20.0, "batch_size": 5, "dataset_size": 10, "epochs": 1}
    page = dp.check({"epsilon": 3, "delta": 1e-5} | run).page(samplers=True)
    assert len(page.readings) == 10
    assert all(row.interval is not None or row.reason for row in page.readings)


@pytest.mark.parametrize(
    "text",
    [
        "epsilon 2 at delta 1e-5:",
        "epsilon inf at delta 0: laplace(1)",
        "epsilon 5.28 at delta 1e-4: 50 * pure(0.2)",
        "epsilon 1 at delta 1e-9: approx(1, 1e-6)",
        "epsilon 2 at delta 1e-5: laplace(1) + discrete_laplace(2)",
        "epsilon 0 at delta 0: gaussian(1)",
    ],
)
def test_pages_of_every_kind_of_claim(text: str) -> None:
    page = dp.check(text).page()
    assert page.to_text()
    assert page.to_html().endswith("</html>\n")
    json.dumps(page.to_dict(), allow_nan=False)


def test_html_escapes_what_was_said() -> None:
    page = dp.check(
        {"epsilon": 1, "delta": 1e-5, "plan": "gaussian(1)", "accountant": "<script>alert(1)</script>"}
    ).page()
    assert "<script>" not in page.to_html()


# -- files -------------------------------------------------------------------------------------------------------

STATEMENT = """DP-SGD performed over 60000 examples with 600 examples per iteration, noise
multiplier 1.0 for 10 epochs without microbatching, and no bound on number of
examples per user.

Example-level DP with add-or-remove-one adjacency at delta = 1e-05 computed with
RDP accounting:
    Epsilon with each example occurring once per epoch:        16.713
    Epsilon assuming Poisson sampling (*):                      2.101
"""


def test_a_printed_statement_makes_two_claims() -> None:
    poisson, ordered = check_all(STATEMENT)
    assert poisson.interval.upper == pytest.approx(BOX.upper, abs=1e-9)
    assert poisson.status == "loose"
    assert ordered.claim.plan == 10 * dp.Gaussian(1.0)
    assert dp.check(STATEMENT).status == poisson.status
    halved = check_all(STATEMENT.replace("without", "with"))[0]
    assert halved.interval == dp.dpsgd(0.5, 0.01, 1000).epsilon_interval(1e-5)


def test_csv_files(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    path.write_text(
        "epsilon,delta,noise_multiplier,sample_rate,steps,accountant\n"
        '1.62,1e-5,1,0.01,1000,gdp\n\n2,1e-5,1,1%,"1,000",rdp\n',
        encoding="utf-8",
    )
    assert [verdict.status for verdict in check_all(path)] == ["refuted", "loose"]
    with pytest.raises(dp.InvalidArgument, match="check_all"):
        dp.check(str(path))
    path.write_text('claim\n"epsilon 1.83 at delta 1e-5: dpsgd(1, 0.01, 1000)"\n')
    assert dp.check(f"@{path}").status == "true"
    for bad in ("", "epsilon\n", "epsilon,epsilon\n1,2\n", "epsilon,delta\n1\n", "epsilon,delta\n1,x\n", 'a\n"b'):
        path.write_text(bad)
        with pytest.raises(dp.InvalidArgument):
            check_all(path)


def test_plan_and_state_files(tmp_path: Path) -> None:
    for name, text in (
        ("plan.json", dp.to_json(RUN)),
        ("state.json", json.dumps({"history": [[1.0, 0.01, 1000]], "mechanism": "rdp"})),
        ("history.json", json.dumps([[1.0, 0.01, 1000]])),
        ("plan.toml", 'plan = "dpsgd(1, 0.01, 1000)"'),
        ("plan.txt", "dpsgd(1, 0.01, 1000)"),
        ("event.log", "SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)), 1000)"),
    ):
        path = tmp_path / name
        path.write_text(text)
        assert dp.check(path, epsilon=1.83, delta=1e-5).status == "true", name
        with pytest.raises(dp.InvalidArgument, match="claimed of this run"):
            dp.check(path)


def test_registry_records(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    path = tmp_path / "record.yaml"
    record = (
        "deployment:\n  privacy_loss:\n    privacy_parameters:\n      epsilon: 1.83\n      delta: '1e-5'\n"
        "  implementation:\n    mechanisms: |\n      DP-SGD.\n      dptally plan: dpsgd(1, 0.01, 1000)\n"
    )
    path.write_text(record)
    assert dp.check(path).status == "true"
    path.write_text("deployment: {privacy_loss: {privacy_parameters: {epsilon: 1, delta: 1.0e-6, rho: 0.5}}}")
    assert dp.check(path).status in ("refuted", "undetermined")
    path.write_text(
        "deployment: {dp_variant: {variant_name: Pure DP}, privacy_loss: {privacy_parameters: {epsilon: 4}}}"
    )
    assert dp.check(path).status == "undetermined"
    for bad in ("a: &x [1]\nb: *x", "- 1", "a: [", "epsilon: 1", "!!python/object/apply:os.system ['true']"):
        path.write_text(bad)
        with pytest.raises(dp.DptallyError):
            dp.check(path)


@pytest.mark.parametrize("name", ["none.json", "none.pt"])
def test_missing_files(name: str, tmp_path: Path) -> None:
    with pytest.raises(dp.InvalidArgument, match="readable"):
        dp.check(tmp_path / name)


def test_a_sentence_may_name_the_file_of_its_run(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    state.write_text('{"history": [[1.0, 0.01, 1000]], "mechanism": "gdp", "epoch": 3}')
    verdict = dp.check(f"epsilon 1.62 at delta 1e-5: @{state}, gdp accountant")
    assert (verdict.status, verdict.claim.accountant) == ("refuted", "gdp")
    assert verdict.interval == dp.dpsgd(1.0, 0.01, 1000).epsilon_interval(1e-5)
    with pytest.raises(dp.InvalidArgument, match="said once"):
        dp.check(f"epsilon 1.62 at delta 1e-5: @{state}", epsilon=2.0)


def test_a_missing_file_is_called_missing(tmp_path: Path) -> None:
    for text in (str(tmp_path / "no.json"), f"@{tmp_path / 'no'}", f"epsilon 1 at delta 0: @{tmp_path / 'no'}"):
        with pytest.raises(dp.InvalidArgument, match="No such file"):
            dp.check(text, *((None, None) if "epsilon" in text else (1.0, 0.0)))


def test_flags_say_delta_and_microbatching() -> None:
    flags = "compute_dp_sgd_privacy --N=60000 --batch_size=256 --noise_multiplier=2.2 --epochs=60 --delta=1e-5"
    silent, without = dp.check(flags, epsilon=3.01), dp.check(f"{flags} --noused_microbatching", epsilon=3.01)
    assert any("microbatching" in line for line in silent.claim.assumed)
    assert not any("microbatching" in line for line in without.claim.assumed)
    assert silent.interval == without.interval
    half = dp.check(f"{flags} --used_microbatching=true --accountant_type=RDP", epsilon=3.01)
    assert half.claim.settings is not None
    assert (half.claim.settings.noise_multiplier, half.claim.accountant) == (1.1, "rdp")
    for bad in ("--used_microbatching=maybe", "--used_microbatching --noused_microbatching", "--sampling=x"):
        with pytest.raises(dp.InvalidArgument):
            dp.check(f"{flags} {bad}", epsilon=3.01)


@pytest.mark.parametrize(
    ("run", "asked"),
    [
        ("noise 1, rate 0.01", ["composition"]),
        ("noise 1, batch 10, 5 epochs", ["sampling"]),
        ("noise 1", ["sampling", "composition"]),
    ],
)
def test_what_was_not_said_is_asked_back(run: str, asked: list[str]) -> None:
    verdict = dp.check(f"epsilon 1 at delta 1e-5: {run}")
    assert verdict.status == "undetermined"
    assert [question.partition(":")[0] for question in verdict.claim.questions] == asked
    with pytest.raises(dp.InvalidArgument, match="noise_multiplier"):
        dp.check("epsilon 1 at delta 1e-5: noise 0")
