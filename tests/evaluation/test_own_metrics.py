"""A metric of the user is scored, compared and refused as the others are.

* its score is that of its formula; interval and tests are those of a metric of
  sacreBLEU with the same counts
* a class that is no metric, or does not sum its counts, is refused in a line,
  before a text is translated
"""

import math
import re
from collections import Counter
from pathlib import Path

import pytest
from own_code_process import new_process

from keras_deepnmt import UserError, cli, import_code
from keras_deepnmt.analysis import score_figures
from keras_deepnmt.evaluation import compare_systems, corpus_scores
from keras_deepnmt.runs.test_translations import read_translations

GUIDE = Path(__file__).parents[2] / "docs" / "analysis.md"
REFERENCES = ["the dog runs", "a cat", "A house stands here", "birds sing"] * 5
GOOD = ["the dog runs", "a cat", "a house stands", "birds"] * 5
BAD = ["the runs", "a dog", "house here", "sing birds loud"] * 5
SUMS = """\
from sacrebleu.metrics.base import Metric, Score


class Less(Metric):
    higher_is_better = False

    def _preprocess_segment(self, sent):
        return sent

    def _extract_reference_info(self, refs):
        return {"refs": refs}

    def _compute_segment_statistics(self, hypothesis, ref_kwargs):
        return [hypothesis == ref_kwargs["refs"][0], 1]

    def _compute_score_from_stats(self, stats):
        # A Python float for some samples, one of NumPy for others.
        return Score("Less", -stats[0] / stats[1] if stats[0] else 0.0)

    def _aggregate_and_compute(self, stats):
        return self._compute_score_from_stats([sum(s) for s in zip(*stats)])
"""


@pytest.fixture(autouse=True)
def folder(tmp_path):
    """The current folder, with my_metrics.py of the guide and less.py."""
    with new_process(tmp_path / "home", tmp_path):
        block = re.search(
            r'```python title="my_metrics.py"\n(.*?)```',
            GUIDE.read_text(encoding="utf-8"),
            re.S,
        )
        (tmp_path / "my_metrics.py").write_text(block[1])
        (tmp_path / "less.py").write_text(SUMS)
        for name, lines in {"r": REFERENCES, "g": GOOD, "b": BAD}.items():
            (tmp_path / name).write_text("".join(f"{x}\n" for x in lines))
        yield tmp_path


def recall(texts, lowercase):
    found = total = 0
    for text, reference in zip(texts, REFERENCES, strict=True):
        pair = [x.lower() if lowercase else x for x in (text, reference)]
        words, wanted = (Counter(x.split()) for x in pair)
        found += sum((words & wanted).values())
        total += sum(wanted.values())
    return 100 * found / total


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("name", ["WordRecall", "my_metrics.WordRecall"])
def test_the_score_is_that_of_its_formula(name, lowercase):
    import_code("my_metrics.py")
    score = corpus_scores(
        GOOD, REFERENCES, [name], lowercase=lowercase, num_resamples=100
    )[name]
    assert score.value == pytest.approx(recall(GOOD, lowercase))
    assert 0 < score.interval < 20
    assert re.match(r"nrefs:1\|bs:100\|seed:\d+\|code:\w{8}\|", score.signature)


def test_the_best_of_several_references_counts():
    import_code("my_metrics.py")
    more = [[*GOOD[:-1], ""]]
    score = corpus_scores(
        GOOD, REFERENCES, ["WordRecall"], more_references=more
    )["WordRecall"]
    lengths = [len(line.split()) for line in GOOD[:-1]]
    assert score.value == pytest.approx(
        100 * (sum(lengths) + 1) / (sum(lengths) + 2)
    )


