"""Where claims come from: a sentence, a mapping, a file of one of many kinds. Read strictly, never executed."""

from __future__ import annotations

import csv
import importlib
import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dptally import checks
from dptally.documents import read_json
from dptally.errors import DptallyError, InvalidArgument, InvalidType
from dptally.interop import from_dp_accounting, from_opacus
from dptally.interop.event_text import looks_like_event
from dptally.mechanisms import ADD_REMOVE, ZCDP, Adjacency, Mechanism, from_json
from dptally.opinion import pickled, statement, words
from dptally.opinion.claim import Claim, Claimed
from dptally.opinion.settings import ADJACENCIES, KEYS, Settings, settings_of, stated_settings
from dptally.opinion.strict_yaml import DEEPEST, held, read_yaml

__all__ = ["claims_of", "claims_of_bytes", "claims_of_text", "json_document", "plan_of_text"]

LARGEST = 200_000_000  # bytes: a checkpoint holds a model
_LONGEST_TEXT, _LONGEST_NAME = 1_000_000, 1000
_CHECKPOINTS = (".pt", ".pth", ".ckpt", ".pkl", ".bin")
_OF_OPACUS = (
    "sampling: opacus with poisson_sampling=True; not in the history",
    "adjacency: one record added or removed",
)
_STATES = ("history", "privacy_accountant_state_dict")
_PLAN, _NEIGHBOURS = "plan", "adjacency: one record added or removed; not said"
_BRACKETS = " \t\r\n("
_COUNT, _CALL = re.compile(r"[\d_.eE+]{1,60}\s*"), re.compile(r"[A-Za-z_]\w{0,60}\s*\(")


def claims_of(source: object, epsilon: float | None = None, delta: float | None = None) -> list[Claim]:
    """The claims of a source. ``epsilon`` and ``delta`` complete one that describes a run but claims nothing."""
    if isinstance(source, Mapping):
        return [_of_mapping(source, "mapping", epsilon, delta)]
    if isinstance(source, Path):
        return _of_file(source, epsilon, delta)
    if not isinstance(source, str):
        raise InvalidType("claim", "a text, a mapping or a path", source)
    if source.startswith("@"):
        return _of_file(Path(source[1:]), epsilon, delta)
    if _is_file(source):
        return _of_file(Path(source), epsilon, delta)
    start, names, name = source[:_LONGEST_NAME].partition(": @")
    head = words.head_of(words.typed(f"{start}:")) if names else None
    if head is not None and not head[1]:
        return _of_named_file(name, _said_once(head[0], epsilon, delta))
    return claims_of_text(source, epsilon, delta)


def _is_file(text: str) -> bool:
    """Whether a text names a file: one that is there, or a word that ends as files do."""
    if len(text) > _LONGEST_NAME or "\n" in text or "\0" in text or not text.strip():
        return False
    try:
        path = Path(text)
        return path.is_file() or (text.split() == [text] and path.suffix.lower() in (*_CHECKPOINTS, *_READERS))
    except (OSError, ValueError):
        return False


def _of_named_file(text: str, claimed: Claimed) -> list[Claim]:
    """``epsilon E at delta D: @run.json, gdp accountant``: the file describes the run."""
    name, accountant = words.accountant_of(text.strip())
    return [replace(claim, accountant=accountant or claim.accountant) for claim in _of_file(Path(name), *claimed)]


def _said_once(claimed: Claimed, epsilon: float | None, delta: float | None) -> Claimed:
    if epsilon is not None or delta is not None:
        raise InvalidArgument("epsilon, delta", "said once (the text claims them already)", (epsilon, delta))
    return claimed


# -- text ---------------------------------------------------------------------------------------------------


def claims_of_text(text: str, epsilon: float | None = None, delta: float | None = None) -> list[Claim]:
    """The claims of a text that came from elsewhere: it is never taken for the name of a file."""
    if len(text) > _LONGEST_TEXT:
        raise InvalidArgument("claim", f"at most {_LONGEST_TEXT} characters", f"{len(text)} characters")
    if not text.strip():
        raise InvalidArgument("claim", 'a text such as "epsilon 2 at delta 1e-5: 10 * gaussian(5)"', text)
    if text.lstrip()[:1] == "{":
        return [_of_mapping(json_document(text), "JSON", epsilon, delta)]
    text = words.typed(text)
    if statement.looks_like_statement(text):
        return statement.claims_of_statement(text)
    head = words.head_of(text)
    if head is not None:
        return [_run(head[1], _said_once(head[0], epsilon, delta), "text")]
    if delta is None and statement.looks_like_flags(text):
        delta = statement.flags_of(text).get("delta")
    return [_run(text, _both(epsilon, delta), "text")]


