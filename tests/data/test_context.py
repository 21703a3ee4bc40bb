"""What must be true of the sentences of a document before a source sentence.

* each source has as many before it as its document and the option allow, and
  target and number of pairs are those of the corpus
* filters read the sentence alone; a context that is too long is shortened, and
  a tag stays
* a translator shortens a context too, and truncates the sentence last
* what cannot go together is refused
"""

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from toy_corpus import decoded, prepare, toy_pairs, write_pairs

from keras_deepnmt.data import (
    CorpusOptions,
    PairStore,
    PrepareOptions,
    Shortlists,
    Tokenizer,
    in_context,
)
from keras_deepnmt.data.context import (
    ContextWindow,
    mark_id,
    shorten_context,
)
from keras_deepnmt.errors import UserError
from keras_deepnmt.translator.requests import source_rows

PAIRS = toy_pairs(60)
# Documents of 7 and 3 sentences in turn, and so on.
DOCUMENTS = []
for start in range(0, 60, 10):
    DOCUMENTS += [PAIRS[start : start + 7], PAIRS[start + 7 : start + 10]]


def expected(documents, size):
    pairs = []
    for document in documents:
        sources = [source for source, _ in document]
        for place, (source, target) in enumerate(document):
            before = sources[max(0, place - size) : place]
            pairs.append((" <sep> ".join([*before, source]), target))
    return pairs


def lines_of(documents):
    return [
        pair
        for document in documents
        for pair in itertools.chain(document, [("", "")])
    ]


def options(folder, documents=DOCUMENTS, **changes):
    train = write_pairs(folder, "train", lines_of(documents))
    return PrepareOptions(
        **{"train": [train], "vocabulary_size": 110, "context": 2, **changes}
    )


def source_tokenizer(folder):
    return Tokenizer(folder / "tokenizer" / "source.model")


@pytest.mark.parametrize("size", [1, 2, 9])
def test_each_source_has_the_sentences_of_its_document_before_it(
    tmp_path, size
):
    valid = write_pairs(tmp_path, "valid", lines_of(DOCUMENTS[:2]))
    manifest = prepare(
        options(tmp_path, context=size, valid=valid), tmp_path / "out"
    )
    assert decoded(tmp_path / "out", "train") == expected(DOCUMENTS, size)
    assert decoded(tmp_path / "out", "valid") == expected(DOCUMENTS[:2], size)
    assert manifest["splits"]["train"]["pairs"] == len(PAIRS)
    # One mark between two sentences.
    tokenizer = source_tokenizer(tmp_path / "out")
    (ids,) = tokenizer.encode(["the dog <sep> the cat"])
    assert list(ids).count(mark_id(tokenizer)) == 1


@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl"])
def test_an_empty_row_of_a_table_ends_a_document(tmp_path, name):
    rows = [("en", "de"), *lines_of(DOCUMENTS)]
    text = "".join(f"{source}\t{target}\n" for source, target in rows)
    if name == "a.jsonl":
        rows = (dict(zip(("en", "de"), row, strict=True)) for row in rows[1:])
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
    file = tmp_path / name
    file.write_text(text)
    columns = {"source_column": "en", "target_column": "de"}
    train = [CorpusOptions(file=str(file), **columns)]
    prepare(options(tmp_path, train=train), tmp_path / "out")
    assert decoded(tmp_path / "out", "train") == expected(DOCUMENTS, 2)


@pytest.mark.parametrize("split", ["train", "valid"])
@pytest.mark.parametrize("root", ["tmx", "xliff"])
def test_files_in_which_no_document_ends_are_refused(tmp_path, root, split):
    file = tmp_path / "a.txt"
    file.write_text(f"<{root} version='1.2'></{root}>")
    corpus = CorpusOptions(file=str(file))
    given = options(tmp_path, **{split: [corpus]})
    with pytest.raises(UserError, match=f"txt, which is {root.upper()}. Conv"):
        prepare(given, tmp_path / "out")


