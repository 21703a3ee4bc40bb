"""What must be true of factored case.

* a word has the same pieces in every case, after the symbol of its case
* any line comes back as it was, letter by letter, in Python and in a graph
* where a model writes symbols at odd places, no user sees them
* texts that are one piece keep their letters
* both symbols have a piece, whatever the corpus has
* what is part of a sentence has symbols for its own words alone
* a token belongs to a word of the line, a symbol to the word that it is for
* `prepare` shows a share of the pairs in capitals too, and says so
* a given tokenizer decides by its own file
"""

import random
import re
import unicodedata

import numpy as np
import pytest

from keras_deepnmt.cli import main
from keras_deepnmt.data.batches.segmentation import RandomSegmentation
from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.factored_case import FactoredCase
from keras_deepnmt.data.letter_case import (
    ALL_CAPITALS,
    CAPITAL,
    CASE_SYMBOLS,
    DROPPED,
    EACH_CAPITAL,
    LOWER_CASE,
    NEUTRAL,
    TO_LOWER,
    UPPER_CASE,
)
from keras_deepnmt.data.manifest import describe_manifest, row_weights
from keras_deepnmt.data.normalization import load_normalization
from keras_deepnmt.data.preparation.case_examples import all_caps, capitalized
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.masks import UNKNOWN_ID

SYMBOLS = [
    *("<NAME>", "<2DE>", "⟪Ab⟫", "ab", "NAME", "Name", "ßA", "a b", "."),
    *("<name>", "Ǆ", " x", "<sep>"),
]
LETTERS = sorted(UPPER_CASE | LOWER_CASE | NEUTRAL)
TEXTS = [
    "Der kleine Hund der NATO schläft, sagt McDonald.",
    "Die großen Katzen der USA schlafen, sagen <NAME> und die Leute.",
] * 20


READABLE = str.maketrans(dict(zip(CASE_SYMBOLS, "₁₂₃₄", strict=True)))
WRITTEN = str.maketrans(dict(zip("₁₂₃₄", CASE_SYMBOLS, strict=True)))


def random_line(generator):
    """Letters of any case, marks, symbols of users and any character.

    Some lines, or their ends, are in capitals or capitalized.
    """
    line, start = random_letters(generator), generator.randrange(9)
    choice = generator.randrange(6)
    if choice < 2:
        start *= choice
        line = line[:start] + line[start:].upper()
    elif choice < 4:
        start *= choice - 2
        line = line[:start] + line[start:].title()
    return line


def random_letters(generator):
    parts = []
    for _ in range(generator.randrange(25)):
        choice = generator.random()
        if choice < 0.35:
            parts.append(generator.choice("abcABCäÄßSs"))
        elif choice < 0.55:
            parts.append(generator.choice(LETTERS))
        elif choice < 0.7:
            parts.append(generator.choice([*SYMBOLS, *DROPPED]))
        elif choice < 0.8:
            parts.append(generator.choice(" -.'<>"))
        elif choice < 0.85:
            parts.append(chr(generator.randrange(0x300, 0x370)))
        else:
            code = generator.randrange(1, 0x10F800)
            parts.append(chr(code + 0x800 if code >= 0xD800 else code))
    return "".join(parts)


def random_output(generator):
    """What no text has: symbols anywhere, and symbols of users."""
    parts = [
        *CASE_SYMBOLS,
        *(f"{s} " for s in CASE_SYMBOLS),
        *" abAß.é\u0301\n",
        *("a b", "<2DE>", "ab", "<sep>"),
    ]
    return "".join(generator.choices(parts, k=generator.randrange(14)))


@pytest.fixture(scope="module")
def lines():
    generator = random.Random(11)
    return [random_line(generator) for _ in range(5_000)]


