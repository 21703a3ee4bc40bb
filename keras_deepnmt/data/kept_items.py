r"""Finds the parts of a text that a translation has unchanged.

These are tags, placeholders, addresses, names of files and long numbers. Each
kind has a pattern below. Prices, dates, decimal numbers and entities such as
`&amp;` are text that is translated.
"""

import re
from dataclasses import dataclass

import regex

from keras_deepnmt.data.scripts import LETTER_WITHOUT_SPACES


@dataclass(frozen=True)
class KeptItem:
    """A part of a text that stays as it is.

    Attributes:
        kind: A key of `PATTERNS`, such as `"url"`.
        begin: The place of its first character in the text.
        end: The place after its last character.
        text: The part itself.
    """

    kind: str
    begin: int
    end: int
    text: str


# A letter or digit; those of Chinese and the like begin and end other words.
_LETTER = rf"[\w--{LETTER_WITHOUT_SPACES}]"
_ATTRIBUTE = r"\s+[\w:.-]+\s*=\s*(?:\"[^\"<]*\"|'[^'<]*'|[^\s\"'<>=]+)"
_NAME = r"[\p{L}_][\w:.-]*"
# Not in the middle of a word, an address or a path.
_START = r"(?<![\w@/\\.~:$%-])"
_PATH_PART = r"[\w.@+~-]*[\w+~-]"
_NO_NAME = "„“”«»，。、！？：；"
_BRACKETED = r"\(\+?\d++\)"
_EXTENSIONS = (
    "7z apk avi bak bat bin bmp bz2 cfg conf cpp cs css csv dat db deb dll dmg "
    "doc docm docx dotx eml epub exe flac gif gz html htm ico ics idml ini iso "
    "jar java jpeg jpg js json jsonl key log md mkv mov mp3 mp4 mpeg msg msi "
    "odp ods odt ogg otf pdf php png po pot pps ppt pptx properties ps1 psd py "
    "rar rb resx rpm rst rtf sh sql srt strings svg tar tbx tex tgz tif tiff "
    "tmp tmx toml ts tsv ttf txt vtt wav webm webp wmv woff xhtml xlf xliff "
    "xls xlsm xlsx xml xsl xz yaml yml zip"
)
_EXTENSION = "|".join(
    form for name in _EXTENSIONS.split() for form in (name, name.upper())
)

# In this order: where two of them begin at the same place, the first counts.
PATTERNS = {
    "comment": r"<!--.*?-->",
    # What stands between these is code for other programs, as XLIFF says.
    "code": rf"<(?P<code_name>bpt|ept|ph|it)(?:{_ATTRIBUTE})*+\s*>[^<>]*"
    r"</(?P=code_name)\s*>",
    "tag": rf"</{_NAME}\s*>|<{_NAME}(?:{_ATTRIBUTE})*+\s*/?>",
    "url": r"(?<![\w@])(?:https?://|ftps?://|file://|mailto:|www\.)"
    r"[\w\-.~:/?#\[\]@!$&'()*+,;=%{}]+",
    "email": r"(?<![\w.+-])[\w][\w.+%-]*+@(?:[\w-]+\.)+[A-Za-z]{2,}(?![\w-])",
    "braces": r"\{\{[^{}\n]{1,80}\}\}",
    "dollar": r"\$\{[^{}\n]{1,80}\}",
    "brace": r"\{[\w.\[\]\-+!:,<>=#%^]*\}",
    "percent": r"%%|(?:\G|(?<![\w%]))%(?:\(\w+\)[-+0#]*\d*(?:\.\d+)?[a-zA-Z]|"
    r"(?:\d+\$)?[-+0#]*\d*(?:\.\d+)?(?:hh?|ll?|[Lqjzt])?"
    r"[@diouxXeEfFgGaAcs](?!\w))",
    "symbol": r"⟪[^⟪⟫\s]{1,60}⟫",
    "windows_path": rf"(?<!\w)(?:[A-Za-z]:\\|\\\\\w)[^\s<>\"|?*:;,{_NO_NAME}]*"
    rf"[^\s<>\"|?*:;,.)\]!'{_NO_NAME}]",
    "path": rf"{_START}(?:~|\.\.?)?(?:/{_PATH_PART}){{2,}}/?(?![\w/])",
    "file": rf"{_START}(?:{_PATH_PART}/)*[\w(][\w.+~()-]{{0,200}}"
    rf"\.(?:{_EXTENSION})(?![\w@])",
    "number": r"(?<![\w.,])(?=[A-Z]{0,2}(?:[^\d\w]{0,3}\d){7})"
    rf"(?:\+|[A-Z]{{2}}(?=\d\d))?(?:\d++|{_BRACKETED}(?=[ /.-]?\(?\d))"
    rf"(?:(?:[ \u00a0/.-]| /| - |(?<=\)))\d++|[ /.-]?{_BRACKETED})*+"
    r"(?!\w|[.,]\d)",
}
# The other items stand for words.
TAG_KINDS = frozenset({"comment", "code", "tag"})