@pytest.mark.parametrize("is_given", [False, True])
def test_pieces_are_learned_from_each_sentence_once(tmp_path, is_given):
    """They are those of the same text without a context."""
    changes = {"user_defined_symbols": ["<sep>"]}
    if is_given:
        prepare(options(tmp_path, DOCUMENTS[:2]), tmp_path / "given")
        model = tmp_path / "given" / "tokenizer" / "source.model"
        changes = {"tokenizer_source": str(model), "extend_vocabulary": 60}
    models = []
    for size in (0, 2):
        given = options(tmp_path, context=size, case_examples=0.2, **changes)
        folder = tmp_path / f"out{size}"
        manifest = prepare(given, folder)
        models.append((folder / "tokenizer" / "source.model").read_bytes())
    assert models[0] == models[1]
    if is_given:
        assert manifest["extension"]["source"]["merges"] > 0


def test_texts_in_context_are_those_of_training(tmp_path):
    sources = [source for source, _ in lines_of(DOCUMENTS)]
    texts = in_context(sources, 2)
    assert len(texts) == len(sources)
    found = [text for text in texts if text]
    assert found == [source for source, _ in expected(DOCUMENTS, 2)]


@pytest.mark.parametrize("blank", ["\u00a0", "\u3000 ", "\x1f", " \t"])
def test_a_document_ends_alike_in_training_and_translation(tmp_path, blank):
    sources = ["a dog", blank, "a cat", "a cow"]
    texts = ["a dog", blank, "a cat", "a cat <sep> a cow"]
    assert in_context(sources, 2) == texts
    train = write_pairs(tmp_path, "lines", [(text, text) for text in sources])
    given = options(
        tmp_path, train=[train], vocabulary_size=15, drop_identical=False
    )
    prepare(given, tmp_path / "out")
    found = [source for source, _ in decoded(tmp_path / "out", "train")]
    assert found == [text for text in texts if text != blank]
    # A sentence without a translation ends none.
    assert ContextWindow(2).before(blank, "ein Hund") == ""
    window = ContextWindow(1)
    window.take("a dog")
    window.before(blank, "ein Hund")
    assert window.take("a cat") == "a dog <sep> a cat"


@pytest.mark.parametrize("errors", ["skip", "replace"])
def test_what_is_left_out_since_it_cannot_be_read_is_no_context(
    tmp_path, errors
):
    bad = PAIRS[:6]
    bad[1] = "the \udcff", bad[1][1]
    bad[3] = bad[3][0], "der \udcff"  # its source can be read
    given = options(tmp_path, context=1, errors=errors)
    for side, path in enumerate((given.train[0].source, given.train[0].target)):
        lines = [pair[side] for pair in lines_of([bad, PAIRS[6:]])]
        text = "".join(f"{line}\n" for line in lines)
        Path(path).write_bytes(text.encode("utf-8", "surrogateescape"))
    prepare(given, tmp_path / "out")
    found = [source for source, _ in decoded(tmp_path / "out", "train")]
    sources = [source for source, _ in bad]
    if errors == "skip":
        expected = [0], [0, 2], [3, 4], [4, 5]
    else:
        sources[1] = "the \ufffd"
        expected = [0], [0, 1], [1, 2], [2, 3], [3, 4], [4, 5]
    for text, places in zip(found, expected, strict=False):
        assert text == " <sep> ".join(sources[place] for place in places)


def test_filters_read_the_sentence_alone(tmp_path):
    # Seven words each, and a document with a pair that is too long.
    long = ("the dog " * 8, "der Hund " * 8)
    documents = [[*PAIRS[:3], long, *PAIRS[3:5]], PAIRS[5:9]]
    given = options(tmp_path, documents, max_length=8, max_ratio=1.5)
    manifest = prepare(given, tmp_path / "out")
    found = decoded(tmp_path / "out", "train")
    assert [target for _, target in found] == [
        target for _, target in expected([PAIRS[:9]], 0)
    ]
    # What is left out was still said before.
    assert "the dog the dog" in found[3][0]
    assert manifest["splits"]["train"]["pairs"] == 9