@pytest.fixture(scope="module")
def outputs():
    generator = random.Random(12)
    return [random_output(generator) for _ in range(5_000)]


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def tokenizer(request, tmp_path_factory):
    return train_tokenizer(
        TEXTS,
        tmp_path_factory.mktemp("case") / "m",
        64 if request.param == "bpe" else 40,
        request.param,
        normalization="nfc",
        case="factored",
        user_defined_symbols=["<NAME>"],
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("der Der DER", "der ₁ der ₂ der"),
        ("USAs", "₂ us₁ as"),
        ("ABs A AB ab", "₁ a₁ bs ₁ a ₂ ab ab"),
        ("McDonald iPhone", "₁ mc₁ donald i₁ phone"),
        ("NATO-Staaten O'NEILLs", "₂ nato-₁ staaten ₁ o'₂ neil₁ ls"),
        ("STRAßE Straße STRASSE", "₂ straße ₁ straße ₂ strasse"),
        ("ÜBER E\u0301COLE \u00c9cole", "₂ über ₂ école ₁ école"),
        ("HU\u00adND", "₂ hu\u00adnd"),
        ("İstanbul ǅ ẞ", "₁ İstanbul ₁ ǅ ₁ ẞ"),
        ("ΑΒΓ Жук Ა", "₂ αβγ ₁ жук ₁ ა"),
        ("123 中文 ...", "123 中文 ..."),
        ("DER HUND, A-B", "₃ der hund, a-b"),
        ("die Frau: NEIN, ICH", "die ₁ frau: ₃ nein, ich"),
        ("DIE Frau: NEIN", "₂ die ₁ frau: ₂ nein"),
        ("A B C", "₁ a ₁ b ₁ c"),
        ("Die 'Neue' (Stadt) An 3 Seen", "₄ die 'neue' (stadt) an 3 seen"),
        ("das Neue Ist Nicht Gut", "das ₄ neue ist nicht gut"),
        ("Die NATO Ist Nicht Gut", "₁ die ₂ nato ₁ ist ₁ nicht ₁ gut"),
    ],
)
def test_symbols_stand_before_lower_case_letters(text, expected):
    rule = load_normalization("nfc", "factored")
    assert rule.normalize(text).translate(READABLE) == expected
    plain = load_normalization("nfc").normalize(text)
    assert FactoredCase().after(rule.normalize(text)) == plain


def test_letters_with_a_partner_are_those_of_one_version_of_unicode():
    """Another version of Unicode would read the texts of old runs anew."""
    assert (len(UPPER_CASE), len(TO_LOWER)) == (1433, 1396)
    for text in "ßẞİıſǅΣς":
        assert text not in TO_LOWER or text == "Σ"


@pytest.mark.thorough
@pytest.mark.parametrize("rule", ["nfc", "identity", "nfkc", "nmt_nfkc"])
def test_every_line_comes_back_as_the_rule_keeps_it(rule, lines):
    kept = load_normalization(rule)
    factored = load_normalization(rule, "factored")
    step = FactoredCase()
    for line in lines:
        if any(symbol in line for symbol in DROPPED):
            continue
        plain = kept.normalize(line)
        # Of what nfkc replaces, such as "№", the case is not known.
        text = line if rule in ("nfc", "identity") else plain
        if kept.normalize(text) != plain:
            continue
        assert step.after(factored.normalize(text)) == plain, ascii(line)


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize("symbols", [(), SYMBOLS])
def test_a_graph_does_the_same(symbols, lines, outputs):
    import tensorflow as tf

    step = FactoredCase(symbols)
    texts = tf.TensorSpec((None,), tf.string)
    before = tf.function(step.before_in_graph, [texts])
    after = tf.function(step.after_in_graph, [texts])
    found = [text.decode() for text in before(tf.constant(lines)).numpy()]
    assert found == [step.before(line) for line in lines]
    found = [text.decode() for text in after(tf.constant(outputs)).numpy()]
    assert found == [step.after(text) for text in outputs]
    assert before(tf.constant([], tf.string)).shape == (0,)
    assert after(tf.constant([], tf.string)).shape == (0,)
    for text in ("", "Der"):
        inserted = step.before_in_graph(tf.constant(text))
        assert inserted.numpy().decode() == step.before(text)
        assert step.after_in_graph(inserted).numpy().decode() == text


def test_places_are_those_of_the_line(lines):
    step = FactoredCase(SYMBOLS)
    for line in lines[:3000]:
        text, places = step.before(line), step.places(line)
        assert len(places) == len(text) + 1
        assert places == sorted(places) and places[-1] == len(line)
        for letter, place in zip(text, places, strict=False):
            assert letter == line[place] or letter in f"{CASE_SYMBOLS} "


def test_no_symbol_reaches_the_user(outputs):
    step = FactoredCase()
    for text in outputs:
        assert not {*step.after(text)} & {*CASE_SYMBOLS}
    odd = {
        "₁": "",
        "der ₁": "der",
        "der ₁ ₂ ": "der",
        "der ₁ .": "der .",
        "der₂.": "der.",
        "₁ ₁ der ₂ ₁ hund": "Der Hund",
        "₁ ₂ der": "DER",
        "₂ der hund": "DER hund",
        "₁  der": " der",
        "₁ \u0301a": "\u0301a",
        "₃ der hund ₁ der ₃": "DER HUND Der",
        "₃ a ₄ b(c d ₂ e f": "A B(c D E f",
        "a₄ b (ßc": "aB (ßC",
    }
    for text, expected in odd.items():
        assert step.after(text.translate(WRITTEN)) == expected, text
    step = FactoredCase(["<name>", "%s"])
    for symbol, shown in (("₃", "GUT, <name> %s"), ("₄", "Gut, <name> %s")):
        text = f"{symbol} gut, <name> %s".translate(WRITTEN)
        assert step.after(text) == shown


