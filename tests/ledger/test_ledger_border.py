"""Contract: what stands at the border of a ledger. Receipts in the caller's hands, adjacency and unit between
plan and account, names that look alike, values that must be kept, releases that must be paid for.
"""

from __future__ import annotations

import contextlib
import copy
import errno
import json
import os
import pickle
import sqlite3
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dptally as dp
from dptally import release
from dptally.errors import (
    BudgetExceeded,
    CannotPrice,
    ChainBroken,
    InvalidArgument,
    InvalidType,
    KeyReused,
    LedgerUnavailable,
    NotReleasable,
    RolledBack,
    TermsMismatch,
)
from dptally.ledger import Ledger, Request, entries
from dptally.ledger.names import identifier, name, skeleton
from dptally.ledger.terms import Terms
from dptally.ledger.values import decoded, encoded
from dptally.release import Released

PLAN = dp.Gaussian(sigma=9.0)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(f"sqlite:///{tmp_path}/budget.db", create=True) as made:
        made.create("d", budget=dp.ZCDP(10.0), parts={"ward": ["north", "café"]})
        made.create("replace", budget=dp.ZCDP(10.0), adjacency=dp.REPLACE)
        made.create("persons", budget=dp.ZCDP(10.0), unit="person:patient")
        yield made


def test_new_analysts_of_one_batch_do_not_look_alike(ledger: Ledger) -> None:
    ledger.limit("d", "*", dp.ZCDP(1.0))
    with pytest.raises(InvalidArgument, match="does not look like the analyst 'cop'"):
        ledger.spend_batch("d", [Request(PLAN, by="cop"), Request(PLAN, by="\u0441\u043e\u0440")])
    assert ledger.history("d") == []
    ledger.spend_batch("d", [Request(PLAN, by="cop"), Request(PLAN, by="eve"), Request(PLAN, by="cop")])


@pytest.mark.parametrize(
    "plan",
    [
        dp.dpsgd(4.0, 0.01, 10).group(3),
        dp.training(4.0, sampler=dp.Poisson(0.01), steps=10, per_user=3),
        dp.MixtureOfGaussians(4.0, (0, 1), (0.9, 0.1)),
    ],
)
def test_groups_of_sampled_steps_name_their_adjacency(ledger: Ledger, plan: dp.Mechanism) -> None:
    with pytest.raises(TermsMismatch, match="one record replaced"):
        ledger.spend("replace", plan)
    ledger.spend("d", plan)


def test_a_paid_answer_goes_to_another_process_without_its_receipt(ledger: Ledger) -> None:
    paid = ledger.release("d", release.count, [1, 2], sigma=9)
    for same in (copy.copy(paid), copy.deepcopy(paid)):
        assert same.receipt.number == paid.receipt.number
    sent = pickle.loads(pickle.dumps(paid))  # what a pool of workers does with what they return
    assert type(sent) is Released
    assert (sent.value, sent.mechanism, sent.query) == (paid.value, paid.mechanism, paid.query)
    assert (sent.adjacency, sent.unit) == (paid.adjacency, paid.unit)


def test_a_number_wider_than_python_has_is_handed_back(ledger: Ledger) -> None:
    wide = np.longdouble(3) / 7
    with pytest.raises(NotReleasable, match="cannot be kept") as caught:
        ledger.answer("d", PLAN, lambda: wide, key="wide")
    assert caught.value.value == wide
    assert ledger.answer("d", PLAN, lambda: float(wide), key="wide") == float(wide)


@pytest.mark.parametrize("expires", [1e11, 1e308, 10**30])
def test_an_expiry_beyond_the_calendar_is_refused(ledger: Ledger, expires: float) -> None:
    with pytest.raises(InvalidArgument, match="expires must be at most 1e\\+10 seconds"):
        ledger.spend("d", PLAN, expires=expires)
    ledger.spend("d", PLAN, expires=1e10)


def test_what_is_not_there_is_refused_and_nothing_is_laid_beside_it(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="nothing was created"):
        Ledger.open(f"sqlite:///{tmp_path}/missing.db")
    (tmp_path / "folder").mkdir()
    for create in (False, True):
        with pytest.raises(LedgerUnavailable):
            Ledger.open(f"sqlite:///{tmp_path}/folder", create=create)
        with pytest.raises(InvalidArgument, match="at most 220 bytes"):
            Ledger.open(f"sqlite:///{tmp_path}/{'a' * 300}.db", create=create)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def _contents(folder: Path) -> dict[str, tuple[int, ...]]:
    found = {path.name: path.lstat() for path in folder.iterdir()}
    return {name: (one.st_size, one.st_mtime_ns, one.st_mode, one.st_nlink) for name, one in found.items()}


def _database_of_another_program(path: Path, journal: str) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA journal_mode={journal}")
        other.execute("CREATE TABLE t (x)")
        other.commit()


def _ledger_with_two_names(path: Path) -> None:
    Ledger.open(f"sqlite:///{path}", create=True).close()
    Path(f"{path}-lock").unlink()
    os.link(path, path.with_name("second.db"))


REFUSED: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.touch(),
    "text": lambda path: path.write_text("no database" * 100),
    "cut": lambda path: path.write_bytes(b"SQLite format 3\x00" + bytes(34)),
    "another database": lambda path: _database_of_another_program(path, "DELETE"),
    "another database with a log": lambda path: _database_of_another_program(path, "WAL"),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a pipe": os.mkfifo,
    "a log without its file": lambda path: Path(f"{path}-wal").write_bytes(bytes(32)),
    "two names": _ledger_with_two_names,
    "unreadable": lambda path: (path.write_text("secret"), path.chmod(0)),
}


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("case", REFUSED)
def test_an_open_that_is_refused_leaves_everything_as_it_was(tmp_path: Path, case: str, create: bool) -> None:
    REFUSED[case](tmp_path / "budget.db")
    before = _contents(tmp_path)
    for options in ({"create": create}, {"read_only": True}):
        with pytest.raises(LedgerUnavailable):
            Ledger.open(f"sqlite:///{tmp_path}/budget.db", **options)  # type: ignore[arg-type]
    assert _contents(tmp_path) == before


