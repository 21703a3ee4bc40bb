"""The seconds, tokens and loss of an epoch before a checkpoint within it."""

from collections.abc import Mapping
from pathlib import Path

from keras_deepnmt.files import read_json, write_json

# More than any number of checkpoints that a run keeps.
_MOST_STEPS = 100


class EpochCounts:
    """Keeps what was counted in an epoch before each checkpoint, in a file.

    A run that continues from a checkpoint within an epoch adds it to what it
    counts itself, so that the log has the seconds, the tokens and the mean loss
    of the whole epoch.

    Args:
        file: a JSON file. It maps the update number of a checkpoint to
            `ThroughputProgress.epoch_counts` at that update.
    """

    def __init__(self, file: Path):
        self._file = file
        self._by_step = read_json(file) if file.is_file() else {}

    def save(self, step: int, counts: Mapping[str, float]) -> None:
        """Writes what was counted; call it before saving a checkpoint.

        Args:
            step: number of updates made.
            counts: `ThroughputProgress.epoch_counts`.
        """
        self._by_step[str(step)] = dict(counts)
        for old in sorted(self._by_step, key=int)[:-_MOST_STEPS]:
            del self._by_step[old]
        write_json(self._file, self._by_step)

    def of(self, step: int) -> Mapping[str, float]:
        """Returns what was counted before a checkpoint.

        Args:
            step: update number of the checkpoint.

        Returns:
            What `save` was given; an empty dict if that is not known.
        """
        return self._by_step.get(str(step), {})
