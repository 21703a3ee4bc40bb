"""Tries the layer of each slot on symbolic tensors, when a model is made."""

import inspect
import random
from contextlib import contextmanager
from dataclasses import dataclass

import keras
from keras import ops

from keras_deepnmt.layers.cloning import (
    build_with,
    clone_prototype,
    prototype_of,
)
from keras_deepnmt.models.slot_layers import (
    SLOT_LAYERS,
    fitting_classes,
    nearest_layer,
)
from keras_deepnmt.models.slots import clone_slot
from keras_deepnmt.models.stack_slots import self_attention_at

# Different sizes, so that axes that are confused do not go unnoticed.
_BATCH, _SOURCE, _TARGET, _BEAMS, _POSITIONS = 2, 5, 3, 7, 11

_ATTENTION_STEP = (
    "; in step-by-step decoding as layer(query, cache=, cache_index=), with a "
    "cache from its method init_cache(batch_size, max_length), and returns "
    "(output, cache)"
)
# How a model calls the layer of each slot, for error messages.
SIGNATURES = {
    "source_embedding_layer": "layer(embeddings, padding_mask=) and returns "
    "(B, S, D)",
    "target_embedding_layer": "layer(embeddings) and returns (B, T, D); if it "
    "has a method init_cache(batch_size, max_length), in step-by-step "
    "decoding as layer(embeddings, cache=, cache_index=), and returns "
    "(output, cache)",
    "encoder_self_attention": "layer(query, attention_mask=) and returns "
    "(B, S, D)",
    "decoder_self_attention": "layer(query, use_causal_mask=) and returns "
    f"(B, T, D){_ATTENTION_STEP}",
    "decoder_cross_attention": "layer(query, value, attention_mask=) and "
    "returns (B, T, D); in step-by-step decoding as layer(query, "
    "attention_mask=, cache=), with a cache from its method "
    "static_cache(value), and returns (output, cache)",
    "encoder_aggregation": "layer(layer_states, padding_mask=) and returns "
    "(B, S, D)",
    "decoder_aggregation": "layer(layer_states, padding_mask=, "
    "use_causal_mask=) and returns (B, T, D); in step-by-step decoding as "
    "layer(layer_states), or, if it has a method init_cache(batch_size, "
    "max_length), as layer(layer_states, cache=, cache_index=), and returns "
    "(output, cache)",
    "encoder_fusion": "layer(layer_states) and returns a list of one "
    "(B, S, D) for each decoder block",
    "output_fusion": "layer(states, memory, source_embeddings, "
    "memory_padding_mask=, static_cache=, project=) and returns (B, T, V), "
    "with a static cache from its method static_cache(memory, "
    "source_embeddings, memory_padding_mask=, project=)",
    "layer_diversity": "layer(layer_states, padding_mask=) and returns the "
    "last state, (B, S, D)",
    "residual_connection": "layer(inputs, outputs) and returns (B, S, D), with "
    "a method before(inputs) that returns (B, S, D)",
    "layer_drop": "layer(inputs, outputs) and returns (B, S, D)",
}


@dataclass(frozen=True)
class TrialSizes:
    """The widths of the tensors that a model passes to its slots.

    Args:
        width: that of embeddings and decoder states, D.
        memory: that of the encoder's output.
        vocabulary: the size of the target vocabulary, V.
    """

    width: int
    memory: int
    vocabulary: int


def try_slots(arguments, slots, policy, sizes):
    """Raises a `ValueError` if a layer does not fit its slot.

    Each layer that is not of this package is cloned, built and called as a
    model does in training and in step-by-step decoding, on symbolic tensors.
    `arguments` are those of the model, with configurations in the slots, and
    `policy` is its dtype policy.
    """
    # The initial weights of the model must not depend on the trial: a layer
    # draws its seeds from Python's generator.
    state = random.getstate()
    try:
        for slot in slots:
            if arguments[slot] is not None:
                _try_slot(slot, arguments, policy, sizes)
    finally:
        random.setstate(state)


def _try_slot(slot, arguments, policy, sizes):
    for prototype in _prototypes(slot, arguments):
        trial = _Trial(slot, _clone(slot, prototype, arguments, policy), sizes)
        trial.refuse_a_layer_for_another_slot()
        if slot.endswith("embedding_layer"):
            trial.embeddings()
        elif slot.endswith("self_attention"):
            trial.self_attention()
        elif slot == "decoder_cross_attention":
            trial.cross_attention()
        elif slot.endswith("aggregation"):
            trial.aggregation(arguments[f"num_{_side(slot)}_layers"])
        elif slot == "encoder_fusion":
            trial.encoder_fusion(
                arguments["num_encoder_layers"], arguments["num_decoder_layers"]
            )
        elif slot == "output_fusion":
            trial.output_fusion()
        elif slot == "residual_connection":
            trial.residual_connection()
        elif slot == "layer_drop":
            trial.call(trial.state(), trial.state())
        else:
            trial.diversity(arguments["num_encoder_layers"])


