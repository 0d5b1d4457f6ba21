"""Laws: a ledger behaves like a small model of itself under any mix of spends, retries and crashes."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

import dptally as dp
from dptally.errors import BudgetExceeded, KeyReused, NotReleasable
from dptally.ledger import Ledger, Receipt, Request

CAP = 64  # costs are counted in 64ths, which doubles hold exactly
ANN = 24  # Ann's own cap


@dataclass
class Spend:
    """What the model remembers of one spend."""

    cost: int
    by: str
    part: str
    key: str | None
    state: str = "reserved"
    value: object = None


class LedgerMachine(RuleBasedStateMachine):
    """Two handles on one file stand for two processes."""

    receipts = Bundle("receipts")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.url = f"sqlite:///{self.folder}/x.db"
        self.handles = [Ledger.open(self.url, create=True), Ledger.open(self.url, create=True)]
        self.model: dict[str, list[Spend]] = {}
        self.head = self.handles[0].head()

    def teardown(self) -> None:
        self.handles[0].verify()
        for handle in self.handles:
            handle.close()
        shutil.rmtree(self.folder)

    # -- the model -------------------------------------------------------------------------------------------

    def owed(self, dataset: str, by: str | None = None) -> int:
        mine = [spend for spend in self.model[dataset] if by is None or spend.by == by]
        whole = sum(spend.cost for spend in mine if not spend.part)
        parts = [sum(spend.cost for spend in mine if spend.part == part) for part in "AB"]
        return whole + max(parts)

    def fits(self, dataset: str, spends: list[Spend]) -> bool:
        before = list(self.model[dataset])
        self.model[dataset] = before + spends
        fits = self.owed(dataset) <= CAP and self.owed(dataset, "ann") <= ANN
        self.model[dataset] = before
        return fits

    # -- the rules -------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(["x", "y"]), which=st.integers(0, 1))
    def create(self, name: str, which: int) -> None:
        make = lambda: self.handles[which].create(  # noqa: E731
            name, budget=dp.PureDP(1.0), allowance=0, analysts={"ann": dp.PureDP(ANN / CAP)}, parts={"ward": ["A", "B"]}
        )
        make()  # again with the same terms it changes nothing
        if name in self.model:
            with pytest.raises(dp.LedgerError):
                self.handles[which].create(name, budget=dp.PureDP(1.0), allowance=0)
        self.model.setdefault(name, [])

    asked = st.tuples(
        st.integers(0, 20),
        st.sampled_from(["ann", "bob"]),
        st.sampled_from(["", "A", "B"]),
        st.one_of(st.none(), st.sampled_from(["k0", "k1", "k2", "k3"])),
    )

    @staticmethod
    def request(spend: Spend) -> Request:
        partition = "ward" if spend.part else ""
        return Request(dp.PureDP(spend.cost / CAP), by=spend.by, key=spend.key, partition=partition, part=spend.part)

    @precondition(lambda self: self.model)
    @rule(
        target=receipts,
        data=st.data(),
        which=st.integers(0, 1),
        asked=st.lists(asked, min_size=1, max_size=3),
    )
    def spend(
        self, data: st.DataObject, which: int, asked: list[tuple[int, str, str, str | None]]
    ) -> list[tuple[str, Spend, Receipt]]:
        """One spend, or a batch of several: all or nothing, and known keys are answered."""
        dataset = data.draw(st.sampled_from(sorted(self.model)))
        wanted = [Spend(*one) for one in asked]
        known = {spend.key: spend for spend in self.model[dataset] if spend.key is not None}
        new: list[Spend] = []
        mismatch = False
        for spend in wanted:
            holder = known.get(spend.key) if spend.key is not None else None
            if holder is None:
                new.append(spend)
                if spend.key is not None:
                    known[spend.key] = spend
            elif (holder.cost, holder.by, holder.part) != (spend.cost, spend.by, spend.part):
                mismatch = True
        ledger = self.handles[which]
        try:
            batch = ledger.spend_batch(dataset, [self.request(spend) for spend in wanted])
        except BudgetExceeded:
            assert not self.fits(dataset, new)
            return []
        except KeyReused:
            assert mismatch
            return []
        assert not mismatch
        assert self.fits(dataset, new)
        assert [receipt.replayed for receipt in batch] == [all(spend is not one for one in new) for spend in wanted]
        self.model[dataset] += new
        return [(dataset, spend, receipt) for spend, receipt in zip(wanted, batch, strict=True) if not receipt.replayed]

    @rule(group=receipts, how=st.sampled_from(["release", "store", "burn", "raise", "forget"]))
    def settle(self, group: list[tuple[str, Spend, Receipt]], how: str) -> None:
        """End a spend in one of the ways it can end; forgetting it is what a crash does."""
        for _, spend, receipt in group:
            if spend.state != "reserved":
                with pytest.raises(NotReleasable):
                    receipt.release()
            elif how == "raise":
                with pytest.raises(ZeroDivisionError), receipt:
                    1 / 0  # noqa: B018
                spend.state = "burnt"
            elif how == "burn":
                receipt.burn()
                spend.state = "burnt"
            elif how == "store":
                receipt.release([1, "x"])
                spend.state, spend.value = "released", [1, "x"]
            elif how == "release":
                with receipt:
                    pass
                spend.state = "released"

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        """A process ends without a word and another one starts, which still holds the head of the first."""
        self.handles[which]._store.engine.dispose()
        self.handles[which] = Ledger.open(self.url, head=self.head)
        self.head = self.handles[which].head()

    # -- what must always hold -------------------------------------------------------------------------------

    @invariant()
    def agrees_with_the_model(self) -> None:
        for dataset, spends in self.model.items():
            for ledger in self.handles:
                assert ledger.remaining(dataset) == (CAP - self.owed(dataset)) / CAP
            history = self.handles[0].history(dataset)
            found = [(e.cost * CAP, e.by, e.part, e.key, e.state, e.value) for e in history]
            assert found == [(s.cost, s.by, s.part, s.key, s.state, s.value) for s in spends]


LedgerMachine.TestCase.settings = settings(
    max_examples=200 if os.environ.get("DPTALLY_SOAK") else 12,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestLedgerMachine = LedgerMachine.TestCase
