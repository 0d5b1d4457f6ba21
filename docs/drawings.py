"""Draw the manual's small pictures, light and dark: ``python docs/drawings.py`` writes docs/img/*.svg."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

import dptally as dp
from dptally.accounting.tradeoff import detection_curve
from dptally.answers.batching import batching
from dptally.numerics.shown import shown_up
from dptally.report import svg

IMAGES = Path(__file__).resolve().parent / "img"
SCHEMES = {"light": "#1b1f24", "dark": "#dde1e6"}
RUN = dp.dpsgd(noise_multiplier=1.0, sample_rate=0.01, steps=1000)


def frameworks() -> str:
    """Forty counts of a hospital's year under every framework."""
    rows = dp.compare(40 * dp.DiscreteGaussian(sigma=49), delta=1e-15).rows
    bars = [svg.Bar(row.framework, row.epsilon, shown_up(row.epsilon, 4)) for row in rows if row.epsilon is not None]
    return svg.bars(bars, "epsilon of forty counts, by framework", 560)


def meaning() -> str:
    """What an attacker finds, for three budgets."""
    rates = np.logspace(-4, 0, 61)
    lines = []
    for tone, mu in enumerate((0.5, 1.0, 2.0)):
        found = detection_curve(dp.GaussianDP(mu).directions(), rates)[0]
        points = list(zip(rates.tolist(), np.minimum(found, 1.0).tolist(), strict=True))
        lines.append(svg.Line(points, f"mu = {mu:g}", tone))
    lines.append(svg.Line([(1e-4, 1e-4), (1.0, 1.0)], "guessing", 4))
    x, y = svg.Axis("false-positive rate", 1e-4, 1.0, log=True), svg.Axis("members found, at most", 1e-4, 1.0, log=True)
    return svg.chart(lines, x, y, "largest true-positive rate against the false-positive rate", rising=True)


def calibration() -> str:
    """The noise that meets each target."""
    targets = (0.3, 0.5, 0.8, 1.2, 2.0, 3.0, 5.0, 8.0)
    points = [(e, dp.calibrate(lambda s: dp.dpsgd(s, 0.01, 1000), epsilon=e, delta=1e-5)) for e in targets]
    x, y = svg.Axis("target epsilon", 0.3, 8.0, log=True), svg.Axis("noise multiplier", 0.0, 4.0)
    return svg.chart([svg.Line(points)], x, y, "the smallest noise that certainly meets a target epsilon")


def loaders() -> str:
    """One epoch of batches, drawn in every way."""
    rows = batching(0.8, 60_000, 600, 1, 1e-5)
    bars = [svg.Bar(r.name, r.epsilon.upper, shown_up(r.epsilon.upper, 4)) for r in rows if r.epsilon is not None]
    return svg.bars(bars, "epsilon of one epoch, by the way of drawing batches", 480)


def ledger() -> str:
    """A year's budget as it is spent."""
    spent, points = 0.0, [(0.0, 0.0)]
    for query in range(1, 41):
        spent += dp.DiscreteGaussian(sigma=49).rho()
        points.append((float(query), spent))
    cap = [(0.0, 0.008351), (44.0, 0.008351)]
    x, y = svg.Axis("queries", 0.0, 44.0), svg.Axis("rho spent", 0.0, 0.0095)
    lines = [svg.Line(points, "spent", 0), svg.Line(cap, "the board's budget", 1)]
    return svg.chart(lines, x, y, "rho spent by forty counts, below the budget", rising=True)


def tables() -> str:
    """How wide the error bars of a count are, by how many groups a person counts in, for one price."""
    rows = []
    with TemporaryDirectory() as folder, dp.Ledger.open(f"sqlite:///{folder}/budget.db", create=True) as ledger:
        ledger.create("visits", budget=dp.ZCDP(0.5), unit="person:patient")
        frame = pa.table({"patient": [1], "ward": ["A"]})
        for most in (1, 2, 5, 10, 20):
            study = dp.Session(dp.Table(frame, person="patient", max_groups=most), ledger=ledger, dataset="visits")
            query = study.group_by("ward", keys=[chr(65 + ward) for ward in range(20)]).persons()
            width = query.preview(dp.ZCDP(0.005))["persons"].half_width
            rows.append(svg.Spread(f"{most} group{'s' * (most > 1)}", 0.0, -width, width, f"± {width:g}"))
    return svg.spreads(rows, "error bars of a count at rho 0.005, by the groups that a person counts in", 480)


def profile() -> str:
    """The whole guarantee of a DP-SGD run."""
    deltas = [10.0 ** (-power / 2) for power in range(2, 31)]
    points = list(zip(RUN.epsilon(deltas).tolist(), deltas, strict=True))
    mark = svg.Mark(RUN.epsilon(1e-5), 1e-5, f"epsilon {shown_up(RUN.epsilon(1e-5), 5)} at delta 1e-5")
    x, y = svg.Axis("epsilon", 0.0, 5.0), svg.Axis("delta", 1e-15, 0.1, log=True)
    return svg.chart([svg.Line(points)], x, y, "delta against epsilon of a DP-SGD run", [mark])


DRAWN: tuple[Callable[[], str], ...] = (frameworks, meaning, calibration, loaders, ledger, tables, profile)


def main() -> None:
    for draw in DRAWN:
        made = draw()
        for scheme, ink in SCHEMES.items():
            text = made.replace("<svg ", f'<svg color="{ink}" ', 1)
            (IMAGES / f"{draw.__name__}-{scheme}.svg").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
