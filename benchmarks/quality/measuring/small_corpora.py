"""Small corpora, prepared once, and training on the same batches of them."""

import itertools
import os
import sys
from pathlib import Path

from keras_deepnmt.data import (
    BatchPlan,
    CorpusOptions,
    PreparedData,
    PrepareOptions,
    choose_cells,
    prepare_corpus,
    training_dataset,
    validation_dataset,
)
from keras_deepnmt.data.demo import demo_pairs

REPOSITORY = Path(__file__).parents[3]
MOST_WORDS, MOST_PIECES = 12, 20  # of a side; so all batches have one shape
NUM_PAIRS = {"valid": 300, "test": 4_000, "train": 25_000}
MULTI30K = "multi30k_tok_en_de"


class SmallCorpus:
    """A prepared corpus, and the shapes of its batches.

    Args:
        folder: where it was prepared.
        batch_tokens: padded tokens on the longer side of a batch.
        max_shapes: most shapes of batches; each is compiled.
    """

    def __init__(self, folder, batch_tokens, max_shapes):
        self.data = PreparedData(folder / "prepared")
        self.train = self.data.store("train")
        self.cells = choose_cells(self.train.lengths, batch_tokens, max_shapes)

    @property
    def vocabulary_sizes(self):
        """Entries of both vocabularies, which are one."""
        return [self.data.manifest["source_vocabulary_size"]] * 2

    def validation(self):
        """Gives the batches to validate on."""
        return validation_dataset(self.data.store("valid"), self.cells)


def prepare_demo(folder, num_pairs=NUM_PAIRS, vocabulary_size=1_500):
    """Prepares short pairs of the embedded corpus.

    Args:
        folder: where it is written, or was written before.
        num_pairs: dict of the pairs of each split.
        vocabulary_size: int.

    Returns:
        Dict from split to its list of `DemoPair`s.
    """
    text = folder / "corpus"
    pairs = write_short_pairs(text, num_pairs)
    corpora = {
        split: CorpusOptions(
            str(text / f"{split}.de"), str(text / f"{split}.en")
        )
        for split in ("train", "valid", "test")
    }
    options = PrepareOptions(
        **{**corpora, "train": [corpora["train"]]},
        source_language="de",
        target_language="en",
        vocabulary_size=vocabulary_size,
        max_tokens=MOST_PIECES,
    )
    prepare_corpus(options, folder / "prepared", progress=False)
    return pairs


def write_short_pairs(folder, num_pairs):
    """Writes pairs of the demo grammar, short enough for one shape of batch.

    Args:
        folder: where to write `{split}.de` and `{split}.en`.
        num_pairs: dict from split to its number of pairs.

    Returns:
        Dict from split to its list of `DemoPair`s.
    """
    # About half of all pairs are short.
    pairs = (
        pair
        for pair in demo_pairs(3 * sum(num_pairs.values()))
        if len(pair.source.split()) <= MOST_WORDS
        and len(pair.target.split()) <= MOST_WORDS
    )
    folder.mkdir(parents=True, exist_ok=True)
    splits = {}
    for split, number in num_pairs.items():
        splits[split] = list(itertools.islice(pairs, number))
        for language, side in (("de", "source"), ("en", "target")):
            lines = [getattr(pair, side) + "\n" for pair in splits[split]]
            file = folder / f"{split}.{language}"
            file.write_text("".join(lines), encoding="utf-8")
    return splits


def prepare_multi30k(folder, vocabulary_size=5_000):
    """Prepares lower-cased, tokenised Multi30k, or ends with the reason.

    Args:
        folder: where it is written, or was written before.
        vocabulary_size: int.
    """
    corpus = CorpusOptions(name=MULTI30K)
    options = PrepareOptions(
        train=[corpus],
        valid=corpus,
        source_language="en",
        target_language="de",
        vocabulary_size=vocabulary_size,
    )
    prepare_corpus(
        options,
        folder / "prepared",
        data_dir=folder_of_multi30k(),
        progress=False,
    )


def folder_of_multi30k():
    """Finds the folder with Multi30k, or ends with the reason."""
    default = REPOSITORY.parent / "shared" / "data"
    folder = Path(os.environ.get("DEEPNMT_DATA", default))
    if not (folder / "multi30k").is_dir():
        sys.exit(f"No Multi30k at {folder}; set DEEPNMT_DATA.")
    return folder


def fit(corpus, model, seed, updates, validate_every=None, callbacks=()):
    """Trains a compiled model; the order of batches depends on the seed alone.

    Args:
        corpus: a `SmallCorpus`.
        model: the model.
        seed: int.
        updates: int.
        validate_every: int, which divides `updates`. Updates from one
            validation to the next; none without it.
        callbacks: list of Keras callbacks.

    Returns:
        The `keras.callbacks.History`, with an entry for each validation.
    """
    plan = BatchPlan(corpus.train.lengths, corpus.cells, seed)
    every = validate_every or updates
    return model.fit(
        training_dataset(corpus.train, plan, num_steps=updates),
        epochs=updates // every,
        steps_per_epoch=every,
        validation_data=corpus.validation() if validate_every else None,
        callbacks=list(callbacks),
        verbose=0,
    )