def _side(slot):
    return "decoder" if slot.startswith("decoder") else "encoder"


def _prototypes(slot, arguments):
    """Makes the layers of a slot that must be tried.

    The layers of this package are not: tests prove that they fit their slots,
    and they say themselves which of their options do not.
    """
    configs = [arguments[slot]]
    found = []
    with _clonable(slot, arguments[slot]):
        if slot.endswith("self_attention"):
            # Blocks may differ, as with `MultiLayerAttention`.
            numbers = {1, arguments[f"num_{_side(slot)}_layers"]}
            blocks = [self_attention_at(configs[0], n) for n in numbers]
            configs = [
                config
                for n, config in enumerate(blocks)
                if config is not None and config not in blocks[:n]
            ]
        for config in configs:
            prototype = prototype_of(config)
            _check_config(prototype)
            found.append((prototype, config))
    tried = []
    for prototype, config in found:
        if hasattr(prototype, "check_slot"):
            prototype.check_slot(slot)
        if type(prototype) not in fitting_classes(slot):
            tried.append(config)
    return tried


@contextmanager
def _clonable(slot, config):
    """Raises errors of a layer that cannot be cloned in one line."""
    try:
        yield
    except (TypeError, ValueError) as error:
        # Keras adds the whole configuration to its advice.
        problem, *_ = _first_line(error).partition(". Full object config")
        raise type(error)(
            f"`{slot}` must be a layer that can be cloned from its "
            f"configuration. Received: {config.get('class_name')}. {problem}."
        ) from error


def _clone(slot, config, arguments, policy):
    if slot.endswith("_attention"):
        initializer = arguments["attention_initializer"]
        return clone_prototype(config, slot, policy, initializer)
    if slot in ("residual_connection", "layer_drop"):
        return clone_prototype(config, slot, policy)
    side = "encoder" if slot == "layer_diversity" else None
    return clone_slot(arguments, slot, policy, side)


def _check_config(layer):
    """Refuses a layer whose clone would lose an argument without a word."""
    kind = type(layer)
    # Keras' own layers leave out what they make up for in other ways.
    is_keras = kind.__module__.partition(".")[0] == "keras"
    if is_keras or "from_config" in vars(kind):
        return
    config = layer.get_config()
    parameters = inspect.signature(kind.__init__).parameters
    lost = [
        name
        for name, parameter in parameters.items()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        and name not in (*config, "self")
    ]
    if lost:
        raise ValueError(f"What `get_config` returns lacks {_quote(lost)}")


class _Traced(keras.layers.Layer):
    """Traces a function of nested tensors, as Keras traces a layer's call."""

    def __init__(self, function):
        super().__init__(name="trial")
        self.function = function
        self.error = None  # as it was raised, before Keras wraps it

    def call(self, given):
        try:
            return self.function(given)
        except Exception as error:
            self.error = error
            raise


