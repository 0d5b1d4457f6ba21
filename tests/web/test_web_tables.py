"""Contract: the declared table on the page. What it says before paying is what the library says, and free; a release
needs the token and debits once; no request names a file or reaches a row without a debit.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from web_running import TOKEN, client, secret_of, table_at

import dptally as dp
from dptally.cli.serving import serve
from dptally.errors import InvalidArgument, TermsMismatch
from dptally.web import Declared, Settings, application, queries
from dptally.web.server import look, settings_for
from dptally.web.workers import Workers

ASKED = {
    "by": "alice",
    "where": "age >= 18",
    "group1": "ward",
    "keys1": 'ward A, "ward B"\nward C',
    "what1": "persons",
    "noise1": "within",
    "amount1": "60",
    "what2": "mean",
    "column2": "los_days",
    "low2": "0",
    "high2": "30",
    "least2": "500",
    "noise2": "within",
    "amount2": "2",
}


@pytest.fixture
def at(tmp_path: Path) -> dict[str, Any]:
    url, declared = table_at(tmp_path)
    return {"ledger": url, "table": declared}


@pytest.fixture
def spender(at: dict[str, Any]) -> Iterator[Any]:
    with client(**at, token=TOKEN) as page:
        yield page


def post(page: Any, address: str, **fields: str) -> Any:
    return page.post(address, data={"secret": secret_of(page.get("/check").text), **fields})


def said(answer: Any) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", answer.text))


def as_written(ledger: dp.Ledger, declared: Declared) -> Any:
    """The same question, asked in Python."""
    table = dp.Table(declared.source, person="patient_id", max_groups=2)
    study = dp.Session(table, ledger=ledger, dataset="ehr-2026", by="alice")
    grouped = study.where("age >= 18").group_by("ward", keys=["ward A", "ward B", "ward C"])
    return grouped.persons(within=60).mean("los_days", each=(0, 30), within=2, persons=500)


def entries(url: str) -> int:
    with dp.Ledger.open(url, read_only=True) as ledger:
        return len(ledger.history("ehr-2026"))


def test_before_paying_the_page_says_what_the_library_says(at: dict[str, Any]) -> None:
    with client(**at) as page:
        text = said(post(page, "/ledger/table", **ASKED))
        again = said(post(page, "/ledger/table", **ASKED))
    with dp.Ledger.open(at["ledger"], read_only=True) as ledger:
        query = as_written(ledger, at["table"])
        price, explained = query.price(), query.explain()
    (cost,) = re.findall(r"It costs rho ([\d.]+); ", text)
    assert price.cost <= float(cost) <= price.cost * (1 + 1e-4)
    assert f"fits {price.fits} times" in text
    assert "± 60" in text
    assert explained.replace(at["table"].source, "visits.parquet") in text
    assert str(Path(at["table"].source).parent) not in text  # where the files lie is not told
    assert text == again
    assert "only reads" in text
    assert entries(at["ledger"]) == 0


def test_no_row_is_read_before_the_debit(at: dict[str, Any], spender: Any) -> None:
    """The file's schema is all that a price needs: rows that would fail to be read change nothing."""
    Path(at["table"].source).rename(Path(at["table"].source).with_suffix(".gone"))
    import duckdb

    empty = "SELECT 1::BIGINT AS patient_id, '' AS ward, 1.0::DOUBLE AS los_days, 1 AS age WHERE false"
    with client(**at) as page:
        assert "exist" in said(post(page, "/ledger/table", **ASKED))  # no file at all is said
    duckdb.sql(f"COPY ({empty}) TO '{at['table'].source}' (FORMAT parquet)")
    assert "It costs rho 0.0045" in said(post(spender, "/ledger/table", **ASKED))


def test_a_release_debits_once_for_a_key(at: dict[str, Any], spender: Any) -> None:
    preview = post(spender, "/ledger/table", **ASKED).text
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', preview.split("Release it")[0]))
    (key,) = re.findall(r'name="key" value="(page-\w+)"', preview)
    fields = {name: html.unescape(value) for name, value in hidden.items()} | {"token": TOKEN, "key": key}
    first, again = (spender.post("/ledger/table/release", data=fields) for _ in range(2))
    rows = re.findall(r'<th scope="row">(ward \w)</th><td class="number">(-?\d+)', first.text)
    assert [name for name, _ in rows] == ["ward A", "ward B", "ward C"]
    assert all(900 < int(count) < 1600 for _, count in rows)
    assert re.findall(r'<th scope="row">(ward \w)</th><td class="number">(-?\d+)', again.text) == rows
    assert "nothing was charged" in again.text
    assert first.text.count("<svg") == again.text.count("<svg") == 3  # two numbers and the account
    assert entries(at["ledger"]) == 1
    other = spender.post("/ledger/table/release", data={**fields, "where": "age >= 19"})
    assert (other.status_code, entries(at["ledger"])) == (400, 1)  # a key answers its own question alone


