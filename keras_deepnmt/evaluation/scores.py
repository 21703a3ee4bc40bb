"""Corpus scores computed by sacreBLEU, each with its signature."""

from collections.abc import Sequence
from dataclasses import dataclass

from keras_deepnmt.data.scripts import KOREAN, detect_script
from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation.own_metrics import (
    check_names,
    make_own_metric,
    signature_of,
)
from keras_deepnmt.evaluation.word_tokenizers import (
    tokenizer_of_script,
    unusable_tokenizer,
)
from keras_deepnmt.own_code.lookup import is_class_name

METRICS = ("bleu", "chrf", "ter")


def metric_label(name: str) -> str:
    """Returns the name that a score has in papers.

    Example:
    >>> [metric_label(name) for name in (*METRICS, "my_metrics.WordRecall")]
    ['BLEU', 'chrF', 'TER', 'my_metrics.WordRecall']
    """
    if is_class_name(name):
        return name
    return "chrF" if name == "chrf" else name.upper()


@dataclass(frozen=True)
class Score:
    """A corpus score and its sacreBLEU signature.

    Attributes:
        value: BLEU and chrF in points 0-100 (higher is better), TER in edits
            per 100 words of the reference (lower is better).
        signature: Metric and settings, as reported by sacreBLEU. Only scores
            with equal signatures may be compared.
        interval: Half the width of the bootstrap 95 % confidence interval, or
            `None` if it was not requested.
    """

    value: float
    signature: str
    interval: float | None = None

    def __str__(self):
        interval = "" if self.interval is None else f" ± {self.interval:.2f}"
        return f"{self.value:.2f}{interval} ({self.signature})"


def corpus_scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    metrics: Sequence[str] = METRICS,
    tokenize: str | None = None,
    lowercase: bool = False,
    num_resamples: int = 1,
    more_references: Sequence[Sequence[str]] = (),
) -> dict[str, Score]:
    """Scores a corpus of translations against their references.

    Unless `tokenize` is `"none"`, TER splits Chinese and Japanese into
    characters (`asian_support`), and in other scripts without spaces it counts
    the words of BLEU's tokenizer.

    Args:
        hypotheses: Translations, detokenized unless `tokenize` is `"none"`.
        references: One reference for each hypothesis.
        metrics: Any of `"bleu"`, `"chrf"` (chrF2), `"ter"` and names of your
            own metrics, such as `"my_metrics.WordRecall"`.
        tokenize: sacreBLEU tokenizer for BLEU; `"none"` for text that is
            already tokenized. Defaults to that of the references' script:
            `"zh"`, `"ja-mecab"`, `"ko-mecab"`, `"flores200"` for other scripts
            without spaces, and otherwise `"13a"`.
        lowercase: Whether BLEU and chrF ignore case. TER always does, which is
            sacreBLEU's default.
        num_resamples: Number of bootstrap samples for the confidence interval
            (the signature contains sacreBLEU's seed). With 1 there is no
            interval.
        more_references: Further references: for each set of them a list with
            one for each hypothesis. An empty line is not a reference, also in
            `references`.

    Returns:
        One `Score` per metric, in the order of `metrics`.

    Raises:
        UserError: if a metric or tokenizer is unknown or cannot be used.
        ValueError: if `hypotheses` and `references` differ in length or are
            empty.

    Example:
    >>> score = corpus_scores(["a b c d"], ["a b c d"], ["bleu"])["bleu"]
    >>> round(score.value), score.signature.split("|")[0]
    (100, 'nrefs:1')
    """
    made = make_metrics(metrics, tokenize, lowercase, references)
    check_lengths(hypotheses=hypotheses, references=references)
    sets = reference_sets(references, more_references)
    scores = {}
    for name, metric in made.items():
        score = metric.corpus_score(
            list(hypotheses),
            sets,
            n_bootstrap=num_resamples,
        )
        # Private: the text of a score leaves it out if the mean of all samples
        # is not above 0.
        interval = None
        if num_resamples > 1:
            interval = round(float(score._ci), 4)  # one of NumPy
        scores[name] = Score(float(score.score), signature_of(metric), interval)
    return scores


def reference_sets(
    references: Sequence[str], more_references: Sequence[Sequence[str]] = ()
) -> list[list[str | None]]:
    """Returns all sets of references, as sacreBLEU takes them.

    There an empty line is `None`, since it is not a reference. A sentence that
    has no other line keeps the empty one of the first set.
    """
    for lines in more_references:
        check_lengths(references=references, more_references=lines)
    of_sentences = []
    for lines in zip(references, *more_references, strict=True):
        given = [line if line.strip() else None for line in lines]
        of_sentences.append(given if any(given) else [lines[0], *given[1:]])
    return [list(lines) for lines in zip(*of_sentences, strict=True)]


def check_lengths(**lists: Sequence[str]) -> None:
    """Raises a `ValueError` if lists differ in length or are empty."""
    lengths = {name: len(lines) for name, lines in lists.items()}
    if len(set(lengths.values())) > 1 or not all(lengths.values()):
        names = [f"`{name}`" for name in lists]
        received = ", ".join(f"{n} {name}" for name, n in lengths.items())
        raise ValueError(
            f"{', '.join(names[:-1])} and {names[-1]} must have the same "
            f"length and not be empty. Received: {received}"
        )


def make_metrics(
    metrics: Sequence[str],
    tokenize: str | None = None,
    lowercase: bool = False,
    references: Sequence[str] = (),
) -> dict[str, object]:
    """Makes sacreBLEU's metrics and the user's, by name; see `corpus_scores`.

    Call it before translating to find out whether the result can be scored: it
    raises a `UserError` if a metric or tokenizer is unknown, or a tokenizer
    needs a package or a file that is missing.
    """
    from sacrebleu.metrics import BLEU

    from keras_deepnmt.evaluation.adapted_metrics import (
        FloatChrf,
        FloatTer,
        TokenizedTer,
    )

    check_names(metrics, METRICS)
    script = None
    if tokenize is None or "ter" in metrics:
        script = detect_script(references)
    if tokenize is None:
        tokenize = tokenizer_of_script(script)
    if tokenize not in BLEU.TOKENIZERS:
        raise UserError(
            f"`tokenize` must be one of {', '.join(sorted(BLEU.TOKENIZERS))}. "
            f"Received: tokenize={tokenize!r}"
        )

    def make_bleu():
        # `force` suppresses the warning that the text looks tokenized.
        return BLEU(lowercase, tokenize=tokenize, force=True)

    def make_ter():
        if tokenize == "none" or script in (None, KOREAN):
            return FloatTer()
        if script in ("Chinese", "Japanese"):
            # Without `normalized` sacreBLEU ignores `asian_support`.
            return FloatTer(normalized=True, asian_support=True)
        return TokenizedTer(make_bleu().tokenizer)

    makers = {
        "bleu": make_bleu,
        "chrf": lambda: FloatChrf(lowercase=lowercase),
        "ter": make_ter,
    }

    def make(name):
        if name in makers:
            return makers[name]()
        return make_own_metric(name, tokenize, lowercase)

    try:
        return {name: make(name) for name in metrics}
    except (
        *(ImportError, RuntimeError, OSError, EOFError),
        AssertionError,  # another dictionary of MeCab
    ) as error:
        raise unusable_tokenizer(tokenize, error) from error
