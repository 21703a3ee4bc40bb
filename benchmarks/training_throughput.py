"""Target tokens per second of our training step against PyTorch's.

    python benchmarks/training_throughput.py

Two worker processes, one with our `Transformer` under XLA, one with
`torch.nn.Transformer` of the same dimensions (embeddings, positions, tied
output matrix, dropout, label smoothing and Adam included), take turns on the
same random batch: keras, torch, keras, torch, ... A round of our step and a
matrix product under XLA, also in turns, gives the fraction of the peak that
the step's matrix products reach. Warm-up steps are not counted. Medians and
ranges go to `results/training_throughput.csv`, one row a configuration.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

from results_table import append_row, git_commit

CONFIGURATIONS = {
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
DROPOUT = 0.1
PEAK_SIZE = 2048


def step_flops(c):
    """Counts the floating-point operations of a step's matrix products.

    Two per multiply-add; the backward pass costs twice the forward. Per layer:
    projections and feed-forward of both stacks, and the two products of each
    of the three attentions; then the output matrix.
    """
    width, inner, length = c["hidden_dim"], c["intermediate_dim"], c["length"]
    encoder = 4 * width**2 + 2 * width * inner
    decoder = 8 * width**2 + 2 * width * inner
    attention = 3 * 2 * length * width
    per_token = c["num_layers"] * (encoder + decoder + attention)
    per_token += width * c["vocabulary_size"]
    return 3 * 2 * per_token * c["batch_size"] * length


def random_batch(c):
    """Draws source ids, target ids and labels without padding."""
    import numpy as np

    random = np.random.default_rng(0)
    shape = (3, c["batch_size"], c["length"])
    return random.integers(4, c["vocabulary_size"], shape).astype("int32")


def keras_steps(c):
    """Makes the functions that run our step, and a product under XLA."""
    import keras
    import tensorflow as tf

    from keras_deepnmt.models import Transformer

    model = Transformer(
        c["vocabulary_size"],
        c["vocabulary_size"],
        c["hidden_dim"],
        c["intermediate_dim"],
        c["num_heads"],
        c["num_layers"],
        c["num_layers"],
        share_embeddings=True,
        dropout=DROPOUT,
    )
    model.compile(keras.optimizers.Adam(1e-4))
    source, target, labels = map(tf.constant, random_batch(c))
    data = ({"source_ids": source, "target_ids": target}, labels)
    train_step = tf.function(model.train_step, autograph=False)
    matrix = tf.random.normal((PEAK_SIZE, PEAK_SIZE))
    product = tf.function(lambda a: a @ a, jit_compile=True, autograph=False)
    return {
        "step": lambda: float(train_step(data)["loss"]),
        "product": lambda: float(product(matrix)[0, 0]),
    }


def torch_steps(c):
    """Makes the function that runs the same step in PyTorch."""
    import torch

    torch.set_num_threads(os.cpu_count())

    class Translator(torch.nn.Module):
        def __init__(self):
            super().__init__()
            width = c["hidden_dim"]
            self.embedding = torch.nn.Embedding(c["vocabulary_size"], width)
            torch.nn.init.normal_(self.embedding.weight, std=width**-0.5)
            self.register_buffer(
                "positions", torch.randn(1, c["length"], width)
            )
            self.dropout = torch.nn.Dropout(DROPOUT)
            self.transformer = torch.nn.Transformer(
                width,
                c["num_heads"],
                c["num_layers"],
                c["num_layers"],
                c["intermediate_dim"],
                DROPOUT,
                batch_first=True,
            )

        def embed(self, ids):
            x = self.embedding(ids) * c["hidden_dim"] ** 0.5
            return self.dropout(x + self.positions)

        def forward(self, source, target):
            mask = torch.nn.Transformer.generate_square_subsequent_mask(
                c["length"]
            )
            states = self.transformer(
                self.embed(source),
                self.embed(target),
                tgt_mask=mask,
                tgt_is_causal=True,
            )
            return states @ self.embedding.weight.T

    model = Translator()
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    source, target, labels = torch.tensor(random_batch(c)).long()

    def step():
        optimizer.zero_grad()
        scores = model(source, target)
        loss = criterion(scores.flatten(0, 1), labels.flatten())
        loss.backward()
        optimizer.step()
        return float(loss)

    return {"step": step}


def work(side, configuration):
    """Answers each name of a function on standard input with its seconds."""
    steps = {"keras": keras_steps, "torch": torch_steps}[side](configuration)
    for line in sys.stdin:
        start = time.perf_counter()
        steps[line.strip()]()
        print(time.perf_counter() - start, flush=True)


def machine():
    """Names the processor: its family decides how wide its arithmetic is."""
    names = ("model name", "cpu family", "model")
    found = {}
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        name, _, value = line.partition(":")
        found.setdefault(name.strip(), value.strip())
    words = [f"{name} {found[name]}" for name in names if name in found]
    return ", ".join([platform.machine(), *words, f"{os.cpu_count()} cores"])


class Worker:
    """A process that runs one side's functions when asked to."""

    def __init__(self, side, name):
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", side, "--only", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )

    def seconds(self, function):
        """Runs one function once."""
        self.process.stdin.write(function + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        """Ends the process."""
        self.process.stdin.close()
        self.process.wait()


def measure(name, rounds):
    """Measures one configuration; gives its row."""
    c = CONFIGURATIONS[name]
    keras, torch = Worker("keras", name), Worker("torch", name)
    for _ in range(2):  # the first one compiles
        keras.seconds("step")
        keras.seconds("product")
        torch.seconds("step")
    times = {"keras": [], "torch": [], "product": []}
    for _ in range(rounds):
        times["product"].append(min(keras.seconds("product") for _ in range(5)))
        times["keras"].append(keras.seconds("step"))
        times["torch"].append(torch.seconds("step"))
    keras.close()
    torch.close()
    return _row(name, c, times, rounds)


def _row(name, c, times, rounds):
    from importlib.metadata import version

    tokens = c["batch_size"] * c["length"]
    flops = step_flops(c)
    ratios = [
        t / k for t, k in zip(times["torch"], times["keras"], strict=True)
    ]
    peaks = [2 * PEAK_SIZE**3 / t for t in times["product"]]
    shares = [flops / k / p for k, p in zip(times["keras"], peaks, strict=True)]
    return {
        "date": datetime.date.today().isoformat(),
        "commit": git_commit(),
        "machine": machine(),
        "python": platform.python_version(),
        "tensorflow": version("tensorflow"),
        "keras": version("keras"),
        "torch": version("torch"),
        "dtype": "float32",
        "model": name,
        **{key: value for key, value in c.items()},
        "rounds": rounds,
        "keras_tokens_per_second": round(
            tokens / statistics.median(times["keras"])
        ),
        "torch_tokens_per_second": round(
            tokens / statistics.median(times["torch"])
        ),
        "ratio_median": round(statistics.median(ratios), 3),
        "ratio_min": round(min(ratios), 3),
        "ratio_max": round(max(ratios), 3),
        "peak_gflops_median": round(statistics.median(peaks) / 1e9, 1),
        "peak_fraction_median": round(statistics.median(shares), 3),
        "peak_fraction_min": round(min(shares), 3),
        "peak_fraction_max": round(max(shares), 3),
    }


def main():
    """Measures every configuration, or does a worker's job."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=CONFIGURATIONS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--worker", choices=("keras", "torch"))
    options = parser.parse_args()
    if options.worker:
        work(options.worker, CONFIGURATIONS[options.only])
        return
    names = [options.only] if options.only else list(CONFIGURATIONS)
    for name in names:
        row = measure(name, options.rounds)
        append_row(
            Path(__file__).parent / "results" / "training_throughput.csv", row
        )
        print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()