class _Trial:
    """Calls a layer as its slot does."""

    def __init__(self, slot, layer, sizes):
        self.slot = slot
        self.layer = layer
        self.sizes = sizes
        source = slot.startswith(("source", "encoder", "layer", "residual"))
        self.length = _SOURCE if source else _TARGET
        self.shape = (_BATCH, self.length, sizes.width)
        self.step_shape = (_BATCH * _BEAMS, 1, sizes.width)
        self.padding_mask = _symbol((_BATCH, self.length), "bool")

    def refuse_a_layer_for_another_slot(self):
        slots = vars(type(self.layer)).get("slots", ())
        if slots and self.slot not in slots:
            self.refuse(f"a layer for {_quote(slots)}")

    def embeddings(self):
        if self.slot == "source_embedding_layer":
            self.call(self.state(), padding_mask=self.padding_mask)
            return
        self.call(self.state())
        self.step(self.state(self.step_shape))

    def self_attention(self):
        options, number = {}, 0
        if getattr(self.layer, "reads_layer_states", False):
            number = self.layer.num_layers
            options["layer_states"] = [self.state()] * number
        if self.slot == "encoder_self_attention":
            mask = _symbol((_BATCH, 1, self.length), "bool")
            self.call(self.state(), attention_mask=mask, **options)
            return
        self.call(self.state(), use_causal_mask=True, **options)
        if not hasattr(self.layer, "init_cache"):
            self.refuse("which has no method `init_cache`")
        if number:
            options["layer_states"] = [self.state(self.step_shape)] * number
        self.step(self.state(self.step_shape), **options)

    def cross_attention(self):
        memory = self.state((_BATCH, _SOURCE, self.sizes.memory))
        mask = _symbol((_BATCH, 1, _SOURCE), "bool")
        self.call(self.state(), memory, attention_mask=mask)
        if not hasattr(self.layer, "static_cache"):
            self.refuse("which has no method `static_cache`")
        query = self.state(self.step_shape)
        cache = self.trace(self.layer.static_cache, memory)
        result = self.trace(self.layer, query, attention_mask=mask, cache=cache)
        self.expect_output_and_cache(result)

    def aggregation(self, num_layers):
        options = {"padding_mask": self.padding_mask}
        if self.slot == "decoder_aggregation":
            options["use_causal_mask"] = True
        feeds_back = getattr(self.layer, "feeds_back", False)

        def previous(number, shape):
            if not feeds_back:
                return {}
            return {"previous": [self.state(shape)] * (number - 1)}

        # A layer that feeds back is called after each block.
        for number in sorted({1, num_layers} if feeds_back else {num_layers}):
            states = [self.state()] * number
            self.call(states, **options, **previous(number, self.shape))
        if self.slot == "decoder_aggregation":
            states = [self.state(self.step_shape)] * num_layers
            self.step(states, **previous(num_layers, self.step_shape))

    def encoder_fusion(self, num_encoder_layers, num_decoder_layers):
        states = [self.state()] * (num_encoder_layers + 1)
        self.call(states, expected=[self.shape] * num_decoder_layers)

    def output_fusion(self):
        sizes = self.sizes
        memory = self.state((_BATCH, _SOURCE, sizes.memory))
        embeddings = self.state((_BATCH, _SOURCE, sizes.width))
        mask = _symbol((_BATCH, _SOURCE), "bool")

        def project(states):
            shape = (*ops.shape(states)[:-1], sizes.vocabulary)
            return ops.broadcast_to(ops.mean(states, -1, keepdims=True), shape)

        options = {"memory_padding_mask": mask, "project": project}

        def call(shape, cache):
            self.call(
                self.state(shape),
                memory,
                embeddings,
                static_cache=cache,
                **options,
                expected=(*shape[:-1], sizes.vocabulary),
            )

        call(self.shape, None)
        if not hasattr(self.layer, "static_cache"):
            self.refuse("which has no method `static_cache`")
        method = self.layer.static_cache
        call(self.step_shape, self.trace(method, memory, embeddings, **options))

    def residual_connection(self):
        self.call(self.state(), self.state())
        if not hasattr(self.layer, "before"):
            self.refuse("which has no method `before`")
        result = self.trace(self.layer.before, self.state())
        self.expect(result, self.shape)

    def diversity(self, num_layers):
        states = [self.state()] * num_layers
        self.call(states, padding_mask=self.padding_mask)

    def step(self, inputs, **options):
        """Calls the layer as step-by-step decoding does."""
        zeros = self.init_cache() if hasattr(self.layer, "init_cache") else {}
        if not zeros and self.slot != "decoder_self_attention":
            # The layer reads no earlier positions.
            self.call(inputs, **options, expected=self.step_shape)
            return
        cache = keras.tree.map_structure(
            lambda x: _symbol(
                x.shape, keras.backend.standardize_dtype(x.dtype)
            ),
            zeros,
        )
        if getattr(self.layer, "keeps_history", False):
            shape = (_BATCH, _BEAMS, _POSITIONS * _BEAMS)
            options["attention_mask"] = _symbol(shape, "bool")
        options |= {"cache": cache, "cache_index": _symbol((), "int32")}
        result = self.trace(self.layer, inputs, **options)
        self.expect_output_and_cache(result)
        before, after = _describe(cache), _describe(result[1])
        if before != after:
            self.refuse(
                f"which makes {after} of the cache {before} in a decoding step"
            )

    def expect_output_and_cache(self, result):
        """Refuses a layer whose decoding step returns something else."""
        if not isinstance(result, tuple | list) or len(result) != 2:
            self.refuse(f"which returns {_describe(result)} in a decoding step")
        self.expect(result[0], self.step_shape, " in a decoding step")

    def init_cache(self):
        """Makes the cache of a few hypotheses and positions."""
        sizes = (_BATCH * _BEAMS, _POSITIONS)
        if getattr(self.layer, "keeps_history", False):
            sizes = (_BATCH, _POSITIONS, _BEAMS)
        method = self.layer.init_cache
        self.check_arguments(method, sizes, {})
        try:
            return method(*sizes)
        except Exception as error:
            self.refuse_because_of(error, method)

    def call(self, *inputs, expected=None, **options):
        """Calls the layer, and checks the shapes that it returns."""
        if not self.layer.built:
            # As the model does, so that Keras builds the layer as there.
            self.check_arguments(self.layer.call, inputs, options)
            try:
                if self.slot.endswith("_attention"):
                    shapes = [tensor.shape for tensor in inputs]
                    build_with(self.layer, *shapes)  # as the blocks do
                else:
                    self.layer(*inputs, **options)
            except Exception as error:
                self.refuse_because_of(error, self.layer.call)
        result = self.trace(self.layer, *inputs, **options)
        where = " in a decoding step" if expected == self.step_shape else ""
        self.expect(result, expected or self.shape, where)

    def trace(self, function, *args, **kwargs):
        """Runs the layer or a method on symbolic tensors.

        Unlike a call of the layer on such tensors, this does not believe its
        `compute_output_shape`.
        """
        method = self.layer.call if function is self.layer else function
        self.check_arguments(method, args, kwargs)
        tensors = {
            name: value
            for name, value in kwargs.items()
            if any(
                map(keras.backend.is_keras_tensor, keras.tree.flatten(value))
            )
        }
        fixed = {key: kwargs[key] for key in kwargs.keys() - tensors.keys()}
        call = _Traced(lambda given: function(*given[0], **given[1], **fixed))
        try:
            return call((args, tensors))
        except Exception as error:
            self.refuse_because_of(call.error or error, method)

    def check_arguments(self, method, args, kwargs):
        if problem := _mismatch(inspect.signature(method), args, kwargs):
            self.refuse(f"whose `{method.__name__}` {problem}")

    def expect(self, result, expected, where=""):
        """Refuses a layer whose result has other shapes than expected."""
        found = _describe(result)
        wanted = _describe_shapes(expected)
        if found != wanted:
            self.refuse(f"which returns {found} instead of {wanted}{where}")

    def refuse_because_of(self, error, method):
        if not isinstance(error, TypeError | ValueError):
            raise error  # not about the arguments: a mistake in its code
        problem = f"whose `{method.__name__}` fails ({_first_line(error)})"
        self.refuse(problem, error)

    def refuse(self, problem, error=None):
        kind = type(self.layer)
        nearest = nearest_layer(self.slot, kind)
        raise ValueError(
            f"`{self.slot}` must be a layer that is called as "
            f"{SIGNATURES[self.slot]}. Received: {_full_name(kind)}, "
            f"{problem}. Use keras_deepnmt.layers.{nearest}, or derive from "
            f"it. Layers for this slot: {', '.join(SLOT_LAYERS[self.slot])}."
        ) from error

    def state(self, shape=None):
        return _symbol(shape or self.shape, self.layer.compute_dtype)


