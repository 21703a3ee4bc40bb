"""Pairs of a toy language, written, prepared and read again."""

import numpy as np

from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
from keras_deepnmt.data.tokenizers import Tokenizer

NOUNS = "Hund Katze Vogel Apfel Baum Haus Kind Tisch".split()
ENGLISH = "dog cat bird apple tree house child table".split()
VERBS = ["sieht", "mag", "hört"]
SEES = ["sees", "likes", "hears"]
SIDES = ("source", "target")


def toy_pairs(number, seed=3):
    """Distinct pairs of a toy language."""
    random = np.random.default_rng(seed)
    pairs = []
    for row in range(number):
        a, b, verb = random.integers(0, (8, 8, 3))
        pairs.append(
            (
                f"the {ENGLISH[a]} {SEES[verb]} a {ENGLISH[b]} no. {row}",
                f"der {NOUNS[a]} {VERBS[verb]} ein {NOUNS[b]} Nr. {row}",
            )
        )
    return pairs


def write_pairs(folder, name, pairs, compress=bytes):
    paths = []
    for side, language in enumerate(("en", "de")):
        path = folder / f"{name}.{language}"
        text = "".join(pair[side] + "\n" for pair in pairs)
        path.write_bytes(compress(text.encode()))
        paths.append(str(path))
    return CorpusOptions(*paths)


def prepare(options, output, **arguments):
    return prepare_corpus(options, output, progress=False, **arguments)


def decoded(folder, split):
    tokenizers = [
        Tokenizer(folder / "tokenizer" / f"{side}.model")
        for side in ("source", "target")
    ]
    store = PairStore(folder, split)
    sides = zip(*store.read(range(len(store))), strict=True)
    return list(
        zip(
            *(t.decode(s) for t, s in zip(tokenizers, sides, strict=True)),
            strict=True,
        )
    )


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def names_beside(output):
    return {p.name for p in output.parent.iterdir() if p.name.startswith("out")}
