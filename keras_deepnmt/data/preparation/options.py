"""The options of `prepare`, which are also the `data` section of a recipe."""

import itertools
from dataclasses import field
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import field_validator

from keras_deepnmt.data.context_mark import CONTEXT_MARK
from keras_deepnmt.data.corpora import CorpusOptions, LineReader, decode_line
from keras_deepnmt.data.mask_symbols import mask_symbol
from keras_deepnmt.data.preparation.text_filters import (
    FILTERS,
    OPTIONAL_FILTERS,
    PairFilter,
)
from keras_deepnmt.data.tags import TagSide
from keras_deepnmt.errors import UserError
from keras_deepnmt.own_code.lookup import name_and_options
from keras_deepnmt.validation import (
    Count,
    Flag,
    Natural,
    OwnClass,
    Seed,
    Share,
    checked_dataclass,
    integer,
    number,
    one_or_more,
)

HELD_OUT = ("valid", "test")


@checked_dataclass
class PrepareOptions:
    """Options of `prepare_corpus`: which text to prepare, and how.

    The filters apply to training pairs only. Of the valid and test pairs only
    those with an empty side are left out, since a score must cover every
    sentence.

    Args:
        train: Training corpora, at least one. A pair that occurs in several of
            them counts for the one with the largest weight, and for the first
            of those with the same weight.
        valid: Corpus for validation, or a list of them, such as one for each
            direction. Defaults to none; see `valid_pairs`.
        test: The same for testing. Defaults to none; see `test_pairs`.
        valid_pairs: Number of pairs to draw at random from the training text
            and hold out for validation, if no validation text is given.
        test_pairs: The same for the test set.
        temperature: Draws pairs of small corpora more often: a corpus of n
            training pairs is drawn with a probability proportional to
            n^(1/temperature), times its `weight`. 1 is by size, 5 is usual for
            many languages, and a large number draws all corpora equally often.
            Defaults to 1.
        tag_side: Where a model has the tags of corpora: `source`, before the
            sentence that it reads, or `target`, as the beginning of what it
            writes, which a search is made to begin with and which no
            translation shows. In texts tags stand before the source in any
            case.
        source_language: Code of the source language, such as `de` or `zh`,
            stored in the manifest. In a language with spaces between words,
            words are counted by them alone. Defaults to counting by the script
            of the text. See also `min_language_score`.
        target_language: Code of the target language, which also decides how
            translations are scored. Otherwise as for `source_language`.
        vocabulary_size: Number of pieces of each trained tokenizer, including
            the four special ones.
        model_type: `bpe` or `unigram`.
        joint: Whether both languages share one tokenizer.
        tokenizer_source: Path of an existing SentencePiece model to use
            instead of training one (for both languages if `joint`).
        tokenizer_target: Path of the one for the target language. Without
            `joint`, give both tokenizers or none; with it, the pieces of both
            must be the same.
        extend_vocabulary: Number of pieces that are added to a given tokenizer,
            at most: first the characters of the training text that have none,
            then the most frequent pairs of pieces. Its own pieces keep their
            ids. A joint vocabulary grows once for both languages.
        source_normalization: How the source tokenizer rewrites the characters
            of a text: nfkc, nfc, nmt_nfkc, identity or the path of a file of
            rules. Defaults to the rule of a given tokenizer, and otherwise to
            nfkc: compatibility forms are replaced, controls and invisible
            characters dropped.
        target_normalization: The same for the target, whose default is nfc:
            only composed forms and white space change.
        case: How both tokenizers read upper-case letters: `kept`, as letters
            of their own, or `factored`, as lower-case ones after a symbol.
            Defaults to that of a given tokenizer, and otherwise to kept.
        case_examples: Share of the training pairs that are also shown in
            capitals; as many are also shown with capitalized words. Defaults to
            0.02 where case is factored, and otherwise to 0.
        character_coverage: Share of the characters of the training text that
            get a piece, from 0.98 to 1.
        split_digits: Whether each digit is a piece of its own.
        byte_fallback: Whether a character without a piece is cut into the
            bytes of its UTF-8 code. 256 pieces then are bytes.
        user_defined_symbols: Texts that always are one piece, which no
            normalization changes.
        user_defined_symbols_file: Path of a file with more of them, one in each
            line.
        required_chars: Characters that get a piece in any case, as one text.
        mask_symbols: Number of symbols `⟪1⟫`, `⟪2⟫`, ... that both tokenizers
            get, and that stand for placeholders, addresses, numbers and names
            in training pairs, so that `translate --keep-markup` can use them. A
            text has at most that many of them; 4 are enough for most.
        context: Number of source sentences that stand before each sentence, in
            its document, and tell a model what it is about: the source is then
            `the first <sep> the second <sep> this one`, with one symbol
            between them. Lines of a corpus are sentences of a document in
            order, and an empty line on both sides ends it. Sentences that would
            exceed `max_tokens` have fewer before them.
        tokenizer_sentences: Maximum number of sentences, drawn uniformly, to
            train a tokenizer on. It bounds the memory of that training.
        min_length: Minimum number of words (between white space) of a side. In
            scripts without spaces a letter counts as a word.
        max_length: Maximum number of words of a side, counted alike.
        max_tokens: Maximum number of pieces of a side. Longer pairs are
            counted with those that `max_length` leaves out.
        max_ratio: Maximum number of words of one side per word of the other,
            counted alike.
        drop_duplicates: Whether to keep only the first of equal pairs.
        drop_identical: Whether to leave out pairs whose sides are equal.
        seed: Seed of all random draws.
        errors: What to do about lines that are not UTF-8: `strict` refuses
            them, naming them all at once, `replace` puts U+FFFD in place of
            what cannot be read, `skip` leaves their pairs out of every split.
        min_language_score: Leave out pairs a side of which is in another
            language: the probability of its language (`source_language` or
            `target_language`), divided by that of the most probable one, is
            lower; such as 0.1. It needs `pip install keras_deepnmt[language]`.
            Defaults to 0, no such filter.
        min_alignment_score: Leave out pairs whose sides do not belong together:
            those with a lower score. The score is how much more probable a
            token is given the other side than on its own, as mean logarithm,
            by IBM Model 1, which is learned from the training text; such as 0.
            It needs up to 2 GB of memory. Defaults to no such filter.
        filters: Your own filters, in files of `import` (--import): names of
            functions of a source and a target that return whether to keep the
            pair, or of classes whose objects are such functions; in a recipe
            with arguments, such as `{Shorter: {most: 30}}`. They read texts as
            all filters do: NFKC, with single spaces. Defaults to none.
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

    # In a recipe, a value of its own replaces an inherited alternative.
    alternatives: ClassVar = {
        "valid": ("valid_pairs",),
        "valid_pairs": ("valid",),
        "test": ("test_pairs",),
        "test_pairs": ("test",),
    }

    train: list[CorpusOptions] = field(default_factory=list)
    valid: one_or_more(CorpusOptions) = None
    test: one_or_more(CorpusOptions) = None
    valid_pairs: Natural = 0
    test_pairs: Natural = 0
    temperature: number(ge=1) = 1.0
    tag_side: TagSide = "source"
    source_language: str | None = None
    target_language: str | None = None
    vocabulary_size: integer(5) = 10_000
    model_type: Literal["bpe", "unigram"] = "bpe"
    joint: Flag = True
    tokenizer_source: str | None = None
    tokenizer_target: str | None = None
    extend_vocabulary: Natural = 0
    source_normalization: str | None = None
    target_normalization: str | None = None
    case: Literal["kept", "factored"] | None = None
    case_examples: Share | None = None
    # As SentencePiece demands.
    character_coverage: number(ge=0.98, le=1) = 1.0
    split_digits: Flag = False
    byte_fallback: Flag = False
    user_defined_symbols: list[str] = field(default_factory=list)
    user_defined_symbols_file: str | None = None
    required_chars: str | None = None
    mask_symbols: integer(0, 100) = 0
    context: Natural = 0
    tokenizer_sentences: integer(101) = 1_000_000
    min_length: Count = 1
    max_length: Count = 250
    max_tokens: integer(1, 65_534) = 512  # the most that the index can hold
    max_ratio: number(ge=1, allow_inf_nan=True) = 9.0
    drop_duplicates: Flag = True
    drop_identical: Flag = True
    seed: Seed = 0
    errors: Literal["strict", "replace", "skip"] = "strict"
    min_language_score: Share = 0.0
    min_alignment_score: number() | None = None
    filters: list[OwnClass] = field(default_factory=list)
    shortlist_targets: integer(0, 1000) = 0

    @field_validator("train")
    def _check_train(cls, train):
        if not train:
            raise ValueError("`train` must name at least one corpus.")
        return train

    @field_validator("valid_pairs", "test_pairs")
    def _check_split(cls, pairs, info):
        split = info.field_name.removesuffix("_pairs")
        if pairs and info.data.get(split):
            raise ValueError(
                f"Give `{split}` or a positive `{split}_pairs`, not both. "
                f"Received: {split}_pairs={pairs}"
            )
        return pairs

    @field_validator("max_length")
    def _check_max_length(cls, longest, info):
        shortest = info.data.get("min_length", 0)
        if longest < shortest:
            raise ValueError(
                "`max_length` must be at least `min_length`. Received: "
                f"max_length={longest}, min_length={shortest}"
            )
        return longest

    def __post_init__(self):
        given = self.tokenizer_source, self.tokenizer_target
        if self.joint and given[0] is None and given[1] is not None:
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

        if self.context and self.mask_symbols:
            raise UserError(
                "`context` cannot be used with `mask_symbols`, which stand for "
                "what both sides have. Received: "
                f"context={self.context}, mask_symbols={self.mask_symbols}. "
                "Set one of them to 0."
            )
        if self.context and self.min_alignment_score is not None:
            raise UserError(
                "`context` cannot be used with `min_alignment_score`, which "
                "would score the sentences before, too. Received: "
                f"context={self.context}, min_alignment_score="
                f"{self.min_alignment_score}. Leave one of them out."
            )
        self._check_alignments()
        masks = {*map(mask_symbol, range(1, self.mask_symbols + 1))}
        for tag in filter(masks.__contains__, self.tags()):
            raise UserError(
                "`tag` must not be one of the `mask_symbols`, which stand for "
                f"other text. Received: tag={tag}, "
                f"mask_symbols={self.mask_symbols}"
            )

        reasons = [*FILTERS, *OPTIONAL_FILTERS, "read", "kept"]
        for reason in self.own_reasons():
            if reason in reasons:
                raise UserError(
                    "`filters` must have names of their own. Received: "
                    f"{reason}, which another one has. Rename it."
                )
            reasons.append(reason)

        for corpus in self.train if self.min_language_score else ():
            languages = corpus.sides(self.languages)
            if None in languages:
                raise UserError(
                    "`min_language_score` needs `source_language` and "
                    "`target_language`. Received: "
                    f"source_language={languages[0]}, "
                    f"target_language={languages[1]}"
                )

    def _check_alignments(self):
        for split in HELD_OUT:
            for corpus in self.corpora(split):
                if corpus.alignments:
                    raise UserError(
                        "`alignments` are those of training text. Received: "
                        f"alignments={corpus.alignments} in `{split}`. Leave "
                        "them out."
                    )
        given = [c.alignments for c in self.train if c.alignments]
        for name in ("context", "mask_symbols"):
            if given and getattr(self, name):
                raise UserError(
                    f"`alignments` cannot be used with `{name}`, which changes "
                    f"the words of a text. Received: alignments={given[0]}, "
                    f"{name}={getattr(self, name)}. Leave one of them out."
                )

    def all_user_defined_symbols(self) -> list[str]:
        """Returns the symbols that are given by themselves and in the file.

        Returns:
            Each symbol once, in order; the `mask_symbols`, and the one between
            the sentences of a `context`, are the last ones.

        Raises:
            UserError: if the file cannot be read.
        """
        symbols = list(self.user_defined_symbols)
        if self.user_defined_symbols_file is not None:
            file = Path(self.user_defined_symbols_file)
            try:
                for number, line in enumerate(LineReader(file), start=1):
                    symbols.append(decode_line(line, file, number))
            except UserError as error:
                raise UserError(
                    f"`user_defined_symbols_file`: {error}"
                ) from error
        symbols += map(mask_symbol, range(1, self.mask_symbols + 1))
        symbols += [CONTEXT_MARK] if self.context else []
        return [symbol for symbol in dict.fromkeys(symbols) if symbol]

    def tags(self) -> list[str]:
        """Returns the tags of all corpora.

        Returns:
            Each tag once, those of the training corpora first.
        """
        corpora = itertools.chain(*map(self.corpora, ("train", *HELD_OUT)))
        return list(dict.fromkeys(c.tag for c in corpora if c.tag is not None))

    def corpora(self, split: str) -> list[CorpusOptions]:
        """Lists the corpora of `train`, `valid` or `test`."""
        given = getattr(self, split)
        if given is None:
            return []
        return given if isinstance(given, list) else [given]

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """Those of both sides of a corpus that names none."""
        return self.source_language, self.target_language

    def directions(self) -> list[dict[str, str | None]]:
        """Lists the directions of the training corpora, each once.

        Returns:
            For each the codes of its languages, as `source` and `target`, and
            its `tag`; `None` where none is given.
        """
        found = [(*c.direction(self.languages), c.tag) for c in self.train]
        return [
            dict(zip(("source", "target", "tag"), one, strict=True))
            for one in dict.fromkeys(found)
        ]

    def pair_filter(
        self, direction: tuple[str | None, str | None]
    ) -> PairFilter:
        """Returns the filter of the training pairs of a corpus.

        Args:
            direction: `CorpusFiles.direction`.

        Returns:
            A `PairFilter`. It does not remove duplicates, which takes a set of
            all pairs seen.
        """
        return PairFilter(
            min_length=self.min_length,
            max_length=self.max_length,
            max_ratio=self.max_ratio,
            drop_identical=self.drop_identical,
            source_language=direction[0],
            target_language=direction[1],
        )

    def own_reasons(self) -> list[str]:
        """Names the filters of the user.

        Returns:
            For each of `filters` the name of its function or class.
        """
        names = [name_and_options(value)[0] for value in self.filters]
        return [name.rpartition(".")[2] for name in names]

    def reasons(self) -> tuple[str, ...]:
        """Names the reasons for which pairs may be left out.

        Returns:
            Those that are always counted, then those that options ask for.
        """
        asked = {
            "encoding": self.errors == "skip",
            "language": self.min_language_score > 0,
            "misaligned": self.min_alignment_score is not None,
        }
        optional = (n for n in OPTIONAL_FILTERS if asked.get(n))
        return (*FILTERS, *optional, *self.own_reasons())
