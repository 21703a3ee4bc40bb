"""Figures of dense stacks: the earlier layers that each layer reads."""

from keras_deepnmt.analysis import dense_layer_norms
from keras_deepnmt.figures.analyzed_run import AnalyzedRun
from keras_deepnmt.figures.figure import Figure, HeatMap


def dense_layer_figures(run: AnalyzedRun) -> list[Figure]:
    """The norm of the weights for each earlier layer, for each stack."""
    figures: list[Figure] = []
    for side in ("encoder", "decoder"):
        blocks = getattr(run.model, f"{side}_blocks")
        kinds = {getattr(block, "connection", None) for block in blocks}
        if "dense" not in kinds:
            continue
        names, norms = dense_layer_norms(blocks)
        figures.append(
            HeatMap(
                name=f"{side}_dense_layers",
                title=f"Earlier layers that {side} blocks read",
                caption="Norm of the part of a block's kernel that multiplies "
                "an earlier state, per input channel (Shen et al., 2018, "
                "Eq. 6).",
                # The last block at the top reads all; its output is not read.
                values=norms[:, :-1] if _last_is_unread(norms) else norms,
                row_names=[str(n) for n in range(1, len(norms) + 1)],
                column_names=names[:-1] if _last_is_unread(norms) else names,
                row_label=f"{side} block",
                column_label="state",
                unit="norm",
            )
        )
    return figures


def _last_is_unread(norms):
    return bool((norms[:, -1] != norms[:, -1]).all())
