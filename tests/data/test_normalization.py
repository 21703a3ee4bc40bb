"""What must be true of what happens to a text before it is cut into pieces.

* it stands in the tokenizer's file: `prepare`, translation and exported graphs
  give the same ids for any line, also of given and of old tokenizers
* the page about it says what is so, character by character
* what comes out on the target side is what the corpus has
* a line of nothing but dropped characters is empty
"""

import random
import re
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from foreign_tokenizer import foreign_tokenizer
from sentencepiece import sentencepiece_model_pb2

from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.model_files import with_normalization
from keras_deepnmt.data.normalization import NORMALIZATIONS, load_normalization
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
from keras_deepnmt.data.preparation.text_filters import compared_text
from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.data.word_units import word_spans
from keras_deepnmt.errors import UserError
from keras_deepnmt.masks import END_ID, UNKNOWN_ID
from keras_deepnmt.recipes import load_recipe

PAGE = Path(__file__).parents[2] / "docs" / "text.md"
SCRIPTS = (
    "abcdefgh ÄÖÜß",
    "абвгд",
    "αβγδ",
    "אבגד\u05b0\u05bc",
    "ابتث\u064b\u0651",
    "कखग\u094d\u093f\u200d",
    "กขค\u0e31\u0e48",
    "한국어\u1112\u1161\u11ab",
    "漢字，。「」",
    "ひらガナ\u3099",
    "ﬁ½①ｆｕｌｌ…№´¨",
    "👩\u200d👩🏽\ufe0f🇩🇪",
    "\u0301\u0323\u0302\u0308",
    "<>/s",
)
LETTERS_OF_TWO_CASES = "aAbBéÉßẞǆǅǄİıſ"
CONTROLS_AND_SEPARATORS = (
    *map(chr, [*range(0x09), *range(0x0B, 0x21), *range(0x7F, 0xA1)]),
    *"\xad\u061c\u1680\u180e\u200b\u200c\u200d\u200e\u2028\u2029\u202f\u205f",
    *"\u2060\u3000\ufeff\ufffd\u2581\u2585\u2047",
    *("<s>", "</s>", "<unk>", "<pad>", "<2de>", "<2DE>", "  "),
)
LEARNED = [
    " ".join("".join(script) for script in SCRIPTS) + f" {word}"
    for word in ("der Hund läuft", "die Katze", "<s> a/b")
] * 20


def random_line(generator):
    """Letters of several scripts, controls, separators, and any character."""
    parts = []
    for _ in range(generator.randrange(1, 14)):
        choice = generator.random()
        if choice < 0.4:
            letters = generator.choice((*SCRIPTS, LETTERS_OF_TWO_CASES))
            parts += generator.choices(letters, k=generator.randrange(1, 4))
        elif choice < 0.8:
            parts.append(generator.choice(CONTROLS_AND_SEPARATORS))
        elif choice < 0.9:
            parts.append(" ")
        else:
            code = generator.randrange(0x10F800)
            parts.append(chr(code + 0x800 if code >= 0xD800 else code))
    # A carriage return at the end would belong to the line end of a file.
    return "".join(parts).replace("\n", "\v").rstrip("\r")


@pytest.fixture(scope="module")
def lines():
    generator = random.Random(5)
    return [random_line(generator) for _ in range(1500)]


# Options of SentencePiece; without any, as earlier versions trained it.
FOREIGN = {
    "earlier": {},
    "earlier unigram": {"model_type": "unigram", "hard_vocab_limit": False},
    "marks at the ends of words": {"treat_whitespace_as_suffix": True},
    "pieces across spaces": {"split_by_whitespace": False},
    "no first mark": {"add_dummy_prefix": False},
    "all spaces": {"remove_extra_whitespaces": False},
    "other rule": {"normalization_rule_name": "nmt_nfkc_cf"},
}
OWN = {
    **{name: {"normalization": name} for name in NORMALIZATIONS},
    "unigram": {"model_type": "unigram", "vocabulary_size": 98},
    "factored case": {"normalization": "nfc", "case": "factored"},
    "factored case and symbols": {
        "vocabulary_size": 356,
        "model_type": "unigram",
        "case": "factored",
        "byte_fallback": True,
        "user_defined_symbols": ["<2DE>", "b", "Ä", "①", "a"],
    },
    "bytes and symbols": {
        "vocabulary_size": 420,
        "byte_fallback": True,
        "split_digits": True,
        "user_defined_symbols": ["<2de>", "①", "漢"],
    },
}


