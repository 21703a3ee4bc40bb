"""Figures of what a translation needs from its source."""

from keras_deepnmt.analysis import source_ablation
from keras_deepnmt.figures.analyzed_run import AnalyzedRun
from keras_deepnmt.figures.figure import Figure, HeatMap
from keras_deepnmt.figures.of_runs.attention import short_sentences


def ablation_figures(run: AnalyzedRun) -> list[Figure]:
    """What each label loses if a word of the source is hidden."""
    rows = short_sentences(run)
    inputs = {side: ids[rows] for side, ids in run.inputs.items()}
    losses = source_ablation(run.model, inputs, run.labels[rows])
    figures: list[Figure] = []
    for index, row in enumerate(rows):
        source, target = run.source_tokens(row), run.target_tokens(row)
        figures.append(
            HeatMap(
                name=f"source_ablation_{index + 1}",
                title=f"Loss without a source token, sentence "
                f"{run.rows[row] + 1}",
                caption="Drop of each label's log-probability if a source "
                "token is replaced by the unknown token.",
                # The end of the source is never hidden.
                values=losses[index, : len(target), : len(source) - 1],
                row_names=target,
                column_names=source[:-1],
                row_label="label",
                column_label="hidden token",
                unit="loss of log-probability (nats)",
            )
        )
    return figures
