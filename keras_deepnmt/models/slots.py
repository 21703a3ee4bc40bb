"""The slots that all models have: embedding layers and output fusion."""

from keras_deepnmt.layers.cloning import clone_prototype


def clone_slot(arguments, slot, policy, side=None):
    """Makes the unbuilt layer of a slot, or returns `None` if it is empty.

    `side` is `"encoder"` or `"decoder"` for a slot that both stacks use.
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
        attention_initializer=arguments.get("attention_initializer"),
        num_layers=arguments[f"num_{stack}_layers"],
        # For layers that add a loss: see `sum_auxiliary_losses`.
        reduction="sum",
        positions="source" if source else "target",
    )


def init_slot_caches(rows, max_length, **layers):
    """Makes the caches of the given layers, each under its keyword's name.

    `rows` is the number of hypotheses B*K. A layer may be `None`; layers that
    do not read earlier positions have no cache.
    """
    caches = {}
    for name, layer in layers.items():
        if hasattr(layer, "init_cache"):
            cache = layer.init_cache(rows, max_length)
            caches |= {name: cache} if cache else {}
    return caches


def run_target_embedding_layer(layer, embeddings, cache, index):
    """Runs the layer in the slot `target_embedding_layer`, if any.

    Returns its output and `{"embedding": new cache}`, an empty dict if the
    layer has no cache.
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
    """Computes the static cache of the output fusion, once per sentence.

    Returns `{"output_fusion": cache}`, an empty dict for an empty slot.
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
    """Computes the scores of the next tokens from decoder states `(B, T, D)`.

    Scores `(B, T, V)` are logits, or the output of the output fusion.
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
