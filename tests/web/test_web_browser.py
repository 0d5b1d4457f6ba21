"""Contract: the page in a real browser. Every page at two widths, light and dark, by keyboard alone, and with a silent
console; a slider is answered while it moves.

Debian's chromium is driven by playwright. On a machine without it the tests are skipped, in CI they fail.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from web_running import TOKEN, ledger_at, table_at

import dptally as dp
from dptally.numerics.shown import shown_up

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("CI"), reason="NO BROWSER: apt install chromium to run these tests"
)
PAGES = ("/", "/?plan=pie", "/check", "/ledger", "/ledger/data?name=ehr-2026", "/papers")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def served(*arguments: str) -> Iterator[str]:
    """``dptally serve`` as its users start it."""
    port = free_port()
    command = [sys.executable, "-m", "dptally", "serve", "--port", str(port), *arguments]
    told = {**os.environ, "DPTALLY_TOKEN": TOKEN}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=told) as server:
        address = f"http://127.0.0.1:{port}"
        try:
            for _ in range(600):
                try:
                    urllib.request.urlopen(f"{address}/healthz", timeout=5).close()
                    break
                except (urllib.error.URLError, ConnectionError):
                    assert server.poll() is None, server.stdout.read() if server.stdout else ""
                    time.sleep(0.1)
            yield address
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served("--ledger", ledger_at(tmp_path_factory.mktemp("ledger"))) as address:
        yield address


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a table to ask, which may spend."""
    url, table = table_at(tmp_path_factory.mktemp("table"))
    given = ("--table", table.source, "--dataset", table.dataset, "--max-groups", "2", "--allow-spend")
    with served("--ledger", url, *given) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield running
        running.close()


@pytest.fixture
def said() -> list[str]:
    """What the console said."""
    return []


@pytest.fixture
def page(browser: Any, said: list[str]) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    opened.set_default_timeout(60_000)
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    yield opened
    opened.close()


def contrast(page: Any) -> list[str]:
    """Texts whose colour is less than 4.5 to 1 on the ground they stand on."""
    return list(page.evaluate(CONTRAST))


CONTRAST = """() => {
  const curve = (x) => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  const light = (c) => { const [r, g, b] = c.map((x) => curve(x / 255)); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const rgb = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const wrong = [];
  for (const e of document.querySelectorAll("main *, header *, footer *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length || e.closest("svg")) continue;
    const a = light(rgb(getComputedStyle(e).color).slice(0, 3)), b = light(ground(e).slice(0, 3));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) wrong.push(`${e.tagName} ${e.textContent.trim().slice(0, 30)} ${ratio.toFixed(2)}`);
  }
  return wrong; }"""
UNLABELLED = """() => [...document.querySelectorAll("input, textarea, button, select")]
  .filter((e) => e.type !== "hidden" && e.getClientRects().length)
  .filter((e) => !(e.labels && e.labels.length) && !e.getAttribute("aria-label") && !e.textContent.trim())
  .map((e) => e.outerHTML)"""


@pytest.mark.parametrize("address", PAGES)
def test_every_page_wide_narrow_light_and_dark(page: Any, said: list[str], site: str, address: str) -> None:
    page.goto(site + address)
    looked_at(page, address)
    # the browser itself reports the status of a page that explains a bad question
    assert [line for line in said if "status of 400" not in line] == []


def looked_at(page: Any, address: str) -> None:
    """One heading, every field labelled, nothing wider than the page and nothing faint, at two widths and schemes."""
    assert page.locator("h1").count() == 1
    assert page.evaluate(UNLABELLED) == []
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (width, scheme)
            assert contrast(page) == [], (width, scheme)
            kept(page, address, width, scheme)
    page.wait_for_load_state("networkidle")


def kept(page: Any, address: str, width: int, scheme: str) -> None:
    """Screenshots for those who look: DPTALLY_SCREENSHOTS=folder."""
    folder = os.environ.get("DPTALLY_SCREENSHOTS")
    if folder:
        name = "".join(c if c.isalnum() else "-" for c in address)
        page.wait_for_load_state("networkidle")
        page.screenshot(path=Path(folder) / f"{name}-{width}-{scheme}.png", full_page=True)


def test_a_slider_is_answered_while_it_moves(page: Any, said: list[str], site: str) -> None:
    page.goto(f"{site}/")
    page.wait_for_load_state("networkidle")
    slider = page.locator('input[data-for="noise"]')
    slider.focus()
    with page.expect_response("**/part/quick**") as answered:
        page.keyboard.press("ArrowRight")
    assert answered.value.ok
    noise = float(page.locator("#noise").input_value())
    assert noise > 1.0
    wanted = shown_up(dp.dpsgd(noise, 0.01, 1000).epsilon(1e-5), 7)
    page.wait_for_function("wanted => document.getElementById('epsilon').textContent === wanted", arg=wanted)
    held = "noise => new URLSearchParams(location.search).get('plan')?.includes(`gaussian(${noise})`)"
    page.wait_for_function(held, arg=noise)
    page.reload()  # the address holds the answer
    assert page.locator("#epsilon").text_content() == wanted
    assert said == []


