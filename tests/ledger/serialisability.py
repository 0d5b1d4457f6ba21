"""A checker of recorded histories: is there an order of the operations, respecting real time, in which every
answer is what the model of the account answers?

This is strict serialisability for an account: each operation has an interval (it was called, it returned), an
answer, and a model step. The search places operations one after the other, only ever one whose call comes
before every return that is still outstanding, and remembers the states it has been to (Wing, Gong 1993; Lowe
2017). An operation whose answer was lost (a crash, a killed connection) may have happened at any later time, or
never. It shares no code with the library.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """A spend of ``cost`` under ``key``; ``answer`` is "paid", "replayed", "refused", or "lost"."""

    called: float
    returned: float
    key: str
    cost: int
    answer: str
    number: int = 0  # of the entry, where one came back


@dataclass(frozen=True, slots=True)
class Account:
    """The model: a cap, what is spent, and the keys that paid, in the order of their entries."""

    cap: int
    spent: int = 0
    paid: tuple[str, ...] = ()

    def after(self, operation: Operation) -> list[Account]:
        """The states in which the model can be after giving this answer; none if it cannot give it."""
        known = operation.key in self.paid
        fits = self.spent + operation.cost <= self.cap
        made = Account(self.cap, self.spent + operation.cost, (*self.paid, operation.key))
        if operation.answer == "lost":
            return [self, *([made] if fits and not known else [])]
        if operation.answer == "replayed":
            return [self] if known else []
        if operation.answer == "refused":
            return [self] if not known and not fits else []
        return [made] if not known and fits else []


def explained(history: Sequence[Operation], start: Account, end: tuple[str, ...] | None = None) -> bool:
    """Whether some serial order explains every answer, and leads to the entries that were found at the end."""
    operations = sorted(history, key=lambda operation: operation.called)
    returns = [math.inf if operation.answer == "lost" else operation.returned for operation in operations]
    every = (1 << len(operations)) - 1
    seen: set[tuple[int, Account]] = set()
    stack: list[tuple[int, Account]] = [(0, start)]
    while stack:
        done, state = stack.pop()
        if (done, state) in seen or (end is not None and state.paid != end[: len(state.paid)]):
            continue
        seen.add((done, state))
        if done == every and (end is None or state.paid == end):
            return True
        outstanding = min((returns[i] for i in range(len(operations)) if not done >> i & 1), default=math.inf)
        for i, operation in enumerate(operations):
            if operation.called > outstanding:
                break  # sorted by call: nobody after this one may come first
            if not done >> i & 1:
                stack += [(done | 1 << i, following) for following in state.after(operation)]
    return False
