"""Gold alignments that `guided_alignment.py` reads, before it trains."""

import pytest

from benchmarks.quality.guided_alignment import EMBEDDED, main, read_gold
from keras_deepnmt.errors import UserError


def test_gold_alignments_are_read(tmp_path):
    file = tmp_path / "gold.tsv"
    # Some editors write a byte order mark first.
    file.write_text("ein Haus\ta house\t0-0 1?1\n", encoding="utf-8-sig")
    assert read_gold(str(file)) == (
        ("ein Haus",),
        ("a house",),
        ({(0, 0)},),
        ({(1, 1)},),
    )
    assert len(read_gold(EMBEDDED)[0]) == 12


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("ein Haus\ta house\t1-2\n", "line 1.*the link 1-2, and 2 and 2 words"),
        ("ein Haus\ta house\t2?1\n", "line 1.*the link 2-1, and 2 and 2 words"),
        ("a\tb\t0-0\na\tb\n", "line 2.*Received: 2 columns"),
        ("a\tb\t0:0\n", "A link must be two numbers"),
    ],
)
def test_wrong_gold_alignments_are_refused(tmp_path, text, error):
    file = tmp_path / "gold.tsv"
    file.write_text(text)
    with pytest.raises(UserError, match=error):
        read_gold(str(file))


def test_a_mistake_ends_with_a_sentence_before_anything_is_trained(tmp_path):
    words = ["--gold", "nosuch.tsv", "--work-folder", str(tmp_path / "runs")]
    with pytest.raises(SystemExit, match="^error: `--gold` must be a file"):
        main(words)
    assert not (tmp_path / "runs").exists()
