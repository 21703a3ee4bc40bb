"""The bundled corpus `demo`: 41,000 pairs of German and English sentences.

A grammar that produces both languages together has generated them from a
lexicon of about 440 lexemes. The English sentence is a function of the German
one, so every difference from the reference is an error of the model.

What the corpus contains, and which methods it tests:

*   **Order and position** (hybrid self-attention). The verb is second in a
    main clause, last in a subordinate clause, first in a question; in perfects
    and with modals the main verb comes at the end; objects and adverbials may
    open a sentence. *Heute hat der Mann die Tür aufgemacht*, "Today the man
    opened the door".
*   **Separable verbs.** *macht … auf / zu / an / aus* is "opens", "closes",
    "turns on", "turns off": the model must read to the end of the clause,
    which is near in one word order and far away in another.
*   **Roles** (contextualised role interaction). Four cases, and one word with
    six functions: *der* is "the" (masculine subject), "to the" or "with the"
    (feminine dative), "of the" (feminine or plural genitive), "who", "whom"
    or "which" (relative). Each one is labeled (`DemoPair.roles`), as a gold
    standard for the analysis of models.
*   **Depth and composition** (deep representations, fusion of layers).
    Adjectives agree in case, gender, number and determiner; verbs agree with
    subjects from which a relative clause or a genitive separates them, in both
    languages; *sie* is "she" or "they" depending on the verb; compounds consist
    of parts (*Gartentisch*, "garden table").

The words of twelve test sentences are aligned by hand (`demo_alignments`).

Sentences have 3 to 40 German words, twelve or thirteen on average. Long ones
are made by joining clauses; the deepest nesting is a relative clause in a
subordinate clause. Words are drawn uniformly within their kind, so there is no
tail of rare words. No sentence occurs twice.

The pairs are lines of one compressed file, `demo_corpus.tsv.xz`, with four
columns: the German sentence, the English one, the labels of the roles, and the
alignment. The grammar itself is in the repository, in `tools/demo_corpus`.

Example:
>>> paths = write_demo_corpus("demo", num_train=20_000)  # doctest: +SKIP
>>> for pair in demo_pairs(3):  # doctest: +SKIP
...     print(pair.source, pair.target, pair.roles)
"""

import json
import lzma
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import atomic_file

NUM_PAIRS = 41_000
CORPUS_FILE = Path(__file__).with_name("demo_corpus.tsv.xz")


@dataclass(frozen=True)
class RoleLabel:
    """The grammatical function of one "der".

    Attributes:
        token_index: Index of the token in the German sentence, split at spaces.
        function: `"nominative_masculine"`, `"dative_feminine"`,
            `"genitive_feminine"`, `"genitive_plural"`,
            `"relative_nominative_masculine"` or `"relative_dative_feminine"`.
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
        Twelve pairs of the test split of `write_demo_corpus`, with separable
        verbs, other word orders and compounds among them.

    Example:
    >>> pair = demo_alignments()[0]
    >>> pair.target, pair.alignment
    ('Do I laugh about the reporters?', '0-2 1-1 2-3 3-4 4-5 0?0')
    """
    return [
        AlignedPair(source, target, alignment)
        for source, target, _, alignment in _rows()
        if alignment
    ]


def demo_pairs(num_pairs: int) -> list[DemoPair]:
    """Returns the first sentence pairs of the corpus, which has 41,000."""
    _check_number("num_pairs", num_pairs)
    return list(islice(_pairs(), num_pairs))


def write_demo_corpus(
    directory: str | Path,
    num_train: int = 25_000,
    num_valid: int = 500,
    num_test: int = 500,
) -> dict[str, Path]:
    """Writes the corpus to text files, one sentence per line.

    For each of `train`, `valid` and `test` it writes `{split}.de`, `{split}.en`
    and `{split}.roles.jsonl`, which are aligned line by line. A line of the
    last is the list of the pair's labels. No sentence of one split occurs in
    another, and `valid` and `test` do not depend on `num_train`. Files get
    their names only when all are complete.

    Args:
        directory: The folder to write to; it is created if missing.
        num_train: Number of training pairs. The three numbers together are at
            most 41,000.
        num_valid: Number of validation pairs.
        num_test: Number of test pairs.

    Returns:
        The paths of the files by their names.

    Raises:
        ValueError: if a number of pairs is negative, or all are more than there
            are.
        UserError: if `directory` is a file.

    Example:
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = write_demo_corpus(folder, 10, 2, 2)
    >>> sorted(paths)[:3]
    ['test.de', 'test.en', 'test.roles.jsonl']
    """
    # Held-out pairs come first, so they do not depend on the training size.
    sizes = {"valid": num_valid, "test": num_test, "train": num_train}
    for split, size in sizes.items():
        _check_number(f"num_{split}", size)
    _check_number("num_train + num_valid + num_test", sum(sizes.values()))
    directory = Path(directory)
    if directory.exists() and not directory.is_dir():
        raise UserError(
            f"{directory}: the corpus needs a folder, but this is a file. "
            "Choose another folder."
        )
    pairs = _pairs()
    texts = {}
    for split, size in sizes.items():
        texts |= _split_texts(split, list(islice(pairs, size)))
    return _write_files(directory, texts)


def _check_number(name, number):
    if number < 0:
        raise ValueError(
            f"`{name}` must not be negative. Received: {name}={number}."
        )
    if number > NUM_PAIRS:
        raise ValueError(
            f"`{name}` must be at most {NUM_PAIRS}, the number of pairs of the "
            f"demo corpus. Received: {name}={number}."
        )


def _rows() -> Iterator[list[str]]:
    """Yields the columns of each line: source, target, roles, alignment."""
    with lzma.open(CORPUS_FILE, "rt", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            yield line.rstrip("\n").split("\t")


def _pairs() -> Iterator[DemoPair]:
    for source, target, roles, _ in _rows():
        labels = []
        for label in roles.split():
            index, _, function = label.partition(":")
            labels.append(RoleLabel(int(index), function))
        yield DemoPair(source, target, tuple(labels))


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
