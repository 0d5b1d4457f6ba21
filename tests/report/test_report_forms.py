"""Contract: reports in the forms that others accept say what the account says, on the safe side."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

import dptally as dp
from dptally.accounting.citations import SOURCES
from dptally.report import (
    comparison_table,
    curve_table,
    dptally_bibtex,
    epsilon_curve,
    nist,
    paper_table,
    profile_table,
    registry,
)
from dptally.report.registry import TODO

PLAN = 40 * dp.Laplace(scale=20.0)
SAMPLED = dp.dpsgd(1.0, 0.01, 300)

#: the registry's schema, top down: what may stand where
SCHEMA = {
    "basic": "name data_curators intended_use data_product_type data_product_region description publication_date "
    "data_product_sector",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details privacy_parameters privacy_parameters_details",
    "deployment_model": "model_name",
    "accounting": "post_processing composition",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms justification",
    "administrative": "sources notes registry_authors",
}
FACTS = {
    "name": "Ward counts",
    "curator": "A hospital",
    "description": "Counts per ward.",
    "intended_use": "Planning",
    "product": "Summary statistics",
    "region": "Utrecht",
    "date": "2026-05-01",
    "sector": "Healthcare",
    "model": "Central",
    "post_processing": "none",
    "tuning": "none",
    "unprotected": "the list of wards",
    "sources": "none",
    "author": "The hospital",
}


def test_a_registry_record_has_the_schema_and_the_numbers() -> None:
    record = registry(PLAN, 1e-9, unit="one patient", **FACTS)
    content = record.to_dict()
    assert set(content) == {"url_slug", "status", "tier", "deployment"}
    for part, inside in content["deployment"].items():
        assert set(inside) <= set(SCHEMA[part].split()), part
    loss = content["deployment"]["privacy_loss"]
    assert loss["privacy_unit"] == "one patient"
    assert PLAN.epsilon(1e-9) <= loss["privacy_parameters"]["epsilon"] <= PLAN.epsilon(1e-9) * (1 + 1e-7)
    assert record.missing == ("deployment.implementation.justification",)
    assert content["url_slug"] == "ward-counts"
    assert json.loads(record.to_json()) == content


def test_a_record_is_read_back_by_the_second_opinion(tmp_path: object) -> None:
    yaml = pytest.importorskip("yaml")
    record = registry(PLAN, 1e-9, unit="one patient")
    text = record.to_yaml()
    assert yaml.safe_load(text) == record.content
    assert "mechanisms: |" in text
    path = tmp_path / "record.yaml"  # type: ignore[operator]
    path.write_text(text, encoding="utf-8")
    verdict = dp.check(path)
    assert verdict.status == "true"
    assert verdict.claim.plan == PLAN


def test_what_only_the_curator_knows_is_marked_and_nothing_invented() -> None:
    record = registry(dp.PureDP(1.0), 0.0, unit="one person")
    assert "deployment.basic.name" in record.missing
    assert "deployment.deployment_model.model_name" in record.missing
    assert record.content["deployment"]["dp_variant"]["variant_name"] == "Pure DP"
    assert "delta" not in record.content["deployment"]["privacy_loss"]["privacy_parameters"]
    assert record.content["deployment"]["basic"]["data_curators"] == [TODO]


@pytest.mark.parametrize(
    "bad",
    [{"unit": ""}, {"color": "red"}, {"product": "a toy"}, {"model": "Trust me"}, {"date": "yesterday"}, {"name": 3}],
    ids=str,
)
def test_bad_facts_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(dp.InvalidArgument):
        registry(PLAN, 1e-9, **({"unit": "one patient"} | bad))  # type: ignore[arg-type]


def test_plans_without_an_epsilon_have_no_record() -> None:
    with pytest.raises(dp.Unanswerable, match="finite"):
        registry(dp.Gaussian(1.0), 0.0, unit="one patient")
    with pytest.raises(dp.InvalidType):
        registry("gaussian(1)", 1e-5, unit="one patient")  # type: ignore[arg-type]


def test_the_checklist_settles_only_what_accounting_knows() -> None:
    page = nist(PLAN, 1e-9, unit="one patient", title="Wards | 2026")
    settled = {line.subject for line in page.lines if line.settled}
    assert "unit of privacy" in settled
    assert not {"randomness", "side channels", "trust", "sensitivity", "tuning and previews"} & settled
    assert "unit of privacy" not in {line.subject for line in nist(PLAN, 1e-9).lines if line.settled}
    text = page.to_markdown()
    assert re.search(r"\| x \| epsilon and delta \|", text)
    assert json.loads(page.to_json())["lines"][1]["answer"] == "one patient"
    with pytest.raises(dp.InvalidArgument, match="unit"):
        nist(PLAN, 1e-9, unit=3)  # type: ignore[arg-type]


def test_the_paper_s_table() -> None:
    gauss = dict(paper_table(10 * dp.Gaussian(5.0), 1e-6, unit="one image").rows)
    assert float(gauss["mu"].split()[0]) >= 10**0.5 / 5
    assert "for epsilon up to" not in gauss["mu"]
    rows = dict(paper_table(SAMPLED, 1e-5, unit="one image", released="ten tuning runs").rows)
    assert "for epsilon up to" in rows["mu"]
    assert rows["also released"] == "ten tuning runs"
    assert rows["adjacency"] == "ADD_REMOVE"
    assert "independently" in rows["sampler"]
    assert float(rows["epsilon"].split()[0]) >= SAMPLED.epsilon(1e-5)
    assert dict(paper_table(dp.ZCDP(1.0), 1e-5, unit="one image").rows)["mu"]
    with pytest.raises(dp.InvalidArgument, match="unit"):
        paper_table(SAMPLED, 1e-5, unit=" ")


def test_tables_in_four_forms() -> None:
    found = dp.compare(PLAN, 1e-9)
    table = comparison_table(found)
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [float(row["epsilon"]) for row in rows if row["epsilon"]] == [
        r.epsilon for r in found.rows if r.epsilon is not None
    ]
    frame = table.to_pandas()
    assert list(frame.columns) == list(table.columns)
    assert frame["epsilon"][0] == found.rows[0].epsilon
    latex = table.to_latex()
    assert latex.startswith("\\begin{tabular}{lrrl}")
    assert latex.count("\\\\") == len(found.rows) + 1
    for form in ("markdown", "latex"):
        shown = float(re.search(r"certified numerical [&|] ([\d.]+)", table.text(form))[1])  # type: ignore[index]
        assert shown >= found.best.epsilon  # type: ignore[operator]
    assert json.loads(json.dumps(table.to_dict(), allow_nan=False))["rows"][0]["framework"]
    with pytest.raises(dp.InvalidArgument, match="form"):
        table.text("excel")


def test_curves_and_profiles() -> None:
    curve = curve_table(epsilon_curve(dp.Gaussian(10.0), [1, 10], 1e-5))
    assert curve.to_csv().splitlines()[0] == "steps,epsilon"
    profile = profile_table(dp.Gaussian(1.0), [1e-5, 1e-9])
    lower, upper = profile.rows[0][1:]
    line = profile.to_markdown().splitlines()[2].split(" | ")
    assert line[0] == "| 1e-05"
    assert float(line[1]) <= lower <= upper <= float(line[2].rstrip(" |"))  # type: ignore[operator]
    infinite = profile_table(dp.ApproxDP(1.0, 1e-3), [1e-5]).to_dict()
    assert infinite["rows"][0]["epsilon at most"] == "inf"


def test_bibtex_entries_have_types_and_dois() -> None:
    kinds = {source.tag: source.bibtex().split("{")[0] for source in SOURCES}
    assert kinds["Dong, Roth, Su 2022"] == "@article"
    assert kinds["Abadi et al. 2016"] == "@inproceedings"
    assert kinds["Vadhan 2017"] == "@incollection"
    preprints = {source.tag for source in SOURCES if source.venue.startswith("arXiv")}
    assert {tag for tag, kind in kinds.items() if kind == "@misc"} == preprints  # all others have a type of their own
    for source in SOURCES:
        assert source.doi.startswith("10.") or not source.arxiv
    assert f"version = {{{dp.__version__}}}" in dptally_bibtex()
