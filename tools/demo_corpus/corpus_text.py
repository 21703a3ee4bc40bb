"""The text of the corpus file: pairs, labels of roles, and alignments."""

from itertools import islice
from pathlib import Path

from tools.demo_corpus.pairs import generate_pairs

_ALIGNMENTS = Path(__file__).with_name("alignments.tsv")


def corpus_text(num_pairs: int) -> str:
    """Returns the lines of the corpus file, with tabs between the columns.

    The columns are the German sentence, the English one, the labels of all
    "der" as `index:function`, and the alignment by hand, which is empty for all
    pairs but those of `alignments.tsv`.

    Args:
        num_pairs: Number of lines.
    """
    alignments = {}
    for line in _ALIGNMENTS.read_text(encoding="utf-8").splitlines():
        source, target, alignment = line.split("\t")
        alignments[source, target] = alignment
    lines = []
    for pair in islice(generate_pairs(), num_pairs):
        roles = (f"{role.token_index}:{role.function}" for role in pair.roles)
        alignment = alignments.get((pair.source, pair.target), "")
        columns = (pair.source, pair.target, " ".join(roles), alignment)
        lines.append("\t".join(columns) + "\n")
    return "".join(lines)
