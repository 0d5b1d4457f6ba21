"""Contract: hostile requests. Foreign names and sites, forged forms, sizes, rates, and questions without end."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from web_running import TOKEN, client, ledger_at, secret_of

import dptally as dp
from dptally.errors import InvalidArgument
from dptally.web import Settings, workers
from dptally.web.guard import HEADERS, Buckets, same
from dptally.web.server import settings_for
from dptally.web.workers import Inline, Refusal, Workers

PAGES = ("/", "/healthz", "/check", "/ledger", "/papers", "/nothing", "/static/style.css", "/part/quick", "/?plan=pie")


@pytest.mark.parametrize("address", PAGES)
def test_every_answer_is_headed(address: str) -> None:
    answer = client().get(address)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert answer.headers["cache-control"] == "no-store" or address.startswith("/static")
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("address", [page for page in PAGES if "static" not in page])
def test_pages_hold_nothing_inline_and_nothing_foreign(address: str) -> None:
    text = client().get(address).text
    assert not re.search(r"<script(?! src=\"/static/)", text)
    assert not re.search(r"\son\w+=|\sstyle=|<style|javascript:", text)
    assert not re.findall(r'(?:src|href|action)="(?:https?:)?//', text)


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "localhost:99999999", "127.0.0.1@evil", "[::2]"]
)
def test_a_foreign_host_is_refused(host: str) -> None:
    answer = client().get("/healthz", headers={"host": host})
    assert 400 <= answer.status_code < 500
    assert "x-content-type-options" in answer.headers


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "[::1]:8000", "127.0.0.1:8000"])
def test_loopback_names_are_known(host: str) -> None:
    assert client().get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:9", "http://127.0.0.1:8000.evil.example"]
)
def test_a_foreign_origin_is_refused(origin: str) -> None:
    assert client().get("/", headers={"origin": origin}).status_code == 403
    assert client().post("/check", headers={"origin": origin}).status_code == 403


def test_the_own_origin_is_known() -> None:
    assert client().get("/healthz", headers={"origin": "http://127.0.0.1:8000"}).status_code == 200


def test_another_site_may_link_but_not_ask() -> None:
    foreign = {"sec-fetch-site": "cross-site"}
    assert client().get("/healthz", headers={**foreign, "sec-fetch-mode": "navigate"}).status_code == 200
    assert client().get("/healthz", headers={**foreign, "sec-fetch-mode": "no-cors"}).status_code == 403


def test_a_form_needs_the_token_of_its_page(tmp_path: Path) -> None:
    with client(ledger=ledger_at(tmp_path), token=TOKEN) as page:
        for address in (
            "/check",
            "/ledger/verify",
            "/ledger/check-head",
            "/ledger/check-receipt",
            "/ledger/price",
            "/ledger/spend",
        ):
            for data in ({}, {"secret": "guess"}, {"secret": ""}):
                assert page.post(address, data={**data, "token": TOKEN}).status_code == 403, address
    assert secret_of(client().get("/check").text) != secret_of(client().get("/check").text)
    assert client().post("/check", content=b"\xff=1").status_code == 400


def test_bodies_and_addresses_have_a_size() -> None:
    small = client(largest=1000)
    secret = secret_of(small.get("/check").text)
    assert small.post("/check", data={"secret": secret, "claim": "x" * 2000}).status_code == 413
    assert small.get("/?plan=" + "1" * 40_000).status_code == 414
    assert small.post("/check", headers={"content-length": "many"}, content=b"").status_code in (400, 413)

    # no length is said: the body ends where it passes the limit
    assert small.post("/check", content=iter([b"x" * 600, b"x" * 600])).status_code == 413


def test_methods_that_are_not_there() -> None:
    assert client().post("/").status_code == 405
    assert client().delete("/ledger").status_code == 405
    assert client().get("/docs").status_code == 404
    assert client().get("/openapi.json").status_code == 404


@pytest.mark.parametrize(
    "address",
    ["/static/../settings.py", "/static/%2e%2e/settings.py", "/static//etc/passwd", "/static/..%5csettings.py"],
)
def test_no_address_is_a_path(address: str) -> None:
    assert client().get(address).status_code in (404, 405)


def test_a_client_has_a_rate() -> None:
    page = client(rate=2.0)
    codes = [page.get("/healthz").status_code for _ in range(8)]
    assert codes[:4] == [200] * 4
    assert 429 in codes[4:]


def test_buckets_fill_again_and_are_few() -> None:
    now = [0.0]
    buckets = Buckets(1.0, lambda: now[0])
    assert [buckets.take("a") for _ in range(3)] == [True, True, False]
    now[0] = 1.0
    assert buckets.take("a")
    assert not buckets.take("a")
    for i in range(2000):
        buckets.take(str(i))
    assert len(buckets._left) <= 1000


def test_secrets_are_compared_as_bytes() -> None:
    assert same("é", "é")
    assert not same("é", "e")


def test_settings_are_checked() -> None:
    with pytest.raises(InvalidArgument, match="ledger"):
        Settings(token=TOKEN)
    with pytest.raises(InvalidArgument, match="16 characters"):
        Settings(token="short", ledger="sqlite:///x.db")
    with pytest.raises(InvalidArgument, match="ledger"):
        settings_for("127.0.0.1", allow_spend=True)
    assert "secret" not in repr(Settings())
    made = settings_for("0.0.0.0", ["Page.Example"], "sqlite:///x.db", True)
    assert made.names == {"127.0.0.1", "localhost", "::1", "page.example"}
    assert len(made.token or "") >= 16
    assert "192.0.2.7" in settings_for("192.0.2.7").names
    assert settings_for("::").names == Settings().names


# -- questions without end -------------------------------------------------------------------------------------


def test_workers_answer_remember_and_end_what_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Workers(1, 60.0)
    runner.start()
    try:
        asked = "epsilon", "gaussian(2)", 1e-5
        first = runner.ask(*asked)
        assert first["epsilon"]["upper"] == dp.Gaussian(2).epsilon(1e-5)
        assert runner.ask(*asked) is first
        with pytest.raises(Refusal, match="pie") as refused:
            runner.ask("epsilon", "pie(3)", 1e-5)
        assert refused.value.status == 400
        runner._seconds = 0.2
        start = time.monotonic()
        heavy = " + ".join(f"{i}*poisson(laplace({i / 7}), .0{i})" for i in range(11, 99))
        with pytest.raises(Refusal, match="was ended") as ended:
            runner.ask("more", heavy, 1e-5)
        assert ended.value.status == 503
        assert time.monotonic() - start < 20
        runner._seconds = 60.0
        assert runner.ask("epsilon", "gaussian(3)", 1e-5)["epsilon"]["upper"] == dp.Gaussian(3).epsilon(1e-5)
        monkeypatch.setattr(workers, "_REMEMBERED", 1)
        runner.ask("epsilon", "gaussian(4)", 1e-5)
        assert len(runner._known) == 1
    finally:
        runner.close()


def test_a_busy_server_says_so() -> None:
    runner = Workers(1, 0.01)
    taken = runner._free.get()
    with pytest.raises(Refusal, match="busy") as busy:
        runner.ask("epsilon", "gaussian(2)", 1e-5)
    assert busy.value.status == 503
    runner._free.put(taken)
    runner.close()


def test_a_worker_that_dies_is_replaced() -> None:
    class Dead:
        def ask(self, *_: object) -> Any:
            raise Refusal(500, "the question ended its process")

        def end(self) -> None:
            self.ended = True

    runner, dead = Workers(1, 60.0), Dead()
    runner._free.get()
    runner._free.put(dead)  # type: ignore[arg-type]
    with pytest.raises(Refusal, match="ended its process"):
        runner.ask("epsilon", "gaussian(2)", 1e-5)
    assert dead.ended
    assert runner._free.get() is None


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("dptally.web.explorer.epsilon", greedy)
    with pytest.raises(Refusal, match="memory") as refused:
        Inline().ask("epsilon", "gaussian(2)", 1e-5)
    assert refused.value.status == 413


def test_only_listed_tasks_are_run() -> None:
    with pytest.raises(KeyError):
        Inline().ask("os.system", "true")
