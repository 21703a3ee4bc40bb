"""What must be true of terms: sources have their translations beside them.

* a list marks whole words, the longest term where several begin
* training marks words that are aligned with nothing else, about a tenth
* a mark is one token, batches are the same in whatever order they are read
* what a line of a list must not be, and a tokenizer without marks, is refused
"""

import dataclasses
import random

import numpy as np
import pytest
from toy_corpus import ENGLISH, NOUNS, SEES, VERBS, prepare, write_pairs
from toy_corpus import toy_pairs as pairs_of

from keras_deepnmt.data import PreparedData, TermList, train_tokenizer
from keras_deepnmt.data.batches import modified_pairs
from keras_deepnmt.data.batches.aligned_terms import with_aligned_terms
from keras_deepnmt.data.batches.batch_shapes import choose_batch_shapes
from keras_deepnmt.data.batches.batch_source import BatchSource
from keras_deepnmt.data.batches.modified_pairs import (
    Modification,
    ModifiedPairs,
)
from keras_deepnmt.data.batches.staged_plan import StagedPlan
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.terms import TERM_MARKS, check_has_term_marks
from keras_deepnmt.data.token_links import token_links
from keras_deepnmt.errors import UserError

PAIRS = pairs_of(60)
WORDS = {
    **dict(zip(ENGLISH, NOUNS, strict=True)),
    **dict(zip(SEES, VERBS, strict=True)),
    "the": "der",
    "a": "ein",
    "no": "Nr",
}


@pytest.fixture
def terms(tmp_path):
    def write(text):
        (tmp_path / "terms.tsv").write_text(text)
        return TermList(tmp_path / "terms.tsv")

    return write


