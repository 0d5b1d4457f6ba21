"""The picture in README.md: one DP-SGD run, epsilon over delta. Run ``python papers/readme_picture.py``."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from exhibit import BLUE, GREY, INK, RED, figure, label

import dptally as dp
from dptally.accounting import gaussian, renyi

NOISE, RATE, STEPS = 1.0, 0.01, 1000


def main() -> None:
    plan = dp.dpsgd(noise_multiplier=NOISE, sample_rate=RATE, steps=STEPS)
    exponents = np.array([2, 3, 4, 5, 6, 8, 10, 12, 14, 17, 20, 25, 30])
    deltas = 10.0**-exponents
    boxes = [plan.epsilon_interval(float(d)) for d in deltas]
    width = max(box.width / box.upper for box in boxes)
    limit = RATE * math.sqrt(STEPS * math.expm1(NOISE**-2))  # the central-limit mu of Gaussian DP
    drawn, (panel,) = figure(width=7.4, height=4.0)
    panel.plot(exponents, [renyi.epsilon(plan.directions(), float(d), "mironov").value for d in deltas],
               color=BLUE, ls="--", label="Renyi DP (Mironov)")  # fmt: skip
    panel.plot(exponents, [renyi.epsilon(plan.directions(), float(d)).value for d in deltas],
               color=RED, ls="-.", label="Renyi DP, tightest conversion")  # fmt: skip
    panel.plot(exponents, [box.upper for box in boxes], color=INK, lw=2.2, marker="o", ms=3.5,
               label=f"dptally: certified, ends 1e{math.ceil(math.log10(width))} apart")  # fmt: skip
    panel.plot(exponents, [gaussian.epsilon_mu(limit, float(d)) for d in deltas], color=GREY, ls=":", lw=2,
               label="central limit: not a bound, too small")  # fmt: skip
    panel.set_xticks([5, 10, 15, 20, 25, 30], [f"1e-{k}" for k in (5, 10, 15, 20, 25, 30)])
    label(panel, f"DP-SGD: noise {NOISE:g}, sample rate {RATE:g}, {STEPS} steps", "delta", "epsilon")
    path = Path(__file__).resolve().parent.parent / "docs" / "img" / "dpsgd.png"
    drawn.savefig(path, dpi=110, metadata={"Software": None})
    print(path, path.stat().st_size, [box.upper for box in boxes])


if __name__ == "__main__":
    main()