_PATTERN = regex.compile(
    "|".join(
        f"(?P<{kind}>{pattern})" for kind, pattern in PATTERNS.items()
    ).replace(r"\w", _LETTER),
    regex.V1 | regex.DOTALL,
)
# Without one of these there is no item.
_PERHAPS = re.compile(r"[<{%⟪@\\/$]|www\.|\.\w\w|\d[^\w,]{0,3}\d|\d{7}")
_LEAST_DIGITS = 7
_AMOUNT = re.compile(r"[1-9]\d{0,2}(?:([. \u00a0])\d{3})(?:\1\d{3})*")
_DATE = re.compile(
    r"\d{1,2}([./-] ?)\d{1,2}\1\d{2,4}|\d{4}([./-])\d{1,2}\2\d{1,2}"
)
_YEARS = re.compile(r"\d{4} ?[-–/] ?\d{4}")
_DECIMAL = re.compile(r"\d+\.\d+")
_CLOSING = {")": "(", "]": "[", "}": "{"}


def find_kept_items(text: str) -> list[KeptItem]:
    """Finds the items of a text, which do not overlap, in order.

    The text may have several lines.
    """
    if not _PERHAPS.search(text):
        return []
    items, place = [], 0
    while match := _PATTERN.search(text, place):
        kind = next(k for k in PATTERNS if match.group(k) is not None)
        begin, end = match.span()
        if kind == "url":
            end = begin + len(_trimmed(match.group()))
        elif kind == "file":
            begin += _opening(match.group())
        elif kind == "number":
            end = begin + len(_number(match.group()))
        place = end
        if kind != "number" or _is_long(text[begin:end]):
            items.append(KeptItem(kind, begin, end, text[begin:end]))
    return items


def _trimmed(address: str) -> str:
    """Leaves out the punctuation after an address."""
    while address:
        last = address[-1]
        if last in ".,;:!?'":
            address = address[:-1]
        elif last in _CLOSING and address.count(last) > address.count(
            _CLOSING[last]
        ):
            address = address[:-1]
        else:
            return address
    return address


def _opening(name: str) -> int:
    """Counts the brackets before the name of a file that are not its own."""
    surplus = name.count("(") - name.count(")")
    return 1 if name.startswith("(") and surplus > 0 else 0


def _number(text: str) -> str:
    """Returns the first number of those that stand together."""
    first = re.split("[ \u00a0]", text)[0]
    is_amount = _AMOUNT.fullmatch(text)
    return first if _is_ordinary(first) and not is_amount else text


def _is_long(number: str) -> bool:
    """Whether it is that of an account, a phone or the like.

    It is not if a translation writes it in its own way, as amounts and dates.
    """
    num_digits = sum(map(str.isdigit, number))
    return num_digits >= _LEAST_DIGITS and not _is_ordinary(number)


def _is_ordinary(number: str) -> bool:
    kinds = (_AMOUNT, _DATE, _YEARS, _DECIMAL)
    return any(kind.fullmatch(number) for kind in kinds)
