"""Which settings a model gets, and what it is compared with."""

import pytest

from benchmarks.quality import tuned_models
from benchmarks.quality.tuned_models import SETTINGS, chosen_setting
from benchmarks.shared.result_rows import append_rows
from benchmarks.tables import claims_tables, tuned_tables
from keras_deepnmt import list_models
from keras_deepnmt.recipes import load_recipe
from keras_deepnmt.zoo.matched import count_role_parameters
from keras_deepnmt.zoo.matched_baseline import count_parameters


def row(model, setting, loss, seed=1, bleu=40.0, updates=3000):
    peak, dropout = setting
    return {
        "date": "2031-05-07",
        "machine": "p, 2 cores",
        "corpus": "tatoeba",
        "train_pairs": "164792",
        "test_pairs": "2000",
        "model": model,
        "preset": tuned_models.MODELS[model],
        "parameters": "5000000",
        "seed": str(seed),
        "updates": str(updates),
        "peak_rate": str(peak),
        "dropout": str(dropout),
        "valid_loss": str(loss),
        "test_bleu": str(bleu),
        "bleu_signature": "nrefs:1",
    }


FIRST, SECOND, THIRD = SETTINGS["tatoeba"]
PLAIN = [
    row("plain", FIRST, 2.0, bleu=41.0),
    row("plain", SECOND, 1.9, bleu=40.0),
    row("plain", THIRD, 2.1, bleu=42.0),
    row("plain", SECOND, 1.9, seed=2, bleu=40.5),
]
HARD = [
    row("SurfaceFusion, hard", FIRST, 1.8, bleu=41.0),
    row("SurfaceFusion, hard", SECOND, 1.9, bleu=45.0),
    row("SurfaceFusion, hard", THIRD, 2.1, bleu=39.0),
    row("SurfaceFusion, hard", FIRST, 1.8, seed=2, bleu=41.4),
]


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.setattr(tuned_tables, "RESULTS", tmp_path)

    def write(rows):
        append_rows(tmp_path / "tuned_models.csv", rows)

    return write


def test_the_lowest_validation_loss_chooses_and_the_test_set_does_not():
    assert chosen_setting(PLAIN, "tatoeba", "plain", 3000) == SECOND
    some = HARD + PLAIN
    hard = chosen_setting(some, "tatoeba", "SurfaceFusion, hard", 3000)
    assert hard == FIRST


@pytest.mark.parametrize(
    "rows, corpus, updates",
    [
        (PLAIN[1:], "tatoeba", 3000),  # a setting is missing
        (PLAIN, "tatoeba", 1000),
        (PLAIN, "iwslt14", 3000),
        # Of two seeds together: their losses cannot be compared.
        ([*PLAIN[:2], row("plain", THIRD, 1.0, seed=2)], "tatoeba", 3000),
    ],
)
def test_nothing_is_chosen_before_one_seed_has_all_settings(
    rows, corpus, updates
):
    assert chosen_setting(rows, corpus, "plain", updates) is None


def test_models_are_compared_with_the_same_seeds_and_their_own_settings(
    written,
):
    written(PLAIN + HARD + [row("ConvS2S", FIRST, 1.0)])
    chosen = tuned_tables.chosen_rows("tatoeba")
    assert set(chosen) == {"plain", "SurfaceFusion, hard"}
    found = tuned_tables.differences(
        chosen["SurfaceFusion, hard"], chosen["plain"]
    )
    assert found == pytest.approx([41.0 - 40.0, 41.4 - 40.5])
    *_, table, note = tuned_tables.tuned_tables()
    hard = table.splitlines()[-1].strip("| ").split(" | ")
    assert hard[2:6] == ["0.003", "0.1", "1.800, 1.900, 2.100", "1, 2"]
    # Student's interval of 1.0 and 0.9.
    assert hard[-1] == "+0.95 ± 0.64"
    assert "164,792 training pairs, 3,000 updates" in note


def test_a_chosen_model_is_a_finding_among_the_claims(written):
    written(PLAIN + HARD)
    table, _ = claims_tables.claims_table()
    lines = [x for x in table.splitlines() if "own settings" in x]
    assert len(lines) == 1
    assert "SurfaceFusion, hard: test BLEU | WMT16 Ro-En" in lines[0]
    assert "| +0.95 ± 0.64 | 2 | shown |" in lines[0]


def test_the_models_are_presets_and_the_matched_one_is_as_large():
    assert set(tuned_models.MODELS.values()) <= set(list_models())
    sizes = [load_recipe(tuned_models.RECIPE).data.vocabulary_size] * 2
    plain = {**tuned_models.SIZE, "share_embeddings": True}
    roles = sum(count_role_parameters(256, 32, n) for n in (1, 2))
    wider = plain | tuned_models._matched_dimensions()
    assert count_parameters(*sizes, **wider) == pytest.approx(
        count_parameters(*sizes, **plain) + roles, rel=0.01
    )