def test_who_has_no_token_releases_nothing(at: dict[str, Any], spender: Any) -> None:
    for token in ("", "a wrong token here", TOKEN[:-1]):
        assert post(spender, "/ledger/table/release", **ASKED, token=token).status_code == 403
    with client(**at) as reader:
        refused = post(reader, "/ledger/table/release", **ASKED, token=TOKEN)
        assert refused.status_code == 403
        assert "only reads" in refused.text
    assert entries(at["ledger"]) == 0


def test_a_form_of_another_page_is_refused(spender: Any) -> None:
    for address in ("/ledger/table", "/ledger/table/release"):
        for secret in ("", "guess"):
            assert spender.post(address, data={**ASKED, "secret": secret, "token": TOKEN}).status_code == 403
        assert spender.post(address, data=ASKED, headers={"origin": "http://evil.example"}).status_code == 403


def test_what_does_not_fit_is_not_released(at: dict[str, Any], spender: Any) -> None:
    dear = ASKED | {"amount1": "1"}
    preview = post(spender, "/ledger/table", **dear).text
    assert "It does not fit" in preview
    assert "Release it" not in preview
    over = post(spender, "/ledger/table/release", **dear, token=TOKEN)
    assert (over.status_code, entries(at["ledger"])) == (400, 0)
    assert "ehr-2026" in over.text


def test_an_analyst_s_cap_holds(at: dict[str, Any], spender: Any) -> None:
    assert "It does not fit" in post(spender, "/ledger/table", **ASKED | {"by": "bob"}).text
    assert post(spender, "/ledger/table/release", **ASKED | {"by": "bob", "token": TOKEN}).status_code == 400
    assert entries(at["ledger"]) == 0


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"where": "age >= (SELECT 1)"}, "where"),
        ({"where": "read_csv('/etc/passwd')"}, "where"),
        ({"where": "1; DROP TABLE visits"}, "where"),
        ({"where": "(" * 5_000}, "where"),
        ({"group1": "wards"}, "group by"),
        ({"group1": "los_days"}, "los_days"),
        ({"keys1": ""}, "keys"),
        ({"keys1": "ward A, ward A"}, "different from one another"),
        ({"group1": "age", "keys1": "1, two"}, "keys"),
        ({"keys1": ", ".join(map(str, range(60_000)))}, "50000"),
        ({"what1": "exec"}, "aggregate"),
        ({"what1": "", "what2": ""}, "aggregate"),
        ({"noise1": "none"}, "noise"),
        ({"amount1": "nan"}, "amount"),
        ({"amount1": "-1"}, "within"),
        ({"amount1": ""}, "amount"),
        ({"column2": "read_parquet('/etc/passwd')"}, "column"),
        ({"column2": ""}, "column"),
        ({"low2": "40"}, "each"),
        ({"least2": "1.5"}, "least"),
        ({"what2": "histogram", "bins2": "0, 1, x"}, "bins"),
        ({"what2": "quantile", "bins2": "0, 10", "shares2": "2"}, "q"),
        ({"noise1": "", "amount1": "", "cost": "zcdp(pie)"}, "pie"),
        ({"noise1": "", "amount1": ""}, "cost"),
        ({"threshold": "60.5"}, "threshold"),
        ({"name1": "age", "group1": "age", "keys1": "1"}, "name"),
    ],
)
def test_a_bad_question_is_explained_and_kept(at: dict[str, Any], changed: dict[str, str], word: str) -> None:
    with client(**at) as page:
        answer = post(page, "/ledger/table", **ASKED | changed)
    assert answer.status_code in (400, 413)
    (alert,) = re.findall(r'role="alert">(.*?)</p>', answer.text)
    assert word in alert or answer.status_code == 413
    assert 'value="age &gt;= 18"' in answer.text or "where" in changed  # what was typed is still there


