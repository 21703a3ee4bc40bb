"""The order of batches of a training in stages."""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import BatchShape
from keras_deepnmt.data.batches.epoch_order import draw_bits

# The random stream of the stages' seeds.
_STREAM = 104


class StagedPlan(BatchPlan):
    """A batch plan of stages, each with weights of its own.

    Each stage has its own epochs, and begins with a whole one. The batch of any
    step is a function of the arguments alone, so training resumes from them and
    the step. All stages have the same batch shapes, so that none compiles
    anew.

    `weights` has the weights of the rows in each stage, as in `BatchPlan`.
    `starts` has the number of updates before each stage, as far as it is known,
    and at least the 0 of the first one; the last stage in it goes on. Each
    later stage draws with another seed, which follows from `seed`.
    """

    def __init__(
        self,
        lengths: np.ndarray,
        batch_shapes: Sequence[BatchShape],
        seed: int,
        weights: Sequence[np.ndarray | None],
        starts: Sequence[int] = (0,),
    ):
        super().__init__(lengths, batch_shapes, seed, weights[0])
        self._later = [
            BatchPlan(lengths, batch_shapes, _seed(seed, number), values)
            for number, values in enumerate(weights[1:], start=1)
        ]
        self.starts = tuple(starts)

    @property
    def num_stages(self) -> int:
        """Number of all stages."""
        return 1 + len(self._later)

    def begin(self, starts: Sequence[int]) -> None:
        """Sets the number of updates before each stage, as far as known."""
        self.starts = tuple(starts)

    def batches_in_epoch(self, stage: int) -> int:
        """Number of batches of an epoch of a stage."""
        plan = self if stage == 0 else self._later[stage - 1]
        return plan.batches_per_epoch

    def stage(self, step: int) -> int:
        """Returns the number of the stage that a step is in, from 0."""
        return bisect_right(self.starts, step) - 1

    def batch(self, step: int) -> tuple[BatchShape, np.ndarray]:
        stage = self.stage(step)
        if stage < 1:  # an error for a negative step, too
            return super().batch(step)
        return self._later[stage - 1].batch(step - self.starts[stage])

    def place(self, step: int) -> tuple[int, int]:
        stage = self.stage(step)
        epochs = sum(
            -(-(stop - start) // self.batches_in_epoch(number))
            for number, (start, stop) in enumerate(
                zip(
                    self.starts[:stage], self.starts[1 : stage + 1], strict=True
                )
            )
        )
        epoch, position = divmod(
            step - self.starts[stage], self.batches_in_epoch(stage)
        )
        return epochs + epoch, position

    def describe(self) -> str:
        lines = [super().describe()]
        for stage, start in enumerate(self.starts):
            lines.append(
                f"stage {stage + 1} of {self.num_stages}: from update "
                f"{start + 1:,}, {self.batches_in_epoch(stage):,} batches an "
                "epoch"
            )
        return "\n".join(lines)


def _seed(seed, stage):
    return int(draw_bits(1, seed, _STREAM, stage)[0] >> 32)
