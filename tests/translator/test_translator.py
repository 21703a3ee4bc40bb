"""What must be true of the translator.

* order of the input is kept; empty lines stay empty; line by line or at once,
  the translations are the same
* few compilations serve all lengths
* the score of a translation is the score that the search reported
* the offset of the length penalty is the run's, or 5 if the run has none
* weights that change later are used
* sources that are too long are truncated, with a warning
* options that are given replace those of a run
* a translator with some arguments replaced keeps the others
* a run folder whose files do not belong together is refused in one line
"""

import hashlib
import inspect
import json

import numpy as np
import pytest
from toy_model import ToyModel

from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.data.shortlists import Shortlists
from keras_deepnmt.decoding import SearchOptions
from keras_deepnmt.errors import UserError
from keras_deepnmt.translator import Translator
from keras_deepnmt.zoo import create_model
from keras_deepnmt.zoo.registry import PRESET_VERSION

OVERRIDES = {
    "hidden_dim": 16,
    "intermediate_dim": 24,
    "num_heads": 2,
    "num_encoder_layers": 1,
    "num_decoder_layers": 2,
    "max_length": 40,
}
TEXTS = [
    "a small dog runs across the green field",
    "",
    "two men",
    "the old woman reads a long book about the sea and the ships in it",
    "   ",
    "dog",
    "a dog runs",
]
CORPUS = [text for text in TEXTS if text.strip()] * 3


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    file = tmp_path_factory.mktemp("tokenizer") / "joint.model"
    return train_tokenizer(CORPUS, file, 61)


@pytest.fixture
def model(tokenizer):
    size = tokenizer.vocabulary_size
    return ToyModel(size, size, max_length=40, seed=1)


@pytest.fixture
def translator(model, tokenizer):
    # Plain graphs, since compiling takes longer than all that is done here.
    return Translator(
        model, tokenizer, tokenizer, batch_size=3, num_beams=3, compiled=False
    )


def test_keeps_order_and_empty_lines(translator):
    together = translator.translate(TEXTS)
    assert len(together) == len(TEXTS)
    assert [not text for text in together] == [
        not text.strip() for text in TEXTS
    ]
    assert len(set(together)) > 3
    for text, translation in zip(TEXTS, together, strict=True):
        assert translator.translate([text]) == [translation]
    assert translator.translate([]) == []


def test_stream_equals_all_at_once(translator):
    lines = (f"{text}\n" for text in TEXTS)
    stream = translator.translate_stream(lines, chunk_size=2)
    assert next(stream) == translator.translate(TEXTS[:1])[0]
    assert list(stream) == translator.translate(TEXTS[1:])
    for wrong in (0, -1, 1.5):
        with pytest.raises(ValueError, match="`chunk_size` must be an integer"):
            next(translator.translate_stream(TEXTS, chunk_size=wrong))


def test_few_compilations_serve_all_lengths(model, tokenizer):
    translator = Translator(
        model,
        tokenizer,
        tokenizer,
        batch_size=2,
        num_beams=1,
        compiled=False,
    )
    texts = ["dog " * length for length in range(1, 15)]
    translator.translate(texts)
    translator.translate(texts[::-1])
    # A plain graph serves all of them.
    assert translator.num_compilations == 1


def test_nbest_starts_with_the_translation(translator):
    texts = [TEXTS[0], TEXTS[1]]
    nbest, empty = translator.translate_nbest(texts, 3)
    assert nbest[0].text == translator.translate(texts)[0]
    assert len({hypothesis.ids for hypothesis in nbest}) == 3
    scores = [hypothesis.score for hypothesis in nbest]
    assert scores == sorted(scores, reverse=True)
    for hypothesis in nbest:
        assert hypothesis.ids[-1] == 3
        divisor = ((5 + len(hypothesis.ids)) / 6) ** 0.6
        assert hypothesis.score == pytest.approx(
            hypothesis.log_prob / divisor, rel=1e-5
        )
    assert [hypothesis.text for hypothesis in empty] == [""]


