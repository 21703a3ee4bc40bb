"""Cuts a training run into calls of `fit`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Stretch:
    """Epochs of equal length: one call of `fit`.

    Args:
        first_epoch: number of the first epoch, from 0.
        last_epoch: number after the last one.
        start_step: updates made before.
        steps_per_epoch: updates of each epoch.
    """

    first_epoch: int
    last_epoch: int
    start_step: int
    steps_per_epoch: int

    @property
    def num_steps(self) -> int:
        """Updates of the whole stretch."""
        return (self.last_epoch - self.first_epoch) * self.steps_per_epoch


def stretches(start: int, total: int, every: int) -> list[Stretch]:
    """Cuts the updates still to be made so that epochs end every so many.

    A run that goes on in the middle of an epoch has a shorter first one, and
    `total` need not be a multiple of `every`.

    Args:
        start: updates made.
        total: updates of the whole run.
        every: updates of an epoch, that is, between two validations.

    Returns:
        At most three stretches.

    Example:
    >>> [s.steps_per_epoch for s in stretches(start=30, total=350, every=100)]
    [70, 100, 50]
    """
    found = []
    while start < total:
        epoch = start // every
        if start % every == 0 and total - start >= every:
            epochs, steps = (total - start) // every, every
        else:
            epochs, steps = 1, min((epoch + 1) * every, total) - start
        found.append(Stretch(epoch, epoch + epochs, start, steps))
        start += epochs * steps
    return found