def _symbol(shape, dtype):
    return keras.KerasTensor(tuple(shape), dtype=dtype)


def _mismatch(signature, args, kwargs):
    """Says which arguments a signature lacks or needs, or returns ""."""
    parameters = signature.parameters.values()
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    unknown = [
        name
        for name in kwargs
        if name not in signature.parameters and not takes_any
    ]
    if unknown:
        return f"does not take {_quote(unknown)}"
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        positional = [
            p.name
            for p in parameters
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        given = {*positional[: len(args)], *kwargs}
        needed = [
            p.name
            for p in parameters
            if p.default is p.empty
            and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
            and p.name not in given
        ]
        if needed:
            return f"needs {_quote(needed)} as well"
        return f"does not take {len(args)} positional arguments"
    return ""


def _quote(names):
    return ", ".join(f"`{name}`" for name in names)


def _describe(value):
    """Names a result's structure and shapes, as `{key: (2, 3)}`."""
    if isinstance(value, dict):
        parts = (f"{key}: {_describe(value[key])}" for key in sorted(value))
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_describe, value))}]"
    if hasattr(value, "shape"):
        return str(tuple(value.shape))
    return repr(value)


def _describe_shapes(shapes):
    if isinstance(shapes, list):
        return f"[{', '.join(map(str, shapes))}]"
    return str(shapes)


def _first_line(error):
    """The first line of an error, without what Keras puts around it."""
    text = str(error).replace("\x1b[1m", "").replace("\x1b[0m", "")
    text = text.rpartition("Error encountered:")[2]
    lines = [line.strip() for line in text.splitlines()]
    lines = [
        line
        for line in lines
        if line and not line.startswith("Exception encountered when calling")
    ]
    return (lines[0] if lines else type(error).__name__).rstrip(".")


def _full_name(kind):
    package = kind.__module__.partition(".")[0]
    return f"{package}.{kind.__name__}"
