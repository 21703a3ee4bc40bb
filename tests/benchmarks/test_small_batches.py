"""What is compared is a search with and without one way, and nothing else."""

import keras
import pytest

from benchmarks.speed import small_batches
from benchmarks.tables import decoding_tables
from keras_deepnmt.models import Transformer
from keras_deepnmt.translator.batch_decoder import BatchDecoder


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    return Transformer(4_000, 4_000, 8, 16, 1, 1, 1, share_embeddings=True)


@pytest.fixture
def seen(monkeypatch):
    """Records the rows of parts, and which projections were prepared."""
    found = {"rows": [], "is_prepared": []}
    rows_of_part = BatchDecoder._rows_of_part
    repeated_projection = Transformer.repeated_projection

    def record_rows(self, num_rows):
        found["rows"].append(rows_of_part(self, num_rows))
        return found["rows"][-1]

    def record_projection(self, num_states):
        project = repeated_projection(self, num_states)
        found["is_prepared"].append(project is not None)
        return project

    monkeypatch.setattr(BatchDecoder, "_rows_of_part", record_rows)
    monkeypatch.setattr(Transformer, "repeated_projection", record_projection)
    monkeypatch.setattr(small_batches, "STEPS", 3)
    return found


@pytest.mark.parametrize(
    ("way", "rows", "is_prepared"),
    [
        ("parts", {16, 32}, {False}),
        ("prepared projection", {32}, {True, False}),
    ],
)
def test_one_way_is_compared(model, seen, monkeypatch, way, rows, is_prepared):
    decoder = "keras_deepnmt.translator.batch_decoder"
    monkeypatch.setattr(f"{decoder}.num_cores", lambda: 2)
    row = small_batches.measure(model, way, 20, rounds=1, repetitions=1)
    assert set(seen["rows"]) == rows
    assert set(seen["is_prepared"]) == is_prepared
    assert row["equal_translations"]
    assert row["ratio_median"] > 0


def test_the_table_names_the_ways(monkeypatch):
    row = {
        "date": "2026-11-25",
        "machine": "x86_64, 2 cores",
        **dict(way="parts", hidden_dim="128", weights="2361856"),
        **dict(sentences="32", ratio_median="1.853", ratio_min="1.674"),
        **dict(ratio_max="1.903", ms_with_median="79.21"),
    }
    monkeypatch.setattr(
        decoding_tables,
        "read_rows",
        lambda path: [row] if path.stem == "small_batches" else [],
    )
    text = "\n".join(decoding_tables.decoding_tables())
    line = "| a single batch divided among the cores | 128 | 2.4 | 32 | 1.85 "
    assert f"{line}| 1.67 to 1.90 | 79.2 |" in text
