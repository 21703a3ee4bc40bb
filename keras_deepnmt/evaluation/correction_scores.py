"""MaxMatch (M²): precision and recall of the edits of corrected text."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from keras_deepnmt.evaluation.m2_files import AnnotatedSentence
from keras_deepnmt.evaluation.precision_recall import EditCounts
from keras_deepnmt.evaluation.scores import check_lengths

# An edit costs the number of its words and this, so that of equally long
# sequences the one with fewer edits is cheaper.
_EPSILON = 0.001


@dataclass(frozen=True)
class MaxMatchScore(EditCounts):
    """Result of `max_match`, with the counts that it is computed from.

    Attributes:
        correct: Number of edits of the system that are gold edits.
        proposed: Number of edits of the system.
        gold: Number of gold edits.
        beta: Weight of recall relative to precision in `f_score`.
        by_type: For each type of the gold edits, how many of them the system
            made, and how many there are.
    """

    by_type: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def max_match(
    hypotheses: Sequence[str],
    gold: Sequence[AnnotatedSentence],
    beta: float = 0.5,
    max_unchanged_words: int = 2,
    ignore_whitespace_casing: bool = False,
) -> MaxMatchScore:
    """Scores corrections by MaxMatch (Dahlmeier and Ng, 2012).

    A hypothesis can be reached from its source by many sequences of edits, of
    which some join neighbouring changes, with some unchanged words. Of these,
    the one with the most gold edits is scored, and of several the shortest.
    Over all sentences,

        P = correct / proposed,   R = correct / gold,
        F = (1 + beta^2) P R / (beta^2 P + R).

    With several annotators, each sentence is scored by the one that gives the
    highest F-score of the sentences so far; of equal ones by the one with more
    correct edits, then with fewer edits, then with the lower number.

    The counts are those of the authors' scorer (m2scorer, commit `cb874a7`),
    also where several sequences are equally good: the weights of the edits,
    with their rounding, and the order in which sequences are tried are the
    same. Differs from it: an edit of the system counts once, also if an
    annotator gives the same gold edit twice, where the authors' count has a
    precision above 1. `read_m2` says how the reading of files differs.

    Args:
        hypotheses: Corrected sentences, tokenized as the source.
        gold: Source sentences with gold edits; see `read_m2`.
        beta: Weight of recall relative to precision.
        max_unchanged_words: Number of unchanged words that an edit may have.
        ignore_whitespace_casing: Whether edits of the system that change only
            blanks and case are left out.

    Returns:
        The counts; P, R and F are properties.

    Raises:
        ValueError: if the lists differ in length or are empty, or `beta` or
            `max_unchanged_words` is negative.

    Example:
    >>> from keras_deepnmt.evaluation import AnnotatedSentence, Edit
    >>> edits = (Edit(1, 2, ("is",)), Edit(2, 2, ("very",)))
    >>> gold = [AnnotatedSentence(("It", "are", "late"), (edits,))]
    >>> score = max_match(["It is late"], gold)
    >>> score.precision, score.recall
    (1.0, 0.5)
    """
    check_lengths(hypotheses=hypotheses, gold=gold)
    if min(beta, max_unchanged_words) < 0:
        raise ValueError(
            "`beta` and `max_unchanged_words` must not be negative. Received: "
            f"beta={beta}, max_unchanged_words={max_unchanged_words}"
        )
    totals = (0, 0, 0)
    made, annotated = Counter(), Counter()
    for hypothesis, sentence in zip(hypotheses, gold, strict=True):
        lattice = _Lattice(
            sentence.words, tuple(hypothesis.split()), max_unchanged_words
        )
        candidates = []
        for edits in sentence.edits:
            proposed = lattice.best_sequence(edits)
            if ignore_whitespace_casing:
                proposed = [
                    (start, end, words)
                    for start, end, words in proposed
                    if _letters("".join(sentence.words[start:end]))
                    != _letters(words)
                ]
            found = _matches(proposed, edits)
            counts = len(found), len(proposed), len(edits)
            sums = tuple(map(sum, zip(totals, counts, strict=True)))
            candidates.append((sums, found, edits))
        totals, found, edits = max(
            candidates, key=lambda each: _preference(*each[0], beta)
        )
        made.update(edit.error_type for edit in found)
        annotated.update(edit.error_type for edit in edits)
    by_type = {
        name: (made[name], number) for name, number in sorted(annotated.items())
    }
    return MaxMatchScore(*totals, beta, by_type)


def _preference(correct, proposed, gold, beta):
    """Sorts annotators: the F-score, the matches, the fewest edits."""
    weight = beta * beta
    edits = weight * gold + proposed
    score = (1 + weight) * correct / edits if edits else 1.0
    return score, correct, -(proposed + weight * gold)


def _letters(text):
    return text.replace(" ", "").lower()


def _matches(proposed, gold):
    """The gold edits that were proposed, each once and in their order."""
    found, place = [], 0
    for start, end, words in proposed:
        for at in range(place, len(gold)):
            edit = gold[at]
            if (edit.start, edit.end) == (start, end) and (
                words in edit.corrections
            ):
                found.append(edit)
                place = at + 1
                break
    return found


class _Lattice:
    """The edits that lead from a source to a hypothesis, and joined ones.

    A node `(i, j)` stands for the first `i` words of the source and the first
    `j` of the hypothesis. An edge between two nodes stands for the words of
    the source between them, and those of the hypothesis that replace them. In
    `edges` it may stand several times, which adds to its weight.
    """

    def __init__(self, source, hypothesis, max_unchanged_words):
        self.hypothesis = hypothesis
        self.end = len(source), len(hypothesis)
        # A replacement counts as one change, or as two.
        self.edges = sorted(
            edge
            for cost in (1, 2)
            for edge in _shortest_edges(source, hypothesis, cost)
        )
        # By edge: how many words it inserts, deletes, replaces and keeps
        # together, and how many of them it keeps.
        self.sizes = {
            (here, after): (1, int(self._keeps_word(source, here, after)))
            for here, after in self.edges
        }
        self._join(max_unchanged_words)
        # Several kept words together are no edit.
        self.edges = [
            edge
            for edge in self.edges
            if self._changes(edge) or self.sizes[edge][0] == 1
        ]
        self.weights = {edge: size for edge, (size, _) in self.sizes.items()}
        self.by_place = defaultdict(list)
        for edge in sorted(self.edges):
            here, after = edge
            self.by_place[here[0], after[0]].append(edge)
            if self._changes(edge):
                self.weights[edge] += _EPSILON

    def best_sequence(self, gold):
        """Returns the edits (start, end, words) with the most gold edits."""
        weights = self._weights(gold)
        edges = [(*edge, weights[edge]) for edge in self.edges]
        costs = defaultdict(lambda: float("inf"), {(0, 0): 0})
        before = {}
        # Bellman-Ford. Of paths with equal costs, the first one remains.
        changed = True
        while changed:
            changed = False
            for here, after, weight in edges:
                cost = costs[here] + weight
                if cost < costs[after]:
                    costs[after] = cost
                    before[after] = here
                    changed = True
        edits, after = [], self.end
        while after in before:
            edge = before[after], after
            if self._changes(edge):
                edits.append((edge[0][0], after[0], self._words(edge)))
            after = before[after]
        return edits[::-1]

    def _weights(self, gold):
        """The weights of the edges; those of gold edits are negative."""
        weights = self.weights.copy()
        by_place = defaultdict(list)
        for edit in gold:
            by_place[edit.start, edit.end].append(edit.corrections)
        for place, corrections in by_place.items():
            edges = self.by_place[place]
            if place[0] == place[1]:
                self._weigh_insertions(weights, edges, corrections)
                continue
            for edge in edges:
                if any(self._words(edge) in texts for texts in corrections):
                    weights[edge] = -len(self.edges)
        return weights

    def _weigh_insertions(self, weights, edges, corrections):
        """Weighs the insertions at one place of the source.

        They are taken from the left and from the right in turn, and after a
        match from the same side; there, only an insertion next to the last
        match can match, and only gold edits within those already used. So no
        gold insertion makes two edges cheap that can stand in one sequence.
        """
        for edge in edges:
            weights[edge] = self.sizes[edge][0]
        left, right = 0, len(edges) - 1
        first, last = 0, len(corrections) - 1
        from_left = True
        while left <= right:
            from_left = from_left or left == right
            at, step = (left, 1) if from_left else (right, -1)
            edge = edges[at]
            unused = range(first, last + 1)[::step]
            words = self._words(edge)
            used = next((i for i in unused if words in corrections[i]), None)
            at += step
            if used is None:
                weights[edge] += _EPSILON
            else:
                weights[edge] = -len(self.edges)
                while 0 <= at < len(edges) and not _adjacent(edge, edges[at]):
                    weights[edges[at]] += _EPSILON
                    at += step
            if from_left:
                left = at
                first = first if used is None else used + 1
            else:
                right = at
                last = last if used is None else used - 1
            if used is None:
                from_left = not from_left

    def _words(self, edge):
        return " ".join(self.hypothesis[edge[0][1] : edge[1][1]])

    def _changes(self, edge):
        size, kept = self.sizes[edge]
        return kept < size

    def _keeps_word(self, source, here, after):
        diagonal = after[0] > here[0] and after[1] > here[1]
        return diagonal and source[here[0]] == self.hypothesis[here[1]]

    def _join(self, max_unchanged_words):
        """Adds edges that stand for several others, by Floyd and Warshall."""
        behind, ahead = defaultdict(set), defaultdict(set)
        for here, after in self.edges:
            ahead[here].add(after)
            behind[after].add(here)
        for middle in sorted(ahead):
            for here in sorted(behind[middle]):
                for after in sorted(ahead[middle]):
                    parts = self.sizes[here, middle], self.sizes[middle, after]
                    size, kept = map(sum, zip(*parts, strict=True))
                    known = self.sizes.get((here, after))
                    if kept <= max_unchanged_words and (
                        known is None or size < known[0]
                    ):
                        self.sizes[here, after] = size, kept
                        self.edges.append((here, after))
                        ahead[here].add(after)
                        behind[after].add(here)


def _adjacent(edge, other):
    """Whether one of two edges begins where the other one ends."""
    return edge[1] == other[0] or other[1] == edge[0]


def _shortest_edges(source, hypothesis, cost):
    """The edges of all shortest paths; `cost` of a replacement."""
    before = _distances(source, hypothesis, cost)
    behind = _distances(source[::-1], hypothesis[::-1], cost)
    rows, columns = len(source), len(hypothesis)
    shortest = before[rows][columns]
    for i in range(rows + 1):
        for j in range(columns + 1):
            same = source[i : i + 1] == hypothesis[j : j + 1]
            for after, price in (
                ((i + 1, j), 1),
                ((i, j + 1), 1),
                ((i + 1, j + 1), 0 if same else cost),
            ):
                if after[0] > rows or after[1] > columns:
                    continue
                rest = behind[rows - after[0]][columns - after[1]]
                if before[i][j] + price + rest == shortest:
                    yield (i, j), after


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
