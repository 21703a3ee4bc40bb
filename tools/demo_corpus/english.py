"""Inflection of English words in the demo grammar."""

import re

_VOWELS = "aeiou"


def plural(noun: str) -> str:
    """Returns the regular plural of an English noun.

    Example:
    >>> plural("church"), plural("city"), plural("boy")
    ('churches', 'cities', 'boys')
    """
    return _with_s(noun)


def third_person(verb: str) -> str:
    """Returns the third person singular of an English verb.

    Example:
    >>> third_person("carry"), third_person("go"), third_person("see")
    ('carries', 'goes', 'sees')
    """
    return "has" if verb == "have" else _with_s(verb)


def past(verb: str) -> str:
    """Returns the regular past of an English verb.

    Example:
    >>> past("carry"), past("love"), past("work")
    ('carried', 'loved', 'worked')
    """
    if verb.endswith("e"):
        return verb + "d"
    if re.search(f"[^{_VOWELS}]y$", verb):
        return verb[:-1] + "ied"
    return verb + "ed"


def article(next_word: str) -> str:
    """Returns "a" or "an", depending on the next word.

    Example:
    >>> article("apple"), article("man")
    ('an', 'a')
    """
    return "an" if next_word[0].lower() in _VOWELS else "a"


def _with_s(word):
    if re.search(f"[^{_VOWELS}]y$", word):
        return word[:-1] + "ies"
    if re.search("(s|sh|ch|x|z|[^o]o)$", word) and word not in _PLAIN_S:
        return word + "es"
    return word + "s"


_PLAIN_S = ("piano", "photo", "radio", "studio")