def _both(epsilon: object, delta: object) -> Claimed:
    if epsilon is None or delta is None:
        missing = " and ".join(name for name, value in (("epsilon", epsilon), ("delta", delta)) if value is None)
        raise InvalidArgument(
            missing,
            "said: what is claimed of this run?",
            None,
            'write "epsilon E at delta D: ..." or give epsilon= and delta= (--epsilon, --delta)',
        )
    return Claimed(checks.real("epsilon", epsilon), checks.real("delta", delta))


def _run(text: str, claimed: Claimed, source: str) -> Claim:
    """A claim about a run that is given as a plan, as a DpEvent, as flags, or in words."""
    text, accountant = words.accountant_of(text.strip())
    if not text:
        return Claim(claimed, None, accountant, source, questions=_ASKED)
    if looks_like_event(text) or text.startswith("{") or _looks_like_plan(text):
        plan = plan_of_text(text)
        assumed = (_NEIGHBOURS,) if looks_like_event(text) else ()
        return Claim(claimed, plan, accountant, source, assumed=assumed)
    if statement.looks_like_flags(text):
        return _of_flags(text, claimed, accountant, source)
    said, notes = words.said_in(text)
    return _training(said, notes, claimed, accountant, source)


def _of_flags(text: str, claimed: Claimed, accountant: str, source: str) -> Claim:
    said = statement.flags_of(text)
    if said.pop("delta", claimed.delta) != claimed.delta:
        raise InvalidArgument("delta", "said once", text[:80])
    micro, named = said.pop("used_microbatching", None), said.pop("accountant_type", "")
    if accountant and named and accountant.lower() != named:
        raise InvalidArgument("accountant", "said once", (accountant, named))
    if micro and "noise_multiplier" in said:
        said["noise_multiplier"] /= 2
    claim = _training(said, [statement.HALVED] if micro else [], claimed, accountant or named, source)
    asked = () if micro is not None else ("microbatching: none; not said (with it the noise counts half)",)
    return replace(claim, assumed=(*claim.assumed, *asked))


_ASKED = (
    "mechanism: which noise, of what size for which sensitivity?",
    "composition: how many releases or steps?",
    "sampling: who joins a step, and how?",
    "adjacency: one record added or removed, or replaced?",
)


def _training(said: Mapping[str, Any], notes: list[str], claimed: Claimed, accountant: str, source: str) -> Claim:
    asked = stated_settings(said).unsaid()
    if asked:
        return Claim(claimed, None, accountant, source, questions=asked, notes=tuple(notes))
    settings = settings_of(said)
    plan, questions = _answerable(settings)
    return Claim(claimed, plan, accountant, source, settings, settings.assumed(), questions, tuple(notes))


def _answerable(settings: Settings) -> tuple[Mechanism | None, tuple[str, ...]]:
    """The plan, or the reason why there is none for this sampler."""
    try:
        return settings.plan(), ()
    except InvalidArgument:
        raise
    except DptallyError as refusal:
        return None, (str(refusal),)


def _looks_like_plan(text: str) -> bool:
    """Brackets, perhaps a count and a star, brackets, and a name that is called."""
    rest = text.lstrip(_BRACKETS)
    count, star, after = rest.partition("*")
    if star and _COUNT.fullmatch(count):
        rest = after.lstrip(_BRACKETS)
    return _CALL.match(rest) is not None


def plan_of_text(text: str) -> Mechanism:
    """A plan in the plan language, as JSON, or as the repr of a DpEvent."""
    if looks_like_event(text):
        return from_dp_accounting(text)
    if text.lstrip()[:1] == "{":
        return from_json(text)
    # the plan language stands beside the command line, and this is the one door to it from here
    parse: Callable[[str], Mechanism] = importlib.import_module("dptally.cli.language").parse
    return parse(text)


# -- mappings -----------------------------------------------------------------------------------------------


def _of_mapping(said: Mapping[str, Any], source: str, epsilon: float | None, delta: float | None) -> Claim:
    said = dict(said)
    if any(not isinstance(key, str) for key in said):
        raise InvalidType("claim", "a mapping with texts for keys", sorted(map(str, said))[:8])
    if "deployment" in said:
        return _of_registry(said, source, epsilon, delta)
    inside = said.pop("epsilon", None), said.pop("delta", None)
    claimed = _both(_picked("epsilon", inside[0], epsilon), _picked("delta", inside[1], delta))
    source = _text(said, "source") or source
    accountant = _text(said, "accountant") or _text(said, "mechanism")
    notes = [f"unit as stated: {unit}" for unit in [_text(said, "unit")] if unit]
    ways = [key for key in (_PLAN, "event", "history", "privacy_accountant_state_dict") if key in said]
    if len(ways) > 1:
        raise InvalidArgument("claim", "described once", ways)
    if not ways:
        run = {key: value for key, value in said.items() if value is not None}
        return _training(run, notes, claimed, accountant, source)
    return _of_run(ways[0], said, claimed, accountant, source)


