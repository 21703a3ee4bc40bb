"""Every weight of a model is read at each call, not frozen into the graph."""

import numpy as np


def test_every_weight_changes_the_output(model, graph, model_entry):
    inputs, _ = model_entry.example()
    before = graph(inputs)
    random = np.random.default_rng(0)
    dead = []
    for weight in model.weights:
        if not weight.trainable or _only_in_the_loss(weight):
            continue
        value = weight.numpy()
        # Not a constant: a norm or a softmax could not see one. Where a memory
        # hardly differs from position to position, a query must move far.
        change = random.normal(size=value.shape)
        for size in (1.0, 100.0):
            weight.assign(value + size * change)
            alive = not np.allclose(graph(inputs), before, atol=1e-5)
            if alive:
                break
        if not alive:
            dead.append(weight.path)
        weight.assign(value)
    assert not dead
    np.testing.assert_array_equal(graph(inputs), before)


def test_every_weight_changes_the_steps(model, model_entry):
    inputs, _ = model_entry.example()

    def first_steps():
        memory = model.encode(inputs["source_ids"])
        cache = model.init_cache(memory, max_length=2)
        for t in range(2):
            ids = inputs["target_ids"][:, t : t + 1]
            scores, cache = model.decode(ids, memory, cache, t)
        return np.asarray(scores)

    before = first_steps()
    random = np.random.default_rng(0)
    model.set_weights(
        [
            weight + random.normal(size=weight.shape)
            for weight in model.get_weights()
        ]
    )
    assert not np.allclose(first_steps(), before)


def _only_in_the_loss(weight):
    # A diversity layer acts on training alone.
    return "layer_diversity" in weight.path