def test_rejected_pairs_are_written_without_their_context(tmp_path):
    long = ("the dog " * 30, "der Hund " * 30)
    document = [*PAIRS[:4], long, PAIRS[4], ("a dog", "")]
    given = options(
        tmp_path,
        [document, document],
        vocabulary_size=60,
        max_tokens=50,
    )
    prepare(given, tmp_path / "out", rejected_file=tmp_path / "rejected.tsv")
    rows = (tmp_path / "rejected.tsv").read_text("utf-8").splitlines()[1:]
    pairs = dict(enumerate(lines_of([document, document]), start=1))
    reasons = set()
    for row in rows:
        _, _, line, reason, *texts = row.split("\t")
        assert tuple(texts) == pairs[int(line)]
        reasons.add(reason)
    # They are found before the tokens are counted, and after that.
    assert reasons == {"length", "duplicate", "empty"}


def test_the_same_pair_in_another_context_is_another_pair(tmp_path):
    documents = [
        [PAIRS[0], PAIRS[1]],
        [PAIRS[2], PAIRS[1]],
        [PAIRS[0], PAIRS[1]],
    ]
    manifest = prepare(
        options(tmp_path, documents, vocabulary_size=60), tmp_path / "out"
    )
    assert manifest["splits"]["train"]["pairs"] == 4


def test_pairs_that_are_drawn_are_held_out_of_all_contexts(tmp_path):
    again = [list(reversed(document)) for document in DOCUMENTS]
    given = options(tmp_path, [*DOCUMENTS, *again], valid_pairs=9, test_pairs=6)
    manifest = prepare(given, tmp_path / "out")
    assert manifest["leakage"]["train_valid"] == 0
    assert manifest["leakage"]["train_test"] == 0
    # All pairs are there twice, after other sentences.
    assert 15 < manifest["filters"]["train"]["held_out"] <= 30


@pytest.mark.parametrize("size", [0, 1])
def test_pairs_that_are_drawn_are_held_out_with_and_without_tags(
    tmp_path, size
):
    """Lines with tags of their own, in both places of a document."""

    def tagged(documents):
        return [(f"<2de> {a}", b) for a, b in lines_of(documents) if a]

    # Each pair is at the beginning of a document, and after another one.
    own = [
        pair
        for a, b in zip(PAIRS[:-1], PAIRS[1:], strict=True)
        for pair in (*tagged([[a, b]]), ("", ""))
    ]
    given = options(tmp_path, context=size, valid_pairs=9)
    train = [
        write_pairs(tmp_path, "own", own),
        dataclasses.replace(given.train[0], tag="<2de>"),
    ]
    given = dataclasses.replace(given, train=train)
    manifest = prepare(given, tmp_path / "out")
    assert manifest["leakage"]["train_valid"] == 0
    drawn = {target for _, target in decoded(tmp_path / "out", "valid")}
    left = {target for _, target in decoded(tmp_path / "out", "train")}
    assert drawn and not drawn & left


@pytest.mark.parametrize("tag", [None, "<2de>"])
def test_leaks_are_those_of_sentences_in_any_context(tmp_path, tag):
    new = toy_pairs(70)[60:]
    splits = {
        "valid": [new[0], PAIRS[3], (PAIRS[7][0], "anders")],
        "test": [*new[1:3], new[0]],
    }
    for split, document in splits.items():
        # Here the tag stands in the text.
        mark = f"{tag} " if tag else ""
        lines = [(mark + source, target) for source, target in document]
        splits[split] = write_pairs(tmp_path, split, lines)
    given = options(tmp_path, **splits)
    train = [dataclasses.replace(given.train[0], tag=tag)]
    given = dataclasses.replace(given, train=train)
    manifest = prepare(given, tmp_path / "out")
    assert manifest["leakage"] == {
        "train_valid": 1,
        "train_valid_source": 2,
        "train_test": 0,
        "train_test_source": 0,
        "valid_test": 1,
        "valid_test_source": 1,
    }


