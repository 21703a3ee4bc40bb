"""The progress bar and progress lines of training."""

import functools
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TextIO

import keras
from pydantic import Field
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from keras_deepnmt.files import write_json
from keras_deepnmt.json_files import read_json
from keras_deepnmt.models.training_step.training_state import update_count
from keras_deepnmt.terminal_text import escape_controls
from keras_deepnmt.xla.events import listen

# More than any number of checkpoints that a run keeps.
_MOST_STEPS = 100


class ThroughputProgress(keras.callbacks.Callback):
    """Shows updates, loss, rate, tokens per second, padding, compilations.

    Shows a live bar in a terminal; otherwise prints one line per epoch, and at
    most one per minute within an epoch. Before XLA compiles the step for
    another batch shape, which takes seconds to minutes, a line says so. It adds
    these values to the logs of an epoch, so that later callbacks (CSV,
    TensorBoard) record them: `step`, `learning_rate`, `seconds`,
    `tokens_per_second` (real target tokens per second of training) and
    `compile_seconds` (of the updates with a new batch shape: tracing,
    compiling, and the update itself).

    For training that continues within an epoch, set `resumed_counts` to the
    `epoch_counts` at the end of the previous training. The logs of the next
    epoch then have the sums of both, and the mean loss over both.

    Args:
        total_steps: int. Number of updates of the whole run.
        expected_compilations: int. Number of batch shapes in training.
        padding_fraction: float in [0, 1]. Fraction of padding positions.
        quiet: bool. If true, shows nothing, but still adds to the logs.
        stream: text stream to write to. Defaults to standard error.
        seconds_between_lines: float. Without a terminal, minimum seconds
            between two lines within an epoch. Defaults to `60.0`.
        expected_validation_compilations: int. Number of batch shapes in
            validation.

    Example:
    >>> progress = keras_deepnmt.training.ThroughputProgress(8000, quiet=True)
    >>> progress.total_steps
    8000
    """

    def __init__(
        self,
        total_steps: int,
        expected_compilations: int | None = None,
        padding_fraction: float | None = None,
        quiet: bool = False,
        stream: TextIO | None = None,
        seconds_between_lines: float = 60.0,
        expected_validation_compilations: int | None = None,
    ):
        super().__init__()
        self.total_steps = total_steps
        self.expected_compilations = expected_compilations
        self.padding_fraction = padding_fraction
        self.quiet = quiet
        self.stream = stream or sys.stderr
        self.seconds_between_lines = seconds_between_lines
        self.expected_validation_compilations = expected_validation_compilations
        self.resumed_counts: Mapping[str, float] = {}
        self._earlier: Mapping[str, float] = {}
        self._begin_counting()
        self._bar = None
        self._task = None

    def set_model(self, model):
        super().set_model(model)
        # Not by `self.model`: on JAX each use of it within an epoch takes all
        # weights out of the step.
        self._count_compilations = functools.partial(
            getattr, model, "num_compilations", None
        )
        strategy = getattr(model, "distribute_strategy", None)
        self._replicas = strategy.num_replicas_in_sync if strategy else 1
        # A step calls it, where Keras on JAX must not hand out `self.model`.
        listen(model, self._say_compiling, name="progress")

    def _say_compiling(self, compilation):
        expected = {
            "training": self.expected_compilations,
            "validation": self.expected_validation_compilations,
        }
        self._say(
            compilation.describe(
                expected.get(compilation.purpose), self._replicas
            )
        )

    def on_train_begin(self, logs=None):
        self._step = update_count(self.model)
        self._line_time = time.monotonic()
        if not self.quiet and self.stream.isatty():
            self._bar = Progress(
                TextColumn("update"),
                MofNCompleteColumn(),
                BarColumn(bar_width=20),
                TextColumn("{task.description}"),
                TimeRemainingColumn(),
                console=Console(file=self.stream),
            )
            self._task = self._bar.add_task(
                "compiling", total=self.total_steps, completed=self._step
            )
            self._bar.start()

    @property
    def epoch_counts(self) -> dict[str, float]:
        """The counts since the epoch began.

        The keys are `seconds`, `training_seconds` (without validation),
        `compile_seconds`, `tokens` (real target tokens) and `loss_sum` (nats
        over these tokens).
        """
        tokens = float(self._epoch_tokens)
        counts = {
            "seconds": time.monotonic() - self._epoch_time,
            "training_seconds": self._train_seconds,
            "compile_seconds": self._compile_seconds,
            "tokens": tokens,
            "loss_sum": float(self._epoch_loss) * tokens,
        }
        return {
            name: value + self._earlier.get(name, 0.0)
            for name, value in counts.items()
        }

    def on_epoch_begin(self, epoch, logs=None):
        self._earlier, self.resumed_counts = self.resumed_counts, {}
        self._begin_counting()

    def _begin_counting(self):
        self._epoch_time = self._mark_time = time.monotonic()
        self._train_seconds = self._compile_seconds = 0.0
        self._epoch_tokens = self._mark_tokens = self._epoch_loss = 0.0
        self._rate = None

    def on_train_batch_begin(self, batch, logs=None):
        self._batch_time = time.monotonic()
        self._compilations = self._count_compilations()

    def on_train_batch_end(self, batch, logs=None):
        logs = logs or {}
        self._step += 1
        now = time.monotonic()
        if self._count_compilations() != self._compilations:
            self._compile_seconds += now - self._batch_time
        self._train_seconds = now - self._epoch_time
        # Read only when shown: reading waits until the device is done.
        self._epoch_tokens = logs.get("tokens", 0.0)
        self._epoch_loss = logs.get("loss", 0.0)
        is_rate_old = now - self._mark_time >= 2.0 or self._rate is None
        if self._bar is not None:
            self._bar.update(self._task, completed=self._step)
            if is_rate_old:
                self._measure_rate(now)
                self._bar.update(
                    self._task, description=self._describe(logs, self._rate)
                )
        elif now - self._line_time >= self.seconds_between_lines:
            self._measure_rate(now)
            self._print(self._describe(logs, self._rate))

    def on_epoch_end(self, epoch, logs=None):
        logs = {} if logs is None else logs
        counts = self.epoch_counts
        rate = counts["tokens"] / max(counts["training_seconds"], 1e-9)
        if self._earlier and counts["tokens"]:
            logs["loss"] = counts["loss_sum"] / counts["tokens"]
        description = self._describe(logs, rate)
        if "tokens" in logs:
            logs["tokens"] = counts["tokens"]
        logs["step"] = self._step
        logs["learning_rate"] = self._learning_rate()
        logs["seconds"] = counts["seconds"]
        logs["tokens_per_second"] = rate
        logs["compile_seconds"] = counts["compile_seconds"]
        # A checkpoint that is saved from now on is that of the next epoch.
        self._earlier = {}
        self._begin_counting()
        self._print(description)

    def on_train_end(self, logs=None):
        self.close()

    def _measure_rate(self, now):
        """Computes the tokens per second since the last call."""
        tokens = float(self._epoch_tokens)
        seconds = max(now - self._mark_time, 1e-9)
        self._rate = (tokens - self._mark_tokens) / seconds
        self._mark_time, self._mark_tokens = now, tokens

    def close(self):
        """Removes the live bar, if there is one."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _learning_rate(self):
        rate = self.model.optimizer.learning_rate
        return float(keras.ops.convert_to_numpy(rate))

    def _describe(self, logs, rate):
        parts = [
            f"{name} {float(logs[name]):.{digits}f}"
            for name, digits in (("loss", 3), ("val_loss", 3), ("val_bleu", 2))
            if name in logs
        ]
        if "val_bleu_interval" in logs:
            parts[-1] += (
                f" ± {logs['val_bleu_interval']:.2f} on "
                f"{logs['val_bleu_sentences']} sentences"
            )
        if "bleu_share" in logs:
            share = 100 * logs["bleu_share"]
            seconds = logs["bleu_seconds"]
            parts.append(f"BLEU took {seconds:.1f} s, {share:.1f} % of all")
        parts.append(f"learning rate {self._learning_rate():.2e}")
        parts.append(f"{rate:,.0f} tokens/s")
        if self.padding_fraction is not None:
            parts.append(f"padding {100 * self.padding_fraction:.1f} %")
        compiled = self._count_compilations()
        if compiled is not None:
            expected = self.expected_compilations or "?"
            text = f"compilations {compiled}/{expected}"
            if evaluated := len(getattr(self.model, "evaluation_shapes", ())):
                text += f" and {evaluated} for validation"
            if self._compile_seconds:
                text += f", {self._compile_seconds:.1f} s"
            parts.append(text)
        return ", ".join(parts)

    def _print(self, description):
        self._line_time = time.monotonic()
        if self.quiet:
            return
        self._say(f"update {self._step}/{self.total_steps}: {description}")

    def _say(self, line):
        if self.quiet:
            return
        line = escape_controls(line)
        if self._bar is not None:
            self._bar.console.print(line, highlight=False, markup=False)
        else:
            print(line, file=self.stream, flush=True)


# By the number of the update.
_COUNTS = dict[Annotated[str, Field(pattern=r"^\d+$")], dict[str, float]]
_REMEDY = (
    "Delete it to go on; the log of this epoch then has no seconds, tokens and "
    "losses from before the last checkpoint."
)


class EpochCounts:
    """Keeps the counts of an epoch up to each checkpoint, in a file.

    A run that continues from a checkpoint within an epoch adds them to its own
    counts, so that the log has the seconds, the tokens and the mean loss of the
    whole epoch. The file, in JSON, maps the update number of a checkpoint to
    `ThroughputProgress.epoch_counts` at that update.
    """

    def __init__(self, file: Path):
        self._file = file
        self._by_step = {}
        if file.is_file():
            self._by_step = read_json(file, _COUNTS, _REMEDY)

    def save(self, step: int, counts: Mapping[str, float]) -> None:
        """Writes the counts; call it before saving the checkpoint of `step`."""
        self._by_step[str(step)] = dict(counts)
        for old in sorted(self._by_step, key=int)[:-_MOST_STEPS]:
            del self._by_step[old]
        write_json(self._file, self._by_step)

    def of(self, step: int) -> Mapping[str, float]:
        """Returns the counts up to checkpoint `step`, or an empty dict."""
        return self._by_step.get(str(step), {})
