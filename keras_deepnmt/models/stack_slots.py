"""Runs a stack of blocks, with the layers in its slots, if any."""

from keras_deepnmt.layers.cloning import prototype_config, prototype_of
from keras_deepnmt.masks import padding_mask


def run_stack(blocks, x, run_block, aggregation, diversity, options):
    """Runs the blocks of a stack one after another.

    Args:
        blocks: list of layers.
        x: float tensor `(B, S, D)`, what the first block reads.
        run_block: callable `(block, x, layer_states)` that gives the block's
            output; `layer_states` is from `lower_states`.
        aggregation: layer in the stack's slot, or `None`.
        diversity: layer in the stack's slot, or `None`.
        options: dict of what the aggregation is called with besides states:
            `padding_mask`, or `cache` and `cache_index`, from
            `decoder_options`.

    Returns:
        Tuple `(layer_states, cache)`: the list of `x`, the blocks' outputs and,
        in place of the last, what the aggregation made of them; the
        aggregation's cache, or `None`.
    """
    layer_states, given = [x], []
    feeds_back = getattr(aggregation, "feeds_back", False)
    for block in blocks:
        lower = lower_states(block, layer_states)
        layer_states.append(run_block(block, x, lower))
        all_at_once = "padding_mask" in options
        if block is blocks[-1] and diversity is not None and all_at_once:
            # Through the layer: a functional graph drops one that nothing
            # reads, and its loss with it.
            layer_states[-1] = diversity(
                layer_states[1:], padding_mask=options["padding_mask"]
            )
        x = layer_states[-1]
        if feeds_back:
            states = layer_states[1:]
            x, options = _aggregate(
                aggregation, states, options, previous=given
            )
        given = [*given, x]
    if aggregation is not None and not feeds_back:
        x, options = _aggregate(aggregation, layer_states[1:], options)
    return [*layer_states[:-1], x], options.get("cache")


def _aggregate(aggregation, layer_states, options, **previous):
    result = aggregation(layer_states, **options, **previous)
    if "cache" not in options:
        return result, options
    x, cache = result
    return x, {**options, "cache": cache}


def decoder_options(target_ids, cache, index):
    """Says how the decoder's stack is run: all at once, or step by step.

    Args:
        target_ids: int tensor `(B, T)`.
        cache: dict from `init_cache` of the model, or `None`.
        index: int scalar tensor. Position of this step.

    Returns:
        Dict, the options of `run_stack`.
    """
    if cache is None:
        return {
            "padding_mask": padding_mask(target_ids),
            "use_causal_mask": True,
        }
    if "aggregation" not in cache["dynamic"]:
        return {}
    return {"cache": cache["dynamic"]["aggregation"], "cache_index": index}


def lower_states(block, layer_states):
    """Lists what a block's self-attention reads besides the block's input.

    Args:
        block: a Transformer block.
        layer_states: list of all states so far, embedding first.

    Returns:
        List of float tensors `(B, S, D)`, newest first, or `None`.
    """
    if not block.num_lower_states:
        return None
    newest_first = layer_states[::-1]
    return newest_first[1 : 1 + block.num_lower_states]


def self_attention_at(config, number):
    """Finds which self-attention stands in a block.

    Args:
        config: dict from `prototype_config`, or `None`.
        number: int. The block's number, from 1.

    Returns:
        Dict as `config`, or `None` for the block's own: what the layer's
        `at_block` chooses, where it has one.
    """
    prototype = prototype_of(config)
    if not hasattr(prototype, "at_block"):
        return config
    return prototype_config(prototype.at_block(number))


def name_memories(memories, blocks):
    """Gives each decoder block its memory.

    Args:
        memories: list of float tensors `(B, S, D)` from an encoder fusion.
        blocks: list of the decoder's blocks.

    Returns:
        Dict of the blocks' names to their memories.

    Raises:
        ValueError: if there is not one memory for each block.
    """
    if len(memories) != len(blocks):
        raise ValueError(
            "`encoder_fusion` must give one memory for each decoder block. "
            f"Received: {len(memories)} memories for {len(blocks)} blocks. "
            f"Make the layer with num_decoder_layers={len(blocks)}."
        )
    return {
        block.name: memory
        for block, memory in zip(blocks, memories, strict=True)
    }


def memory_of(block, memory):
    """Finds what a decoder block's cross-attention reads.

    Args:
        block: one of the decoder's blocks.
        memory: dict from `encode`.

    Returns:
        Float tensor `(B, S, D)`.
    """
    if "fused" in memory:
        return memory["fused"][block.name]
    return memory["output"]
