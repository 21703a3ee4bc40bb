"""Figures of hybrid self-attention: gates, and BLEU without a branch."""

import re

from keras_deepnmt.analysis import branch_names, gate_shares, without_branch
from keras_deepnmt.figures.analyzed_run import AnalyzedRun
from keras_deepnmt.figures.figure import Bars, Figure


def branch_figures(run: AnalyzedRun) -> list[Figure]:
    """The share of each branch's gate, and BLEU with a branch switched off."""
    branches = list(
        dict.fromkeys(sum(branch_names(run.model).values(), start=[]))
    )
    if not branches:
        return []
    figures = _gates(run, branches)
    if len(branches) > 1:
        figures.append(_without_branches(run, branches))
    return figures


def _gates(run, branches):
    by_layer: dict[str, dict[str, str]] = {}
    for name in run.names:
        layer, _, gate = name.partition("/gate_")
        if gate:
            by_layer.setdefault(layer, {})[gate] = name
    if not by_layer:
        return []
    shares = {}
    for layer, names in by_layer.items():
        tensors = run.record(list(names.values()))
        is_source = layer.startswith("encoder")
        shares[_short(layer)] = gate_shares(
            {gate: tensors[name] for gate, name in names.items()},
            run.source_mask if is_source else run.target_mask,
        )
    return [
        Bars(
            name="gate_shares",
            title="Share of each branch's gate",
            caption="Mean gate of a branch (Song et al., 2018, Eq. 14) over "
            "tokens and channels, divided by the sum over the branches.",
            names=list(shares),
            series={
                branch: [of.get(branch, float("nan")) for of in shares.values()]
                for branch in branches
            },
            y_label="share",
            x_label="attention",
        )
    ]


def _without_branches(run, branches):
    whole = run.bleu(run.translations).value
    changes = [
        run.bleu(run.translate_by(without_branch(run.model, branch))).value
        - whole
        for branch in branches
    ]
    return Bars(
        name="without_branch",
        title="BLEU without a branch",
        caption="The branch is left out of the fusion in all layers of the "
        f"trained model. With all branches: BLEU {whole:.1f} on "
        f"{len(run.sources)} sentences.",
        names=branches,
        series={run.name: changes},
        y_label="change of BLEU",
        x_label="branch switched off",
    )


def _short(layer):
    layer = re.sub(r"^(encoder|decoder)_block_(\d+)/attention", r"\1 \2", layer)
    return layer.replace("/", " ").replace("_", " ")
