"""A comparison counts, shows and scores what three roads give."""

import pytest
from tiny_translator import all_pairs

from keras_deepnmt.serving import parity
from keras_deepnmt.serving.parity import (
    NEAR_TIE,
    Difference,
    ParityReport,
    compare_translations,
)

SOURCES = [source for source, _ in all_pairs()][:12]


@pytest.fixture(scope="module")
def three_roads(version_dir, translator):
    return parity._ThreeSearches(version_dir, translator)


def test_all_roads_give_the_same(
    version_dir, translator, three_roads, monkeypatch
):
    monkeypatch.setattr(parity, "_ThreeSearches", lambda *rest: three_roads)
    done = []
    report = compare_translations(version_dir, translator, SOURCES, done.append)
    assert sum(done) == report.num_sentences == len(SOURCES)
    assert report.identical_to_graph == len(SOURCES)
    assert (
        report.identical_to_compiled
        + report.near_ties
        + report.other_differences
        == len(SOURCES)
    )
    assert report.other_differences == 0


def test_a_difference_is_shown_with_both_scores(
    version_dir, translator, three_roads, monkeypatch
):
    monkeypatch.setattr(parity, "_ThreeSearches", lambda *rest: three_roads)
    other = "the dog ."
    true_translate = three_roads.client.translate
    monkeypatch.setattr(
        three_roads.client,
        "translate",
        lambda batch: [other, *true_translate(batch)[1:]],
    )
    report = compare_translations(version_dir, translator, SOURCES)
    assert report.identical_to_graph == len(SOURCES) - 1
    assert report.other_differences == 1
    found = report.differences[0]
    assert found.served == other
    scores = {
        text: translator.score([found.source], [text])[0]
        for text in (other, found.compiled)
    }
    for text, score in (
        (other, found.served_score),
        (found.compiled, found.compiled_score),
    ):
        divisor = ((5 + len(scores[text].tokens)) / 6) ** 0.6
        assert score == pytest.approx(scores[text].total / divisor, rel=1e-4)
    assert repr(other) in str(report)


def test_near_ties_are_told_from_other_differences():
    near = Difference("a", "b", "c", -1.0, -1.0 + NEAR_TIE / 2)
    far = Difference("a", "b", "c", -1.0, -1.0 + NEAR_TIE * 2)
    report = ParityReport(9, (), (near, far))
    assert (report.identical_to_graph, report.identical_to_compiled) == (9, 7)
    assert (report.near_ties, report.other_differences) == (1, 1)
    assert "near tie: 'a'" in str(near) and "DIFFERENT" in str(far)
    on_the_way = Difference("a", "b", "c", -1.0, -3.0, noise_gives_both=True)
    assert on_the_way.is_near_tie


def test_noise_of_the_size_of_rounding_moves_no_clear_choice(
    three_roads, translator
):
    best = translator.translate(SOURCES[:1])
    assert three_roads.noisy_texts(SOURCES[0]) == set(best)


def test_noise_is_really_added(version_dir, translator, monkeypatch):
    monkeypatch.setattr(parity, "ROUNDING", 10.0)
    three_roads = parity._ThreeSearches(version_dir, translator)
    assert len(three_roads.noisy_texts(SOURCES[0])) > 9
