"""dptally beside its peers: the same work, one run, one table. Writes RESULTS.md.

Each tool lives in its own environment (their pins conflict), each call in its own process with a limit of processor
time and a memory limit. A tool that cannot be installed, fails, or does not offer the work is shown as such. README.md
gets its table from the same run.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import venv
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from workloads import WORKLOADS, Workload

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parent / ".venv-bench"
SAMPLED = frozenset({"sampled_gaussian", "gaussian"})
EVERY = SAMPLED | {"laplace", "randomized_response", "approx"}
MORE = EVERY | {"discrete_gaussian", "sampled_laplace"}

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}

Result = dict[str, Any]


@dataclass(frozen=True)
class Tool:
    """One method of one package: the environment it needs, the module that calls it, the work it offers."""

    package: str
    module: str
    method: str
    kinds: frozenset[str]
    calibrates: bool = False
    many: bool = False  # epsilons at many deltas of one composition

    @property
    def name(self) -> str:
        return f"{self.package}, {self.method}"

    @property
    def python(self) -> Path:
        return ENVIRONMENTS / self.package / "bin" / "python"

    def offers(self, work: Workload) -> bool:
        if work["ask"] == "sigma":
            return self.calibrates
        if work["ask"] == "epsilons" and not self.many:
            return False
        return {part["kind"] for part in work["parts"]} <= self.kinds


TOOLS = [
    Tool("dptally", "peer_dptally", "certified", MORE | {"exponential", "best_of"}, calibrates=True, many=True),
    Tool("dptally", "peer_dptally", "proof", EVERY),
    Tool("dp-accounting", "peer_dp_accounting", "PLD 1e-4", MORE | {"exponential"}, calibrates=True, many=True),
    Tool("dp-accounting", "peer_dp_accounting", "PLD 1e-5", MORE, many=True),
    Tool("dp-accounting", "peer_dp_accounting", "RDP", (MORE - {"approx"}) | {"best_of"}, calibrates=True, many=True),
    Tool("prv-accountant", "peer_prv", "error .1", EVERY - {"randomized_response"}),
    Tool("prv-accountant", "peer_prv", "error .01", EVERY - {"randomized_response"}),
    Tool("opacus", "peer_opacus", "PRV", SAMPLED, calibrates=True),
    Tool("opacus", "peer_opacus", "RDP", SAMPLED, calibrates=True),
    Tool("opacus", "peer_opacus", "GDP (CLT)", SAMPLED, calibrates=True),
    Tool("autodp", "peer_autodp", "RDP", EVERY - {"approx"}),
    Tool("autodp", "peer_autodp", "AFA", EVERY - {"approx"}),
    Tool("riskcal", "peer_riskcal", "CTD", SAMPLED),
    Tool("gdpnum", "peer_gdpnum", "CTD", SAMPLED),
    Tool("opendp", "peer_opendp", "composition", frozenset({"gaussian", "laplace"})),
]


def prepare(package: str) -> str:
    """Make the environment of a package once; "" or the reason why it could not be made."""
    home = ENVIRONMENTS / package
    if (home / ".ready").exists():
        return ""
    venv.create(home, with_pip=True)
    wanted = ["-r", str(HERE / f"requirements-{package}.txt")]
    if package == "dptally":
        wanted += ["-e", str(HERE.parent)]
    done = subprocess.run(
        [home / "bin" / "python", "-m", "pip", "install", "--quiet", *wanted],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip failed"]
        return lines[-1][:160]
    (home / ".ready").touch()
    return ""


def processor_seconds(process: int) -> float:
    """What a running process has used. (RLIMIT_CPU would end it too, but makes its own clock as coarse as ticks.)"""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(tool: Tool, work: Workload, limit: float) -> Result:
    """One call in its own process, with the load of the machine while it ran."""
    command = [tool.python, HERE / "peers" / "runner.py", tool.module, tool.method]
    pipe = subprocess.PIPE
    environment = {**os.environ, **ONE_THREAD}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment) as called:
        said: str | None = json.dumps(work)
        while True:
            try:
                out, errors = called.communicate(said, timeout=0.5)
                break
            except subprocess.TimeoutExpired:
                said = None
                if processor_seconds(called.pid) > limit:
                    called.kill()
                    return {"error": f"no answer in {limit:.0f} s"}
    lines = out.strip().splitlines()
    if called.returncode or not lines:
        last = (errors.strip().splitlines() or [f"ended with status {called.returncode}"])[-1]
        return {"error": last[:160]}
    answer: Result = json.loads(lines[-1])
    return {**answer, "load": os.getloadavg()[0]}


@dataclass
class Row:
    """Everything that one workload gave."""

    work: Workload
    results: dict[str, Result] = field(default_factory=dict)

    def reference(self) -> tuple[float, float, str] | None:
        """(lower, upper, source): the proof where there is one, else the certified interval."""
        for method in ("proof", "certified"):
            result = self.results.get(f"dptally, {method}", {})
            if "lower" in result and math.isfinite(result["upper"]):
                return result["lower"], result["upper"], method
        return None


def seconds(value: float) -> str:
    return f"{value * 1e3:.2g} ms" if value < 0.1 else f"{value:.2g} s"


def table(row: Row) -> list[str]:
    reference = row.reference()
    ours = row.results.get("dptally, certified", {}).get("best")
    lines = [
        "| tool | answer | certified width | error | time | times ours | memory |",
        "|---|---|---|---|---|---|---|",
    ]
    for tool in TOOLS:
        result = row.results.get(tool.name)
        if result is None:
            continue
        if "value" not in result:
            said = result.get("error") or f"not offered: {result['skipped']}"
            lines.append(f"| {tool.name} | {said.replace('|', '/')[:150]} | | | | | |")
            continue
        value = result["value"]
        width = f"{result['upper'] - result['lower']:.2g}" if "lower" in result else "none"
        ratio = f"{result['best'] / ours:.3g}" if ours else ""
        lines.append(
            f"| {tool.name} | {value:.13g} | {width} | {error(row, result, reference)} "
            f"| {seconds(result['best'])} | {ratio} | {result['peak']:.0f} MB |"
        )
    return lines


def error(row: Row, result: Result, reference: tuple[float, float, str] | None) -> str:
    """The distance of an answer from the reference; unsafe where all that the tool claims lies below it."""
    value, claimed = result["value"], result.get("upper", result["value"])
    if row.work["ask"] == "sigma":  # less noise than the least that is certified to be enough, beyond its 1e-8
        best = row.results.get("dptally, certified", {}).get("value")
        if best is None:
            return ""
        return f"**{value - best:+.2g}, unsafe**" if value < best * (1 - 1e-8) else f"{value - best:+.2g}"
    if reference is None:
        return ""
    lower, upper, _ = reference
    if claimed < lower:
        return f"**{value - lower:+.2g}, unsafe**"
    if value < lower:
        return f"{value - lower:+.2g}"
    return f"+{value - upper:.2g}" if value > upper else "inside"


IMPORTS = {
    "python alone": "pass",
    "numpy and scipy.special": "import numpy, scipy.special",
    "dptally": "import dptally",
    "dptally, first Gaussian epsilon": "import dptally; dptally.Gaussian(1.0).epsilon(delta=1e-5)",
}


def import_times() -> list[str]:
    """Whole processes, best of seven: what a command-line user waits for."""
    lines = ["| process | time | peak memory |", "|---|---|---|"]
    meter = (
        "import json, resource, time; start = time.process_time(); {code}; "
        "used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; "
        "print(json.dumps([time.process_time() - start, used / 1024]))"
    )
    for name, code in IMPORTS.items():
        seen = []
        for _ in range(7):
            command = [ENVIRONMENTS / "dptally" / "bin" / "python", "-c", meter.format(code=code)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                seen.append(json.loads(done.stdout))
        if seen:
            lines.append(f"| {name} | {seconds(min(s[0] for s in seen))} | {min(s[1] for s in seen):.0f} MB |")
    return lines


def report(rows: list[Row], missing: dict[str, str], versions: dict[str, str], imports: list[str]) -> str:
    loads = [result["load"] for row in rows for result in row.results.values() if "load" in result] or [0.0]
    head = [
        "# Benchmarks: dptally beside its peers",
        "",
        "Written by `make bench`; do not edit. One run, one machine, each call in its own process.",
        "Time: processor time on one thread, the best of up to seven calls in a warm process, each with parameters",
        "that were not asked for before (moved by 1e-12), imports not counted. Memory: peak resident size of the",
        "process. Certified width: upper minus lower bound, where the tool gives both. Error: distance from the",
        "reference interval (proof mode where it answers, else the certified interval);",
        "unsafe: the answer, or the upper bound where the tool gives one, is below the reference, so privacy",
        "is claimed that is not there. Noise for a target: the error is against dptally's answer, whose epsilon",
        "is certified.",
        "",
        f"- date: {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"{platform.machine()}, load {min(loads):.1f} to {max(loads):.1f}",
        "- versions: " + ", ".join(f"{name} {number}" for name, number in sorted(versions.items())),
    ]
    head += [f"- {name} could not be installed: {reason}" for name, reason in missing.items()]
    body: list[str] = []
    for row in rows:
        found = row.reference()
        body += ["", f"## {row.work['name']}", ""]
        if found and row.work["ask"] != "sigma":
            body += [f"Reference ({found[2]}): [{found[0]:.15g}, {found[1]:.15g}]", ""]
        body += table(row)
    return "\n".join([*head, "", "## Import", "", *imports, *body, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    parser.add_argument("--tools", default="", help="comma-separated packages (dptally is always run)")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of processor time for one call")
    parser.add_argument("--keep", type=Path, help="answers of earlier pieces of this run: read, not asked again, added")
    parser.add_argument("--out", type=Path, default=HERE / "RESULTS.md")
    chosen = parser.parse_args()
    packages = {"dptally", *filter(None, chosen.tools.split(","))} if chosen.tools else {tool.package for tool in TOOLS}
    console = Console()
    missing: dict[str, str] = {}
    with console.status("environments") as status:
        for package in sorted(packages):
            status.update(f"environment of {package}")
            reason = prepare(package)
            if reason:
                missing[package] = reason
                console.print(f"{package} skipped: {reason}")
    tools = [tool for tool in TOOLS if tool.package in packages - set(missing)]
    rows = [Row(work) for work in WORKLOADS if chosen.only in work["name"]]
    cells = [(row, tool) for row in rows for tool in tools if tool.offers(row.work)]
    versions: dict[str, str] = {}
    kept: dict[str, Result] = {}
    if chosen.keep and chosen.keep.exists():
        kept = json.loads(chosen.keep.read_text())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(cells))
        for row, tool in cells:
            progress.update(task, description=f"{row.work['name'][:44]:44} {tool.name[:26]:26}")
            key = f"{row.work['name']}: {tool.name}"
            result = kept.get(key) or run(tool, row.work, chosen.limit)
            if chosen.keep:
                kept[key] = result
                chosen.keep.write_text(json.dumps(kept))
            row.results[tool.name] = result
            versions[tool.package] = result.get("version", versions.get(tool.package, ""))
            said = result.get("value", result.get("error", result.get("skipped")))
            took = f"  {seconds(result['best'])}" if "best" in result else ""
            progress.console.print(f"{row.work['name']}: {tool.name}: {said}{took}", markup=False)
            progress.advance(task)
    chosen.out.write_text(report(rows, missing, versions, import_times()), encoding="utf-8")
    console.print(f"written: {chosen.out}")
    if any("value" not in row.results.get("dptally, certified", {}) for row in rows):
        console.print("[red]dptally itself failed on some work")
        sys.exit(1)


if __name__ == "__main__":
    main()
