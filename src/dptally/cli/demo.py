"""``make demo``: the account of a hospital's queries and of a training run, as a reviewer would want it."""

from __future__ import annotations

import time

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

import dptally as dp
from dptally.answers.assumptions import assumptions
from dptally.meaning import attacks
from dptally.numerics.shown import shown_down, shown_up

__all__ = ["main"]

DELTA = 1e-15


def main() -> None:
    """Print both accounts."""
    console = Console(highlight=False, width=None if Console().is_terminal else 120)
    started = time.perf_counter()
    counts, sums = 40 * dp.DiscreteLaplace(scale=20), 20 * dp.Gaussian(sigma=30.0)
    console.print(Panel("A hospital's year: 40 ward counts and 20 clipped sums on one dataset", style="bold"))
    _account(console, counts + sums, DELTA, "one patient")
    console.print(Panel("A model trained on the same records: DP-SGD, 2500 steps of a 0.4 % sample", style="bold"))
    _account(console, dp.dpsgd(noise_multiplier=1.1, sample_rate=0.004, steps=2500), DELTA, "one patient")
    _calibration(console)
    console.print(f"[dim]{time.perf_counter() - started:.1f} s. Next: dptally --help[/dim]")


def _account(console: Console, plan: dp.Mechanism, delta: float, unit: str) -> None:
    found = dp.compare(plan, delta)
    ends = plan.epsilon_interval(delta)
    for mechanism, count in plan.parts:
        console.print(f"  {count:>5} x {mechanism!r}", soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("framework")
    table.add_column("epsilon", justify="right")
    table.add_column("", justify="left")
    table.add_column("theorem", overflow="fold")
    for i, row in enumerate(found.rows):
        if row.epsilon is None:
            table.add_row(row.framework, "-", "", f"no answer: {row.reason}", style="dim")
        else:
            over = "optimal" if i == 0 else f"{row.epsilon / found.best.epsilon:.2f} x" if found.best.epsilon else ""
            table.add_row(row.framework, shown_up(row.epsilon), over, row.theorem, style="bold" if i == 0 else "")
    console.print(table)
    lower, upper = shown_down(ends.lower, 8), shown_up(ends.upper, 8)
    console.print(f"  [bold]certified: {lower} <= epsilon <= {upper}[/bold] at delta = {delta:g}, for {unit}")
    _meaning(console, plan)
    console.print("  assumptions")
    for line in assumptions(plan):
        console.print(f"    - {line}", soft_wrap=True)
    console.print()


def _meaning(console: Console, plan: dp.Mechanism) -> None:
    power = attacks.true_positive_rate(plan.directions(), 0.01)
    advantage = attacks.advantage(plan.directions())
    console.print("  what it means")
    console.print(
        f"    - an attacker with 1 % false positives finds at most {shown_up(100 * power, 4)} % of the members"
    )
    console.print(f"    - no attacker's TPR - FPR is above {shown_up(advantage, 4)}")


def _calibration(console: Console) -> None:
    sigma = dp.calibrate(lambda s: dp.dpsgd(s, 0.004, 2500), epsilon=1.0, delta=1e-6)
    console.print(
        f"  To train at epsilon 1, delta 1e-6 instead, the noise multiplier must be at least {shown_up(sigma)}."
    )


if __name__ == "__main__":
    main()
