"""Figures of layer attention: encoder states that the decoder uses."""

from keras_deepnmt.analysis import layer_attention_heat_map, mask_encoder_layer
from keras_deepnmt.figures.analyzed_run import AnalyzedRun
from keras_deepnmt.figures.figure import Bars, Figure, HeatMap
from keras_deepnmt.layers import FineGrainedLayerAttention


def layer_attention_figures(run: AnalyzedRun) -> list[Figure]:
    """Weights of encoder states in decoder blocks; BLEU with one masked."""
    fusion = getattr(run.model, "encoder_fusion", None)
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
    return [heat_map, *_masked(run, states)]


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
