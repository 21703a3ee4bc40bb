"""What must be true of the counts that corpus scores sum.

* sums of counts have sacreBLEU's score of the whole text, also with several
  references, of which some are missing
* case, tokenizers and scripts count as asked
"""

import numpy as np
import pytest

from keras_deepnmt.evaluation import corpus_scores
from keras_deepnmt.evaluation.metric_counts import MetricCounts
from keras_deepnmt.evaluation.scores import METRICS, reference_sets

WORDS = "the dog a Cat sits runs on mat ! house".split()


def random_text(draw, longest=9):
    return " ".join(draw.choice(WORDS, draw.integers(0, longest)))


def assert_equal_to_the_score(metric, texts, references, more=(), **options):
    counter = MetricCounts(metric, references=references, **options)
    rows = counter.of_sentences(texts, reference_sets(references, more))
    expected = corpus_scores(
        texts, references, [metric], more_references=more, **options
    )
    assert counter.scores(rows.sum(axis=0)[None])[0] == pytest.approx(
        expected[metric].value
    )


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(20))
def test_scores_of_sums_are_those_of_the_text(metric, seed):
    draw = np.random.default_rng(seed)
    number = 1 + seed % 5
    texts = [random_text(draw, 2 + seed % 7) for _ in range(number)]
    references, *more = (
        [random_text(draw) for _ in range(number)] for _ in range(1 + seed % 3)
    )
    assert_equal_to_the_score(
        metric,
        texts,
        references,
        more,
        lowercase=seed % 2 == 0,
        tokenize=("13a", "none", "char")[seed % 3],
    )


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "references", [["ສະບາຍດີ ຕອນເຊົ້າ", "ຂອບໃຈ"], ["我们 去公园。", "谢谢你"]]
)
def test_scripts_without_spaces_count_as_in_the_score(metric, references):
    texts = [references[0][:-2], references[1] + references[0][:3]]
    assert_equal_to_the_score(metric, texts, references, tokenize="char")


def test_no_edit_and_no_reference_word_is_no_error():
    assert MetricCounts("ter").scores(
        np.array([[0.0, 0.0], [3.0, 0.0], [1.0, 4.0]])
    ) == pytest.approx([0, 100, 25])


def test_case_and_tokens_count_as_asked():
    for metric in ("bleu", "chrf"):
        counts = MetricCounts(metric, lowercase=True)
        rows = counts.of_texts(["A Big Dog Sat."], "a big dog sat.")
        assert counts.scores(rows)[0] == pytest.approx(100)
    rows = MetricCounts("bleu", tokenize="none").of_texts(["a b."], "a b .")
    assert rows[0][0] == 1  # "b." is one word
