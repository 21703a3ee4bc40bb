"""Checks that an export uses only operations that TensorFlow Serving has."""

from collections.abc import Iterator
from pathlib import Path

# Operations that TensorFlow Serving has besides TensorFlow's own.
ALLOWED_PREFIX = "Sentencepiece"
# TensorFlow's own, but they only run in the process that made them.
PYTHON_OPS = ("EagerPyFunc", "PyFunc", "PyFuncStateless")
MAIN_GRAPH = "the main graph"


def check_ops(saved_model_dir: str | Path) -> int:
    """Checks the operations of a SavedModel and returns the number of nodes.

    Raises a `ValueError` that lists `Xla*` and Python operations, those that
    are neither stock TensorFlow nor `Sentencepiece*`, and those marked for
    compilation by XLA. Stock operations are those of the installed TensorFlow;
    whether an older server has all of them is not checked.
    """
    from tensorflow.core.protobuf import saved_model_pb2

    file = Path(saved_model_dir, "saved_model.pb")
    saved_model = saved_model_pb2.SavedModel()
    saved_model.ParseFromString(file.read_bytes())
    forbidden, num_nodes = {}, 0
    for meta_graph in saved_model.meta_graphs:
        graph = meta_graph.graph_def
        functions = {f.signature.name for f in graph.library.function}
        for place, node in _nodes(graph):
            num_nodes += 1
            for name in _forbidden_ops(node, functions):
                forbidden.setdefault(name, {})[place] = None
        for function in graph.library.function:
            if function.attr["_XlaMustCompile"].b:
                name = "a function marked _XlaMustCompile"
                forbidden.setdefault(name, {})[function.signature.name] = None
    if forbidden:
        listed = "; ".join(
            f"{name} in {', '.join(places)}"
            for name, places in sorted(forbidden.items())
        )
        raise ValueError(
            f"{file}: an exported graph may hold only stock TensorFlow "
            f"operations and {ALLOWED_PREFIX}*, none compiled by XLA. "
            f"Received: {listed}."
        )
    return num_nodes


def _nodes(graph) -> Iterator[tuple[str, object]]:
    yield from ((MAIN_GRAPH, node) for node in graph.node)
    for function in graph.library.function:
        name = function.signature.name
        yield from ((name, node) for node in function.node_def)


def _forbidden_ops(node, functions) -> Iterator[str]:
    if "_XlaMustCompile" in node.attr and node.attr["_XlaMustCompile"].b:
        yield f"{node.op} marked _XlaMustCompile"
    if node.op in functions or node.op.startswith(ALLOWED_PREFIX):
        return
    if (
        node.op.startswith("Xla")
        or node.op in PYTHON_OPS
        or not _is_stock(node.op)
    ):
        yield node.op


def _is_stock(op: str) -> bool:
    # `raw_ops` is written when TensorFlow is built: an operation that another
    # library registers later is not in it.
    import tensorflow as tf

    return hasattr(tf.raw_ops, op)
