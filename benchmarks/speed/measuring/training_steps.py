"""The training steps that `training_throughput.py` and others time."""

import os

CONFIGURATIONS = {
    # The preset `transformer_tiny` with the shapes of Multi30k.
    "4+4x128": dict(
        hidden_dim=128,
        intermediate_dim=256,
        num_heads=4,
        num_layers=4,
        vocabulary_size=5_000,
        batch_size=256,
        length=17,
    ),
    "3+3x256": dict(
        hidden_dim=256,
        intermediate_dim=1024,
        num_heads=4,
        num_layers=3,
        vocabulary_size=10_000,
        batch_size=128,
        length=32,
    ),
    "6+6x512": dict(
        hidden_dim=512,
        intermediate_dim=2048,
        num_heads=8,
        num_layers=6,
        vocabulary_size=32_000,
        batch_size=128,
        length=32,
    ),
}
# Ways of running our training step; the global batch is the same for all.
VARIANTS = {
    "plain": dict(),
    "1 replica": dict(replicas=1),
    "2 replicas": dict(replicas=2),
    "2 parts": dict(parts=2),
    "bfloat16": dict(dtype="mixed_bfloat16"),
}
# Presets that alternate; the others are compared with the first.
PRESET_CONFIGURATIONS = {
    f"conv_{size}": dict(
        hidden_dim=hidden_dim,
        num_layers=num_layers,
        vocabulary_size=10_000,
        batch_size=64,
        length=32,
        presets=[
            f"{variant}_{size}"
            for variant in ("conv_seq2seq", "dense_nmt_1", "dense_nmt_2")
        ],
    )
    for size, hidden_dim, num_layers in (("4l", 256, 4), ("8l", 192, 8))
}
GROUPS = {"conv": list(PRESET_CONFIGURATIONS)}
DROPOUT = 0.1
SEED = 0
PEAK_SIZE = 2048


def random_batch(sizes):
    """Draws source ids, target ids and labels without padding."""
    import numpy as np

    random = np.random.default_rng(SEED)
    shape = (3, sizes["batch_size"], sizes["length"])
    return random.integers(4, sizes["vocabulary_size"], shape).astype("int32")


def keras_steps(sizes, replicas=0, parts=1, dtype="float32", jit_compile=True):
    """Returns functions that run our training step and a matrix product.

    The step is what `fit` calls for a batch. `replicas` is the number of
    logical devices of a mirrored strategy (0: no strategy), `parts` the number
    of parts of a batch whose gradients are accumulated, and `dtype` the policy
    of the layers.
    """
    import contextlib

    import keras
    import tensorflow as tf

    from keras_deepnmt.training.strategies import make_strategy

    strategy = make_strategy("mirrored", replicas) if replicas else None
    with strategy.scope() if strategy else contextlib.nullcontext():
        model = make_transformer(sizes, dtype)
        model.compile(
            keras.optimizers.Adam(1e-4),
            jit_compile=jit_compile,
            gradient_accumulation_steps=parts,
        )
    source, target, labels = map(tf.constant, random_batch(sizes))
    data = ({"source_ids": source, "target_ids": target}, labels)
    if strategy:
        step = _replica_step(model, strategy, data, sizes["batch_size"])
    else:
        batches = iter(tf.data.Dataset.from_tensors(data).repeat())
        model.make_train_function()

        def step():
            return float(model.train_function(batches)["loss"])

    compute_dtype = keras.dtype_policies.get(dtype).compute_dtype
    return {"step": step, "product": matrix_product(compute_dtype)}


def make_transformer(sizes, dtype="float32"):
    """Makes our Transformer of a configuration, not compiled."""
    from keras_deepnmt.models import Transformer

    return Transformer(
        sizes["vocabulary_size"],
        sizes["vocabulary_size"],
        sizes["hidden_dim"],
        sizes["intermediate_dim"],
        sizes["num_heads"],
        sizes["num_layers"],
        sizes["num_layers"],
        share_embeddings=True,
        dropout=DROPOUT,
        dtype=dtype,
    )


