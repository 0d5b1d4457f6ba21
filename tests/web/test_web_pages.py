"""Contract: what the page says is what the library answers; every page renders; forms do what they say."""

from __future__ import annotations

import json
import pickle
import re
import zipfile
from pathlib import Path

import pytest
from web_running import TOKEN, client, ledger_at, secret_of

import dptally as dp
from dptally.errors import InvalidArgument
from dptally.ledger import Head, Inclusion
from dptally.numerics.shown import shown_down, shown_up
from dptally.web import explorer, opinions
from dptally.web.gallery import papers
from dptally.web.question import Question, number

RUN = dp.dpsgd(1.0, 0.01, 1000)
RUN_TEXT = "1000 * poisson(gaussian(1.0), 0.01)"


def test_the_explorer_answers_by_address() -> None:
    box = RUN.epsilon_interval(1e-6)
    for address in (f"/?plan={RUN_TEXT}&delta=1e-6", "/?noise=1&rate=.01&steps=1e3&delta=1e-6"):
        page = client().get(address)
        assert page.status_code == 200
        assert f'<strong id="epsilon">{shown_up(box.upper, 7)}</strong>' in page.text
        assert shown_down(box.lower, 7) in page.text
        assert page.text.count("<svg") == 2
        assert 'value="1000"' in page.text  # the sliders hold the plan


def test_the_first_page_has_an_answer() -> None:
    page = client().get("/")
    assert shown_up(RUN.epsilon(1e-5), 7) in page.text
    assert "Everything about it" in page.text


def test_health() -> None:
    assert client().get("/healthz").json() == {"status": "ok", "version": dp.__version__}


def test_programs_are_answered_in_numbers() -> None:
    found = client().get("/api/epsilon", params={"plan": RUN_TEXT, "delta": "1e-5"}).json()
    assert (found["epsilon"]["lower"], found["epsilon"]["upper"]) == tuple(RUN.epsilon_interval(1e-5))
    assert client().get("/api/epsilon", params={"plan": "approx(1, 0.1)", "delta": "1e-5"}).json()["epsilon"] == {
        "lower": "inf",
        "upper": "inf",
        "method": dp.ApproxDP(1, 0.1).epsilon_interval(1e-5).method,
    }
    wrong = client().get("/api/epsilon", params={"plan": "pie(3)"})
    assert wrong.status_code == 400
    assert "pie" in wrong.json()["error"]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("/?plan=pie(3)", "pie"),
        ("/?delta=2", "delta"),
        ("/?delta=nan", "delta"),
        ("/?steps=1.5", "steps"),
        ("/?noise=-1", "noise"),
        ("/?rate=many", "rate"),
        ("/?target=0", "target"),
        ("/?records=1", "records"),
        ("/?steps=" + "9" * 50, "steps"),
        ("/?plan=" + "(" * 200, "plan"),
        ("/?plan=" + "g" * 20_001, "at most 20000 characters"),
    ],
)
def test_a_bad_question_is_explained(address: str, said: str) -> None:
    page = client().get(address)
    assert page.status_code == 400
    assert 'role="alert"' in page.text
    assert said in page.text


def test_a_plan_text_is_never_a_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(dp.to_json(RUN))
    for text in (f"@{path}", str(path), "-"):
        assert client().get("/", params={"plan": text}).status_code == 400
    page = client()
    secret = secret_of(page.get("/check").text)
    claim = tmp_path / "claim.txt"
    claim.write_text("epsilon 9 at delta 1e-5: gaussian(1)")
    for text in (f"@{claim}", str(claim)):
        answer = page.post("/check", data={"secret": secret, "claim": text, "epsilon": "1", "delta": "1e-5"})
        assert answer.status_code == 400


@pytest.mark.parametrize(
    "plan",
    [
        RUN,
        50 * dp.Laplace(5.0) + 10 * dp.Gaussian(10.0),
        3 * dp.PoissonSampled(dp.Gaussian(1.0), 0.1, dp.REPLACE),
        dp.RenyiDP([2.0, float("inf")], [0.1, 3.0]),
        dp.ApproxDP(1.0, 1e-6),
    ],
)
def test_the_python_line_gives_the_same_plan(plan: dp.Mechanism) -> None:
    lines = explorer.python_line(plan, 1e-5).splitlines()
    space: dict[str, object] = {}
    exec("\n".join(lines[:-1]), space)
    assert space["plan"] == plan
    assert lines[-1] == "plan.epsilon(delta=1e-05)"