def test_a_ledger_that_a_head_or_a_witness_remembers_is_not_made_anew(tmp_path: Path, postgres_url: str) -> None:
    with Ledger.open(f"sqlite:///{tmp_path}/first.db", create=True, witness=tmp_path / "heads") as ledger:
        ledger.create("d", dp.PureDP(1.0))
        head = ledger.head()
    before = _contents(tmp_path)
    for known in ({"head": head}, {"witness": tmp_path / "heads"}):
        with pytest.raises(RolledBack, match="Nothing was created"):
            Ledger.open(f"sqlite:///{tmp_path}/second.db", create=True, **known)  # type: ignore[arg-type]
        with pytest.raises(RolledBack, match="Nothing was created"):
            Ledger.open(postgres_url, create=True, **known)  # type: ignore[arg-type]
        Ledger.open(f"sqlite:///{tmp_path}/first.db", create=True, **known).close()  # type: ignore[arg-type]
    assert set(_contents(tmp_path)) == set(before)


def test_a_ledger_that_cannot_be_made_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr("dptally.ledger.opening.put", full)
    with pytest.raises(LedgerUnavailable, match="no space"):
        Ledger.open(f"sqlite:///{tmp_path}/budget.db", create=True)
    assert list(tmp_path.iterdir()) == []


class Untouchable:
    """Data that must not be looked at in any way."""

    def _touched(self, *_: object) -> Any:
        raise AssertionError("the data were touched")

    __len__ = __iter__ = __array__ = __getitem__ = __bool__ = __eq__ = __hash__ = __repr__ = __str__ = _touched
    __float__ = __contains__ = __index__ = _touched


def test_an_argument_beyond_the_doubles_burns_nothing(ledger: Ledger) -> None:
    asked: dict[str, Any] = {"q": 0.5, "candidates": [0, 1], "epsilon": 0.1, "adjacency": dp.ADD_REMOVE}
    ledger.release("d", release.quantile, [1.0, None], missing=10**400, **asked)
    assert [entry.state for entry in ledger.history("d")] == ["released"]


# -- adjacency and unit --------------------------------------------------------------------------------------


def test_a_plan_for_another_adjacency_is_refused_before_the_debit(ledger: Ledger) -> None:
    run = dp.dpsgd(1.0, 0.01, 100)
    for plan in (run, run + PLAN, dp.PoissonSampled(dp.PoissonSampled(PLAN, 0.5), 0.5)):
        with pytest.raises(TermsMismatch, match="Nothing was debited") as caught:
            ledger.spend("replace", plan)
        assert "ADD_REMOVE" in caught.value.stated
        assert "REPLACE" in caught.value.account
        with pytest.raises(TermsMismatch):
            ledger.would_exceed("replace", plan)
        with pytest.raises(TermsMismatch):
            ledger.answer("replace", plan, lambda: 1)
    assert ledger.history("replace") == []
    with pytest.raises(TermsMismatch, match="ADD_REMOVE"):
        ledger.spend("d", dp.dpsgd(1.0, 0.01, 100, dp.REPLACE))
    error = caught.value
    assert isinstance(error, CannotPrice)
    assert isinstance(error, InvalidArgument)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_what_holds_for_replaced_records_alone_is_refused_elsewhere(ledger: Ledger) -> None:
    """In the shuffle model, and where each answers for herself, the number of people is public."""
    shuffled = dp.ShuffleModel(dp.RandomizedResponse(0.6, 3), 1000)
    for plan in (shuffled, 2 * shuffled + PLAN):
        with pytest.raises(TermsMismatch, match="No conversion is valid"):
            ledger.spend("d", plan)
    ledger.spend("replace", shuffled)
    with pytest.raises(TermsMismatch, match="an account that was created with adjacency=REPLACE"):
        ledger.release("d", release.randomized_response, Untouchable(), p=0.51)
    ledger.release("replace", release.randomized_response, [0, 1], p=0.51)


@pytest.mark.parametrize(
    "plan",
    [
        dp.ShuffleModel(dp.RandomizedResponse(0.6, 2), 100).group(3),
        dp.PoissonSampled(dp.RandomizedResponse(0.6, 2), 0.1, dp.REPLACE).group(2),
        dp.Profile.from_points([(1.0, 1e-6)], dp.REPLACE),
        dp.Profile(lambda epsilon: 1e-6, adjacency=dp.REPLACE).group(2),
    ],
)
def test_groups_and_profiles_name_the_adjacency_that_they_hold_for(ledger: Ledger, plan: dp.Mechanism) -> None:
    ledger.create("added", budget=dp.ApproxDP(9.0, 1e-3))
    ledger.create("replaced", budget=dp.ApproxDP(9.0, 1e-3), adjacency=dp.REPLACE)
    with pytest.raises(TermsMismatch, match="No conversion is valid"):
        ledger.spend("added", plan)
    ledger.spend("replaced", plan).release()
    assert ledger.history("replaced")[0].plan == plan  # and it comes back with it
    assert ledger.verify(prices=True).plans == 1


def test_a_profile_that_names_none_is_a_statement_of_the_caller(ledger: Ledger) -> None:
    plan = dp.Profile.from_points([(1.0, 1e-6)])
    for name_, adjacency in (("added", dp.ADD_REMOVE), ("replaced", dp.REPLACE)):
        ledger.create(name_, budget=dp.ApproxDP(9.0, 1e-3), adjacency=adjacency)
        ledger.spend(name_, plan).release()
    stated = dp.Profile.from_points([(1.0, 1e-6)], dp.ADD_REMOVE)
    with pytest.raises(TermsMismatch, match="2 \\* epsilon") as caught:
        ledger.spend("replaced", stated)
    assert "Stated for this account" not in str(caught.value)  # a table cannot be stated anew
    with pytest.raises(InvalidType, match="adjacency"):
        dp.Profile.from_points([(1.0, 1e-6)], "replace")  # type: ignore[arg-type]


