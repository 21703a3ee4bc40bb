"""Generates sentence pairs of the demo grammar and writes them to files."""

import json
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from keras_deepnmt.data.demo.chooser import Chooser
from keras_deepnmt.data.demo.german import LABEL_MARK
from keras_deepnmt.data.demo.sentences import make_sentence
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import atomic_file

MIN_WORDS, MAX_WORDS = 3, 40
_ALIGNMENTS = Path(__file__).with_name("alignments.tsv")
_SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class RoleLabel:
    """The grammatical function of one "der".

    Attributes:
        token_index: Index of the token in the German sentence, split at spaces.
        function: One of `DER_FUNCTIONS`.
    """

    token_index: int
    function: str


@dataclass(frozen=True)
class DemoPair:
    """A German sentence, its English translation, and the role of each "der".

    Attributes:
        source: The German sentence.
        target: The English sentence.
        roles: The labels of all tokens "der" and "Der", in order.
    """

    source: str
    target: str
    roles: tuple[RoleLabel, ...]


@dataclass(frozen=True)
class AlignedPair:
    """A sentence pair of the corpus, with its words aligned by hand.

    Attributes:
        source: The German sentence.
        target: The English sentence.
        alignment: Links of words, both counted from 0 and separated by spaces:
            `3-4` is a sure link, `3?4` a possible one. What one word expresses
            with another, such as the auxiliary of a perfect, is a possible
            link. `evaluation.parse_alignment` reads it.
    """

    source: str
    target: str
    alignment: str


def demo_alignments() -> list[AlignedPair]:
    """Returns a gold standard of word alignments.

    Returns:
        Twelve pairs of the test split of `write_demo_corpus` with the default
        seed, with separable verbs, other word orders and compounds among them.

    Example:
    >>> pair = demo_alignments()[0]
    >>> pair.target, pair.alignment
    ('Do I laugh about the reporters?', '0-2 1-1 2-3 3-4 4-5 0?0')
    """
    text = _ALIGNMENTS.read_text(encoding="utf-8")
    return [AlignedPair(*line.split("\t")) for line in text.splitlines()]


def demo_pairs(num_pairs: int, seed: int = 1) -> list[DemoPair]:
    """Generates distinct sentence pairs.

    No German and no English sentence occurs twice. For the same seed, a shorter
    list is the beginning of a longer one.

    Args:
        num_pairs: Number of pairs.
        seed: The same seed gives the same pairs everywhere.

    Returns:
        The pairs.

    Raises:
        ValueError: if `num_pairs` is negative.

    Example:
    >>> pair = demo_pairs(1)[0]
    >>> 3 <= len(pair.source.split()) <= 40
    True
    """
    if num_pairs < 0:
        raise ValueError(
            "`num_pairs` must not be negative. "
            f"Received: num_pairs={num_pairs}."
        )
    return list(islice(_distinct_pairs(seed), num_pairs))


def write_demo_corpus(
    directory: str | Path,
    num_train: int = 25_000,
    num_valid: int = 500,
    num_test: int = 500,
    seed: int = 1,
) -> dict[str, Path]:
    """Writes the corpus to text files, one sentence per line.

    For each of `train`, `valid` and `test` it writes `{split}.de`, `{split}.en`
    and `{split}.roles.jsonl`, which are aligned line by line. A line of the
    last is the list of the pair's labels. No sentence of one split occurs in
    another, and `valid` and `test` do not depend on `num_train`. Files get
    their names only when all are complete.

    Args:
        directory: The folder to write to; it is created if missing.
        num_train: Number of training pairs.
        num_valid: Number of validation pairs.
        num_test: Number of test pairs.
        seed: The same seed gives the same bytes.

    Returns:
        The paths of the files by their names.

    Raises:
        ValueError: if a number of pairs is negative.
        UserError: if `directory` is a file.

    Example:
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = write_demo_corpus(folder, 10, 2, 2)
    >>> sorted(paths)[:3]
    ['test.de', 'test.en', 'test.roles.jsonl']
    """
    sizes = {"num_train": num_train, "num_valid": num_valid}
    sizes["num_test"] = num_test
    for name, size in sizes.items():
        if size < 0:
            raise ValueError(
                f"`{name}` must not be negative. Received: {name}={size}."
            )
    directory = Path(directory)
    if directory.exists() and not directory.is_dir():
        raise UserError(
            f"{directory}: the corpus needs a folder, but this is a file. "
            "Choose another folder."
        )
    pairs = _distinct_pairs(seed)
    # Held-out pairs come first, so they do not depend on the training size.
    held_out = {
        "valid": list(islice(pairs, num_valid)),
        "test": list(islice(pairs, num_test)),
    }
    splits = {"train": list(islice(pairs, num_train)), **held_out}
    texts = {}
    for split in _SPLITS:
        texts.update(_split_texts(split, splits[split]))
    return _write_files(directory, texts)


def _distinct_pairs(seed):
    chooser = Chooser(seed)
    sources, targets = set(), set()
    while True:
        german, english, mark = make_sentence(chooser)
        num_words = len(german) - german.count(",")
        if not MIN_WORDS <= num_words <= MAX_WORDS:
            continue
        tokens = _join_punctuation(german, mark)
        roles = []
        for index, token in enumerate(tokens):
            if LABEL_MARK in token:
                tokens[index], _, function = token.partition(LABEL_MARK)
                # A comma was joined after the label.
                function, comma, _ = function.partition(",")
                tokens[index] += comma
                roles.append(RoleLabel(index, function))
        source = _capitalized(tokens)
        target = _capitalized(_join_punctuation(english, mark))
        if source in sources or target in targets:
            continue
        sources.add(source)
        targets.add(target)
        yield DemoPair(source, target, tuple(roles))


def _join_punctuation(words, mark):
    """Joins commas (one at most) and the final mark to the preceding words."""
    tokens = []
    for word in words:
        if word != ",":
            tokens.append(word)
        elif tokens[-1][-1] != ",":
            tokens[-1] += ","
    tokens[-1] = tokens[-1].rstrip(",") + mark
    return tokens


def _capitalized(tokens):
    text = " ".join(tokens)
    return text[0].upper() + text[1:]


def _split_texts(split, pairs):
    return {
        f"{split}.de": "".join(pair.source + "\n" for pair in pairs),
        f"{split}.en": "".join(pair.target + "\n" for pair in pairs),
        f"{split}.roles.jsonl": "".join(
            json.dumps([vars(role) for role in pair.roles]) + "\n"
            for pair in pairs
        ),
    }


def _write_files(directory, texts):
    directory.mkdir(parents=True, exist_ok=True)
    paths = {name: directory / name for name in texts}
    with ExitStack() as stack:
        # Renamed only when all of them are written.
        for name, text in texts.items():
            temporary = stack.enter_context(atomic_file(paths[name]))
            temporary.write_bytes(text.encode())
    return paths
