"""What must be true of word alignments that come with training text.

* a token of a source word is linked with each token of the linked target word
* each pair keeps its own links, whatever is left out, held out, tagged,
  reversed or shown in other case, and in each batch, from whatever step on
* what a file must not say is refused in a line with the file, line and value
"""

import gzip
import itertools
import random
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from toy_corpus import prepare, toy_pairs, write_pairs

from keras_deepnmt.data import CorpusOptions, train_tokenizer
from keras_deepnmt.data.batches.alignment_inputs import AlignmentInputs
from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import choose_batch_shapes
from keras_deepnmt.data.batches.batch_source import BatchSource
from keras_deepnmt.data.batches.batch_transforms import WordDropout
from keras_deepnmt.data.manifest import describe_manifest
from keras_deepnmt.data.preparation.given_alignments import parse_links
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.data.token_links import token_links
from keras_deepnmt.errors import UserError


def test_tokens_are_linked_as_their_words_are(tmp_path):
    # No two letters stand together often: each is a piece, and the space too.
    tokenizer = train_tokenizer(
        ["ab cd", "ba dc", "ac bd"] * 9, tmp_path / "letters.model", 9
    )
    texts = "<t> ab c", "d ba"
    assert [len(ids) for ids in tokenizer.encode(["ab c", "d ba"])] == [5, 5]
    # Tokens of the source: ▁ a b ▁ c; of the target: ▁ d ▁ b a.
    found = token_links((tokenizer,) * 2, ("ab c", "d ba"), [(0, 1), (1, 0)])
    expected = [
        *((target, source) for target in (0, 1) for source in (3, 4)),
        *((target, source) for target in (2, 3, 4) for source in (0, 1, 2)),
    ]
    assert found.tolist() == [list(link) for link in expected]
    # Behind a tag the words keep their numbers.
    ((*_, tag),) = ([*tokenizer.token_words(texts[0], 3, True)],)
    assert tag == (1,)
    shift = len(tokenizer.encode([texts[0]])[0]) - 5
    behind = token_links((tokenizer,) * 2, texts, [(0, 1), (1, 0)], (3, 0))
    assert (behind - [0, shift]).tolist() == found.tolist()


def test_words_are_those_between_white_space_in_all_scripts(tmp_path):
    tokenizer = train_tokenizer(["我用 犬"] * 9, tmp_path / "cjk.model", 8)
    words = tokenizer.token_words("我用 犬", by_space=True)
    assert sorted(set(words)) == [(0,), (1,)]


# Rows of which some are left out: equal, too long, or without a word.
PAIRS = toy_pairs(150)
PAIRS[7] = PAIRS[3]
PAIRS[11] = ("the " * 40, "der Hund")
PAIRS[13] = (" ", "der Hund")
OTHERS = [(s + " too", t + " auch") for s, t in toy_pairs(60, seed=5)]
PLAIN = [(s + " yes", t + " ja") for s, t in toy_pairs(40, seed=7)]


def links_of(pair):
    """Links that depend on the words of a pair alone."""
    draw = random.Random("|".join(pair))
    sizes = [len(side.split()) for side in pair]
    links = itertools.product(*map(range, sizes))
    return sorted(link for link in links if draw.random() < 0.3)


def write_alignments(file, pairs, is_reversed=False, compress=bytes):
    lines = []
    for pair in pairs:
        links = links_of(pair[::-1] if is_reversed else pair)
        links = [link[::-1] if is_reversed else link for link in links]
        lines.append(" ".join(f"{a}-{b}" for a, b in links) + "\n")
    file.write_bytes(compress("".join(lines).encode()))
    return str(file)


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    folder = tmp_path_factory.mktemp("aligned")
    # The second corpus stands in its files the other way round.
    swapped = [pair[::-1] for pair in OTHERS]
    train = [
        replace(
            write_pairs(folder, "first", PAIRS),
            tag="<2de>",
            alignments=write_alignments(
                folder / "first.align.gz", PAIRS, compress=gzip.compress
            ),
        ),
        replace(
            write_pairs(folder, "second", swapped),
            tag="<2xx>",
            reversed=True,
            alignments=write_alignments(folder / "second.align", swapped, True),
        ),
        write_pairs(folder, "third", PLAIN),
    ]
    return PrepareOptions(
        train=train,
        vocabulary_size=130,
        valid_pairs=9,
        max_length=30,
        case_examples=0.2,
        case="factored",
    )


