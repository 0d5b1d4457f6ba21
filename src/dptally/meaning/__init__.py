"""What the number means: bad outcomes, Bayes factors, attacks and trade-offs.

Groups of records: ``dptally.conversions`` says how a guarantee for one record becomes one for several.
"""

from dptally.meaning import attacks as attacks
from dptally.meaning import bayes as bayes
from dptally.meaning import outcomes as outcomes
