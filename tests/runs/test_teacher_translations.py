"""What must be true of training text that teachers translate.

* each corpus that asks for it gets the translations of its source sentences,
  once; another text or teacher gives other files
* a process that was killed while it translated goes on, and ends with the same
  file; they also stay if the start of the run is refused
* a run trains on them, and goes on without translating again and without its
  teacher
* what a teacher does not translate as a whole is left out
* what cannot be translated is refused in a line
"""

import errno
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from broken_runs import best_of_translate, translate_by_weights

from keras_deepnmt.data import CorpusOptions, prepare_corpus
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import file_sha256
from keras_deepnmt.recipes.loading import load_recipe, save_recipe
from keras_deepnmt.runs import start, teacher_translations
from keras_deepnmt.runs.dry_run import dry_run
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.start import open_data
from keras_deepnmt.runs.teacher_translations import with_translations
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator import Hypothesis, Translator


@pytest.fixture(autouse=True)
def without_search(monkeypatch):
    """Each text has the same translation, whatever is translated with it."""

    def translate(self, texts, **_):
        return [translate_by_weights(self, [text])[0] for text in texts]

    monkeypatch.setattr(Translator, "translate", translate)
    monkeypatch.setattr(Translator, "translate_nbest", best_of_translate)


def told(line):
    """Ignores what is said."""


@pytest.fixture
def distilled(recipe_file, finished_run):
    """The recipe of the letters, whose targets are a run's translations."""
    recipe = load_recipe(recipe_file)
    (corpus,) = recipe.data.train
    corpus = replace(corpus, target=None, translated_by=str(finished_run))
    return replace(recipe, data=replace(recipe.data, train=[corpus]))


def sources_of(options):
    return Path(options.train[0].source).read_text().splitlines()


@pytest.fixture
def expected(distilled, finished_run):
    sources = sources_of(distilled.data)
    targets = Translator.load(finished_run).translate(sources)
    return [
        {"source": source, "target": target}
        for source, target in zip(sources, targets, strict=True)
    ]


def read(options):
    (corpus,) = options.train
    lines = Path(corpus.file).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_teacher_translates_each_source_once(
    distilled, expected, tmp_path, monkeypatch
):
    given = distilled.data
    made = with_translations(given, tmp_path, say=told)
    assert read(made) == expected
    assert len({row["target"] for row in expected}) > 1
    assert made.train[0].translated_by is None
    assert made.train[0].name == "train"
    monkeypatch.setattr(Translator, "translate", None)
    assert with_translations(given, tmp_path, say=told) == made
    # Other text is translated.
    shorter = tmp_path / "shorter.source"
    shorter.write_text("a b c\n")
    corpus = replace(given.train[0], source=str(shorter))
    with pytest.raises(TypeError, match="not callable"):
        with_translations(replace(given, train=[corpus]), tmp_path, say=told)


@pytest.mark.thorough
def test_several_teachers_translate_together(distilled, tmp_path):
    (corpus,) = distilled.data.train
    teachers = [corpus.translated_by] * 2
    both = replace(
        distilled.data, train=[replace(corpus, translated_by=teachers)]
    )
    asked = []

    def translate(self, texts):
        asked.append(len(self.model.models))
        return list(texts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translator, "translate", translate)
        made = with_translations(both, tmp_path, say=told)
    assert set(asked) == {2}
    alone = with_translations(distilled.data, tmp_path, say=told)
    assert made.train[0].file != alone.train[0].file


@pytest.mark.parametrize(
    "lines",
    [
        *(pytest.param(n, marks=pytest.mark.thorough) for n in (0, 49, 50)),
        117,
    ],
)
def test_a_killed_process_goes_on(
    distilled, expected, tmp_path, monkeypatch, lines
):
    whole = with_translations(distilled.data, tmp_path / "whole", say=told)
    content = Path(whole.train[0].file).read_text("utf-8").splitlines(True)
    part = tmp_path / "killed" / f"{Path(whole.train[0].file).name}.part"
    part.parent.mkdir()
    part.write_text("".join(content[:lines]) + content[lines][:9], "utf-8")
    monkeypatch.setattr(teacher_translations, "_WINDOW", 50)
    translate, translated = Translator.translate, []

    def count(self, texts):
        translated.extend(texts)
        return translate(self, texts)

    monkeypatch.setattr(Translator, "translate", count)
    made = with_translations(distilled.data, part.parent, say=told)
    assert read(made) == expected
    assert len(translated) == len(expected) - lines // 50 * 50
    assert [path.name for path in part.parent.iterdir()] == [part.stem]


def test_a_run_trains_on_translations(distilled, expected, tmp_path):
    folder = RunFolder(tmp_path / "run")
    data = open_data(distilled, folder, quiet=True)
    store = data.store("train")
    targets = data.target_tokenizer.decode(
        target for _, target in store.read(range(len(store)))
    )
    assert len(targets) > 100
    assert set(targets) <= {row["target"] for row in expected}
    # It goes on without translating again.
    made = next(folder.translations_dir.iterdir())
    before = made.stat().st_mtime_ns
    open_data(distilled, folder, quiet=True)
    assert made.stat().st_mtime_ns == before


