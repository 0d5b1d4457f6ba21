"""Contract: what every command does alike: errors as JSON, guesses at what was meant, brief answers, no colour where
none is wanted, narrow terminals.
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from cli_running import here

import dptally as dp
from dptally.cli.program import COMMANDS, cli
from dptally.cli.suggestions import ELSEWHERE
from dptally.numerics.shown import shown_up

PLAN = "10 * gaussian(sigma=10)"
DPSGD = ("dpsgd", "--noise-multiplier", "1", "--sample-rate", "0.01", "--steps", "100", "--delta", "1e-5")


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def subcommands() -> list[tuple[str, ...]]:
    """Every command as it is written, those of the ledger too."""
    ledger = command("ledger")
    assert isinstance(ledger, click.Group)
    return [(name,) for name in COMMANDS if name != "ledger"] + [("ledger", name) for name in sorted(ledger.commands)]


def passes_on(words: tuple[str, ...]) -> bool:
    """Whether what the command does not know belongs to a program that it runs."""
    return words == ("ledger", "spend")


@pytest.mark.parametrize("words", subcommands(), ids=" ".join)
def test_errors_are_json_where_json_is_asked_for(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    wrong = here(capsys, *words, "--json", "--no-such-option")
    assert wrong.code == 2
    found = json.loads(wrong.out)
    assert set(found) == {"error", "exit_code"}
    assert found["exit_code"] == 2
    assert "no-such-option" in found["error"] or passes_on(words)
    assert "Traceback" not in wrong.err


def misspelt(words: tuple[str, ...]) -> str | None:
    """A long option of the command with its last two letters exchanged."""
    found: Any = cli
    for word in words:
        found = found.get_command(click.Context(found), word)
    names = [option for p in found.params for option in p.opts if option.startswith("--") and len(option) > 6]
    known = {option for p in found.params for option in (*p.opts, *p.secondary_opts)}
    return next((name for n in names if (name := n[:-2] + n[-1] + n[-2]) not in known), None)


@pytest.mark.parametrize("words", [w for w in subcommands() if misspelt(w) and not passes_on(w)], ids=" ".join)
def test_a_misspelt_option_is_guessed(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    wrong = here(capsys, *words, str(misspelt(words)))
    assert wrong.code == 2
    assert "did you mean" in wrong.err.lower()


def test_a_misspelt_command_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean epsilon?" in here(capsys, "epsilno").err
    assert "did you mean status?" in here(capsys, "ledger", "statsu").err
    assert "see dptally ledger --help" in here(capsys, "ledger", "zzzzz").err


@pytest.mark.parametrize("word", ELSEWHERE)
def test_words_that_people_try_lead_to_a_command_that_is_there(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = here(capsys, word)
    assert wrong.code == 2
    advice = wrong.err.split("write: ")[1].split()
    told = here(capsys, advice[1], "--help").out
    assert all(option in told for option in advice if option.startswith("--"))


def test_an_option_like_no_other_leads_to_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert "see dptally calibrate --help" in here(capsys, "calibrate", "gaussian(SIGMA)", "--sample-rate", "0.1").err


BRIEF = {
    "epsilon": ("epsilon", PLAN, "--delta", "1e-5", "--budget", "9", "--compare"),
    "delta": ("delta", PLAN, "--epsilon", "1", "--budget", "1"),
    "dpsgd": (*DPSGD, "--budget", "9"),
    "check": ("check", "epsilon 9 at delta 1e-5: 10 * gaussian(sigma=10)"),
}


def test_every_command_with_brief_is_tried() -> None:
    having = {name for name in COMMANDS if any("--brief" in p.opts for p in command(name).params)}
    assert having == set(BRIEF)


@pytest.mark.parametrize("name", BRIEF)
def test_brief_is_brief(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = here(capsys, *BRIEF[name], "--brief")
    assert told.code == 0, told
    assert 1 <= len(told.out.splitlines()) <= 3


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """What the program writes to a terminal."""
    leader, follower = pty.openpty()
    settings = {**os.environ, "TERM": "xterm-256color", **environment}
    for name in ("NO_COLOR", "COLUMNS", "FORCE_COLOR"):
        if name not in environment:
            settings.pop(name, None)
    line = [sys.executable, "-m", "dptally", *arguments]
    with subprocess.Popen(line, stdout=follower, stderr=subprocess.DEVNULL, env=settings) as running:
        os.close(follower)
        out = b""
        while True:
            try:
                more = os.read(leader, 65536)
            except OSError:  # Linux: the other end is closed
                break
            if not more:
                break
            out += more
        running.wait(60)
    os.close(leader)
    return out.decode()


def test_colour_is_for_terminals_that_want_it() -> None:
    asked = ("epsilon", PLAN, "--delta", "1e-5")
    assert "\x1b[" in on_a_terminal(*asked)
    assert "\x1b[" not in on_a_terminal(*asked, NO_COLOR="1")


def test_tables_are_as_wide_as_columns_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for width in (40, 46, 60, 72, 110):
        monkeypatch.setenv("COLUMNS", str(width))
        text = here(capsys, "risk", PLAN).out.split("assumptions")[0]
        table = [line for line in text.splitlines() if re.search(r"─{5}", line)]
        assert table
        assert max(map(len, table)) <= width
        for word in ("false-positive", "true-positive", "blind", "guess", "0.01"):  # no heading is cut
            assert word in text, width


@pytest.mark.parametrize("width", [40, 80])
def test_words_are_not_broken_on_a_narrow_terminal(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = (("explain", PLAN, "--delta", "1e-5"), ("risk", PLAN), ("check", f"epsilon 9 at delta 1e-5: {PLAN}"))
    for words in asked:
        monkeypatch.delenv("COLUMNS", raising=False)
        whole = here(capsys, *words).out
        monkeypatch.setenv("COLUMNS", str(width))
        narrow = here(capsys, *words).out
        longest = [line for line in narrow.splitlines() if len(line) > width]
        assert all(" " not in line.strip() for line in longest[1:]), longest  # the answer itself is one line
        if words[0] != "risk":  # its table is laid out anew
            assert narrow.split() == whole.split()
    monkeypatch.setenv("COLUMNS", "40")
    assert len(here(capsys, "epsilon", PLAN, "--delta", "1e-5", "--brief", "--budget", "9").out.splitlines()) == 3


def test_a_table_that_would_break_words_is_a_list(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = here(capsys, "epsilon", "gaussian(1)", "--delta", "1e-5", "--compare").out.split("every framework\n")[1]
    lines = text.splitlines()
    assert "certified numerical" in lines
    assert f"  epsilon: {shown_up(dp.Gaussian(1.0).epsilon(1e-5), 8)}" in lines
    assert max(map(len, lines)) <= 40
    assert "─" not in text


def test_help_fits_a_narrow_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    words = here(capsys, "risk", "--help").out.splitlines()
    assert max(len(line) for line in words if "Example" not in line and "dptally risk" not in line) <= 60


# -- serve -----------------------------------------------------------------------------------------------------


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would be served, without a server."""
    seen: list[Any] = []
    monkeypatch.setattr("uvicorn.run", lambda made, **options: seen.append((made, options)))
    monkeypatch.delenv("DPTALLY_TOKEN", raising=False)
    monkeypatch.delenv("DPTALLY_LEDGER", raising=False)
    return seen


