"""A table of answers in the forms that papers and notebooks take: LaTeX, Markdown, CSV, pandas."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dptally.answers.compare import Comparison
from dptally.errors import InvalidArgument, MissingExtra
from dptally.mechanisms import Mechanism
from dptally.numerics.shown import shown_down, shown_up
from dptally.report.steps import StepCurve

__all__ = ["FORMS", "Tabular", "comparison_table", "curve_table", "profile_table"]

Cell = str | int | float | None
_LATEX = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}"}
_LATEX |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}"}


@dataclass(frozen=True, slots=True)
class Tabular:
    """Columns and rows. Text forms round numbers up, but those of the columns in ``lower`` down and those in
    ``stated`` not at all; CSV and pandas hold the doubles themselves.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    lower: tuple[str, ...] = ()
    stated: tuple[str, ...] = ()

    def to_markdown(self) -> str:
        lines = [f"| {' | '.join(self.columns)} |", f"|{'---|' * len(self.columns)}"]
        lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in self._texts()]
        return "\n".join(lines) + "\n"

    def to_latex(self) -> str:
        """A ``tabular`` with rules of the package booktabs."""
        sides = "".join("r" if self._numeric(i) else "l" for i in range(len(self.columns)))
        lines = [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", self._line(self.columns), r"\midrule"]
        lines += [self._line(row) for row in self._texts()]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])

    def to_csv(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([["" if cell is None else cell for cell in row] for row in self.rows])
        return out.getvalue()

    def to_dict(self) -> dict[str, Any]:
        rows = [{name: _plain(cell) for name, cell in zip(self.columns, row, strict=True)} for row in self.rows]
        return {"caption": self.caption, "rows": rows}

    def to_pandas(self) -> Any:
        """A pandas DataFrame; pandas loads now."""
        try:
            import pandas
        except ImportError:
            raise MissingExtra("pandas") from None
        return pandas.DataFrame(list(self.rows), columns=list(self.columns))

    def text(self, form: str) -> str:
        """The table as ``form``: markdown, latex or csv."""
        if form not in FORMS:
            raise InvalidArgument("form", f"one of {', '.join(FORMS)}", form)
        return str({"markdown": self.to_markdown, "latex": self.to_latex, "csv": self.to_csv}[form]())

    def _texts(self) -> Iterable[list[str]]:
        return ([self._text(*pair) for pair in zip(self.columns, row, strict=True)] for row in self.rows)

    def _text(self, column: str, cell: Cell) -> str:
        if cell is None:
            return "-"
        if not isinstance(cell, float):
            return str(cell)
        if column in self.stated:
            return f"{cell:g}"
        return shown_down(cell) if column in self.lower else shown_up(cell)

    def _line(self, cells: Iterable[str]) -> str:
        return " & ".join("".join(_LATEX.get(c, c) for c in cell) for cell in cells) + r" \\"

    def _numeric(self, column: int) -> bool:
        cells = [row[column] for row in self.rows if row[column] is not None]
        return bool(cells) and all(isinstance(cell, (int, float)) for cell in cells)


FORMS = ("markdown", "latex", "csv")


def comparison_table(found: Comparison) -> Tabular:
    """Every framework's epsilon.

    >>> import dptally as dp
    >>> comparison_table(dp.compare(dp.Gaussian(1.0), 1e-5)).to_csv().splitlines()[0]
    'framework,epsilon,order,theorem'
    """
    rows: list[tuple[Cell, ...]] = [
        (row.framework, row.epsilon, row.order, row.theorem if row.epsilon is not None else f"no answer: {row.reason}")
        for row in found.rows
    ]
    return Tabular(
        ("framework", "epsilon", "order", "theorem"), tuple(rows), f"{found.plan!r} at delta {found.delta!r}"
    )


def curve_table(curve: StepCurve) -> Tabular:
    """Epsilon after each number of steps."""
    rows = tuple(zip(curve.steps, curve.epsilons, strict=True))
    return Tabular(("steps", "epsilon"), rows, f"{curve.plan!r} at delta {curve.delta!r}")


def profile_table(plan: Mechanism, deltas: Sequence[float]) -> Tabular:
    """Both certified ends of epsilon at each delta."""
    boxes = [(delta, plan.epsilon_interval(delta)) for delta in deltas]
    rows = tuple((delta, box.lower, box.upper) for delta, box in boxes)
    columns = ("delta", "epsilon at least", "epsilon at most")
    return Tabular(columns, rows, repr(plan), lower=("epsilon at least",), stated=("delta",))


def _plain(cell: Cell) -> Cell:
    return "inf" if isinstance(cell, float) and math.isinf(cell) else cell
