"""Pure differential privacy: the losses' suprema add.  [Dwork, McSherry, Nissim, Smith 2006; basic
composition]
"""

from __future__ import annotations

import math

from dptally import checks
from dptally.accounting.answer import Answer, larger
from dptally.accounting.moments import Asked, checked, infinity_mass, supremum
from dptally.errors import Unanswerable
from dptally.law import Composition

__all__ = ["delta", "epsilon"]

_THEOREM = "basic composition: Dwork, McSherry, Nissim, Smith 2006; Mironov 2017, Sec. II"


def epsilon(plan: Asked, delta: float = 0.0) -> Answer:
    """Sum over the steps of sup L: holds with delta = 0, hence at every delta. Pure DP makes no use of
    ``delta``.
    """
    checks.probability("delta", delta)
    return _composed(plan)


def delta(plan: Asked, epsilon: float) -> Answer:
    """0 where ``epsilon`` is at least the composed epsilon; below it pure DP by itself makes no promise."""
    epsilon = checks.nonnegative("epsilon", epsilon)
    needed = _composed(plan)
    if epsilon < needed.value:
        raise Unanswerable(
            f"the plan is {needed.value!r}-DP and pure DP says nothing at the smaller epsilon {epsilon!r}; "
            "ask the approximate framework, which converts it"
        )
    return Answer(0.0, "pure", _THEOREM)


def _composed(plan: Asked) -> Answer:
    return larger([_one(composition) for composition in checked(plan)])


def _one(composition: Composition) -> Answer:
    total = supremum(composition)
    if infinity_mass(composition)[1] > 0:
        raise Unanswerable(
            "the loss is infinite with positive probability, so no pure epsilon exists; ask another "
            "framework with delta > 0"
        )
    if math.isinf(total):
        raise Unanswerable("the loss is unbounded, so no pure epsilon exists; use plan.epsilon(delta) with delta > 0")
    return Answer(total, "pure", _THEOREM, None, f"{composition.steps} steps")
