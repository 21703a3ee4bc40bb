#!/usr/bin/env bash
# MarianMT with separate vocabularies cannot be saved and loaded where their sizes
# differ, and what `save_pretrained` writes does not hold the positions.
#
# `MarianConfig` has `decoder_vocab_size` for models whose sides have vocabularies
# of their own (`share_encoder_decoder_embeddings=False`). The output layer has
# that size, but the decoder's embedding is a copy of the encoder's, with
# `vocab_size` rows: weights of the right shape are refused when they are loaded,
# and tying the two leaves an embedding of the wrong size.
#
# `from_pretrained` takes the positions from a file that has them, but
# `save_pretrained` leaves them out, and the next `from_pretrained` computes its
# own: a model with other positions computes something else, without a warning.
#
# What a program can do: fill up the smaller vocabulary with pieces that no text
# has, and write the positions itself.
#
# Seen with Python 3.11, transformers 4.57.6, torch 2.13.0 (CPU) on Linux.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q transformers==4.57.6 torch==2.13.0
cat > "$work/show.py" <<'PYTHON'
import sys

import torch
import transformers
from transformers import MarianConfig, MarianMTModel

print("transformers", transformers.__version__, "torch", torch.__version__)
sizes = dict(
    d_model=8,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=8,
    decoder_ffn_dim=8,
    max_position_embeddings=16,
    pad_token_id=0,
    decoder_start_token_id=0,
)
config = MarianConfig(
    vocab_size=11,
    decoder_vocab_size=7,
    share_encoder_decoder_embeddings=False,
    tie_word_embeddings=False,
    **sizes,
)
model = MarianMTModel(config)
rows = model.model.decoder.embed_tokens.weight.shape[0]
print("decoder_vocab_size 7, rows of the decoder's embedding:", rows)

model = MarianMTModel(MarianConfig(vocab_size=11, **sizes)).eval()
with torch.no_grad():
    for side in (model.model.encoder, model.model.decoder):
        side.embed_positions.weight.mul_(0.5)
model.save_pretrained(sys.argv[1])
again = MarianMTModel.from_pretrained(sys.argv[1]).eval()
change = again.model.encoder.embed_positions.weight
change = (change - model.model.encoder.embed_positions.weight).abs().max()
print("largest difference of a position after saving and loading:", float(change))
if rows != 11 or change < 0.1:
    sys.exit("It is no longer so.")
PYTHON
"$work/venv/bin/python" "$work/show.py" "$work/model"
