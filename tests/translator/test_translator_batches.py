"""What must be true of a translator's batches and of requirements on them.

* a string is one sentence: one in, one out
* a model of NaN is an error that names the weight, not an empty translation
* batches have a largest number of sentences and of tokens, which may change
* one sentence is computed alone; few shapes are compiled
* few sentences are compiled in the shape of longer ones, with the same result
* another length penalty or offset compiles nothing
* translations and sources that are truncated are marked
* more hypotheses than beams fill the groups of beams
* a text occurs once in a list, and the next best one takes its place
* a call goes on after the batches that one before it has finished
* requirements on an empty sentence are not met, and this is marked
* requirements must have room, and count in the size of a batch
"""

import numpy as np
import pytest
from toy_model import ToyModel

from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.errors import UserError
from keras_deepnmt.translator import Translator
from keras_deepnmt.xla.events import listen

TEXTS = [
    "a small dog runs across the green field",
    "",
    "two men",
    "the old woman reads a long book about the sea and the ships in it",
    "a dog runs",
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    file = tmp_path_factory.mktemp("tokenizer") / "joint.model"
    return train_tokenizer([text for text in TEXTS if text] * 3, file, 61)


@pytest.fixture
def model(tokenizer):
    size = tokenizer.vocabulary_size
    return ToyModel(size, size, max_length=40, seed=1)


@pytest.fixture
def make(model, tokenizer):
    """Makes translators, which run plain graphs unless `compiled` is given."""

    def make(**options):
        options = {"compiled": False, "num_beams": 2, **options}
        return Translator(model, tokenizer, tokenizer, **options)

    return make


@pytest.fixture
def shapes(monkeypatch):
    """Shapes `(rows, source length)` of all batches that are searched."""
    from keras_deepnmt.translator.batch_decoder import BatchDecoder

    seen, search = [], BatchDecoder.search

    def see(decoder, source_ids, *arguments, **given):
        seen.append(source_ids.shape)
        return search(decoder, source_ids, *arguments, **given)

    monkeypatch.setattr(BatchDecoder, "search", see)
    return seen


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize("compiled", [False, True])
def test_a_call_goes_on_after_finished_batches(make, shapes, compiled):
    translator = make(batch_size=1, compiled=compiled)
    before, finished = translator.search_state, []
    whole = translator.translate_nbest(TEXTS, 2, finished=finished)
    after, searched = translator.search_state, list(shapes)
    assert [len(batch) for batch in finished] == [1] * 4 and len(searched) == 4
    shapes.clear()
    translator.search_state, some = before, finished[:3]
    again = translator.translate_nbest(TEXTS, 2, finished=some)
    assert again == whole and some == finished
    assert shapes == searched[3:] and translator.search_state == after
    with pytest.raises(ValueError, match="`finished` must have"):
        translator.translate_nbest(TEXTS, 2, finished=[2 * finished[0]])


def test_a_string_is_one_sentence(make):
    translator = make()
    (translation,) = translator.translate(TEXTS[:1])
    assert translator.translate(TEXTS[0]) == translation
    assert translator.translate("") == ""
    (nbest,) = translator.translate_nbest(TEXTS[:1], 2)
    assert translator.translate_nbest(TEXTS[0], 2) == nbest
    (score,) = translator.score(TEXTS[:1], TEXTS[2:3])
    assert translator.score(TEXTS[0], TEXTS[2]) == score


def test_what_has_no_meaning_is_refused(make):
    translator = make()
    with pytest.raises(TypeError, match="two strings or two lists"):
        translator.score("a dog", ["a dog"])
    with pytest.raises(TypeError, match=r"Pass \['a dog'\]"):
        next(translator.translate_stream("a dog"))
    for wrong in (b"a dog", ["a dog", 7], 7):
        with pytest.raises(TypeError, match="`texts` must be a string or"):
            translator.translate(wrong)


@pytest.mark.thorough
@pytest.mark.parametrize("num_beams", [1, 3])
def test_a_model_of_nan_is_an_error_that_names_the_weight(
    make, model, num_beams
):
    translator = make(num_beams=num_beams)
    values = np.array(model.kernel)
    values[2, 7] = np.nan
    model.kernel.assign(values)
    said = f"NaN .* its weight {model.kernel.path} is not finite.* checkpoint"
    with pytest.raises(UserError, match=said):
        translator.translate(["", "dog"])
    with pytest.raises(UserError, match=said):
        translator.score("dog", "dog")
    assert translator.translate([""]) == [""]


def test_a_computation_that_overflows_is_told_from_faulty_weights(make, model):
    model.log_probs = lambda scores: scores * np.float32(np.nan)
    with pytest.raises(UserError, match="all weights are finite.* float32"):
        make().translate("dog")


def test_the_batch_size_may_change_later(make, shapes):
    translator = make(batch_size=1)
    texts = [text for text in TEXTS if text]
    alone = translator.translate(texts)
    translator.batch_size = 4
    assert translator.batch_tokens == 4 * 256
    assert translator.translate(texts) == alone
    assert [rows for rows, _ in shapes] == [1, 1, 1, 1, 4]
    for name in ("batch_size", "batch_tokens"):
        with pytest.raises(ValueError, match=f"`{name}` must be an integer"):
            setattr(translator, name, 0)
        with pytest.raises(ValueError, match=f"`{name}` must be an integer"):
            make(**{name: 1.5})
    with pytest.raises(ValueError, match="an integer of at least 0. Received"):
        translator.compilation_padding = -1


def test_long_sources_are_computed_in_smaller_batches(make, model, shapes):
    model.max_length = None
    translator = make(
        batch_size=8, batch_tokens=400, num_beams=1, max_extra_tokens=2
    )
    texts = ["dog " * 150] * 4 + ["dog"] * 8
    together = translator.translate(texts)
    assert shapes == [(8, 8), (2, 192), (2, 192)]
    assert together == make(
        batch_size=1, num_beams=1, max_extra_tokens=2
    ).translate(texts)


def test_long_outputs_count_too(make, model, shapes):
    model.max_length = None
    translator = make(batch_size=16, batch_tokens=400, max_extra_tokens=190)
    translator.translate(["dog"] * 4)
    assert [rows for rows, _ in shapes] == [2, 2]


def test_long_pairs_are_scored_in_smaller_batches(make, model, monkeypatch):
    model.max_length = None
    translator = make(batch_size=16, batch_tokens=400)
    seen, score = [], translator._decoder._score_plain

    def see(*arrays):
        seen.append(max(array.size for array in arrays))
        return score(*arrays)

    monkeypatch.setattr(translator._decoder, "_score_plain", see)
    pairs = ["dog"] * 9, ["dog " * 150] * 4 + ["dog"] * 5
    scores = translator.score(*pairs)
    assert max(seen) <= 400 and len(seen) == 3
    np.testing.assert_allclose(
        scores[0].total, translator.score(*(side[0] for side in pairs)).total
    )


def test_one_sentence_costs_one_sentence(make, shapes):
    translator = make(batch_size=32)
    for number in (1, 3, 4, 5, 17, 32, 33):
        translator.translate(["dog"] * number)
    rows = [rows for rows, _ in shapes]
    # Four shapes of one length.
    assert rows == [1, 4, 4, 16, 32, 32, 32, 1]


@pytest.mark.thorough
def test_few_sentences_are_searched_in_the_shape_of_longer_ones(make, shapes):
    texts = ["dog", "two men", "dog " * 12, "a dog " * 6]
    apart = make(batch_size=2).translate(texts)
    assert [length for _, length in shapes] == [8, 16]
    translator = make(batch_size=2, compiled=True)
    shapes.clear()
    assert translator.translate(texts) == apart
    assert shapes[:2] == [(2, 16), (2, 16)]
    assert translator.num_compilations == 1
    shapes.clear()
    translator.compilation_padding = 0
    assert translator.translate(texts) == apart
    assert {length for _, length in shapes} == {8, 16}


@pytest.mark.thorough
def test_shapes_do_not_depend_on_what_was_translated_before(make, shapes):
    few = ["dog", "dog " * 12]
    translator = make(compiled=True, batch_size=1)
    translator.compilation_padding = 30
    translator.translate(few)
    expected = shapes[:]
    translator = make(compiled=True, batch_size=1)
    translator.compilation_padding = 30
    # For many sentences, 8 tokens are a length of their own.
    translator.translate(["dog"] * 32 + ["dog " * 12])
    assert (1, 8) in shapes
    shapes.clear()
    translator.translate(few)
    assert shapes == expected == [(1, 16), (1, 16)]


@pytest.mark.thorough
@pytest.mark.parametrize("times", [1, 2])
def test_the_shape_of_the_first_batch_is_traced_first(make, times):
    texts = ["dog", "a dog " * 5, "a dog " * 10]
    plain = make().translate(texts)
    for _ in range(times):
        events = []
        translator = make(compiled=True, batch_size=1)
        translator.compilation_padding = 0
        listen(translator.model, events.append)
        assert translator.translate(texts) == plain
        # Stages are traced with the shape of their search.
        lengths = dict.fromkeys(event.shape[1] for event in events)
        assert list(lengths) == [8, 16, 32]


@pytest.mark.thorough
@pytest.mark.parametrize("num_beams", [1, 2])
def test_trying_length_penalties_compiles_nothing(make, num_beams):
    translator = make(compiled=True, num_beams=num_beams)
    first = translator.translate_nbest("a dog runs", 1)
    compilations = translator.num_compilations
    for penalty, offset in ((0.0, 5.0), (1.0, 0.0), (2.5, 3.0)):
        translator.length_penalty = penalty
        translator.length_offset = offset
        for hypothesis in translator.translate_nbest("a dog runs", num_beams):
            length = (offset + len(hypothesis.ids)) / (offset + 1)
            assert hypothesis.score == pytest.approx(
                hypothesis.log_prob / length**penalty, rel=1e-5
            )
    assert translator.num_compilations == compilations
    translator.length_penalty, translator.length_offset = 0.6, 5.0
    assert translator.translate_nbest("a dog runs", 1) == first


@pytest.mark.thorough
@pytest.mark.parametrize("num_beams", [1, 2])
def test_a_translation_that_is_cut_is_marked(make, model, num_beams):
    # Without a reason to end, a translation goes on to its limit.
    model.kernel.assign(np.array(model.kernel) * (np.arange(61) != 3))
    translator = make(
        num_beams=num_beams, max_length_ratio=0.0, max_extra_tokens=3
    )
    best = translator.translate_nbest(TEXTS[0], 1)[0]
    assert best.truncated and len(best.ids) == 3
    assert not translator.translate_nbest("", 1)[0].truncated
    translator.max_extra_tokens = 5
    assert len(translator.translate_nbest(TEXTS[0], 1)[0].ids) == 5


def test_sources_that_are_cut_are_marked(make, capsys):
    translator = make(max_source_length=10)
    texts = ["dog", "dog " * 20, "", "dog " * 10]
    expected = [False, True, False, True]
    nbest = translator.translate_nbest(texts, 2)
    assert [row[0].source_truncated for row in nbest] == expected
    assert nbest[1][-1].source_truncated
    scores = translator.score(texts, texts)
    assert [score.source_truncated for score in scores] == expected
    assert "2 of 4 sources" in capsys.readouterr().err


@pytest.mark.thorough
def test_more_hypotheses_fill_the_groups(make):
    # With this penalty the groups do not meet at the maximum length.
    options = {"num_groups": 2, "diversity_penalty": 9.0}
    translator = make(num_beams=4, allow_unknown=False, **options)
    found = translator.translate_nbest("a dog runs", 5)
    six = make(num_beams=6, allow_unknown=False, **options)
    assert found == six.translate_nbest("a dog runs", 5)
    assert len(found) == 5


def test_a_text_that_other_tokens_make_too_leaves_room_for_the_next(make):
    # Translations of one or two tokens, with and without the mark of a word.
    limits = {"max_length_ratio": 0.0, "max_extra_tokens": 3}
    translator = make(num_beams=40, **limits)
    everything = translator.translate_nbest(TEXTS, 40, distinct=False)
    texts = [[h.text for h in found] for found in everything]
    assert any(len(set(found)) < len(found) for found in texts)
    for number in (1, 5, 40):
        nbest = translator.translate_nbest(TEXTS, number)
        for found, every in zip(nbest, everything, strict=True):
            first = {h.text: h for h in reversed(every)}
            best = sorted(first.values(), key=every.index)
            assert found == best[:number]


def test_samples_are_repeated_unless_they_must_differ(make):
    options = {"sampling": True, "sampling_temperature": 0.3, "num_beams": 20}
    translator = make(max_length_ratio=0.0, max_extra_tokens=2, **options)
    found = translator.translate_nbest("a dog runs", 20)
    texts = [hypothesis.text for hypothesis in found]
    assert len(texts) == 20 and len(set(texts)) < 20
    other = translator.translate_nbest("a dog runs", 20, distinct=True)
    assert [h.text for h in other] == list(dict.fromkeys(texts))


def test_phrases_for_an_empty_sentence_are_not_met(make):
    translator = make(num_beams=4)
    for phrases, expected in ((["two men"], False), ([], True), ([""], True)):
        (found,) = translator.translate_nbest("", 1, constraints=phrases)
        assert found.text == ""
        assert found.constraints_met == expected
    assert translator.translate("", prefixes="two men") == ""


def test_a_prefix_without_room_is_refused_by_its_name(make):
    prefixes = ["dog", "dog " * 40]
    with pytest.raises(UserError, match="`prefixes`, line 2: .* 39 tokens"):
        make().translate(["dog"] * 2, prefixes=prefixes)


def test_own_maximum_lengths_count_in_the_size_of_a_batch(make, model, shapes):
    model.max_length = None
    options = {"num_beams": 1, "max_length_ratio": 0.0, "max_extra_tokens": 2}
    texts, lengths = ["dog"] * 8, [0, 190, 0, 190, 3, 0, 0, 0]
    expected = make(batch_size=1, **options).translate(
        texts, max_lengths=lengths
    )
    shapes.clear()
    # Two rows with room for 192 tokens each, then six with room for 8.
    translator = make(batch_size=6, batch_tokens=400, **options)
    found = translator.translate(texts, max_lengths=lengths)
    assert shapes == [(6, 8), (2, 8)]
    assert found == expected


@pytest.mark.thorough
def test_own_maximum_lengths_keep_rows_from_being_added(make, model, shapes):
    model.max_length = None
    translator = make(
        compiled=True,
        batch_size=4,
        batch_tokens=400,
        num_beams=1,
        max_length_ratio=0.0,
        max_extra_tokens=2,
    )
    translator.translate(["dog"] * 6, max_lengths=[0, 190, 0, 190, 0, 0])
    assert shapes == [(4, 8), (2, 8)]


def test_no_own_maximum_length_is_too_large_for_the_search(make):
    translator = make()
    expected = translator.translate("a dog", max_lengths=40)
    # The model has 40 positions.
    assert translator.translate("a dog", max_lengths=2**31 - 1) == expected
    with pytest.raises(UserError, match="at most 2,147,483,647. Received: 21"):
        translator.translate("a dog", max_lengths=2**31)


def test_whole_floats_are_numbers_of_sentences(make):
    translator = make(batch_size=4.0, batch_tokens=800.0, num_beams=2.0)
    assert type(translator.batch_size) is type(translator.batch_tokens) is int
    found = translator.translate_nbest("a dog", 2.0)
    assert found == make(batch_size=4).translate_nbest("a dog", 2)
    # There would be no room for a token before the end.
    with pytest.raises(ValueError, match="`max_source_length` .* at least 2"):
        make(max_source_length=1)
    for wrong in (float("nan"), float("inf"), "4"):
        with pytest.raises(ValueError, match="`batch_size` must be an integer"):
            translator.batch_size = wrong
