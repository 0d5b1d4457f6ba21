"""How many questions a second ``dptally serve`` answers on loopback, for a bounded time, and how long a slider waits.

A new question has another noise multiplier, so that nothing is remembered; a known one was asked before. A slider asks
one question after another, each for an epsilon with its pictures. The client is a process of its own with one
connection for each thread, on the same cores. On Linux the processor time of an answer is told as well, of the server
with its workers: it says what a machine could do that has nothing else to do, and the wall clock what this one did.

    python benchmarks/bench_page.py --seconds 10
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each round takes")
    parser.add_argument("--clients", type=int, default=8, help="connections at a time")
    asked = parser.parse_args()
    port = free_port()
    command = [sys.executable, "-m", "dptally", "serve", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            wait_for(port, server)
            new, known = fresh(), itertools.cycle(list(itertools.islice(fresh(), 20)))
            for name, path, questions, clients in (
                ("new questions", "/api/epsilon", new, asked.clients),
                ("known questions", "/api/epsilon", known, asked.clients),
                ("a slider", "/part/quick", new, 1),
            ):
                before = processor_time(server.pid)
                found = round_of(port, path, questions, asked.seconds, clients)
                spent = processor_time(server.pid) - before
                print(
                    report(name, *found) + f"; {1e3 * spent / len(found[1]):.1f} ms of processor time each", flush=True
                )
        finally:
            server.terminate()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end, Python {sys.version.split()[0]}")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_for(port: int, server: subprocess.Popen[bytes], patience: float = 60.0) -> None:
    end = time.monotonic() + patience
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api/epsilon", timeout=30).close()
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    sys.exit("the server does not answer")


def processor_time(pid: int) -> float:
    """The seconds that a process and all below it have used; 0 where the system does not tell."""
    parents, used = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        parents[int(entry.parent.name)] = int(fields[1])
        used[int(entry.parent.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    family: set[int] = {pid}
    while found := {child for child, parent in parents.items() if parent in family and child not in family}:
        family |= found
    return sum(used.get(member, 0.0) for member in family)


def fresh() -> Iterator[str]:
    """DP-SGD runs, each with another noise multiplier."""
    for number in itertools.count():
        yield urlencode({"noise": f"{0.8 + number * 1e-5:.5f}", "rate": "0.01", "steps": "1000", "delta": "1e-5"})


def round_of(
    port: int, path: str, questions: Iterator[str], seconds: float, clients: int
) -> tuple[float, list[float], dict[int, int]]:
    """How long the round took, the seconds of each answer, and how often each status came."""
    lock, end = threading.Lock(), time.monotonic() + seconds
    times: list[float] = []
    statuses: dict[int, int] = {}

    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while time.monotonic() < end:
            with lock:
                question = next(questions)
            start = time.perf_counter()
            connection.request("GET", f"{path}?{question}")
            answer = connection.getresponse()
            body = answer.read()
            took = time.perf_counter() - start
            assert answer.status != 200 or b"epsilon" in body
            with lock:
                statuses[answer.status] = statuses.get(answer.status, 0) + 1
                if answer.status == 200:
                    times.append(took)
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic() - start, times, statuses


def report(name: str, whole: float, times: list[float], statuses: dict[int, int]) -> str:
    others = {status: n for status, n in statuses.items() if status != 200}
    middle, late = statistics.median(times), statistics.quantiles(times, n=100)[98]
    text = f"{name}: {len(times) / whole:.0f} answers a second; "
    text += f"median {1e3 * middle:.0f} ms, 99 in 100 within {1e3 * late:.0f} ms"
    return f"{text}; other statuses {others}" if others else text


if __name__ == "__main__":
    main()
