#!/usr/bin/env bash
# sacreBLEU's bootstrap interval of chrF raises a TypeError on weak translations.
#
# A corpus of which a bootstrap sample can have no character n-gram in common
# with the references has a chrF, but `corpus_score(..., n_bootstrap=1000)` ends
# with "don't know how to coerce float and float32": the score of such a sample
# is a Python float, those of the others are numpy.float32, and
# `statistics.mean` takes no list of both. It is the first evaluation of a model
# that has hardly been trained, and of short test sets. BLEU and TER of the same
# texts have intervals.
#
# What users can do: leave out the interval (`n_bootstrap=1`) or resample by
# themselves.
#
# Seen with Python 3.11, sacrebleu 2.6.0, numpy 2.3.5.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q sacrebleu==2.6.0 numpy==2.3.5
"$work/venv/bin/python" - <<'PYTHON'
from sacrebleu.metrics import BLEU, CHRF, TER

hypotheses = ["a dog"] + ["mm nn"] * 6
references = [["a dog"] + ["xx yy"] * 6]

print(CHRF().corpus_score(hypotheses, references))
for metric in (BLEU(effective_order=True), TER()):
    print(metric.corpus_score(hypotheses, references, n_bootstrap=1000))
try:
    CHRF().corpus_score(hypotheses, references, n_bootstrap=1000)
except TypeError as error:
    seen = f"TypeError: {error}"
else:
    seen = "no error"
print(seen)
assert seen == "TypeError: don't know how to coerce float and float32"
PYTHON