def test_what_is_not_translated_as_a_whole_is_left_out(
    distilled, tmp_path, monkeypatch
):
    """Long sources, which a teacher does not read whole, and long targets."""
    file = tmp_path / "text.source"
    lines = ["a b c", "a b " * 40, "a c", "b c a"]
    file.write_text("".join(f"{line}\n" for line in lines))
    (corpus,) = distilled.data.train
    corpus = replace(corpus, source=str(file))
    load = Translator.load

    def search(self, texts, num_hypotheses):
        # As a search does, for texts and limits of this test.
        _, truncated = self._source_rows(texts, None)
        return [
            [
                Hypothesis(
                    text.upper(),
                    *(0.0, 0.0, ()),
                    truncated=text == "a c",
                    source_truncated=number in truncated,
                )
            ]
            for number, text in enumerate(texts)
        ]

    monkeypatch.setattr(
        Translator,
        "load",
        lambda *given, **options: load(*given, **options, max_source_length=16),
    )
    monkeypatch.setattr(Translator, "translate_nbest", search)
    said = []
    options = replace(
        distilled.data,
        train=[corpus],
        valid=None,
        test=None,
        vocabulary_size=15,
    )
    made = with_translations(options, tmp_path / "made", say=said.append)
    assert "2 of 4 sentences are left out" in said[-1]
    # Each has its line, so that a process that was killed goes on after it.
    assert [pair["target"] for pair in read(made)] == ["A B C", "", "", "B C A"]
    prepare_corpus(made, tmp_path / "data", progress=False)
    data = PreparedData(tmp_path / "data")
    store = data.store("train")
    sources = [source for source, _ in store.read(range(len(store)))]
    assert data.source_tokenizer.decode(sources) == ["a b c", "b c a"]


def test_translations_stay_if_the_start_is_refused(
    distilled, tmp_path, monkeypatch
):
    def translate(self, texts):
        return list(texts)

    def translate_some(self, texts):
        if len(texts) == 100:
            return list(texts)
        raise OSError(errno.ENOSPC, "No space left on device")

    def refuse(*_, **__):
        raise UserError("refused")

    monkeypatch.setattr(start, "check_model", lambda recipe: None)
    monkeypatch.setattr(start, "prepare_corpus", refuse)
    monkeypatch.setattr(teacher_translations, "_WINDOW", 100)
    run_dir, left = tmp_path / "run", []
    for wrong in (translate_some, translate):
        monkeypatch.setattr(Translator, "translate", wrong)
        with pytest.raises((OSError, UserError), match="No space|refused"):
            train(distilled, run_dir, quiet=True)
        (file,) = run_dir.rglob("*.*")
        left.append((file.name, len(file.read_text().splitlines())))
    (name, some), (whole_name, number) = left
    assert name == f"{whole_name}.part" and (some, number) == (100, 131)


def test_a_run_goes_on_without_its_teacher(distilled, prepared_dir, tmp_path):
    (corpus,) = distilled.data.train
    corpus = replace(corpus, translated_by=str(tmp_path / "nothing"))
    recipe = replace(distilled, data=replace(distilled.data, train=[corpus]))
    folder = RunFolder(tmp_path / "run")
    shutil.copytree(prepared_dir, folder.data_dir)
    manifest = folder.data_dir / "manifest.json"
    resolved = {"manifest_sha256": file_sha256(manifest)}
    save_recipe(recipe, folder.recipe_file, resolved)
    data = open_data(recipe, folder, quiet=True)
    assert data.directory == folder.data_dir
    # Not with other data, and not from the beginning.
    with pytest.raises(UserError, match="`translated_by`: .*nothing"):
        open_data(recipe, folder, restart=True, quiet=True)
    manifest.write_text(f"{manifest.read_text()}\n")
    with pytest.raises(UserError, match="`translated_by`: .*nothing"):
        open_data(recipe, folder, quiet=True)


@pytest.mark.thorough
def test_a_recipe_trains_from_its_teacher(distilled, tmp_path):
    run = train(distilled, tmp_path / "run", quiet=True)
    assert run["steps"] == distilled.training.steps


def test_missing_files_are_named_before_the_translation(
    distilled, tmp_path, monkeypatch
):
    """It may take hours."""
    monkeypatch.setattr(Translator, "translate", None)
    (corpus,) = distilled.data.train
    missing = CorpusOptions("train.en", str(tmp_path / "none"))
    for data, message in (
        (replace(distilled.data, valid=missing), "train.en: no such file"),
        (replace(distilled.data, valid=corpus), "training text.* in `valid`"),
        (
            replace(
                distilled.data, train=[corpus, CorpusOptions(name="multi30k")]
            ),
            "No corpus is known as multi30k",
        ),
    ):
        with pytest.raises(UserError, match=message):
            with_translations(data, tmp_path / "made", say=told)
        assert not (tmp_path / "made").exists()


def test_what_cannot_be_translated_is_refused(distilled, tmp_path):
    with pytest.raises(UserError, match="Only `deepnmt train` translates"):
        prepare_corpus(distilled.data, tmp_path / "data", progress=False)
    with pytest.raises(UserError, match="131 sentences have not been transl"):
        dry_run(distilled, tmp_path / "run", quiet=True)
    with pytest.raises(UserError, match="not reversed. Received: reversed=T"):
        CorpusOptions("a", "b", reversed=True, translated_by="runs/one")
    with pytest.raises(UserError, match="must have `source` and `target`"):
        CorpusOptions("a")
    (corpus,) = distilled.data.train
    corpus = replace(corpus, translated_by=str(tmp_path / "nothing"))
    with pytest.raises(UserError, match="`translated_by`: .*nothing"):
        with_translations(
            replace(distilled.data, train=[corpus]), tmp_path, say=told
        )
