"""What must be true of MaxMatch (Dahlmeier and Ng, 2012).

* the worked example of the authors' scorer has its published result
* 1,500 random sentences, and real corpora, have the counts of that scorer
* a system that makes the edits of an annotator has precision and recall 1
* edits may be joined over two unchanged words, not over three
* of several annotators the best one counts, also in a real corpus
"""

import random

import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation import (
    AnnotatedSentence,
    Edit,
    max_match,
    read_m2,
)

# From the README of the authors' m2scorer.
GOLD = """\
S The cat sat at mat .
A 3 4|||Prep|||on|||REQUIRED|||-NONE-|||0
A 4 4|||ArtOrDet|||the||a|||REQUIRED|||-NONE-|||0

S The dog .
A 1 2|||NN|||dogs|||REQUIRED|||-NONE-|||0
A -1 -1|||noop|||-NONE-|||-NONE-|||-NONE-|||1

S Giant otters is an apex predator .
A 2 3|||SVA|||are|||REQUIRED|||-NONE-|||0
A 3 4|||ArtOrDet|||-NONE-|||REQUIRED|||-NONE-|||0
A 5 6|||NN|||predators|||REQUIRED|||-NONE-|||0
A 1 2|||NN|||otter|||REQUIRED|||-NONE-|||1
"""
SYSTEM = [
    "A cat sat on the mat .",
    "The dog .",
    "Giant otters are apex predator .",
]


def sentence(words, *edits):
    return AnnotatedSentence(tuple(words.split()), (edits,))


def test_the_example_of_the_authors_has_the_published_result(tmp_path):
    file = tmp_path / "gold"
    file.write_text(GOLD)
    gold = read_m2(file)
    assert [len(each.edits) for each in gold] == [1, 2, 2]
    assert gold[0].edits[0][1] == Edit(4, 4, ("the", "a"))
    assert gold[1].edits[1] == ()
    score = max_match(SYSTEM, gold)
    # (at -> on), the insertion of "the", (is -> are) and (an -> nothing) are
    # right, (The -> A) is not.
    assert (score.correct, score.proposed, score.gold) == (4, 5, 5)
    assert score.precision == pytest.approx(0.8)
    assert score.recall == pytest.approx(0.8)
    assert score.f_score == pytest.approx(0.8)


def apply(words, edits):
    words = list(words)
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        words[edit.start : edit.end] = edit.corrections[0].split()
    return " ".join(words)


def random_edits(generator, length):
    """Edits with at least one unchanged word between them."""
    edits, place = [], 0
    while place < length:
        if generator.random() < 0.3:
            end = min(place + generator.randint(0, 2), length)
            words = generator.choices("vwxyz", k=generator.randint(0, 2))
            if words or end > place:
                edits.append(Edit(place, end, (" ".join(words),)))
                place = end + 1
                continue
        place += 1
    return tuple(edits)


def random_sentences(generator, number):
    """Hypotheses, and sentences with gold edits by one to three annotators.

    Few different words, so that many sequences of edits are equally good. No
    annotator gives an edit twice.
    """
    for _ in range(number):
        words = generator.choices("abcd", k=generator.randint(1, 9))
        hypothesis = []
        for word in words:
            chance = generator.random()
            if chance < 0.8:
                hypothesis.append(
                    word if chance < 0.6 else generator.choice("abcde")
                )
            if generator.random() < 0.25:
                hypothesis += generator.choices(
                    "abcde", k=generator.randint(1, 2)
                )
        annotators = []
        for _ in range(generator.randint(1, 3)):
            edits = {}
            for _ in range(generator.randint(0, 4)):
                start = generator.randint(0, len(words))
                end = start + generator.choice([0, 0, 1, 1, 2])
                end = min(end, len(words))
                texts = " ".join(
                    generator.choices("abcde", k=generator.randint(0, 2))
                )
                edits[start, end, texts] = Edit(start, end, (texts,))
            annotators.append(tuple(edits.values()))
        yield (
            " ".join(hypothesis),
            AnnotatedSentence(tuple(words), tuple(annotators)),
        )


