"""Contract: the manual asks nothing of the network, and its search runs where the site is opened from a file."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WORKER = ROOT / "docs" / "iframe-worker.js"


def test_the_site_names_no_other_machine() -> None:
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "http" not in menu
    (polyfills,) = re.findall(r"polyfills: \[(.*?)\]", menu)
    assert polyfills == WORKER.name  # without it the offline plugin loads one from a public server
    for path in (WORKER, *(ROOT / "docs" / name for name in ("site.js", "site.css"))):
        assert "http" not in path.read_text(encoding="utf-8")


@pytest.mark.skipif(CHROMIUM is None and not os.environ.get("CI"), reason="NO BROWSER: apt install chromium")
def test_a_worker_answers_from_a_file(tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    shutil.copy(WORKER, tmp_path)
    (tmp_path / "helper.js").write_text("self.twice = (x) => 2 * x;")
    (tmp_path / "worker.js").write_text(
        "self.addEventListener('message', async (e) => {"
        " await importScripts('helper.js'); self.postMessage(self.twice(e.data)); });"
    )
    (tmp_path / "page.html").write_text(
        "<!doctype html><title>t</title><script src='iframe-worker.js'></script><body><script>"
        "const worker = new Worker('worker.js');"
        "worker.addEventListener('message', (e) => { document.title = `answer ${e.data}`; });"
        "worker.postMessage(21);</script>"
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto((tmp_path / "page.html").as_uri())
        page.wait_for_function("document.title === 'answer 42'", timeout=60_000)
        browser.close()
