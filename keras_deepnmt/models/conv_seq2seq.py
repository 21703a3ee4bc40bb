"""Convolutional sequence-to-sequence model, with residual or dense stacks."""

import keras

from keras_deepnmt.layers.gated_convolution import concatenate_states
from keras_deepnmt.masks import padding_mask
from keras_deepnmt.models.conv_seq2seq_layers import (
    SLOTS,
    ConvSeq2SeqLayers,
    check_arguments,
    complete_arguments,
    encoder_width,
)
from keras_deepnmt.models.seq2seq import Seq2Seq
from keras_deepnmt.models.slot_trial import TrialSizes, try_slots
from keras_deepnmt.models.slots import (
    LayerCaches,
    init_layer_caches,
    init_output_cache,
    run_target_embedding_layer,
    score_states,
)


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class ConvSeq2Seq(Seq2Seq):
    """Convolutional encoder-decoder with attention in each decoder layer.

    With residual connections this is ConvS2S (Gehring et al., 2017), with
    dense ones DenseNMT (Shen et al., 2018): each layer reads the outputs of
    all layers below, and the decoder's attention reads all encoder layers.
    Weight normalization replaces layer normalization. The papers do not use
    label smoothing.

    Slots, as in `models.Transformer`:

    * `source_embedding_layer`, `target_embedding_layer`: called with
      embeddings `(B, S, E)` before positions are added.
    * `output_fusion`: called with the decoder's output `(B, T, E)`, the
      concatenated encoder states, and source embeddings `(B, S, E)`.

    Differs from the paper: padding is masked, so that a sentence does not
    depend on the others in its batch; with one attention, the gradient that
    reaches the source embeddings through the encoder is scaled, too (see
    `GradientScale`); see also each layer.
    Cost: see the layers; `3 V E` parameters of embeddings and softmax.

    Args:
        source_vocabulary_size, target_vocabulary_size: int. Sizes V.
        hidden_dim: int, or list of one int for each layer. Width n of residual
            and summary layers; the input of each stack has the first width.
        num_encoder_layers, num_decoder_layers: int. Layers L of each stack.
        encoder_connection, decoder_connection: `"residual"` or `"dense"`.
        attention: `"single"`, to the encoder's output, which in a dense encoder
            is the concatenation of all states (DenseAtt-1); or `"per_layer"`,
            one to each encoder layer, summed (DenseAtt-2).
        summary_length: int. Each `summary_length`-th layer of a dense stack is
            a summary layer (the paper's sumlen). Defaults to no summaries.
        growth_dim: int, or list of one for each layer. Width a of the outputs
            in a dense stack. Defaults to half of `hidden_dim`.
        embedding_dim: int. Width E of embeddings. Defaults to `attention_dim`.
        attention_dim: int. Width D of the attention; embeddings of another
            width are projected to it. Defaults to the first `hidden_dim`.
        kernel_size: int, or list of one for each layer.
        source_embedding_layer, target_embedding_layer, output_fusion: slots,
            given as in `models.Transformer`.
        position_encoding: `"learned"`, or `None` for none.
        dropout: float in [0, 1). On embeddings and on the inputs of
            convolutions and softmax.
        max_length: int. Number of learned positions.
        dtype: dtype policy of all layers.
        **kwargs: `name`, `trainable`.

    Raises:
        ValueError: for sizes below 1, lists without an entry for each layer,
            unknown connections, attentions or position encodings, or a layer
            that does not fit its slot.

    Example:
    >>> model = keras_deepnmt.models.ConvSeq2Seq(
    ...     11, 13, 8, 2, 2, encoder_connection="dense"
    ... )
    >>> memory = model.encode(np.array([[5, 6, 3]]))
    >>> model.decode(np.array([[2, 7]]), memory).shape
    TensorShape([1, 2, 13])

    Reference:
        - [Shen et al., 2018](https://arxiv.org/abs/1806.00722). Released code:
          https://github.com/yanyao-shen/fairseq.
        - [Gehring et al., 2017](https://arxiv.org/abs/1705.03122).
    """

    def __init__(
        self,
        source_vocabulary_size,
        target_vocabulary_size,
        hidden_dim,
        num_encoder_layers,
        num_decoder_layers,
        *,
        encoder_connection="residual",
        decoder_connection="residual",
        attention="single",
        summary_length=None,
        growth_dim=None,
        embedding_dim=None,
        attention_dim=None,
        kernel_size=3,
        source_embedding_layer=None,
        target_embedding_layer=None,
        output_fusion=None,
        position_encoding="learned",
        dropout=0.2,
        max_length=1024,
        dtype=None,
        **kwargs,
    ):
        arguments = dict(locals())
        for name in ("self", "kwargs", "dtype", "__class__"):
            arguments.pop(name, None)
        check_arguments(arguments)
        arguments = complete_arguments(arguments)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        sizes = TrialSizes(
            arguments["embedding_dim"],
            encoder_width(arguments),
            target_vocabulary_size,
        )
        try_slots(arguments, SLOTS, policy, sizes)

        # === Layers ===
        builder = ConvSeq2SeqLayers(arguments, policy)
        self.source_embedding = builder.embedding("source")
        self.target_embedding = builder.embedding("target")
        self.source_positions = builder.positions("source")
        self.target_positions = builder.positions("target")
        self.source_projection = builder.projection("source")
        self.target_projection = builder.projection("target")
        self.source_position_projection = builder.projection("source_position")
        self.target_position_projection = builder.projection("target_position")
        self.source_dropout = builder.dropout("source_dropout")
        self.target_dropout = builder.dropout("target_dropout")
        self.surface_dropout = builder.dropout("surface_dropout")
        self.encoder_input = builder.stack_input("encoder")
        self.decoder_input = builder.stack_input("decoder")
        self.encoder_blocks = builder.blocks("encoder")
        self.decoder_blocks = builder.blocks("decoder")
        self.attention_memory = builder.attention_memory()
        self.decoder_output = builder.decoder_output()
        self.output_dropout = builder.dropout("output_dropout")
        self.output_projection = builder.output_projection()
        self.source_embedding_layer = builder.clone("source_embedding_layer")
        self.target_embedding_layer = builder.clone("target_embedding_layer")
        self.output_fusion = builder.clone("output_fusion")
        self.attends_to_blocks = builder.attends_to_blocks()
        self.max_length = max_length
        self.source_vocabulary_size = source_vocabulary_size
        self.target_vocabulary_size = target_vocabulary_size

        # === Functional Model ===
        super().__init__(dtype=dtype, **self.symbolic_graph(), **kwargs)

        # === Config ===
        self._arguments = arguments

    def encode(self, source_ids):
        mask = padding_mask(source_ids)  # (B, S)
        words = self.source_embedding(source_ids)  # (B, S, E)
        if self.source_embedding_layer is not None:
            words = self.source_embedding_layer(words, padding_mask=mask)
        embeddings = self._add_positions("source", words, 0)  # (B, S, D)
        layer_states = [self.encoder_input(embeddings)]
        outputs = []
        for block in self.encoder_blocks:
            layer_states = block(layer_states, padding_mask=mask)
            outputs = [layer_states[0], *outputs]
        # A residual block returns only the newest state.
        key, value = self.attention_memory(
            outputs if self.attends_to_blocks else layer_states, embeddings
        )
        memory = {"key": key, "value": value, "padding_mask": mask}
        if self.output_fusion is not None:
            memory["output"] = concatenate_states(layer_states)
            memory["source_embeddings"] = self.surface_dropout(words)
        return memory

    def decode(self, target_ids, memory, cache=None, index=None, project=None):
        caches = LayerCaches(cache, index)
        words = run_target_embedding_layer(
            self.target_embedding_layer,
            self.target_embedding(target_ids),
            caches,
        )
        embeddings = self._add_positions("target", words, index)  # (B, T, D)
        attended = memory if cache is None else cache["static"]["attention"]
        layer_states = [self.decoder_input(embeddings)]
        for block in self.decoder_blocks:
            inputs = (
                layer_states,
                embeddings,
                attended["key"],
                attended["value"],
            )
            options = {"memory_padding_mask": memory["padding_mask"]}
            if cache is None:
                layer_states = block(*inputs, **options)
            else:
                options |= caches.arguments_of_block(block.name)
                layer_states, block_cache = block(*inputs, **options)
                caches.update(block.name, block_cache)
        states = self.decoder_output(concatenate_states(layer_states))
        scores = score_states(self, states, memory, cache, project)
        if cache is None:
            return scores
        return scores, caches.with_static(cache["static"])

    def init_cache(self, memory, max_length, num_beams=1, project=None):
        attended = {"key": memory["key"], "value": memory["value"]}
        static = {
            "attention": attended,
            **init_output_cache(self, memory, project),
        }
        layers = {block.name: block for block in self.decoder_blocks}
        layers["embedding"] = self.target_embedding_layer
        batch_size = keras.ops.shape(memory["key"])[0]
        caches = init_layer_caches(layers, batch_size, max_length, num_beams)
        return {"static": static, **caches}

    def project(self, states):
        """Projects the decoder's output `(..., E)` to logits `(..., V)`."""
        logits = self.output_projection(self.output_dropout(states))
        # As those of `Transformer` are, also in half precision.
        return keras.ops.cast(logits, "float32")

    def repeated_projection(self, num_states):
        # The kernel is normalized here, and not by each call.
        layer = self.output_projection
        bias = layer.bias if layer.use_bias else None
        return _projection(layer.kernel, bias, layer.compute_dtype)

    def projection_to(self, target_ids):
        layer = self.output_projection
        kernel = keras.ops.take(layer.kernel, target_ids, axis=1)
        bias = (
            keras.ops.take(layer.bias, target_ids) if layer.use_bias else None
        )
        return _projection(kernel, bias, layer.compute_dtype)

    def _add_positions(self, side, words, index):
        projection = getattr(self, f"{side}_projection")
        x = words if projection is None else projection(words)
        positions = getattr(self, f"{side}_positions")
        if positions is not None:
            # Projected before the addition, once for all sentences.
            added = positions(words, start_index=0 if index is None else index)
            projection = getattr(self, f"{side}_position_projection")
            x = x + (added if projection is None else projection(added))
        return getattr(self, f"{side}_dropout")(x)

    def get_config(self):
        return {**super().get_config(), **self._arguments}


def _projection(kernel, bias, dtype):
    """Returns the function that projects states with a kernel `(E, W)`."""
    kernel = keras.ops.cast(kernel, dtype)
    if bias is None:
        return lambda states: keras.ops.matmul(states, kernel)
    bias = keras.ops.cast(bias, dtype)
    return lambda states: keras.ops.matmul(states, kernel) + bias
