"""Neither padding, nor batch mates, nor the future change a real output."""

import numpy as np


def test_padding_changes_nothing(graph, model_entry):
    inputs, labels = model_entry.example()
    real = labels != 0
    wider = {
        "source_ids": np.pad(inputs["source_ids"], ((0, 0), (0, 6))),
        "target_ids": np.pad(inputs["target_ids"], ((0, 0), (0, 4))),
    }
    padded = graph(wider)[:, : labels.shape[1]]
    np.testing.assert_allclose(padded[real], graph(inputs)[real], atol=1e-5)


def test_batch_mates_change_nothing(graph, model_entry):
    inputs, labels = model_entry.example()
    together = graph(inputs)
    for row in range(len(labels)):
        num_source = np.count_nonzero(inputs["source_ids"][row])
        num_target = np.count_nonzero(labels[row])
        alone = graph(
            {
                "source_ids": inputs["source_ids"][row : row + 1, :num_source],
                "target_ids": inputs["target_ids"][row : row + 1, :num_target],
            }
        )
        np.testing.assert_allclose(
            alone[0], together[row, :num_target], atol=1e-5
        )


def test_rows_of_padding_change_nothing_and_stay_finite(graph, model_entry):
    inputs, _ = model_entry.example()
    more = {name: np.pad(ids, ((0, 3), (0, 0))) for name, ids in inputs.items()}
    scores = graph(more)
    assert np.all(np.isfinite(scores))
    np.testing.assert_allclose(scores[:-3], graph(inputs), atol=1e-5)


def test_the_future_cannot_be_seen(graph, model_entry):
    inputs, _ = model_entry.example()
    before = graph(inputs)
    target_ids = inputs["target_ids"]
    for t in range(1, target_ids.shape[1]):
        changed = target_ids.copy()
        changed[:, t:] = np.where(target_ids[:, t:] == 5, 6, 5)
        after = graph({**inputs, "target_ids": changed})
        np.testing.assert_allclose(after[:, :t], before[:, :t], atol=1e-5)
        assert not np.allclose(after[:, t:], before[:, t:])
