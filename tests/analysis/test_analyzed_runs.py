"""What must be true of the figures of runs.

* a run has all figures of the layers that it has, and no others
* their values are those of the functions on arrays, and add up
* sentences are those of the test set, spread over it
* an analysis that a model has no layers for is refused by name
"""

import numpy as np
import pytest

from keras_deepnmt.analysis import (
    ANALYSES,
    AnalyzedRun,
    analyze,
    training_figures,
)
from keras_deepnmt.commands.analyze import NAMES
from keras_deepnmt.errors import UserError
from keras_deepnmt.translator import Translator

pytestmark = pytest.mark.thorough(each_commit=True)

OF_ANY_TRANSFORMER = {
    *("attention_entropy", "cross_attention_1", "attention_alignment"),
    *("encoder_similarity", "decoder_similarity", "encoder_diversity"),
    *("layer_lens", "layer_lens_accuracy", "source_ablation_1"),
    *("embedding_spectrum", "embedding_components", "bilingual_similarity"),
}
OF_EVERYTHING = OF_ANY_TRANSFORMER | {
    *("self_attention_global", "self_attention_backward"),
    *("gate_shares", "without_branch"),
    *("encoder_input_exploitation", "decoder_input_exploitation"),
    *("layer_attention", "masked_encoder_layer", "channel_spectrum"),
    *("role_frequencies", "role_uses", "role_uses_of_token"),
}
OF_DENSE_MODELS = {"encoder_dense_layers", "decoder_dense_layers"}


def open_run(run_dirs, preset, **options):
    return AnalyzedRun(
        run_dirs[preset], **{"compiled": False, "num_sentences": 8, **options}
    )


@pytest.fixture(scope="module")
def everything(run_dirs):
    run = open_run(run_dirs, "everything_tiny")
    with pytest.MonkeyPatch.context() as patch:
        # A search by each changed model would take long; notebooks have them.
        patch.setattr(
            Translator, "translate", lambda self, texts, **_: list(texts)
        )
        return run, {figure.name: figure for figure in analyze(run)}


@pytest.fixture(scope="module")
def dense(run_dirs):
    run = open_run(run_dirs, "dense_nmt_1_tiny")
    return run, {figure.name: figure for figure in analyze(run)}


@pytest.mark.thorough
def test_a_model_of_all_papers_has_all_their_figures(everything):
    _, figures = everything
    assert OF_EVERYTHING <= set(figures)
    # Its roles are not probabilities.
    assert not (OF_DENSE_MODELS | {"role_entropy"}) & set(figures)


def test_a_dense_model_has_its_own(dense):
    _, figures = dense
    assert OF_DENSE_MODELS <= set(figures)
    assert {"cross_attention_1", "source_ablation_1"} <= set(figures)
    assert not {"gate_shares", "layer_attention", "role_uses"} & set(figures)


@pytest.mark.thorough
def test_shares_and_weights_add_up(everything):
    run, figures = everything
    gates = figures["gate_shares"]
    np.testing.assert_allclose(sum(map(np.asarray, gates.series.values())), 1)
    for side in ("encoder", "decoder"):
        shares = figures[f"{side}_input_exploitation"].values
        np.testing.assert_allclose(np.nansum(shares, axis=1), 1)
    weights = figures["layer_attention"].values
    np.testing.assert_allclose(weights.sum(axis=0), 1, rtol=1e-5)
    cross = figures["cross_attention_1"]
    np.testing.assert_allclose(cross.values.sum(axis=1), 1, rtol=1e-4)
    tokens = figures["role_frequencies"].series["tokens"]
    assert sum(tokens) == run.source_mask.sum()


@pytest.mark.thorough
def test_every_figure_has_a_title_a_caption_and_values(everything, dense):
    for _, figures in (everything, dense):
        for name, figure in figures.items():
            assert figure.title and figure.caption.endswith("."), name
            header, *rows = figure.table()
            assert all(len(row) == len(header) for row in rows), name
            assert rows or name == "role_uses_of_token"


@pytest.mark.thorough
def test_roles_of_the_token_are_those_of_its_occurrences(everything):
    run, figures = everything
    counted = sum(row[1] for row in figures["role_uses_of_token"].rows)
    pieces = [
        piece.replace("▁", "")
        for row in range(len(run.sources))
        for piece in run.source_tokens(row)
    ]
    assert counted == pieces.count("der") > 0


@pytest.mark.thorough
def test_probabilities_of_roles_have_an_entropy(run_dirs):
    run = open_run(run_dirs, "role_interaction_softmax_tiny")
    figures = {figure.name: figure for figure in analyze(run, ["roles"])}
    (_, token), (_, use) = figures["role_entropy"].rows
    assert 0 <= token <= use <= np.log(128)


