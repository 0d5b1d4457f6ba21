"""Accounts whose budget is a declared menu: only its items, at most so many, and an odometer over adaptive choices."""

from __future__ import annotations

from pathlib import Path

import pytest

import dptally as dp

MENU = dp.Menu([dp.Laplace(5.0), dp.Gaussian(8.0), 2 * dp.PureDP(0.1)], uses=4)


@pytest.fixture
def ledger(tmp_path: Path) -> dp.Ledger:
    made = dp.Ledger.open(f"sqlite:///{tmp_path}/menu.db", create=True)
    made.create("wards", budget=MENU, delta=1e-6)
    return made


def test_items_are_paid_until_the_uses_are_gone(ledger: dp.Ledger) -> None:
    assert ledger.remaining("wards") == 4.0
    before = ledger.odometer("wards")
    for plan in (dp.Laplace(5.0), dp.Gaussian(8.0), 2 * dp.PureDP(0.1)):
        with ledger.spend("wards", plan):
            pass
        assert ledger.odometer("wards") > before
        before = ledger.odometer("wards")
    assert ledger.remaining("wards") == 1.0
    with pytest.raises(dp.BudgetExceeded, match="uses"), ledger.spend("wards", 2 * dp.Laplace(5.0)):
        raise AssertionError("unreachable")
    with ledger.spend("wards", dp.Laplace(5.0)):
        pass
    with pytest.raises(dp.BudgetExceeded), ledger.spend("wards", dp.Laplace(5.0)):
        raise AssertionError("unreachable")
    status = ledger.status("wards")
    assert status.kind == "menu"
    assert "Menu(" in status.budget
    assert status.epsilon >= MENU.epsilon(1e-6)
    assert ledger.verify(prices=True).plans == 3


def test_what_is_not_on_the_menu_is_refused(ledger: dp.Ledger) -> None:
    for plan in (dp.Laplace(4.9), dp.PureDP(0.1), dp.Laplace(5.0) + dp.Laplace(6.0)):
        with pytest.raises(dp.CannotPrice, match="not an item"), ledger.spend("wards", plan):
            raise AssertionError("unreachable")
    assert ledger.remaining("wards") == 4.0


def test_an_account_is_found_again_with_its_menu(ledger: dp.Ledger, tmp_path: Path) -> None:
    with ledger.spend("wards", dp.Laplace(5.0)):
        pass
    again = dp.Ledger.open(f"sqlite:///{tmp_path}/menu.db")
    assert again.remaining("wards") == 3.0
    again.create("wards", budget=MENU, delta=1e-6)  # the same terms once more change nothing
    with pytest.raises(dp.DatasetExists):
        again.create("wards", budget=dp.Menu(MENU.items, 5), delta=1e-6)


def test_analysts_have_uses_of_the_same_menu(ledger: dp.Ledger) -> None:
    ledger.limit("wards", "ada", dp.Menu(MENU.items, 1))
    with ledger.spend("wards", dp.Laplace(5.0), by="ada"):
        pass
    with pytest.raises(dp.BudgetExceeded), ledger.spend("wards", dp.Laplace(5.0), by="ada"):
        raise AssertionError("unreachable")
    with pytest.raises(dp.InvalidArgument, match="same items"):
        ledger.limit("wards", "bob", dp.Menu([dp.Laplace(5.0)], 1))
    with pytest.raises(dp.InvalidArgument, match="like the dataset"):
        ledger.limit("wards", "bob", dp.PureDP(1.0))


def test_bad_menus_open_no_account(ledger: dp.Ledger) -> None:
    with pytest.raises(dp.Unanswerable, match="Renyi"):
        ledger.create("other", budget=dp.Menu([dp.ZCDP(0.1)], 2))
    with pytest.raises(dp.InvalidArgument, match="uses"):
        ledger.create("other", budget=dp.Menu([dp.PureDP(0.1)], 0))
    with pytest.raises(dp.InvalidArgument, match="failure"):
        ledger.create("other", budget=MENU, failure=1e-9)
    assert ledger.datasets() == ("wards",)