def test_serve_says_where(served: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    told = here(capsys, "serve")
    assert "http://127.0.0.1:8000/" in told.out
    ((_, options),) = served
    assert (options["host"], options["port"], options["proxy_headers"]) == ("127.0.0.1", 8000, False)
    assert "http://[::1]:99/" in here(capsys, "serve", "--host", "::1", "--port", "99").out
    found = json.loads(here(capsys, "serve", "--json").out)
    assert found == {"address": "http://127.0.0.1:8000/", "token": None}


def test_serve_needs_a_ledger_to_spend_from(
    served: list[Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert here(capsys, "serve", "--allow-spend").code == 2
    assert here(capsys, "serve", "--host", "").code == 2
    assert served == []
    url = f"sqlite:///{tmp_path}/budget.db"
    missing = here(capsys, "serve", "--ledger", url)  # who starts it hears of it, not the first reader
    assert (missing.code, "there is no ledger" in missing.err) == (2, True)
    assert served == []
    dp.Ledger.open(url, create=True).close()
    assert "the token of this run" in here(capsys, "serve", "--allow-spend", "--ledger", url).out
    monkeypatch.setenv("DPTALLY_TOKEN", "a token that was given")
    assert "a token" not in here(capsys, "serve", "--allow-spend", "--ledger", url).out
    monkeypatch.setenv("DPTALLY_TOKEN", "short")
    assert here(capsys, "serve", "--allow-spend", "--ledger", url).code == 2
