#!/usr/bin/env bash
# SentencePiece's rule `nfkc` does not compose a letter with two marks unless the
# marks come in one particular order.
#
# In Vietnamese "ậ" is one character, or a letter with a circumflex and a dot
# below in either order. Unicode's NFKC gives the one character for both orders;
# the rule composes only that of the decomposed form (dot below first). So the
# same word has two forms in a vocabulary, and a text that one program writes has
# unknown or rare pieces for a model that was trained on text of another.
#
# What a program can do: normalize with Unicode's own NFKC before SentencePiece,
# or give SentencePiece rules for all orders of the marks of each character.
#
# Seen with Python 3.11, sentencepiece 0.2.3.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q sentencepiece==0.2.3
"$work/venv/bin/python" - <<'PYTHON'
import unicodedata

from sentencepiece import SentencePieceNormalizer

rule = SentencePieceNormalizer(
    rule_name="nfkc", add_dummy_prefix=False, escape_whitespaces=False
)
for text in ("a\u0323\u0302", "a\u0302\u0323"):
    ours, unicode = rule.normalize(text), unicodedata.normalize("NFKC", text)
    print(ascii(text), ascii(ours), ascii(unicode))
assert rule.normalize("a\u0323\u0302") == "\u1ead"
assert rule.normalize("a\u0302\u0323") == "\u00e2\u0323"
assert unicodedata.normalize("NFKC", "a\u0302\u0323") == "\u1ead"
PYTHON
