"""Codes of subword-nmt for tests, made by subword-nmt itself."""

import functools
import io
import random

from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from keras_deepnmt.data.demo import demo_pairs

# Merges that overlap, in which a word's end is a piece of its own, and more.
ODD = ["x x", "xx xx", "e n</w>", "a </w>", "n </w>", "xx x", "an </w>", "e n"]


@functools.cache
def texts() -> list[str]:
    return [pair.source for pair in demo_pairs(300)]


@functools.cache
def learned_codes() -> list[str]:
    """Merges in the format of version 0.2, without the line of the version."""
    written = io.StringIO()
    learn_bpe(io.StringIO("\n".join(texts())), written, 200)
    header, *codes = written.getvalue().splitlines()
    assert header == "#version: 0.2"
    return codes


def as_file(codes, version="0.2") -> str:
    header = [] if version == "0.1" else [f"#version: {version}"]
    return "\n".join([*header, *codes]) + "\n"


def original(codes, version="0.2", vocabulary=()) -> BPE:
    """What subword-nmt itself makes of codes."""
    file = io.StringIO(as_file(codes, version))
    return BPE(file, vocab=set(vocabulary) or None)


def odd_words(number: int) -> list[str]:
    """Words of a corpus, and random ones with unknown and repeated letters."""
    draw = random.Random(3)
    known = sorted({word for text in texts() for word in text.split()})
    known = draw.sample(known, min(4 * number, len(known)))
    letters = "".join(sorted({*"".join(known)})) + "@</w>☃\xa0\u2028\tßéx"
    words = [
        "".join(draw.choices(kind, k=draw.randrange(1, 14)))
        for kind in (letters, "xaen")
        for _ in range(number)
    ]
    return known + words


def odd_lines(number: int) -> list[str]:
    """Lines of such words, with odd spaces, `@@` and marks of SentencePiece."""
    draw = random.Random(4)
    words = odd_words(number)
    lines = [" ".join(draw.choices(words, k=draw.randrange(9))) for _ in words]
    special = ["", " ", "  ein  Hund ", "\tein Hund\r\n", "@@ a@@ @@b @@"]
    special += ["\u3000ein\u3000Hund\u3000", "\xa0", "a \xa0 b", "▁ein ▁▁"]
    return [*special, *words, *lines]