def test_the_attacker_is_the_library_s() -> None:
    words = " ".join(explorer.quick(RUN_TEXT, 1e-5)["meaning"])
    stated = float(re.findall(r"with 1 % false positives finds at most ([\d.]+) %", words)[0])
    assert 100 * (1 - RUN.tradeoff(0.01)) <= stated < 101 * (1 - RUN.tradeoff(0.01))


def test_plans_at_the_edge_are_shown() -> None:
    for text in ("approx(1, 0.1)", "0 * gaussian(1)", "zcdp(0.5)"):
        found = explorer.quick(text, 1e-12)
        assert found["epsilon"]["upper"]
        assert explorer.more(text, 1e-12)["rows"]
    assert explorer.quick("zcdp(0.5)", 1e-5)["profile"].count("polyline") == 2


def test_everything_without_a_script() -> None:
    text = client().get("/?plan=20*gaussian(10)&all=1&target=.5").text
    best = dp.compare(20 * dp.Gaussian(10), 1e-5).rows[0]
    assert shown_up(best.epsilon or 0.0, 7) in text
    assert "All noise times" in text
    assert "This is for DP-SGD runs" in text


def test_the_parts_that_follow() -> None:
    noise = client().get("/part/noise", params={"noise": "1", "target": "0.7"})
    needed = float(re.findall(r"noise multiplier of <strong>([\d.]+)", noise.text)[0])
    assert 0.69 < dp.dpsgd(needed, 0.01, 1000).epsilon(1e-5) <= 0.7
    none = client().get("/part/noise", params={"plan": "pure(5)"}).text
    assert "Wider noise does not make this plan meet epsilon 1." in none
    samplers = client().get("/part/samplers", params={"records": "1000", "steps": "100"})
    assert "Batches of 10 of 1000 records, 1 epochs" in samplers.text
    assert "cyclic" in samplers.text
    every = explorer.samplers("2.0", "0.5", "2", 10, 1e-5, True)
    assert {row["name"] for row in every["rows"]} >= {"shuffled-batches", "balls-in-bins"}
    wrong = client().get("/part/quick", params={"plan": "pie"})
    assert (wrong.status_code, wrong.text.startswith('<p class="error"')) == (400, True)


def test_cards_and_sources_are_files() -> None:
    asked = {"plan": "10*gaussian(5)", "delta": "1e-6"}
    card = client().get("/card.html", params=asked)
    assert card.headers["content-disposition"] == 'attachment; filename="dptally-card.html"'
    assert shown_up((10 * dp.Gaussian(5)).epsilon(1e-6)) in card.text
    assert client().get("/card.md", params=asked).text.startswith("# Privacy guarantee")
    assert client().get("/cite.bib", params=asked).text.startswith("@software{dptally")
    assert client().get("/card.pdf", params=asked).status_code == 404


def test_numbers_of_a_form() -> None:
    assert number({"a": " "}, "a") is None
    assert number({"a": "1e-5"}, "a") == 1e-5
    with pytest.raises(InvalidArgument):
        number({"a": "1" * 60}, "a")
    assert Question.of({}).plan == RUN_TEXT


# -- the second opinion ------------------------------------------------------------------------------------


def judged(claim: str, **more: str) -> str:
    page = client()
    secret = secret_of(page.get("/check").text)
    return page.post("/check", data={"secret": secret, "claim": claim, **more}).text


def test_a_pasted_claim_is_judged() -> None:
    text = judged("epsilon 1.62 at delta 1e-5: noise 1, rate 0.01, 1000 steps, gdp accountant")
    assert "REFUTED" in text
    assert "<svg" in text
    assert "TRUE" in judged("20*gaussian(10)", epsilon="9", delta="1e-5")
    assert 'role="alert"' in judged("20*gaussian(10)")


