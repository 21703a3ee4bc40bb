"""Makes segments with markup from the embedded corpus."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from keras_deepnmt.data.demo import DemoPair
from keras_deepnmt.data.kept_items import find_kept_items

NAMES = ("{name}", "{0}", "{{user}}", "%s", "%1$s", "%(name)s", "${who}")
NAMES += ("⟪NAME_1⟫", "⟪NAME_2⟫")
ITEMS = (
    "https://example.org/a/{n}?q=1",
    "www.example.org",
    "info{n}@example.org",
    "report_v{n}.pdf",
    r"C:\data\list{n}.txt",
    "/etc/hosts",
    "+49 30 1234{n}",
    "4711{n}",
    "{count}",
)
PAIRS = ("b", "i", 'g id="{n}"', 'a href="x{n}.html"', "mrk")
SINGLES = ("<br/>", '<x id="{n}"/>', "<br>")
_NAME = re.compile(r"\b[A-Z]\w+\b")


@dataclass(frozen=True)
class MarkedSegment:
    """A German sentence with markup.

    Attributes:
        source: The sentence with markup.
        plain: The sentence without it.
        reference: The English sentence, without the names that became
            placeholders.
        names: These names.
    """

    source: str
    plain: str
    reference: str
    names: tuple[str, ...]


def make_segments(pairs: Sequence[DemoPair], seed: int) -> list[MarkedSegment]:
    """Makes a segment of each pair, with tags and items drawn by the seed.

    Placeholders take the place of names, other items stand before the last
    punctuation mark, and tags enclose words, also within each other.

    Example:
    >>> from keras_deepnmt.data.demo import demo_pairs
    >>> len(make_segments(demo_pairs(3), seed=0))
    3
    """
    draw = random.Random(seed)
    return [_segment(pair, draw) for pair in pairs]


def rest_of(text: str, names: Sequence[str] = ()) -> str:
    """Returns a text without its items and without names."""
    for item in reversed(find_kept_items(text)):
        text = f"{text[: item.begin]} {text[item.end :]}"
    for name in names:
        text = re.sub(rf"\b{name}\b", " ", text)
    return re.sub(r" (?=[.,?!])", "", " ".join(text.split()))


def _segment(pair, draw):
    source, reference, names = pair.source, pair.target, []
    for name in _NAME.findall(source):
        is_once = (
            source.count(name)
            == 1
            == len(re.findall(rf"\b{name}\b", reference))
        )
        if is_once and draw.random() < 0.8:
            item = draw.choice([n for n in NAMES if n not in source])
            source = source.replace(name, item)
            names.append(name)
    words = source.split(" ")
    if draw.random() < 0.4:
        item = draw.choice(ITEMS).replace("{n}", str(draw.randint(100, 999)))
        last = words[-1]
        words[-1:] = [last[:-1], item + last[-1]]
    words = _tagged(words, draw, depth=2)
    return MarkedSegment(
        " ".join(words), pair.source, rest_of(reference, names), tuple(names)
    )


def _tagged(words, draw, depth):
    """Puts tags around a part of the words, and perhaps in it and after it."""
    if not words or draw.random() < 0.3:
        return words
    begin = draw.randrange(len(words))
    end = min(len(words), begin + 1 + draw.randrange(4))
    inside = words[begin:end]
    if depth > 1:
        inside = _tagged(inside, draw, depth - 1)
    after = _tagged(words[end:], draw, depth - 1) if depth > 1 else words[end:]
    number = str(draw.randint(1, 99))
    if draw.random() < 0.25:
        tag = draw.choice(SINGLES).replace("{n}", number)
        return [*words[:begin], tag, *inside, *after]
    name = draw.choice(PAIRS).replace("{n}", number)
    closing = f"</{name.split()[0]}>"
    inside = [f"<{name}>{inside[0]}", *inside[1:]]
    last = inside[-1]
    # Punctuation at the end stands outside, mostly.
    outside = last[-1] if last[-1] in ".,?!" and draw.random() < 0.8 else ""
    inside[-1] = last[: len(last) - len(outside)] + closing + outside
    return [*words[:begin], *inside, *after]