@pytest.mark.parametrize("tag", [None, "<2de>"])
def test_a_long_context_is_shortened(tmp_path, tag):
    given = options(
        tmp_path,
        context=6,
        vocabulary_size=115,
        valid=dataclasses.replace(
            write_pairs(tmp_path, "valid", lines_of(DOCUMENTS)), tag=tag
        ),
    )
    train = [dataclasses.replace(given.train[0], tag=tag)]
    given = dataclasses.replace(given, train=train)
    prepare(given, tmp_path / "whole")
    most = 40
    short = dataclasses.replace(given, max_tokens=most)
    manifest = prepare(short, tmp_path / "short")
    assert manifest["splits"]["train"]["pairs"] == len(PAIRS)
    # A validation loss is that of sources as training reads them.
    assert decoded(tmp_path / "short", "valid") == decoded(
        tmp_path / "short", "train"
    )
    tokenizer = source_tokenizer(tmp_path / "short")
    pairs = zip(
        decoded(tmp_path / "short", "train"),
        decoded(tmp_path / "whole", "train"),
        strict=True,
    )
    shortened = 0
    for (source, _), (whole, _) in pairs:
        ids = tokenizer.encode([source])[0]
        assert len(ids) <= most
        shortened += source != whole
        mark = f"{tag} " if tag else ""
        assert source.startswith(mark) and whole.startswith(mark)
        sentences = source.removeprefix(mark).split(" <sep> ")
        assert whole.removeprefix(mark).split(" <sep> ")[-len(sentences) :] == (
            sentences
        )
        if source != whole:
            # One sentence more would be too long.
            more = whole.removeprefix(mark).split(" <sep> ")
            more = more[-len(sentences) - 1 :]
            longer = tokenizer.encode([mark + " <sep> ".join(more)])[0]
            assert len(longer) > most
    assert shortened > 10


@pytest.mark.parametrize("case", ["kept", "factored"])
def test_a_translator_shortens_the_context_first(tmp_path, case):
    prepare(options(tmp_path, case=case), tmp_path / "out")
    tokenizer = source_tokenizer(tmp_path / "out")
    sentences = [PAIRS[n][0] for n in (0, 1, 2)]
    if case == "factored":
        sentences = [sentence.upper() for sentence in sentences]
    text = " <sep> ".join(sentences)
    last = tokenizer.encode(sentences[2:])[0].tolist()
    rows, truncated = source_rows(tokenizer, [text], len(last) + 1)
    assert rows == [[*last, 3]] and not truncated
    rows, truncated = source_rows(tokenizer, [text], len(last))
    assert rows == [[*last[:-1], 3]] and truncated == [0]
    rows, truncated = source_rows(tokenizer, [text], 1000)
    assert rows[0][:-1] == tokenizer.encode([text])[0].tolist()


def test_tags_in_the_text_are_read_as_by_translate(tmp_path):
    """A sentence's own tag stands before its context, which has none."""
    tags = ["<2de>", "<2fr>"]
    own = [
        (f"{tags[row % 2]} {source}", target)
        for row, (source, target) in enumerate(PAIRS[:20])
    ]
    others = [
        dataclasses.replace(
            write_pairs(tmp_path, name, PAIRS[start : start + 20]), tag=tag
        )
        for name, tag, start in (("a", "<2de>", 20), ("b", "<2fr>", 40))
    ]
    train = [write_pairs(tmp_path, "own", own), *others]
    prepare(options(tmp_path, train=train), tmp_path / "out")
    found = decoded(tmp_path / "out", "train")
    sources = in_context([source for source, _ in own], 2, tags)
    assert found[:20] == [
        (source, target)
        for source, (_, target) in zip(sources, own, strict=True)
    ]
    assert sources[1] == f"<2fr> {PAIRS[0][0]} <sep> {PAIRS[1][0]}"