# Correct, proposed and gold edits of each 100 sentences, counted by m2scorer,
# commit cb874a7ecdcb360b08635538a299cf868258a4c1, in Python 2.7.
COUNTS_OF_THE_AUTHORS = """
28/146/178 31/147/164 34/148/196 31/159/162 31/159/169 26/153/166 27/146/167
31/140/170 26/153/155 30/144/181 33/147/176 34/155/171 31/143/182 36/164/166
30/155/152
""".split()


def test_random_sentences_have_the_counts_of_the_authors_scorer():
    found = list(random_sentences(random.Random(37), 1500))
    counts = []
    for start in range(0, len(found), 100):
        hypotheses, gold = zip(*found[start : start + 100], strict=True)
        score = max_match(hypotheses, gold)
        counts.append(f"{score.correct}/{score.proposed}/{score.gold}")
    assert counts == COUNTS_OF_THE_AUTHORS


def test_an_annotators_own_edits_are_all_found():
    generator = random.Random(0)
    for _ in range(200):
        words = tuple(generator.choices("abcde", k=generator.randint(1, 9)))
        edits = random_edits(generator, len(words))
        gold = [AnnotatedSentence(words, (edits,))]
        score = max_match([apply(words, edits)], gold)
        assert score.correct <= min(score.proposed, score.gold)
        if all(e.end > e.start and e.corrections[0] for e in edits):
            # Replacements by words that are not in the source.
            assert score.correct == score.proposed == len(edits), gold


def test_an_unchanged_sentence_proposes_nothing():
    gold = [sentence("a b c", Edit(0, 1, ("x",)))]
    score = max_match(["a b c"], gold)
    assert (score.correct, score.proposed, score.gold) == (0, 0, 1)
    assert (score.precision, score.recall) == (1.0, 0.0)
    score = max_match(["a b c"], [sentence("a b c")])
    assert (score.precision, score.recall, score.f_score) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(("kept", "proposed"), [(1, 1), (2, 1), (3, 2)])
def test_changes_are_joined_over_two_unchanged_words(kept, proposed):
    middle = " ".join("c" * kept)
    gold = [sentence(f"a {middle} b")]
    assert max_match([f"x {middle} y"], gold).proposed == proposed


def test_one_gold_edit_over_several_words_is_matched():
    gold = [sentence("a b c d", Edit(0, 3, ("x b y",)))]
    score = max_match(["x b y d"], gold)
    assert (score.correct, score.proposed) == (1, 1)
    apart = [sentence("a b c d", Edit(0, 1, ("x",)), Edit(2, 3, ("y",)))]
    score = max_match(["x b y d"], apart)
    assert (score.correct, score.proposed) == (2, 2)


def test_a_gold_insertion_counts_once():
    gold = [sentence("a b", Edit(1, 1, ("very",)))]
    score = max_match(["a very very b"], gold)
    assert score.correct == 1
    assert score.recall == 1.0


def test_recall_weighs_half_in_f():
    gold = [sentence("a b c d e f g", Edit(0, 1, ("x",)), Edit(6, 7, ("y",)))]
    score = max_match(["x b c d e f g"], gold)
    assert (score.precision, score.recall) == (1.0, 0.5)
    assert score.f_score == pytest.approx(1.25 * 0.5 / (0.25 + 0.5))
    assert max_match(["x b c d e f g"], gold, beta=1.0).f_score == (
        pytest.approx(2 / 3)
    )


# The counts of m2scorer, as above.
def test_english_references_have_the_counts_of_the_authors_scorer(corpora_dir):
    folder = corpora_dir / "jfleg"
    lines = (folder / "test.ref0").read_text(encoding="utf-8").splitlines()
    score = max_match(lines[:300], read_m2(folder / "test.m2")[:300])
    assert (score.correct, score.proposed, score.gold) == (1089, 1166, 1093)