def test_the_conversion_that_is_offered_is_taken(ledger: Ledger) -> None:
    ledger.create("approx", budget=dp.ApproxDP(3.0, 1e-5), adjacency=dp.REPLACE)
    with pytest.raises(TermsMismatch) as caught:
        ledger.spend("approx", dp.dpsgd(4.0, 0.01, 10))
    offered = str(caught.value).split("Stated for this account it is ")[1].split(". A record")[0]
    plan = eval(offered, {name: getattr(dp, name) for name in dp.__all__})
    assert plan == dp.dpsgd(4.0, 0.01, 10, dp.REPLACE)
    ledger.spend("approx", plan)
    assert "ApproxDP(2 * epsilon, (1 + exp(epsilon)) * delta)" in str(caught.value)
    with pytest.raises(TermsMismatch, match=r"ApproxDP\(2 \* epsilon"):  # no theorem covers it under REPLACE
        ledger.spend("approx", dp.PoissonSampled(dp.DiscreteGaussian(sigma=3.0), 0.1))


def test_two_steps_of_one_record_cover_a_replacement() -> None:
    """The conversion that the error names, on exact laws: H(P|R) <= H_eps(P|Q) + e^eps H_eps(Q|R)."""
    rng = np.random.default_rng(7)
    for _ in range(200):
        p, q, r = (rng.dirichlet(np.full(5, 0.3)) for _ in range(3))
        epsilon = float(rng.uniform(0, 2))
        apart = lambda a, b, e: float(np.maximum(a - np.exp(e) * b, 0).sum())  # noqa: E731
        delta = max(apart(p, q, epsilon), apart(q, r, epsilon))
        assert apart(p, r, 2 * epsilon) <= (1 + np.exp(epsilon)) * delta + 1e-12


def test_a_bare_mechanism_is_taken_as_stated_for_the_account(ledger: Ledger) -> None:
    for dataset in ("d", "replace", "persons"):
        ledger.spend(dataset, 3 * PLAN + dp.Laplace(scale=4.0))


def test_what_protects_a_person_may_be_paid_by_rows_as_the_error_says(ledger: Ledger) -> None:
    asked: dict[str, Any] = {"sigma": 40, "unit": "person:patient"}
    with pytest.raises(TermsMismatch, match=r"ledger.answer\(dataset, mechanism, lambda: release.count"):
        ledger.release("d", release.count, Untouchable(), **asked)
    mechanism = release.count.mechanism(**asked)
    assert isinstance(ledger.answer("d", mechanism, lambda: release.count([1, 2], **asked).value), int)


WRONG_TERMS = [
    (dp.REPLACE, "row", {"adjacency": dp.ADD_REMOVE}, "adjacency=REPLACE"),
    (dp.ADD_REMOVE, "row", {"adjacency": dp.REPLACE}, "adjacency=ADD_REMOVE"),
    (dp.ADD_REMOVE, "person:patient", {"adjacency": dp.ADD_REMOVE}, "unit='person:patient'"),
    (dp.ADD_REMOVE, "row", {"adjacency": dp.ADD_REMOVE, "unit": "person:patient"}, "each of her rows"),
    (dp.ADD_REMOVE, "person:patient", {"adjacency": dp.ADD_REMOVE, "unit": "person:doctor"}, "different columns"),
]


@pytest.mark.parametrize(("adjacency", "unit", "stated", "said"), WRONG_TERMS)
def test_a_release_for_other_terms_is_refused(
    ledger: Ledger, adjacency: dp.Adjacency, unit: str, stated: dict[str, Any], said: str
) -> None:
    ledger.create("new", budget=dp.ZCDP(10.0), adjacency=adjacency, unit=unit)
    asked = {"lower": 0, "upper": 4, "sigma": 40, **stated}
    with pytest.raises(TermsMismatch, match=said):
        ledger.release("new", release.bounded_sum, Untouchable(), **asked)
    assert ledger.history("new") == []
    made = release.bounded_sum([1.0], **asked)
    with pytest.raises(NotReleasable, match="debit stands"):
        ledger.answer("new", made.mechanism, lambda: made)
    with pytest.raises(NotReleasable), ledger.spend("new", made.mechanism) as receipt:
        receipt.release(made)
    assert [entry.state for entry in ledger.history("new")] == ["burnt", "burnt"]
    right = {**asked, "adjacency": adjacency, "unit": unit}
    assert ledger.release("new", release.bounded_sum, [1.0], **right).unit == unit
    assert ledger.status("new").unit == unit
    ledger.answer("new", made.mechanism, lambda: Released(1, made.mechanism, "q", None, unit))


def test_accounts_from_before_units_were_kept_are_for_rows_and_declared_no_parts(ledger: Ledger) -> None:
    new = ledger.terms("d").to_dict()
    old = {key: value for key, value in new.items() if key not in ("unit", "parts", "failure")}
    terms = Terms.from_json(json.dumps(old))
    assert (terms.unit, terms.parts, terms.failure) == ("row", None, 0.0)
    terms.check_part("ward", "any")
    again = Terms.from_json(json.dumps(new))
    assert again == ledger.terms("d")
    assert again.parts == {"ward": ("café", "north")}


@pytest.mark.parametrize("unit", ["", "rows", "person", "person:", "person: ", 3, None, "person:p\u200batient"])
def test_units_that_are_no_unit(ledger: Ledger, unit: object) -> None:
    with pytest.raises(InvalidArgument, match="unit"):
        ledger.create("new", budget=dp.PureDP(1), unit=unit)  # type: ignore[arg-type]


# -- receipts ------------------------------------------------------------------------------------------------


