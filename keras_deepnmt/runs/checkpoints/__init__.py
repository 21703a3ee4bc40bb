"""Uses single checkpoints of a run, whether it is finished or not."""