def _picked(key: str, inside: object, given: object) -> object:
    if inside is not None and given is not None:
        raise InvalidArgument(key, "said once", (inside, given))
    return given if inside is None else inside


def _text(said: dict[str, Any], key: str) -> str:
    value = said.pop(key, "") or ""
    if not isinstance(value, str) or len(value) > 1000:
        raise InvalidType(key, "a short text", value)
    return value


def _of_run(way: str, said: dict[str, Any], claimed: Claimed, accountant: str, source: str) -> Claim:
    run, adjacency = said.pop(way), said.pop("adjacency", None)
    if way in ("history", "privacy_accountant_state_dict"):
        # other keys of a checkpoint are the model's; they say nothing of the run's privacy
        plan: Mechanism = from_opacus(run if way == "history" else {way: run})
        return Claim(claimed, plan, accountant, source, assumed=_OF_OPACUS)
    if said:
        raise InvalidArgument(
            "claim", f"described with {way} alone, beside epsilon, delta, accountant", sorted(said)[:8]
        )
    if way == "event":
        assumed = () if adjacency is not None else (_NEIGHBOURS,)
        return Claim(claimed, from_dp_accounting(run, _adjacency(adjacency)), accountant, source, assumed=assumed)
    if adjacency is not None:
        raise InvalidArgument("adjacency", "said inside the plan", adjacency)
    if isinstance(run, Mechanism):
        return Claim(claimed, run, accountant, source)
    if not isinstance(run, (str, dict)):
        raise InvalidType("plan", "a plan, its text or its JSON", run)
    return Claim(claimed, plan_of_text(run if isinstance(run, str) else json.dumps(run)), accountant, source)


def _adjacency(value: object) -> Adjacency:
    if value is None:
        return ADD_REMOVE
    if isinstance(value, Adjacency):
        return value
    if not isinstance(value, str) or value not in ADJACENCIES:
        raise InvalidArgument("adjacency", f"one of {', '.join(ADJACENCIES)}", value)
    return ADJACENCIES[value]


def _of_registry(said: dict[str, Any], source: str, epsilon: float | None, delta: float | None) -> Claim:
    """A record of the deployments registry. Its mechanisms are prose; a line "dptally plan: ..." in it is read."""
    deployment = said["deployment"]
    loss = _inside(_inside(deployment, "privacy_loss"), "privacy_parameters")
    variant = _inside(deployment, "dp_variant").get("variant_name")
    at = loss.get("delta", 0.0 if variant == "Pure DP" else None)
    if isinstance(at, str):
        at = words.quantity("delta", words.typed(at))
    claimed = _both(_picked("epsilon", loss.get("epsilon"), epsilon), _picked("delta", at, delta))
    prose = _inside(deployment, "implementation").get("mechanisms", "")
    found = re.search(r"^\W*dptally plan: (.+)$", prose, re.MULTILINE) if isinstance(prose, str) else None
    name = f"{source}, registry record"
    if found is not None:
        return Claim(claimed, plan_of_text(found[1].strip()), source=name)
    if "rho" in loss:
        return Claim(claimed, ZCDP(loss["rho"]), source=name, notes=("judged by the record's own rho",))
    return Claim(claimed, None, source=name, questions=_ASKED)


def _inside(value: object, key: str) -> dict[str, Any]:
    found = value.get(key, {}) if isinstance(value, dict) else {}
    return found if isinstance(found, dict) else {}


# -- files --------------------------------------------------------------------------------------------------


def _of_file(path: Path, epsilon: float | None, delta: float | None) -> list[Claim]:
    return claims_of_bytes(_bytes(path), str(path), epsilon, delta)


