"""Translates with CTranslate2, from the files of `decoding_weights.py`.

It converts them by itself, since `decoding_engines.py` runs in an environment
without this package, whose `exchange.export_ctranslate2` does the same.
"""

import numpy as np

from benchmarks.speed.measuring.engines.rows_of_ids import (
    END_ID,
    NUM_CORES,
    UNKNOWN_ID,
    read_sizes,
)


class CTranslate2:
    """CTranslate2 with a compute type."""

    packages = ("ctranslate2",)

    def __init__(self, folder, compute_type):
        import ctranslate2

        self.translator = ctranslate2.Translator(
            str(folder / "ctranslate2"),
            compute_type=compute_type,
            inter_threads=1,
            intra_threads=NUM_CORES,
        )

    @staticmethod
    def build(folder):
        from ctranslate2.specs import TransformerSpec

        sizes, arrays = read_sizes(folder), dict(np.load(folder / "model.npz"))
        spec = TransformerSpec.from_config(
            (sizes["num_encoder_layers"], sizes["num_decoder_layers"]),
            sizes["num_heads"],
            pre_norm=sizes["normalize_first"],
        )
        for side in ("encoder", "decoder"):
            stack = getattr(spec, side)
            stack.scale_embeddings = True
            stack.position_encodings.encodings = arrays["positions"]
            if sizes["normalize_first"]:
                _set_norm(stack.layer_norm, arrays, side)
            for number, layer in enumerate(stack.layer):
                _set_layer(layer, arrays, f"{side}.{number}")
        spec.encoder.embeddings[0].weight = arrays["embedding"]
        spec.decoder.embeddings.weight = arrays["embedding"]
        spec.decoder.projection.weight = arrays["embedding"]
        spec.config.layer_norm_epsilon = sizes["layer_norm_epsilon"]
        vocabulary = ["<blank>", "<unk>", "<s>", "</s>"]
        vocabulary += map(_token, range(4, sizes["vocabulary_size"]))
        spec.register_source_vocabulary(vocabulary)
        spec.register_target_vocabulary(vocabulary)
        spec.validate()
        spec.optimize()
        (folder / "ctranslate2").mkdir()
        spec.save(str(folder / "ctranslate2"))

    def prepare(self, case):
        """Returns what `translate` takes."""
        return case | {"sources": [_tokens(row) for row in case["sources"]]}

    def translate(self, case):
        """Translates; returns the rows of ids without the end id."""
        results = self.translator.translate_batch(
            case["sources"],
            max_batch_size=case["batch_size"],
            beam_size=case["num_beams"],
            min_decoding_length=case["steps"] or 1,
            max_decoding_length=case["steps"] or case["max_length"],
            length_penalty=case["length_penalty"],
            suppress_sequences=[["<blank>"], ["<s>"]],
        )
        return [
            [_token_id(token) for token in result.hypotheses[0]]
            for result in results
        ]

    def score(self, sources, targets):
        """Returns the sums of log-probabilities of targets, end included."""
        results = self.translator.score_batch(
            [_tokens(row) for row in sources],
            [_tokens(row) for row in targets],
        )
        return [float(np.sum(result.log_probs)) for result in results]


def _token(token_id):
    return f"t{token_id}"


def _tokens(row):
    special = {UNKNOWN_ID: "<unk>", END_ID: "</s>"}
    return [special.get(n) or _token(n) for n in row]


def _token_id(token):
    return UNKNOWN_ID if token == "<unk>" else int(token[1:])


def _set_norm(spec, arrays, name):
    spec.gamma = arrays[f"{name}.norm.gamma"]
    spec.beta = arrays[f"{name}.norm.beta"]


def _set_linear(spec, arrays, name, parts):
    """Sets a product with the matrices of several parts side by side."""
    kernels = [arrays[f"{name}.{part}.kernel"].T for part in parts]
    spec.weight = np.ascontiguousarray(np.concatenate(kernels))
    spec.bias = np.concatenate(
        [arrays[f"{name}.{part}.bias"] for part in parts]
    )


def _set_layer(layer, arrays, name):
    together = [["query", "key", "value"], ["output"]]
    _set_norm(layer.self_attention.layer_norm, arrays, f"{name}.attention")
    for spec, parts in zip(layer.self_attention.linear, together, strict=True):
        _set_linear(spec, arrays, f"{name}.attention", parts)
    if hasattr(layer, "attention"):
        cross = f"{name}.cross_attention"
        apart = [["query"], ["key", "value"], ["output"]]
        _set_norm(layer.attention.layer_norm, arrays, cross)
        for spec, parts in zip(layer.attention.linear, apart, strict=True):
            _set_linear(spec, arrays, cross, parts)
    network = f"{name}.feed_forward"
    _set_norm(layer.ffn.layer_norm, arrays, network)
    _set_linear(layer.ffn.linear_0, arrays, network, ["intermediate"])
    _set_linear(layer.ffn.linear_1, arrays, network, ["output"])