def matrix_product(dtype="float32"):
    """Returns a function that computes one large matrix product under XLA."""
    import tensorflow as tf

    matrix = tf.cast(tf.random.normal((PEAK_SIZE, PEAK_SIZE)), dtype)
    product = tf.function(lambda a: a @ a, jit_compile=True, autograph=False)
    return lambda: float(product(matrix)[0, 0])


def preset_steps(sizes, name):
    """Returns a function that runs a convolutional preset's training step."""
    import tensorflow as tf

    from keras_deepnmt.losses import LabelSmoothedCrossEntropy
    from keras_deepnmt.training import Nesterov
    from keras_deepnmt.zoo import create_model

    vocabulary_size = sizes["vocabulary_size"]
    model = create_model(name, vocabulary_size, vocabulary_size)
    model.compile(
        Nesterov(0.25, momentum=0.99, global_clipnorm=0.1),
        loss=LabelSmoothedCrossEntropy(0.0),
    )
    source, target, labels = map(tf.constant, random_batch(sizes))
    data = ({"source_ids": source, "target_ids": target}, labels)
    train_step = tf.function(model.train_step, autograph=False)
    return {"step": lambda: float(train_step(data)["loss"])}


def _replica_step(model, strategy, data, batch_size):
    """Returns the function that `fit` calls for a batch under a strategy."""
    from keras_deepnmt.models.training_step.tensorflow_batches import (
        array_dataset,
        pad_rows,
    )
    from keras_deepnmt.models.training_step.tensorflow_replicas import (
        function_of_batches,
    )

    dataset = pad_rows(
        array_dataset(*data, batch_size).repeat(),
        strategy.num_replicas_in_sync,
    )
    batches = iter(strategy.experimental_distribute_dataset(dataset))
    run = function_of_batches(model, model.train_step)
    model.spread_seeds()
    return lambda: float(run(batches)["loss"])


def torch_steps(sizes, dtype="float32", device="cpu", is_compiled=False):
    """Returns functions that run the same training step in PyTorch.

    With `bfloat16` forward and loss are under autocast, as PyTorch advises. If
    the step is compiled, `torch.compile` gets both of them as one function.
    The function `updates` takes a number of steps and waits for the last one.
    """
    import torch

    torch.manual_seed(SEED)
    torch.set_num_threads(os.cpu_count())

    class Translator(torch.nn.Module):
        def __init__(self):
            super().__init__()
            width = sizes["hidden_dim"]
            self.embedding = torch.nn.Embedding(sizes["vocabulary_size"], width)
            torch.nn.init.normal_(self.embedding.weight, std=width**-0.5)
            self.register_buffer(
                "positions", torch.randn(1, sizes["length"], width)
            )
            self.dropout = torch.nn.Dropout(DROPOUT)
            self.transformer = torch.nn.Transformer(
                width,
                sizes["num_heads"],
                sizes["num_layers"],
                sizes["num_layers"],
                sizes["intermediate_dim"],
                DROPOUT,
                batch_first=True,
            )

        def embed(self, ids):
            x = self.embedding(ids) * sizes["hidden_dim"] ** 0.5
            return self.dropout(x + self.positions)

        def forward(self, source, target):
            mask = torch.nn.Transformer.generate_square_subsequent_mask(
                sizes["length"], device=device
            )
            states = self.transformer(
                self.embed(source),
                self.embed(target),
                tgt_mask=mask,
                tgt_is_causal=True,
            )
            return states @ self.embedding.weight.T

    model = Translator().to(device)
    # The fused kernel is the fastest one on a GPU.
    fused = True if device == "cuda" else None
    optimizer = torch.optim.Adam(model.parameters(), 1e-4, fused=fused)
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    source, target, labels = torch.tensor(random_batch(sizes)).long().to(device)

    def loss_of(source, target, labels):
        with torch.autocast(
            device, torch.bfloat16, enabled=dtype == "bfloat16"
        ):
            scores = model(source, target)
            return criterion(scores.flatten(0, 1), labels.flatten())

    if is_compiled:
        loss_of = torch.compile(loss_of)

    def updates(count):
        for _ in range(count):
            optimizer.zero_grad()
            loss = loss_of(source, target, labels)
            loss.backward()
            optimizer.step()
        # Reading it waits for all that a GPU has been given to do.
        return float(loss.detach())

    return {"step": lambda: updates(1), "updates": updates}
