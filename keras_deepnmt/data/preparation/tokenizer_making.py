"""Opens, extends or trains the tokenizers of both sides."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from keras_deepnmt.data.context import mark_id
from keras_deepnmt.data.context_mark import CONTEXT_MARK
from keras_deepnmt.data.mask_symbols import mask_symbols
from keras_deepnmt.data.normalization import Normalization, load_normalization
from keras_deepnmt.data.preparation.given_tokenizers import (
    check_given_tokenizer,
    options_without_effect,
)
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.preparation.tokenizer_training import (
    required_characters,
    train_model,
    training_sentences,
    write_tokenizer,
)
from keras_deepnmt.data.preparation.vocabulary_extension import (
    check_extensible,
    extend_tokenizers,
)
from keras_deepnmt.data.tags import check_has_tag
from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import write_bytes

SIDES = ("source", "target")
_BLOCK = 1024
# A source may be written in any form; translations look like the target text.
DEFAULT_NORMALIZATIONS = {"source": "nfkc", "target": "nfc"}


class TokenizerMaker:
    """Makes the tokenizers that the options of `prepare` describe.

    `extension` is what `make` added to given tokenizers, by side, for the
    manifest; see `vocabulary_extension.Extension`. `normalizations` are how the
    tokenizers of the source and of the target rewrite a text, which is known
    before there are any. A given tokenizer is refused if it has another rule
    than the options ask for, or lacks pieces such as the tag of a corpus.
    """

    def __init__(self, options: PrepareOptions):
        self.options = options
        symbols = options.all_user_defined_symbols()
        with_tags = list(dict.fromkeys([*symbols, *options.tags()]))
        # Tags stand on one side alone.
        self._symbols = (with_tags, symbols)
        if options.tag_side == "target":
            self._symbols = (symbols, with_tags)
        given = [options.tokenizer_source, options.tokenizer_target]
        if options.joint and given[1] is None:
            given[1] = given[0]
        self._given = [file and Tokenizer(file) for file in given]
        self.extension: dict[str, dict] = {}
        self._check_joint()
        self._check_mask_symbols()
        self._check_extension()
        self._check_tags()
        self._check_context()
        for tokenizer in self.given.values():
            check_given_tokenizer(options, tokenizer)
        self.normalizations: tuple[Normalization, Normalization] = tuple(
            _normalization(side, options, tokenizer, symbols)
            for side, tokenizer, symbols in zip(
                SIDES, self._given, self._symbols, strict=True
            )
        )

    @property
    def given(self) -> dict[str, Tokenizer]:
        """The tokenizers that are not trained, by side."""
        pairs = zip(SIDES, self._given, strict=True)
        return {side: one for side, one in pairs if one is not None}

    def given_names(self) -> dict[str, str]:
        """Names the tokenizers that are not trained, by side, for warnings."""
        names = {}
        for side, tokenizer in self.given.items():
            names[side] = str(tokenizer.model_file)
            if side in self.extension:
                added = self.extension[side]
                pieces = added["characters"] + added["merges"]
                names[side] += f" with {pieces:,} new pieces"
        return names

    @property
    def user_defined_symbols(self) -> list[str]:
        """The texts that always are one piece, for either tokenizer."""
        given = (t.user_defined_symbols for t in self.given.values())
        return [*dict.fromkeys(itertools.chain(*self._symbols, *given))]

    def warnings(self) -> list[str]:
        """Names the options that have no effect on given tokenizers."""
        found = (
            options_without_effect(self.options, tokenizer)
            for tokenizer in self.given.values()
        )
        return list(dict.fromkeys(filter(None, found)))

    def make(
        self,
        folder: Path,
        training_pairs: Callable[[], Iterable[tuple[str, str]]],
        text_files: Sequence[tuple[Path, Path]],
    ) -> tuple[Tokenizer, Tokenizer]:
        """Writes `source.model` and `target.model` and opens them.

        Raises a `UserError` that names the `text_files` of the training pairs
        if they do not allow such a vocabulary.
        """
        files = [folder / f"{side}.model" for side in SIDES]
        if self._given[0] is not None:
            for tokenizer, file in zip(self._given, files, strict=True):
                tokenizer.save(file)
            if self.options.extend_vocabulary:
                self._extend(files, training_pairs)
            return tuple(map(Tokenizer, files))
        model, made = None, []
        for number, file in enumerate(files):
            if model is None or not self.options.joint:
                sides = (0, 1) if self.options.joint else (number,)
                model = self._train(sides, training_pairs(), text_files)
            rule = self.normalizations[number]
            made.append(write_tokenizer(model, rule, file))
        return tuple(made)

    def _train(self, sides, pairs, text_files):
        options = self.options
        symbols = max((self._symbols[side] for side in sides), key=len)
        try:
            return train_model(
                self._sentences(sides, pairs, symbols),
                options.vocabulary_size,
                options.model_type,
                character_coverage=options.character_coverage,
                max_sentences=options.tokenizer_sentences,
                seed=options.seed,
                split_digits=options.split_digits,
                byte_fallback=options.byte_fallback,
                user_defined_symbols=symbols,
                required_chars=required_characters(
                    options.required_chars or "", self.normalizations[sides[0]]
                ),
            )
        except UserError as error:
            files = [str(pair[side]) for pair in text_files for side in sides]
            raise UserError(f"{', '.join(files)}: {error}") from error

    def _extend(self, files, training_pairs):
        """Adds pieces to the given tokenizers, and writes the models."""
        total = sum(1 for _ in training_pairs())
        for sides in ((0, 1),) if self.options.joint else ((0,), (1,)):
            models, added = extend_tokenizers(
                [self._given[side] for side in sides],
                self.options.extend_vocabulary,
                self._drawn(sides, training_pairs(), total),
                self.options.character_coverage,
            )
            for side, model, one in zip(sides, models, added, strict=True):
                write_bytes(files[side], model)
                self.extension[SIDES[side]] = asdict(one)

    def _drawn(self, sides, pairs, total) -> Iterator[list[list[str]]]:
        """Yields blocks of `tokenizer_sentences` sentences, drawn uniformly."""
        number = min(total, self.options.tokenizer_sentences // len(sides))
        random = np.random.default_rng(self.options.seed)
        drawn = np.zeros(total, bool)
        drawn[random.choice(total, number, replace=False)] = True
        pairs = itertools.compress(pairs, drawn)
        while block := list(itertools.islice(pairs, _BLOCK)):
            yield [[pair[side] for pair in block] for side in sides]

    def _sentences(self, sides, pairs, symbols) -> Iterator[str]:
        for pair in pairs:
            for side in sides:
                yield from training_sentences(
                    [pair[side]], self.normalizations[side], symbols
                )

    def _check_extension(self):
        if not self.options.extend_vocabulary:
            return
        for tokenizer in self._given:
            if tokenizer is None:
                raise UserError(
                    "`extend_vocabulary` needs a given tokenizer, whose "
                    "vocabulary grows. Received: extend_vocabulary="
                    f"{self.options.extend_vocabulary} without "
                    "`tokenizer_source`. `deepnmt train --from-preset` has "
                    "those of the preset folder."
                )
            check_extensible(tokenizer)

    def _check_tags(self):
        side = self.options.tag_side
        tokenizer = self.given.get(side)
        if tokenizer is None:
            return
        for tag in self.options.tags():
            check_has_tag(
                tokenizer,
                tag,
                f"Leave out `tokenizer_{side}`, so that a tokenizer with the "
                "tags is trained, or give one that was trained with this "
                "symbol.",
                side,
            )

    def _check_context(self):
        if self.options.context and self._given[0] is not None:
            if mark_id(self._given[0]) is None:
                raise UserError(
                    f"`context` needs {CONTEXT_MARK} as a user-defined symbol "
                    "of the source tokenizer. Received: "
                    f"{self._given[0].model_file} without it. Leave out "
                    "`tokenizer_source`, so that a tokenizer is trained, or "
                    "give one that was trained with `context`."
                )

    def _check_joint(self):
        source, target = self._given
        if (
            self.options.joint
            and source is not None
            and not source.has_pieces_of(target)
        ):
            raise UserError(
                "With `joint` both tokenizers must have the same pieces: give "
                "`tokenizer_source` alone, or joint=false. Received: "
                f"tokenizer_source={source.model_file}, "
                f"tokenizer_target={target.model_file}"
            )

    def _check_mask_symbols(self):
        if not self.given:
            return
        asked = self.options.mask_symbols
        found = len(mask_symbols(*self.given.values()))
        if asked > found:
            raise UserError(
                "`mask_symbols` must not exceed the number of such symbols "
                "that the given tokenizers have as user-defined ones. "
                f"Received: mask_symbols={asked} and tokenizers with {found}. "
                "Train new tokenizers, or leave the option out."
            )


def _normalization(
    side: str,
    options: PrepareOptions,
    tokenizer: Tokenizer | None,
    symbols: Sequence[str],
) -> Normalization:
    name = f"{side}_normalization"
    rule = getattr(options, name)
    case = options.case or "kept"
    if tokenizer is not None:
        case = tokenizer.normalization.case
        if options.case not in (None, case):
            raise UserError(
                "`case` must be left out with a given tokenizer, whose file "
                "says how upper-case letters are read. Received: "
                f"case={options.case} and {tokenizer.model_file}, where it is "
                f"{case}."
            )
    try:
        asked = load_normalization(
            rule or DEFAULT_NORMALIZATIONS[side], case, symbols
        )
    except UserError as error:
        raise UserError(f"`{name}`: {error}") from error
    if tokenizer is None:
        return asked
    if rule is not None and not tokenizer.normalization.is_same(asked):
        raise UserError(
            f"`{name}` must be left out with a given tokenizer, whose file "
            f"says how a text is rewritten. Received: {name}={rule} and "
            f"{tokenizer.model_file}, which has another rule."
        )
    return tokenizer.normalization
