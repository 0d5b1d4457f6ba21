"""Plan a DP-SGD run: the noise it needs, when it must stop, and a picture of both."""

from __future__ import annotations

import dptally as dp
from dptally import report


def main() -> None:
    """Noise for epsilon 2, and how far the same noise could go on to epsilon 3."""
    delta, rate, steps = 1e-6, 0.01, 1000
    noise = dp.calibrate(lambda sigma: dp.dpsgd(sigma, rate, steps), epsilon=2.0, delta=delta)
    run = dp.dpsgd(noise, rate, steps)
    print(f"noise multiplier {noise:.4f} gives epsilon {run.epsilon_interval(delta)}")
    step = dp.dpsgd(noise, rate, 1)
    curve = report.epsilon_curve(step, [1000, 2000, 4000], delta, budget=3.0)
    print(f"stop after step {curve.stop} to stay within epsilon 3")
    report.saved(report.plot_steps(step, 4000, delta, budget=3.0, points=20), "training_budget.png")


if __name__ == "__main__":
    main()
