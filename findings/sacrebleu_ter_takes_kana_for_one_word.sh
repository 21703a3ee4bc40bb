#!/usr/bin/env bash
# sacreBLEU's TER with `asian_support` takes a run of Japanese kana for one word.
#
# `asian_support` is to put spaces between the characters of scripts without
# spaces. It does so for Chinese characters. The rules for kana (Tercom
# normalization, `_normalize_asian`) hold only at the beginning of a line, where
# there is nothing to separate, so that a line of kana stays whole: one wrong
# kana in seven gives a TER of 100, one wrong Chinese character in six 16.67.
#
# What users can do: for Japanese, prefer BLEU with `tokenize="ja-mecab"` and
# chrF, and compare TER only between systems with the same signature.
#
# Seen with Python 3.11, sacrebleu 2.6.0.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q sacrebleu==2.6.0
"$work/venv/bin/python" - <<'PYTHON'
from sacrebleu.metrics import TER

ter = TER(normalized=True, asian_support=True)


def score(hypothesis, reference):
    return round(ter.corpus_score([hypothesis], [[reference]]).score, 2)


words = ter.tokenizer("これはペンです"), ter.tokenizer("我买了一条船")
scores = score("これはペンです", "これはペンでし"), score("我买了一条船", "我买了一条河")
print(*words, *scores)
assert words == ("これはペンです", "我 买 了 一 条 船")
assert scores == (100.0, 16.67)
PYTHON
