"""The options of `prepare`, which are also the `data` section of a recipe."""

from dataclasses import dataclass, field

from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.preparation.text_filters import PairFilter
from keras_deepnmt.data.preparation.tokenizer_training import MODEL_TYPES
from keras_deepnmt.errors import UserError


@dataclass(frozen=True)
class PrepareOptions:
    """Options of `prepare_corpus`: which text to prepare, and how.

    The filters apply to training pairs only. Of the valid and test pairs only
    those with an empty side are left out, since a score must cover every
    sentence.

    Args:
        train: Training corpora, at least one. A pair that occurs in several of
            them counts for the first one.
        valid: Corpus for validation. Defaults to none; see `valid_pairs`.
        test: Corpus for testing. Defaults to none; see `test_pairs`.
        valid_pairs: Number of pairs to draw at random from the training text
            and hold out for validation, if no validation text is given.
        test_pairs: The same for the test set.
        source_language: Code of the source language, stored in the manifest.
        target_language: Code of the target language, stored in the manifest.
        vocabulary_size: Number of pieces of each trained tokenizer, including
            the four special ones.
        model_type: `bpe` or `unigram`.
        joint: Whether both languages share one tokenizer.
        tokenizer_source: Path of an existing SentencePiece model to use
            instead of training one (for both languages if `joint`).
        tokenizer_target: Path of the one for the target language. Without
            `joint`, give both tokenizers or none.
        character_coverage: Share of the characters of the training text that
            get a piece, from 0.98 to 1.
        tokenizer_sentences: Maximum number of sentences, drawn uniformly, to
            train a tokenizer on. It bounds the memory of that training.
        min_length: Minimum number of words (between white space) of a side.
        max_length: Maximum number of words (between white space) of a side.
        max_tokens: Maximum number of pieces of a side. Longer pairs are
            counted with those that `max_length` leaves out.
        max_ratio: Maximum number of words of one side per word of the other.
        drop_duplicates: Whether to keep only the first of equal pairs.
        drop_identical: Whether to leave out pairs whose sides are equal.
        seed: Seed of all random draws.
        shortlist_targets: Number of target tokens that the shortlist of a
            source token holds, such as 50. It is learned from the training
            text and needs up to 2 GB of memory. Defaults to no shortlists.

    Raises:
        UserError: if a value is out of range or options contradict each other.

    Example:
    >>> options = PrepareOptions(
    ...     train=[CorpusOptions("train.en", "train.de")],
    ...     valid=CorpusOptions("valid.en", "valid.de"),
    ...     vocabulary_size=8_000,
    ... )
    """

    train: list[CorpusOptions] = field(default_factory=list)
    valid: CorpusOptions | None = None
    test: CorpusOptions | None = None
    valid_pairs: int = 0
    test_pairs: int = 0
    source_language: str | None = None
    target_language: str | None = None
    vocabulary_size: int = 10_000
    model_type: str = "bpe"
    joint: bool = True
    tokenizer_source: str | None = None
    tokenizer_target: str | None = None
    character_coverage: float = 1.0
    tokenizer_sentences: int = 1_000_000
    min_length: int = 1
    max_length: int = 250
    max_tokens: int = 512
    max_ratio: float = 9.0
    drop_duplicates: bool = True
    drop_identical: bool = True
    seed: int = 0
    shortlist_targets: int = 0

    def __post_init__(self):
        if not self.train:
            raise UserError("`train` must name at least one corpus.")
        for split in ("valid", "test"):
            pairs = getattr(self, f"{split}_pairs")
            if pairs < 0 or (pairs and getattr(self, split) is not None):
                raise UserError(
                    f"Give `{split}` or a positive `{split}_pairs`, not both. "
                    f"Received: {split}_pairs={pairs}"
                )
        if self.model_type not in MODEL_TYPES:
            raise UserError(
                f"`model_type` must be one of {', '.join(MODEL_TYPES)}. "
                f"Received: model_type={self.model_type!r}"
            )
        self._check_tokenizers()
        self._check_limits()

    def _check_tokenizers(self):
        given = self.tokenizer_source, self.tokenizer_target
        if self.joint and given[1] is not None and given[1] != given[0]:
            raise UserError(
                "With `joint` one tokenizer serves both languages: give "
                "`tokenizer_source` alone, or joint=false. "
                f"Received: tokenizer_source={given[0]}, "
                f"tokenizer_target={given[1]}"
            )
        if not self.joint and (given[0] is None) != (given[1] is None):
            raise UserError(
                "Without `joint` give both tokenizers or none. Received: "
                f"tokenizer_source={given[0]}, tokenizer_target={given[1]}"
            )

    def _check_limits(self):
        # 65,534 is what the index of lengths can hold.
        limits = {
            "vocabulary_size": (5, 2**31 - 1),
            "tokenizer_sentences": (101, 2**31 - 1),
            "min_length": (1, self.max_length),
            "max_length": (1, 2**31 - 1),
            "max_tokens": (1, 65_534),
            "max_ratio": (1, float("inf")),
            "character_coverage": (0.98, 1),  # as SentencePiece demands
            "seed": (0, 2**32 - 1),
            "shortlist_targets": (0, 1000),
        }
        for name, (least, most) in limits.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise UserError(
                    f"`{name}` must be from {least} to {most}. "
                    f"Received: {name}={value}"
                )

    def pair_filter(self) -> PairFilter:
        """Returns the filter of training pairs.

        Returns:
            A `PairFilter`. It does not remove duplicates, which takes a set of
            all pairs seen.
        """
        return PairFilter(
            min_length=self.min_length,
            max_length=self.max_length,
            max_ratio=self.max_ratio,
            drop_identical=self.drop_identical,
        )
