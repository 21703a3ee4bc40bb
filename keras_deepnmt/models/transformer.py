"""The Transformer, with slots for the layers of the papers."""

import keras
from keras import ops

from keras_deepnmt.layers.cloning import initializer_config
from keras_deepnmt.masks import END_ID, padding_mask
from keras_deepnmt.models.seq2seq import Seq2Seq
from keras_deepnmt.models.slot_trial import TrialSizes, try_slots
from keras_deepnmt.models.slots import (
    LayerCaches,
    init_layer_caches,
    init_output_cache,
    run_target_embedding_layer,
    score_states,
)
from keras_deepnmt.models.stack_slots import (
    decoder_options,
    memory_of,
    name_memories,
    run_stack,
)
from keras_deepnmt.models.transformer_layers import (
    SLOTS,
    TransformerLayers,
    check_arguments,
    slot_configs,
)
from keras_deepnmt.xla import tuned


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class Transformer(Seq2Seq):
    """Encoder-decoder Transformer with slots for other layers.

    An encoder of L blocks reads the source, a decoder of L blocks writes the
    target (Vaswani et al., 2017, Figure 1). A *slot* takes an unbuilt layer
    that the model clones once per block or side. The layer may be given by its
    class name, as `"LayerAggregation"` or, with its arguments,
    `{"LayerAggregation": {"strategy": "dense"}}`; required arguments that are
    missing are the model's. The slots:

    * `source_embedding_layer`, `target_embedding_layer`: called with
      embeddings `(B, S, D)` and, on the source side, `padding_mask=`; a layer
      with `init_cache` also with `cache=`, `cache_index=`. A search re-orders
      caches with the hypotheses; those of a layer with `keeps_history = True`
      have slots for all of them, as in `layers.MultiHeadAttention`.
    * `encoder_self_attention`, `decoder_self_attention`: called like
      `layers.MultiHeadAttention` or `layers.MultiLayerAttention`.
    * `decoder_cross_attention`: called like `layers.MultiHeadAttention` with
      decoder states, the memory and `attention_mask=`, in a search with a
      `cache=` from its method `static_cache(memory)`.
    * `encoder_aggregation`, `decoder_aggregation`: called like
      `layers.LayerAggregation` with the blocks' outputs after the last block.
      If its attribute `feeds_back` is true, it is called after every block and
      returns the input of the next one.
    * `encoder_fusion`: called with the source embeddings, without positions,
      and the blocks' outputs; returns one memory `(B, S, D)` for each decoder
      block.
    * `output_fusion`: called with decoder states, memory, source embeddings,
      `memory_padding_mask=`, `static_cache=` and `project=` (states to
      logits); returns log-probabilities `(B, T, V)`. It has the methods
      `static_cache`, which takes memory, source embeddings, mask and
      `project=`, and `compute_output_spec`, since JAX cannot infer shapes
      through a function.
    * `layer_diversity`: called with a stack's block outputs and
      `padding_mask=`; returns the last of them and adds a loss. A number is
      short for `layers.LayerDiversity` with that weight. If the layer has the
      options `reduction` and `positions` (`"source"`, `"target"`), the model
      sets them so that it adds a sum over real positions, which training
      divides by their number.
    * `residual_connection`: called like `layers.ResidualConnection` with the
      input and the output of each sub-layer of the blocks; its method `before`
      returns what the sub-layer reads. The model's `dropout`,
      `layer_norm_epsilon` and `normalize_first` take the place of its own; set
      them on the model. If it has the options `stack`,
      `num_encoder_layers` and `num_decoder_layers`, the model sets the first,
      and the others where they are `None`. A method `initializer_of(path)`
      returns the initializer of a kernel of the sub-layer.
    * `layer_drop`: called with the input and the output of each block; returns
      what the block above reads. A number is short for `layers.LayerDrop` with
      that probability. From its `seed`, if it has one, each block gets another.

    A layer that is not of this package is tried on symbolic tensors when the
    model is made, in training's call and in a decoding step, and refused if its
    arguments, its cache or the shapes of its results do not fit. It may have a
    method `check_slot(slot)`, which raises a `ValueError` for options that do
    not fit a slot.

    Differs from the paper: key projections have no bias unless `key_bias`; Q, K
    and V start with a tenth of Glorot's variance, see `attention_initializer`.
    Cost: `L (12 D^2 + 4 D F)` weights and the embeddings.

    Args:
        source_vocabulary_size, target_vocabulary_size: int. Sizes V.
        hidden_dim: int. Model width D, the paper's d_model.
        intermediate_dim: int. Feed-forward width F, the paper's d_ff.
        num_heads: int. Attention heads N, except of attention layers in slots,
            which keep their own.
        num_encoder_layers, num_decoder_layers: int. Blocks L of each stack.
        source_embedding_layer, ..., layer_drop: slots, see above.
        position_encoding: `"sinusoidal"`, or `None` for none; or an unbuilt
            layer called with `x` `(B, T, D)` and `start_index=`, which returns
            `x` with positions, such as `layers.SinusoidalPositionEncoding`, or
            `layers.LearnedPositionEmbedding` with `add_to_inputs`. Or an
            unbuilt layer of relative positions:
            `layers.RotaryPositionEmbedding`, `layers.AttentionLinearBiases`,
            `layers.RelativePositionBias` or
            `layers.RelativePositionRepresentations`. Every self-attention of
            both stacks then applies a clone of it, those of an aggregation
            included, or with `RelativePositionBias(shared=True)` one layer for
            each stack; cross-attention has none, and nothing is added to the
            embeddings.
        share_position_encoding: bool. Whether source and target share the
            weights of the position encoding, if it has any.
        embedding_scale: float. Factor of the embeddings. `None`: the square
            root of D.
        share_embeddings: bool. Whether source, target and output share one
            matrix; needs equal vocabulary sizes.
        tie_output_embedding: bool. Whether target and output share one matrix.
        output_bias: bool. Whether each token has a bias in the logits.
        dropout: float in [0, 1). On embeddings and sub-layer outputs.
        attention_dropout: float in [0, 1). On attention weights, except of
            layers in slots, which keep their own.
        activation: Keras activation of the feed-forward networks.
        layer_norm_epsilon: float. Added to the variance.
        normalize_first: bool. Whether norms come before the sub-layers
            (pre-norm) and not after them.
        final_norm: bool. Whether a norm follows each stack. `None`: only with
            `normalize_first`.
        key_bias: bool. Whether key projections have a bias, except those of
            layers in slots, which keep their own.
        attention_initializer: Keras initializer, or its name, of the query, key
            and value projections of all attention layers, including those in
            slots that name none. `None` is that of `MultiHeadAttention`, a
            tenth of the variance of `"glorot_uniform"`. It has no effect if
            there is a `kernel_initializer`. With a seed, the three of an
            attention start alike.
        kernel_initializer: Keras initializer, or its name, of all kernels of
            the blocks, also of layers in their slots; one with a method
            `at_block`, such as `layers.DepthScaledInitializer`, is asked for
            that of each block by its number, from 1. `None` is that of each
            layer.
        max_length: int. Longest source or target, in tokens.
        encode_end: bool. Whether the encoder reads the token that ends the
            source. Without it an empty source has no token to attend to, and
            attention to it gives zeros. The share of `layer_diversity` in the
            loss of a batch counts this token in either case.
        dtype: dtype policy of all layers.
        **kwargs: `name`, `trainable`.

    Raises:
        ValueError: for sizes below 1, shared embeddings with unequal
            vocabulary sizes, an unknown position encoding or one that does not
            return its input's shape, or a layer that does not fit its slot.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> memory = model.encode(np.array([[5, 6, 3]]))
    >>> model.decode(np.array([[2, 7]]), memory).shape
    TensorShape([1, 2, 13])

    Reference:
        - [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762).
    """

    def __init__(
        self,
        source_vocabulary_size,
        target_vocabulary_size,
        hidden_dim,
        intermediate_dim,
        num_heads,
        num_encoder_layers,
        num_decoder_layers,
        *,
        source_embedding_layer=None,
        target_embedding_layer=None,
        encoder_self_attention=None,
        decoder_self_attention=None,
        decoder_cross_attention=None,
        encoder_aggregation=None,
        decoder_aggregation=None,
        encoder_fusion=None,
        output_fusion=None,
        layer_diversity=None,
        residual_connection=None,
        layer_drop=None,
        position_encoding="sinusoidal",
        share_position_encoding=True,
        embedding_scale=None,
        share_embeddings=False,
        tie_output_embedding=True,
        output_bias=False,
        dropout=0.1,
        attention_dropout=0.0,
        activation="relu",
        layer_norm_epsilon=1e-6,
        normalize_first=False,
        final_norm=None,
        key_bias=False,
        attention_initializer=None,
        kernel_initializer=None,
        max_length=1024,
        encode_end=True,
        dtype=None,
        **kwargs,
    ):
        arguments = dict(locals())
        for name in ("self", "kwargs", "dtype", "__class__"):
            arguments.pop(name, None)
        check_arguments(arguments)
        arguments |= slot_configs(arguments)
        arguments["attention_initializer"] = initializer_config(
            attention_initializer
        )
        arguments["kernel_initializer"] = initializer_config(
            kernel_initializer, "kernel_initializer"
        )
        arguments["activation"] = keras.activations.serialize(
            keras.activations.get(activation)
        )
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        sizes = TrialSizes(hidden_dim, hidden_dim, target_vocabulary_size)
        try_slots(arguments, SLOTS, policy, sizes)

        # === Layers ===
        builder = TransformerLayers(arguments, policy)
        self.source_embedding, self.target_embedding = builder.embeddings()
        self.source_dropout = builder.dropout("source_dropout")
        self.target_dropout = builder.dropout("target_dropout")
        self.output_bias = builder.output_bias()
        self.position_encoding, self.target_position_encoding = (
            builder.position_encodings()
        )
        self.encoder_blocks = builder.blocks("encoder")
        self.decoder_blocks = builder.blocks("decoder")
        self.encoder_drops = builder.block_drops("encoder")
        self.decoder_drops = builder.block_drops("decoder")
        self.encoder_norm = builder.stack_norm("encoder_norm")
        self.decoder_norm = builder.stack_norm("decoder_norm")
        self.source_embedding_layer = builder.clone("source_embedding_layer")
        self.target_embedding_layer = builder.clone("target_embedding_layer")
        self.encoder_aggregation = builder.clone("encoder_aggregation")
        self.decoder_aggregation = builder.clone("decoder_aggregation")
        self.encoder_fusion = builder.clone("encoder_fusion")
        self.output_fusion = builder.clone("output_fusion")
        self.encoder_diversity = builder.clone("layer_diversity", "encoder")
        self.decoder_diversity = builder.clone("layer_diversity", "decoder")
        # A layer, not `*`: Keras marks a tensor times a number as sparse, and
        # a layer in a slot then cannot read its width.
        self.embedding_scale = keras.layers.Rescaling(
            hidden_dim**0.5 if embedding_scale is None else embedding_scale,
            name="embedding_scale",
            dtype=policy,
        )
        self.max_length = max_length
        self.encode_end = encode_end
        self.source_vocabulary_size = source_vocabulary_size
        self.target_vocabulary_size = target_vocabulary_size

        # === Functional Model ===
        super().__init__(dtype=dtype, **self.symbolic_graph(), **kwargs)

        # === Config ===
        self._arguments = arguments

    def encode(self, source_ids):
        mask = padding_mask(source_ids)  # (B, S)
        if not self.encode_end:
            mask = ops.logical_and(mask, ops.not_equal(source_ids, END_ID))
        embeddings = self.embedding_scale(self.source_embedding(source_ids))
        if self.source_embedding_layer is not None:
            embeddings = self.source_embedding_layer(
                embeddings, padding_mask=mask
            )
        x = embeddings
        if self.position_encoding is not None:
            x = self.position_encoding(x)
        # In one call, so that both get the same dropout mask.
        x, embeddings = self.source_dropout([x, embeddings])
        layer_states, _ = run_stack(
            self.encoder_blocks,
            x,
            lambda block, x, layer_states: block(
                x, padding_mask=mask, layer_states=layer_states
            ),
            self.encoder_aggregation,
            self.encoder_diversity,
            {"padding_mask": mask},
            self.encoder_drops,
        )
        x = layer_states[-1]
        if self.encoder_norm is not None:
            x = self.encoder_norm(x)
        memory = {"output": x, "padding_mask": mask}
        if self.encoder_fusion is not None:
            fused = self.encoder_fusion([embeddings, *layer_states[1:-1], x])
            memory["fused"] = name_memories(fused, self.decoder_blocks)
        if self.output_fusion is not None:
            memory["source_embeddings"] = embeddings
        return memory

    def decode(self, target_ids, memory, cache=None, index=None, project=None):
        caches = LayerCaches(cache, index)
        x = self._embed_target(target_ids, caches, index)

        def run_block(block, x, layer_states):
            options = {
                "memory_padding_mask": memory["padding_mask"],
                "layer_states": layer_states,
            }
            if cache is None:
                return block(x, memory_of(block, memory), **options)
            x, block_cache = block(
                x,
                static_cache=cache["static"][block.name],
                **caches.arguments_of_block(block.name, "history_mask"),
                **options,
            )
            caches.update(block.name, block_cache)
            return x

        layer_states, aggregation_cache = run_stack(
            self.decoder_blocks,
            x,
            run_block,
            self.decoder_aggregation,
            self.decoder_diversity,
            decoder_options(target_ids, cache, caches),
            self.decoder_drops,
        )
        x = layer_states[-1]
        caches.update("aggregation", aggregation_cache)
        if self.decoder_norm is not None:
            x = self.decoder_norm(x)
        scores = score_states(self, x, memory, cache, project)
        if cache is None:
            return scores
        return scores, caches.with_static(cache["static"])

    def init_cache(self, memory, max_length, num_beams=1, project=None):
        static = {
            block.name: block.static_cache(memory_of(block, memory))
            for block in self.decoder_blocks
        }
        static |= init_output_cache(self, memory, project)
        layers = {block.name: block for block in self.decoder_blocks}
        layers["embedding"] = self.target_embedding_layer
        layers["aggregation"] = self.decoder_aggregation
        batch_size = ops.shape(memory["output"])[0]
        caches = init_layer_caches(layers, batch_size, max_length, num_beams)
        return {"static": static, **caches}

    def _embed_target(self, target_ids, caches, index):
        x = self.embedding_scale(self.target_embedding(target_ids))
        x = run_target_embedding_layer(self.target_embedding_layer, x, caches)
        if self.target_position_encoding is not None:
            x = self.target_position_encoding(
                x, start_index=0 if index is None else index
            )
        return self.target_dropout(x)

    def project(self, states):
        """Projects decoder states `(..., D)` to logits `(..., V)`."""
        return self._scores(self.target_embedding(states, reverse=True))

    def repeated_projection(self, num_states):
        embedding = self.target_embedding
        # Weights of 8 bits have a product of their own.
        is_float = embedding.quantization_mode is None
        if num_states not in tuned.FEW_STATES or not (
            is_float and embedding.tie_weights
        ):
            return None
        kernel = ops.cast(embedding.embeddings, embedding.compute_dtype)
        kernel = ops.transpose(kernel)  # (D, V)
        return lambda states: self._scores(ops.matmul(states, kernel))

    def projection_to(self, target_ids):
        embedding = self.target_embedding
        if embedding.quantization_mode is not None:
            # Its matrix holds integers, of which only the layer knows the
            # scale.
            return lambda states: self._scores(
                ops.take(embedding(states, reverse=True), target_ids, axis=-1),
                target_ids,
            )
        if embedding.tie_weights:
            kernel = ops.take(embedding.embeddings, target_ids, axis=0)
            kernel = ops.transpose(kernel)
        else:
            kernel = ops.take(embedding.reverse_embeddings, target_ids, axis=1)
        kernel = ops.cast(kernel, embedding.compute_dtype)  # (D, W)
        return lambda states: self._scores(
            ops.matmul(states, kernel), target_ids
        )

    def _scores(self, logits, target_ids=None):
        """Logits with their bias, in float32 also for half precision."""
        if self.output_bias is not None:
            logits = self.output_bias(logits, target_ids)
        return ops.cast(logits, "float32")

    def get_config(self):
        return {**super().get_config(), **self._arguments}
