"""The abstract law of a privacy loss: all that accounting may know of a mechanism."""

from dptally.law.composition import Composition as Composition
from dptally.law.law import Law as Law
from dptally.law.law import MomentBound as MomentBound