def test_dropped_files_are_judged(tmp_path: Path) -> None:
    page = client()
    secret = secret_of(page.get("/check").text)

    def dropped(raw: bytes, ending: str, token: str = secret) -> tuple[int, str]:
        asked = {"ending": ending, "epsilon": "2", "delta": "1e-5"}
        answer = page.post("/part/check", params=asked, content=raw, headers={"x-dptally": token})
        return answer.status_code, answer.text

    state = {"history": [[1.0, 0.01, 1000]]}
    assert dropped(json.dumps(state).encode(), ".JSON")[1].count("TRUE") >= 1
    checkpoint = tmp_path / "run.pt"
    with zipfile.ZipFile(checkpoint, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(state))
    assert "TRUE" in dropped(checkpoint.read_bytes(), ".pt")[1]
    assert dropped(b"os.system", ".exe")[0] == 400
    assert dropped(b"{}", ".json", "wrong")[0] == 403
    rows = b"claim\nepsilon 9 at delta 1e-5: gaussian(1)\nepsilon 1 at delta 1e-5: gaussian(1)\n"
    code, text = page_of_rows(page, secret, rows)
    assert code == 200
    assert "2 claims" in text
    assert "REFUTED" in text


def page_of_rows(page: object, secret: str, rows: bytes) -> tuple[int, str]:
    answer = page.post("/part/check", params={"ending": ".csv"}, content=rows, headers={"x-dptally": secret})  # type: ignore[attr-defined]
    return answer.status_code, answer.text


def test_too_many_claims_are_refused() -> None:
    rows = "claim\n" + "epsilon 9 at delta 1e-5: gaussian(1)\n" * 101
    with pytest.raises(InvalidArgument, match="at most 100"):
        opinions.opinion(rows.encode(), ".csv", None, None)


# -- the ledger --------------------------------------------------------------------------------------------


def test_without_a_ledger_the_page_says_how() -> None:
    assert "dptally serve --ledger" in client().get("/ledger").text
    assert client().get("/ledger/head.json").status_code == 404


def test_the_ledger_is_shown(tmp_path: Path) -> None:
    url = ledger_at(tmp_path)
    with client(ledger=url) as page, dp.Ledger.open(url, read_only=True) as ledger:
        overview = page.get("/ledger").text
        assert "claims &amp; co" in overview
        assert f"{shown_down(ledger.status('ehr-2026').balance.left or 0)} left" in overview
        account = page.get("/ledger/data", params={"name": "ehr-2026"}).text
        assert account.count('<th scope="row">') == 7
        assert "&lt;script&gt;" in account
        assert "<script>" not in account.replace('<script src="', "")
        assert "Spend it" not in account
        found = page.get("/ledger/data", params={"name": "ehr-2026", "search": "COUNTS 3"}).text
        assert found.count('<th scope="row">') == 1
        assert "Nothing found" in page.get("/ledger/data", params={"name": "ehr-2026", "search": "zzz"}).text
        assert "Nothing was spent" in page.get("/ledger/data", params={"name": "claims & co"}).text
        for wrong in ({"name": "none"}, {"name": "ehr-2026", "after": "x"}, {"name": "ehr-2026", "search": "x" * 201}):
            assert page.get("/ledger/data", params=wrong).status_code == 400
        proof = Inclusion.from_json(page.get("/ledger/receipt.json?name=ehr-2026&number=3").text)
        proof.check(Head.from_json(page.get("/ledger/head.json").text))


def test_a_long_history_has_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dptally.web.accounts._PAGE", 3)
    monkeypatch.setattr("dptally.web.accounts._LOOK", 2)
    with client(ledger=ledger_at(tmp_path)) as page:
        first = page.get("/ledger/data", params={"name": "ehr-2026"}).text
        (after,) = re.findall(r"after=(\d+)", first)
        assert first.count('<th scope="row">') == 3
        second = page.get("/ledger/data", params={"name": "ehr-2026", "after": after}).text
        assert second.count('<th scope="row">') == 3
        monkeypatch.setattr("dptally.web.accounts._LOOKS", 1)
        searched = page.get("/ledger/data", params={"name": "ehr-2026", "search": "zzz"}).text
        assert "Later entries" in searched


def test_the_ledger_is_verified_and_heads_are_checked(tmp_path: Path) -> None:
    url = ledger_at(tmp_path)
    with client(ledger=url) as page:
        secret = secret_of(page.get("/ledger").text)
        assert "every chain is whole" in page.post("/ledger/verify", data={"secret": secret}).text
        head = page.get("/ledger/head.json").text
        kept = page.post("/ledger/check-head", data={"secret": secret, "head": head})
        assert "continues this head" in kept.text
        forged = json.loads(head)
        forged["chains"]["ehr-2026"][0] += 1
        broken = page.post("/ledger/check-head", data={"secret": secret, "head": json.dumps(forged)})
        assert 'class="error"' in broken.text
        assert page.post("/ledger/check-head", data={"secret": secret, "head": "{}"}).status_code == 400


