"""What was run: one frozen law per file; declared guarantees; sampling; composition; JSON."""

from dptally.law.adjacency import ADD_REMOVE as ADD_REMOVE
from dptally.law.adjacency import REPLACE as REPLACE
from dptally.law.adjacency import Adjacency as Adjacency
from dptally.mechanisms.composed import Composed as Composed
from dptally.mechanisms.gaussian import Gaussian as Gaussian
from dptally.mechanisms.mechanism import Mechanism as Mechanism
