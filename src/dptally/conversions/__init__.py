"""One function per edge between definitions, each with its theorem, rounded to the safe side."""

from dptally.conversions.edges import EDGES as EDGES
from dptally.conversions.edges import Edge as Edge
from dptally.conversions.edges import edge as edge
