"""MaxMatch (M²): precision and recall of the edits of corrected text."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation.precision_recall import f_score
from keras_deepnmt.evaluation.scores import check_lengths

_NOTHING = "-NONE-"
# Gold edits may contain words that do not change; so may those of a system.
_MOST_UNCHANGED = 2


@dataclass(frozen=True)
class Edit:
    """A correction of a part of a source sentence.

    Attributes:
        start: Place of the first word that is replaced.
        end: Place after the last one; `start` for an insertion.
        corrections: The words, joined by blanks, that may stand there instead;
            `""` for a deletion.
    """

    start: int
    end: int
    corrections: tuple[str, ...]


@dataclass(frozen=True)
class AnnotatedSentence:
    """A source sentence with the edits of each annotator.

    Attributes:
        words: The words of the source.
        edits: The edits of each annotator; one annotator without edits if the
            sentence is correct.
    """

    words: tuple[str, ...]
    edits: tuple[tuple[Edit, ...], ...]


@dataclass(frozen=True)
class MaxMatchScore:
    """Result of `max_match`, with the counts that it is computed from.

    Attributes:
        correct: Number of edits of the system that are gold edits.
        proposed: Number of edits of the system.
        gold: Number of gold edits.
        beta: Weight of recall relative to precision in `f_score`.
    """

    correct: int
    proposed: int
    gold: int
    beta: float = 0.5

    @property
    def precision(self) -> float:
        """`correct / proposed`, in [0, 1]; 1 without edits."""
        return self.correct / self.proposed if self.proposed else 1.0

    @property
    def recall(self) -> float:
        """`correct / gold`, in [0, 1]; 1 without gold edits."""
        return self.correct / self.gold if self.gold else 1.0

    @property
    def f_score(self) -> float:
        """The F-score, in [0, 1]."""
        return f_score(self.precision, self.recall, self.beta)


def max_match(
    hypotheses: Sequence[str],
    gold: Sequence[AnnotatedSentence],
    beta: float = 0.5,
) -> MaxMatchScore:
    """Scores corrections by MaxMatch (Dahlmeier and Ng, 2012).

    A hypothesis can be reached from its source by many sequences of edits, of
    which some join neighbouring changes, with up to two unchanged words. Of
    these, the one with the most gold edits is scored, and of several the
    shortest. Over all sentences,

        P = correct / proposed,   R = correct / gold,
        F = (1 + beta^2) P R / (beta^2 P + R).

    With several annotators, each sentence is scored by the one that gives the
    highest F-score of the sentences so far.

    Args:
        hypotheses: Corrected sentences, tokenized as the source.
        gold: Source sentences with gold edits; see `read_m2`.
        beta: Weight of recall relative to precision.

    Returns:
        The counts; P, R and F are properties.

    Raises:
        ValueError: if the lists differ in length or are empty.

    Example:
    >>> edits = (Edit(1, 2, ("is",)), Edit(2, 2, ("very",)))
    >>> gold = [AnnotatedSentence(("It", "are", "late"), (edits,))]
    >>> score = max_match(["It is late"], gold)
    >>> score.precision, score.recall
    (1.0, 0.5)
    """
    check_lengths(hypotheses=hypotheses, gold=gold)
    total = MaxMatchScore(0, 0, 0, beta)
    for hypothesis, sentence in zip(hypotheses, gold, strict=True):
        lattice = _Lattice(sentence.words, tuple(hypothesis.split()))
        candidates = []
        for edits in sentence.edits:
            correct, proposed = lattice.best_sequence(edits)
            candidates.append(
                MaxMatchScore(
                    total.correct + correct,
                    total.proposed + proposed,
                    total.gold + len(edits),
                    beta,
                )
            )
        # Of equal scores the one with more matches, then with fewer edits.
        total = max(
            candidates,
            key=lambda s: (s.f_score, s.correct, -s.proposed - s.gold),
        )
    return total


def read_m2(file: str | Path) -> list[AnnotatedSentence]:
    """Reads source sentences with gold edits from a file in M² format.

    A line `S words` begins a sentence; a line
    `A start end|||type|||correction|||...|||annotator` is an edit. Several
    corrections of one edit are separated by `||`. The type `noop` says that
    the annotator changed nothing.

    Args:
        file: The file, UTF-8.

    Returns:
        The sentences, in the order of the file.

    Raises:
        UserError: if the file is missing or a line is not of this format.

    Example:
    >>> gold = read_m2("test.m2")
    >>> gold[0].words[:2], gold[0].edits[0][0]
    (('It', 'are'), Edit(start=1, end=2, corrections=('is',)))
    """
    try:
        lines = Path(file).read_bytes().decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: cannot be read ({error}).") from error
    sentences: list[tuple[list[str], dict[int, list[Edit]]]] = []
    for number, line in enumerate(lines, start=1):
        if line.startswith("S"):
            sentences.append((line.split()[1:], defaultdict(list)))
        elif line.strip():
            try:
                annotator, edit = _read_edit(line)
                edits = sentences[-1][1][annotator]
            except (ValueError, IndexError) as error:
                raise UserError(
                    f"{file}, line {number}: not a line of an M2 file. "
                    f"Received: {line[:80]!r}"
                ) from error
            if edit is not None:
                edits.append(edit)
    if not sentences:
        raise UserError(f"{file}: has no sentences.")
    return [
        AnnotatedSentence(
            tuple(words),
            tuple(tuple(edits[key]) for key in sorted(edits)) or ((),),
        )
        for words, edits in sentences
    ]


def _read_edit(line):
    """The annotator of a line and its edit; `None` for `noop`."""
    place, kind, corrections, *_, annotator = line.split("|||")
    letter, start, end = place.split()
    if letter != "A":
        raise ValueError
    if kind == "noop" or int(start) < 0:
        return int(annotator), None
    texts = corrections.split("||")
    edit = Edit(
        int(start),
        int(end),
        tuple("" if text == _NOTHING else text for text in texts),
    )
    return int(annotator), edit


class _Lattice:
    """All shortest sequences of edits from a source to a hypothesis.

    A node `(i, j)` stands for `i` words of the source and `j` words of the
    hypothesis. A step inserts, deletes, replaces or keeps a word. Sequences
    are shortest if a replacement counts as one change, or as two.
    """

    def __init__(self, source, hypothesis):
        self.source, self.hypothesis = source, hypothesis
        self.end = len(source), len(hypothesis)
        self.steps = defaultdict(set)
        for cost in (1, 2):
            self._add_shortest(cost)

    def best_sequence(self, gold):
        """Returns how many edits match gold ones, and how many there are."""
        found = defaultdict(set)
        for edit in gold:
            found[edit.start, edit.end].update(edit.corrections)
        # By node, and whether a gold insertion before that word of the source
        # was matched already: the same edit does not count twice.
        best = {((0, 0), False): (0, 0, 0)}
        for node in sorted({*self.steps, self.end}, key=sum):
            for inserted in (False, True):
                if (node, inserted) not in best:
                    continue
                # The most matches, the fewest steps, the fewest edits.
                matches, steps, edits = best[node, inserted]
                for after, (length, changes) in self._edges(node).items():
                    place = node[0], after[0]
                    words = " ".join(self.hypothesis[node[1] : after[1]])
                    is_insertion = place[0] == place[1]
                    is_gold = (
                        changes
                        and words in found.get(place, ())
                        and not (is_insertion and inserted)
                    )
                    value = (
                        matches + is_gold,
                        steps - (0 if is_gold else length),
                        edits - changes,
                    )
                    state = after, is_insertion and (is_gold or inserted)
                    best[state] = max(value, best.get(state, value))
        ends = [
            best[s] for s in ((self.end, False), (self.end, True)) if s in best
        ]
        matches, _, edits = max(ends)
        return matches, -edits

    def _edges(self, node):
        """Maps nodes to the number of steps to them, and whether they change.

        An edge is one kept word, or changes with up to two kept words.
        """
        edges = {}
        # Steps, by node and number of kept words.
        reached = {(node, 0): 0}
        queue = [(node, 0)]
        for here, kept in queue:
            for after, keeps in self.steps.get(here, ()):
                state = after, kept + keeps
                if state[1] > _MOST_UNCHANGED or state in reached:
                    continue
                length = reached[here, kept] + 1
                reached[state] = length
                queue.append(state)
                if length > state[1]:
                    old = edges.get(after, (length, True))
                    edges[after] = min(old, (length, True))
                elif length == 1:
                    edges[after] = 1, False
        return edges

    def _add_shortest(self, cost):
        """Adds the steps on the shortest sequences; `cost` of a replacement."""
        before = _distances(self.source, self.hypothesis, cost)
        behind = _distances(self.source[::-1], self.hypothesis[::-1], cost)
        rows, columns = self.end
        shortest = before[rows][columns]
        for i in range(rows + 1):
            for j in range(columns + 1):
                for after, price in self._moves(i, j, cost):
                    rest = behind[rows - after[0]][columns - after[1]]
                    if before[i][j] + price + rest == shortest:
                        self.steps[i, j].add((after, price == 0))

    def _moves(self, i, j, cost):
        rows, columns = self.end
        if i < rows:
            yield (i + 1, j), 1
        if j < columns:
            yield (i, j + 1), 1
        if i < rows and j < columns:
            same = self.source[i] == self.hypothesis[j]
            yield (i + 1, j + 1), 0 if same else cost


def _distances(one, other, cost):
    """Levenshtein distances of all beginnings; `cost` of a replacement."""
    table = [list(range(len(other) + 1))]
    for i, word in enumerate(one, start=1):
        row = [i]
        for j, there in enumerate(other, start=1):
            row.append(
                min(
                    row[-1] + 1,
                    table[-1][j] + 1,
                    table[-1][j - 1] + (0 if word == there else cost),
                )
            )
        table.append(row)
    return table