def test_each_sentence_of_a_context_has_symbols_of_its_own():
    step = FactoredCase(["<sep>"])
    sentences = ["THE DOG SAT.", "the cat", "A Man Sees It", "A CAT"]
    text = " <sep> ".join(sentences)
    before = step.before(text)
    assert before == " <sep> ".join(map(step.before, sentences))
    assert step.after(before.lower()) == text
    # Without the mark, a symbol says how all words up to the end are.
    assert len(FactoredCase().before(text)) != len(before)


def test_texts_of_one_piece_keep_their_letters(tmp_path, lines):
    symbols = ["<NAME>", "<2de>", "⟪1⟫", "⟪Ab⟫", "XX", "Name", "name", "%s"]
    tokenizer = train_tokenizer(
        [*TEXTS, "abcdefghijklmnopqrstuvwxyz -"],
        tmp_path / "m",
        400,
        "bpe",
        normalization="nfc",
        case="factored",
        byte_fallback=True,
        user_defined_symbols=symbols,
    )
    generator = random.Random(4)
    parts = [*symbols, *symbols, "A", "B", "a", "b", " ", "-", "AB"]
    texts = [
        "A<NAME>B X<2de>y AB⟪Ab⟫C ABname ABName aXYZ NAME",
        "<2de> HALLO ⟪Ab⟫ UND <NAME>, %s!",
        "<2de> Guten Tag, ⟪Ab⟫ Und %s Da Name",
        "HALLO ABER <2DE> UND NAME",
    ]
    for _ in range(1000):
        text = "".join(generator.choices(parts, k=8))
        texts.append(" ".join(text.split()))
    graph = tokenizer.in_graph_tokenizer()
    encoded = tokenizer.encode(texts)
    for number, symbol in ((1, ALL_CAPITALS), (2, EACH_CAPITAL)):
        pieces = tokenizer.pieces(encoded[number])
        used = [letter for letter in "".join(pieces) if letter in CASE_SYMBOLS]
        assert used == [symbol]
    assert tokenizer.decode(encoded) == texts
    assert graph.tokenize(texts).to_list() == [ids.tolist() for ids in encoded]
    for text, ids in zip(texts, encoded, strict=True):
        pieces = tokenizer.pieces(ids)
        # A word in capitals may be the same piece, as lower-case letters.
        found = [p for p in pieces if p in symbols and p != "name"]
        # The longest one at each place, from the left.
        longest_first = sorted(symbols, key=len, reverse=True)
        matches = re.findall("|".join(longest_first), text)
        assert found == [match for match in matches if match != "name"]


def test_a_word_has_the_same_pieces_in_every_case(tokenizer):
    words = ("hund", "großen", "katzen", "schläft")
    for word in words:
        forms = [word, word.capitalize(), word.upper().replace("SS", "ß")]
        lower, title, capitals = (
            tokenizer.pieces(ids) for ids in tokenizer.encode(forms)
        )
        assert "".join(title) == f"▁{CAPITAL}" + "".join(lower)
        assert title[-len(lower) :] == lower == capitals[-len(lower) :]
        assert tokenizer.decode(tokenizer.encode(forms)) == forms


PARTS = {
    "NATO USA": "₂ nato ₂ usa",
    "Der Hund Der Katze": "₁ der ₁ hund ₁ der ₁ katze",
    "der HUND": "der ₂ hund",
    "<NAME> DER HUND ": "<NAME> ₂ der ₂ hund",
    "Die Ł": "₁ die ₁ ł",
    "": "",
    " ": "",
}


def test_capitals_of_a_given_phrase_are_not_those_of_what_follows(tokenizer):
    rows, pieces = tokenizer.encode_parts(list(PARTS))
    for row, own, expected in zip(rows, pieces, PARTS.values(), strict=True):
        text = "".join(own).replace("▁", " ")
        assert " ".join(text.translate(READABLE).split()) == expected
        assert len(row) == len(own)
    in_graph = tokenizer.in_graph_tokenizer().tokenize_parts(list(PARTS))
    assert in_graph[0].to_list() == rows
    decoded = [[p.decode() for p in row] for row in in_graph[1].to_list()]
    assert decoded == pieces
    # A sentence goes on in lower case.
    (phrase, word) = rows[0], tokenizer.encode(["hund"])[0].tolist()
    assert tokenizer.decode([[*phrase, *word]]) == ["NATO USA hund"]