def test_a_tag_in_the_text_stays(tmp_path):
    given = options(tmp_path, user_defined_symbols=["<2de>", "<name>"])
    prepare(given, tmp_path / "out")
    tokenizer = source_tokenizer(tmp_path / "out")
    texts = in_context([PAIRS[n][0] for n in (0, 1, 2)], 2)[1:]
    longest = len(tokenizer.encode(texts[:1])[0])
    expected, _ = source_rows(tokenizer, texts, longest, "<2de>")
    own = [f"<2de> {text}" for text in texts]
    assert source_rows(tokenizer, own, longest, None, ["<2de>"])[0] == expected
    (tag,) = tokenizer.ids_of_pieces(["<2de>"])
    assert [row.count(tag) for row in expected] == [1, 1]
    # A symbol that is no tag is a part of the first sentence.
    named = [f"<name> {text}" for text in texts]
    (plain, _), (found, _) = (
        source_rows(tokenizer, given, longest, None, ["<2de>"])
        for given in (texts[1:], named[1:])
    )
    assert found == plain


def test_examples_in_capitals_have_a_shortened_context_too(tmp_path):
    given = options(tmp_path, context=6, case="factored", case_examples=1.0)
    given = dataclasses.replace(given, max_tokens=40)
    manifest = prepare(given, tmp_path / "out")
    entry = manifest["splits"]["train"]
    assert entry["case_examples"] == {"all_caps": 60, "capitalized": 60}
    assert entry["pairs"] == 3 * len(PAIRS)
    found = decoded(tmp_path / "out", "train")
    sources = [source for source, _ in found]
    assert "THE" in sources[1] and "the" not in "".join(sources[1::3])
    tokenizer = source_tokenizer(tmp_path / "out")
    assert max(map(len, tokenizer.encode(sources))) <= 40


def test_unknown_characters_are_named_after_a_shortened_context(
    tmp_path, caplog
):
    prepare(options(tmp_path), tmp_path / "given")
    model = tmp_path / "given" / "tokenizer" / "source.model"
    documents = [[*PAIRS[:4], ("the Łódź dog", "der Hund")], *DOCUMENTS[1:]]
    given = options(
        tmp_path, documents, tokenizer_source=str(model), max_tokens=25
    )
    prepare(given, tmp_path / "out")
    assert "such as Łó, ź. A model" in caplog.text


def test_shortlists_are_those_of_the_sentences_alone(tmp_path):
    prepare(options(tmp_path, shortlist_targets=4), tmp_path / "out")
    tokenizer = source_tokenizer(tmp_path / "out")
    store = PairStore(tmp_path / "out", "train")
    sources = tokenizer.encode([source for source, _ in PAIRS])
    targets = [target for _, target in store.read(range(len(store)))]
    expected = Shortlists.learn(
        zip(sources, targets, strict=True), 110, 110, num_targets=4
    )
    found = Shortlists.load(tmp_path / "out" / "shortlist.npz")
    np.testing.assert_array_equal(found.by_source, expected.by_source)


def test_only_whole_sentences_are_left_out():
    ids = np.array([5, 9, 6, 6, 9, 7, 7])
    for most, left in ((7, 7), (6, 5), (5, 5), (4, 2), (2, 2), (1, 2)):
        found = shorten_context(ids, most, mark=9)
        assert found.tolist() == ids[len(ids) - left :].tolist()
    tagged = np.array([4, *ids])
    assert shorten_context(tagged, 5, 9, first=1).tolist() == [4, 7, 7]
    # A mark that the tag has, or none, is left alone.
    assert shorten_context(np.array([9, 5, 6]), 2, 9, first=1).tolist() == [
        *(9, 5, 6)
    ]


def test_what_cannot_go_together_is_refused(tmp_path):
    with pytest.raises(UserError, match="context=2, mask_symbols=3"):
        options(tmp_path, mask_symbols=3)
    with pytest.raises(UserError, match="context=2, min_alignment_score=0.0"):
        options(tmp_path, min_alignment_score=0.0)
    plain = options(tmp_path, context=0)
    prepare(plain, tmp_path / "plain")
    model = str(tmp_path / "plain" / "tokenizer" / "source.model")
    with pytest.raises(UserError, match="`context` needs <sep> as a user-def"):
        prepare(
            dataclasses.replace(plain, context=1, tokenizer_source=model),
            tmp_path / "other",
        )