def test_a_proof_that_was_kept_is_checked(tmp_path: Path) -> None:
    url = ledger_at(tmp_path)
    with client(ledger=url) as page:
        secret = secret_of(page.get("/ledger").text)
        kept = page.get("/ledger/receipt.json?name=ehr-2026&number=4").text
        with dp.Ledger.open(url) as ledger, ledger.spend("ehr-2026", dp.Gaussian(90.0), by="alice", why="later"):
            pass

        def said(**changed: object) -> str:
            text = json.dumps(json.loads(kept) | changed)
            return page.post("/ledger/check-receipt", data={"secret": secret, "receipt": text}).text

        assert "stands in the ledger as the proof says" in said()  # though the ledger has grown since
        assert "was changed since" in said(hash="0" * 64)
        assert "is gone: the ledger has" in said(number=4000, size=5000)
        assert "is of another ledger" in said(ledger="another")
        assert page.post("/ledger/check-receipt", data={"secret": secret, "receipt": "{}"}).status_code == 400


def test_a_broken_ledger_is_called_broken(tmp_path: Path) -> None:
    import sqlite3

    url = ledger_at(tmp_path)
    with sqlite3.connect(tmp_path / "budget.db") as raw:
        for (trigger,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            raw.execute(f'DROP TRIGGER "{trigger}"')
        raw.execute("UPDATE dptally_entries SET body = replace(body, 'ward counts 2', 'ward counts 9')")
    with client(ledger=url) as page:
        secret = secret_of(page.get("/ledger").text)
        text = page.post("/ledger/verify", data={"secret": secret}).text
        assert 'class="error"' in text
        assert "every chain is whole" not in text


def test_a_plan_is_priced_and_nothing_is_debited(tmp_path: Path) -> None:
    url = ledger_at(tmp_path)
    with client(ledger=url) as page:
        secret = secret_of(page.get("/ledger").text)
        asked = {"secret": secret, "name": "ehr-2026", "plan": "gaussian(sigma=4)", "by": "dave"}
        text = page.post("/ledger/price", data=asked).text
        (cost,) = re.findall(r"costs rho ([\d.]+); it fits", text)
        assert 0.03125 <= float(cost) < 0.03126
        assert "it does not fit" in page.post("/ledger/price", data={**asked, "plan": "gaussian(.5)"}).text
        many = " + ".join(f"poisson(gaussian({i}), .1)" for i in range(2, 40))
        assert page.post("/ledger/price", data={**asked, "plan": many}).status_code == 400
        refused = page.post("/ledger/spend", data={**asked, "token": TOKEN})
        assert refused.status_code == 403
    with dp.Ledger.open(url, read_only=True) as ledger:
        assert len(ledger.history("ehr-2026")) == 7


def test_with_a_token_the_page_spends(tmp_path: Path) -> None:
    url = ledger_at(tmp_path)
    with client(ledger=url, token=TOKEN) as page:
        secret = secret_of(page.get("/ledger").text)
        asked = {"secret": secret, "name": "ehr-2026", "plan": "gaussian(sigma=40)", "by": "carol", "key": "k1"}
        assert page.post("/ledger/spend", data={**asked, "token": "a wrong token here"}).status_code == 403
        assert page.post("/ledger/spend", data=asked).status_code == 403
        made = page.post("/ledger/spend", data={**asked, "token": TOKEN})
        assert "The debit is durable" in made.text
        again = page.post("/ledger/spend", data={**asked, "token": TOKEN})
        assert "nothing was charged" in again.text
        over = page.post("/ledger/spend", data={**asked, "key": "k2", "plan": "gaussian(.1)", "token": TOKEN})
        assert over.status_code == 400
    with dp.Ledger.open(url, read_only=True) as ledger:
        assert [entry.by for entry in ledger.history("ehr-2026")].count("carol") == 1


# -- the papers --------------------------------------------------------------------------------------------


def test_the_papers_and_their_verdicts_are_shown() -> None:
    text = client().get("/papers").text
    assert len(papers()) >= 4
    for paper in papers():
        assert f'id="{paper["name"]}"' in text
        for exhibit in paper["exhibits"]:
            assert f'<span class="badge {exhibit["kind"]}">{exhibit["verdict"]}</span>' in text