def test_the_rest_follows_by_itself(page: Any, said: list[str], site: str) -> None:
    page.goto(f"{site}/?plan=20*gaussian(10)")
    page.wait_for_selector("#more table", state="attached")
    page.wait_for_selector("#noise-answer code")
    assert "This is for DP-SGD runs" in str(page.locator("#samplers").text_content())
    assert page.locator("#all").is_hidden()
    assert said == []


def test_a_claim_is_judged_by_keyboard_alone(page: Any, said: list[str], site: str) -> None:
    page.goto(f"{site}/check")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "claim":
            break
    page.keyboard.press("Control+A")
    page.keyboard.type("epsilon 9 at delta 1e-5: 20 * gaussian(10)")
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Judge it"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    page.wait_for_selector("h2.status")
    assert page.locator("h2.status").text_content() == "TRUE BUT LOOSE"
    assert said == []


def test_a_dropped_file_is_judged(page: Any, said: list[str], site: str) -> None:
    page.goto(f"{site}/check")
    claim = b'{"epsilon": 1.0, "delta": 1e-5, "history": [[1.0, 0.01, 1000]]}'
    page.set_input_files("#file", files=[{"name": "run.json", "mimeType": "application/json", "buffer": claim}])
    page.wait_for_selector("h2.status")
    assert page.locator("h2.status").text_content() == "REFUTED"
    assert said == []


def test_the_ledger_is_verified_on_the_page(page: Any, said: list[str], site: str) -> None:
    page.goto(f"{site}/ledger")
    page.get_by_role("button", name="Verify every chain").click()
    page.wait_for_selector("p.good")
    assert "every chain is whole" in str(page.locator("p.good").text_content())
    page.goto(f"{site}/ledger/data?name=ehr-2026")
    page.fill("#search", "counts 3")
    page.keyboard.press("Enter")
    page.wait_for_url("**search=**")
    assert page.locator("tbody tr").count() == 1
    assert said == []


def tabbed_to(page: Any, wanted: str) -> None:
    """Press Tab until the field of this id, or the button of this text, has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("[document.activeElement.id, document.activeElement.textContent].includes(" + f"{wanted!r})"):
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
            return
    raise AssertionError(f"Tab does not lead to {wanted}")


def test_a_table_is_asked_by_keyboard_alone(page: Any, said: list[str], desk: str) -> None:
    page.goto(f"{desk}/ledger")
    tabbed_to(page, "Ask the table of ehr-2026")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ledger/table")
    looked_at(page, "/ledger/table")
    assert page.locator("#low1").is_hidden()  # a number that was not chosen shows its choice alone
    for field, typed in (
        *(("where", "age >= 18"), ("group1", "ward"), ("keys1", "ward A, ward B, ward C"), ("what1", "how many p")),
        *(("noise1", "within"), ("amount1", "60"), ("what2", "mean"), ("column2", "los_days"), ("low2", "0")),
        *(("high2", "30"), ("noise2", "within"), ("amount2", "2"), ("by", "alice")),
    ):
        tabbed_to(page, field)
        page.keyboard.type(typed)
    assert page.locator("#high1").is_hidden()
    assert page.locator("#high2").is_visible()
    tabbed_to(page, "Price and preview it")
    page.keyboard.press("Enter")
    page.wait_for_selector("#before")
    assert "It costs rho" in str(page.locator("p.good").text_content())
    assert page.locator("figure.spreads svg").count() >= 1
    page.locator("summary").click()
    assert "read_parquet" in str(page.locator("pre").text_content())
    page.locator("summary").click()
    looked_at(page, "/ledger/table/before")
    page.fill("#why", "the board asks")
    page.fill("#token", TOKEN)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.keyboard.press("Enter")
    page.wait_for_selector("#released")
    assert page.locator("#released ~ .scroll tbody tr").count() == 3
    looked_at(page, "/ledger/table/released")
    page.goto(f"{desk}/ledger/data?name=ehr-2026")
    assert "the board asks" in str(page.locator("tbody").text_content())
    assert said == []


@pytest.fixture
def plain(browser: Any) -> Iterator[Any]:
    """A page that runs no scripts."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_default_timeout(60_000)
    yield page
    context.close()


def test_a_table_answers_without_scripts(plain: Any, desk: str) -> None:
    plain.goto(f"{desk}/ledger/table")
    plain.select_option("#what1", "persons")
    plain.select_option("#noise1", "sigma")
    plain.fill("#amount1", "20")
    plain.fill("#by", "alice")
    plain.get_by_role("button", name="Price and preview it").click()
    assert "It costs rho" in str(plain.locator("p.good").text_content())


def test_the_explorer_answers_without_scripts(plain: Any, site: str) -> None:
    plain.goto(f"{site}/")
    plain.fill("#plan", "20*gaussian(10)")
    plain.get_by_role("button", name="Answer").click()
    assert plain.locator("#epsilon").text_content() == shown_up((20 * dp.Gaussian(10)).epsilon(1e-5), 7)
