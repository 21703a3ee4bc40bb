"""`--rerank` sorts translations by other runs; `tune` finds the weights."""

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from jsonargparse import Namespace
from toy_model import ToyModel

from keras_deepnmt import Translator
from keras_deepnmt.commands import tune
from keras_deepnmt.commands.options import reranking
from keras_deepnmt.commands.options.reranking import RerankingRuns
from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.directions import Directions
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation import corpus_scores
from keras_deepnmt.reranking import Reranker
from keras_deepnmt.translator.results import Hypothesis

TAGS = ("<2en>", "<2de>")
SENTENCES = ["1 2 3", "", "4 4 1 7", "9 8 7 6 5 5"]
WEIGHTS = [0.1, 0.2, 0.9]


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "source"
    file.write_text("".join(f"{line}\n" for line in SENTENCES))
    return file


@pytest.fixture
def words(digits, source):
    """A search with other runs: reversed digits are reversed by the same."""
    run = digits / "run"
    return [
        *(run, "--input", source, "--num-beams", "4", "--rerank", run),
        *("--rerank-reverse", run, "--no-compile", "-q"),
    ]


def reranked(digits, weights):
    translator = Translator.load(digits / "run", compiled=False, num_beams=4)
    reranker = Reranker(translator, [translator], [translator], weights)
    return reranker.rerank(SENTENCES, translator.translate_nbest(SENTENCES, 4))


@pytest.mark.thorough
def test_the_order_is_that_of_the_function(deepnmt, digits, words):
    weights = ["--rerank-weights", *map(str, WEIGHTS)]
    words_of_list = ["--num-hypotheses", "2", "--nbest-format", "moses"]
    done = deepnmt("translate", *words, *weights, *words_of_list)
    assert done.code == 0, done.err
    rows = [line.split(" ||| ") for line in done.out.split("\n")[:-1]]
    listed = [
        (number, hypothesis)
        for number, found in enumerate(reranked(digits, WEIGHTS))
        for hypothesis in found[:2]
    ]
    assert [(number, text, score) for number, text, _, score in rows] == [
        (str(number), h.text, f"{h.score:.6f}") for number, h in listed
    ]
    # With the scores that the sums are of.
    names = ["Search=", "Forward1=", "Reverse1="]
    for (_, _, features, score), (_, found) in zip(rows, listed, strict=True):
        parts = features.split()
        own = [float(parts[parts.index(name) + 1]) for name in names]
        assert own == pytest.approx(found.features, abs=1e-5)
        assert np.dot(own, WEIGHTS) == pytest.approx(float(score), abs=1e-4)
    # The best one alone, with equal weights.
    done = deepnmt("translate", *words)
    texts = [found[0].text for found in reranked(digits, None)]
    assert done.out.split("\n")[:-1] == texts


@pytest.mark.thorough
def test_tuned_weights_are_read_back(deepnmt, digits, words, tmp_path):
    run, weights = digits / "run", tmp_path / "weights.json"
    text = [
        *("--source", digits / "valid.source"),
        *("--target", digits / "valid.target"),
    ]
    tuning = [*words[3:], *text, "--output", weights]
    done = deepnmt("tune", run, *tuning)
    assert done.code == 0, done.err
    content = json.loads(weights.read_text())
    found = [model["weight"] for model in content["models"]]
    assert sum(map(abs, found)) == pytest.approx(1)
    assert [model["direction"] for model in content["models"]] == [
        *("search", "forward", "reverse")
    ]
    # The recipe's own tokenizer.
    assert content["tuning"]["tokenize"] == "none"
    assert content["tuning"]["sentences"] == 50
    weighted = [*words[3:], "--rerank-weights", weights]
    done = deepnmt("translate", run, "-i", digits / "valid.source", *weighted)
    assert done.code == 0, done.err
    bleu = corpus_scores(
        done.out.splitlines(),
        (digits / "valid.target").read_text().splitlines(),
        ["bleu"],
        tokenize="none",
    )["bleu"]
    assert bleu.value == pytest.approx(content["tuning"]["score"], abs=1e-3)
    assert bleu.value >= content["tuning"]["score_of_search"] - 1e-3


@pytest.mark.thorough
def test_mistakes_are_told_in_one_line(refused, digits, words, tmp_path):
    run, weights = digits / "run", tmp_path / "weights.json"
    error = refused("translate", run, "--rerank-weights", "1")
    assert "--rerank-weights needs --rerank" in error
    error = refused("translate", *words, "--rerank-weights", "1", "2")
    assert "needs 3 finite weights" in error
    error = refused("translate", *words, "--rerank-weights", "1", "a")
    assert "must be one file, or numbers" in error
    error = refused("translate", *words, "--rerank-weights", weights)
    assert "no such file of weights" in error
    weights.write_text('{"models": []}')
    error = refused("translate", *words, "--rerank-weights", weights)
    assert "not a file of weights" in error
    model = {"run": "x", "direction": "search", "weight": 1}
    content = {"models": [model], "length_penalty": 0.6, "length_offset": 5}
    content |= {"coverage_penalty": 0}
    weights.write_text(json.dumps(content))
    error = refused("translate", *words, "--rerank-weights", weights)
    assert "for the models search. Received: search, forward" in error
    models = [model | {"direction": d} for d in ("search", "forward")]
    weights.write_text(json.dumps(content | {"models": models}))
    error = refused(
        *("translate", *words[:7], "--length-penalty", "1", "-q"),
        *("--rerank-weights", weights),
    )
    assert "tuned with --length-penalty 0.6" in error
    error = refused("translate", *words, "--mbr", "bleu")
    assert "--mbr and --rerank choose" in error
    text = ["--source", words[2], "--target", words[2], "-q"]
    assert "needs --rerank" in refused("tune", run, *text)
    error = refused("tune", run, *text, "--rerank", run, "--num-beams", "1")
    assert "`--num-beams` must be at least 2" in error


