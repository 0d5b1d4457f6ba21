"""The second opinion's answers: the page about a claim that was pasted or dropped. A task of a worker."""

from __future__ import annotations

from typing import Any

from dptally.errors import InvalidArgument
from dptally.opinion.picture import picture
from dptally.opinion.reading import claims_of_bytes, claims_of_text
from dptally.opinion.verdict import STATUSES, Verdict, judged

__all__ = ["opinion"]

ENDINGS = (".csv", ".yaml", ".yml", ".json", ".toml", ".txt", ".pt", ".pth", ".ckpt", ".pkl", ".bin")
_MOST_CLAIMS = 100


def opinion(given: str | bytes, ending: str, epsilon: float | None, delta: float | None) -> dict[str, Any]:
    """The verdict on one claim with all that stands around it, or a row for each of many.

    ``given`` is never a name: a text is read as a claim, bytes are read as what their ``ending`` says.
    """
    if isinstance(given, str):
        claims = claims_of_text(given, epsilon, delta)
    elif ending in ENDINGS:
        claims = claims_of_bytes(given, f"the file{ending}", epsilon, delta)
    else:
        raise InvalidArgument("file", f"one that ends in {', '.join(ENDINGS)}", ending)
    if len(claims) > _MOST_CLAIMS:
        raise InvalidArgument("claims", f"at most {_MOST_CLAIMS} at once; dptally check takes more", len(claims))
    verdicts = [judged(claim) for claim in claims]
    return _one(verdicts[0]) if len(verdicts) == 1 else {"rows": [_row(verdict) for verdict in verdicts]}


def _one(verdict: Verdict) -> dict[str, Any]:
    page = verdict.page()
    sections = [(name, list(lines)) for name, lines in page.sections()]
    return {
        "status": verdict.status,
        "word": STATUSES[verdict.status],
        "claimed": f"epsilon {verdict.claimed.epsilon:g} at delta {verdict.claimed.delta:g}",
        "picture": picture(verdict),
        "sections": [(name, lines) for name, lines in sections if lines],
        "document": page.to_dict(),
    }


def _row(verdict: Verdict) -> dict[str, str]:
    return {
        "source": verdict.claim.source,
        "claimed": f"{verdict.claimed.epsilon:g} at {verdict.claimed.delta:g}",
        "status": verdict.status,
        "word": STATUSES[verdict.status],
        "why": verdict.reasons[0],
    }
