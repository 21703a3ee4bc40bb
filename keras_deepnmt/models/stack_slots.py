"""Runs a stack of blocks with the layers in its slots."""

from keras_deepnmt.layers.cloning import prototype_config, prototype_of
from keras_deepnmt.masks import padding_mask


def run_stack(blocks, x, run_block, aggregation, diversity, options, drops=()):
    """Runs the blocks of a stack one after another.

    `run_block(block, x, layer_states)` returns a block's output, where
    `layer_states` are its `lower_states`. `options` are the aggregation's
    arguments besides the states: `padding_mask`, or `cache` and `cache_index`,
    see `decoder_options`. `drops` are the layers that may skip a block, by the
    names of the blocks; a block that is skipped passes its input on. Returns
    the list of `x` and the blocks' outputs, the
    last one replaced by the aggregation's output if there is one, and the
    aggregation's cache or `None`.
    """
    layer_states, aggregated = [x], []
    feeds_back = getattr(aggregation, "feeds_back", False)
    for block in blocks:
        output = run_block(block, x, lower_states(block, layer_states))
        if block.name in drops:
            output = drops[block.name](x, output)
        layer_states.append(output)
        is_full_sequence = "padding_mask" in options
        if block is blocks[-1] and diversity is not None and is_full_sequence:
            # Its output must be used: a functional graph drops a layer whose
            # output is not read, and its loss with it.
            layer_states[-1] = diversity(
                layer_states[1:], padding_mask=options["padding_mask"]
            )
        x = layer_states[-1]
        if feeds_back:
            states = layer_states[1:]
            x, options = _aggregate(
                aggregation, states, options, previous=aggregated
            )
        aggregated = [*aggregated, x]
    if aggregation is not None and not feeds_back:
        x, options = _aggregate(aggregation, layer_states[1:], options)
    return [*layer_states[:-1], x], options.get("cache")


def _aggregate(aggregation, layer_states, options, **previous):
    result = aggregation(layer_states, **options, **previous)
    if "cache" not in options:
        return result, options
    x, cache = result
    return x, {**options, "cache": cache}


def decoder_options(target_ids, cache, caches):
    """Makes the `options` of `run_stack` for a decoder.

    Without a cache all positions are computed at once, with a cache only one.
    `caches` are the `LayerCaches` of the step.
    """
    if cache is None:
        return {
            "padding_mask": padding_mask(target_ids),
            "use_causal_mask": True,
        }
    return caches.arguments("aggregation")


def lower_states(block, layer_states):
    """Selects the states that a block's self-attention reads besides its input.

    `layer_states` has the embedding first; the result has the newest state
    first, or is `None` if the block reads no lower states.
    """
    if not block.num_lower_states:
        return None
    newest_first = layer_states[::-1]
    return newest_first[1 : 1 + block.num_lower_states]


def self_attention_at(config, number):
    """Returns the configuration of the self-attention in a block.

    It is `config`, unless the layer has a method `at_block` that chooses one
    for the block's number, from 1. `None` means the block's default.
    """
    prototype = prototype_of(config)
    if not hasattr(prototype, "at_block"):
        return config
    return prototype_config(prototype.at_block(number))


def name_memories(memories, blocks):
    """Maps the name of each decoder block to its memory.

    Raises a `ValueError` if there is not one memory for each block.
    """
    if len(memories) != len(blocks):
        raise ValueError(
            "`encoder_fusion` must return one memory for each decoder block. "
            f"Received: {len(memories)} memories for {len(blocks)} blocks. "
            f"Make the layer with num_decoder_layers={len(blocks)}."
        )
    return {
        block.name: memory
        for block, memory in zip(blocks, memories, strict=True)
    }


def memory_of(block, memory):
    """Returns the tensor `(B, S, D)` that a decoder block attends to."""
    if "fused" in memory:
        return memory["fused"][block.name]
    return memory["output"]