@pytest.mark.parametrize(
    ("changed", "label"),
    [
        ({"what1": "rows", "noise1": "sigma", "amount1": "20", "what2": ""}, "rows"),
        ({"what1": "sum", "column1": "los_days", "low1": "0", "high1": "60", "amount1": "900", "what2": ""}, "sum"),
        ({"what1": "variance", "column1": "los_days", "low1": "0", "high1": "30", "what2": ""}, "variance"),
        ({"what1": "quantile", "column1": "age", "bins1": "0,30,60,90", "shares1": ".25 .5", "what2": ""}, "age"),
        ({"what1": "histogram", "column1": "age", "bins1": "0 30 60 90", "name1": "ages", "what2": ""}, "ages"),
        ({"what1": "distinct", "column1": "age", "most1": "3", "what2": ""}, "age_distinct"),
        ({"keys1": "", "threshold": "200", "noise1": "sigma", "amount1": "20"}, "persons"),
        ({"group2": "age", "keys2": "20, 21"}, "persons"),
        ({"noise1": "", "amount1": "", "noise2": "", "amount2": "", "cost": "zcdp(0.002)"}, "persons"),
    ],
)
def test_every_aggregate_can_be_asked(tmp_path: Path, changed: dict[str, str], label: str) -> None:
    url, declared = table_at(tmp_path, max_rows=4, failure=1e-8)
    with client(ledger=url, table=declared) as page:
        answer = post(page, "/ledger/table", **ASKED | changed)
    assert answer.status_code == 200, said(answer)
    assert re.search(rf"<h3>[^<]*{label}[^<]*</h3>", answer.text)


def test_no_field_is_a_file(at: dict[str, Any], tmp_path: Path) -> None:
    """Fields that a question does not have are not looked at, whatever they are called."""
    with client(**at) as page:
        plain = said(post(page, "/ledger/table", **ASKED))
        more = {"source": "/etc/passwd", "table": "/etc/passwd", "dataset": "other", "ledger": "sqlite:////tmp/x.db"}
        assert said(post(page, "/ledger/table", **ASKED, **more)) == plain
    assert dict(queries.fields_of({"by": " bob ", "where": "", "source": "x"})) == {"by": "bob"}
    with pytest.raises(InvalidArgument, match="characters"):
        queries.fields_of({"where": "x" * 1_000_001})


def test_work_is_budgeted(at: dict[str, Any]) -> None:
    """Pricing runs where a question without end is ended."""
    runner = Workers(1, 30.0)
    made = application(Settings(**at), runner)
    with TestClient(made, base_url="http://127.0.0.1:8000") as page:
        assert "It costs rho 0.0045" in said(post(page, "/ledger/table", **ASKED))
        runner._seconds = 1e-4
        ended = post(page, "/ledger/table", **ASKED)
        assert (ended.status_code, "was ended" in ended.text) == (503, True)
    assert not runner._known  # what is left changes: it is never remembered


def test_a_server_without_a_table_says_how_to_get_one(at: dict[str, Any]) -> None:
    with client(ledger=at["ledger"]) as page:
        missing = page.get("/ledger/table")
        assert (missing.status_code, "--table" in missing.text) == (404, True)
        assert post(page, "/ledger/table", **ASKED).status_code == 404
    with client(**at) as page:
        assert "/ledger/table" in page.get("/ledger").text
        assert "/ledger/table" in page.get("/ledger/data?name=ehr-2026").text


def test_a_wrong_table_is_said_before_the_server_starts(at: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="ledger"):
        Settings(table=at["table"])
    with pytest.raises(InvalidArgument, match="ledger"):
        settings_for("127.0.0.1", table=at["table"])
    with pytest.raises(InvalidArgument, match="files that exist"):
        look(Settings(ledger=at["ledger"], table=Declared("nowhere.parquet", "ehr-2026")))
    with pytest.raises(dp.DptallyError, match="nobody"):
        look(Settings(ledger=at["ledger"], table=Declared(at["table"].source, "nobody")))
    with pytest.raises(dp.DptallyError, match="no ledger"):
        look(Settings(ledger="sqlite:///nowhere.db"))
    with pytest.raises(InvalidArgument, match="dataset"):
        serve.main(["--table", "x.parquet"], standalone_mode=False)
    with pytest.raises(InvalidArgument, match="table"):
        serve.main(["--max-groups", "2"], standalone_mode=False)
    look(settings_for("127.0.0.1", ledger=at["ledger"], table=at["table"]))


def test_the_account_says_whose_rows_they_are(at: dict[str, Any]) -> None:
    with dp.Ledger.open(at["ledger"]) as ledger:
        ledger.create("by row", budget=dp.PureDP(1.0))
        assert queries.session(ledger, Declared(at["table"].source, "by row"), "").table.person is None
        with pytest.raises(TermsMismatch):
            dp.Session(dp.Table(at["table"].source), ledger=ledger, dataset="ehr-2026")
        assert queries.session(ledger, at["table"], "").table.person == "patient_id"