@pytest.mark.parametrize("num_beams", [1, 3])
def test_offset_zero_scores_by_the_mean(model, tokenizer, num_beams):
    translator = Translator(
        model,
        tokenizer,
        tokenizer,
        num_beams=num_beams,
        length_penalty=1.0,
        length_offset=0.0,
        batch_size=1,
        compiled=False,
    )
    (nbest,) = translator.translate_nbest(TEXTS[:1], num_beams)
    assert max(len(hypothesis.ids) for hypothesis in nbest) > 1
    for hypothesis in nbest:
        mean = hypothesis.log_prob / len(hypothesis.ids)
        assert hypothesis.score == pytest.approx(mean, rel=1e-5)
    row = [*tokenizer.encode(TEXTS[:1])[0], 3]
    found = translator.search(np.array([row], "int32"))
    assert found["scores"][0, 0] == pytest.approx(nbest[0].score, rel=1e-5)


def test_score_of_a_translation_is_the_score_of_the_search(translator):
    texts = [text for text in TEXTS if text.strip()]
    checked = 0
    for text, nbest in zip(
        texts, translator.translate_nbest(texts, 2), strict=True
    ):
        for hypothesis in nbest:
            ids = translator.target_tokenizer.encode([hypothesis.text])[0]
            if (*ids, 3) != hypothesis.ids:
                # The same text can be cut in other ways.
                continue
            score = translator.score([text], [hypothesis.text])[0]
            assert score.total == pytest.approx(hypothesis.log_prob, rel=1e-4)
            assert score.total == pytest.approx(sum(score.log_probs))
            assert len(score.tokens) == len(score.log_probs)
            assert score.tokens[-1] == "</s>"
            checked += 1
    assert checked


def test_scores_keep_the_order_of_pairs(translator):
    sources, targets = TEXTS[:4], ["dog", "a dog runs", "", "two men"]
    done = []
    scores = translator.score(sources, targets, on_progress=done.append)
    assert sum(done) == 4
    for source, target, score in zip(sources, targets, scores, strict=True):
        alone = translator.score([source], [target])[0]
        assert alone.tokens == score.tokens
        np.testing.assert_allclose(alone.log_probs, score.log_probs, 1e-4)
    with pytest.raises(UserError, match="4 sources, 3 targets"):
        translator.score(sources, targets[:3])
    with pytest.raises(UserError, match="`targets`, line 2: .* 39 tokens"):
        translator.score(["dog"] * 2, ["dog", "dog " * 40])


def test_progress_counts_every_sentence(translator):
    done = []
    translator.translate(TEXTS, on_progress=done.append)
    assert sum(done) == len(TEXTS)


@pytest.mark.thorough(each_commit=True)
def test_compiled_gives_the_same(model, tokenizer, translator):
    compiled = Translator(
        model, tokenizer, tokenizer, batch_size=3, num_beams=3
    )
    assert compiled.translate(TEXTS) == translator.translate(TEXTS)


def test_sees_weights_that_change_later(model, tokenizer):
    translator = Translator(
        model, tokenizer, tokenizer, batch_size=2, num_beams=2
    )
    before = translator.translate(TEXTS[:1])
    compilations = translator.num_compilations
    model.draw_weights(seed=2)
    after = translator.translate(TEXTS[:1])
    assert before != after
    assert translator.num_compilations == compilations


def test_too_long_sources_are_cut_and_this_is_said(model, tokenizer, capsys):
    translator = Translator(
        model,
        tokenizer,
        tokenizer,
        batch_size=2,
        num_beams=1,
        compiled=False,
    )
    assert translator.max_source_length == 40
    long, longer = "dog " * 39, "dog " * 60
    assert len(tokenizer.encode([long])[0]) == 39
    first, second = translator.translate([long, longer])
    assert first == second
    assert translator.num_truncated == 1
    assert capsys.readouterr().err == (
        "Warning: 1 of 2 sources have more than 39 tokens; the rest of them "
        "is ignored.\n"
    )


