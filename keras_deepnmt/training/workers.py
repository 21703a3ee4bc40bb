"""The worker processes of a distributed run, and which of them writes."""

from typing import Any


class Workers:
    """Communication between the worker processes of a strategy.

    All processes must make the same calls in the same order. Only the chief
    writes files and prints.

    Args:
        strategy: what `make_strategy` gave.

    Attributes:
        is_chief: whether this process writes files; true if it is the only one.
        is_distributed: whether there are several processes.

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
        self.is_distributed = sum(map(len, workers.values())) > 1

    def barrier(self) -> None:
        """Waits until every process has called this method."""
        self.all_reduce_sum(0)

    def broadcast(self, value: int) -> int:
        """Returns the chief's value in every process.

        Args:
            value: an integer below 2^31; only the chief's is used.
        """
        return self.all_reduce_sum(value if self.is_chief else 0)

    def all_reduce_sum(self, value: int) -> int:
        """Returns the sum of all processes' values in every process.

        Args:
            value: an integer or bool; the sum must be below 2^31.
        """
        if not self.is_distributed:
            return value
        import tensorflow as tf

        @tf.function
        def sum_over_processes():
            context = tf.distribute.get_replica_context()
            # A process may have several replicas; only its first one counts.
            local = context.replica_id_in_sync_group % replicas_per_process == 0
            mine = tf.where(local, int(value), 0)
            return context.all_reduce(tf.distribute.ReduceOp.SUM, mine)

        replicas_per_process = len(self._strategy.extended.worker_devices)
        total = self._strategy.run(sum_over_processes)
        return int(self._strategy.experimental_local_results(total)[0])
