"""A real training run with opacus and dptally's accountant, which stops at the step before the budget.

One word is changed: ``PrivacyEngine(accountant="dptally")``. Data are made on the spot; it takes a few seconds.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import opacus
import torch
from opacus import PrivacyEngine
from opacus.accountants import create_accountant
from opacus.accountants.utils import get_noise_multiplier

import dptally as dp
import dptally.interop.opacus  # registers "dptally"
from dptally.interop.training import StopAt

EPSILON, DELTA, NOISE, BATCH, RECORDS = 2.0, 1e-5, 1.0, 64, 4096


def data(seed: int = 7) -> torch.utils.data.TensorDataset:
    """Two clouds of points in ten dimensions."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 2, (RECORDS,), generator=generator)
    points = torch.randn(RECORDS, 10, generator=generator) + 1.2 * labels[:, None].float() - 0.6
    return torch.utils.data.TensorDataset(points, labels)


def train(say: list[str]) -> PrivacyEngine:
    """Train until the next step would pass the budget."""
    torch.manual_seed(11)
    model = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    loader = torch.utils.data.DataLoader(data(), batch_size=BATCH)
    engine = PrivacyEngine(accountant="dptally")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=NOISE, max_grad_norm=1.0
    )
    stop = StopAt(EPSILON, DELTA, engine, noise_multiplier=NOISE, sample_rate=1 / len(loader))
    say.append(f"budget: epsilon {EPSILON} at delta {DELTA:g}; {stop.steps_left()} steps fit")
    steps = 0
    while not stop.reached:
        for points, labels in loader:
            if stop.reached:
                break
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(points), labels)
            loss.backward()
            optimizer.step()
            steps += 1
            if steps % 100 == 0:
                say.append(f"step {steps:5d}  loss {loss.item():.3f}  epsilon {engine.get_epsilon(DELTA):.6f}")
    right = sum((model(points).argmax(1) == labels).sum().item() for points, labels in [data()[:]])
    say.append(f"stopped after {steps} steps, accuracy {right / RECORDS:.3f}")
    return engine


def report(engine: PrivacyEngine, say: list[str]) -> None:
    """What was spent, what one more step would have spent, and what opacus' own accountants say."""
    plan = dp.from_opacus(engine.accountant)
    box = plan.epsilon_interval(DELTA)
    ((noise, rate, steps),) = engine.accountant.history
    more = dp.dpsgd(noise, rate, steps + 1).epsilon_interval(DELTA)
    say.append(f"spent:         certified {box.lower:.9f} <= epsilon <= {box.upper:.9f}")
    say.append(f"one step more: certified {more.lower:.9f} <= epsilon <= {more.upper:.9f}")
    for name in ("rdp", "prv", "gdp"):
        other = create_accountant(name)
        other.history = list(engine.accountant.history)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            say.append(f"opacus {name}:    epsilon {other.get_epsilon(DELTA):.6f}")
    for name in ("rdp", "prv", "dptally"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = get_noise_multiplier(
                target_epsilon=EPSILON,
                target_delta=DELTA,
                sample_rate=rate,
                steps=steps,
                accountant=name,
                epsilon_tolerance=1e-4,
            )
        say.append(f"noise for the same run by get_noise_multiplier(accountant={name!r}): {found:.6f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path, help="write the log here too")
    given = parser.parse_args()
    say = [f"opacus {opacus.__version__}, torch {torch.__version__}, dptally {dp.__version__}"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = train(say)
    report(engine, say)
    print("\n".join(say))
    if given.log:
        given.log.write_text("\n".join(say) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
