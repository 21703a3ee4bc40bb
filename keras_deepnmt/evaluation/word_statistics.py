"""Statistics of the words of translations: repetitions, copies, lengths."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from keras_deepnmt.evaluation.scores import check_lengths, make_metrics
from keras_deepnmt.evaluation.word_tokenizers import default_tokenizer

# The script of so many lines chooses the tokenizer for all.
_FIRST_LINES = 2_000


def word_splitter(
    tokenize: str = "13a", lowercase: bool = False
) -> Callable[[str], list[str]]:
    """Returns a function that splits a sentence into words as BLEU does.

    `tokenize` is a tokenizer of sacreBLEU.

    Example:
    >>> word_splitter(lowercase=True)("A dog.")
    ['a', 'dog', '.']
    """
    tokenizer = make_metrics(["bleu"], tokenize)["bleu"].tokenizer

    def split(line):
        return tokenizer(line.lower() if lowercase else line).split()

    return split


def word_frequencies(
    lines: Iterable[str], tokenize: str | None = None, lowercase: bool = False
) -> Counter[str]:
    """Counts the words of sentences.

    Args:
        lines: Sentences.
        tokenize: sacreBLEU tokenizer. Defaults to that of the lines' script, as
            in `corpus_scores`.
        lowercase: Whether case is ignored.

    Returns:
        Number of occurrences of each word.

    Raises:
        UserError: if the tokenizer is unknown or cannot be used.

    Example:
    >>> word_frequencies(["A dog.", "A cat."])["A"]
    2
    """
    lines = iter(lines)
    first = list(itertools.islice(lines, _FIRST_LINES))
    tokenize = tokenize or default_tokenizer(first)
    split = word_splitter(tokenize, lowercase)
    counts: Counter[str] = Counter()
    for line in itertools.chain(first, lines):
        counts.update(split(line))
    return counts


def repetition_rate(
    lines: Sequence[str], order: int = 4, tokenize: str | None = None
) -> float:
    """Computes how many n-grams of a sentence repeat an earlier one.

    It is the mean over sentences of

        1 - (number of different n-grams) / (number of n-grams),

    the "seq-rep-n" of Welleck et al. (2020). Sentences without n-grams have
    the rate 0. Compare with the rate of the references.

    Args:
        lines: Sentences.
        order: n.
        tokenize: sacreBLEU tokenizer. Defaults to that of the lines' script, as
            in `corpus_scores`.

    Returns:
        The rate, in [0, 1].

    Raises:
        UserError: if the tokenizer is unknown or cannot be used.
        ValueError: if there is no sentence or `order` is below 1.

    Example:
    >>> repetition_rate(["the dog the dog the dog"], order=2)
    0.6
    """
    if order < 1 or not lines:
        raise ValueError(
            "`order` must be at least 1 and `lines` not be empty. Received: "
            f"order={order}, {len(lines)} lines"
        )
    split = word_splitter(tokenize or default_tokenizer(lines))
    rates = []
    for line in lines:
        words = split(line)
        grams = [
            tuple(words[i : i + order]) for i in range(len(words) - order + 1)
        ]
        rates.append(1 - len(set(grams)) / len(grams) if grams else 0.0)
    return sum(rates) / len(rates)


def copy_rate(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    overlap: float = 0.5,
    tokenize: str | None = None,
) -> float:
    """Computes how many translations are copies of their source.

    A translation counts as a copy if at least the share `overlap` of its words
    occur in the source, each counted at most as often as there; Ott et al.
    (2018) use one half. Names, numbers and punctuation count too: compare with
    the rate of the references.

    Args:
        sources: Source sentences.
        hypotheses: Their translations.
        overlap: Smallest share of the words, in (0, 1].
        tokenize: sacreBLEU tokenizer. Defaults to that of the translations'
            script.

    Returns:
        The share of translations that are copies, in [0, 1].

    Raises:
        UserError: if the tokenizer is unknown or cannot be used.
        ValueError: if the lists differ in length or are empty.

    Example:
    >>> copy_rate(["ein Hund", "ein Haus"], ["a dog", "a Haus"])
    0.5
    """
    check_lengths(sources=sources, hypotheses=hypotheses)
    split = word_splitter(tokenize or default_tokenizer(hypotheses))
    copies = 0
    for source, hypothesis in zip(sources, hypotheses, strict=True):
        words = Counter(split(hypothesis))
        shared = (words & Counter(split(source))).total()
        copies += bool(words) and shared >= overlap * words.total()
    return copies / len(sources)


def length_ratio(
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenize: str | None = None,
) -> float:
    """Computes the words of all translations divided by those of references.

    Args:
        hypotheses: Translations.
        references: One reference for each sentence.
        tokenize: sacreBLEU tokenizer. Defaults to that of the references'
            script.

    Returns:
        The ratio; infinite if the references have no words.

    Raises:
        UserError: if the tokenizer is unknown or cannot be used.
        ValueError: if the lists differ in length or are empty.

    Example:
    >>> length_ratio(["a dog"], ["a small dog ."])
    0.5
    """
    check_lengths(hypotheses=hypotheses, references=references)
    split = word_splitter(tokenize or default_tokenizer(references))
    ours, theirs = (
        sum(len(split(line)) for line in lines)
        for lines in (hypotheses, references)
    )
    return ours / theirs if theirs else float("inf")
