"""Most entries of a chain, read without making a JSON document of them: the spend of one meter on everything, and an
ending without a value. What is written otherwise goes to the one reader of JSON.

The entries of an account differ in a few places (time, caller, key, number) and share long pieces (plan, labels, why).
The places are matched in every entry, a piece once.
"""

from __future__ import annotations

import json
import re

__all__ = ["PlainReader"]

_PLAIN = r"[ !#-\[\]-~]*+"  # the inside of a JSON text that needs no escapes
_TEXT = rf'{_PLAIN}(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{{4}}){_PLAIN})*+'
_START = rf'\{{"at":"{_PLAIN}",(?:"books":"[0-9a-f]{{64}}+",)?"by":"({_PLAIN})","call":"({_PLAIN})",'
_ENDING = re.compile(_START).match
_SPEND = re.compile(
    rf'{_START}"cost":\["([0-9]{{1,40}}+)","0"\],"dataset":"({_PLAIN})","expires":(?:null|"{_PLAIN}"),'
    rf'"key":(null|"{_PLAIN}"),'
).match
_PLAN = re.compile(
    rf'"labels":\[(?:"{_PLAIN}"(?:,"{_PLAIN}")*+)?\],"part":"","partition":"","plan":("{_TEXT}"),'
).fullmatch
_WHY = re.compile(rf',"type":"spend","why":"{_TEXT}"\}}').fullmatch
_NUMBER = '"seq":'
_MOST = 1_000  # pieces that are remembered


class PlainReader:
    """Reads the plain entries of one chain."""

    __slots__ = ("_dataset", "_place", "_plans", "_whys")

    def __init__(self, dataset: str) -> None:
        self._dataset = dataset
        self._place = f'"dataset":"{dataset}","of":' if re.fullmatch(_PLAIN, dataset) else None
        self._plans: dict[str, str] = {}
        self._whys: set[str] = set()

    def spend(self, body: str, number: int, by: str, key: str | None) -> tuple[int, str, str] | None:
        """The units of a plain spend, as a number and as they are written, and its plan. None for everything else, and
        for one that does not agree with its columns.
        """
        found = _SPEND(body)
        if found is None:
            return None
        whose, call, units, dataset, named = found.groups()
        if whose != by or dataset != self._dataset or not dataset:
            return None
        if key != (f"c:{call}" if named == "null" else f"k:{named[1:-1]}"):
            return None
        start, place = found.end(), body.find(_NUMBER, found.end())
        rest = f"{number},"
        if not body.startswith(rest, place + len(_NUMBER)):
            return None
        plan = self._plan(body[start:place])
        if plan is None or not self._is_why(body[place + len(_NUMBER) + len(rest) - 1 :]):
            return None
        return int(units), units, plan

    def ending(self, body: str, number: int, by: str, of: int) -> bool:
        """Whether the body is that of an ending without a value, and agrees with its columns."""
        found = _ENDING(body)
        if found is None or found.group(1) != by or self._place is None:
            return False
        start = f'{self._place}{of},"seq":{number},"state":"'
        place = found.end()
        return body.startswith(start, place) and body[place + len(start) :] in _ENDS

    def _plan(self, piece: str) -> str | None:
        plan = self._plans.get(piece)
        if plan is None:
            found = _PLAN(piece)
            if found is None:
                return None
            if len(self._plans) > _MOST:
                self._plans.clear()
            plan = self._plans[piece] = json.loads(found.group(1))
        return plan

    def _is_why(self, piece: str) -> bool:
        if piece in self._whys:
            return True
        if _WHY(piece) is None:
            return False
        if len(self._whys) > _MOST:
            self._whys.clear()
        self._whys.add(piece)
        return True


_ENDS = ('released","type":"settle"}', 'burnt","type":"settle"}')
