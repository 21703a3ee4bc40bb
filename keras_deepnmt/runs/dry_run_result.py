"""What a dry run found out, and its description."""

import statistics
from dataclasses import dataclass

from keras_deepnmt.data.batches.batch_shapes import BatchShape

# The first update of a shape compiles the step; the others are timed.
UPDATES_PER_SHAPE = 4


@dataclass(frozen=True)
class MeasuredShape:
    """The time of the updates of one batch shape.

    Attributes:
        batch_shape: the shape.
        first_seconds: time of the first update, which compiles the step.
        seconds: median time of the others.
    """

    batch_shape: BatchShape
    first_seconds: float
    seconds: float


@dataclass(frozen=True)
class DryRun:
    """What a dry run found out.

    Attributes:
        description: the data and the batch shapes, in several lines.
        preset: name of the model's preset.
        parameters: number of parameters.
        trained_parameters: number of those that train.
        state_bytes: bytes of the weights and the optimizer's state.
        peak_bytes: highest use of memory while training, in bytes.
        peak_place: whose memory that is.
        measured: the batch shapes that were measured.
        num_shapes: number of all batch shapes.
        steps: number of updates of the run.
        seconds_per_update: estimated mean over the batches of an epoch.
    """

    description: str
    preset: str
    parameters: int
    trained_parameters: int
    state_bytes: int
    peak_bytes: int
    peak_place: str
    measured: tuple[MeasuredShape, ...]
    num_shapes: int
    steps: int
    seconds_per_update: float

    @property
    def compile_seconds(self) -> float:
        """Estimated time to compile the step for all batch shapes."""
        times = [
            max(0.0, shape.first_seconds - shape.seconds)
            for shape in self.measured
        ]
        return self.num_shapes * statistics.mean(times)

    def describe(self) -> str:
        """Describes the model, its memory and the time of the run."""
        updates = self.steps * self.seconds_per_update
        frozen = self.parameters - self.trained_parameters
        shapes = [
            f"  {shape.batch_shape.batch_size} x "
            f"({shape.batch_shape.source_length}, "
            f"{shape.batch_shape.target_length}): {shape.seconds:.3f} s, "
            f"the first one {shape.first_seconds:.1f} s"
            for shape in self.measured
        ]
        return "\n".join(
            [
                self.description,
                "",
                f"model {self.preset}: {self.parameters:,} parameters"
                + (f", {frozen:,} of them frozen" if frozen else ""),
                f"memory: {_size(self.state_bytes)} for weights and optimizer; "
                f"{_size(self.peak_bytes)} at the peak of {self.peak_place}, "
                "measured while training on the largest batches",
                f"time per update: {self.seconds_per_update:.3f} s on average, "
                f"estimated from {UPDATES_PER_SHAPE} updates of each of "
                f"{len(self.measured)} of {self.num_shapes} batch shapes "
                "(sentences x (source, target) tokens):",
                *shapes,
                f"time in all: about {_duration(updates)} for {self.steps:,} "
                f"updates and {_duration(self.compile_seconds)} to compile "
                f"all batch shapes ({self.num_shapes}) one after another, less "
                "where several are compiled at a time or kept from an earlier "
                "run; validation and checkpoints are not counted",
            ]
        )


def _size(number):
    for unit in ("KiB", "MiB"):
        number /= 1024
        if number < 1000:
            return f"{number:.1f} {unit}"
    return f"{number / 1024:.1f} GiB"


def _duration(seconds):
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"
