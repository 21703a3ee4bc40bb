"""What must be true of the maximum length of translations.

* it is the ratio times the sentence's own length, rounded up, plus the rest
* a large beam finds what brute force finds among the short enough outputs
* an output is truncated if and only if the model would have gone on
* batch mates and padding change neither limit nor mark
* by default it is the source's length + 50, as it always was
"""

import numpy as np
import pytest
from toy_model import SOURCES, ToyModel, tokens

from keras_deepnmt.decoding import SearchOptions, beam_search, greedy_search
from keras_deepnmt.decoding.hypotheses import longest_output, output_limits

LENGTHS = [3, 2, 5]


def goes_on(model, source, target):
    """Whether another token than the end is likeliest after a target's rest."""
    before = target[:-1]
    end, *others = (
        model.reference_log_prob(source, [*before, token])
        for token in (3, 1, *range(4, model.target_vocabulary_size))
    )
    return max(others) > end


@pytest.mark.parametrize(
    "ratio, extra, expected",
    [
        (1.0, 50, [53, 52, 55]),
        (0.0, 7, [7, 7, 7]),
        (2.0, 0, [6, 4, 10]),
        (1.5, 1, [6, 4, 9]),
        (1.1, 0, [4, 3, 6]),
        (0.1, 0, [1, 1, 1]),
    ],
)
def test_the_limit_follows_from_ratio_and_rest(ratio, extra, expected):
    options = SearchOptions(max_length_ratio=ratio, max_extra_tokens=extra)
    limits = output_limits(SOURCES, 99, options)
    assert np.asarray(limits).tolist() == expected
    assert [longest_output(n, options) for n in LENGTHS] == expected
    assert np.asarray(output_limits(SOURCES, 4, options)).max() <= 4


def test_products_without_a_remainder_are_not_rounded_up():
    for ratio in (1.1, 0.7, 1.3, 2.3):
        options = SearchOptions(max_length_ratio=ratio, max_extra_tokens=0)
        lengths = np.arange(10, 2000, 10)
        rows = np.asarray(longest_output(lengths, options))
        exact = lengths // 10 * round(10 * ratio)
        np.testing.assert_array_equal(rows, exact)
        assert [longest_output(int(n), options) for n in lengths] == list(exact)


@pytest.mark.thorough
@pytest.mark.parametrize("ratio, extra", [(1.0, 0), (0.4, 1), (0.0, 3)])
def test_large_beam_finds_what_brute_force_finds(ratio, extra):
    model = ToyModel(seed=3, scale=1.0)
    sources = SOURCES[:2]
    found = model.compiled(beam_search)(
        sources,
        max_length=90,
        num_beams=41,
        max_length_ratio=ratio,
        max_extra_tokens=extra,
    )
    for row, source in enumerate(sources):
        limit = int(np.ceil(ratio * LENGTHS[row])) + extra
        ranked = sorted(
            (
                (
                    model.reference_log_prob(source, target)
                    / ((5 + len(target)) / 6) ** 0.6,
                    target,
                )
                for target in model.all_targets(limit)
            ),
            reverse=True,
        )
        scores, targets = zip(*ranked, strict=True)
        number = len(targets)
        ids = found["ids"][row]
        assert [tokens(one) for one in ids[:number]] == list(targets)
        np.testing.assert_allclose(found["scores"][row, :number], scores, 1e-4)
        assert found["truncated"][row, :number].tolist() == [
            len(target) == limit and goes_on(model, source, target)
            for target in targets
        ]
        assert not ids[number:].any()
        assert not found["truncated"][row, number:].any()


@pytest.mark.thorough
@pytest.mark.parametrize("num_beams", [1, 3])
def test_what_the_limit_ends_is_marked(num_beams):
    model, marked = ToyModel(vocabulary_size=9), 0
    search = model.compiled(beam_search)
    for seed in range(6):
        model.draw_weights(seed, scale=1.5)
        found = search(
            SOURCES, max_length=9, num_beams=num_beams, max_extra_tokens=1
        )
        for row, source in enumerate(SOURCES):
            for ids, truncated in zip(
                found["ids"][row], found["truncated"][row], strict=True
            ):
                target = tokens(ids)
                is_longest = len(target) == LENGTHS[row] + 1
                expected = is_longest and goes_on(model, source, target)
                assert truncated == expected
                marked += truncated
    assert 0 < marked < 6 * 3 * num_beams


def test_greedy_search_is_a_search_with_one_beam():
    model = ToyModel(vocabulary_size=9)
    by_greedy = model.compiled(greedy_search)
    by_beam = model.compiled(beam_search)
    limits = {"max_length_ratio": 0.5, "max_extra_tokens": 2}
    for seed in range(5):
        model.draw_weights(seed, scale=1.5)
        greedy = by_greedy(SOURCES, max_length=9, **limits)
        beam = by_beam(SOURCES, max_length=9, num_beams=1, **limits)
        for name in ("ids", "truncated"):
            np.testing.assert_array_equal(greedy[name], beam[name][:, 0])


@pytest.mark.thorough
@pytest.mark.parametrize("function", [beam_search, greedy_search])
def test_batch_mates_and_padding_change_no_limit(function):
    model = ToyModel(vocabulary_size=9)
    search = model.compiled(function)
    options = {
        "max_length": 12,
        "max_length_ratio": 1.5,
        "max_extra_tokens": 1,
    }
    wider = np.pad(SOURCES, [(0, 2), (0, 6)])
    for seed in range(3):
        model.draw_weights(seed, scale=1.5)
        together = search(wider, **options)
        for row, source in enumerate(SOURCES):
            alone = search(source[None, : LENGTHS[row]], **options)
            for name in ("ids", "truncated"):
                np.testing.assert_array_equal(
                    alone[name][0], together[name][row]
                )
        assert not together["truncated"][3:].any()


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"max_length_ratio": -0.5}, "`max_length_ratio` must be a finite"),
        ({"max_length_ratio": float("inf")}, "`max_length_ratio` must be"),
        ({"max_extra_tokens": 1.5}, "`max_extra_tokens` must be an integer"),
        (
            {"max_length_ratio": 0, "max_extra_tokens": 0},
            "must not both be 0",
        ),
    ],
)
def test_a_limit_that_is_none_is_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        SearchOptions(**wrong)
