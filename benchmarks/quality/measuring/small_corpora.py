"""Small corpora, prepared once, and training on the same batches of them."""

import itertools

from benchmarks.shared.multi30k import find_multi30k
from keras_deepnmt.data import (
    BatchPlan,
    CorpusOptions,
    PreparedData,
    PrepareOptions,
    choose_batch_shapes,
    prepare_corpus,
    training_dataset,
    validation_dataset,
)
from tools.demo_corpus.pairs import generate_pairs

MAX_WORDS, MAX_PIECES = 12, 20  # per side, so that all batches have one shape
NUM_PAIRS = {"valid": 300, "test": 4_000, "train": 25_000}
MULTI30K = "multi30k_tok_en_de"


class SmallCorpus:
    """A prepared corpus, and the shapes of its batches.

    `batch_tokens` counts the padded tokens of a batch's longer side;
    `max_shapes` is the maximum number of batch shapes, each of which is
    compiled.
    """

    def __init__(self, folder, batch_tokens, max_shapes):
        self.data = PreparedData(folder / "prepared")
        self.train = self.data.store("train")
        self.batch_shapes = choose_batch_shapes(
            self.train.lengths, batch_tokens, max_shapes
        )

    @property
    def vocabulary_sizes(self):
        """The vocabulary sizes of both sides, which share one vocabulary."""
        return [self.data.manifest["source_vocabulary_size"]] * 2

    def validation(self):
        """Returns the dataset to validate on."""
        return validation_dataset(self.data.store("valid"), self.batch_shapes)


def prepare_demo(folder, num_pairs=NUM_PAIRS, vocabulary_size=1_500):
    """Prepares short pairs of the embedded corpus in a folder.

    `num_pairs` has the number of pairs of each split. Returns the `DemoPair`s
    of each split.
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
        max_tokens=MAX_PIECES,
    )
    prepare_corpus(options, folder / "prepared", progress=False)
    return pairs


def write_short_pairs(folder, num_pairs):
    """Writes pairs of the demo grammar that fit into one batch shape.

    The files are `{split}.de` and `{split}.en`. Returns the `DemoPair`s of each
    split.
    """
    # About half of the grammar's pairs are short enough.
    pairs = (
        pair
        for pair in generate_pairs()
        if len(pair.source.split()) <= MAX_WORDS
        and len(pair.target.split()) <= MAX_WORDS
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
    """Prepares lower-cased, tokenized Multi30k, or exits with a message."""
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
        data_dir=find_multi30k(),
        progress=False,
    )


def fit(corpus, model, seed, updates, validate_every=None, callbacks=()):
    """Trains a compiled model; the order of batches depends on the seed alone.

    `validate_every` is the number of updates between validations and must
    divide `updates`; `None` means no validation. Returns the
    `keras.callbacks.History`, with an entry for each validation.
    """
    plan = BatchPlan(corpus.train.lengths, corpus.batch_shapes, seed)
    updates_per_epoch = validate_every or updates
    return model.fit(
        training_dataset(corpus.train, plan, num_steps=updates),
        epochs=updates // updates_per_epoch,
        steps_per_epoch=updates_per_epoch,
        validation_data=corpus.validation() if validate_every else None,
        callbacks=list(callbacks),
        verbose=0,
    )
