"""Pictures, cards, reports and tables: they draw and print the library's answers and compute no privacy themselves.

Every picture is one function ``plot_*(plan, ...) -> Axes``; matplotlib loads when one is called.
"""

from dptally.report.card import Card as Card
from dptally.report.card import card as card
from dptally.report.comparison import plot_compare as plot_compare
from dptally.report.figure import saved as saved
from dptally.report.gdpt import plot_gdpt as plot_gdpt
from dptally.report.loss import plot_loss as plot_loss
from dptally.report.nist import Checklist as Checklist
from dptally.report.nist import nist as nist
from dptally.report.noise import plot_noise as plot_noise
from dptally.report.paper import paper_table as paper_table
from dptally.report.profile import plot_profile as plot_profile
from dptally.report.registry import Record as Record
from dptally.report.registry import registry as registry
from dptally.report.renyi import plot_renyi as plot_renyi
from dptally.report.software import dptally_bibtex as dptally_bibtex
from dptally.report.steps import epsilon_curve as epsilon_curve
from dptally.report.steps import plot_steps as plot_steps
from dptally.report.tabular import Tabular as Tabular
from dptally.report.tabular import comparison_table as comparison_table
from dptally.report.tabular import curve_table as curve_table
from dptally.report.tabular import profile_table as profile_table
from dptally.report.tradeoff import plot_tradeoff as plot_tradeoff