def claims_of_bytes(raw: bytes, name: str, epsilon: float | None = None, delta: float | None = None) -> list[Claim]:
    """The claims of a file's contents; the ending of its ``name`` says what it is. Nothing is opened."""
    path = Path(name)
    if path.suffix.lower() in _CHECKPOINTS or raw[:4] == b"PK\x03\x04":
        state = pickled.read_checkpoint(raw)
        if not isinstance(state, Mapping):
            raise InvalidArgument("checkpoint", "a dictionary with the accountant's state", type(state).__name__)
        kept = {key: pickled.plain(state[key]) for key in _STATES if key in state}
        if not kept:
            raise InvalidArgument("checkpoint", "one with an opacus accountant's history", sorted(map(str, state))[:8])
        named = state if "history" in kept else kept[_STATES[1]]
        by = named.get("mechanism") if isinstance(named, Mapping) else None
        if isinstance(by, str):
            kept["accountant"] = by
        return [_of_mapping(kept, path.name, epsilon, delta)]
    if len(raw) > _LONGEST_TEXT:
        raise InvalidArgument("claim file", f"at most {_LONGEST_TEXT} bytes", str(path))
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidArgument("claim file", "UTF-8 text", str(path)) from None
    read = _READERS.get(path.suffix.lower())
    return claims_of_text(text, epsilon, delta) if read is None else read(text, path.name, epsilon, delta)


def _bytes(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():  # a pipe may never end, a device has no end
            raise InvalidArgument("claim file", "a file (the standard input is -)", str(path)[:200])
        with path.open("rb") as stream:
            raw = stream.read(LARGEST + 1)
    except DptallyError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no such file"
        raise InvalidArgument("claim file", "readable", str(path)[:200], reason) from None
    if len(raw) > LARGEST:
        raise InvalidArgument("claim file", f"at most {LARGEST} bytes", str(path))
    return raw


def _json_file(text: str, name: str, epsilon: float | None, delta: float | None) -> list[Claim]:
    document = json_document(text)
    if isinstance(document, dict) and {"schema", "mechanism"} == set(document):
        return [Claim(_both(epsilon, delta), from_json(text), source=name)]
    if isinstance(document, list):  # a bare opacus history
        document = {"history": document}
    return [_of_mapping(document, name, epsilon, delta)]


def json_document(text: str) -> Any:
    found = read_json(text, "claim", longest=LARGEST)
    if not isinstance(found, (dict, list)):
        raise InvalidType("claim", "a JSON object", found)
    return found


def _shallow(text: str) -> None:
    depth = 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if depth > DEEPEST:
            raise InvalidArgument("claim", f"at most {DEEPEST} brackets deep", "a deeper document")


def _yaml(text: str, name: str, epsilon: float | None, delta: float | None) -> list[Claim]:
    _shallow(text)
    document = read_yaml(text, name)
    if not isinstance(document, dict):
        raise InvalidType("claim", "a YAML mapping", document)
    return [_of_mapping(document, name, epsilon, delta)]


def _toml(text: str, name: str, epsilon: float | None, delta: float | None) -> list[Claim]:
    import tomllib

    _shallow(text)
    try:
        document = tomllib.loads(text, parse_float=held)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        if isinstance(error, DptallyError):
            raise
        raise InvalidArgument("claim file", "valid TOML", name, type(error).__name__) from None
    return [_of_mapping(document, name, epsilon, delta)]


def _csv(text: str, name: str, epsilon: float | None, delta: float | None) -> list[Claim]:
    """A header and one claim per row; columns are those of a mapping, or "claim" with a sentence."""
    try:
        rows = list(csv.reader(io.StringIO(text), strict=True))
    except csv.Error as error:
        raise InvalidArgument("claim file", "valid CSV", name, str(error)) from None
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    if len(rows) < 2:
        raise InvalidArgument("claim file", "a CSV file with a header and claims", name)
    header = [cell.strip() for cell in rows[0]]
    if len(set(header)) < len(header):
        raise InvalidArgument("claim file", "a CSV file with distinct columns", header[:8])
    return [
        claim
        for i, row in enumerate(rows[1:], 2)
        for claim in _of_row(
            dict(zip(header, row, strict=False)), f"{name}, row {i}", len(row) == len(header), epsilon, delta
        )
    ]


def _of_row(cells: dict[str, str], name: str, whole: bool, epsilon: float | None, delta: float | None) -> list[Claim]:
    if not whole:
        raise InvalidArgument(name, "as long as the header", list(cells)[:8])
    said: dict[str, Any] = {key: cell.strip() for key, cell in cells.items() if cell.strip()}
    try:
        if set(said) == {"claim"}:
            return claims_of_text(said["claim"], epsilon, delta)
        numbers = {*KEYS, "epsilon", "delta"} - {"sampler", "adjacency"}
        said = {key: words.quantity(key, words.typed(cell)) if key in numbers else cell for key, cell in said.items()}
        return [_of_mapping(said, name, epsilon, delta)]
    except InvalidArgument as error:
        raise InvalidArgument(name, "a claim", cells, str(error)) from None


_READERS = {".csv": _csv, ".yaml": _yaml, ".yml": _yaml, ".json": _json_file, ".toml": _toml}
