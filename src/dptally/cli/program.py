"""``dptally``: the group of commands, and what happens to errors.

Exit codes: 0 answered, 1 a target was missed or a claim refuted, 2 the input cannot be used, 3 a claim is not
determined or a spend is over the budget of the ledger. Commands load when they are called, so that an answer does not
wait for what it does not need.
"""

from __future__ import annotations

import importlib
import os
import sys

import click

import dptally
from dptally.cli.exits import code_of, refused
from dptally.cli.suggestions import Suggesting
from dptally.errors import DptallyError

__all__ = ["cli", "run"]

#: command -> (module, function, one line)
COMMANDS = {
    "epsilon": ("answers", "epsilon", "Epsilon of a plan at a delta, with both certified ends."),
    "delta": ("answers", "delta", "Delta of a plan at an epsilon, with both certified ends."),
    "dpsgd": ("training", "dpsgd", "Epsilon of a DP-SGD training run."),
    "batching": ("batching", "batching", "What each way of drawing batches costs."),
    "calibrate": ("searches", "calibrate", "The smallest noise (or other open value) that meets a target."),
    "curve": ("searches", "curve", "Epsilon after 1, 2, ... steps, and where a budget stops."),
    "convert": ("definitions", "convert", "What a guarantee is worth in another definition."),
    "gdp": ("definitions", "gdp", "The smallest mu of Gaussian DP."),
    "adp": ("statements", "adp", "Alpha-divergence DP: the smallest epsilon or noise of Gaussian queries."),
    "group": ("statements", "group", "What a plan guarantees to several records together."),
    "outcomes": ("statements", "outcomes", "How much likelier an outcome can become by one record."),
    "risk": ("meanings", "risk", "What an attacker can achieve against a plan."),
    "explain": ("meanings", "explain", "The answer with its route, theorems, assumptions and sources."),
    "plot": ("drawings", "plot", "Plots of a plan (PNG or SVG)."),
    "card": ("drawings", "card", "A one-page guarantee card (Markdown, HTML or JSON)."),
    "report": ("reports", "report", "A plan in the forms that registries, NIST and papers take."),
    "check": ("checks", "check", "A second opinion on somebody's claim."),
    "audit": ("audits", "audit", "Try to refute a claim from runs of an implementation."),
    "release": ("releases", "release", "Answer questions about a table privately, paid from a ledger."),
    "ledger": (
        "ledger_commands",
        "group",
        "Keep a privacy budget that cannot be overspent or quietly edited.",
    ),
    "serve": ("serving", "serve", "The page: all of this in a browser, on this machine."),
    "completion": ("completions", "completion", "Print the completion script of a shell."),
}


class Commands(Suggesting):
    """A group that knows its commands by name and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, function, _ = COMMANDS[cmd_name]
        found: click.Command = getattr(importlib.import_module(f"dptally.cli.{module}"), function)
        return found

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The names that a plan may use, from the registry."""
        from dptally.mechanisms.registry import plan_usages

        with formatter.section("Names in a plan"):
            for line in plan_usages():
                formatter.write_text(line)
        super().format_epilog(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """From the table above: help does not import every command."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        from dptally.numerics.compiled import described

        click.echo(f"dptally, version {dptally.__version__} (compiled kernel: {described()})")
        ctx.exit()


@click.group(cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version.")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """How much privacy a differentially private computation spends, with proof-grade certainty.

    PLAN is a text such as "50*laplace(scale=5) + 10*gaussian(sigma=10)", a file (@plan.toml, plan.json), or -
    for the standard input. Every command has --json and its own --help.

    \b
    Examples:
      dptally epsilon "1000 * poisson(gaussian(1.0), 0.01)" --delta 1e-5
      dptally epsilon "50*laplace(scale=5) + 10*gaussian(sigma=10)" --delta 1e-15 --compare
      dptally calibrate "1000*poisson(gaussian(SIGMA), 0.01)" --epsilon 1 --delta 1e-6

    Exit codes: 0 answered, 1 target missed or claim refuted, 2 bad input, 3 undetermined or over budget in the ledger.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _hint(error: click.NoSuchOption) -> str:
    if error.option_name[1:2].isdigit():  # "-3*gaussian(1)" is no option, and no plan either
        return "; a plan cannot begin with a minus sign"
    if error.possibilities or error.ctx is None:
        return ""
    return f"; see {error.ctx.command_path} --help"


def run(arguments: list[str] | None = None) -> int:
    """Run the program and give its exit code; every expected error is one line on stderr, and with --json one object
    on stdout too.
    """
    as_json = "--json" in (sys.argv[1:] if arguments is None else arguments)
    try:
        # NO_COLOR, not empty, takes colour and weight away also where a terminal could show them
        color = False if os.environ.get("NO_COLOR") else None
        code = cli.main(arguments, prog_name="dptally", standalone_mode=False, color=color)
    except click.NoSuchOption as error:
        return refused(error.format_message().rstrip(".") + _hint(error), error.exit_code, as_json)
    except click.ClickException as error:
        return refused(error.format_message(), error.exit_code, as_json)
    except click.Abort:
        return refused("stopped", 130, as_json)
    except DptallyError as error:
        pointed = getattr(error, "pointed", None)
        place = "\n" + pointed() if pointed is not None and sys.stderr.isatty() else ""
        return refused(f"{error}{place}", code_of(error), as_json)
    except OSError as error:  # a file that cannot be written, a closed pipe
        return refused(f"{error.filename or 'output'}: {error.strerror}", 2, as_json)
    return code if isinstance(code, int) else 0
