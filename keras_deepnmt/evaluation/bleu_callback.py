"""BLEU of the development set while a model trains."""

import time
from collections.abc import Callable, Sequence

import keras

from keras_deepnmt.evaluation.scores import Score, corpus_scores
from keras_deepnmt.evaluation.sentence_budget import SentenceBudget

NUM_RESAMPLES = 1000


class BleuCallback(keras.callbacks.Callback):
    """Translates the development set after epochs and logs `val_bleu`.

    Callbacks that read `val_bleu` (early stopping, CSV, TensorBoard) come
    after this one in the list. Training is not touched: no weight, optimizer
    state or random number is used up. Epochs in which nothing is measured
    have no `val_bleu`.

    Args:
        translate: gives one translation for each sentence, with the weights
            as they are then; for instance `Translator.translate`.
        sources: sentences of the development set.
        references: the reference of each.
        every_epochs: measured after each so many epochs.
        tokenize: sacreBLEU tokenizer; `"none"` for tokenised text.
        lowercase: whether case is ignored.
        max_sentences: only the first so many. Defaults to all.
        budget: chooses a part of the sentences at the first measurement, whose
            95 % confidence interval is then told. Defaults to all.
        verbose: `0` prints nothing.

    Attributes:
        score: the last `Score`, or `None`.
        num_sentences: how many are translated.
        seconds: time of the last measurement.
        total_seconds: time of all of them.
        share: `total_seconds` over the wall time since training began, as of
            the last measurement; in [0, 1].

    Raises:
        ValueError: if the sides differ in number or are empty, or
            `every_epochs` or `max_sentences` is below 1.

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
        tokenize: str = "13a",
        lowercase: bool = False,
        max_sentences: int | None = None,
        verbose: int = 1,
        budget: SentenceBudget | None = None,
    ):
        if len(sources) != len(references) or not len(sources):
            raise ValueError(
                "`sources` and `references` must be as many, and at least "
                f"one. Received: {len(sources)} sources, "
                f"{len(references)} references"
            )
        most = len(sources) if max_sentences is None else max_sentences
        if min(every_epochs, most) < 1:
            raise ValueError(
                "`every_epochs` and `max_sentences` must be at least 1. "
                f"Received: every_epochs={every_epochs}, "
                f"max_sentences={max_sentences}"
            )
        super().__init__()
        self.translate = translate
        self.sources = list(sources)[:most]
        self.references = list(references)[:most]
        self.every_epochs = every_epochs
        self.tokenize = tokenize
        self.lowercase = lowercase
        self.verbose = verbose
        self.budget = budget
        self.score: Score | None = None
        self.seconds = 0.0
        self.total_seconds = 0.0
        self.share = 0.0
        self._began = time.perf_counter()
        self._is_chosen = budget is None
        self._update_seconds = []

    @property
    def num_sentences(self) -> int:
        return len(self.sources)

    def on_train_begin(self, logs=None):
        self._began = time.perf_counter()
        self.total_seconds = 0.0

    def on_train_batch_begin(self, batch, logs=None):
        if not self._is_chosen:
            self._batch_began = time.perf_counter()
            self._compilations = getattr(self.model, "num_compilations", None)

    def on_train_batch_end(self, batch, logs=None):
        if self._is_chosen:
            return
        seconds = time.perf_counter() - self._batch_began
        if getattr(self.model, "num_compilations", None) == self._compilations:
            self._update_seconds.append(seconds)

    def on_test_begin(self, logs=None):
        # What comes may be broken off, and made up for by another process.
        self._note_pace()

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1) % self.every_epochs:
            return
        start = time.perf_counter()
        # On JAX `fit` holds the weights aside between epochs.
        if hasattr(self.model, "jax_state_sync"):
            self.model.jax_state_sync()
        if not self._is_chosen:
            self._choose()
        self.score = self._measure(self.sources, self.references)
        now = time.perf_counter()
        self.seconds = now - start
        self.total_seconds += self.seconds
        self.share = self.total_seconds / (now - self._began)
        if logs is not None:
            logs["val_bleu"] = self.score.value
            if self.budget is not None:
                logs["val_bleu_interval"] = self.score.interval
                logs["val_bleu_sentences"] = self.num_sentences
        if self.verbose:
            print(
                f"Epoch {epoch + 1}: val_bleu {self.score}; "
                f"{self.seconds:.1f} s, in all {100 * self.share:.1f} % of "
                "the time since training began"
            )

    def _note_pace(self):
        if self._update_seconds and not self._is_chosen:
            self.budget.note_pace(
                sum(self._update_seconds) / len(self._update_seconds)
            )

    def _choose(self):
        sides = self.sources, self.references

        def seconds_of(rows):
            start = time.perf_counter()
            self._measure(*([side[row] for row in rows] for side in sides))
            return time.perf_counter() - start

        self._note_pace()
        rows = self.budget.choose(len(self.sources), seconds_of)
        self.sources, self.references = (
            [side[row] for row in rows] for side in sides
        )
        self._is_chosen = True

    def _measure(self, sources, references):
        return corpus_scores(
            self.translate(sources),
            references,
            ["bleu"],
            tokenize=self.tokenize,
            lowercase=self.lowercase,
            num_resamples=1 if self.budget is None else NUM_RESAMPLES,
        )["bleu"]
