"""BLEU as different papers and tools define it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation.scores import (
    Score,
    check_lengths,
    corpus_scores,
)

MOSES = "moses"


@dataclass(frozen=True)
class BleuDefinition:
    """One way to compute BLEU.

    Attributes:
        name: Short name, unique.
        meaning: Which tool or paper computes BLEU in this way.
        tokenize: sacreBLEU tokenizer, or `"moses"` for the tokenizer of the
            Moses toolkit.
        lowercase: Whether case is ignored.
        splits_compounds: Whether `a-b` counts as three words.
    """

    name: str
    meaning: str
    tokenize: str
    lowercase: bool = False
    splits_compounds: bool = False


DEFINITIONS = (
    BleuDefinition(
        "13a",
        "mteval-v13a.pl, case-sensitive: the BLEU of WMT, and sacreBLEU's own",
        "13a",
    ),
    BleuDefinition("13a, lower case", "mteval-v13a.pl without -c", "13a", True),
    BleuDefinition(
        "intl",
        "mteval-v14.pl with international tokenization, and t2t-bleu",
        "intl",
    ),
    BleuDefinition(
        "intl, lower case", "t2t-bleu, uncased", "intl", lowercase=True
    ),
    BleuDefinition(
        "as it is",
        "multi-bleu.perl and fairseq-score, if the text is tokenized already",
        "none",
    ),
    BleuDefinition(
        "as it is, lower case",
        "multi-bleu.perl -lc, if the text is tokenized already",
        "none",
        lowercase=True,
    ),
    BleuDefinition(
        "Moses",
        "multi-bleu.perl after Moses' tokenizer: tokenized BLEU",
        MOSES,
    ),
    BleuDefinition(
        "Moses, lower case",
        "the same in lower case, as is usual for IWSLT14",
        MOSES,
        lowercase=True,
    ),
    BleuDefinition(
        "Moses, compounds split",
        "get_ende_bleu.sh of tensor2tensor, for WMT14 English-German",
        MOSES,
        splits_compounds=True,
    ),
)


def bleu_by_definition(
    hypotheses: Sequence[str],
    references: Sequence[str],
    language: str = "en",
    definitions: Sequence[BleuDefinition] = DEFINITIONS,
) -> dict[str, Score]:
    """Scores the same translations under several definitions of BLEU.

    The values differ by points for the same translations: this shows how much
    of a difference between papers may come from the definition.

    Args:
        hypotheses: Translations.
        references: One reference for each sentence.
        language: Target language, for Moses' tokenizer.
        definitions: What to compute. Moses' tokenizer needs the package
            `sacremoses`; see `available_definitions`.

    Returns:
        A `Score` for each definition, by name.

    Raises:
        UserError: if `sacremoses` is needed and not installed.
        ValueError: if the lists differ in length or are empty.

    Example:
    >>> text = ["A well-known dog.", "The cat sleeps on a mat."]
    >>> other = ["a well-known dog .", "The cat sleeps on a mat."]
    >>> scores = bleu_by_definition(other, text, definitions=DEFINITIONS[:2])
    >>> {name: round(score.value) for name, score in scores.items()}
    {'13a': 86, '13a, lower case': 100}
    """
    check_lengths(hypotheses=hypotheses, references=references)
    scores = {}
    for definition in definitions:
        sides = [list(hypotheses), list(references)]
        tokenize = definition.tokenize
        if tokenize == MOSES:
            moses = moses_tokenizer(language)
            sides = [[moses(line) for line in side] for side in sides]
            tokenize = "none"
        if definition.splits_compounds:
            sides = [[split_compounds(line) for line in s] for s in sides]
        score = corpus_scores(*sides, ["bleu"], tokenize, definition.lowercase)
        scores[definition.name] = score["bleu"]
    return scores


def available_definitions() -> list[BleuDefinition]:
    """Lists the definitions that can be computed with the packages here.

    Example:
    >>> [each.name for each in available_definitions()][:2]
    ['13a', '13a, lower case']
    """
    try:
        import sacremoses  # noqa: F401
    except ImportError:
        return [each for each in DEFINITIONS if each.tokenize != MOSES]
    return list(DEFINITIONS)


def split_compounds(line: str) -> str:
    """Splits words at hyphens into words of their own.

    The hyphen of `well-known` becomes the word `##AT##-##AT##`; one between
    spaces stays.
    """
    # As in get_ende_bleu.sh, which leaves the second hyphen of "a-b-c".
    return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", line)


def moses_tokenizer(language: str) -> Any:
    """Returns a function that tokenizes a sentence as Moses does."""
    try:
        from sacremoses import MosesTokenizer
    except ImportError as error:
        raise UserError(
            "Moses' tokenizer needs the package `sacremoses`. Install it with "
            "`pip install keras_deepnmt[moses]`."
        ) from error
    tokenizer = MosesTokenizer(lang=language)

    def tokenize(line):
        return tokenizer.tokenize(line, return_str=True, escape=False)

    return tokenize
