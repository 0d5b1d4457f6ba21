"""Names as people read them: one spelling for one name, and no two names that look alike.

A part of a partition is a budget of its own, so two spellings of one ward would be two budgets. Names are
therefore kept in Unicode's compatibility normal form (NFKC), characters that are not seen are refused, and so
is a name that mixes scripts or that looks like one which is there already.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from dptally.errors import InvalidArgument, InvalidType

__all__ = ["alike", "identifier", "name", "prose", "skeleton"]

_INVISIBLE = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")
_NOT_IN_PROSE = frozenset({"Cc", "Cs", "Zl", "Zp"})
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_SPACE = " "

#: characters of visible categories that are drawn as nothing, or as a gap: (first, last)
_BLANK = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xFFFC, 0xFFFD),
    (0x16FE4, 0x16FE4),
    (0x1D159, 0x1D159),
    (0xE0100, 0xE01EF),
)

#: scripts that are written together; everything else keeps to one
_TOGETHER = frozenset(
    {"LATIN", "CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC"}
)

#: letters of other scripts (and rarer Latin ones) beside the letter or digit that they are drawn like
_LOOKS_LIKE = {
    "a": "аαɑ",
    "b": "ьƅ",
    "c": "сϲᴄⲥ",
    "d": "ԁ",
    "e": "еҽ",
    "f": "ſ",
    "g": "ɡց",
    "h": "һհ",
    "i": "іιıɩɪᎥ",
    "j": "јϳ",
    "k": "кκ",
    "l": "ӏǀ",
    "n": "ոη",
    "o": "оοօσᴏⲟ",
    "p": "рρⲣ",
    "q": "ԛզ",
    "r": "гᴦ",
    "s": "ѕꜱ",
    "u": "υսᴜʋ",
    "v": "ѵνᴠ",
    "w": "ԝѡωաᴡ",
    "x": "хχ",
    "y": "уүγʏ",
    "z": "ᴢ",
    "A": "АΑᎪꓮⲀ",
    "B": "ВΒᏴꓐⲂ",
    "C": "СϹᏟꓚⲤ",
    "D": "ᎠꓓᗪᎠ",
    "E": "ЕΕᎬꓰⲈ",
    "F": "Ϝꓝ",
    "G": "ԌᏀꓖ",
    "H": "НΗᎻꓧⲎ",
    "I": "ІΙӀꓲⲒ",
    "J": "ЈᎫꓙ",
    "K": "КΚᏦꓗⲔ",
    "L": "ᏞꓡԼ",
    "M": "МΜᎷꓟⲘ",
    "N": "Νꓠⲛ",
    "O": "ОΟՕꓳⲞ",
    "P": "РΡᏢꓑⲢ",
    "Q": "Ԛ",
    "R": "ᎡᏒꓣ",
    "S": "ЅᏕᏚꓢՏ",
    "T": "ТΤᎢꓔⲦ",
    "U": "Սꓴ",
    "V": "ѴᏙꓦ",
    "W": "ԜᎳᏔꓪ",
    "X": "ХΧꓫⲬ",
    "Y": "УΥҮᎽꓬⲨ",
    "Z": "ΖᏃꓜ",
    "3": "ЗӠ",
    "-": "‐‑‒–—―−﹘",
    "'": "‘’ʹʻʼʽˈ՚′",
    '"': "“”″",
    "/": "⁄∕",
    ".": "․",
    ":": "ː։׃∶",
}
_DRAWN = str.maketrans({twin: letter for letter, twins in _LOOKS_LIKE.items() for twin in twins})


def prose(argument: str, value: object, limit: int = 2000) -> str:
    """A printable text: no control characters, nothing that turns the direction of writing, and nothing that
    UTF-8 cannot hold. Lines may be broken.
    """
    if not isinstance(value, str):
        raise InvalidType(argument, "a text", value)
    if len(value) > limit:
        raise InvalidArgument(argument, f"at most {limit} characters", value)
    if value.isprintable():  # which has none of the characters below
        return value
    if any(unicodedata.category(c) in _NOT_IN_PROSE and c not in "\n\t" for c in value):
        raise InvalidArgument(argument, "free of control characters", ascii(value))
    if not _TURNING.isdisjoint(value):
        raise InvalidArgument(argument, "free of characters that turn the direction of writing", ascii(value))
    return value


def name(argument: str, value: object) -> str:
    """A name in normal form (NFKC): non-empty, at most 200 characters, each of which can be seen.

    >>> name("part", "Ａ３")  # full-width letters are the letters
    'A3'
    """
    if type(value) is str and value.isascii() and value.isprintable() and 0 < len(value) <= 200:
        if value != value.strip() or "  " in value:
            raise InvalidArgument(argument, "a non-empty text without spaces at its ends, nor two in a row", value)
        return value
    text = unicodedata.normalize("NFKC", prose(argument, value, limit=200))
    if not text or text != text.strip():
        raise InvalidArgument(argument, "a non-empty text without spaces at its ends", value)
    if len(text) > 200:
        raise InvalidArgument(argument, "at most 200 characters in normal form", value)
    for character in text:
        if unicodedata.category(character) in _INVISIBLE or _is_blank(character):
            raise InvalidArgument(
                argument, f"free of characters that are not seen (it holds U+{ord(character):04X})", ascii(value)
            )
    if any(character.isspace() and character != _SPACE for character in text) or "  " in text:
        raise InvalidArgument(argument, "free of unusual or repeated spaces", value)
    return text


def identifier(argument: str, value: object) -> str:
    """A name in one script: letters of Latin, Cyrillic, Greek and others are not mixed.

    Latin, Chinese, Japanese and Korean letters may stand together.
    """
    text = name(argument, value)
    if text.isascii():
        return text
    scripts = {_script(character) for character in text} - {""}
    if len(scripts) > 1 and not scripts <= _TOGETHER:
        shown = " and ".join(sorted(script.capitalize() for script in scripts))
        raise InvalidArgument(
            argument, f"written in one script (it mixes {shown}), so that it reads as it is", ascii(value)
        )
    return text


def skeleton(text: str) -> str:
    """What a name looks like: letters that are drawn alike become one, digits of any script become 0 to 9.

    >>> skeleton("сор") == skeleton("cop")  # Cyrillic and Latin
    True
    """
    if text.isascii():
        return text
    drawn = unicodedata.normalize("NFKD", text).translate(_DRAWN)
    return "".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in drawn)


def alike(text: str, others: Iterable[str]) -> str | None:
    """The first of ``others`` that looks like ``text`` and is not it."""
    mine = skeleton(text)
    return next((other for other in others if other != text and skeleton(other) == mine), None)


def _is_blank(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in _BLANK)


def _script(character: str) -> str:
    """The script of a letter, the first word of its Unicode name; empty for what every script uses."""
    if not character.isalpha():
        return ""
    first = unicodedata.name(character, "UNNAMED").split(" ", 1)[0]
    return "" if first == "MODIFIER" else first
