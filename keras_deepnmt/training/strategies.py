"""The devices and the worker processes that train a model together."""

import contextlib
import json
import os
from collections.abc import Iterator
from typing import Any, Literal

import keras

from keras_deepnmt.errors import UserError

Strategy = Literal["one_device", "mirrored", "multi_worker"]


def make_strategy(kind: Strategy, num_replicas: int | None = None) -> Any:
    """Makes the strategy in whose scope a model is built and trained.

    `"mirrored"` is a `tf.distribute.MirroredStrategy`: every replica holds all
    weights and takes an equal part of each batch's rows. Without accelerators
    the CPU is divided into logical devices. On the JAX backend it is a
    `keras.distribution.DataParallel`, which does the same.

    `"multi_worker"` is a `tf.distribute.MultiWorkerMirroredStrategy`: the same
    on all devices of the machines that the environment variable TF_CONFIG
    lists. It waits until the processes on all of them have started.

    Args:
        kind: `"one_device"`, `"mirrored"` or `"multi_worker"`.
        num_replicas: number of replicas of `"mirrored"`. Defaults to all
            accelerators, or to one if there are none.

    Returns:
        An object with a `scope()` to build, compile and fit in.

    Raises:
        UserError: if there are too few devices, `num_replicas` is below one,
            TF_CONFIG does not define the cluster and this process's place in
            it, or the backend has no such strategy.

    Example:
    >>> with make_strategy("one_device").scope():
    ...     model = keras_deepnmt.create_model("transformer_tiny", 11, 13)
    """
    if num_replicas is not None and num_replicas < 1:
        raise UserError(
            "`num_replicas` must be at least 1. Received: "
            f"num_replicas={num_replicas}. Leave it out to take all devices."
        )
    if kind == "one_device":
        return _OneDevice()
    backend = keras.config.backend()
    if kind == "mirrored" and backend == "jax":
        return _DataParallel(num_replicas)
    if backend != "tensorflow":
        raise UserError(
            f'strategy "{kind}" needs the TensorFlow backend. Received: '
            f"KERAS_BACKEND={backend}. Use KERAS_BACKEND=tensorflow."
        )
    if kind == "multi_worker":
        _check_cluster(os.environ.get("TF_CONFIG"), num_replicas)
    import tensorflow as tf

    if kind == "multi_worker":
        return tf.distribute.MultiWorkerMirroredStrategy()
    return tf.distribute.MirroredStrategy(_tensorflow_devices(num_replicas))


class Workers:
    """Communication between the worker processes of a strategy.

    All processes must make the same calls in the same order. Only the chief
    writes files and prints. `strategy` is the result of `make_strategy`.

    Attributes:
        is_chief: whether this process writes files; true if it is the only one.
        is_distributed: whether there are several processes.
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

    def leave(self) -> None:
        """Waits until every process has called this method, and may then end.

        A process that ends just after its part of an all-reduce can take the
        answer with it that another one still waits for.
        """
        with self.explained_failures():
            self.barrier()
        # Fails where another process has ended, which has passed the first.
        with contextlib.suppress(UserError), self.explained_failures():
            self.barrier()

    @contextlib.contextmanager
    def explained_failures(self) -> Iterator[None]:
        """Raises a `UserError` where another process has ended too early."""
        if not self.is_distributed:
            yield
            return
        import tensorflow as tf

        try:
            yield
        except (tf.errors.UnavailableError, tf.errors.AbortedError) as error:
            raise UserError(
                "another worker process of TF_CONFIG has ended or cannot be "
                "reached; its own messages say why. Checkpoints are kept. "
                "Start the same command on every machine again to continue."
            ) from error

    def broadcast(self, value: int) -> int:
        """Gives every process the chief's value, an integer below 2^31."""
        return self.all_reduce_sum(value if self.is_chief else 0)

    def all_reduce_sum(self, value: int) -> int:
        """Returns the sum of all processes' values in every process.

        Values are integers or bools; the sum must be below 2^31.
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


class _OneDevice:
    """The interface of a strategy on one device."""

    num_replicas_in_sync = 1

    def scope(self):
        return contextlib.nullcontext()


class _DataParallel:
    """The interface of a strategy on several devices of JAX."""

    def __init__(self, num_replicas):
        devices = _jax_devices(num_replicas)
        self.num_replicas_in_sync = len(devices)
        self._distribution = keras.distribution.DataParallel(
            devices=devices, auto_shard_dataset=False
        )

    def scope(self):
        return self._distribution.scope()


def _jax_devices(num_replicas):
    import jax

    if num_replicas is not None:
        # A device that waits in an all-reduce blocks a thread of XLA's pool,
        # which has one per core: with none left, training deadlocks.
        threads = max(os.cpu_count() or 1, 2 * num_replicas)
        os.environ.setdefault("PJRT_NPROC", str(threads))
        # Once JAX has started, its devices cannot be changed.
        with contextlib.suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", num_replicas)
    devices = keras.distribution.list_devices()
    wanted = num_replicas or len(devices)
    if len(devices) < wanted:
        kind = devices[0].split(":")[0].upper()
        raise _too_few(kind, len(devices), wanted)
    return devices[:wanted]


def _check_cluster(text, num_replicas):
    """Checks TF_CONFIG, for which TensorFlow's own errors are unclear."""
    if num_replicas is not None:
        raise UserError(
            'strategy "multi_worker" takes all devices of each machine. '
            f"Received: replicas={num_replicas}. Leave it out, and hide "
            "devices with CUDA_VISIBLE_DEVICES."
        )
    try:
        config = json.loads(text or "")
        task, cluster = config["task"], config["cluster"]
        cluster[task["type"]][int(task["index"])]
        kinds = set(cluster) <= {"chief", "worker"}
    except (ValueError, KeyError, TypeError, IndexError):
        kinds = False
    if not kinds:
        raise UserError(
            'strategy "multi_worker" needs the environment variable TF_CONFIG '
            "to name the cluster and this process' place in it. Received: "
            f"TF_CONFIG={text!r}. Use, on the first of two machines, "
            '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, '
            '"task": {"type": "worker", "index": 0}}.'
        )


def _tensorflow_devices(num_replicas):
    import tensorflow as tf

    accelerators = tf.config.list_physical_devices("GPU")
    wanted = num_replicas or max(len(accelerators), 1)
    if len(accelerators) >= wanted:
        return [f"GPU:{number}" for number in range(wanted)]
    if accelerators:
        raise _too_few("GPU", len(accelerators), wanted)
    processor = tf.config.list_physical_devices("CPU")[0]
    parts = [tf.config.LogicalDeviceConfiguration()] * wanted
    try:
        tf.config.set_logical_device_configuration(processor, parts)
    except RuntimeError as error:
        # Once TensorFlow has started, its devices cannot be changed.
        present = len(tf.config.list_logical_devices("CPU"))
        if present < wanted:
            raise _too_few("CPU", present, wanted) from error
    return [f"CPU:{number}" for number in range(wanted)]


def _too_few(kind, present, wanted):
    remedies = {
        "GPU": "Lower the number of replicas, or hide the GPUs with "
        "CUDA_VISIBLE_DEVICES= to use the processor.",
        "CPU": "Make the strategy before anything else runs on the backend, "
        "in a fresh process.",
    }
    return UserError(
        f"{wanted} replicas need as many devices. Received: {present} {kind} "
        f"devices. {remedies.get(kind, 'Lower the number of replicas.')}"
    )
