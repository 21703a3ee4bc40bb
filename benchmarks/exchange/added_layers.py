"""Measures what a layer does to a trained model before it is trained itself.

    python benchmarks/exchange/added_layers.py

A layer of a paper is put into a slot of the trained model that comes with the
package, all weights that both models have are copied, and the model predicts
the test set of the embedded corpus. A row for each layer is appended to
`results/added_layers.csv`: its new weights, the cross-entropy per token without
and with it, and by how much the log-probability of a token of a reference
changes at most. 0 stands for a layer that changes nothing at the start.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance

RESULTS = Path(__file__).parent / "results" / "added_layers.csv"
MODEL = "transformer_tiny.demo_de_en"
CORPUS = "demo_de_en"
BATCH = 64
# The slot, the layer and its arguments, as in a recipe.
LAYERS = [
    ("layer_diversity", "LayerDiversity", {"weight": 1.0}),
    ("source_embedding_layer", "ContextualizedEmbedding", {"num_roles": 16}),
    (
        "source_embedding_layer",
        "ContextualizedEmbedding",
        {"num_roles": 16, "output_initializer": "zeros"},
    ),
    (
        "source_embedding_layer",
        "RoleInteraction",
        {"num_roles": 16, "assignment": "softmax"},
    ),
    (
        "source_embedding_layer",
        "RoleInteraction",
        {
            "num_roles": 16,
            "assignment": "softmax",
            "output_initializer": "zeros",
        },
    ),
    (
        "encoder_self_attention",
        "HybridSelfAttention",
        {"fusion": "sum"},
    ),
    (
        "encoder_self_attention",
        "HybridSelfAttention",
        {"fusion": "gated_sum"},
    ),
    ("encoder_aggregation", "LayerAggregation", {"strategy": "dense"}),
    ("encoder_aggregation", "LayerAggregation", {"strategy": "linear"}),
    ("encoder_aggregation", "LayerAggregation", {"strategy": "iterative"}),
    ("encoder_aggregation", "LayerAggregation", {"strategy": "hierarchical"}),
    ("encoder_fusion", "FineGrainedLayerAttention", {}),
    ("output_fusion", "SurfaceFusion", {"mode": "soft"}),
    ("output_fusion", "SurfaceFusion", {"mode": "hard"}),
]


def main(arguments: list[str] | None = None) -> int:
    """Measures each layer and appends its row; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, help="use the first N")
    parser.add_argument("--layers", type=int, help="use the first N")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    from keras_deepnmt.commands.terminal.quiet_import import import_backend

    import_backend()
    from keras_deepnmt import Translator
    from keras_deepnmt.data.corpora import CorpusOptions
    from keras_deepnmt.data.known_corpora.finding import find_corpus_files
    from keras_deepnmt.training.transfer import copy_shared_weights

    origin = provenance("keras", "tensorflow")
    translator = Translator.from_preset(MODEL, compiled=False)
    files = find_corpus_files(CorpusOptions(name=CORPUS), "test", None)
    sources, references = (
        file.read_text(encoding="utf-8").splitlines()[: options.sentences]
        for file in (files.source, files.target)
    )
    arrays = _arrays(translator, sources, references)
    plain = translator.model
    before = _log_probs(plain, *arrays)
    config = plain.get_config()
    for slot, name, arguments in LAYERS[: options.layers]:
        model = type(plain)(**{**config, slot: {name: arguments}})
        report = copy_shared_weights(plain, model)
        after = _log_probs(model, *arrays)
        row = {
            **origin,
            "model": MODEL,
            "slot": slot,
            "layer": name,
            "arguments": " ".join(f"{k}={v}" for k, v in arguments.items()),
            "shared": sum(report.shared.values()),
            "fresh": sum(report.fresh.values()),
            "sentences": len(sources),
            "cross_entropy_plain": round(-float(before.mean()), 4),
            "cross_entropy": round(-float(after.mean()), 4),
            "largest_difference": f"{abs(after - before).max():.1e}",
        }
        append_row(options.output, row)
    return 0


def _arrays(translator, sources, references):
    """Ids of sources and references, and the references moved by one place."""
    import numpy as np

    from keras_deepnmt.masks import BEGIN_ID

    source, target = (
        tokenizer.encode(texts)
        for tokenizer, texts in (
            (translator.source_tokenizer, sources),
            (translator.target_tokenizer, references),
        )
    )
    source, target = _padded(source), _padded(target)
    begin = np.full((len(target), 1), BEGIN_ID)
    inputs = np.concatenate([begin, target[:, :-1]], axis=1)
    return source, np.where(target == 0, 0, inputs), target


def _padded(rows):
    import numpy as np

    padded = np.zeros((len(rows), max(map(len, rows))), "int32")
    for row, ids in zip(padded, rows, strict=True):
        row[: len(ids)] = ids
    return padded


def _log_probs(model, source, inputs, target):
    """Natural log-probabilities of all tokens of the references, `(N,)`."""
    import keras
    import numpy as np

    found = []
    for first in range(0, len(source), BATCH):
        rows = slice(first, first + BATCH)
        given = {"source_ids": source[rows], "target_ids": inputs[rows]}
        logits = model(given, training=False)
        log_probs = np.asarray(keras.ops.log_softmax(logits))
        chosen = np.take_along_axis(log_probs, target[rows][..., None], -1)
        found.append(chosen[..., 0][target[rows] != 0])
    return np.concatenate(found)


if __name__ == "__main__":
    sys.exit(main())
