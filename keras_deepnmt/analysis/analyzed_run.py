"""A run's model with some sentences, on which it is analysed."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import keras
import numpy as np

from keras_deepnmt.analysis.recorded_model import record, recorded_names
from keras_deepnmt.data.tokenizers import WORD_MARK, Tokenizer
from keras_deepnmt.data.word_units import lacks_spaces
from keras_deepnmt.errors import UserError, refused_values
from keras_deepnmt.evaluation import Score, corpus_scores
from keras_deepnmt.json_files import parse_json
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID
from keras_deepnmt.runs.evaluate import open_data, read_pairs
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.translator import Translator

if TYPE_CHECKING:
    from keras_deepnmt.data import PreparedData

# Sentences whose tensors are computed together.
BATCH = 32


class AnalyzedRun:
    """A trained run, and the sentences that analyses look at.

    The sentences are spread evenly over the test set; those that are longer
    than the model's position range are left out.

    Args:
        run_dir: folder of a finished run.
        num_sentences: largest number of sentences.
        split: split of the run's own data, `"test"` or `"valid"`.
        source_file: text with sources, instead of `split`.
        target_file: its references.
        prepared_dir: the prepared folder, if it was moved after training.
        compiled: whether XLA compiles translations.
        token: source token whose roles are studied.
        label_file: gold labels of source words, one line of JSON for each
            sentence of the text, as `write_demo_corpus` writes them:
            `[{"token_index": 0, "function": "subject"}]`.
        tag: text that stands before each line of `source_file`, as for
            `Translator.load`. Defaults to none.
        prefixes: what each translation of the text begins with, as for
            `Translator.translate`. Defaults to none.
        constraints: phrases that each contains.
        max_lengths: maximum length of each.

    Attributes:
        name: The name of the run's folder.
        run: The `RunFolder`.
        translator: The run's `Translator`.
        model: Its model.
        rows: Places of the sentences in the test set, from 0.
        sources: The sentences.
        references: Their reference translations.
        token: As above.
        labels_of_words: For each sentence the labels by the place of the word;
            `None` without a file.

    Raises:
        UserError: if the run is not finished, has no such text, or no sentence
            that is short enough.

    Example:
    >>> run = AnalyzedRun("runs/demo", num_sentences=50)
    >>> run.inputs["source_ids"].shape
    (50, 31)
    """

    def __init__(
        self,
        run_dir: str | Path,
        *,
        num_sentences: int = 200,
        split: str = "test",
        source_file: str | Path | None = None,
        target_file: str | Path | None = None,
        prepared_dir: str | Path | None = None,
        compiled: bool = True,
        token: str = "der",
        label_file: str | Path | None = None,
        tag: str | None = None,
        prefixes: Sequence[str] | None = None,
        constraints: Sequence[Sequence[str]] | None = None,
        max_lengths: Sequence[int] | None = None,
    ):
        self.run = RunFolder.find(run_dir)
        self.name = self.run.directory.name
        self.translator = Translator.load(run_dir, compiled=compiled, tag=tag)
        self.model = self.translator.model
        self.token = token
        self._prepared_dir = prepared_dir
        if source_file is not None and target_file is not None:
            sources, references = read_pairs(source_file, target_file)
        else:
            data = open_data(self.run, prepared_dir)
            sources, references = data.texts(split)
        self._choose(sources, references, num_sentences)
        given = {
            "prefixes": prefixes,
            "constraints": constraints,
            "max_lengths": max_lengths,
        }
        self._given = {
            name: self._of_rows(name, values, len(sources))
            for name, values in given.items()
            if values is not None
        }
        self.labels_of_words = None
        if label_file is not None:
            found = _read_labels(Path(label_file), len(sources))
            self.labels_of_words = [found[row] for row in self.rows]

    def _choose(self, sources, references, number):
        limit = self.translator.max_source_length
        short = [
            row
            for row, ids in enumerate(self._encode(sources, references))
            if max(map(len, ids)) < limit
        ]
        if not short:
            raise UserError(
                f"{self.run.directory}: the sentences must have at most "
                f"{limit - 1} tokens on each side, the model's position range. "
                f"Received: {len(sources)} sentences, all of them longer. Give "
                "shorter ones by `--source` and `--target`, or a model with a "
                "larger `max_length`."
            )
        places = np.linspace(0, len(short) - 1, min(number, len(short)))
        self.rows = [short[int(place)] for place in places]
        self.sources = [sources[row] for row in self.rows]
        self.references = [references[row] for row in self.rows]

    def _of_rows(self, name, values, number):
        """The values of the chosen sentences, of one for each of the text."""
        if len(values) != number:
            raise UserError(
                f"`{name}` must have one value for each sentence. Received: "
                f"{len(values)} for {number} sentences"
            )
        return [values[row] for row in self.rows]

    def _encode(self, sources, references):
        return zip(
            self.translator.source_tokenizer.encode(
                self.translator.tagged(sources)
            ),
            self.translator.target_tokenizer.encode(
                self.translator.tagged_targets(sources, references)
            ),
            strict=True,
        )

    @property
    def data(self) -> "PreparedData":
        """The prepared data of the run."""
        return open_data(self.run, self._prepared_dir)

    @cached_property
    def _ids(self):
        sources, targets, labels = [], [], []
        for source, target in self._encode(self.sources, self.references):
            sources.append([*source, END_ID])
            targets.append([BEGIN_ID, *target])
            labels.append([*target, END_ID])
        return [_padded(rows) for rows in (sources, targets, labels)]

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        """The model's inputs, with the references as target."""
        return {"source_ids": self._ids[0], "target_ids": self._ids[1]}

    @property
    def labels(self) -> np.ndarray:
        """The labels `(B, T)`: the ids of the references and the end."""
        return self._ids[2]

    @property
    def source_mask(self) -> np.ndarray:
        """Bool array `(B, S)`, `True` = real token."""
        return self._ids[0] != PADDING_ID

    @property
    def target_mask(self) -> np.ndarray:
        """Bool array `(B, T)`, `True` = real label."""
        return self._ids[2] != PADDING_ID

    def source_tokens(self, row: int) -> list[str]:
        """Returns the tokens of a source as `shown_pieces`, and the end."""
        ids = self._ids[0][row]
        tokenizer = self.translator.source_tokenizer
        return shown_pieces(tokenizer, ids[ids != PADDING_ID])

    def target_tokens(self, row: int) -> list[str]:
        """Returns the labels of a reference likewise."""
        ids = self._ids[2][row]
        tokenizer = self.translator.target_tokenizer
        return shown_pieces(tokenizer, ids[ids != PADDING_ID])

    @cached_property
    def names(self) -> list[str]:
        """The names of all tensors that `record` can return."""
        return recorded_names(self.model)

    def record(
        self, names: Sequence[str], rows: Sequence[int] | None = None
    ) -> dict[str, np.ndarray]:
        """Computes tensors from inside the model for the sentences.

        Args:
            names: Names from `self.names`.
            rows: Places of sentences in `self.sources`. Defaults to all.

        Returns:
            Arrays by name, sentence by sentence, padded to common lengths.
        """
        if not names:
            return {}
        found: dict[str, list] = {name: [] for name in names}
        for _, tensors in self.record_batches(names, rows):
            for name, tensor in tensors.items():
                found[name].append(tensor)
        return {name: np.concatenate(parts) for name, parts in found.items()}

    def record_batches(
        self, names: Sequence[str], rows: Sequence[int] | None = None
    ) -> Iterator[tuple[list[int], dict[str, np.ndarray]]]:
        """Computes tensors as `record`, a batch of sentences at a time.

        Yields:
            The places of some sentences in `self.sources`, and their arrays.
        """
        recorded = record(self.model, names)
        rows = range(len(self.sources)) if rows is None else rows
        for start in range(0, len(rows), BATCH):
            batch = list(rows[start : start + BATCH])
            inputs = {side: ids[batch] for side, ids in self.inputs.items()}
            yield (
                batch,
                {
                    name: keras.ops.convert_to_numpy(tensor)
                    for name, tensor in recorded(inputs).items()
                },
            )

    @cached_property
    def translations(self) -> list[str]:
        """The translations of the sentences by the run's model."""
        return self.translator.translate(self.sources, **self._given)

    def translate_by(self, model: keras.Model) -> list[str]:
        """Translates the sentences with a changed copy of the model."""
        translator = self.translator.replaced(model=model)
        return translator.translate(self.sources, **self._given)

    def bleu(self, translations: Sequence[str]) -> Score:
        """BLEU of translations of the sentences, as the run's recipe asks."""
        scoring = self.run.scoring_of(self.run.read_summary())
        return corpus_scores(
            translations,
            self.references,
            metrics=("bleu",),
            tokenize=scoring.tokenize,
            lowercase=scoring.lowercase,
        )["bleu"]