@pytest.fixture(scope="module", params=[*OWN, *FOREIGN])
def tokenizer(request, tmp_path_factory):
    file = tmp_path_factory.mktemp("tokenizer") / f"{request.param}.model"
    if request.param in FOREIGN:
        options = {"vocab_size": 160, "normalization_rule_name": "nfkc"}
        options |= FOREIGN[request.param]
        return foreign_tokenizer(LEARNED, file, **options)
    options = {"vocabulary_size": 160, **OWN[request.param]}
    return train_tokenizer(LEARNED, file, **options)


@pytest.mark.thorough
def test_ids_are_the_same_in_prepare_translation_and_export(
    tokenizer, lines, tmp_path
):
    import tensorflow as tf

    from keras_deepnmt.translator.requests import label_rows, source_rows

    # As the translator and `score` read a line.
    rows, truncated = source_rows(tokenizer, lines, 10_000)
    assert not truncated
    assert rows == label_rows(tokenizer, lines, None)
    ids = [row[:-1] for row in rows]
    assert all(row[-1] == END_ID for row in rows)

    # As `prepare` does, which leaves out what is empty.
    others = list(reversed(lines))
    for side, texts in (("a", lines), ("b", others)):
        (tmp_path / side).write_bytes(
            "".join(text + "\n" for text in texts).encode()
        )
    corpus = CorpusOptions(str(tmp_path / "a"), str(tmp_path / "b"))
    options = PrepareOptions(
        train=[corpus],
        valid=corpus,
        tokenizer_source=str(tokenizer.model_file),
        case_examples=0.0,
        drop_duplicates=False,
        drop_identical=False,
        max_ratio=float("inf"),
    )
    prepare_corpus(options, tmp_path / "prepared", progress=False)
    data = PreparedData(tmp_path / "prepared")
    for split in ("train", "valid"):
        is_empty = [
            tokenizer.normalization.is_empty(line)
            # Training text that shows nothing is left out in any case.
            or (split == "train" and not compared_text(line))
            for line in lines
        ]
        kept = [
            (ids[row], ids[-1 - row])
            for row in range(len(lines))
            if not is_empty[row] and not is_empty[-1 - row]
        ]
        assert len(kept) > 1000
        store = data.store(split)
        read = store.read(range(len(store)))
        assert [tuple(map(list, pair)) for pair in read] == kept

    # As an exported graph does, in this process and loaded again.
    module = tf.Module()
    module.tokenizer = tokenizer.in_graph_tokenizer()
    texts = tf.TensorSpec((None,), tf.string)
    module.tokenize = tf.function(module.tokenizer.tokenize, [texts])
    module.detokenize = tf.function(
        module.tokenizer.detokenize,
        [tf.RaggedTensorSpec((None, None), tf.int32)],
    )
    tf.saved_model.save(module, tmp_path / "export")
    loaded = tf.saved_model.load(tmp_path / "export")
    decoded = tokenizer.decode(ids)
    for graph in (module, loaded):
        found = graph.tokenize(tf.constant(lines)).to_list()
        if tokenizer.model_file.name == "earlier unigram.model":
            # Of two segmentations with the same pieces in another order, the
            # two versions of SentencePiece choose by how their sums round.
            same = [a == b for a, b in zip(found, ids, strict=True)]
            assert sum(same) > 0.99 * len(lines)
            assert list(map(sorted, found)) == list(map(sorted, ids))
        else:
            assert found == ids
        joined = graph.detokenize(tf.ragged.constant(ids, tf.int32)).numpy()
        texts = [text.decode() for text in joined]
        if not tokenizer.normalization.spec.remove_extra_whitespaces:
            # Of the spaces at the beginning, the SentencePiece of
            # tensorflow-text drops all, and that of Python one.
            texts = [text.lstrip(" ") for text in texts]
            decoded = [text.lstrip(" ") for text in decoded]
        assert texts == decoded


def test_equal_sums_are_equal_in_every_version_of_sentencepiece(tmp_path):
    """Of ".", ".." and "..", "." each version takes the same, in any line."""
    import tensorflow as tf

    generator = random.Random(3)
    tokenizer = train_tokenizer(LEARNED, tmp_path / "m", 98, "unigram")
    lines = [random_line(generator) + "…" for _ in range(20_000)]
    pieces = tokenizer.pieces(range(98))
    assert "..." not in pieces and {".", ".."} <= {*pieces}
    found = tokenizer.in_graph_tokenizer().tokenize(tf.constant(lines))
    expected = [row.tolist() for row in tokenizer.encode(lines)]
    assert found.to_list() == expected


