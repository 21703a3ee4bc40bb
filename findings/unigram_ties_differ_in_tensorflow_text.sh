#!/usr/bin/env bash
# A unigram SentencePiece model gives other ids in TensorFlow Text than in
# SentencePiece where two ways to cut a text have the same probability.
#
# The pieces "." and ".." occur in the two orders "." ".." and ".." ".". The sums
# of their scores are equal on paper; which of them is larger after rounding
# depends on the order in which a version of SentencePiece adds floats.
# TensorFlow Text 2.21.1 has an older version inside than sentencepiece 0.2.3. A
# model that was trained on ids of one gets ids of the other when it is served
# as a SavedModel with its tokenizer in the graph.
#
# What a program can do: round the scores of a unigram model to multiples of a
# power of two, such as 1/256, when it is trained. Sums of them are then exact,
# and both libraries cut alike.
#
# Seen with Python 3.11, sentencepiece 0.2.3, tensorflow-text 2.21.1,
# tensorflow 2.21.0 on Linux: for "a..." the ids 3 6 4 5 and 3 6 5 4; with
# rounded scores the same ones.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q sentencepiece==0.2.3 protobuf \
  tensorflow==2.21.0 tensorflow-text==2.21.1
cat > "$work/cut.py" <<'PYTHON'
import sentencepiece
import tensorflow_text
from sentencepiece import sentencepiece_model_pb2 as files

Piece = files.ModelProto.SentencePiece
PIECES = (
    ("<unk>", 0.0, Piece.UNKNOWN),
    ("<s>", 0.0, Piece.CONTROL),
    ("</s>", 0.0, Piece.CONTROL),
    ("\u2581", -2.1, Piece.NORMAL),
    (".", -3.3, Piece.NORMAL),
    ("..", -4.7, Piece.NORMAL),
    ("a", -1.23, Piece.NORMAL),
    ("b", -2.77, Piece.NORMAL),
)


def ids(is_rounded):
    """The ids of a text in SentencePiece and in TensorFlow Text."""
    model = files.ModelProto()
    for piece, score, kind in PIECES:
        if is_rounded:
            score = round(score * 256) / 256
        model.pieces.add(piece=piece, score=score, type=kind)
    model.trainer_spec.model_type = files.TrainerSpec.UNIGRAM
    model.normalizer_spec.name = "identity"
    content = model.SerializeToString()
    alone = sentencepiece.SentencePieceProcessor(model_proto=content)
    in_graph = tensorflow_text.SentencepieceTokenizer(model=content)
    return alone.encode("a..."), in_graph.tokenize("a...").numpy().tolist()


print(*ids(False), *ids(True))
assert ids(False) == ([3, 6, 4, 5], [3, 6, 5, 4])
first, second = ids(True)
assert first == second
PYTHON
TF_CPP_MIN_LOG_LEVEL=3 "$work/venv/bin/python" "$work/cut.py" 2> "$work/errors" || {
  cat "$work/errors"
  exit 1
}
