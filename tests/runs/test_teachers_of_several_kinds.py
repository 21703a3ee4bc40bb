"""What must be true of teachers of several languages, and of documents.

* a teacher translates a corpus into the language of its target, by the tag that
  it has learned for it
* with a context, documents end where they end in the text, and a teacher that
  reads a context gets it
* a line that is not UTF-8 is in no context, as in training and translation
* a language or tag that cannot be known is refused in a line
"""

import dataclasses
import json
from pathlib import Path

import pytest
from broken_runs import best_of_translate, translate_by_weights
from jsonargparse import Namespace

from keras_deepnmt.commands.options.context import windows_in_context
from keras_deepnmt.commands.terminal.input_lines import decode_windows
from keras_deepnmt.commands.terminal.line_warnings import LineWarnings
from keras_deepnmt.data import CorpusOptions, PrepareOptions, prepare_corpus
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.teacher_translations import with_translations
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator import Translator

DOCUMENT = ["a b c", "b c", "", "d e", "", "", "a c"]
# A no-break space is as good as nothing.
LINES = ["a b c", "b c", "\u00a0", "d e", "", "", "a c"]


@pytest.fixture(scope="module")
def teacher(recipe_file, tmp_path_factory):
    """A run that translates into two languages, with a sentence of context."""
    recipe = load_recipe(
        recipe_file,
        {
            "data.vocabulary_size": 24,
            "data.context": 1,
            "data.source_language": "en",
            "training.steps": 1,
            "training.validate_every": 1,
            "training.average_checkpoints": 1,
            "evaluation.metrics": ["bleu"],
        },
    )
    (corpus,) = recipe.data.train
    named = [
        dataclasses.replace(corpus, tag=tag, target_language=tag[2:4])
        for tag in ("<2de>", "<2fr>")
    ]
    data = dataclasses.replace(recipe.data, train=named, valid=None, test=None)
    recipe = dataclasses.replace(recipe, data=data)
    folder = tmp_path_factory.mktemp("teacher") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translator, "translate", translate_by_weights)
        train(recipe, folder, quiet=True)
    return str(folder)


@pytest.fixture
def asked(monkeypatch):
    """What teachers are asked to translate, with their tags."""
    seen = []

    def translate(translator, texts):
        seen.extend(translator.tagged(texts))
        return [text.rpartition("> ")[2].upper() for text in texts]

    monkeypatch.setattr(Translator, "translate", translate)
    monkeypatch.setattr(Translator, "translate_nbest", best_of_translate)
    return seen


@pytest.fixture
def options(tmp_path):
    """Makes options of a corpus of text in one language."""

    def make(teacher, lines=("a b", "c"), tag=None, language=None, **others):
        file = tmp_path / f"{len(list(tmp_path.iterdir()))}.source"
        text = "".join(f"{line}\n" for line in lines)
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
        corpus = CorpusOptions(
            str(file), tag=tag, target_language=language, translated_by=teacher
        )
        return PrepareOptions(train=[corpus], vocabulary_size=17, **others)

    return make


def translated(options, folder):
    return with_translations(options, folder, say=lambda line: None)


def test_a_teacher_translates_into_the_language_of_the_corpus(
    teacher, options, asked, tmp_path
):
    files = set()
    for language in ("fr", "de"):
        for given in (
            options(teacher, language=language),
            options([teacher, teacher], target_language=language),
        ):
            del asked[:]
            made = translated(given, tmp_path / "made")
            assert asked == [f"<2{language}> a b", f"<2{language}> c"]
            files.add(made.train[0].file)
    assert len(files) == 4
    # Lines with tags of their own, and a student with the same tag.
    for given in (
        options(teacher, ["<2de> a b", "<2de> c"]),
        options(teacher, tag="<2de>", language="de"),
    ):
        del asked[:]
        translated(given, tmp_path / "other")
        assert asked == ["<2de> a b", "<2de> c"]


def test_a_language_that_cannot_be_known_is_refused(
    teacher, options, finished_run, tmp_path
):
    for given, message in (
        (options(teacher), "to write: de, fr. Received: none. Set `target_l"),
        (options(teacher, language="it"), "de, fr. Received: it. Set"),
        (
            options([teacher, str(finished_run)], target_language="de"),
            "must have the same tag for a language. Received: <2de> of ",
        ),
    ):
        with pytest.raises(UserError) as error:
            translated(given, tmp_path)
        assert "corpus " in str(error.value)
        assert message in str(error.value)
        assert "\n" not in str(error.value)


def test_a_text_in_which_no_document_ends_is_not_translated_in_context(
    teacher, tmp_path
):
    file = tmp_path / "a.tmx"
    file.write_text("<tmx version='1.4'></tmx>")
    corpus = CorpusOptions(file=str(file), translated_by=teacher)
    given = PrepareOptions(train=[corpus], target_language="de", context=1)
    with pytest.raises(UserError, match="`context` needs .* which is TMX"):
        translated(given, tmp_path)


def test_documents_of_translations_end_as_those_of_the_text(
    teacher, options, asked, finished_run, tmp_path
):
    given = options(teacher, LINES, language="de", context=2)
    made = translated(given, tmp_path / "made")
    # As many sentences as the teacher has learned to read.
    assert asked == [
        *("<2de> a b c", "<2de> a b c <sep> b c", ""),
        *("<2de> d e", "", "", "<2de> a c"),
    ]
    rows = Path(made.train[0].file).read_text("utf-8").splitlines()
    assert [json.loads(row)["source"] for row in rows] == DOCUMENT
    folder = tmp_path / "data"
    prepare_corpus(made, folder, progress=False)
    data = PreparedData(folder)
    pairs = data.store("train").read(range(4))
    texts = [data.source_tokenizer.decode([ids])[0] for ids, _ in pairs]
    assert texts == ["a b c", "a b c <sep> b c", "d e", "a c"]
    # A teacher of single sentences, and a student of those.
    for one in (
        options(str(finished_run), DOCUMENT, context=2),
        options(teacher, DOCUMENT, language="de"),
    ):
        del asked[:]
        translated(one, tmp_path / "other")
        assert not any("<sep>" in text for text in asked)


def test_a_line_that_is_left_out_is_in_no_context(
    teacher, options, asked, tmp_path
):
    lines = ["a b c", "\udcff", "d e"]
    given = options(teacher, lines, language="de", context=1, errors="skip")
    translated(given, tmp_path / "made")
    assert asked == ["<2de> a b c", "<2de> a b c <sep> d e"]
    # So a student reads it.
    (corpus,) = given.train
    target = tmp_path / "target"
    target.write_text("A B C\nX\nD E\n")
    train = dataclasses.replace(corpus, target=str(target), translated_by=None)
    given = dataclasses.replace(given, train=[train])
    prepare_corpus(given, tmp_path / "data", progress=False)
    data = PreparedData(tmp_path / "data")
    sources = [source for source, _ in data.store("train").read([0, 1])]
    expected = ["a b c", "a b c <sep> d e"]
    assert data.source_tokenizer.decode(sources) == expected
    # So does `translate`, which writes an empty line.
    windows = [[line.encode("utf-8", "surrogateescape") for line in lines]]
    (found,) = windows_in_context(
        Namespace(context=1, output=None),
        Translator.load(teacher),
        decode_windows(windows, "in", "skip", LineWarnings()),
        is_document=False,
    )
    assert found == [expected[0], "", expected[1]]
