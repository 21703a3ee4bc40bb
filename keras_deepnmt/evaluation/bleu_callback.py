"""BLEU of the development set during training."""

import functools
import time
from collections.abc import Callable, Sequence

import keras

from keras_deepnmt.evaluation.scores import Score, corpus_scores
from keras_deepnmt.evaluation.sentence_budget import SentenceBudget
from keras_deepnmt.evaluation.word_tokenizers import default_tokenizer
from keras_deepnmt.models.training_step.training_state import write_back_weights

NUM_RESAMPLES = 1000


class BleuCallback(keras.callbacks.Callback):
    """Translates the development set after epochs and logs `val_bleu`.

    Put callbacks that read `val_bleu` (early stopping, CSV, TensorBoard) after
    this one in the list. Training is not affected: weights, optimizer state
    and random states do not change. Epochs without a measurement have no
    `val_bleu`.

    Args:
        translate: function that returns one translation for each sentence,
            with the current weights; for instance `Translator.translate`.
        sources: sentences of the development set.
        references: one reference for each source.
        every_epochs: number of epochs from one measurement to the next.
        tokenize: sacreBLEU tokenizer; `"none"` for tokenized text. Defaults to
            that of the references' script, as in `corpus_scores`.
        lowercase: whether case is ignored.
        max_sentences: number of sentences to translate, the first ones.
            Defaults to all.
        budget: chooses a subset of the sentences at the first measurement after
            an update that was timed; the 95 % confidence interval is then
            reported too. Defaults to all.
        verbose: `0` prints nothing.

    Attributes:
        score: the last `Score`, or `None`.
        num_sentences: number of sentences translated per measurement.
        seconds: duration of the last measurement.
        total_seconds: duration of all measurements.
        share: `total_seconds` divided by the wall time of training, of all
            calls of `fit` with this callback, as of the last measurement; in
            [0, 1].

    Raises:
        ValueError: if `sources` and `references` differ in length or are empty,
            or `every_epochs` or `max_sentences` is below 1.

    Example:
    >>> bleu = BleuCallback(translator.translate, ["ein Hund"], ["a dog"])
    >>> stop = keras.callbacks.EarlyStopping("val_bleu", mode="max")
    >>> history = model.fit(dataset, callbacks=[bleu, stop])
    """

    def __init__(
        self,
        translate: Callable[[list[str]], list[str]],
        sources: Sequence[str],
        references: Sequence[str],
        every_epochs: int = 1,
        tokenize: str | None = None,
        lowercase: bool = False,
        max_sentences: int | None = None,
        verbose: int = 1,
        budget: SentenceBudget | None = None,
    ):
        if len(sources) != len(references) or not len(sources):
            raise ValueError(
                "`sources` and `references` must have the same length and not "
                f"be empty. Received: {len(sources)} sources, "
                f"{len(references)} references"
            )
        limit = len(sources) if max_sentences is None else max_sentences
        if min(every_epochs, limit) < 1:
            raise ValueError(
                "`every_epochs` and `max_sentences` must be at least 1. "
                f"Received: every_epochs={every_epochs}, "
                f"max_sentences={max_sentences}"
            )
        super().__init__()
        self.translate = translate
        self.sources = list(sources)[:limit]
        self.references = list(references)[:limit]
        self.every_epochs = every_epochs
        self.tokenize = tokenize or default_tokenizer(references)
        self.lowercase = lowercase
        self.verbose = verbose
        self.budget = budget
        self.score: Score | None = None
        self.seconds = 0.0
        self.total_seconds = 0.0
        self.share = 0.0
        # The time of earlier calls of `fit`, and the start of this one.
        self._training_seconds = 0.0
        self._training_start: float | None = None
        self._sentences_are_chosen = budget is None
        self._update_seconds = []

    @property
    def num_sentences(self) -> int:
        return len(self.sources)

    def set_model(self, model):
        super().set_model(model)
        # Not by `self.model`: on JAX each use of it within an epoch takes all
        # weights out of the step.
        self._count_compilations = functools.partial(
            getattr, model, "num_compilations", None
        )

    def on_train_begin(self, logs=None):
        if self._training_start is None:
            self._training_start = time.perf_counter()

    def on_train_end(self, logs=None):
        if self._training_start is not None:
            self._training_seconds += time.perf_counter() - self._training_start
            self._training_start = None

    def on_train_batch_begin(self, batch, logs=None):
        if not self._sentences_are_chosen:
            self._batch_start = time.perf_counter()
            self._compilations = self._count_compilations()

    def on_train_batch_end(self, batch, logs=None):
        if self._sentences_are_chosen:
            return
        # Logs that are still tensors are computed when they are read.
        for value in (logs or {}).values():
            float(value)
        seconds = time.perf_counter() - self._batch_start
        if self._count_compilations() == self._compilations:
            self._update_seconds.append(seconds)

    def on_test_begin(self, logs=None):
        # Validation may be interrupted here and run again by another process.
        self._record_pace()

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1) % self.every_epochs:
            return
        start = time.perf_counter()
        write_back_weights(self.model)
        if not self._sentences_are_chosen:
            self._choose_sentences()
        self.score = self._translate_and_score(self.sources, self.references)
        now = time.perf_counter()
        self.seconds = now - start
        self.total_seconds += self.seconds
        if self._training_start is not None:
            start = self._training_start
        trained = self._training_seconds + now - start
        self.share = self.total_seconds / trained
        if logs is not None:
            logs["val_bleu"] = self.score.value
            if self.budget is not None:
                logs["val_bleu_interval"] = self.score.interval
                logs["val_bleu_sentences"] = self.num_sentences
        if self.verbose:
            print(
                f"Epoch {epoch + 1}: val_bleu {self.score}; "
                f"{self.seconds:.1f} s, in total {100 * self.share:.1f} % of "
                "the time of training"
            )

    def _record_pace(self):
        if self._update_seconds and not self._sentences_are_chosen:
            self.budget.note_pace(
                sum(self._update_seconds) / len(self._update_seconds)
            )

    def _choose_sentences(self):
        sides = self.sources, self.references

        def seconds_of(rows):
            start = time.perf_counter()
            self._translate_and_score(
                *([side[row] for row in rows] for side in sides)
            )
            return time.perf_counter() - start

        self._record_pace()
        if not self.budget.can_choose:
            # A run that goes on with this validation, or has only compiled:
            # all sentences are translated, and the next one chooses.
            return
        rows = self.budget.choose(len(self.sources), seconds_of)
        self.sources, self.references = (
            [side[row] for row in rows] for side in sides
        )
        self._sentences_are_chosen = True

    def _translate_and_score(self, sources, references):
        return corpus_scores(
            self.translate(sources),
            references,
            ["bleu"],
            tokenize=self.tokenize,
            lowercase=self.lowercase,
            num_resamples=1 if self.budget is None else NUM_RESAMPLES,
        )["bleu"]