def test_symbols_have_a_piece_also_without_capitals(tmp_path):
    for number, model_type in enumerate(("bpe", "unigram")):
        tokenizer = train_tokenizer(
            ["nur kleine worte"] * 9,
            tmp_path / "m",
            20 + number,
            model_type,
            case="factored",
            required_chars="Ä",
        )
        texts = ["nur KLEINE Ä", "NUR KLEINE", "Nur Kleine Worte Nur", "Nur"]
        ids = tokenizer.encode(texts)
        assert UNKNOWN_ID not in np.concatenate(ids)
        assert tokenizer.decode(ids) == texts


def test_tokens_belong_to_the_words_of_the_line(tokenizer):
    text = "Der HUND der NATO <NAME> McDonald"
    (ids,) = tokenizer.encode([text])
    pieces, words = tokenizer.pieces(ids), tokenizer.token_words(text)
    assert [word for (word,) in words] == tokenizer.word_numbers(ids).copy()
    assert max(words) == (5,)
    symbols = [n for n, piece in enumerate(pieces) if piece[-1] in CASE_SYMBOLS]
    assert [words[n] for n in symbols] == [(0,), (1,), (3,), (5,), (5,)]
    assert "".join(tokenizer.surfaces(text)) == text.replace(" ", "")


def test_sampled_segmentations_are_of_the_same_text(tokenizer):
    segmentation = RandomSegmentation(tokenizer, 0.3)
    text = TEXTS[1]
    (ids,) = tokenizer.encode([text])
    drawn = [segmentation.draw(ids, seed) for seed in range(20)]
    assert len({tuple(row) for row in drawn}) > 10
    assert {*tokenizer.decode(drawn)} == {text}


def write_corpus(folder, number=1500):
    generator = random.Random(8)
    words = ["Der", "die", "kleine", "Hund", "NATO", "<name>", "2", "ß", "ja"]
    sides = [[], []]
    for row in range(number):
        for side in sides:
            side.append(f"{row} " + " ".join(generator.choices(words, k=6)))
    for name, side in zip(("s", "t"), sides, strict=True):
        (folder / name).write_text("\n".join(side) + "\n", encoding="utf-8")
    return CorpusOptions(str(folder / "s"), str(folder / "t")), sides


@pytest.mark.thorough
@pytest.mark.parametrize("joint", [True, False])
def test_prepare_shows_a_share_of_the_pairs_in_other_case(tmp_path, joint):
    corpus, sides = write_corpus(tmp_path)
    options = {
        "vocabulary_size": 60,
        "joint": joint,
        "test_pairs": 200,
        "user_defined_symbols": ["<name>"],
        "max_tokens": 40,
    }
    plain = prepare_corpus(
        PrepareOptions(train=[corpus], **options),
        tmp_path / "plain",
        progress=False,
    )
    assert "case_examples" not in plain["splits"]["train"]
    options = PrepareOptions(
        train=[corpus], case="factored", case_examples=0.1, **options
    )
    manifest = prepare_corpus(options, tmp_path / "out", progress=False)
    counts = manifest["splits"]["train"]["case_examples"]
    assert all(90 < count < 170 for count in counts.values())
    assert manifest["filters"] == plain["filters"]
    assert manifest["leakage"] == plain["leakage"]
    kept = manifest["filters"]["train"]["kept"]
    pairs = manifest["splits"]["train"]["pairs"]
    assert pairs == kept + sum(counts.values())
    assert f"{counts['all_caps']} in capitals" in describe_manifest(manifest)

    data = PreparedData(tmp_path / "out")
    tokenizers = data.source_tokenizer, data.target_tokenizer
    store = data.store("train")
    read = [
        tuple(
            t.decode([ids])[0] for t, ids in zip(tokenizers, pair, strict=True)
        )
        for pair in store.read(range(len(store)))
    ]
    sources, targets = data.texts("test")
    test = {*zip(sources, targets, strict=True)}
    originals = [p for p in zip(*sides, strict=True) if p not in test]
    # Each one follows its pair, and texts of one piece stay.
    expected, found = iter(read), {"all_caps": 0, "capitalized": 0}
    row = next(expected)
    for pair in originals:
        assert row == pair
        row = next(expected, None)
        for name, change in (
            ("all_caps", all_caps),
            ("capitalized", capitalized),
        ):
            shown = tuple(
                "<name>".join(map(change, text.split("<name>")))
                for text in pair
            )
            if row == shown:
                found[name] += 1
                row = next(expected, None)
    assert row is None and found == counts
    test_store = data.store("test")
    assert len(test_store) == 200
    again = prepare_corpus(options, tmp_path / "again", progress=False)
    assert again["splits"] == manifest["splits"]


