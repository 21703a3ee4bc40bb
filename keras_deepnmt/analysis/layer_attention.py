"""Which encoder states a decoder uses (Liu et al., 2021), and one masked."""

import copy

import keras
import numpy as np

from keras_deepnmt.analysis.analyzed_run import AnalyzedRun
from keras_deepnmt.analysis.figure import Bars, Figure, HeatMap
from keras_deepnmt.layers import FineGrainedLayerAttention


def layer_attention_heat_map(layer: keras.layers.Layer) -> np.ndarray:
    """Computes the weight of each encoder state in each decoder block.

        cell[n, m] = mean over channels d of w^{m,n,d}

    with the weights of `layers.FineGrainedLayerAttention`, without DropConnect
    (Liu et al., 2021, Figure 1).

    Args:
        layer: Built `layers.FineGrainedLayerAttention`, such as a model's
            `encoder_fusion`.

    Returns:
        Array `(N + 1, M)` with a row for each encoder state, embeddings first,
        and a column for each decoder block; every column sums to 1.

    Example:
    >>> layer = keras_deepnmt.layers.FineGrainedLayerAttention(2)
    >>> memories = layer([np.zeros((3, 5, 8), "float32")] * 7)
    >>> layer_attention_heat_map(layer).shape
    (7, 2)
    """
    weights = keras.ops.convert_to_numpy(layer.layer_weights())
    return weights.mean(axis=-1).T


def mask_encoder_layer(
    model: keras.Model, number: int, renormalize: bool = False
) -> keras.Model:
    """Copies a model and hides one encoder state from its decoder.

    The state's weight is zero in every decoder block; the encoder itself still
    uses that layer (Liu et al., 2021, Figure 2). Translate with the copy and
    compare score and length with those of the original.

    Args:
        model: `models.Transformer` with `layers.FineGrainedLayerAttention` as
            its `encoder_fusion`. It is not changed.
        number: Number of the state: 0 for the embeddings, n for encoder
            block n.
        renormalize: Whether the remaining weights are rescaled to sum to one.

    Returns:
        A model with the same weights, not compiled. States that were already
        masked stay masked.

    Raises:
        ValueError: if the model has no `FineGrainedLayerAttention` as its
            encoder fusion, or no such state.

    Example:
    >>> fusion = keras_deepnmt.layers.FineGrainedLayerAttention(1)
    >>> model = keras_deepnmt.models.Transformer(
    ...     11, 13, 8, 16, 2, 2, 1, encoder_fusion=fusion
    ... )
    >>> masked = mask_encoder_layer(model, 0)
    >>> layer_attention_heat_map(masked.encoder_fusion)[0].item()
    0.0
    """
    config = copy.deepcopy(model.get_config())
    fusion = config.get("encoder_fusion") or {"config": {}, "class_name": None}
    if "masked_layers" not in fusion["config"]:
        raise ValueError(
            "`model` must have a `FineGrainedLayerAttention` as its "
            f"`encoder_fusion`. Received: {fusion['class_name']}."
        )
    last = model.encoder_fusion.num_states - 1
    if not 0 <= number <= last:
        raise ValueError(
            f"`number` must lie between 0, the embeddings, and {last}, the top "
            f"of the encoder. Received: number={number}."
        )
    masked = {*fusion["config"]["masked_layers"], number}
    fusion["config"] |= {
        "masked_layers": sorted(masked),
        "renormalize": renormalize,
    }
    masked_model = type(model).from_config(config)
    masked_model.set_weights(model.get_weights())
    return masked_model


def layer_attention_figures(run: AnalyzedRun) -> list[Figure]:
    """Weights of encoder states in decoder blocks; BLEU with one masked."""
    figures = layer_weight_figures(run.model)
    if not figures:
        return []
    return [*figures, *_masked(run, figures[0].row_names[::-1])]


def layer_weight_figures(model: keras.Model) -> list[HeatMap]:
    """Weights of encoder states; none without fine-grained layer attention."""
    fusion = getattr(model, "encoder_fusion", None)
    if not isinstance(fusion, FineGrainedLayerAttention):
        return []
    weights = layer_attention_heat_map(fusion)
    states = ["embeddings", *map(str, range(1, len(weights)))]
    heat_map = HeatMap(
        name="layer_attention",
        title="Encoder states that each decoder block uses",
        caption="Weight of an encoder state, mean over channels (Liu et al., "
        "2021, Figure 1); every column sums to 1.",
        # The top of the encoder at the top, as in the paper.
        values=weights[::-1],
        row_names=states[::-1],
        column_names=[str(m) for m in range(1, weights.shape[1] + 1)],
        row_label="encoder state",
        column_label="decoder block",
        unit="weight",
    )
    return [heat_map]


def _masked(run, states):
    """Relative change of BLEU and of length with each state masked."""
    whole = run.bleu(run.translations).value
    length = _num_tokens(run, run.translations)
    bleu, lengths = [], []
    for number in range(len(states)):
        lines = run.translate_by(mask_encoder_layer(run.model, number))
        score, tokens = run.bleu(lines).value, _num_tokens(run, lines)
        # A model that translates nothing right has no relative change.
        bleu.append(100 * (score / whole - 1) if whole else float("nan"))
        lengths.append(100 * (tokens / length - 1) if length else float("nan"))
    return [
        Bars(
            name="masked_encoder_layer",
            title="One encoder state masked",
            caption="The state's weight is set to zero in all decoder blocks "
            f"(Liu et al., 2021, Figure 2). Unmasked: BLEU {whole:.1f}, "
            f"{length:,} tokens for {len(run.sources)} sentences.",
            names=states,
            series={"BLEU": bleu, "length": lengths},
            y_label="relative change (%)",
            x_label="masked encoder state",
        )
    ]


def _num_tokens(run, lines):
    return sum(map(len, run.translator.target_tokenizer.encode(lines)))