@pytest.fixture(scope="module")
def data(options, tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared") / "out"
    prepare(options, folder)
    return PreparedData(folder)


def expected_links(data, row, pair):
    """The links of a prepared pair, from its text."""
    tokenizers = data.source_tokenizer, data.target_tokenizer
    source, target = (
        tokenizer.decode([ids])[0]
        for tokenizer, ids in zip(tokenizers, pair, strict=True)
    )
    tag = re.match(r"<2..>|", source)[0]
    texts = source[len(tag) :].lstrip(), target
    known = {
        tuple(text.casefold() for text in one): one
        for one in [*PAIRS, *OTHERS, *PLAIN]
    }
    original = known[tuple(text.casefold() for text in texts)]
    words = links_of(original) if tag else []
    return token_links(tokenizers, (source, target), words, (len(tag), 0))


def test_each_pair_keeps_its_links(data):
    store = data.store("train")
    train = data.manifest["splits"]["train"]
    assert data.manifest["filters"]["train"]["held_out"] == 9
    assert sum(train["case_examples"].values()) > 20
    rows = range(len(store))
    found = data.links.read(rows)
    for row, pair, links in zip(rows, store.read(rows), found, strict=True):
        expected = expected_links(data, row, pair)
        assert links.tolist() == expected.tolist(), row
    aligned = sum(len(links) > 0 for links in found)
    assert 200 < aligned == train["aligned_pairs"] < len(store)
    assert f"alignments: {aligned} of" in describe_manifest(data.manifest)


def test_batches_have_the_links_of_their_pairs_from_any_step_on(data):
    store = data.store("train")
    shapes = choose_batch_shapes(store.lengths, 200, max_shapes=3)
    plan = BatchPlan(store.lengths, shapes, seed=4)
    transforms = [WordDropout(0.3), AlignmentInputs(data.links, plan)]
    source = BatchSource(store, plan, transforms=transforms)
    for step in (plan.batches_per_epoch + 3, 0, 5):
        inputs, labels = source[step]
        rows = plan.batch(step)[1].tolist()
        expected = np.zeros((*labels.shape, inputs["source_ids"].shape[1]))
        for place, (row, pair) in enumerate(
            zip(rows, store.read(rows), strict=True)
        ):
            links = expected_links(data, row, pair)
            expected[place, links[:, 0], links[:, 1]] = 1
        np.testing.assert_array_equal(inputs["alignments"], expected)
        # A run that goes on at this step reads the same.
        resumed = BatchSource(store, plan, step, transforms=transforms)[0][0]
        for name, values in inputs.items():
            np.testing.assert_array_equal(values, resumed[name])
    assert expected.any()


def test_a_corpus_that_is_given_twice_has_its_links_twice(tmp_path):
    pairs = toy_pairs(20)
    corpus = replace(
        write_pairs(tmp_path, "train", pairs),
        alignments=write_alignments(tmp_path / "train.align", pairs),
    )
    given = PrepareOptions(
        train=[corpus, corpus], vocabulary_size=60, drop_duplicates=False
    )
    prepare(given, tmp_path / "out")
    found = PreparedData(tmp_path / "out").links.read(range(40))
    rows = [links.tolist() for links in found]
    assert any(rows) and rows[:20] == rows[20:]


def test_a_folder_of_other_alignments_is_not_used_again(
    options, data, tmp_path
):
    again = prepare(options, data.directory)
    assert again["corpora"] == data.manifest["corpora"]
    file = tmp_path / "first.align"
    file.write_text("\n" * len(PAIRS))
    first = replace(options.train[0], alignments=str(file))
    for corpus in (first, replace(first, alignments=None)):
        changed = replace(options, train=[corpus, *options.train[1:]])
        with pytest.raises(UserError, match=r"other alignments of .*first\."):
            prepare(changed, data.directory)


def test_damaged_links_are_refused(data, tmp_path):
    copy = shutil.copytree(data.directory, tmp_path / "copy")
    (copy / "train.links").write_bytes(b"\0" * 8)
    with pytest.raises(UserError, match=r"train\.links"):
        PreparedData(copy)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0-0 1-x", r"line 3: a link must be .* Received: '1-x'"),
        ("0-0 1p1", r"'1p1'\. Possible links have no place here: leave them"),
        ("0-0 1?1", "'1[?]1'. Possible links"),
        ("9-0", r"line 3: .*source sentence, which has 7, .* word 9 in 9-0"),
        ("0-8", r"line 3: .*target sentence, which has 7, .* word 8 in 0-8"),
        ("0-0\n0-0", r"each of the 5 lines .* Received: 6 lines"),
        ("9-0\n0-0", r"each of the 5 lines .* Received: 6 lines"),
        # A file that is no text of links, or one number of them all.
        ("0-" + "8" * 5000, r"line 3: a link must be .* Received: '0-88*'"),
        (None, r"each of the 5 lines .* Received: 4 lines"),
    ],
)
def test_bad_alignments_are_refused_in_a_line(tmp_path, line, message):
    lines = ["0-0", "", *([] if line is None else [line]), "1-1", "2-2"]
    file = tmp_path / "given.align"
    file.write_text("".join(one + "\n" for one in lines))
    corpus = replace(
        write_pairs(tmp_path, "a", toy_pairs(5)), alignments=str(file)
    )
    with pytest.raises(UserError, match=message) as raised:
        prepare(PrepareOptions(train=[corpus]), tmp_path / "out")
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_parsed_links():
    assert parse_links(" 0-0  12-3\t", "a") == [(0, 0), (12, 3)]


def test_alignments_are_of_two_text_files_in_training():
    texts = {"source": "a", "target": "b", "alignments": "c"}
    with pytest.raises(UserError, match=r"Received: alignments=c, file=a\.tmx"):
        CorpusOptions(file="a.tmx", alignments="c")
    with pytest.raises(UserError, match="translated_by=run"):
        CorpusOptions(source="a", translated_by="run", alignments="c")
    with pytest.raises(UserError, match="alignments=c in `valid`"):
        PrepareOptions(
            train=[CorpusOptions("a", "b")], valid=CorpusOptions(**texts)
        )
    for option in ({"context": 1}, {"mask_symbols": 2}):
        with pytest.raises(UserError, match="`alignments` cannot be used with"):
            PrepareOptions(train=[CorpusOptions(**texts)], **option)
