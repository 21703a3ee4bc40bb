"""Which branches of hybrid self-attention a model uses (Song et al., 2018)."""

import copy
import re
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_deepnmt.analysis.analyzed_run import AnalyzedRun
from keras_deepnmt.analysis.figure import Bars, Figure

_CLASS = "HybridSelfAttention"
_SIDES = ("encoder", "decoder")


def gate_shares(
    gates: Mapping[str, np.ndarray], mask: np.ndarray | None = None
) -> dict[str, float]:
    """Averages the gates of each branch and divides them by their sum.

        share_i = mean over tokens and channels of G_i(H_i) / (sum over all i)

    with the gates of Song et al. (2018, Eq. 14).

    Args:
        gates: Arrays `(B, T, D)` by branch, such as the tensors
            `encoder_block_1/attention/gate_*` of `record`.
        mask: Bool array `(B, T)`, `True` = real token. Defaults to all.

    Returns:
        The share of each branch, in [0, 1]; they sum to 1.

    Raises:
        ValueError: if there is no gate.

    Example:
    >>> gates = {"global": np.full((1, 2, 3), 0.6)}
    >>> gate_shares(gates | {"local_2": np.full((1, 2, 3), 0.2)})
    {'global': 0.75, 'local_2': 0.25}
    """
    if not gates:
        raise ValueError(
            "`gates` must have at least one branch. Received: none. A fusion "
            "other than `gated_sum` has no gates."
        )
    means = {}
    for name, gate in gates.items():
        gate = np.asarray(gate, "float64")
        if mask is not None:
            gate = gate[np.asarray(mask, "bool")]
        means[name] = gate.mean()
    total = sum(means.values())
    return {name: float(mean / total) for name, mean in means.items()}


def branch_names(model: keras.Model) -> dict[str, list[str]]:
    """Lists the branches of hybrid self-attention in each stack of a model.

    Args:
        model: `models.Transformer`, or another model of this package.

    Returns:
        Dict `{"encoder", "decoder"}` of names as in
        `HybridSelfAttention.branch_names`; empty lists for other attention.

    Example:
    >>> attention = keras_deepnmt.layers.HybridSelfAttention(2, ["forward"])
    >>> model = keras_deepnmt.models.Transformer(
    ...     11, 13, 8, 16, 2, 1, 1, encoder_self_attention=attention
    ... )
    >>> branch_names(model)
    {'encoder': ['forward'], 'decoder': []}
    """
    config = model.get_config()
    return {
        side: [
            name
            for attention in _attention_configs(_slot(config, side))
            for name in _names(attention)
        ]
        for side in _SIDES
    }


def without_branch(model: keras.Model, branch: str) -> keras.Model:
    """Copies a model and switches off one branch of hybrid self-attention.

    The branch is left out of the fusion in all layers that have it; everything
    else is as in the original. Translate with the copy and compare the scores.

    Args:
        model: Model with `layers.HybridSelfAttention`. It is not changed.
        branch: Name from `HybridSelfAttention.branch_names`: `"global"`,
            `"forward"`, `"backward"`, or `"local_3"` for the local branch with
            a window of 3 positions.

    Returns:
        A model with the same weights without those of the branch, not compiled.

    Raises:
        ValueError: if no layer of the model has this branch, or a layer has no
            other one.

    Example:
    >>> attention = keras_deepnmt.layers.HybridSelfAttention(2, window=[1, 3])
    >>> model = keras_deepnmt.models.Transformer(
    ...     11, 13, 8, 16, 2, 1, 1, encoder_self_attention=attention
    ... )
    >>> other = without_branch(model, "local_3")
    >>> other.encoder_blocks[0].attention.branch_names
    ('global', 'forward', 'backward', 'local_1')
    """
    config = copy.deepcopy(model.get_config())
    slots = {
        side: list(_attention_configs(_slot(config, side))) for side in _SIDES
    }
    # The place of the branch among those of each side's layers.
    places = {
        side: _remove(attention, branch)
        for side, attentions in slots.items()
        for attention in attentions
    }
    if not any(place is not None for place in places.values()):
        raise ValueError(
            "`branch` must be a branch of a HybridSelfAttention of the model. "
            f"Received: {branch!r}, for {len(places)} such slots of the model."
        )
    smaller = type(model).from_config(config)
    values = {variable.path: variable for variable in model.weights}
    for variable in smaller.weights:
        value = ops.convert_to_numpy(values[variable.path])
        shape = tuple(variable.shape)
        if value.shape != shape:
            # The kernel of a "concat" fusion: a block of D rows a branch.
            side = variable.path.split("_")[0]
            blocks = np.split(value, len(value) // (len(value) - shape[0]))
            value = np.concatenate(
                [*blocks[: places[side]], *blocks[places[side] + 1 :]]
            )
        variable.assign(value)
    return smaller


def _slot(config, side):
    return config.get(f"{side}_self_attention")


def _attention_configs(config: Any):
    """Yields the configs of all hybrid self-attention layers in a config."""
    if isinstance(config, Mapping):
        if config.get("class_name") == _CLASS:
            yield config["config"]
        for value in config.values():
            yield from _attention_configs(value)
    elif isinstance(config, list | tuple):
        for value in config:
            yield from _attention_configs(value)


def _remove(attention, branch):
    """Removes a branch from a layer's config.

    Returns its place among the branches, or `None` if there is no such branch.
    """
    windows = _windows(attention)
    names = _names(attention)
    if branch not in names:
        return None
    if len(names) == 1:
        raise ValueError(
            "`branch` must leave another branch in every layer. Received: "
            f"{branch!r}, the only one of a layer."
        )
    kind, _, window = branch.partition("_")
    if window and len(windows) > 1:
        windows.remove(int(window))
        attention["window"] = windows
    else:
        attention["branches"] = [
            name for name in attention["branches"] if name != kind
        ]
    return names.index(branch)


def _names(attention):
    """The names of a layer's branches, in its order, from its config."""
    names = []
    for kind in attention["branches"]:
        local = [f"local_{window}" for window in _windows(attention)]
        names += local if kind == "local" else [kind]
    return names


def _windows(attention):
    windows = attention["window"]
    return [windows] if isinstance(windows, int) else list(windows)


def branch_figures(run: AnalyzedRun) -> list[Figure]:
    """The share of each branch's gate, and BLEU with a branch switched off."""
    figures = gate_figures(run)
    if branches := _removable_branches(run.model):
        figures.append(_without_branches(run, branches))
    return figures


def _removable_branches(model):
    """Those that are not the only one of a layer."""
    config = model.get_config()
    of_layers = [
        _names(attention)
        for side in _SIDES
        for attention in _attention_configs(_slot(config, side))
    ]
    return [
        branch for branch in _all_branches(model) if [branch] not in of_layers
    ]


def _all_branches(model):
    return list(dict.fromkeys(sum(branch_names(model).values(), start=[])))


def gate_figures(run: AnalyzedRun) -> list[Figure]:
    """The share of each branch's gate; none for a model without gates."""
    branches = _all_branches(run.model)
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