@pytest.mark.thorough
def test_who_asks_is_told_which_sources_were_cut(translator, capsys):
    places = []
    translator.on_truncated = places.extend
    long = "dog " * 60
    translator.translate(["dog", long, "", long])
    translator.score([long], ["dog"])
    assert places == [1, 3, 0]
    assert translator.num_truncated == 3
    assert capsys.readouterr().err == ""


@pytest.fixture
def changed(model, tokenizer):
    """A translator of which no argument has its default."""
    translator = Translator(
        model,
        tokenizer,
        tokenizer,
        num_beams=2,
        length_penalty=0.9,
        batch_size=3,
        batch_tokens=99,
        max_source_length=17,
        compiled=False,
        shortlists=Shortlists(
            np.full((model.source_vocabulary_size, 1), 5, "int32"),
            np.array([4], "int32"),
            model.target_vocabulary_size,
        ),
        on_truncated=print,
    )
    translator.compilation_padding = 7
    return translator


@pytest.mark.parametrize("replaced", ["model", "compiled", "shortlists"])
def test_what_is_not_replaced_is_kept(replaced, changed, tokenizer):
    size = tokenizer.vocabulary_size
    new = {
        "model": ToyModel(size, size, seed=2),
        "compiled": True,
        "shortlists": None,
    }[replaced]
    before = getattr(changed, replaced)
    other = changed.replaced(**{replaced: new})
    assert getattr(other, replaced) is new
    names = {*inspect.signature(Translator).parameters, "compilation_padding"}
    for name in names - {"search_options", replaced}:
        kept, found = getattr(changed, name), getattr(other, name)
        assert found is kept or found == kept, name
    assert getattr(changed, replaced) is before


def test_search_options_are_replaced_one_by_one(changed):
    other = changed.replaced(num_beams=5)
    assert other.options == changed.options.updated(num_beams=5)
    assert changed.num_beams == 2
    with pytest.raises(TypeError, match="beams"):
        changed.replaced(beams=5)


def test_tokens_of_a_batch_follow_a_replaced_batch_size(changed):
    assert changed.replaced(batch_size=1).batch_tokens == 99
    changed.batch_tokens = None
    changed.batch_size = 5
    assert changed.replaced().batch_tokens == 5 * 256
    assert changed.replaced(batch_size=1).batch_tokens == 256


def test_refuses_what_does_not_fit(model, tokenizer, tmp_path):
    other = train_tokenizer(CORPUS, tmp_path / "other.model", 59)
    with pytest.raises(ValueError, match="59 pieces for a model of 61"):
        Translator(model, tokenizer, other)
    with pytest.raises(ValueError, match="`num_beams`.*Received: 0"):
        Translator(model, tokenizer, tokenizer, num_beams=0)
    with pytest.raises(ValueError, match="`length_offset`.*Received: -1"):
        Translator(model, tokenizer, tokenizer, length_offset=-1)


@pytest.fixture(scope="module")
def trained(tokenizer):
    size = tokenizer.vocabulary_size
    return create_model("transformer_tiny", size, size, **OVERRIDES)


@pytest.fixture
def run_dir(tmp_path, trained, tokenizer):
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "model").mkdir()
    for side in ("source", "target"):
        tokenizer.save(tmp_path / "tokenizer" / f"{side}.model")
    weights_file = tmp_path / "model" / "model.weights.h5"
    trained.save_weights(weights_file)
    weights = weights_file.read_bytes()
    description = {
        "preset": "transformer_tiny",
        "preset_version": PRESET_VERSION,
        "overrides": OVERRIDES,
        "source_vocabulary_size": tokenizer.vocabulary_size,
        "target_vocabulary_size": tokenizer.vocabulary_size,
        "tokenizer": {"source": tokenizer.sha256, "target": tokenizer.sha256},
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "decoding": {"num_beams": 3, "length_penalty": 0.6, "other": 1},
    }
    (tmp_path / "run.json").write_text(json.dumps(description))
    return tmp_path


