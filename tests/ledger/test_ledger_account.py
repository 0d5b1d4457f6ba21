"""Contract: what every ledger promises, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import timedelta

import pytest

import dptally as dp
from dptally.errors import (
    BudgetExceeded,
    CannotPrice,
    DatasetExists,
    InvalidArgument,
    KeyReused,
    NotReleasable,
    RolledBack,
    UnknownDataset,
)
from dptally.ledger import Head, Ledger, Request, entries

Opener = Callable[..., Ledger]
PARTS = {"ward": list("ABCD"), "age": ["old"], "a": list("012345678"), "b": list("012345678"), "p": ["1"]}


@pytest.fixture
def ledger(opened: Opener) -> Ledger:
    made = opened()
    made.create("ehr", budget=dp.ZCDP(0.5), delta=1e-15, parts=PARTS)
    return made


def test_the_story_of_the_readme(ledger: Ledger) -> None:
    with ledger.spend("ehr", 1 * dp.Gaussian(sigma=40), by="alice", why="ward counts", key="q-17") as receipt:
        assert receipt.state == "reserved"
        assert ledger.remaining("ehr") < 0.5  # the debit is there before the body runs
    assert receipt.state == "released"
    assert 0.5 / 1600 <= receipt.cost < 0.5 / 1600 + 1e-17
    assert ledger.remaining("ehr") == pytest.approx(0.5 - 0.5 / 1600, rel=1e-11)
    (entry,) = ledger.history("ehr")
    assert (entry.by, entry.why, entry.key, entry.state) == ("alice", "ward counts", "q-17", "released")
    assert entry.plan == 1 * dp.Gaussian(sigma=40)
    assert ledger.verify().entries == 3  # registered, spent, settled


def test_ten_times_a_tenth_fits_into_one_and_an_eleventh_does_not(ledger: Ledger) -> None:
    ledger.create("pure", budget=dp.PureDP(1.0))
    for _ in range(10):
        ledger.spend("pure", dp.PureDP(0.1))
    with pytest.raises(BudgetExceeded):
        ledger.spend("pure", dp.PureDP(0.1))
    ledger.create("strict", budget=dp.PureDP(1.0), allowance=0)
    for _ in range(9):
        ledger.spend("strict", dp.PureDP(0.1))
    assert ledger.would_exceed("strict", dp.PureDP(0.1))  # the double 0.1 is above a tenth
    ledger.create("halves", budget=dp.PureDP(1.0), allowance=0)
    ledger.spend_batch("halves", [dp.PureDP(0.5)] * 2)
    assert ledger.remaining("halves") == 0


def test_tiny_costs_are_not_lost(ledger: Ledger) -> None:
    ledger.create("tiny", budget=dp.PureDP(1.0), allowance=0)
    ledger.spend("tiny", dp.PureDP(1e-300))
    assert ledger.remaining("tiny") < 1.0


def test_a_refusal_carries_its_numbers_and_says_what_would_fit(ledger: Ledger) -> None:
    ledger.spend("ehr", dp.Gaussian(sigma=1.02))
    with pytest.raises(BudgetExceeded) as caught:
        ledger.spend("ehr", 2 * dp.Gaussian(sigma=5.0))
    error = caught.value
    assert (error.dataset, error.kind, error.holder) == ("ehr", "rho", "")
    assert error.cap == pytest.approx(0.5)
    assert error.requested == pytest.approx(0.04)
    assert error.left == pytest.approx(0.5 - 0.5 / 1.02**2)
    assert error.spent + error.left == pytest.approx(error.cap)
    assert "Nothing was released and nothing was debited. It fits with sigma >= 7.18" in str(error)
    ledger.spend("ehr", 2 * dp.Gaussian(sigma=7.18))  # the hint is true
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert again.left == error.left


def test_an_exception_in_the_body_burns_and_stays_spent(ledger: Ledger) -> None:
    with pytest.raises(ZeroDivisionError), ledger.spend("ehr", dp.Gaussian(sigma=2.0)) as receipt:
        1 / 0  # noqa: B018
    assert receipt.state == "burnt"
    assert ledger.history("ehr")[0].state == "burnt"
    assert ledger.remaining("ehr") < 0.3751


def test_a_retry_gets_the_same_receipt_and_no_second_charge(ledger: Ledger, opened: Opener) -> None:
    plan = dp.Gaussian(sigma=2.0)
    with ledger.spend("ehr", plan, key="k", by="alice") as first:
        first.release({"count": [12, 3.5]})
    left = ledger.remaining("ehr")
    second = opened().spend("ehr", plan, key="k", by="alice")
    assert second.replayed
    assert second.value == {"count": [12, 3.5]}
    assert (second.number, second.hash, second.cost) == (first.number, first.hash, first.cost)
    assert ledger.remaining("ehr") == left
    with pytest.raises(NotReleasable):
        second.release(13)


def test_another_request_under_the_same_key_is_refused(ledger: Ledger) -> None:
    ledger.spend("ehr", dp.Gaussian(sigma=9.0), key="k", by="alice", why="a", labels=["x"])
    for change in (
        {"plan": dp.Gaussian(sigma=8.0)},
        {"by": "bob"},
        {"why": "b"},
        {"labels": ["y"]},
        {"partition": "p", "part": "1"},
    ):
        asked = {
            "plan": dp.Gaussian(sigma=9.0),
            "by": "alice",
            "why": "a",
            "labels": ["x"],
            "key": "k",
        } | change
        with pytest.raises(KeyReused) as caught:
            ledger.spend("ehr", **asked)
        assert set(caught.value.differs) == set(change)
    assert len(ledger.history("ehr")) == 1


def test_the_same_key_in_two_datasets_is_two_keys(ledger: Ledger) -> None:
    ledger.create("other", budget=dp.PureDP(1))
    ledger.spend("ehr", dp.PureDP(0.1), key="k")
    assert not ledger.spend("other", dp.PureDP(0.1), key="k").replayed


def test_answer_computes_at_most_once(ledger: Ledger) -> None:
    calls = []

    def compute() -> float:
        calls.append(1)
        return 3.25

    for _ in range(3):
        assert ledger.answer("ehr", dp.Gaussian(sigma=9.0), compute, key="k") == 3.25
    assert len(calls) == 1
    ledger.spend("ehr", dp.Gaussian(sigma=9.0), key="crashed")  # reserved and never settled
    with pytest.raises(NotReleasable, match="new key"):
        ledger.answer("ehr", dp.Gaussian(sigma=9.0), compute, key="crashed")
    with pytest.raises(ZeroDivisionError):
        ledger.answer("ehr", dp.Gaussian(sigma=9.0), lambda: 1 // 0, key="raised")
    assert ledger.history("ehr")[-1].state == "burnt"


def test_a_settled_receipt_cannot_be_settled_again(ledger: Ledger) -> None:
    receipt = ledger.spend("ehr", dp.Gaussian(sigma=9.0))
    receipt.burn()
    with pytest.raises(NotReleasable):
        receipt.release()
    twin = ledger.spend("ehr", dp.Gaussian(sigma=9.0))
    ledger._settle([(twin.entry, "burnt", None)])
    with pytest.raises(NotReleasable, match="burnt already"):
        ledger._settle([(twin.entry, "burnt", None)])  # a second attempt is another one, be it to the same end
    with pytest.raises(NotReleasable, match="burnt already"):
        twin.release()


def test_an_expired_reservation_is_burnt_and_stays_spent(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    receipt = ledger.spend("ehr", dp.Gaussian(sigma=2.0), expires=60)
    kept = ledger.spend("ehr", dp.Gaussian(sigma=2.0), expires=600)
    real = entries.now
    for module in ("entries", "debit"):
        monkeypatch.setattr(f"dptally.ledger.{module}.now", lambda: real() + timedelta(seconds=61))
    assert [entry.state for entry in ledger.history("ehr")] == ["burnt", "reserved"]
    with pytest.raises(NotReleasable, match="do not publish"):
        receipt.release(12)
    kept.release(13)
    assert [entry.value for entry in ledger.history("ehr")] == [None, 13]
    assert ledger.remaining("ehr") < 0.2501
    ledger.verify()


def test_batches_are_all_or_nothing(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded):
        ledger.spend_batch("ehr", [dp.Gaussian(sigma=2.0)] * 5)
    assert ledger.history("ehr") == []
    again = Request(dp.Gaussian(sigma=3.0), key="twice")
    with ledger.spend_batch("ehr", [dp.Gaussian(sigma=2.0), again, again]) as batch:
        assert [receipt.replayed for receipt in batch] == [False, False, True]
        batch[0].release("own")
    assert [entry.state for entry in ledger.history("ehr")] == ["released", "released"]
    assert len(batch) == 3
    assert batch[-1].number == batch[1].number
    with pytest.raises(ZeroDivisionError), ledger.spend_batch("ehr", [dp.Gaussian(sigma=9.0)] * 2):
        1 / 0  # noqa: B018
    assert [entry.state for entry in ledger.history("ehr")][2:] == ["burnt", "burnt"]
    assert len(ledger.spend_batch("ehr", [])) == 0
    ledger.verify()


def test_analysts_have_caps_of_their_own(opened: Opener) -> None:
    ledger = opened()
    ledger.create("d", budget=dp.PureDP(1), analysts={"bob": dp.PureDP(0.25), "*": dp.PureDP(0.5)})
    ledger.spend("d", dp.PureDP(0.25), by="bob")
    with pytest.raises(BudgetExceeded) as caught:
        ledger.spend("d", dp.PureDP(0.125), by="bob")
    assert caught.value.holder == "bob"
    assert "analyst 'bob'" in str(caught.value)
    ledger.spend("d", dp.PureDP(0.5), by="carol")
    assert ledger.would_exceed("d", dp.PureDP(0.01), by="carol")
    assert not ledger.would_exceed("d", dp.PureDP(0.25), by="dave")
    assert ledger.remaining("d", by="bob") < 1e-11
    assert ledger.remaining("d", by="dave") == pytest.approx(0.25)  # the dataset's own cap is nearer
    with pytest.raises(InvalidArgument, match="by must be given"):
        ledger.spend("d", dp.PureDP(0.01))
    with pytest.raises(InvalidArgument, match="at least what 'bob' has spent"):
        ledger.limit("d", "bob", dp.PureDP(0.2))
    ledger.limit("d", "bob", dp.PureDP(0.375))
    ledger.spend("d", dp.PureDP(0.125), by="bob")
    ledger.limit("d", "bob", None)
    assert ledger.would_exceed("d", dp.PureDP(0.25), by="bob")
    assert [person.holder for person in ledger.status("d").analysts] == ["bob", "carol"]
    with pytest.raises(InvalidArgument, match="a PureDP like"):
        ledger.limit("d", "bob", dp.ZCDP(0.1))
    ledger.verify()


def test_disjoint_parts_cost_the_largest_not_the_sum(ledger: Ledger) -> None:
    for ward in "ABCD":
        ledger.spend("ehr", dp.ZCDP(0.25), partition="ward", part=ward, by="alice")
    assert ledger.remaining("ehr") == pytest.approx(0.25)
    ledger.spend("ehr", dp.ZCDP(0.125), partition="ward", part="A", by="alice")
    assert ledger.remaining("ehr") == pytest.approx(0.125)
    ledger.spend("ehr", dp.ZCDP(0.125), partition="ward", part="B", by="alice")  # still no more than A
    assert ledger.remaining("ehr") == pytest.approx(0.125)
    ledger.spend("ehr", dp.ZCDP(0.125), partition="age", part="old", by="alice")  # a second partition adds
    assert ledger.remaining("ehr") == pytest.approx(0, abs=1e-11)
    assert ledger.would_exceed("ehr", dp.ZCDP(0.125), partition="ward", part="A")
    assert not ledger.would_exceed("ehr", dp.ZCDP(0.125), partition="ward", part="C")
    with pytest.raises(BudgetExceeded):
        ledger.spend("ehr", dp.ZCDP(0.01))
    assert ledger.status("ehr").analysts[0].spent == pytest.approx(0.5)
    ledger.verify()


def test_parts_do_not_compose_in_parallel_when_records_are_replaced(ledger: Ledger) -> None:
    ledger.create("replace", budget=dp.PureDP(1), adjacency=dp.REPLACE)
    with pytest.raises(InvalidArgument, match="REPLACE"):
        ledger.spend("replace", dp.PureDP(0.1), partition="ward", part="A")


def test_each_kind_prices_what_it_can_and_says_what_could(ledger: Ledger) -> None:
    ledger.create("pure", budget=dp.PureDP(1))
    with pytest.raises(CannotPrice, match=r"no finite bound.*ZCDP, GaussianDP, ApproxDP could"):
        ledger.spend("pure", dp.Gaussian(sigma=100))
    ledger.spend("ehr", dp.PureDP(0.5))
    with pytest.raises(CannotPrice, match=r"rho.*ApproxDP could"):
        ledger.spend("ehr", dp.ApproxDP(0.1, 1e-9))
    ledger.create("gdp", budget=dp.GaussianDP(1.0))
    ledger.spend("gdp", dp.GaussianDP(0.6))
    assert ledger.remaining("gdp") == pytest.approx(0.8)
    with pytest.raises(CannotPrice):
        ledger.spend("gdp", dp.ApproxDP(0.1, 1e-9))
    ledger.create("approx", budget=dp.ApproxDP(2, 1e-6))
    ledger.spend("approx", dp.ApproxDP(0.1, 1e-7))
    ledger.spend("approx", dp.Gaussian(sigma=20))
    with pytest.raises(BudgetExceeded, match="failure probability"):
        ledger.spend("approx", 5 * dp.ApproxDP(1e-6, 1e-7))
    with pytest.raises(BudgetExceeded, match=r"Renyi epsilon \(order"):
        ledger.spend("approx", dp.PureDP(5))
    ledger.verify()


def test_the_odometer_and_the_certified_epsilon(ledger: Ledger) -> None:
    assert ledger.odometer("ehr") == 0
    assert ledger.epsilon("ehr") == 0
    for _ in range(4):
        ledger.spend("ehr", dp.Gaussian(sigma=4.0))
    plan = 4 * dp.Gaussian(sigma=4.0)
    assert ledger.epsilon("ehr", delta=1e-6) == plan.epsilon(1e-6)
    assert plan.epsilon(1e-6) < ledger.odometer("ehr", delta=1e-6) < 2 * plan.epsilon(1e-6)
    assert ledger.status("ehr").epsilon == ledger.odometer("ehr")
    for part in "AB":
        ledger.spend("ehr", dp.Gaussian(sigma=4.0), partition="ward", part=part)
    assert ledger.epsilon("ehr", delta=1e-6) == (5 * dp.Gaussian(sigma=4.0)).epsilon(1e-6)
    ledger.create("no-delta", budget=dp.PureDP(1))
    with pytest.raises(InvalidArgument, match="created without one"):
        ledger.odometer("no-delta")


def test_history_filters_and_pages(ledger: Ledger) -> None:
    ledger.spend_batch(
        "ehr", [Request(dp.Gaussian(sigma=90.0), by="ab"[i % 2], labels=[f"l{i % 3}"]) for i in range(12)]
    )
    assert len(ledger.history("ehr", by="a")) == 6
    assert len(ledger.history("ehr", label="l0")) == 4
    first = ledger.history("ehr", limit=5)
    rest = ledger.history("ehr", after=first[-1].number)
    assert [entry.number for entry in first + rest] == list(range(1, 13))


def test_long_histories_come_in_pages(ledger: Ledger) -> None:
    ledger.create("long", budget=dp.PureDP(1e6))
    with ledger.spend_batch("long", [dp.PureDP(0.5)] * 1100):
        pass
    history = ledger.history("long")
    assert [entry.number for entry in history] == list(range(1, 1101))
    assert {entry.state for entry in history} == {"released"}


def test_the_head_notices_a_ledger_put_in_its_place(ledger: Ledger, opened: Opener) -> None:
    ledger.spend("ehr", dp.Gaussian(sigma=9.0))
    head = ledger.head()
    assert Head.from_json(head.to_json()) == head
    opened(head=head)
    ledger.spend("ehr", dp.Gaussian(sigma=9.0))
    opened(head=head.to_json())  # an older head of the same ledger is fine
    length, digest = head.chains["ehr"]
    for wrong in (
        Head("0" * 32, head.chains),
        Head(head.ledger, {**head.chains, "ehr": (length, "0" * 64)}),
        Head(head.ledger, {**head.chains, "ehr": (length + 9, digest)}),
        Head(head.ledger, {**head.chains, "gone": (1, digest)}),
        Head(head.ledger, {**head.chains, "": (9, digest)}),
    ):
        with pytest.raises(RolledBack):
            opened(head=wrong)


def test_unknown_and_known_datasets(ledger: Ledger) -> None:
    for question in (
        lambda: ledger.spend("nobody", dp.PureDP(0.1)),
        lambda: ledger.remaining("nobody"),
        lambda: ledger.status("nobody"),
        lambda: ledger.history("nobody"),
        lambda: ledger.would_exceed("nobody", dp.PureDP(0.1)),
        lambda: ledger.limit("nobody", "alice", dp.PureDP(0.1)),
    ):
        with pytest.raises(UnknownDataset, match="'nobody'"):
            question()
    with pytest.raises(DatasetExists):
        ledger.create("ehr", budget=dp.ZCDP(5))
    assert ledger.datasets() == ("ehr",)


def test_bad_requests_debit_nothing(ledger: Ledger) -> None:
    for asked in (
        {"plan": 0.1},
        {"plan": None},
        {"by": 3},
        {"by": "*"},
        {"by": " a"},
        {"why": "bell \x07"},
        {"key": ""},
        {"key": "\ud800"},
        {"key": "k" * 201},
        {"labels": "text"},
        {"labels": [""]},
        {"labels": [3]},
        {"partition": "p"},
        {"part": "p"},
        {"expires": 0},
        {"expires": float("nan")},
    ):
        with pytest.raises(InvalidArgument):
            ledger.spend("ehr", **({"plan": dp.PureDP(0.1)} | asked))
    assert ledger.history("ehr") == []


def test_bad_accounts_are_refused(ledger: Ledger) -> None:
    for asked in (
        {"budget": 0.5},
        {"budget": dp.Gaussian(sigma=1)},
        {"budget": dp.PureDP(0)},
        {"budget": dp.ApproxDP(1, 0)},
        {"budget": dp.ApproxDP(1e-3, 1e-9)},
        {"dataset": ""},
        {"dataset": None},
        {"delta": 0},
        {"delta": 1},
        {"delta": float("nan")},
        {"budget": dp.ApproxDP(1, 1e-6), "delta": 1e-5},
        {"orders": [2, 3]},
        {"budget": dp.ApproxDP(1, 1e-6), "orders": [1]},
        {"budget": dp.ApproxDP(1, 1e-6), "orders": []},
        {"adjacency": "replace"},
        {"allowance": 0.1},
        {"allowance": -1},
        {"analysts": {"": dp.ZCDP(1)}},
        {"analysts": {"a": dp.PureDP(1)}},
        {"budget": dp.ApproxDP(1, 1e-6), "analysts": {"a": dp.ApproxDP(1e-3, 1e-9)}},
        {"about": "\x00"},
    ):
        with pytest.raises(InvalidArgument):
            ledger.create(**({"dataset": "new", "budget": dp.ZCDP(0.5)} | asked))
    assert ledger.datasets() == ("ehr",)


def test_names_and_texts_of_any_script(ledger: Ledger) -> None:
    ledger.create("données 数据 'x' \"y\"; --", budget=dp.PureDP(1), about="first line\nsecond")
    ledger.spend("données 数据 'x' \"y\"; --", dp.PureDP(0.1), by="Zoë", why="naïve %s {}", key="ключ")
    assert ledger.history("données 数据 'x' \"y\"; --")[0].why == "naïve %s {}"
    ledger.verify()


def test_hints_are_given_only_where_they_are_true(ledger: Ledger) -> None:
    for plan in (dp.Gaussian(sigma=0.1) + dp.Laplace(scale=0.1), dp.ZCDP(9.0)):
        with pytest.raises(BudgetExceeded, match="Ask the owner for a new budget"):
            ledger.spend("ehr", plan)
    ledger.spend("ehr", dp.ZCDP(0.5))
    with pytest.raises(BudgetExceeded, match="Ask the owner"):  # no noise is enough when nothing is left
        ledger.spend("ehr", dp.Gaussian(sigma=1e-3))


def test_large_values_and_too_many_parts_are_refused(ledger: Ledger) -> None:
    receipt = ledger.spend("ehr", dp.ZCDP(0.001))
    with pytest.raises(InvalidArgument, match="at most"):
        receipt.release("x" * (1 << 20))
    for partition in "ab":
        for part in range(9):
            ledger.spend("ehr", dp.ZCDP(0.001 * (part + 1)), partition=partition, part=str(part))
    with pytest.raises(dp.Unanswerable, match="81 combinations"):
        ledger.epsilon("ehr")


def test_a_delta_below_the_failures_that_are_allowed_has_no_odometer(ledger: Ledger) -> None:
    ledger.create("approx", budget=dp.ApproxDP(1, 1e-6))
    ledger.spend("approx", dp.PureDP(0.1))
    assert ledger.odometer("approx", 1e-6) < 1
    with pytest.raises(dp.Unanswerable, match="larger delta"):
        ledger.odometer("approx", 1e-7)
