"""Which letters have an upper-case form, and the symbols that say so.

Upper-case letters have a partner if lower-casing and upper-casing give the one
from the other, one character each. "ß", "İ" or "ǅ" have none.
"""

import unicodedata

# Unicode guarantees that no text has these characters, "noncharacters".
CAPITAL = "\U0001fffe"  # the next letter
CAPITALS = "\U0001ffff"  # all letters up to the next other character
ALL_CAPITALS = "\U0002fffe"  # all letters
EACH_CAPITAL = "\U0002ffff"  # the first letter of each word
CASE_SYMBOLS = CAPITAL + CAPITALS + ALL_CAPITALS + EACH_CAPITAL
# They stand around symbols of users, while a graph inserts case symbols.
BRACKETS = "\U0003fffe\U0003ffff"
# What a text loses before symbols are inserted.
DROPPED = CASE_SYMBOLS + BRACKETS
# Symbols that no letter follows, and the spaces that belong to them.
LAST_SYMBOLS = f"(?: ?[{CASE_SYMBOLS}])+ ?"
# The fewest words for one `ALL_CAPITALS` or `EACH_CAPITAL`.
LEAST_ALL_CAPITALS, LEAST_EACH_CAPITAL = 2, 4

# The planes of Unicode that have such letters, without halves of pairs.
_ALL = [chr(code) for code in range(0x20000) if not 0xD800 <= code < 0xE000]
_CASED = [c for c in _ALL if c.lower() != c or c.upper() != c]
UPPER_CASE = frozenset(c for c in _CASED if c.lower() != c)
# Of the upper-case letters that have a partner.
TO_LOWER = {
    upper: upper.lower()
    for upper in sorted(UPPER_CASE)
    if len(upper.lower()) == 1 and upper.lower().upper() == upper
}
TO_UPPER = {lower: upper for upper, lower in TO_LOWER.items()}
# Also those that a rule replaces by them, such as "ſ", which NFKC makes an "s".
LOWER_CASE = frozenset(
    c for c in _CASED if {c, unicodedata.normalize("NFKC", c)} & TO_UPPER.keys()
)
# What may be among the letters of a word in capitals and has no case itself:
# letters without a partner, such as "ß", the marks U+0300 to U+036F, and
# characters that cannot be seen, such as a soft hyphen.
NEUTRAL = frozenset(
    {
        *set(_CASED).difference(UPPER_CASE, LOWER_CASE),
        *map(chr, range(0x300, 0x370)),
        *(
            c
            for c in map(chr, range(1, 0xA0))
            if unicodedata.category(c) == "Cc"
        ),
        *"\u00ad\u061c\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d",
        *"\u202e\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069",
        *"\u206a\u206b\u206c\u206d\u206e\u206f\ufeff\ufff9\ufffa\ufffb",
    }
) - {c for c in map(chr, range(0xA0)) if c.isspace()}
# What is between words: white space, and SentencePiece's mark of a space.
SPACES = frozenset([*(c for c in _ALL if c.isspace()), "▁"])


def character_class(*kinds: frozenset[str]) -> str:
    """Returns a class of characters for a regular expression, in brackets.

    Example:
    >>> character_class(frozenset("abc"), frozenset("e"))
    '[a-ce]'
    """
    codes = sorted(ord(c) for kind in kinds for c in kind)
    parts, first = [], 0
    for place, code in enumerate(codes):
        if codes[place + 1 : place + 2] == [code + 1]:
            continue
        begin = codes[first]
        dash = "-" if code > begin + 1 else ""
        parts.append(chr(begin) + (dash + chr(code) if code > begin else ""))
        first = place + 1
    return f"[{''.join(parts)}]"
