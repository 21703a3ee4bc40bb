"""Several processes that train one model, and the one that writes."""

from typing import Any


class Workers:
    """The processes of a strategy, seen from one of them.

    All of them make the same calls in the same order; only the chief writes
    files and speaks.

    Args:
        strategy: what `make_strategy` gave.

    Attributes:
        is_chief: whether this process writes; true where it is the only one.
        are_several: whether there are others.

    Example:
    >>> Workers(make_strategy("one_device")).is_chief
    True
    """

    def __init__(self, strategy: Any):
        self._strategy = strategy
        resolver = getattr(strategy, "cluster_resolver", None)
        workers = resolver.cluster_spec().as_dict() if resolver else {}
        self.is_chief = (
            not workers
            or resolver.task_type == "chief"
            or ("chief" not in workers and resolver.task_id == 0)
        )
        self.are_several = sum(map(len, workers.values())) > 1

    def wait(self) -> None:
        """Waits until every process has come here."""
        self.sum(0)

    def say(self, value: int) -> int:
        """Tells every process the chief's value.

        Args:
            value: an integer below 2^31; of the others it does not matter.

        Returns:
            The chief's value.
        """
        return self.sum(value if self.is_chief else 0)

    def sum(self, value: int) -> int:
        """Adds up what the processes bring; waits for all of them.

        Args:
            value: an integer or bool; the sum must be below 2^31.

        Returns:
            The sum, the same in every process.
        """
        if not self.are_several:
            return value
        import tensorflow as tf

        @tf.function
        def add():
            context = tf.distribute.get_replica_context()
            # A machine may have several replicas; one of them speaks for it.
            local = context.replica_id_in_sync_group % replicas_here == 0
            mine = tf.where(local, int(value), 0)
            return context.all_reduce(tf.distribute.ReduceOp.SUM, mine)

        replicas_here = len(self._strategy.extended.worker_devices)
        total = self._strategy.run(add)
        return int(self._strategy.experimental_local_results(total)[0])
