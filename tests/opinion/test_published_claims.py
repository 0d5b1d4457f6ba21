"""Golden: published claims judged again; origins stand in examples/published-claims.csv."""

from __future__ import annotations

from pathlib import Path

import pytest

from dptally.opinion import check_all

CLAIMS = Path(__file__).resolve().parents[2] / "examples" / "published-claims.csv"
REFUTED = {
    "Bu et al. 2020, Fig. 4, central limit theorem, 20 epochs": 1.4078,
    "Bu et al. 2020, Fig. 4, central limit theorem, 70 epochs": 9.4769,
    "opacus 1.6.0, accountants_test.py, gdp (at most)": 6.767,
    "Liu et al. 2022, Table 1, optimal, 50 steps": 5.564,
}
TIGHT = {"tensorflow/privacy, compute_dp_sgd_privacy_test.py, PLD", "opacus 1.6.0, accountants_test.py, prv"}


def test_which_published_claims_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dptally.opinion.verdict.matches", lambda claim, plan: ())  # slow, and tested elsewhere
    verdicts = {verdict.claim.source: verdict for verdict in check_all(CLAIMS)}
    assert len(verdicts) == 21
    for source, verdict in verdicts.items():
        expected = "refuted" if source in REFUTED else "true" if source in TIGHT else "loose"
        assert verdict.status == expected, source
    for source, least in REFUTED.items():
        assert verdicts[source].interval.lower == pytest.approx(least, rel=1e-3)
        assert verdicts[source].claimed.epsilon < verdicts[source].interval.lower
