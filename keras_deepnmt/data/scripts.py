"""Which scripts have no spaces between words, and which languages use them.

The Unicode property `Script` tells them apart. It needs the package `regex`,
since Python's own `unicodedata` does not have it.
"""

import itertools
from collections import Counter
from collections.abc import Iterable

import regex

# The Unicode scripts of each way of writing without spaces.
WITHOUT_SPACES = {
    "Chinese": ("Han", "Bopomofo"),
    "Japanese": ("Hiragana", "Katakana"),
    "Thai": ("Thai",),
    "Lao": ("Lao",),
    "Khmer": ("Khmer",),
    "Burmese": ("Myanmar",),
    "Tibetan": ("Tibetan",),
    "Yi": ("Yi",),
    "Tai": ("Tai_Le", "New_Tai_Lue", "Tai_Tham", "Tai_Viet"),
    "Javanese": ("Javanese",),
    "Balinese": ("Balinese",),
}
# It has spaces, but BLEU has a tokenizer of its own for it.
KOREAN = "Korean"
# Codes of languages (ISO 639) and of scripts (ISO 15924).
_CODES = {
    "Chinese": "zh zho chi cmn yue wuu hak gan hsn lzh nan hans hant hani bopo",
    "Japanese": "ja jpn jpan hira kana hrkt",
    KOREAN: "ko kor kore hang",
    "Thai": "th tha tts sou thai",
    "Lao": "lo lao laoo",
    "Khmer": "km khm khmr",
    "Burmese": "my mya bur shn mnw mymr",
    "Tibetan": "bo bod tib dz dzo tibt",
    "Yi": "ii iii yiii",
    "Tai": "nod khb tdd blt tale talu lana tavt",
    "Javanese": "java",
    "Balinese": "bali",
}
_SCRIPT_OF_CODE = {
    code: script for script, codes in _CODES.items() for code in codes.split()
}
_LANGUAGE_CODE = regex.compile(r"[a-z]{2,3}([-_][a-z0-9]+)*")
_SCRIPT_CODE = regex.compile(r"[a-z]{4}")


def _letters(names):
    """The set of the letters of scripts, for patterns of `regex.V1`."""
    scripts = "".join(rf"\p{{Script={name}}}" for name in names)
    # The sound mark of kana belongs to two scripts: its `Script` is Common.
    mark = r"\u30fc\uff70" if "Katakana" in names else ""
    return rf"[[{scripts}{mark}]&&[\p{{L}}\p{{Nl}}]]"


LETTER_WITHOUT_SPACES = _letters(
    [name for names in WITHOUT_SPACES.values() for name in names]
)
_KINDS = {
    **{script: _letters(names) for script, names in WITHOUT_SPACES.items()},
    KOREAN: r"\p{Script=Hangul}+",
    "other": rf"[\p{{L}}--{LETTER_WITHOUT_SPACES}--\p{{Hangul}}]+",
}
_WORD_OF_KIND = regex.compile(
    "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()),
    regex.V1,
)
# So many lines are enough to detect the script of a text.
_LINES_TO_READ = 2_000
# Chinese texts quote some Japanese or Korean now and then; but a third or more
# of the letters of Japanese are kana, and most words of Korean are in Hangul.
_LEAST_SHARE = 0.1


def script_of_language(language: str) -> str | None:
    """Names the script of a language that needs a tokenizer of its own.

    It is a key of `WITHOUT_SPACES` or `"Korean"`, and `None` for all others. A
    language is a code such as `"zh"`, `"zh-TW"`, `"zho_Hant"` or `"jpn"`, in
    which a code of the script decides, if there is one.
    """
    first, *others = language.lower().replace("_", "-").split("-")
    for code in others:
        if _SCRIPT_CODE.fullmatch(code):
            return _SCRIPT_OF_CODE.get(code)
    return _SCRIPT_OF_CODE.get(first)


def is_language_code(language: str | None) -> bool:
    """Whether a text looks like a code of ISO 639, and what may follow it.

    Example:
    >>> [is_language_code(name) for name in ("zh-TW", "Chinese", None)]
    [True, False, False]
    """
    return language is not None and bool(
        _LANGUAGE_CODE.fullmatch(language.lower())
    )


def is_written_with_spaces(language: str | None) -> bool:
    """Whether a language is known to have spaces between its words.

    False without a language, and for a text that is not a language code.
    """
    return is_language_code(language) and (
        script_of_language(language) in (None, KOREAN)
    )


def detect_script(lines: Iterable[str]) -> str | None:
    """Names the script of a text if it needs a tokenizer of its own.

    The script must have more than half of the words; in scripts without spaces
    each letter counts as a word. The first 2,000 lines are read. The script is
    a key of `WITHOUT_SPACES` or `"Korean"`, and `None` for all others.
    """
    counts: Counter[str] = Counter()
    for line in itertools.islice(lines, _LINES_TO_READ):
        if not line.isascii():
            counts.update(m.lastgroup for m in _WORD_OF_KIND.finditer(line))
        else:
            counts["other"] += len(line.split())
    # Both write Chinese characters too.
    for script in (KOREAN, "Japanese"):
        if counts[script] > _LEAST_SHARE * counts["Chinese"]:
            counts[script] += counts.pop("Chinese", 0)
    special = {k: n for k, n in counts.items() if k != "other" and n}
    if 2 * sum(special.values()) <= counts.total():
        return None
    return max(special, key=special.get)


def detect_script_without_spaces(lines: Iterable[str]) -> str | None:
    """Names the script of a text if it has no spaces between words.

    It is a key of `WITHOUT_SPACES`, and `None` for all other scripts.

    Example:
    >>> texts = "我买了", "저는 집에"
    >>> [detect_script_without_spaces([text]) for text in texts]
    ['Chinese', None]
    """
    script = detect_script(lines)
    return None if script == KOREAN else script
