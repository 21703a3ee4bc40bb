"""How a SavedModel's translations are compared with those of Python."""

from types import SimpleNamespace

import keras
import pytest

from benchmarks.quality import export_parity
from benchmarks.quality.measuring import export_comparison
from benchmarks.quality.measuring.export_comparison import (
    NEAR_TIE,
    Difference,
    ParityReport,
)
from benchmarks.shared.result_rows import read_rows
from keras_deepnmt import Translator, create_model
from keras_deepnmt.data.demo import demo_alignments
from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.serving.serving_graph import ServingGraph

SOURCES = [pair.source for pair in demo_alignments()][:5]
OPTIONS = {"num_beams": 2, "length_penalty": 1.0, "length_offset": 0.0}


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    texts = [f"{pair.source} {pair.target}" for pair in demo_alignments()]
    file = tmp_path_factory.mktemp("tokenizer") / "joint.model"
    tokenizer = train_tokenizer(texts, file, 200)
    keras.utils.set_random_seed(1)
    model = create_model(
        "transformer_tiny", 200, 200, num_encoder_layers=1, num_decoder_layers=1
    )
    # Nearly all translations of an untrained model are as long as they may be.
    return Translator(
        model, tokenizer, tokenizer, max_length_ratio=0.0, max_extra_tokens=7
    )


@pytest.fixture
def client(translator, monkeypatch):
    """Stands in for the client of a SavedModel with the `OPTIONS`."""
    options = translator.options.updated(**OPTIONS)
    graph = ServingGraph(translator, **options.as_dict())

    def translate(batch):
        texts = graph.signatures["serving_default"](keras.ops.array(batch))
        return [text.decode() for text in texts["text"].numpy()]

    client = SimpleNamespace(
        description={**options.as_dict(), "max_source_length": 64},
        translate=translate,
    )
    monkeypatch.setattr(
        export_comparison, "SavedModelClient", lambda folder: client
    )
    return client


@pytest.fixture
def compare(translator, client, tmp_path, monkeypatch):
    """Runs the script; returns its exit code and its row."""
    monkeypatch.setattr(
        Translator,
        "load",
        lambda run, **options: translator.replaced(**options),
    )
    monkeypatch.setattr(export_parity, "RESULTS", tmp_path / "rows.csv")
    source = tmp_path / "test.src"
    source.write_text("\n".join([*SOURCES, "left out"]))

    def run():
        code = export_parity.main(
            ["demo", "served", "--source", str(source), "--sentences", "5"]
        )
        return code, read_rows(tmp_path / "rows.csv")[-1]

    return run


@pytest.mark.thorough
def test_equal_and_other_translations_are_counted(compare, client, capsys):
    code, row = compare()
    assert code == 0
    assert row["run"] == "demo"
    counts = ["identical_to_graph", "near_ties", "other_differences"]
    assert row["sentences"] == row[counts[0]] == "5" and row[counts[2]] == "0"
    in_python = client.translate
    client.translate = lambda batch: ["other", *in_python(batch)[1:]]
    code, row = compare()
    assert code == 1
    assert [row[name] for name in counts] == ["4", "0", "1"]
    assert "'other'" in capsys.readouterr().out


@pytest.mark.thorough
def test_both_translations_of_a_difference_are_scored(translator, client):
    in_python = client.translate
    client.translate = lambda batch: ["dog", *in_python(batch)[1:]]
    report = export_comparison.compare_translations(
        "served", translator, SOURCES, lambda number: None
    )
    found = next(x for x in report.differences if x.served == "dog")
    plain = translator.replaced(compiled=False, **OPTIONS)
    served = plain.score([found.source], ["dog"])[0]
    mean = served.total / len(served.tokens)
    assert found.served_score == pytest.approx(mean, rel=1e-3)
    best = plain.translate_nbest([found.source], 1)[0][0]
    assert found.compiled == best.text
    assert found.compiled_score == pytest.approx(best.score, rel=1e-3)


def test_near_ties_are_told_from_other_differences():
    near = Difference("a", "b", "c", -1.0, -1.0 + NEAR_TIE / 2)
    far = Difference("a", "b", "c", -1.0, -1.0 + NEAR_TIE * 2)
    report = ParityReport(9, (), (near, far))
    assert (report.identical_to_graph, report.identical_to_compiled) == (9, 7)
    assert (report.near_ties, report.other_differences) == (1, 1)
    assert "near tie: 'a'" in str(near) and "DIFFERENT" in str(far)
    on_the_way = Difference("a", "b", "c", -1.0, -3.0, noise_gives_both=True)
    assert on_the_way.is_near_tie


@pytest.mark.thorough
def test_noise_is_really_added(translator, client, monkeypatch):
    monkeypatch.setattr(export_comparison, "ROUNDING", 10.0)
    searches = export_comparison._ThreeSearches("served", translator)
    assert len(searches.noisy_texts(SOURCES[0])) > 9