def test_a_list_marks_whole_words_and_the_longest_term(terms):
    found = terms(
        "New\tNeu\nNew York\tNew York\nYork\tEburacum\n"
        "Hund\tdog\nHund\thound\n東京\tTokyo"
    )
    hund = "<term> Hund <is> dog </term>"
    for text, expected in (
        ("Hunde, Hund; hund Hund's", f"Hunde, {hund}; hund {hund}'s"),
        ("in New  York", "in <term> New  York <is> New York </term>"),
        ("Old York", "Old <term> York <is> Eburacum </term>"),
        ("我去東京。", "我去<term> 東京 <is> Tokyo </term>。"),
        (hund, hund),
        (" ", " "),
        ("New", "<term> New <is> Neu </term>"),
        ("Newer", "Newer"),
    ):
        assert found.mark(text) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Hund", "line 2: must be a source term, a tab and its translation"),
        ("Hund\t ", "line 2: must be a source term"),
        ("Hund\tdog\tx", "line 2: must be a source term"),
        ("Hund\t<is> dog", "line 2: must be without the marks <term>, <is>"),
    ],
)
def test_other_lines_are_refused(terms, line, message):
    with pytest.raises(UserError, match=message):
        terms(f"Katze\tcat\n{line}\n")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Pairs whose words are aligned one by one, but for `no. 7`."""
    folder = tmp_path_factory.mktemp("terms")
    corpus = write_pairs(folder, "train", PAIRS)
    links = "0-0 1-1 2-2 3-3 4-4 5-5 5-6 6-6\n"
    (folder / "links").write_text(links * len(PAIRS))
    corpus = dataclasses.replace(
        corpus, alignments=str(folder / "links"), tag="<2de>"
    )
    options = PrepareOptions(
        train=[corpus],
        vocabulary_size=170,
        user_defined_symbols=list(TERM_MARKS),
    )
    prepare(options, folder / "out")
    return PreparedData(folder / "out")


@pytest.fixture(scope="module")
def tokenizers(data):
    return data.source_tokenizer, data.target_tokenizer


def marked_pairs(data, tokenizers):
    modifiers = ["terms", "upper_case"]
    return ModifiedPairs(
        *(data.store("train"), tokenizers, modifiers, [60], 99, [], data.links)
    )


@pytest.fixture(scope="module")
def pairs(data, tokenizers):
    return marked_pairs(data, tokenizers)


def test_a_word_that_is_aligned_alone_is_marked(tokenizers, pairs):
    check_has_term_marks(tokenizers[0], "terms")
    marked = set()
    for row, pair in enumerate(pairs.read(range(60))):
        draw = random.Random(row).random
        source, target = pairs.change(row + 60, pair, draw)
        assert target is pair[1]
        (text,) = tokenizers[0].decode([source])
        begin, rest = text.split(" <term> ")
        word, rest = rest.split(" <is> ")
        translation, end = rest.split(" </term>")
        assert begin.startswith("<2de> ") or begin == "<2de>"
        assert WORDS[word] == translation
        # Punctuation stays outside, and the rest as it is.
        plain = f"{begin} {word}{end}"
        assert plain == f"<2de> {PAIRS[row][0]}"
        pieces = tokenizers[0].pieces(source)
        assert [pieces.count(mark) for mark in TERM_MARKS] == [1, 1, 1]
        marked.add(word)
    assert len(marked) > 9 and "no" not in marked


class FewLinks:
    """One pair of twenty has links."""

    def __init__(self, links):
        self._links = links

    def linked_rows(self):
        return np.arange(0, 60, 20)

    def read(self, rows):
        return [
            links if row % 20 == 0 else links[:0]
            for row, links in zip(rows, self._links.read(rows), strict=True)
        ]


def test_few_pairs_with_links_have_room_for_marks(
    data, tokenizers, monkeypatch
):
    # Among all pairs, none of those that have links would be looked at.
    monkeypatch.setattr(modified_pairs, "_NUM_SAMPLED", 3)
    store, links = data.store("train"), FewLinks(data.links)
    assert data.links.linked_rows().tolist() == list(range(60))
    pairs = ModifiedPairs(store, tokenizers, ["terms"], [60], 99, [], links)
    with_room = []
    for row in range(0, 60, 20):
        (pair,) = pairs.read([row])
        source, _ = pairs.change(row + 60, pair, random.Random(row).random)
        assert len(source) > len(pair[0]) + 3
        with_room.append(len(source) < pairs.lengths[row + 60, 0])
    assert sum(with_room) >= 2
    assert (pairs.lengths[60:, 1] == store.lengths[:, 1]).all()
    others = np.arange(60) % 20 != 0
    assert (pairs.lengths[60:][others] == store.lengths[others]).all()


def test_about_a_tenth_of_the_words_is_marked(tokenizers):
    source = " ".join(["dog"] * 30)
    target = " ".join(["Hund"] * 30)
    links = token_links(
        tokenizers, (source, target), [(n, n) for n in range(30)]
    )
    for links_, number in ((links, 3), (links[:0], 0)):
        found = with_aligned_terms(
            (source, target), tokenizers, links_, random.Random(1).random
        )
        assert found.count("<term> dog <is> Hund </term>") == number
    marked = "<term> a <is> b </term>"
    assert marked == with_aligned_terms(
        (marked, "b"), tokenizers, links[:0], None
    )


def test_a_word_with_several_beside_each_other_gets_all(tokenizers):
    texts = "a dog.", "ein Hund Hund, Baum"
    for words, expected in (
        ([(1, 1), (1, 2)], "a <term> dog <is> Hund Hund </term>."),
        ([(1, 1), (1, 3)], "a dog."),
        ([(0, 1), (1, 1)], "a dog."),
    ):
        links = token_links(tokenizers, texts, words)
        draw = random.Random(1).random
        assert with_aligned_terms(texts, tokenizers, links, draw) == expected


def test_batches_do_not_depend_on_those_before(data, tokenizers, pairs):
    weights = [pairs.weights(None, {"terms": 0.5, "upper_case": 0.1})]
    shapes = choose_batch_shapes(pairs.lengths, 256, 3, 1, weights[0])
    plan = StagedPlan(pairs.lengths, shapes, 3, weights, [0])

    def read(pairs, step):
        transforms = [Modification(pairs, plan, seed=3)]
        return BatchSource(pairs, plan, transforms=transforms)[step][0]

    steps = list(range(2 * plan.batches_in_epoch(0)))
    expected = [read(pairs, step)["source_ids"] for step in steps]
    again = marked_pairs(data, tokenizers)
    np.testing.assert_array_equal(again.lengths, pairs.lengths)
    random.Random(1).shuffle(steps)
    for step in steps:
        found = read(again, step)["source_ids"]
        np.testing.assert_array_equal(found, expected[step])
    (mark,) = tokenizers[0].ids_of_pieces([TERM_MARKS[0]])
    number = sum((ids == mark).sum() for ids in expected)
    # Half of two epochs of 60 pairs, but those that found no room.
    assert 40 <= number <= 60


def test_a_tokenizer_without_the_marks_is_refused(tmp_path):
    tokenizer = train_tokenizer(["ein Hund"] * 9, tmp_path / "a.model", 17)
    with pytest.raises(UserError, match="which lacks </term>, <is>, <term>"):
        check_has_term_marks(tokenizer, "--terms")


def test_a_list_without_lines_is_refused(tmp_path):
    file = tmp_path / "terms.tsv"
    file.write_text("")
    with pytest.raises(UserError, match="terms.tsv"):
        TermList(file)