def test_weights_are_tuned_on_the_choices_of_reranking(monkeypatch):
    """A translation that lacks a phrase is chosen only if all of them do."""
    texts = ["dog", "small dog", "runs"]
    nbest = [
        [Hypothesis(t, 0, 0, (3,), constraints_met=t in met) for t in texts]
        for met in (["small dog", "runs"], [])
    ]
    scores = np.array([[-1.0, -2.0], [-2.0, -5.0], [-3.0, -4.0]])
    monkeypatch.setattr(Reranker, "features", lambda *_: [scores, scores])
    translator = SimpleNamespace(
        translate_nbest=lambda *_: nbest, num_beams=3, compilation_padding=0
    )
    reranker = Reranker(translator, [translator])
    runs = SimpleNamespace(models=[0, 1], reranker=lambda *_: reranker)
    options = Namespace(compile=True, quiet=True)
    found, rows = tune._nbest(options, translator, runs, ["a", "b"], {}, None)
    assert found == [texts[1:], texts]
    for reranker.weights in np.array([[1, 0], [0, 1], [-1, 0], [0, -1]]):
        best = [
            own[np.argmax(values @ reranker.weights)]
            for own, values in zip(found, rows, strict=True)
        ]
        ranked = reranker.rerank(["a", "b"], nbest)
        assert best == [hypotheses[0].text for hypotheses in ranked]


def test_a_run_of_other_languages_is_refused(refused, digits, tmp_path):
    runs = {}
    for name, languages in {
        "there": ("de", "en"),
        "back": ("en", "de"),
        "other": ("fr", "en"),
    }.items():
        runs[name] = tmp_path / name
        shutil.copytree(digits / "run", runs[name], copy_function=_link)
        recipe = runs[name] / "recipe.yaml"
        content = yaml.safe_load(recipe.read_text())
        source, target = languages
        content["data"] |= {"source_language": source}
        content["data"] |= {"target_language": target}
        recipe.unlink()
        recipe.write_text(yaml.safe_dump(content))
    words = ["translate", runs["there"], "-q"]
    error = refused(*words, "--rerank", runs["back"])
    assert "en to de, not de to en. Give it to --rerank-reverse." in error
    error = refused(*words, "--rerank-reverse", runs["there"])
    assert "de to en, not en to de. Give it to --rerank." in error
    error = refused(*words, "--rerank", runs["other"])
    assert error.endswith("fr to en, not de to en.\n")


def test_one_model_of_both_directions_scores_both_ways(monkeypatch, tmp_path):
    """Backwards it gets the tag of the language of the source."""
    corpora = [
        CorpusOptions("a", "b", tag="<2en>"),
        CorpusOptions("a", "b", tag="<2de>", reversed=True),
    ]
    data = PrepareOptions(
        train=corpora, source_language="de", target_language="en"
    )
    texts = ["a small dog runs", "two men read the old book"] * 9
    plain, tokenizer = (
        train_tokenizer(
            texts, tmp_path / f"{size}.model", size, user_defined_symbols=tags
        )
        for size, tags in ((30, []), (34, list(TAGS)))
    )
    monkeypatch.setattr(
        reranking, "_recipe", lambda run: SimpleNamespace(data=data)
    )
    for side in ("source", "target"):
        # The target tokenizer alone has the tags that are there.
        sides = (tokenizer if side == "source" else plain), tokenizer
        model = ToyModel(34, sides[0].vocabulary_size)
        translator = Translator(model, *sides, tag_side=side, compiled=False)
        translator.directions = Directions(data.directions())
        monkeypatch.setattr(Translator, "load", lambda *_, t=translator: t)
        for tag, other in (TAGS, TAGS[::-1]):
            options = Namespace(
                **{"runs": ["both"], "rerank": ["both"], "batch_size": None},
                **{"rerank_reverse": ["both"], "compile": False},
                batch_tokens=None,
            )
            runs = RerankingRuns(options, translator.replaced(tag=tag))
            tags = [one.choose([]).tag for one in runs.translators]
            assert tags == [tag, other]
    # Of two languages that are translated to this one.
    french = replace(corpora[0], source_language="fr")
    data = replace(data, train=[*corpora, french])
    with pytest.raises(UserError, match="several languages, en, de, and which"):
        RerankingRuns(options, translator.replaced(tag="<2en>"))


def _link(source, target):
    shutil.os.link(source, target)
