"""Figures of what each layer represents: similarity, diversity, predictions."""

from keras_deepnmt.analysis import (
    layer_diversities,
    layer_lens,
    layer_similarities,
)
from keras_deepnmt.figures.analyzed_run import AnalyzedRun
from keras_deepnmt.figures.figure import Figure, HeatMap, Lines


def similarity_figures(run: AnalyzedRun) -> list[Figure]:
    """CKA and diversity of all pairs of blocks, for each stack."""
    figures: list[Figure] = []
    for side, mask in (
        ("encoder", run.source_mask),
        ("decoder", run.target_mask),
    ):
        names = [
            name
            for name in run.names
            if name.startswith(f"{side}_block_") and name.count("/") == 1
        ]
        states = {
            name.split("/")[0].rsplit("_", 1)[1]: state
            for name, state in run.record(names).items()
        }
        if len(states) < 2:
            continue
        blocks, similarities = layer_similarities(states, mask)
        shared = {
            "row_names": blocks,
            "column_names": blocks,
            "row_label": f"{side} block",
            "column_label": f"{side} block",
            "limits": (0.0, 1.0),
        }
        figures.append(
            HeatMap(
                name=f"{side}_similarity",
                title=f"Similarity of {side} blocks",
                caption="Linear centered kernel alignment (Kornblith et al., "
                "2019) of the outputs; 1: equal up to rotation and scale.",
                values=similarities,
                unit="CKA",
                **shared,
            )
        )
        if len({state.shape for state in states.values()}) == 1:
            figures.append(
                HeatMap(
                    name=f"{side}_diversity",
                    title=f"Diversity of {side} blocks",
                    caption="1 - cos² of the outputs, mean over tokens (Dou "
                    "et al., 2018, Eq. 10); 1: orthogonal.",
                    values=layer_diversities(states, mask)[1],
                    unit="diversity",
                    **shared,
                )
            )
    return figures


def lens_figures(run: AnalyzedRun) -> list[Figure]:
    """What each decoder block would predict, decoded by the output matrix."""
    if not _can_be_projected(run):
        return []
    lens = layer_lens(run.model, run.inputs, run.labels)
    blocks = list(range(1, len(lens) + 1))
    curves = {
        measure: [found[measure] for found in lens.values()]
        for measure in ("log_prob", "accuracy")
    }
    note = (
        "The output of each decoder block, projected as if it were that of "
        "the last one, without layer aggregation and fusion behind the stack."
    )
    return [
        Lines(
            name="layer_lens",
            title="Probability of the labels after each decoder block",
            caption=note,
            series={run.name: (blocks, curves["log_prob"])},
            x_label="decoder block",
            y_label="mean log-probability (nats)",
        ),
        Lines(
            name="layer_lens_accuracy",
            title="Correct labels after each decoder block",
            caption=note,
            series={run.name: (blocks, curves["accuracy"])},
            x_label="decoder block",
            y_label="share of correct labels",
        ),
    ]


def _can_be_projected(run):
    """Whether all decoder blocks have the width that the output reads."""
    return hasattr(run.model, "decoder_norm")