def test_a_line_is_empty_if_it_has_no_tokens_but_spaces(tokenizer, lines):
    for line, row in zip(lines, tokenizer.encode(lines), strict=True):
        pieces = "".join(tokenizer.pieces(row))
        is_empty = tokenizer.normalization.is_empty(line)
        assert is_empty == (not pieces.strip("▁")), ascii(line)


def test_a_loaded_file_says_what_the_tokenizer_does(tokenizer, lines, tmp_path):
    tokenizer.save(tmp_path / "again.model")
    again = Tokenizer(tmp_path / "again.model")
    assert again.sha256 == tokenizer.sha256
    assert again.normalization.is_same(tokenizer.normalization)
    for one, other in zip(
        tokenizer.encode(lines), again.encode(lines), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_every_token_belongs_to_words_of_the_line(tokenizer, lines):
    for line, ids in zip(lines, tokenizer.encode(lines), strict=True):
        spans = tokenizer.token_spans(line)
        words = tokenizer.token_words(line)
        assert len(spans) == len(words) == len(ids)
        assert all(0 <= a <= b <= len(line) for a, b in spans)
        assert spans == sorted(spans)
        number = len(word_spans(line))
        for of_token in words:
            # With `identity` a line may be white space alone, and no word.
            assert of_token and max(of_token) < max(number, 1)


def table_rows():
    """`(code points, rule, what is expected)` of the page's table."""
    text = PAGE.read_text(encoding="utf-8").partition("## Characters")[2]
    header, *rows = re.findall(r"^\| (.*\(`nfkc`\).*|.*U\+.*) \|$", text, re.M)
    rules = [re.search("`(.*)`", cell)[1] for cell in header.split(" | ")[1:]]
    for row in rows:
        characters, *cells = row.split(" | ")
        listed = characters.rpartition(": ")[2]
        codes = []
        for part in listed.split(", "):
            first, *last = (int(c, 16) for c in re.findall(r"U\+(\w+)", part))
            codes += range(first, (last or [first])[0] + 1)
        for rule, cell in zip(rules, cells, strict=True):
            yield codes, rule, cell


def test_the_page_says_what_each_rule_makes_of_a_character(tmp_path):
    tokenizers = {
        rule: train_tokenizer(LEARNED, tmp_path / rule, 160, normalization=rule)
        for rule in ("nfkc", "nfc")
    }
    table = list(table_rows())
    assert len(table) > 40
    for codes, rule, cell in table:
        for code in codes:
            made = tokenizers[rule].normalization.normalize(f"a{chr(code)}b")
            expected = {"a space": " ", "dropped": "", "kept": chr(code)}.get(
                cell,
                "".join(chr(int(c, 16)) for c in re.findall(r"U\+(\w+)", cell)),
            )
            assert made == f"a{expected}b", (hex(code), rule)


def test_the_table_has_all_white_space_and_all_controls():
    for rule in ("nfkc", "nfc"):
        listed = {
            code
            for codes, name, _ in table_rows()
            if name == rule
            for code in codes
        }
        assert {
            code
            for code in range(0x110000)
            if chr(code).isspace() or unicodedata.category(chr(code)) == "Cc"
        } - {0x20} <= listed


def test_composed_forms_are_those_of_unicode():
    rule = load_normalization("nfc")
    for code in range(0x30000):
        character = chr(code)
        if unicodedata.category(character) in ("Cs", "Cn", "Cc", "Zs"):
            continue
        if character in " \u2028\u2029\u2581":
            continue
        for form in ("NFC", "NFD"):
            text = f"a{unicodedata.normalize(form, character)}b"
            composed = unicodedata.normalize("NFC", text)
            assert rule.normalize(text) == composed, hex(code)
    vietnamese = {
        "\u00e2\u0323": "ậ",
        "a\u0302\u0323": "ậ",
        "\u1ea1\u0302": "ậ",
    }
    for rule in ("nfc", "nfkc"):
        for text, expected in vietnamese.items():
            assert load_normalization(rule).normalize(text) == expected


def test_what_cannot_be_seen_changes_no_id_of_a_source(tmp_path):
    tokenizer = train_tokenizer(LEARNED, tmp_path / "m", 160)
    (expected,) = tokenizer.encode(["der Hund läuft"])
    assert UNKNOWN_ID not in expected
    spaces = [*"\t\v\f\r\n\x1c\x1d\x1e\x1f\x85\u1680\u2028\u2029", "\r\n"]
    for nothing in ["", *"\xad\u200b\ufeff\0\x07\u2060\u200e"]:
        for space in spaces:
            text = f"{nothing}der{space}{nothing} Hu{nothing}nd{space}läuft"
            (received,) = tokenizer.encode([text + nothing])
            assert received.tolist() == expected.tolist(), ascii(text)


def test_what_the_corpus_has_on_the_target_side_comes_out(tmp_path):
    texts = ["今天早上，我的老师…№ 5，不是吗？", "d’accord « ½ » ﬁn"] * 9
    tokenizer = train_tokenizer(
        texts, tmp_path / "t.model", 50, normalization="nfc"
    )
    assert tokenizer.decode(tokenizer.encode(texts)) == texts


def test_a_corrector_that_changes_nothing_changes_nothing(
    corpora_dir, tmp_path
):
    folder = corpora_dir / "ua-gec"
    tokenizer = train_tokenizer(
        [folder / "train.tok.src", folder / "train.tok.trg"],
        tmp_path / "m",
        4000,
        normalization=load_recipe(
            "transformer_tiny.ua_gec"
        ).data.source_normalization,
    )
    lines = (folder / "test.m2").read_text(encoding="utf-8").split("\n")
    sources = [line[2:] for line in lines if line.startswith("S ")]
    known = [
        (source, tokenizer.decode([ids])[0])
        for source, ids in zip(sources, tokenizer.encode(sources), strict=True)
        if UNKNOWN_ID not in ids
    ]
    assert len(known) > 0.99 * len(sources)
    assert [source for source, _ in known] == [copy for _, copy in known]


@pytest.mark.parametrize("joint", [True, False])
def test_each_side_has_its_own_rule(tmp_path, joint):
    (tmp_path / "s").write_text("ein\tHund …\nzwei\u00ad ﬁne\u200b …\n" * 9)
    (tmp_path / "t").write_text("a dog，…\ntwo ﬁne，…\n" * 9)
    corpus = CorpusOptions(str(tmp_path / "s"), str(tmp_path / "t"))
    options = PrepareOptions(
        train=[corpus], vocabulary_size=34, joint=joint, drop_duplicates=False
    )
    manifest = prepare_corpus(options, tmp_path / "out", progress=False)
    data = PreparedData(tmp_path / "out")
    source, target = data.source_tokenizer, data.target_tokenizer
    assert source.has_pieces_of(target) is joint
    assert manifest["filters"]["train"]["kept"] == 18
    (ours, theirs), *_ = data.store("train").read([1])
    assert source.decode([ours]) == ["zwei fine ..."]
    assert target.decode([theirs]) == ["two ﬁne，…"]


def test_lines_that_a_tokenizer_reads_as_nothing_are_empty(tmp_path):
    nothing = ("\u00ad\u200b", "\t \u2028", "\u0085\x1c", "\ufeff \x00\x01")
    lines = [*nothing, "ein Hund"]
    (tmp_path / "s").write_text("\n".join(lines) + "\n")
    (tmp_path / "t").write_text("\n".join("abcde") + "\n")
    corpus = CorpusOptions(str(tmp_path / "s"), str(tmp_path / "t"))
    options = PrepareOptions(train=[corpus], vocabulary_size=18)
    manifest = prepare_corpus(options, tmp_path / "out", progress=False)
    counts = manifest["filters"]["train"]
    assert counts["empty"] == 4 and counts["kept"] == 1
    tokenizer = PreparedData(tmp_path / "out").source_tokenizer
    assert [len(ids) for ids in tokenizer.encode(list(nothing))] == [0] * 4


def test_a_file_of_rules_is_read(tmp_path):
    file = tmp_path / "rules.tsv"
    file.write_text("# dots\n2026\t2E 2E\n\n61 62\tU+63\r\nAD\t\n")
    rule = load_normalization(str(file))
    assert rule.normalize("ab… a\u00ad\tb") == "c.. a\tb"
    for line in ("zz\t61", "61", "\t61", "0\t61", "D800\t61", "110000\t61"):
        file.write_text("61\t62\n" + line + "\n")
        with pytest.raises(UserError, match="line 2: a rule must be the hexa"):
            load_normalization(str(file))
    file.write_text("# nothing\n")
    with pytest.raises(UserError, match="has no rule"):
        load_normalization(str(file))
    with pytest.raises(UserError, match="one of nfkc, nfc, nmt_nfkc, identity"):
        load_normalization("nfd")


def test_a_step_of_a_later_version_is_named(tmp_path):
    rule = load_normalization("nfc")
    model = train_tokenizer(LEARNED, tmp_path / "m", 160).proto
    step = type("Later", (), {"name": "fold_case"})
    later = type("", (), {"spec": rule.spec, "steps": [step]})
    (tmp_path / "later").write_bytes(with_normalization(model, later))
    with pytest.raises(UserError, match="does not know .*: fold_case. Update"):
        Tokenizer(tmp_path / "later")
    # As long, but no list of names: the content of a field of its own.
    known = (tmp_path / "later").read_bytes()
    for odd in (b'{"steps": "fold case"}', b"[[[[[[[[[]]]]]]]]]    "):
        start = known.index(b'{"steps"')
        file = tmp_path / "odd"
        file.write_bytes(known[:start] + odd.ljust(len(known) - start))
        with pytest.raises(UserError, match=f"{file}: damaged: .*must be"):
            Tokenizer(file)


def test_other_programs_read_our_files(tmp_path):
    ours = train_tokenizer(LEARNED, tmp_path / "m", 160)
    theirs = sentencepiece.SentencePieceProcessor(
        model_file=str(tmp_path / "m")
    )
    text = "der\tHund\u00ad ﬁ"
    assert theirs.encode(text) == ours.encode([text])[0].tolist()
    model = sentencepiece_model_pb2.ModelProto.FromString(ours.proto)
    assert model.normalizer_spec.name == "nfkc"


def test_what_is_asked_of_a_given_tokenizer_must_be_its_rule(tmp_path):
    (tmp_path / "text").write_text("ein Hund\nzwei Hunde\n")
    train_tokenizer(LEARNED, tmp_path / "m", 160, normalization="nfc")
    corpus = CorpusOptions(str(tmp_path / "text"), str(tmp_path / "text"))

    def prepare(rule, name):
        options = PrepareOptions(
            train=[corpus],
            drop_identical=False,
            tokenizer_source=str(tmp_path / "m"),
            source_normalization=rule,
        )
        return prepare_corpus(options, tmp_path / name, progress=False)

    assert prepare("nfc", "same")["joint"]
    with pytest.raises(UserError, match="`source_normalization` must be left"):
        prepare("nfkc", "other")
    # Both sides: `joint` is its default.
    tokenizer = PreparedData(tmp_path / "same").target_tokenizer
    assert tokenizer.normalization.normalize("…") == "…"


@pytest.mark.parametrize(
    "name", ["target_normalization", "user_defined_symbols_file"]
)
def test_a_file_that_is_missing_is_named_with_its_option(tmp_path, name):
    text = tmp_path / "text"
    text.write_text("a b\n")
    corpus = CorpusOptions(str(text), str(text))
    options = PrepareOptions(train=[corpus], **{name: str(tmp_path / "none")})
    with pytest.raises(UserError, match=f"^`{name}`: .*none"):
        prepare_corpus(options, tmp_path / "out", progress=False)
    assert not (tmp_path / "out").exists()


def test_changed_files_of_rules_and_symbols_are_noticed(tmp_path):
    (tmp_path / "s").write_text("ein Hund …\nzwei <2de> Hunde\n")
    (tmp_path / "t").write_text("a dog\ntwo dogs\n")
    rules, symbols = tmp_path / "rules", tmp_path / "symbols"
    rules.write_text("2026\t2E\n")
    symbols.write_text("<2de>\n\n<2en>\n")
    options = PrepareOptions(
        train=[CorpusOptions(str(tmp_path / "s"), str(tmp_path / "t"))],
        vocabulary_size=33,
        source_normalization=str(rules),
        user_defined_symbols=["<2fr>"],
        user_defined_symbols_file=str(symbols),
    )

    def prepare():
        return prepare_corpus(options, tmp_path / "out", progress=False)

    first = prepare()
    assert prepare() == first
    tokenizer = PreparedData(tmp_path / "out").source_tokenizer
    assert tokenizer.user_defined_symbols == ["<2fr>", "<2de>", "<2en>"]
    assert tokenizer.pieces(tokenizer.encode(["<2de>…"])[0])[1:] == [
        "<2de>",
        ".",
    ]
    for file, content in ((rules, "2026\t2D\n"), (symbols, "<2it>\n")):
        before = file.read_text()
        file.write_text(content)
        with pytest.raises(UserError, match=f"{file.name} was changed since"):
            prepare()
        file.write_text(before)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  zwei   Wörter ", "zwei Wörter"),
        ("u\u0308ber", "über"),
        ("ﬁne ① ｆｕｌｌ", "fine 1 full"),
        ("a\u2028b\u00a0c\u3000d\te\x85f", "a b c d e f"),
        ("", ""),
        (" \u00a0\u2003", ""),
    ],
)
def test_compared_text_is_nfkc_with_single_spaces(text, expected):
    assert compared_text(text) == expected
    assert compared_text(expected) == expected
