#!/usr/bin/env bash
# eole leaves a training pair out of a batch if the batch has its source already,
# even if the translation is another one.
#
# `DynamicDatasetIter.batch_iter` of eole 0.6.4 keeps the sources that a batch has
# seen, and skips a pair with one of them, in training alone and without a
# message. Pairs are sorted by length before they are cut into batches, so that
# equal sources mostly meet in one batch: of a corpus with several translations of
# a sentence, as image captions and subtitles have, most of these are never
# trained on. OpenNMT-py 3.5.1, from which eole comes, has the same lines.
#
# No option turns it off: `_should_deduplicate` looks at the task alone.
#
# Seen with Python 3.11, eole 0.6.4, torch 2.13.0 on Linux: of "good morning"
# with two translations and "good night" with one, a batch of eight has two pairs.
# With three different sources it has three.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q eole==0.6.4 torch==2.13.0
cd "$work"
printf 'guten Morgen\nguten Tag\ngute Nacht\n' > train.de
printf 'good morning\ngood morning\ngood night\n' > same.en
printf 'good morning\ngood day\ngood night\n' > other.en
printf 'good\t1\nmorning\t1\nday\t1\nnight\t1\n' > en.vocab
printf 'guten\t1\nMorgen\t1\nTag\t1\ngute\t1\nNacht\t1\n' > de.vocab
cat > read_batch.py <<'PYTHON'
import sys
from importlib.metadata import version

from eole.config.run import TrainConfig
from eole.constants import CorpusTask
from eole.inputters.dynamic_iterator import build_dynamic_dataset_iter
from eole.inputters.inputter import build_vocab
from eole.transforms import get_transforms_cls, make_transforms

print("eole", version("eole"), "torch", version("torch"))


def first_batch(source):
    corpus = {
        "path_src": source,
        "path_tgt": "train.de",
        "transforms": ["onmt_tokenize"],
    }
    by_spaces = {"mode": "space"}
    config = TrainConfig(
        src_vocab="en.vocab",
        tgt_vocab="de.vocab",
        data={"corpus_1": corpus},
        transforms_configs={
            "onmt_tokenize": {
                "src_subword_type": "none",
                "tgt_subword_type": "none",
                "src_onmttok_kwargs": by_spaces,
                "tgt_onmttok_kwargs": by_spaces,
            }
        },
        training={
            "batch_type": "sents",
            "batch_size": 8,
            "batch_size_multiple": 1,
            # All three pairs, once.
            "bucket_size": 3,
            "num_workers": 0,
            "model_path": "model",
        },
        model={"architecture": "transformer"},
    )
    vocabs = build_vocab(config, {"src": [], "tgt": []})
    classes = get_transforms_cls(["onmt_tokenize"])
    transforms = make_transforms(config, classes, vocabs)
    batches = build_dynamic_dataset_iter(
        config, transforms, vocabs, task=CorpusTask.TRAIN
    )
    batch, _ = next(iter(batches))
    words = vocabs["tgt"].ids_to_tokens
    rows = [" ".join(words[int(i)] for i in row) for row in batch["tgt"]]
    print(source, rows)
    return rows


two = first_batch("same.en")
three = first_batch("other.en")
if len(two) != 2 or len(three) != 3 or any("Tag" in row for row in two):
    sys.exit("eole behaves otherwise now")
PYTHON
"$work/venv/bin/python" read_batch.py 2> "$work/log" || { cat "$work/log"; exit 1; }
