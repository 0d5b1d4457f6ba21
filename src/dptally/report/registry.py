"""A record for the registry of differential-privacy deployments, as YAML or JSON in its schema.

What accounting knows is filled in; what only the curator knows is marked TODO, and nothing is invented. The record is
a draft (status "Draft") until its owner completes it.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

import dptally
from dptally import checks
from dptally.answers.assumptions import assumptions
from dptally.errors import InvalidArgument, InvalidType, MissingExtra, Unanswerable
from dptally.mechanisms import Mechanism
from dptally.numerics.shown import shown_down, shown_up

__all__ = ["TODO", "Record", "registry"]

TODO = "TODO"  #: stands where only the curator can answer

#: the registry's own lists
PRODUCTS = (
    "Summary statistics",
    "Machine learning model",
    "Dataset",
    "Synthetic data",
    "Interactive API",
    "SQL queries",
)
MODELS = ("Central", "Local", "Shuffle", "Federated")
_BASIC = ("name", "curator", "description", "intended_use", "product", "region", "date", "sector")
_MORE = ("model", "post_processing", "tuning", "unprotected", "sources", "author")


@dataclass(frozen=True, slots=True)
class Record:
    """A registry record; ``missing`` names what is still TODO."""

    content: dict[str, Any]

    @property
    def missing(self) -> tuple[str, ...]:
        """The paths of everything that still says TODO."""
        return tuple(_todo(self.content, ""))

    def to_dict(self) -> dict[str, Any]:
        return self.content

    def to_json(self) -> str:
        return json.dumps(self.content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_yaml(self) -> str:
        """YAML in the order of the registry's template; PyYAML loads now."""
        try:
            import yaml
        except ImportError:
            raise MissingExtra("PyYAML", "reports") from None

        class Dumper(yaml.SafeDumper):  # type: ignore[misc]
            """Several lines stand below a bar, as the registry wants them."""

        def text(dumper: Any, value: str) -> Any:
            return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

        Dumper.add_representer(str, text)
        made: str = yaml.dump(self.content, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=10_000)
        return made


def _todo(value: Any, path: str) -> list[str]:
    if isinstance(value, dict):
        return [found for key, inside in value.items() for found in _todo(inside, f"{path}.{key}".lstrip("."))]
    if isinstance(value, list):
        return [found for inside in value for found in _todo(inside, path)]
    return [path] if value == TODO else []


def registry(plan: Mechanism, delta: float, *, unit: str, **facts: str) -> Record:
    """The record of a deployment that ran ``plan``; ``unit`` is the privacy unit ("one patient").

    Further facts, all optional texts: name, curator, description, intended_use, product, region, date (YYYY-MM-DD),
    sector, model, post_processing, tuning, unprotected, sources, author.

    >>> from dptally import Gaussian
    >>> registry(Gaussian(sigma=2.0), 1e-6, unit="one patient").content["deployment"]["dp_variant"]["variant_name"]
    'Approximate DP'
    """
    if not isinstance(plan, Mechanism):
        raise InvalidType("plan", "a mechanism or a composition of mechanisms", plan)
    delta = checks.probability("delta", delta)
    said = _facts(unit, facts)
    box = plan.epsilon_interval(delta)
    if not math.isfinite(box.upper):
        raise Unanswerable(f"the plan has no finite epsilon at delta {delta:g}: a registry record needs one")
    return Record(
        {
            "url_slug": re.sub(r"[^a-z0-9]+", "-", said["name"].lower()).strip("-") or "todo",
            "status": "Draft",
            "tier": 3,
            "deployment": {
                "basic": _basic(said),
                "dp_variant": _variant(delta, said),
                "privacy_loss": _loss(plan, delta, box.lower, box.upper, unit),
                "deployment_model": {"model_name": said["model"]},
                "accounting": _accounting(plan, said),
                "implementation": _implementation(plan, said),
                "administrative": {"sources": said["sources"], "registry_authors": [said["author"]]},
            },
        }
    )


def _facts(unit: str, facts: dict[str, str]) -> dict[str, str]:
    if not isinstance(unit, str) or not unit.strip():
        raise InvalidArgument("unit", 'said, such as "one patient"', unit)
    for name, value in facts.items():
        if name not in (*_BASIC, *_MORE):
            raise InvalidArgument(name, f"one of {', '.join((*_BASIC, *_MORE))}", value)
        if not isinstance(value, str):
            raise InvalidType(name, "a text", value)
    said = dict.fromkeys((*_BASIC, *_MORE), TODO) | facts
    if said["product"] not in (TODO, *PRODUCTS):
        raise InvalidArgument("product", f"one of {', '.join(PRODUCTS)}", said["product"])
    if said["model"] not in (TODO, *MODELS):
        raise InvalidArgument("model", f"one of {', '.join(MODELS)}", said["model"])
    if said["date"] != TODO and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", said["date"]):
        raise InvalidArgument("date", "YYYY-MM-DD", said["date"])
    return said


def _basic(said: dict[str, str]) -> dict[str, Any]:
    out: dict[str, Any] = {
        "name": said["name"],
        "data_curators": [said["curator"]],
        "intended_use": said["intended_use"],
        "data_product_type": said["product"],
        "data_product_region": said["region"],
        "description": said["description"],
        "publication_date": said["date"],
    }
    return out if said["sector"] == TODO else out | {"data_product_sector": said["sector"]}


def _variant(delta: float, said: dict[str, str]) -> dict[str, str]:
    name = "Approximate DP" if delta > 0 else "Pure DP"
    return {"variant_name": name, "unprotected_quantities": said["unprotected"]}


def _loss(plan: Mechanism, delta: float, lower: float, upper: float, unit: str) -> dict[str, Any]:
    parameters = {"epsilon": float(shown_up(upper, 8))} | ({"delta": delta} if delta > 0 else {})
    stated = [line for line in assumptions(plan) if line.startswith(("adjacency", "sampling", "sensitivity"))]
    ends = f"certified: {shown_down(lower, 8)} <= epsilon <= {shown_up(upper, 8)} at delta {delta:g}"
    return {
        "privacy_unit": unit,
        "privacy_unit_details": "; ".join(stated),
        "privacy_parameters": parameters,
        "privacy_parameters_details": ends,
    }


def _accounting(plan: Mechanism, said: dict[str, str]) -> dict[str, str]:
    number = sum(count for _, count in plan.parts)
    text = f"{number} releases composed numerically, with certified bounds, by dptally {dptally.__version__}"
    return {"post_processing": said["post_processing"], "composition": text}


def _implementation(plan: Mechanism, said: dict[str, str]) -> dict[str, str]:
    parts = [f"- {count} x {mechanism!r}" for mechanism, count in plan.parts]
    # the last line is read back by dptally check
    return {
        "preprocessing_and_hyperparameter_tuning": said["tuning"],
        "mechanisms": "\n".join([*parts, f"- dptally plan: {plan!r}"]),
        "justification": TODO,
    }
