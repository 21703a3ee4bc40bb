"""Convolutional sequence to sequence, with residual or dense stacks."""

import keras

from keras_deepnmt.layers.gated_convolution import concatenate_states
from keras_deepnmt.masks import padding_mask
from keras_deepnmt.models.conv_seq2seq_layers import (
    ConvSeq2SeqLayers,
    check_arguments,
    complete_arguments,
)
from keras_deepnmt.models.seq2seq import Seq2Seq
from keras_deepnmt.models.slots import (
    init_output_cache,
    init_slot_caches,
    run_target_embedding_layer,
    score_states,
)


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class ConvSeq2Seq(Seq2Seq):
    """Translates with convolutions, and an attention in each decoder layer.

    With residual connections this is ConvS2S (Gehring et al., 2017), with
    dense ones DenseNMT (Shen et al., 2018): each layer reads what all below
    have found, the decoder's attention all layers of the encoder. Layers have
    weight normalisation instead of norms, and no label is smoothed by the
    papers.

    Slots, as in `models.Transformer`:

    * `source_embedding_layer`, `target_embedding_layer`: called with
      embeddings `(B, S, E)` before positions are added.
    * `output_fusion`: called with the decoder's output `(B, T, E)`, all encoder
      states side by side, and source embeddings `(B, S, E)`.

    Differs from the paper: padding is masked and sentences do not depend on
    their batch; each layer says what else.
    Cost: see the layers; `3 V E` numbers of embeddings and softmax.

    Args:
        source_vocabulary_size, target_vocabulary_size: int. Sizes V.
        hidden_dim: int, or list of one int for each layer. Width n of residual
            and summary layers; both stacks start with the first.
        num_encoder_layers, num_decoder_layers: int. Layers L of each stack.
        encoder_connection, decoder_connection: `"residual"` or `"dense"`.
        attention: `"single"`, of the encoder's output, in a dense encoder all
            states side by side (DenseAtt-1); or `"per_layer"`, one of each
            encoder layer, summed (DenseAtt-2).
        summary_length: int. Layers from one summary of a dense stack to the
            next, the paper's sumlen. Defaults to no summaries.
        growth_dim: int, or list of one for each layer. Width a of the outputs
            in a dense stack. Defaults to half of `hidden_dim`.
        embedding_dim: int. Width E of embeddings. Defaults to `attention_dim`.
        attention_dim: int. Width D that embeddings are projected to where
            they are not as wide, and of attention. Defaults to the first
            `hidden_dim`.
        kernel_size: int, or list of one for each layer.
        source_embedding_layer, target_embedding_layer, output_fusion: slots.
        position_encoding: `"learned"`, or `None` for none.
        dropout: float in [0, 1). On embeddings, on what each convolution
            reads, and on what the softmax reads.
        max_length: int. Positions that are learned.
        dtype: dtype policy of all layers.
        **kwargs: `name`, `trainable`.

    Raises:
        ValueError: for sizes below 1, lists of another length than the stacks,
            or unknown connections, attentions or position encodings.

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
        # In a residual stack older states are not handed on.
        key, value = self.attention_memory(
            outputs if self.attends_to_blocks else layer_states, embeddings
        )
        memory = {"key": key, "value": value, "padding_mask": mask}
        if self.output_fusion is not None:
            memory["output"] = concatenate_states(layer_states)
            memory["source_embeddings"] = self.surface_dropout(words)
        return memory

    def decode(self, target_ids, memory, cache=None, index=None):
        words, dynamic = run_target_embedding_layer(
            self.target_embedding_layer,
            self.target_embedding(target_ids),
            cache,
            index,
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
                layer_states, dynamic[block.name] = block(
                    *inputs, cache=cache["dynamic"][block.name], **options
                )
        states = self.decoder_output(concatenate_states(layer_states))
        scores = score_states(self, states, memory, cache)
        if cache is None:
            return scores
        return scores, {"static": cache["static"], "dynamic": dynamic}

    def init_cache(self, memory, max_length, num_beams=1):
        rows = keras.ops.shape(memory["key"])[0] * num_beams
        attended = {"key": memory["key"], "value": memory["value"]}
        static = {"attention": attended, **init_output_cache(self, memory)}
        dynamic = {
            block.name: block.init_cache(rows, max_length)
            for block in self.decoder_blocks
        }
        dynamic |= init_slot_caches(
            rows, max_length, embedding=self.target_embedding_layer
        )
        return {"static": static, "dynamic": dynamic}

    def project(self, states):
        """Turns the decoder's output `(..., E)` into logits `(..., V)`."""
        return self.output_projection(self.output_dropout(states))

    def _add_positions(self, side, words, index):
        projection = getattr(self, f"{side}_projection")
        x = words if projection is None else projection(words)
        positions = getattr(self, f"{side}_positions")
        if positions is not None:
            # Projected apart, and so only once for all sentences.
            added = positions(words, start_index=0 if index is None else index)
            projection = getattr(self, f"{side}_position_projection")
            x = x + (added if projection is None else projection(added))
        return getattr(self, f"{side}_dropout")(x)

    def get_config(self):
        return {**super().get_config(), **self._arguments}
