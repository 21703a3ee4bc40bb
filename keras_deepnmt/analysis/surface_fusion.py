"""How much a prediction comes from source embeddings (Liu et al., 2021)."""

from keras_deepnmt.analysis.analyzed_run import AnalyzedRun
from keras_deepnmt.analysis.figure import Bars, Figure

_END = "/share"


def surface_share_figures(run: AnalyzedRun) -> list[Figure]:
    """Where the predictions of the first sentence come from, with a gate."""
    name = next((name for name in run.names if name.endswith(_END)), None)
    if name is None:
        return []
    share = run.record([name], [0])[name][0, :, 0]
    return [
        Bars(
            name="surface_share",
            title="Where each prediction comes from",
            caption="Share of the decoder's own prediction (the gate of the "
            "surface fusion); the rest comes from the source embeddings.",
            names=run.target_tokens(0),
            series={
                "decoder": share.tolist(),
                "source embeddings": (1.0 - share).tolist(),
            },
            y_label="share",
            x_label="label",
        )
    ]
