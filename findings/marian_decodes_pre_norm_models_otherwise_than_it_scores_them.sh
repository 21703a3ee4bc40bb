#!/usr/bin/env bash
# Marian's decoder gives the tokens of a translation other probabilities than its
# scorer does, if the model has its norms before the sub-layers.
#
# With `--transformer-preprocess n --transformer-postprocess da` training and
# scoring, which see a whole sentence, normalize queries, keys and values of a
# self-attention. The decoder sees one token at a time: at the first one it does
# the same, and from the second one on it takes keys and values without the norm.
# So a model that was trained well translates badly, and nothing says so. In
# `LayerAttention` (src/models/transformer.h) keys and values are normalized if
# they are the same object as the queries' input, and in the decoder they are that
# input behind those of earlier tokens. Models with norms behind the sub-layers
# ("dan") are not concerned.
#
# Two small models are trained to copy lines of words, with either place of the
# norms, and translate ten lines. `pymarian score` then scores the translations.
#
# Seen with Python 3.11, pymarian 1.12.42 on Linux without a GPU: the first tokens
# have the same log-probability everywhere. The later ones of a line differ by
# 0.00001 together with norms behind, and by up to 0.33 nats with norms before;
# after 200 updates instead of 300 it was up to 10 nats.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pymarian==1.12.42
cd "$work"
cat > compare.py <<'PYTHON'
import random
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pymarian

print("pymarian", version("pymarian"))
words = [f"word{n}" for n in range(20)]
draw = random.Random(1)
lines = [" ".join(draw.choices(words, k=draw.randint(3, 6))) for _ in range(2000)]
Path("train").write_text("\n".join(lines) + "\n")
entries = ['"</s>"', '"<unk>"', *words]
Path("vocab.yml").write_text(
    "".join(f"{entry}: {n}\n" for n, entry in enumerate(entries))
)
Path("sources").write_text("\n".join(lines[:10]) + "\n")
VOCABS = ["vocab.yml", "vocab.yml"]
OPTIONS = dict(vocabs=VOCABS, cpu_threads=1, workspace=256, quiet="")


def word_scores(line):
    scores = line.split("WordScores=")[1].split("|||")[0]
    return [float(score) for score in scores.split()]


def largest_differences(name, **operations):
    """Of the first tokens, and of the other tokens of a line together."""
    model = f"{name}.npz"
    pymarian.Trainer(
        **OPTIONS,
        **operations,
        model=model,
        type="transformer",
        train_sets=["train", "train"],
        dim_emb=32,
        transformer_dim_ffn=64,
        transformer_heads=2,
        enc_depth=1,
        dec_depth=1,
        tied_embeddings_all="",
        learn_rate=0.003,
        mini_batch=32,
        after="300u",
        overwrite="",
        seed=1,
    ).train()
    translator = pymarian.Translator(
        **OPTIONS, models=model, beam_size=1, n_best="", word_scores=""
    )
    found = "\n".join(translator.translate(lines[:10])).splitlines()
    texts = [line.split("|||")[1].strip() for line in found]
    Path("translations").write_text("\n".join(texts) + "\n")
    command = [sys.executable, "-m", "pymarian", "score", "--model", model]
    command += ["--train-sets", "sources", "translations", "--vocabs", *VOCABS]
    command += ["--word-scores", "--quiet", "--cpu-threads", "1"]
    scored = subprocess.run(command, capture_output=True, text=True, check=True)
    first, others = [], []
    for one, other in zip(found, scored.stdout.splitlines(), strict=True):
        pairs = list(zip(word_scores(one), word_scores(other)))
        first.append(abs(pairs[0][0] - pairs[0][1]))
        others.append(abs(sum(a - b for a, b in pairs[1:])))
    print(f"{name}: first tokens {max(first):.5f}, others {max(others):.5f}")
    return max(first), max(others)


behind = largest_differences("norm_behind", transformer_postprocess="dan")
before = largest_differences(
    "norm_before",
    transformer_preprocess="n",
    transformer_postprocess="da",
    transformer_postprocess_top="n",
)
if max(*behind, before[0]) > 1e-3 or before[1] < 0.05:
    sys.exit("Marian behaves otherwise now")
PYTHON
"$work/venv/bin/python" compare.py 2> "$work/log" || { cat "$work/log"; exit 1; }
