"""The slots that all models have: embedding layers and output fusion."""

from keras import ops

from keras_deepnmt.layers.cloning import clone_prototype
from keras_deepnmt.masks import ancestor_mask


def clone_slot(arguments, slot, policy, side=None, relative_position=None):
    """Makes the unbuilt layer of a slot, or returns `None` if it is empty.

    `side` is `"encoder"` or `"decoder"` for a slot that both stacks use.
    `relative_position` is that of the stack, for a layer with attention.
    """
    if arguments[slot] is None:
        return None
    name = slot if side is None else f"{side}_{slot}"
    source = name.startswith(("source", "encoder"))
    stack = "encoder" if source else "decoder"
    options = {}
    if arguments[slot]["config"].get("reduction") in ("mean", "sum"):
        # A layer that adds a loss: see `sum_auxiliary_losses`. In other layers
        # `reduction` may mean anything.
        options["reduction"] = "sum"
    return clone_prototype(
        arguments[slot],
        name,
        policy,
        attention_initializer=arguments.get("attention_initializer"),
        relative_position=relative_position,
        num_layers=arguments[f"num_{stack}_layers"],
        positions="source" if source else "target",
        **options,
    )


def init_layer_caches(layers, batch_size, max_length, num_beams):
    """Makes the caches of a model's layers for step-by-step decoding.

    `layers` are by the name of their cache, and may be `None`; those that do
    not read earlier positions have no cache. The result has the parts `dynamic`
    and `history` of the model's cache, see `Seq2Seq.init_cache`.
    """
    dynamic, history = {}, {}
    for name, layer in layers.items():
        if not hasattr(layer, "init_cache"):
            continue
        if getattr(layer, "keeps_history", False):
            history[name] = layer.init_cache(batch_size, max_length, num_beams)
        elif cache := layer.init_cache(batch_size * num_beams, max_length):
            dynamic[name] = cache
    # A single hypothesis is its own ancestor. A table that a search never
    # changes must not be in its loop: TensorFlow would write the constant into
    # the loop's body, under a name that differs between processes.
    if history and not (isinstance(num_beams, int) and num_beams == 1):
        history["ancestors"] = ops.zeros(
            (batch_size, num_beams, max_length), dtype="int32"
        )
    return {"dynamic": dynamic, "history": history}


class LayerCaches:
    """The caches of a model's layers in one decoding step.

    `cache` is what was passed to `decode`, or `None`, and `index` the position
    of this step.
    """

    def __init__(self, cache, index):
        self._index = index
        self._parts = {}
        self._mask = None
        if cache is None:
            return
        self._parts = {
            part: dict(cache.get(part, {})) for part in ("dynamic", "history")
        }
        ancestors = self._parts["history"].get("ancestors")
        if ancestors is not None:
            self._mask = ancestor_mask(ancestors, index)  # (B, K, M*K)

    def arguments(self, name, mask_name="attention_mask"):
        """Returns the arguments that pass a layer its cache."""
        for part, caches in self._parts.items():
            if name in caches:
                options = {"cache": caches[name], "cache_index": self._index}
                if part == "history":
                    options[mask_name] = self._mask
                return options
        return {}

    def arguments_of_block(self, name, mask_name="attention_mask"):
        """As `arguments`; a block without a cache gets an empty one.

        One without convolution (`kernel_size=1`) reads no earlier positions.
        """
        empty = {"cache": {}, "cache_index": self._index}
        return self.arguments(name, mask_name) or empty

    def update(self, name, cache):
        """Replaces the cache of a layer."""
        for caches in self._parts.values():
            if name in caches:
                caches[name] = cache

    def with_static(self, static):
        """Returns the model's new cache."""
        return {"static": static, **self._parts}


def run_target_embedding_layer(layer, embeddings, caches):
    """Runs the layer in the slot `target_embedding_layer`, if any.

    Returns its output; its cache, if it has one, is updated in `caches`.
    """
    if layer is None:
        return embeddings
    arguments = caches.arguments("embedding")
    if not arguments:
        return layer(embeddings)
    embeddings, cache = layer(embeddings, **arguments)
    caches.update("embedding", cache)
    return embeddings


def init_output_cache(model, memory, project=None):
    """Computes the static cache of the output fusion, once per sentence.

    `project` replaces the model's own. Returns `{"output_fusion": cache}`, an
    empty dict for an empty slot.
    """
    if model.output_fusion is None:
        return {}
    return {
        "output_fusion": model.output_fusion.static_cache(
            memory["output"],
            memory["source_embeddings"],
            memory_padding_mask=memory["padding_mask"],
            project=project or model.project,
        )
    }


def score_states(model, states, memory, cache, project=None):
    """Computes the scores of the next tokens from decoder states `(B, T, D)`.

    Scores `(B, T, V)` are logits, or the output of the output fusion. `project`
    replaces the model's own.
    """
    project = project or model.project
    if model.output_fusion is None:
        return project(states)
    return model.output_fusion(
        states,
        memory["output"],
        memory["source_embeddings"],
        memory_padding_mask=memory["padding_mask"],
        static_cache=cache and cache["static"]["output_fusion"],
        project=project,
    )