@pytest.mark.thorough
def test_roles_are_compared_with_gold_labels(run_dirs, tmp_path):
    folder = run_dirs.root
    options = {"num_sentences": 99, "label_file": folder / "test.roles.jsonl"}
    run = open_run(run_dirs, "role_interaction_softmax_tiny", **options)
    figures = {figure.name: figure for figure in analyze(run, ["roles"])}
    ((words, labels, roles, agreement, chance),) = figures[
        "role_agreement"
    ].rows
    spaced = [word.lower() for text in run.sources for word in text.split()]
    assert words == spaced.count("der") > 1
    assert 0 <= agreement <= 1 and 0 <= chance <= 1
    assert 1 <= roles <= words and 1 <= labels <= words
    # A label with a line separator does not begin another line.
    text = (folder / "test.roles.jsonl").read_text()
    assert "masculine" in text
    options["label_file"] = tmp_path / "other.jsonl"
    options["label_file"].write_text(text.replace("masculine", "\u2028"))
    other = open_run(run_dirs, "role_interaction_softmax_tiny", **options)
    found = [list(of_text.values()) for of_text in other.labels_of_words]
    assert found == [
        [label.replace("masculine", "\u2028") for label in of_text.values()]
        for of_text in run.labels_of_words
    ]
    short = tmp_path / "short.jsonl"
    short.write_text("[]\n")
    with pytest.raises(UserError, match="must have a line for each of the 30"):
        open_run(run_dirs, "role_interaction_softmax_tiny", label_file=short)
    for line in (b"7", b"[{}]", b"[" * 5000, b"\xff"):
        short.write_bytes((line + b"\n") * 30)
        with pytest.raises(UserError, match="short.jsonl: not a file of labe"):
            open_run(
                run_dirs, "role_interaction_softmax_tiny", label_file=short
            )


def test_sentences_are_spread_over_the_test_set(run_dirs, tmp_path):
    run = open_run(run_dirs, "dense_nmt_1_tiny", num_sentences=4)
    assert run.rows == [0, 9, 19, 29]
    sources, references = run.data.texts("test")
    assert run.sources == [sources[row] for row in run.rows]
    assert run.references == [references[row] for row in run.rows]
    assert len(open_run(run_dirs, "dense_nmt_1_tiny", num_sentences=99).rows)
    files = {}
    for side in ("source", "target"):
        files[f"{side}_file"] = tmp_path / side
        files[f"{side}_file"].write_text("der Hund\n")
    run = open_run(run_dirs, "dense_nmt_1_tiny", **files)
    assert (run.rows, run.sources) == ([0], ["der Hund"])


def test_sentences_that_are_all_too_long_are_refused(run_dirs, tmp_path):
    text = tmp_path / "text"
    text.write_text(f"{'der Hund ' * 999}\n" * 2)
    files = {"source_file": text, "target_file": text}
    limit = Translator.load(run_dirs["dense_nmt_1_tiny"]).max_source_length
    message = f"at most {limit - 1} tokens.*Received: 2 sentences, all of them"
    with pytest.raises(UserError, match=message):
        open_run(run_dirs, "dense_nmt_1_tiny", **files)


def test_what_a_model_lacks_is_refused(run_dirs):
    run = open_run(run_dirs, "dense_nmt_1_tiny")
    with pytest.raises(UserError, match="lacks hybrid self-attention"):
        analyze(run, ["branches"])
    with pytest.raises(UserError, match="unknown analysis: gates. Known are"):
        analyze(run, ["lens", "gates"])


def test_the_command_line_knows_all_analyses():
    assert tuple(ANALYSES) == NAMES


def test_curves_of_runs_are_their_logs(run_dirs):
    names = [
        run_dirs[preset]
        for preset in ("dense_nmt_1_tiny", "role_interaction_softmax_tiny")
    ]
    named = training_figures({"one": names[0], "other": names[1]})
    assert list(named[0].series) == ["one", "other"]
    figures = {figure.name: figure for figure in training_figures(names)}
    curve = figures["validation_loss"].series
    assert list(curve) == [str(name) for name in names]
    for updates, losses in curve.values():
        assert updates == [1, 2] and min(losses) > 0
    table = figures["updates_to_loss"]
    best = {name: min(losses) for name, (_, losses) in curve.items()}
    worst = max(best.values())
    for name, updates, loss in table.rows:
        assert loss == f"{best[name]:.3f}"
        reached = [
            step
            for step, value in zip(*curve[name], strict=True)
            if value <= worst
        ]
        assert updates == str(int(reached[0]))