def test_the_first_example_run_five_times_gives_one_answer(ledger: Ledger) -> None:
    answers = [release.count([1, 2, 3], sigma=9) for _ in range(5)]
    given = []
    for made in answers:
        receipt = ledger.spend("d", PLAN, key="q-17")
        if given:
            with pytest.raises(NotReleasable, match="must not be touched again"), receipt:
                raise AssertionError("the body ran")
        else:
            with receipt:
                given.append(made.value)
    assert given == [answers[0].value]
    values = [ledger.release("d", release.count, [1, 2, 3], sigma=9, key="q-18").value for _ in range(5)]
    assert len(set(values)) == 1
    assert receipt.state == "released"
    assert len(ledger.history("d")) == 2


def test_a_replayed_receipt_is_entered_only_to_read_its_value(ledger: Ledger) -> None:
    with ledger.spend("d", PLAN, key="k") as first:
        first.release(12.5)
    again = ledger.spend("d", PLAN, key="k")
    with pytest.raises(NotReleasable), again:
        raise AssertionError("the body ran")
    with ledger.spend("d", PLAN, key="k", stored=True) as stored:
        assert stored.value == 12.5
    with pytest.raises(AttributeError):
        again.replayed = False  # type: ignore[misc]
    again._replayed = False
    again.entry = first.entry
    again._ended("reserved")
    with pytest.raises(NotReleasable):
        again.release(13)
    ledger.spend("d", PLAN, key="open")
    with pytest.raises(NotReleasable), ledger.spend("d", PLAN, key="open", stored=True):
        raise AssertionError("there is no value to read")


def test_batches_refuse_keys_that_were_charged_before(ledger: Ledger) -> None:
    with ledger.spend_batch("d", [PLAN, Request(PLAN, key="a")]):
        pass
    batch = ledger.spend_batch("d", [PLAN, Request(PLAN, key="a"), Request(PLAN, key="b")])
    with pytest.raises(NotReleasable), batch:
        raise AssertionError("the body ran")
    assert [receipt.state for receipt in batch] == ["reserved", "released", "reserved"]


def test_copies_of_a_receipt_settle_once(ledger: Ledger) -> None:
    for twin_of in (copy.copy, copy.deepcopy):
        receipt = ledger.spend("d", PLAN)
        twin = twin_of(receipt)
        receipt.release(1)
        with pytest.raises(NotReleasable):
            twin.release(1)
        with pytest.raises(NotReleasable):
            twin.burn()
        receipt = ledger.spend("d", PLAN)
        twin = twin_of(receipt)
        with receipt:
            pass
        with pytest.raises(NotReleasable), twin:
            raise AssertionError("the body ran twice")
        with pytest.raises(NotReleasable), receipt:
            raise AssertionError("the body ran twice")
    with pytest.raises(TypeError, match="belongs to the process"):
        pickle.dumps(receipt)
    receipt = ledger.spend("d", PLAN)
    with receipt, pytest.raises(NotReleasable), receipt:
        raise AssertionError("the body ran inside itself")
    assert {entry.state for entry in ledger.history("d")} == {"released"}
    ledger.verify()


def test_of_many_threads_one_enters(ledger: Ledger) -> None:
    receipt, start, entered = ledger.spend("d", PLAN), threading.Barrier(8), []

    def enter() -> None:
        start.wait()
        with contextlib.suppress(NotReleasable), receipt:
            entered.append(1)

    threads = [threading.Thread(target=enter) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert entered == [1]


def test_threads_that_release_under_one_key_get_one_value(ledger: Ledger) -> None:
    values, start = [], threading.Barrier(6)

    def run() -> None:
        start.wait()
        values.append(ledger.release("d", release.count, [1] * 1000, sigma=50, key="race").value)

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(values) == 6
    assert len(set(values)) == 1
    assert len(ledger.history("d")) == 1


def test_a_receipt_of_another_caller_is_not_settled(ledger: Ledger) -> None:
    from dataclasses import replace

    receipt = ledger.spend("d", PLAN)
    other = ledger.spend("d", PLAN)
    receipt.entry = replace(receipt.entry, number=other.number)
    with pytest.raises(NotReleasable, match="another caller"):
        receipt.release(3)
    receipt.entry = replace(receipt.entry, call="")
    with pytest.raises(NotReleasable, match="another caller"):
        receipt.burn()


def test_a_forked_receipt_is_not_released_twice(ledger: Ledger) -> None:
    receipt = ledger.spend("d", PLAN)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        status = 1
        try:
            for use in (lambda: receipt.release(2), receipt.burn, receipt.__enter__):
                with pytest.raises(NotReleasable, match="inherited by a fork"):
                    use()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    receipt.release(1)
    assert ledger.history("d")[0].value == 1


# -- reservations --------------------------------------------------------------------------------------------


def test_the_loser_of_a_race_returns_the_winners_value(ledger: Ledger, tmp_path: Path) -> None:
    ran = []

    def slow() -> float:
        with Ledger.open(f"sqlite:///{tmp_path}/budget.db") as other:
            ran.append(other.answer("d", PLAN, lambda: 1.5, key="k"))  # another caller is quicker
        return 2.5

    assert ledger.answer("d", PLAN, slow, key="k") == 1.5
    assert ran == [1.5]
    assert ledger.answer("d", PLAN, lambda: 3.5, key="k") == 1.5
    (entry,) = ledger.history("d")
    assert (entry.state, entry.value) == ("released", 1.5)
    ledger.verify()


def test_a_key_that_nobody_settled_runs_again_without_a_second_debit(ledger: Ledger) -> None:
    crashed = ledger.reserve("d", PLAN, key="k")
    left = ledger.remaining("d")
    assert not crashed.settled
    with pytest.raises(NotReleasable, match="no value yet"):
        _ = crashed.value
    assert ledger.answer("d", PLAN, lambda: None, key="k") is None
    assert ledger.remaining("d") == left
    assert crashed.settle(7) is None  # too late: None is what was stored
    assert ledger.reserve("d", PLAN, key="k").settled
    assert "released" in repr(crashed)
    assert crashed.receipt.state == "released"
    with pytest.raises(KeyReused):
        ledger.reserve("d", 2 * PLAN, key="k")


def test_a_key_that_was_spent_with_a_body_does_not_run_again(ledger: Ledger) -> None:
    """Its body may have published before it crashed."""
    ledger.spend("d", PLAN, key="k")
    with pytest.raises(NotReleasable, match="new key"):
        ledger.answer("d", PLAN, lambda: 1, key="k")
    with ledger.spend("d", PLAN, key="unstored"):
        pass
    with pytest.raises(NotReleasable, match="without a stored value"):
        ledger.answer("d", PLAN, lambda: 1, key="unstored")


def test_a_burnt_reservation_stays_burnt(ledger: Ledger) -> None:
    mine, theirs = ledger.reserve("d", PLAN, key="k"), ledger.reserve("d", PLAN, key="k")
    theirs.burn()
    with pytest.raises(NotReleasable, match="burnt"):
        mine.settle(1)
    with pytest.raises(NotReleasable, match="burnt"):
        ledger.reserve("d", PLAN, key="k")
    done = ledger.reserve("d", PLAN)
    done.settle(4)
    done.burn()
    assert done.value == 4


# -- values --------------------------------------------------------------------------------------------------

KEPT = [
    0, -(2**70), 1.5, float("inf"), "é", None, True, [1, [2.0]], (1, ("a", None)), {"a": {"b": [1]}}, {"dptally": 1},
    {"dptally": ["tuple", []]}, Fraction(1, 3), Decimal("0.10"), date(2026, 1, 2),
]  # fmt: skip


@pytest.mark.parametrize("value", KEPT, ids=repr)
def test_values_come_back_equal_and_of_their_type(value: Any) -> None:
    again = decoded(json.loads(json.dumps(encoded(value), allow_nan=False)))
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6).reshape(2, 3),
        np.array([0.5, np.inf]),
        np.array(["a", "bc"]),
        np.array([True, False]),
        np.array([1, "x", None, [1, 2]], dtype=object),
        np.array([2**70, 1], dtype=object),
        np.zeros((0, 3)),
    ],
)
def test_arrays_come_back_equal(value: np.ndarray[Any, Any]) -> None:
    again = decoded(json.loads(json.dumps(encoded(value), allow_nan=False)))
    assert again.dtype == value.dtype
    assert again.shape == value.shape
    assert again.tolist() == value.tolist()
    assert not again.flags.writeable