def test_loads_a_run_folder(run_dir, trained, tokenizer):
    loaded = Translator.load(run_dir, batch_size=3, compiled=False)
    assert (loaded.num_beams, loaded.batch_size) == (3, 3)
    for mine, other in zip(
        loaded.model.get_weights(), trained.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(mine, other)
    made = Translator(
        trained, tokenizer, tokenizer, batch_size=3, compiled=False
    )
    pair = ["a dog runs"], ["two men"]
    assert loaded.score(*pair)[0].total == made.score(*pair)[0].total
    assert Translator.load(str(run_dir), num_beams=2).num_beams == 2
    # Earlier runs have no offset.
    assert loaded.length_offset == 5.0


def change(run_dir, **entries):
    file = run_dir / "run.json"
    description = json.loads(file.read_text())
    file.write_text(json.dumps({**description, **entries}))


def test_the_offset_of_a_run_is_the_translators(run_dir):
    change(run_dir, decoding={"length_penalty": 1.0, "length_offset": 0.0})
    assert Translator.load(run_dir).length_offset == 0.0


@pytest.mark.thorough
def test_given_options_replace_those_of_a_run(run_dir):
    change(run_dir, decoding={"num_beams": 3, "batch_size": 7})
    given = SearchOptions(num_beams=5, length_penalty=1.0)
    loaded = Translator.load(run_dir, options=given)
    assert loaded.options == given and loaded.batch_size == 7
    loaded = Translator.load(run_dir, options=given, num_beams=2)
    assert loaded.options == given.updated(num_beams=2)
    # None is the run's value, not the default.
    assert Translator.load(run_dir, num_beams=None).num_beams == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_length_ratio", 1e308),
        ("max_extra_tokens", 10**9),
        ("no_repeat_ngram_size", 2**31 - 1),
        ("batch_tokens", -1),
        ("batch_size", 0),
        ("max_source_length", 1),
    ],
)
def test_a_file_with_senseless_limits_is_refused(run_dir, name, value):
    change(run_dir, decoding={name: value})
    with pytest.raises(UserError, match=rf"run\.json: `decoding`: `?{name}"):
        Translator.load(run_dir)


def spoil_tokenizer(run_dir):
    other = train_tokenizer(CORPUS, run_dir / "other.model", 59)
    other.save(run_dir / "tokenizer" / "target.model")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda run_dir: (run_dir / "run.json").unlink(),
            r"run\.json: missing, so this is not a finished run",
        ),
        (
            lambda run_dir: (run_dir / "run.json").write_text("{"),
            r"run\.json: not valid JSON",
        ),
        (
            lambda run_dir: (run_dir / "run.json").write_text("{}"),
            r"run\.json: lacks overrides, preset",
        ),
        (
            lambda run_dir: change(run_dir, source_vocabulary_size=7),
            r"source\.model: .* 61 pieces instead of 7",
        ),
        (
            lambda run_dir: change(run_dir, overrides={"hidden_dim": 8}),
            r"model\.weights\.h5: does not fit the model",
        ),
        (spoil_tokenizer, r"target\.model: .* SHA-256"),
        (
            lambda run_dir: (run_dir / "tokenizer/source.model").unlink(),
            r"source\.model: cannot be read",
        ),
        (
            lambda run_dir: (run_dir / "model/model.weights.h5").unlink(),
            r"model\.weights\.h5: cannot be read",
        ),
        (
            lambda run_dir: (run_dir / "model/model.weights.h5").write_bytes(
                b"else"
            ),
            r"model\.weights\.h5: .* SHA-256",
        ),
    ],
)
def test_refuses_a_run_folder_that_does_not_fit(run_dir, spoil, message):
    spoil(run_dir)
    with pytest.raises(UserError, match=message) as refusal:
        Translator.load(run_dir)
    assert "\n" not in str(refusal.value)


def test_refuses_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="none: no such run folder"):
        Translator.load(tmp_path / "none")
