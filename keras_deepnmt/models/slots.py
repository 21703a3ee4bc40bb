"""The slots that every model has: embeddings, and the fusion of its output."""

from keras_deepnmt.layers.cloning import clone_prototype


def clone_slot(arguments, slot, policy, side=None):
    """Makes the layer that stands in a slot of a model.

    Args:
        arguments: dict of the model's arguments, slots as configurations.
        slot: str. The argument's name.
        policy: dtype policy of the model.
        side: `"encoder"` or `"decoder"`, for a slot of both.

    Returns:
        An unbuilt layer, or `None` for an empty slot.
    """
    if arguments[slot] is None:
        return None
    name = slot if side is None else f"{side}_{slot}"
    source = name.startswith(("source", "encoder"))
    stack = "encoder" if source else "decoder"
    return clone_prototype(
        arguments[slot],
        name,
        policy,
        num_layers=arguments[f"num_{stack}_layers"],
        # A loss of the layer's own: see `sum_auxiliary_losses`.
        reduction="sum",
        positions="source" if source else "target",
    )


def init_slot_caches(rows, max_length, **layers):
    """Makes the caches of layers in slots that look at earlier positions.

    Args:
        rows: int or scalar tensor. Hypotheses B*K.
        max_length: int or scalar tensor. Most target positions.
        **layers: layer, or `None`, by the name of its cache.

    Returns:
        Dict of caches by name. Nothing is kept for a layer that looks at one
        position alone.
    """
    caches = {}
    for name, layer in layers.items():
        if hasattr(layer, "init_cache"):
            cache = layer.init_cache(rows, max_length)
            caches |= {name: cache} if cache else {}
    return caches


def run_target_embedding_layer(layer, embeddings, cache, index):
    """Runs the layer in the slot of target embeddings, if any.

    Args:
        layer: layer, or `None`.
        embeddings: float tensor `(B, T, D)`; with a cache `(B*K, 1, D)`.
        cache: dict from the model's `init_cache`, or `None`.
        index: int scalar tensor. Position of this step.

    Returns:
        Tuple of the layer's output and a dict `{"embedding": new cache}`,
        empty if there is none.
    """
    if layer is None:
        return embeddings, {}
    if cache is None or "embedding" not in cache["dynamic"]:
        return layer(embeddings), {}
    embeddings, new_cache = layer(
        embeddings, cache=cache["dynamic"]["embedding"], cache_index=index
    )
    return embeddings, {"embedding": new_cache}


def init_output_cache(model, memory):
    """Computes once a sentence what the output fusion reads of the source.

    Args:
        model: a model with the slot `output_fusion` and `project`.
        memory: dict from its `encode`.

    Returns:
        Dict `{"output_fusion": cache}`, empty for an empty slot.
    """
    if model.output_fusion is None:
        return {}
    return {
        "output_fusion": model.output_fusion.static_cache(
            memory["output"],
            memory["source_embeddings"],
            memory_padding_mask=memory["padding_mask"],
            project=model.project,
        )
    }


def score_states(model, states, memory, cache):
    """Scores the next token from the decoder's states.

    Args:
        model: a model with the slot `output_fusion` and `project`.
        states: float tensor `(B, T, D)`; with a cache `(B*K, 1, D)`.
        memory: dict from its `encode`.
        cache: dict from its `init_cache`, or `None`.

    Returns:
        Float tensor `(B, T, V)`: logits, or what the fusion gives.
    """
    if model.output_fusion is None:
        return model.project(states)
    return model.output_fusion(
        states,
        memory["output"],
        memory["source_embeddings"],
        memory_padding_mask=memory["padding_mask"],
        static_cache=cache and cache["static"]["output_fusion"],
        project=model.project,
    )