def nested(depth: int) -> list[Any]:
    return [] if depth == 0 else [nested(depth - 1)]


def laughs(depth: int) -> list[Any]:
    inside: list[Any] = ["ha"]
    for _ in range(depth):
        inside = [inside] * 10
    return inside


@pytest.mark.parametrize(
    "value",
    [object(), {1: 2}, {1, 2}, b"x", float("nan"), nested(941), laughs(20), "x" * (1 << 20), 10**500, "\ud800", 1j,
     np.array([1j]), np.ma.array([1], mask=[True]), np.zeros(1 << 21), np.array([[1, "x"]], dtype=object)],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_cannot_be_kept_is_refused(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="value"):
        encoded(value)


def test_what_dptally_returns_is_kept(ledger: Ledger) -> None:
    bins = {"categories": "abc", "adjacency": dp.ADD_REMOVE, "sigma": 9}
    plan = release.histogram.mechanism(**bins)
    first = ledger.answer("d", plan, lambda: release.histogram(list("abca"), **bins).value, key="array")
    again = ledger.answer("d", plan, lambda: 1 // 0, key="array")
    assert isinstance(first, np.ndarray)
    assert again.tolist() == first.tolist()
    made = ledger.answer("d", plan, lambda: release.histogram(["a"], **bins), key="released")
    again = ledger.answer("d", plan, lambda: 1 // 0, key="released")
    assert isinstance(again, Released)
    assert (again.mechanism, again.query, again.adjacency, again.unit) == (plan, "histogram", dp.ADD_REMOVE, "row")
    assert again.value.tolist() == made.value.tolist()
    assert ledger.history("d")[0].value.tolist() == first.tolist()
    ledger.verify()


def test_an_answer_that_cannot_be_kept_is_carried_by_the_error_once(ledger: Ledger) -> None:
    made = [object(), object(), object()]
    with pytest.raises(NotReleasable, match="same key") as caught:
        ledger.answer("d", PLAN, lambda: made[0], key="k", by="alice")
    assert caught.value.value is made[0]
    left = ledger.remaining("d")
    assert left < 10
    for other in made[1:]:  # each would be another release on the same debit
        with pytest.raises(NotReleasable, match="withheld") as caught:
            ledger.answer("d", PLAN, lambda other=other: other, key="k", by="alice")
        assert caught.value.value is None
    assert ledger.answer("d", PLAN, lambda: "kept", key="k", by="alice") == "kept"
    assert ledger.answer("d", PLAN, lambda: 1 // 0, key="k", by="alice") == "kept"
    assert ledger.remaining("d") == left
    with pytest.raises(NotReleasable) as caught:
        ledger.answer("d", PLAN, lambda: made[1])
    assert caught.value.value is made[1]
    assert [entry.state for entry in ledger.history("d")] == [
        "released"
    ] * 3  # the answer, that it left, the keyless one
    ledger.verify()


def test_what_cannot_be_kept_is_refused_before_the_debit_of_a_release(ledger: Ledger) -> None:
    asked = {"adjacency": dp.ADD_REMOVE, "sigma": 9}
    with pytest.raises(InvalidType, match="categories"):
        ledger.release("d", release.mode, Untouchable(), categories=(object(), 2), **asked)
    with pytest.raises(InvalidArgument, match="numbers"):
        ledger.release("d", release.histogram, Untouchable(), categories=range(100_000), **asked)
    assert ledger.history("d") == []


# -- paying and running --------------------------------------------------------------------------------------

EVERY: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "count": (release.count, [1, 2], {"sigma": 9}),
    "count where": (release.count, [1, 2], {"sigma": 9, "where": [True, False]}),
    "sum": (release.bounded_sum, [1, 2], {"lower": 0, "upper": 2, "adjacency": dp.ADD_REMOVE, "scale": 9}),
    "mean": (release.mean, [1, 2], {"lower": 0, "upper": 2, "adjacency": dp.ADD_REMOVE, "scale": 9, "count_scale": 9}),
    "histogram": (release.histogram, ["a"], {"categories": "ab", "adjacency": dp.ADD_REMOVE, "sigma": 9}),
    "mode": (release.mode, ["a"], {"categories": "ab", "adjacency": dp.ADD_REMOVE, "sigma": 9}),
    "answer": (release.answer, 1.5, {"sensitivity": 1, "sigma": 9}),
    "rectify": (release.clip_and_rectify, [1.0],
                {"algorithm": sum, "lower": 0, "upper": 1, "head_epsilon": 4.0, "mu": 0.5}),
    "response": (release.randomized_response, [0, 1], {"p": 0.75}),
    "bits": (release.mode_of_bits, [1], {"epsilon": 0.1, "delta": 1e-9, "adjacency": dp.ADD_REMOVE}),
    "test": (release.propose_test_release, [1], {"base": max, "distance": len, "epsilon": 0.1, "delta": 1e-9}),
    "median": (release.stable_median, [1], {"lower": 0, "upper": 9, "local_sensitivity": 1, "epsilon": 0.1,
                                            "delta": 1e-9, "scale": 9, "adjacency": dp.ADD_REMOVE}),
    "trimmed": (release.stable_mean, [1], {"lower": 0, "upper": 9, "local_sensitivity": 1, "epsilon": 0.1, "trim": 2,
                                           "delta": 1e-9, "sigma": 9, "adjacency": dp.REPLACE}),
}  # fmt: skip


@pytest.mark.parametrize("case", EVERY)
def test_every_release_is_paid_for_as_its_arguments_say(tmp_path: Path, case: str) -> None:
    function, data, arguments = EVERY[case]
    stated = function.stated(**arguments)
    with Ledger.open(f"sqlite:///{tmp_path}/x.db", create=True) as ledger:
        ledger.create("d", budget=dp.ZCDP(10), adjacency=stated.adjacency or dp.ADD_REMOVE, failure=1e-6)
        made = ledger.release("d", function, data, by="ann", why="w", key="k", **arguments)
        assert made.mechanism == function.mechanism(**arguments) == stated.mechanism
        assert (made.query, made.adjacency, made.unit) == (stated.query, stated.adjacency, "row")
        assert isinstance(made, Released)
        assert made.receipt.state == "released"
        (entry,) = ledger.history("d")
        assert entry.plan.parts == made.mechanism.parts
        assert (entry.by, entry.why, entry.hash) == ("ann", "w", made.receipt.hash)
        hidden = {name: Untouchable() for name in ("where", "base", "distance", "algorithm") if name in arguments}
        again = ledger.release("d", function, Untouchable(), by="ann", why="w", key="k", **{**arguments, **hidden})
        assert again.receipt.number == made.receipt.number
        assert np.array_equal(again.value, made.value)
        ledger.create("poor", budget=dp.ZCDP(1e-9), adjacency=stated.adjacency or dp.ADD_REMOVE, failure=1e-20)
        with pytest.raises(BudgetExceeded):
            ledger.release("poor", function, Untouchable(), **{**arguments, **hidden})
        assert ledger.history("poor") == []
        ledger.verify()


@pytest.mark.parametrize("case", EVERY)
def test_the_mechanism_is_that_of_the_run_and_needs_no_data(case: str) -> None:
    function, data, arguments = EVERY[case]
    secret = {"where", "base", "distance", "algorithm"}
    bare = {name: value for name, value in arguments.items() if name not in secret}
    assert function.mechanism(**bare) == function.mechanism(**arguments) == function.run(data, arguments).mechanism
    assert pickle.loads(pickle.dumps(function)) is function
    assert function.__name__ in repr(function)
    with pytest.raises(InvalidArgument, match="nonsense"):
        function.mechanism(**bare, nonsense=1)


def test_arguments_that_are_missing_or_wrong_debit_nothing(ledger: Ledger) -> None:
    for function, arguments in (
        (release.count, {}),
        (release.count, {"sigma": -1}),
        (release.histogram, {"sigma": 1, "adjacency": dp.ADD_REMOVE}),
        (release.bounded_sum, {"lower": 0, "upper": 1, "sigma": 1}),
        (release.randomized_response, {"p": 2}),
    ):
        with pytest.raises(InvalidArgument):
            ledger.release("d", function, Untouchable(), **arguments)
    for function in (len, lambda data, **_: 1, release.poisson_sample, release.estimate_counts, None):
        with pytest.raises(InvalidType, match="release must be"):
            ledger.release("d", function, Untouchable())  # type: ignore[arg-type]
    assert ledger.history("d") == []


def test_what_cost_more_than_the_debit_is_not_released(ledger: Ledger) -> None:
    cheap, dear = dp.DiscreteGaussian(sigma=49.0), release.count([1, 2], sigma=0.5)
    for value in (dear, {"a": [dear]}, (release.count([1], sigma=49), release.count([1], sigma=49))):
        with pytest.raises(NotReleasable, match="debit stands") as caught:
            ledger.answer("d", cheap, lambda value=value: value, key=f"k{len(ledger.history('d'))}")
        assert caught.value.value is None
        assert ledger.history("d")[-1].state == "burnt"
        with pytest.raises(NotReleasable), ledger.spend("d", cheap) as receipt:
            receipt.release(value)
        assert receipt.state == "burnt"
    for value in (release.count([1], sigma=49), release.count([1], sigma=50), [release.count([1], sigma=49)]):
        ledger.answer("d", cheap, lambda value=value: value)
    two = release.histogram(["a"], categories="ab", adjacency=dp.REPLACE, sigma=49)
    ledger.answer("replace", 2 * dp.Gaussian(sigma=49.0), lambda: two)  # its rho is rounded up once more
    gift = Released(1, dp.ApproxDP(0.1, 1e-9), "gift")
    with pytest.raises(NotReleasable, match="cannot pay"):
        ledger.answer("d", cheap, lambda: gift)
    with pytest.raises(NotReleasable, match="without a mechanism"):
        ledger.answer("d", cheap, lambda: Released(1, None, "gift"))  # type: ignore[arg-type]

    class Posing(Released):
        """Cheap when it is looked at first."""

        seen: list[int] = []  # noqa: RUF012

        def __getattribute__(self, name: str) -> Any:
            if name == "mechanism":
                Posing.seen.append(1)
                return cheap if len(Posing.seen) == 1 else dear.mechanism
            return super().__getattribute__(name)

    made = Posing(dear.value, dear.mechanism, dear.query)
    assert ledger.answer("d", cheap, lambda: made).mechanism == cheap  # what is kept is what was compared
    with pytest.raises(NotReleasable, match="costs more"):
        ledger.answer("d", cheap, lambda: made)
    with pytest.raises(NotReleasable, match="costs more") as caught:
        ledger.answer("d", cheap, lambda: {"dear": dear, "kept": object()}, key="neither paid nor kept")
    assert caught.value.value is None
    ledger.verify()


def test_one_key_is_one_release(ledger: Ledger) -> None:
    asked = {"categories": "ab", "adjacency": dp.ADD_REMOVE, "sigma": 9}
    ledger.release("d", release.histogram, ["a"], **asked, key="k")
    with pytest.raises(KeyReused, match="labels"):
        ledger.release("d", release.mode, ["a"], **asked, key="k")
    for other in ({"categories": "xy"}, {"missing": "b"}):  # the same mechanism, another question
        with pytest.raises(KeyReused, match="labels"):
            ledger.release("d", release.histogram, ["a"], **{**asked, **other}, key="k")
    again = ledger.release("d", release.histogram, ["b"], **{**asked, "sigma": 9.0}, key="k")
    assert len(ledger.history("d")) == 1
    assert again.receipt.replayed


def test_what_is_no_function_is_refused_before_the_debit(ledger: Ledger) -> None:
    with pytest.raises(InvalidType, match="compute"):
        ledger.answer("d", dp.Gaussian(9.0), 12)  # type: ignore[arg-type]
    assert ledger.history("d") == []


def test_what_may_fail_and_what_is_concentrated_share_a_budget(ledger: Ledger) -> None:
    ledger.create("mixed", budget=dp.ZCDP(0.5), delta=1e-6, failure=1e-8, analysts={"ann": dp.ZCDP(0.25)})
    bits = {"epsilon": 0.5, "delta": 4e-9, "adjacency": dp.ADD_REMOVE}
    for _ in range(2):
        ledger.release("mixed", release.mode_of_bits, [1] * 90, by="ann", **bits)
    ledger.release("mixed", release.count, [1], by="bob", sigma=4)
    with pytest.raises(BudgetExceeded, match="failure probability"):
        ledger.release("mixed", release.mode_of_bits, Untouchable(), by="ann", **bits)
    status = ledger.status("mixed")
    assert status.failure is not None
    assert status.failure.spent == pytest.approx(8e-9)
    assert status.failure.left == pytest.approx(2e-9)
    assert status.budget == "ZCDP(rho=0.5) with failure 1e-08"
    assert ledger.epsilon("mixed") < ledger.odometer("mixed")
    with pytest.raises(dp.Unanswerable, match="larger delta"):
        ledger.odometer("mixed", delta=1e-9)
    with pytest.raises(CannotPrice, match="failure share"):
        ledger.spend("d", dp.ApproxDP(0.1, 1e-9))
    ledger.verify()


# -- names ---------------------------------------------------------------------------------------------------


def test_other_spellings_of_a_part_are_that_part_or_nothing(ledger: Ledger) -> None:
    spellings = ["north", "ｎｏｒｔｈ", "no\u200brth", "n\u043erth", "north\ufe0f", "nor\u00adth", "\u202enorth",
                 "caf\u00e9", "cafe\u0301", "ca\ufb00e\u0301", "cafe", "North", "north ", "n0rth", "west"]  # fmt: skip
    taken = []
    for spelling in spellings:
        try:
            ledger.spend("d", dp.ZCDP(4.0), partition="ward", part=spelling)
            taken.append(spelling)
        except (InvalidArgument, BudgetExceeded):
            continue
    assert taken == ["north", "ｎｏｒｔｈ", "caf\u00e9", "cafe\u0301"]
    assert {entry.part for entry in ledger.history("d")} == {"north", "café"}
    assert ledger.remaining("d") == pytest.approx(2.0)
    ledger.create("flat", budget=dp.PureDP(1), parts=("A", "B"))
    ledger.spend("flat", dp.PureDP(1), partition="any", part="A")
    ledger.spend("flat", dp.PureDP(1), partition="any", part="B")
    with pytest.raises(InvalidArgument, match="declared when the account was created"):
        ledger.spend("flat", dp.PureDP(1), partition="any", part="C")
    with pytest.raises(InvalidArgument, match="looks like the declared 'A'"):
        ledger.spend("flat", dp.PureDP(1), partition="any", part="\u0410")
    ledger.create("none", budget=dp.PureDP(1))
    with pytest.raises(InvalidArgument, match="declared"):
        ledger.spend("none", dp.PureDP(1), partition="ward", part="A")


def test_datasets_and_analysts_that_look_alike_are_refused(ledger: Ledger) -> None:
    ledger.create("cop", budget=dp.PureDP(1), analysts={"ace": dp.PureDP(0.5), "*": dp.PureDP(0.25)})
    with pytest.raises(InvalidArgument, match="look like 'cop'"):
        ledger.create("\u0441\u043e\u0440", budget=dp.PureDP(1))  # all Cyrillic
    with pytest.raises(InvalidArgument, match="look like the analyst"):
        ledger.spend("cop", dp.PureDP(0.1), by="\u0430\u0441\u0435")
    with pytest.raises(InvalidArgument, match="look like 'ace'"):
        ledger.limit("cop", "\u0430\u0441\u0435", dp.PureDP(0.1))
    with pytest.raises(InvalidArgument, match="one script"):
        ledger.create("e\u04bbr", budget=dp.PureDP(1))
    with pytest.raises(InvalidArgument, match="look like"):
        ledger.create("x", budget=dp.PureDP(1), analysts={"ace": dp.PureDP(1), "\u0430\u0441\u0435": dp.PureDP(1)})
    with pytest.raises(InvalidArgument, match="look alike"):
        ledger.create("x", budget=dp.PureDP(1), parts=("A", "\u0410"))
    assert ledger.status("ｃｏｐ").dataset == "cop"
    ledger.spend("ｃｏｐ", dp.PureDP(0.25), by="ａｃｅ")
    assert ledger.remaining("cop", by="ａｃｅ") == pytest.approx(0.25)
    assert [entry.by for entry in ledger.history("ｃｏｐ")] == ["ace"]
    with pytest.raises(InvalidArgument, match="under REPLACE"):
        ledger.create("x", budget=dp.PureDP(1), adjacency=dp.REPLACE, parts=("A", "B"))
    for parts in ("AB", 3, [3], [("ward", 3)], {"ward": 3}, [("a", "b", "c")], {"ward": [""]}, {3: ["a"]}):
        with pytest.raises(InvalidArgument, match="parts"):
            ledger.create("x", budget=dp.PureDP(1), parts=parts)  # type: ignore[arg-type]


@pytest.mark.parametrize("hidden", [0x200B, 0x200D, 0x2060, 0xFEFF, 0xAD, 0x202E, 0x2066, 0x34F, 0x3164, 0x115F, 0xFE0F,
                                    0x180E, 0x2800, 0xE0041, 0x7F, 0x85, 0x2028, 0xA0, 0xE000, 0x0378])  # fmt: skip
def test_characters_that_are_not_seen_are_refused_or_become_plain(hidden: int) -> None:
    text = f"no{chr(hidden)}rth"
    if hidden == 0xA0:
        assert name("part", text) == "no rth"
    else:
        with pytest.raises(InvalidArgument, match="part"):
            name("part", text)


def test_names_of_one_script_and_of_scripts_that_are_written_together() -> None:
    for text in ("données 数据", "日本語データ々", "север-1", "μ", "north/A3 (b)", "대한민국 서울", "l'été"):
        assert identifier("name", text) == text
    assert skeleton("١٢") == "12"
    with pytest.raises(InvalidArgument, match="at most 200"):
        name("part", "\ufdfa" * 20)


# -- ends that are rare --------------------------------------------------------------------------------------


def test_a_stored_value_that_cannot_be_read_is_said_to_be_broken(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    for made in (
        {"dptally": ["array", {"dtype": "nonsense", "shape": [1], "values": [1]}]},
        {"dptally": ["fraction", ["1", "0"]]},
        {"dptally": ["released", {}]},
        {"dptally": ["date", 3]},
    ):
        monkeypatch.setattr("dptally.ledger.ledger.encoded", lambda value, made=made: made)
        monkeypatch.setattr("dptally.ledger.ledger.decoded", lambda made: made)
        monkeypatch.setattr("dptally.ledger.receipts.decoded", lambda made: made)
        before = max((2, *ledger.head().chains["d"][:1]))
        ledger.spend("d", PLAN).release(1)
        with pytest.raises(ChainBroken, match="cannot be read"):
            ledger.history("d", after=before - 2)
    assert decoded({"dptally": 3, "a": [1]}) == {"dptally": 3, "a": [1]}  # as it was written before tags were


def test_a_reservation_that_expired_gives_nothing_out(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    reservation = ledger.reserve("d", PLAN, key="k", expires=60)
    real = entries.now
    for module in ("entries", "debit"):
        monkeypatch.setattr(f"dptally.ledger.{module}.now", lambda: real() + timedelta(seconds=61))
    with pytest.raises(NotReleasable, match="burnt"):
        reservation.settle(1)
    with pytest.raises(NotReleasable, match="burnt"):
        ledger.answer("d", PLAN, lambda: 1, key="k", expires=60)


def test_an_exception_goes_on_where_it_cannot_be_recorded(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def compute() -> None:
        monkeypatch.setattr(
            type(ledger._store), "write", lambda self, work: (_ for _ in ()).throw(LedgerUnavailable("gone"))
        )
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        ledger.answer("d", PLAN, compute, key="k")
    assert "could not be marked as burnt: gone" in caught.value.__notes__[0]
    monkeypatch.undo()
    with pytest.raises(ZeroDivisionError):
        ledger.answer("d", PLAN, lambda: 1 // 0, key="k")  # nothing had left, so it ran again
    assert ledger.history("d")[0].state == "burnt"


def test_a_key_that_holds_another_kind_of_value(ledger: Ledger) -> None:
    plan = release.count.mechanism(sigma=9)
    labels = ledger.release("d", release.count, [], sigma=9).receipt.entry.labels
    ledger.answer("d", plan, lambda: 3, key="k", labels=labels)
    with pytest.raises(NotReleasable, match="another kind of request"):
        ledger.release("d", release.count, Untouchable(), sigma=9, key="k")
