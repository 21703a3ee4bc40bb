#!/usr/bin/env bash
# The scores of CTranslate2's search are not the log-probabilities of what it
# found wherever a token was forbidden, and by default one is.
#
# `translate_batch(return_scores=True)` sums log-probabilities of the tokens. With
# `suppress_sequences`, `disable_unk`, `min_decoding_length` or
# `no_repeat_ngram_size` the forbidden tokens leave the softmax, and the others
# share their probability: the score of a translation is higher than the sum of
# what `score_batch` gives for the same tokens, and scores of one translation with
# and without such an option cannot be compared. `min_decoding_length` is 1 by
# default, which forbids the end token at the first step, so that this holds for
# every translation that the defaults find. Only with 0 are both equal.
#
# fairseq and Transformers (unless `renormalize_logits` is set) forbid a token by
# an infinite penalty after the softmax, and leave the others as they are.
#
# What a program can do: rank by the sum of `score_batch` where scores of several
# searches or models are compared.
#
# Seen with Python 3.11, ctranslate2 4.8.5, numpy 2.4.6 on Linux.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q ctranslate2==4.8.5 numpy==2.4.6
cat > "$work/show.py" <<'PYTHON'
import math
import sys
from pathlib import Path

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec

print("ctranslate2", ctranslate2.__version__)
pieces = ["<unk>", "<s>", "</s>", "a", "b", "c", "d"]
draw = np.random.default_rng(6)
spec = TransformerSpec.from_config(1, 2)


def weights(rows, columns=None):
    size = (rows,) if columns is None else (rows, columns)
    return draw.normal(size=size).astype("float32") / math.sqrt(size[-1])


def fill_linear(linear, rows, columns=8):
    linear.weight, linear.bias = weights(rows, columns), weights(rows)


def fill_norm(norm):
    norm.gamma, norm.beta = np.ones(8, "float32"), np.zeros(8, "float32")


def fill_attention(attention, sizes):
    fill_norm(attention.layer_norm)
    for linear, rows in zip(attention.linear, sizes):
        fill_linear(linear, rows)


def fill_stack(stack, embeddings, is_decoder):
    embeddings.weight = weights(len(pieces), 8) * 4
    stack.position_encodings.encodings = np.zeros((32, 8), "float32")
    fill_norm(stack.layer_norm)
    layer = stack.layer[0]
    fill_attention(layer.self_attention, (24, 8))
    if is_decoder:
        fill_attention(layer.attention, (8, 16, 8))
    fill_norm(layer.ffn.layer_norm)
    fill_linear(layer.ffn.linear_0, 16)
    fill_linear(layer.ffn.linear_1, 8, 16)


fill_stack(spec.encoder, spec.encoder.embeddings[0], False)
fill_stack(spec.decoder, spec.decoder.embeddings, True)
fill_linear(spec.decoder.projection, len(pieces))
spec.register_source_vocabulary(pieces)
spec.register_target_vocabulary(pieces)
spec.validate()
spec.optimize()
Path(sys.argv[1]).mkdir()
spec.save(sys.argv[1])

translator = ctranslate2.Translator(sys.argv[1])
source = [["a", "b", "c"]]
LONGEST = 8
cases = {
    "nothing forbidden": {"min_decoding_length": 0},
    "the default, min_decoding_length=1": {},
    "suppress_sequences": {"suppress_sequences": [["a"], ["c"]]},
    "disable_unk": {"disable_unk": True},
    "min_decoding_length": {"min_decoding_length": 4},
    "no_repeat_ngram_size": {"no_repeat_ngram_size": 1},
}
differences = {}
for name, options in cases.items():
    found = translator.translate_batch(
        source,
        beam_size=4,
        length_penalty=0,
        max_decoding_length=LONGEST,
        return_scores=True,
        **options,
    )[0]
    target = found.hypotheses[0]
    scored = translator.score_batch(source, [target])[0].log_probs
    if len(target) == LONGEST:
        scored = scored[:-1]  # no end token was searched
    differences[name] = found.scores[0] - sum(scored)
    print(f"{name}: {' '.join(target)}")
    print(f"  search {found.scores[0]:.4f}, score_batch {sum(scored):.4f}")
same = abs(differences.pop("nothing forbidden")) < 1e-4
if not same or min(differences.values()) < 0.01:
    sys.exit("It is no longer so.")
PYTHON
"$work/venv/bin/python" "$work/show.py" "$work/model"