def test_examples_have_the_weight_of_their_corpus(tmp_path):
    (tmp_path / "a").mkdir()
    first, _ = write_corpus(tmp_path / "a", 700)
    for name in ("s", "t"):
        text = (tmp_path / "a" / name).read_text()
        text = re.sub("^([0-9]+)", r"\1 x", text, flags=re.M)
        (tmp_path / name).write_text(text)
    second = CorpusOptions(str(tmp_path / "s"), str(tmp_path / "t"), weight=3.0)
    manifest = prepare_corpus(
        PrepareOptions(
            train=[first, second],
            vocabulary_size=60,
            case="factored",
            case_examples=0.3,
        ),
        tmp_path / "out",
        progress=False,
    )
    data = PreparedData(tmp_path / "out")
    store = data.store("train")
    weights = row_weights(manifest).tolist()
    assert len(weights) == len(store) > 1400 + 500
    texts = data.source_tokenizer.decode(
        [source for source, _ in store.read(range(len(store)))]
    )
    of_second = [text.split()[1] in "xX" for text in texts]
    assert weights == [3.0 if second else 1.0 for second in of_second]


def test_a_source_without_case_has_no_examples(tmp_path):
    (tmp_path / "s").write_text("中文 1\n中文 2\n中文 3\n" * 9)
    (tmp_path / "t").write_text("Chinese one\nchinese two\nthree\n" * 9)
    corpus = CorpusOptions(str(tmp_path / "s"), str(tmp_path / "t"))
    options = PrepareOptions(
        train=[corpus],
        vocabulary_size=32,
        drop_duplicates=False,
        case="factored",
        case_examples=1.0,
    )
    manifest = prepare_corpus(options, tmp_path / "out", progress=False)
    counts = manifest["splits"]["train"]["case_examples"]
    assert counts == {"all_caps": 0, "capitalized": 0}


def test_the_command_prints_how_many_examples_there_are(tmp_path, capfd):
    write_corpus(tmp_path)
    arguments = ["--case", "factored", "--vocabulary-size", "60"]
    arguments += ["--source", str(tmp_path / "s")]
    arguments += ["--target", str(tmp_path / "t")]
    main(["prepare", *arguments, "--output", str(tmp_path / "out")])
    manifest = PreparedData(tmp_path / "out").manifest
    counts = manifest["splits"]["train"]["case_examples"]
    assert all(15 < count < 50 for count in counts.values())  # 2 %
    error = capfd.readouterr().err
    for name, count in (
        ("in capitals", counts["all_caps"]),
        ("capitalized", counts["capitalized"]),
    ):
        (line,) = [li for li in error.splitlines() if f"shown {name}" in li]
        assert str(count) in line


def test_a_given_tokenizer_decides_about_case(tmp_path):
    (tmp_path / "s").write_text("Ein Hund\nzwei Hunde\n")
    (tmp_path / "t").write_text("A dog\ntwo dogs\n")
    corpus = CorpusOptions(str(tmp_path / "s"), str(tmp_path / "t"))
    for case in ("kept", "factored"):
        train_tokenizer(
            TEXTS, tmp_path / case, 64, normalization="nfc", case=case
        )

    def prepare(given, **options):
        options = PrepareOptions(
            train=[corpus], tokenizer_source=str(tmp_path / given), **options
        )
        name = f"{given} {options.case} {options.source_normalization}"
        return prepare_corpus(options, tmp_path / name, progress=False)

    splits = prepare("factored", source_normalization="nfc")["splits"]
    assert "case_examples" in splits["train"]
    assert "case_examples" not in prepare("kept")["splits"]["train"]
    assert prepare("factored", case="factored")["joint"]
    for given, asked in (("kept", "factored"), ("factored", "kept")):
        with pytest.raises(UserError, match="`case` must be left out with a"):
            prepare(given, case=asked)
    with pytest.raises(UserError, match="`source_normalization` must be left"):
        prepare("factored", source_normalization="nfkc")
    with pytest.raises(ValueError, match="`case` must be one of kept, fact"):
        train_tokenizer(TEXTS, tmp_path / "m", 64, case="lower")


def test_capitalized_words_are_those_between_spaces():
    text = "die 'neue'  NATO-straße (ǆ 3d ßa"
    assert capitalized(text) == "Die 'Neue'  NATO-straße (ǅ 3D Ssa"
    assert unicodedata.normalize("NFC", all_caps("straße é")) == "STRASSE É"