@pytest.mark.parametrize("known", ["chrf", "ter"])
def test_intervals_and_tests_are_those_of_equal_counts(known):
    own = f"sacrebleu.metrics.{known.upper()}"
    scores = corpus_scores(GOOD, REFERENCES, [known, own], num_resamples=50)
    assert scores[own] == scores[known]
    compared = compare_systems(
        GOOD, BAD, REFERENCES, [known, own], num_resamples=50, num_trials=50
    )
    for field in ("difference", "bootstrap_p_value", "randomization_p_value"):
        values = [getattr(compared[name], field) for name in (known, own)]
        assert values[0] == pytest.approx(values[1])


def test_scores_below_zero_have_intervals_and_reports_say_what_is_better():
    import_code("less.py")
    text = read_translations(
        ["g"], ["r"], None, {"metrics": ("less.Less", "ter")}, 200
    )
    score = text.scores["g"]["less.Less"]
    assert score.value == -0.5
    # Of 20 sentences, half of which are equal to their reference.
    deviation = math.sqrt(0.25 / 20)
    assert score.interval == pytest.approx(1.96 * deviation, rel=0.3)
    table = score_figures(text)[0]
    assert "less.Less is better if it is lower. TER is" in table.caption


def test_an_interval_needs_no_match_in_every_sample():
    import_code("less.py")
    texts, references = ["a", *"xxx"], ["a", *"bbb"]
    score = corpus_scores(texts, references, ["Less"], num_resamples=100)
    assert score["Less"].interval == pytest.approx(0.4, abs=0.15)


MISTAKES = {
    "Rubbish": "be some of bleu, chrf, ter, gleu, comet, comet-qe, Broken, ",
    "Les": 'Did you mean "Less"?',
    "less.Gone": "less has no Gone",
    "gone.Less": "No module named 'gone'",
    "less.Score": "must be a subclass of sacrebleu.metrics.base.Metric",
    "less.Lacking": "_preprocess_segment",
    "less.Needy": "missing 1 required positional argument: 'weight'",
    "less.Uneven": "as many for each sentence. Received: [[1, 1], [1]]",
    "less.Mean": "of the sums of all counts. Received: 1.0 and -0.5",
    "less.Broken": "less.py, line 35, in _preprocess_segment: KeyError: 'x'",
}
CLASSES = """\
class Lacking(Less):
    _preprocess_segment = Metric._preprocess_segment
class Needy(Less):
    def __init__(self, weight):
        super().__init__()
class Uneven(Less):
    def _compute_segment_statistics(self, hypothesis, ref_kwargs):
        return [1] * len(ref_kwargs["refs"][::-1])
class Mean(Less):
    def _aggregate_and_compute(self, stats):
        return Score("Mean", 1.0)
class Broken(Less):
    def _preprocess_segment(self, sent):
        return {}["x"]
"""


@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_no_metric_is_refused_in_a_line(name, folder, capsys):
    (folder / "less.py").write_text(SUMS + CLASSES)
    words = ["evaluate", "--hypotheses", "g", "--references", "r"]
    words += ["--import", "less.py", "--metrics", "bleu", name]
    assert cli.main(words) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert MISTAKES[name] in printed.err
    assert printed.err.count("\n") == 1


def test_the_command_prints_scores_and_tests(capsys):
    words = ["evaluate", "--hypotheses", "g", "b", "--references", "r"]
    words += ["--import", "my_metrics.py", "--metrics", "WordRecall", "bleu"]
    assert cli.main([*words, "--resamples", "20", "--quiet"]) == 0
    lines = [x.split("\t") for x in capsys.readouterr().out.splitlines()]
    assert lines[0][:3] == ["g", "WordRecall", f"{recall(GOOD, False):.2f}"]
    difference = recall(BAD, False) - recall(GOOD, False)
    assert ["b", "g", "WordRecall", f"{difference:+.2f}"] in [
        line[:4] for line in lines
    ]


def test_without_the_file_it_is_no_metric():
    with pytest.raises(UserError, match="must be some of bleu, chrf, ter, or"):
        corpus_scores(GOOD, REFERENCES, ["WordRecall"])
