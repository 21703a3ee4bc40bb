"""JoeyNMT in a process of its own: its configuration and its speed."""

import re
import statistics
import subprocess
import time

# Its lines on its own speed that come too early to be counted.
EARLY_LINES = 1
LINES = 2


def joeynmt_configuration(
    folder, sizes, *, batch_tokens, updates, learning_rate, smoothing, seed
):
    """Gives the same dimensions in JoeyNMT's words.

    Args:
        folder: where the subwords of both sides and their vocabulary are.
        sizes: dict of our `Transformer`'s arguments.
        batch_tokens: padded tokens of the longer side of a batch.
        updates: how many are counted.
        learning_rate: peak of Adam's rate.
        smoothing: label smoothing.
        seed: JoeyNMT's seed.

    Returns:
        Dict of the configuration.
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
    every = updates // LINES
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
            # Its plateau schedule does not start with this PyTorch.
            "scheduling": "warmupinversesquareroot",
            "learning_rate_warmup": 2_000,
            "normalization": "tokens",
            "label_smoothing": smoothing,
            "batch_size": batch_tokens,
            "batch_type": "token",
            "epochs": 1_000,
            "updates": every * (EARLY_LINES + LINES) + 1,
            "logging_freq": every,
            "validation_freq": every * 1_000_000,
            "overwrite": True,
        },
        "model": {
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": {**stack, "num_layers": sizes["num_encoder_layers"]},
            "decoder": {**stack, "num_layers": sizes["num_decoder_layers"]},
        },
    }


def joeynmt_round(python, file, updates):
    """Trains once.

    Args:
        python: the Python that JoeyNMT is installed for.
        file: its configuration.
        updates: how many are counted.

    Returns:
        Tuple of the target tokens a second, about how many an update has, and
        the number of parameters.

    Raises:
        RuntimeError: if it stops by itself, with what it said.
    """
    process = subprocess.Popen(
        [python, "-m", "joeynmt", "train", file, "--skip-test"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said, speeds, times, parameters = [], [], [], None
    try:
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"Total params: ([\d,]+)", line):
                parameters = int(found[1].replace(",", ""))
            if found := re.search(r"Tokens per Sec:\s*(\d+)", line):
                speeds.append(float(found[1]))
                times.append(time.perf_counter())
            if len(speeds) == EARLY_LINES + LINES:
                break
        else:
            raise RuntimeError("".join(said)[-4_000:])
    finally:
        process.kill()
        process.communicate()
    # Each line is of as many updates, not of as many seconds.
    speed = statistics.harmonic_mean(speeds[EARLY_LINES:])
    seconds = times[-1] - times[EARLY_LINES - 1]
    return speed, speed * seconds / updates, parameters