def shown_pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """Returns the pieces of a sentence as readers know words.

    They have no `▁`. A piece that goes on with the letters of a word begins
    with a hyphen, as `-ing` does, except in a sentence without spaces.
    """
    pieces = tokenizer.pieces(ids)
    starts = [piece.startswith(WORD_MARK) for piece in pieces]
    if tokenizer.marks_word_ends:
        starts = [True, *(piece.endswith(WORD_MARK) for piece in pieces[:-1])]
    separator = tokenizer.separator
    if separator:
        starts = [True, *(not p.endswith(separator) for p in pieces[:-1])]
    shown = []
    for piece, begins in zip(pieces, starts, strict=True):
        text = piece.strip(WORD_MARK).replace(WORD_MARK, " ")
        text = text.removesuffix(separator)
        goes_on = shown and not begins and any(starts[1:])
        if goes_on and text[:1].isalpha() and not lacks_spaces(text):
            text = f"-{text}"
        shown.append(text or "␣")
    return shown


def _read_labels(file, num_sentences):
    """The labels of each sentence's words, by their place."""
    # Not `splitlines`: a label may have other line ends, such as U+2028.
    place = f"{file}: not a file of labels"
    with refused_values(place), open(file, encoding="utf-8") as stream:
        lines = list(stream)
    if len(lines) != num_sentences:
        raise UserError(
            f"{file} must have a line for each of the {num_sentences} "
            f"sentences. Received: {len(lines)} lines."
        )
    with refused_values(place):
        return [
            {
                int(label["token_index"]): str(label["function"])
                for label in parse_json(line, "a line")
            }
            for line in lines
        ]


def _padded(rows):
    array = np.full((len(rows), max(map(len, rows))), PADDING_ID, "int32")
    for row, ids in zip(array, rows, strict=True):
        row[: len(ids)] = ids
    return array
