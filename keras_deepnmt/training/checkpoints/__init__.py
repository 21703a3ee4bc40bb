"""Checkpoints of a training run: their files, and which of them are kept."""

from keras_deepnmt.training.checkpoints.checkpoint_files import (
    checkpoint_fault as checkpoint_fault,
)
from keras_deepnmt.training.checkpoints.checkpoint_files import (
    read_checkpoint as read_checkpoint,
)
from keras_deepnmt.training.checkpoints.store import (
    CheckpointStore as CheckpointStore,
)
from keras_deepnmt.training.checkpoints.store import mode_of as mode_of
