"""Runs JoeyNMT in its own process, and reads its speed from its log."""

import re
import statistics
import subprocess
import time

# JoeyNMT logs its speed at regular intervals; the first lines are warm-up.
WARM_UP_LINES = 1
LINES = 2


def joeynmt_configuration(
    folder, sizes, *, batch_tokens, updates, learning_rate, smoothing, seed
):
    """Returns JoeyNMT's configuration for a model of the same dimensions.

    `folder` holds the subwords of both sides and their vocabulary, `sizes` the
    arguments of our `Transformer`. `batch_tokens` counts the padded tokens of
    the longer side of a batch, `updates` the measured updates.
    """
    side = {
        "level": "word",
        "lowercase": False,
        "max_length": 1_000,
        "voc_file": str(folder / "vocabulary.txt"),
    }
    stack = {
        "type": "transformer",
        "num_heads": sizes["num_heads"],
        "embeddings": {"embedding_dim": sizes["hidden_dim"], "scale": True},
        "hidden_size": sizes["hidden_dim"],
        "ff_size": sizes["intermediate_dim"],
        "dropout": sizes["dropout"],
        "layer_norm": "post",
    }
    updates_per_line = updates // LINES
    return {
        "name": "tiny",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder / "joeynmt"),
        "use_cuda": False,
        "random_seed": seed,
        "data": {
            "train": str(folder / "train"),
            "dev": str(folder / "dev"),
            "dataset_type": "plain",
            **{
                name: {**side, "lang": language}
                for name, language in zip(
                    ("src", "trg"), ("en", "de"), strict=True
                )
            },
        },
        "testing": {},
        "training": {
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "learning_rate": learning_rate,
            "learning_rate_min": 0.0,
            # JoeyNMT's plateau schedule fails with this version of PyTorch.
            "scheduling": "warmupinversesquareroot",
            "learning_rate_warmup": 2_000,
            "normalization": "tokens",
            "label_smoothing": smoothing,
            "batch_size": batch_tokens,
            "batch_type": "token",
            "epochs": 1_000,
            "updates": updates_per_line * (WARM_UP_LINES + LINES) + 1,
            "logging_freq": updates_per_line,
            "validation_freq": updates_per_line * 1_000_000,
            "overwrite": True,
        },
        "model": {
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": {**stack, "num_layers": sizes["num_encoder_layers"]},
            "decoder": {**stack, "num_layers": sizes["num_decoder_layers"]},
        },
    }


def train_joeynmt(python, file, updates):
    """Trains with JoeyNMT once, and stops it after the measured updates.

    `python` is the interpreter that JoeyNMT is installed for, `file` the
    configuration. Returns the target tokens per second, the approximate target
    tokens per update, and the number of parameters. Raises a `RuntimeError`
    with JoeyNMT's output if it ends early.
    """
    process = subprocess.Popen(
        [python, "-m", "joeynmt", "train", file, "--skip-test"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    log, speeds, times, parameters = [], [], [], None
    try:
        for line in process.stdout:
            log.append(line)
            if match := re.search(r"Total params: ([\d,]+)", line):
                parameters = int(match[1].replace(",", ""))
            if match := re.search(r"Tokens per Sec:\s*(\d+)", line):
                speeds.append(float(match[1]))
                times.append(time.perf_counter())
            if len(speeds) == WARM_UP_LINES + LINES:
                break
        else:
            raise RuntimeError("".join(log)[-4_000:])
    finally:
        process.kill()
        process.communicate()
    # All lines cover the same number of updates, but not of seconds.
    speed = statistics.harmonic_mean(speeds[WARM_UP_LINES:])
    seconds = times[-1] - times[WARM_UP_LINES - 1]
    return speed, speed * seconds / updates, parameters
