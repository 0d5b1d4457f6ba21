"""Claims in words: ``epsilon 1.62 at delta 1e-5: DP-SGD noise 1, rate 0.01, 1000 steps, gdp accountant``.

Strict: every clause must be understood whole, or the text is refused with the clause. Nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from dptally.errors import InvalidArgument
from dptally.opinion.claim import Claimed

__all__ = ["Head", "accountant_of", "head_of", "number", "quantity", "said_in", "typed"]

LONGEST = 1_000_000
_PLAIN = r"(?:\d{1,3}(?:,\d{3})+|\d[\d_]{0,60})?(?:\.\d{0,60})?"
_NUMBER = rf"(?:(?=[\d.]){_PLAIN}(?:[eE][+-]?\d{{1,4}}|\s*[x*×·]\s*10\^[+-]?\d{{1,4}})?|10\^[+-]?\d{{1,4}})"
_WHOLE = re.compile(_NUMBER)
_EPSILON, _DELTA = r"(?:epsilon|eps|ε|ϵ)", r"(?:delta|δ)"
_AT_MOST = r"(?:=|of\s+at\s+most|at\s+most|of|is|below|<=|≤|<)?"
_HEADS = (
    re.compile(
        rf"\s*{_EPSILON}\s*(?::|{_AT_MOST})\s*(?P<epsilon>{_NUMBER}|inf)\s*,?\s*(?:at|with|and|for)?\s*"
        rf"{_DELTA}\s*{_AT_MOST}\s*(?P<delta>{_NUMBER})\s*:(?P<rest>.*)",
        re.IGNORECASE | re.DOTALL,
    ),
    re.compile(
        rf"\s*(?:\(\s*{_EPSILON}\s*,\s*{_DELTA}\s*\)\s*=\s*)?\(\s*(?P<epsilon>{_NUMBER}|inf)\s*,\s*(?P<delta>{_NUMBER})\s*\)\s*-?\s*(?:DP)?\s*:(?P<rest>.*)",
        re.IGNORECASE | re.DOTALL,
    ),
)
_LONE = re.compile(rf"\s*{_EPSILON}\b", re.IGNORECASE)
_GROUPED = re.compile(r"\d,\d")
_POINT_OR_GROUP = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+")
_COUNTS = ("steps", "epochs", "batch_size", "dataset_size")
#: characters that are printed where a keyboard has others: raised figures and signs, and the minus
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_SIGNS = str.maketrans({"\u2212": "-", "\u2010": "-", "\u2011": "-", "\u2013": "-"})
_BLANKS = re.compile(r"\s+")
_POWER = re.compile(r"(?<=10)(?:([⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,4})|\^\{([+-]?\d{1,4})\})")
_ACCOUNTANT = re.compile(
    r"(?:^|,)\s*(?:by\s+|with\s+)?(?:the\s+|an?\s+)?([\w.+' -]{1,60}?)\s+accountant\s*\.?\s*$", re.IGNORECASE
)

#: what the quantities of a run are called
_NOUNS = {
    "noise_multiplier": r"(?:gaussian\s+)?noise(?:[ _]multiplier)?|sigma",
    "sample_rate": r"(?:sampling|sample)?[ _]?(?:rate|probability)",
    "steps": r"(?:training\s+|gradient\s+)?(?:steps|step|iterations|updates|rounds)",
    "epochs": r"epochs?",
    "batch_size": r"(?:expected\s+)?(?:batch|lot)(?:[ _]?size)?|batches\s+of",
    "dataset_size": r"(?:data\s?set|training\s+set|training\s+data)(?:[ _]?size)?|records|examples|samples|rows|n",
    "clipping": r"(?:clip|clipping|gradient\s+clipping|clipping\s+norm|clip\s+norm|max[ _]grad[ _]norm)",
}
_PERCENT = rf"{_NUMBER}(?:\s*%|\s*/\s*{_NUMBER})?"
_CLAUSES = {
    key: re.compile(
        rf"(?:(?:{noun})\s*(?:=|:|of|is|at)?\s*(?P<after>{_PERCENT})|(?P<before>{_PERCENT})\s*(?:{noun}))",
        re.IGNORECASE,
    )
    for key, noun in _NOUNS.items()
}
_PHRASES = (
    ("sampler", "poisson", r"(?:with\s+)?poisson(?:[ -](?:sub)?sampl(?:ing|ed|er))?(?:\s+batches)?"),
    ("sampler", "shuffled", r"(?:randomly\s+)?shuffl(?:ed|ing)(?:\s+(?:batches|data|each\s+epoch))?"),
    (
        "sampler",
        "fixed size",
        r"(?:fixed[ -]size(?:d)?(?:\s+batches)?|sampl(?:ed|ing)\s+without\s+replacement|without\s+replacement)",
    ),
    ("sampler", "cyclic", r"(?:cyclic(?:\s+(?:batches|order))?|(?:in\s+)?(?:a\s+)?fixed\s+order)"),
    ("sampler", "balls in bins", r"balls[ -]in[ -]bins(?:\s+sampling)?"),
    ("adjacency", "add-remove", r"add[ -](?:or[ -]|/)?remove(?:[ -]one)?(?:\s+(?:adjacency|neighbou?rs))?"),
    ("adjacency", "replace", r"(?:replace(?:ment|[ -]one)?|substitut(?:e|ion))(?:\s+(?:adjacency|neighbou?rs))?"),
)
_FLAGS = tuple((key, value, re.compile(pattern, re.IGNORECASE)) for key, value, pattern in _PHRASES)
_UNIT = re.compile(r"(?:unit:?\s+.{1,60}|per\s+\w{1,30}|\w{1,30}[ -]level(?:\s+DP)?)", re.IGNORECASE)
_FILLER = re.compile(
    r"^(?:DP-?\s?SGD|private\s+training|training|trained|with|using|for|over|on|a|an|the|run)[:\s]+", re.IGNORECASE
)
_TRAINING = re.compile(r"(?:DP-?\s?SGD|private\s+training|training)", re.IGNORECASE)

Head = tuple[Claimed, str]


def typed(text: str) -> str:
    """The text with powers of ten and minus signs as a keyboard has them, and one blank or line break where there
    are many (so that no pattern has many ways to divide them).

    >>> typed("10⁻⁵"), typed("10^{−6}")
    ('10^-5', '10^-6')
    """
    text = _BLANKS.sub(lambda found: "\n" if "\n" in found[0] else " ", text.translate(_SIGNS))
    return _POWER.sub(lambda found: "^" + (found[1] or found[2]).translate(_RAISED), text)


def number(text: str) -> float:
    """A number as people write it: 1e-5, 10^-5, 60,000, 1 %, 256/60000.

    >>> number("10^-5"), number("60,000"), number("2 %"), number("1/4")
    (1e-05, 60000.0, 0.02, 0.25)
    """
    text = text.strip()
    if text.lower() == "inf":
        return float("inf")
    if text.endswith("%"):
        return number(f"{text[:-1]}/100")
    above, _, below = text.partition("/")
    divisor = _exact(below) if below else Fraction(1)
    if not divisor:
        raise InvalidArgument("number", "free of division by zero", text)
    try:
        return float(_exact(above) / divisor)
    except OverflowError:
        raise InvalidArgument("number", "one that a double can hold", text) from None


def _exact(text: str) -> Fraction:
    if not _WHOLE.fullmatch(text.strip()):
        raise InvalidArgument("number", "a number such as 1.62, 1e-5, 10^-5 or 60,000", text)
    text = re.sub(r"\s*[x*×·]\s*10\^", "e", text.strip()).replace(",", "").replace("_", "")
    text = re.sub(r"^10\^", "1e", text)
    try:
        return Fraction(text)
    except ValueError:  # a lone point
        raise InvalidArgument("number", "a number", text) from None


def head_of(text: str) -> Head | None:
    """The claimed numbers and what follows the colon; None if the text does not start as a claim."""
    for pattern in _HEADS:
        match = pattern.fullmatch(text)
        if match is not None:
            epsilon, delta = (quantity(name, match[name]) for name in ("epsilon", "delta"))
            return Claimed(epsilon, delta), match["rest"].strip()
    if _LONE.match(text):
        raise InvalidArgument(
            "claim",
            'a text "epsilon E at delta D: PLAN" (for pure DP write "at delta 0")',
            text[:80],
            "numbers have a decimal point and powers of ten a sign of their own: 1.62, 1e-5, 10^-5",
        )
    return None


def quantity(key: str, text: str) -> float:
    """A number that means the same wherever points and commas have changed places."""
    if key in _COUNTS and _POINT_OR_GROUP.fullmatch(text):
        raise InvalidArgument(key, "written so that its point cannot stand between thousands: 1000 or 1e3", text)
    if key not in _COUNTS and _GROUPED.search(text):
        raise InvalidArgument(key, "written with a decimal point and without commas", text)
    return number(text)


def accountant_of(text: str) -> tuple[str, str]:
    """(the text without its last clause "..., <name> accountant", the name or "").

    >>> accountant_of("gaussian(1), opacus gdp accountant")
    ('gaussian(1)', 'opacus gdp')
    """
    match = _ACCOUNTANT.search(text)
    return (text, "") if match is None else (text[: match.start()].strip(), match[1].strip())


def said_in(text: str) -> tuple[dict[str, Any], list[str]]:
    """What the words say of a training run, and remarks on what does not change the answer.

    >>> said_in("DP-SGD noise 1, rate 1 % and 1e3 steps")[0]
    {'noise_multiplier': 1.0, 'sample_rate': 0.01, 'steps': 1000.0}
    """
    said: dict[str, Any] = {}
    notes: list[str] = []
    for clause in _clauses(text):
        key, value = _understood(clause)
        if key == "note":
            notes.append(str(value))
        elif key in said and said[key] != value:
            raise InvalidArgument(key, "said once", clause)
        else:
            said[key] = value
    if "noise_multiplier" not in said:
        raise InvalidArgument("claim", "a plan, a DpEvent, or words with the noise of a training run", text[:80])
    return said, notes


def _clauses(text: str) -> Iterator[str]:
    for clause in re.split(r",\s+|;|\n|\s+and\s+|\s+with\s+", text.strip().rstrip(".")):
        clause = clause.strip()
        while True:
            shorter = _FILLER.sub("", clause, count=1).strip()
            if shorter == clause:
                break
            clause = shorter
        if clause and not _TRAINING.fullmatch(clause):
            yield clause


def _understood(clause: str) -> tuple[str, Any]:
    for key, pattern in _CLAUSES.items():
        match = pattern.fullmatch(clause)
        if match is not None:
            value = quantity(key, match["after"] or match["before"])
            if key == "clipping":
                return "note", f"clipping norm {value:g}: the noise is read as a multiple of it"
            return key, value
    for key, meant, pattern in _FLAGS:
        if pattern.fullmatch(clause):
            return key, meant
    if _UNIT.fullmatch(clause):
        return "note", f"unit as stated: {clause}"
    raise InvalidArgument("claim", "made of clauses such as 'noise 1', 'rate 0.01', '1000 steps'", clause[:80])
