"""Data and queries that every engine must answer with the same integers."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from play import PlayLedger

import dptally as dp
from dptally.tables import compiled as compiling

WARDS = [f"ward {i}" for i in range(48)] + ["O'Neill \\ ${x}", "Säle"]


def hospital(path: str, rows: int, persons: int) -> None:
    """Visits like a hospital's, the same at every call: most persons have few, some have many; 1 % is missing."""
    import duckdb

    wards = ", ".join("'" + ward.replace("'", "''") + "'" for ward in WARDS)
    duckdb.connect().execute(f"""
        COPY (
            SELECT CAST(power((hash(i, 1) % 1000003) / 1000003.0, 2) * {persons} AS BIGINT) AS patient_id,
                   [{wards}][1 + CAST((hash(i, 1) % 1000003 * 7 + hash(i, 2) % 3) % 50 AS INTEGER)] AS ward,
                   CASE WHEN hash(i, 3) % 100 = 0 THEN NULL WHEN hash(i, 3) % 100 = 1 THEN 'nan'::DOUBLE
                        ELSE (hash(i, 4) % 4000000) / 1000.0 - 500 END AS cost,
                   CAST(hash(i, 5) % 100 AS INTEGER) AS age,
                   DATE '2026-01-01' + CAST(hash(i, 6) % 365 AS INTEGER) AS admitted
            FROM range({rows}) AS r(i)
        ) TO '{path}' (FORMAT parquet)
    """)


def edges(rows: int = 4000) -> Any:
    """Infinities, largest and smallest doubles, -0.0, neighbours of the bounds, extreme and NULL ids, foreign keys."""
    rng = random.Random(7)
    values = [None, math.nan, math.inf, -math.inf, 1.7976931348623157e308, -1.7976931348623157e308, 5e-324, -5e-324]
    values += [-0.0, 0.0, 2000.0, math.nextafter(2000.0, 3e3), math.nextafter(2000.0, 0.0), -500.0, 1e300, 0.5, 1e-60]
    people = [None, 0, 1, 2, 3, -1, 2**63 - 1, -(2**63), 2**53 + 1]
    keys = [*WARDS, None, "", " ward 1", "Ward 1", "Sa\u0308le", "ward 1 "]
    return pa.table(
        {
            "patient_id": pa.array([rng.choice(people) for _ in range(rows)], pa.int64()),
            "ward": pa.array([rng.choice(keys) for _ in range(rows)], pa.string()),
            "cost": pa.array([rng.choice(values) for _ in range(rows)], pa.float64()),
            "age": pa.array([rng.choice([None, 0, 17, 64, 65, 99]) for _ in range(rows)], pa.int32()),
            "admitted": pa.array([rng.choice([None, 20454, 20500, 20600]) for _ in range(rows)], pa.date32()),
        }
    )


def queries(session: Any, persons: bool) -> dict[str, Any]:
    """One of each kind: all aggregates, filters with arithmetic, private keys, no groups."""
    grouped = session.where("age >= 18 and admitted >= '2026-01-10' or cost * 2 - age / 3 > 100.5").group_by(
        "ward", keys=WARDS
    )
    first = grouped.persons(sigma=5) if persons else grouped.rows(sigma=5)
    found = {
        "totals": first.sum("cost", (-500, 2000), sigma=5e3)
        .mean("cost", (0, 2000), sigma=1e3)
        .variance("age", (0, 100), sigma=1e2),
        "bins": session.group_by("ward", keys=WARDS).quantile("cost", 0.5, range(0, 2001, 100), sigma=5),
        "all": session.where("ward <> 'ward 1'").sum("cost * 0.5", (0, 900), sigma=5e3, name="half"),
        "distinct": session.group_by("ward", keys=WARDS).count_distinct("age", 2, sigma=5),
    }
    private = session.where("age > 20").group_by("ward", keys=dp.private(2, sigma=0.25))
    found["private"] = private.sum("cost", (0, 2000), sigma=5e3)
    return found


def answers(source: Any, bounds: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The integers before the noise, of the queries of these names."""
    kept, compiling._noised = compiling._noised, lambda measure, values: [int(value) for value in values]
    try:
        table = dp.Table(source, stable=True, **bounds)
        session = dp.Session(table, ledger=PlayLedger(table.unit), dataset="d", by="")
        asked = queries(session, table.person is not None)
        return {name: asked[name].compiled().run(table.source.engine) for name in names}
    finally:
        compiling._noised = kept


UNITS: dict[str, dict[str, Any]] = {
    "person": {"person": "patient_id", "max_groups": 3},
    "rows of a person": {"person": "patient_id", "max_groups": 3, "max_rows": 4},
    "row": {},
}
