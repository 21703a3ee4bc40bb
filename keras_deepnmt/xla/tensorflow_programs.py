"""Functions whose XLA program is the same in every process.

TensorFlow keeps compiled programs under the name and the text of a function.
It numbers the names of functions with a counter of the whole process, and
Keras those of layers, so a program that follows other work, as in a resumed
run, would not be found again. Here functions are named by a hash of their
content, and the names in them are numbered anew.
"""

import hashlib
import re

import tensorflow as tf

from keras_deepnmt.xla.tracing import compiled_by_xla

# Numbers of this process, which only Python and the placing of operations read.
_IGNORED_ATTRIBUTES = (
    "_class",
    "_gradient_op_type",
    "_user_specified_name",
    "backward_function_name",
    "forward_function_name",
)
_CALL = "call"
_INPUT = "input"


class CompiledProgram:
    """A function that XLA compiles as one program, named by its content.

    It is called like a `tf.function`, within one or directly. Equal functions
    of equal models are equal programs, whatever the process did before. The
    name of the program begins with `name`, by default that of the function,
    which takes and returns nests of tensors.
    """

    def __init__(self, function, name=None):
        self._function = function
        self._name = name or function.__name__.strip("_")
        self._structure = None
        self._calls = {}
        self._traced = tf.function(
            self._call_flat,
            jit_compile=True,
            # No code here branches on tensors, so tracing needs no rewriting.
            autograph=False,
        )

    def __call__(self, *args):
        self._structure = args
        tensors = tf.nest.flatten(args)
        if tf.executing_eagerly():
            return self._traced(*tensors)
        concrete = self._traced.get_concrete_function(*tensors)
        if concrete not in self._calls:
            self._calls[concrete] = _NamedCall(concrete, self._name)
        return self._calls[concrete](tensors, concrete.captured_inputs)

    def _call_flat(self, *tensors):
        args = tf.nest.pack_sequence_as(self._structure, tensors)
        with compiled_by_xla():
            return self._function(*args)


class _NamedCall:
    """Calls a concrete function under the name that its content gives it."""

    def __init__(self, concrete, name):
        self._structure = concrete.structured_outputs
        self._shapes = [output.shape for output in concrete.outputs]
        graph_def = concrete.graph.as_graph_def()
        functions = graph_def.library.function
        naming = _Naming({f.signature.name: f for f in functions})
        program = naming.add(concrete.function_def, f"__inference_{name}")
        del graph_def.node[:], functions[:]
        functions.extend(naming.renamed.values())
        with tf.init_scope():
            # In the outer function alone it would not be found when it runs.
            tf.graph_util.import_graph_def(graph_def, name="")
        _add_nodes(graph_def, concrete, program)
        self._graph_def = graph_def

    def __call__(self, tensors, captured):
        """Calls it in the graph of the function that is being traced."""
        graph = tf.compat.v1.get_default_graph()
        # Through them the call waits for the control dependencies around it,
        # which importing a graph does not add.
        tensors = [tf.identity(tensor) for tensor in tensors]
        inputs = {
            f"{_INPUT}{index}": graph.capture(tensor)
            for index, tensor in enumerate([*tensors, *captured])
        }
        with graph.control_dependencies(None):
            outputs = tf.graph_util.import_graph_def(
                self._graph_def,
                inputs,
                [f"{_CALL}:{index}" for index in range(len(self._shapes))],
                name="program",
            )
        for output, shape in zip(outputs, self._shapes, strict=True):
            output.set_shape(shape)
        return tf.nest.pack_sequence_as(self._structure, outputs)


def _add_nodes(graph_def, concrete, program):
    """Adds the call of a program, and its inputs."""
    call = graph_def.node.add(name=_CALL, op="StatefulPartitionedCall")
    call.attr["f"].func.name = program
    call.attr["_XlaMustCompile"].b = True
    call.attr["Tout"].list.type.extend(
        tensor.dtype.as_datatype_enum for tensor in concrete.outputs
    )
    for index, tensor in enumerate(concrete.inputs):
        name, dtype = f"{_INPUT}{index}", tensor.dtype.as_datatype_enum
        placeholder = graph_def.node.add(name=name, op="Placeholder")
        placeholder.attr["dtype"].type = dtype
        call.attr["Tin"].list.type.append(dtype)
        call.input.append(name)


class _Naming:
    """Renames functions by their content, with those that they call."""

    def __init__(self, functions):
        self._functions = functions
        self._names = {}
        self.renamed = {}

    def add(self, function, name):
        """Renames a function, adds it to `renamed` and returns its name."""
        copy = _with_own_numbers(function)
        for node in copy.node_def:
            # By name: the order of a map differs from copy to copy.
            for _, value in sorted(node.attr.items()):
                for called in (value.func, *value.list.func):
                    if called.name:
                        called.name = self._new_name(called.name)
        content = copy.SerializeToString(deterministic=True)
        name = f"{name}_{hashlib.sha256(content).hexdigest()[:20]}"
        copy.signature.name = name
        self.renamed[name] = copy
        return name

    def _new_name(self, old):
        if old not in self._names:
            name = _without_numbers(old)
            self._names[old] = self.add(self._functions[old], name)
        return self._names[old]


def _with_own_numbers(function):
    """Copies a function without its name and the numbers of this process."""
    copy = type(function)()
    copy.CopyFrom(function)
    copy.signature.name = ""
    numbers = {}
    names = {node.name: _renumber(node.name, numbers) for node in copy.node_def}
    for index, argument in enumerate(copy.signature.input_arg):
        names[argument.name] = argument.name = f"function_argument_{index}"
    results = {}
    for index, result in enumerate(copy.signature.output_arg):
        results[result.name] = result.name = f"function_result_{index}"
    for node in copy.node_def:
        node.name = names[node.name]
        node.input[:] = [_rename_input(name, names) for name in node.input]
        node.ClearField("experimental_debug_info")
        _remove_ignored(node.attr)
    for attributes in copy.arg_attr.values():
        _remove_ignored(attributes.attr)
    _remove_ignored(copy.attr)
    sources = {
        results[result]: _rename_input(source, names)
        for result, source in copy.ret.items()
    }
    copy.ret.clear()
    copy.ret.update(sources)
    _rename_control_outputs(copy, names)
    return copy


def _rename_control_outputs(function, names):
    """Calls the operations that a function must run by their new names."""
    nodes = sorted(names[node] for node in function.control_ret.values())
    function.control_ret.clear()
    function.control_ret.update({node: node for node in nodes})
    function.signature.control_output[:] = nodes


def _rename_input(source, names):
    """Renames `^node`, `argument` or `node:output:index`."""
    control = "^" if source.startswith("^") else ""
    name, *output = source.removeprefix("^").split(":")
    return control + ":".join([names[name], *output])


def _remove_ignored(attributes):
    for name in _IGNORED_ATTRIBUTES:
        attributes.pop(name, None)


def _renumber(path, numbers):
    """Replaces the numbers in a path by ranks in the order of appearance.

    `seed_generator_15/add_3` becomes `seed_generator.0/add.0` where it is the
    first generator. `numbers` holds the ranks so far.
    """
    renamed = ""
    for part in path.split("/"):
        text = _without_numbers(part)
        if text != part:
            ranks = numbers.setdefault(renamed + text, {})
            text += f".{ranks.setdefault(part, len(ranks))}"
        renamed += text + "/"
    return renamed[:-1]


def _without_numbers(name):
    return re.sub(r"_?\d+", "", name)
