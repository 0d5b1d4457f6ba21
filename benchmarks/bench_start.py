"""How long the command line takes from its start to its answer, beside a bare ``import numpy``. Writes START.md.

    python benchmarks/bench_start.py [--rounds 15] [--out benchmarks/START.md]

dptally is installed into an environment of its own (.venv-bench/start), as a user would. Every round runs each
command once, in turn, so that other work on the machine falls on all of them alike. Wall and processor time
are those of the whole process, as the operating system counts them.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
import venv
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOME = HERE.parent / ".venv-bench" / "start"
GOAL = 0.4  # seconds, for closed forms and DP-SGD
PLAN = "1000 * poisson(gaussian(1.0), 0.01)"
FEW = "3 * poisson(gaussian(1.0), 0.01)"
TRAINING = "--noise-multiplier 1.0 --sample-rate 0.01 --steps 1000 --delta 1e-5"


def commands() -> dict[str, list[str]]:
    python, dptally = str(HOME / "bin" / "python"), str(HOME / "bin" / "dptally")
    return {
        "python alone": [python, "-c", "pass"],
        "import numpy": [python, "-c", "import numpy"],
        "import numpy and scipy.special": [python, "-c", "import numpy, scipy.special"],
        "dptally --help": [dptally, "--help"],
        "dptally epsilon, closed form": [dptally, "epsilon", "10 * gaussian(sigma=5)", "--delta", "1e-5"],
        "dptally epsilon, DP-SGD": [dptally, "epsilon", PLAN, "--delta", "1e-5"],
        "dptally dpsgd": [dptally, "dpsgd", *TRAINING.split()],
        "dptally epsilon --brief, 3 steps": [dptally, "epsilon", FEW, "--delta", "1e-5", "--brief"],
        "dptally epsilon --brief, Laplace x 50": [dptally, "epsilon", "50 * laplace(5)", "--delta", "1e-5", "--brief"],
    }


def install() -> None:
    if not (HOME / "bin" / "pip").exists():
        venv.create(HOME, with_pip=True)
    pip = [str(HOME / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"{HERE.parent}[cli]"], check=True)
    subprocess.run([*pip, "--no-deps", "--force-reinstall", str(HERE.parent)], check=True)


def once(command: list[str]) -> tuple[float, float]:
    """(wall, processor) seconds of one process; one that fails ends the benchmark."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    return wall, usage.ru_utime + usage.ru_stime


def page(found: dict[str, list[tuple[float, float]]], rounds: int) -> str:
    lines = [
        "# From the start to the answer",
        "",
        "Written by `make bench-start`; do not edit. Seconds of whole processes, each run once per round, in turn.",
        f"What is asked: closed forms and DP-SGD answered in less than {GOAL} s of wall time.",
        "",
        f"- date: {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"{platform.machine()}, {rounds} rounds, load at the end {os.getloadavg()[0]:.1f}",
        "",
        "| process | wall, best | wall, median | processor, best |",
        "|---|---|---|---|",
    ]
    for name, times in found.items():
        wall, cpu = zip(*times, strict=True)
        lines.append(f"| {name} | {min(wall):.3f} | {statistics.median(wall):.3f} | {min(cpu):.3f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="The start of the command line beside a bare import of numpy.")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, default=HERE / "START.md")
    asked = parser.parse_args()
    install()
    work = commands()
    for command in work.values():  # the first run reads the disk and compiles
        once(command)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for number in range(asked.rounds):
        print(f"round {number + 1} of {asked.rounds}", end="\r", file=sys.stderr)
        for name, command in work.items():
            found[name].append(once(command))
    text = page(found, asked.rounds)
    asked.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