def test_ukrainian_annotators_have_the_counts_of_the_authors_scorer(
    corpora_dir,
):
    gold = read_m2(corpora_dir / "ua-gec" / "test.m2")[:300]
    first = [apply(each.words, each.edits[0]) for each in gold]
    other = [AnnotatedSentence(g.words, g.edits[1:]) for g in gold]
    score = max_match(first, other)
    assert (score.correct, score.proposed, score.gold) == (162, 271, 381)
    # A gold edit counts for its own type.
    made, there = zip(*score.by_type.values(), strict=True)
    assert (sum(made), sum(there)) == (score.correct, score.gold)
    assert "Spelling" in score.by_type
    source = [" ".join(each.words) for each in gold]
    assert max_match(source, gold).proposed == 0


def test_what_tools_write_besides_edits_does_not_change_a_score(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("S a b\nA 1 2|||R|||c||d|||REQUIRED|||-NONE-|||0\n")
    other = tmp_path / "other"
    other.write_text(
        "I a note\nS a b\nT0-A0 a c\n"
        "A 1 2|||R||| c || d|||REQUIRED|||-NONE-|||0\n"
        # After the end of the sentence.
        "A 2 3|||R|||x|||REQUIRED|||-NONE-|||0\n\n"
    )
    for file in (plain, other):
        score = max_match(["a d"], read_m2(file))
        assert (score.correct, score.proposed, score.gold) == (1, 1, 1)
    assert read_m2(plain) == read_m2(other)
    other.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    assert read_m2(plain) == read_m2(other)


def test_an_edit_is_right_once_also_if_an_annotator_gives_it_twice():
    # The authors' scorer counts two right edits of one, a precision of 2.
    gold = [sentence("a b", Edit(1, 2, ("c",)), Edit(1, 2, ("c", "d")))]
    score = max_match(["a c"], gold)
    assert (score.correct, score.proposed, score.gold) == (1, 1, 2)


def test_gold_edits_are_counted_by_type():
    edits = (Edit(0, 1, ("x",), "R"), Edit(1, 1, ("y",), "M"))
    edits += (Edit(2, 3, ("z",), "R"),)
    gold = [sentence("a b c", *edits), sentence("a", Edit(0, 1, ("",), "U"))]
    score = max_match(["x b z", "a"], gold)
    assert score.by_type == {"M": (0, 1), "R": (2, 2), "U": (0, 1)}


def test_a_gold_edit_that_changes_nothing_is_not_proposed():
    gold = [sentence("a b c", Edit(0, 2, ("a b",)), Edit(0, 3, ("a b d",)))]
    score = max_match(["a b d"], gold)
    assert (score.correct, score.proposed, score.gold) == (1, 1, 2)


def test_edits_of_case_and_blanks_alone_can_be_left_out():
    gold = [sentence("in to the dog", Edit(3, 4, ("cat",)))]
    score = max_match(["Into The cat"], gold, ignore_whitespace_casing=True)
    assert (score.correct, score.proposed, score.gold) == (1, 1, 1)
    assert max_match(["Into The cat"], gold).proposed == 2


def test_any_number_of_unchanged_words_can_be_joined():
    gold = [sentence("a b c d", Edit(0, 4, ("x b c y",)))]
    for most, correct in ((1, 0), (2, 1)):
        score = max_match(["x b c y"], gold, max_unchanged_words=most)
        assert score.correct == correct
    with pytest.raises(ValueError, match="must not be negative"):
        max_match(["x"], gold, max_unchanged_words=-1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no sentences"),
        ("A 0 1|||T|||x|||REQUIRED|||-NONE-|||0\n", "line 1: not a line"),
        ("S a b\nA 0|||T|||x|||R|||N|||0\n", "line 2: not a line"),
        ("S a b\nB 0 1|||T|||x|||R|||N|||0\n", "line 2"),
    ],
)
def test_a_file_of_another_format_is_named_with_the_line(text, said, tmp_path):
    file = tmp_path / "gold"
    file.write_text(text)
    with pytest.raises(UserError, match=said):
        read_m2(file)
    with pytest.raises(UserError, match="cannot be read"):
        read_m2(tmp_path / "none")
