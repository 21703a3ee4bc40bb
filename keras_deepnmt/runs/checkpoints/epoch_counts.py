"""What was counted in an epoch that a checkpoint divides."""

from collections.abc import Mapping
from pathlib import Path

from keras_deepnmt.files import read_json, write_json

# More than any number of checkpoints that a run keeps.
_MOST_STEPS = 100


class EpochCounts:
    """Keeps the seconds and tokens of unfinished epochs in a file.

    A run that goes on from a checkpoint within an epoch adds them to its own,
    so that the log has those of the whole epoch.

    Args:
        file: JSON file: update of a checkpoint to what was counted by then.
    """

    def __init__(self, file: Path):
        self._file = file
        self._by_step = read_json(file) if file.is_file() else {}

    def save(self, step: int, counts: Mapping[str, float]) -> None:
        """Writes what was counted; call it before saving a checkpoint."""
        self._by_step[str(step)] = dict(counts)
        for old in sorted(self._by_step, key=int)[:-_MOST_STEPS]:
            del self._by_step[old]
        write_json(self._file, self._by_step)

    def of(self, step: int) -> Mapping[str, float]:
        """Returns what was counted by a checkpoint, if it is known."""
        return self._by_step.get(str(step), {})
