"""Training in bfloat16 on a GPU with JAX, compared with PyTorch.

    python benchmarks/speed/training_gpu.py
    python benchmarks/speed/training_gpu.py --only base --xla-flags=
    python benchmarks/speed/training_gpu.py --only tiny --rounds 2

Needs Keras with JAX, and PyTorch, both of which see the GPU; not TensorFlow.
Worker processes alternate on the same random batch, one for each way of making
an update of a Transformer of the same dimensions:

- `bfloat16`: our compiled step as `fit` calls it on Keras' JAX backend, with
  `dtype="mixed_bfloat16"`;
- `torch bfloat16`: `torch.nn.Transformer` under autocast; forward pass and loss
  are compiled by `torch.compile`, and Adam is the fused one;
- `float32`: our step in float32, with JAX's default precision of products.

Each time is that of `--updates` updates in a row, divided by their number, as
both frameworks prepare the next update while the GPU makes one. Warm-up is
excluded; `first_seconds` is the first update, with its compilation, while the
other processes compile theirs. One more process times a large product in
bfloat16 in each round: its speed is the peak, of which the step's matrix
products reach a fraction. Memory is the most that the framework had allocated
on the device.

The script needs at most `--seconds`. Rows are appended to
`results/training_gpu.csv` after each configuration; a way that does not answer
in time, or fails, is left out, and the script says so. Without a GPU it runs on
the processor, for trials, and writes a file only if `--output` names one.
"""

import argparse
import contextlib
import json
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import (
    append_rows,
    provenance,
    range_columns,
)
from benchmarks.shared.step_flops import step_flops
from benchmarks.shared.worker_process import WorkerProcess, answer_questions
from benchmarks.speed.measuring.jax_steps import jax_steps, product_speed
from benchmarks.speed.measuring.training_steps import (
    CONFIGURATIONS,
    SEED,
    torch_steps,
)

TRIAL = "tiny"  # to try the script on a processor
_BATCH = dict(batch_size=256, length=32)
SIZES = {
    "base": CONFIGURATIONS["6+6x512"] | _BATCH,
    "big": CONFIGURATIONS["6+6x512"]
    | dict(hidden_dim=1024, intermediate_dim=4096, num_heads=16)
    | _BATCH,
    TRIAL: CONFIGURATIONS["4+4x128"]
    | dict(num_layers=1, vocabulary_size=1_000, batch_size=16, length=8),
}
BFLOAT16, TORCH, FLOAT32 = WAYS = ("bfloat16", "torch bfloat16", "float32")
CARD = "card"  # the process that names the device and times products
# To choose kernels by trying them takes longer than there is time for.
SHORT_COMPILATION = (
    "--xla_gpu_enable_triton_gemm=false --xla_gpu_autotune_level=0"
)
PRODUCT_SIZES = {"cuda": 8192, "cpu": 1024}
COMPILE_SHARE = 0.75  # of a configuration's time; the rest is for rounds
LEAST_RATIO = 1.2  # target: our tokens/s over PyTorch's, both in bfloat16
RESULTS = Path(__file__).parent / "results" / "training_gpu.csv"


def run_worker(way, sizes, device, is_compiled):
    """Answers `["updates", count]` with seconds, `["memory"]` with MiB."""
    if way == TORCH:
        functions = torch_steps(sizes, "bfloat16", device, is_compiled)
        memory = _torch_memory
    else:
        dtype = "mixed_bfloat16" if way == BFLOAT16 else way
        functions = jax_steps(sizes, dtype)
        memory = _jax_memory

    def seconds(count):
        start = time.perf_counter()
        functions["updates"](count)
        return time.perf_counter() - start

    answer_questions({"updates": seconds, "memory": memory})


def run_card():
    """Answers `["devices"]` and `["product"]`.

    Devices are the kind and the name that JAX and PyTorch see, products are
    operations per second.
    """
    import jax
    import torch

    device = jax.devices()[0]
    kind = "cuda" if device.platform == "gpu" else device.platform
    devices = {
        "jax": (kind, device.device_kind),
        "torch": (
            ("cuda", torch.cuda.get_device_name())
            if torch.cuda.is_available()
            else ("cpu", "")
        ),
    }
    speed = product_speed(PRODUCT_SIZES[kind])
    answer_questions({"devices": lambda: devices, "product": speed})


def _jax_memory():
    import jax

    # There are no statistics of a processor.
    memory = jax.devices()[0].memory_stats() or {}
    return memory.get("peak_bytes_in_use", 0) / 2**20


def _torch_memory():
    import torch

    if not torch.cuda.is_available():
        return 0
    return torch.cuda.max_memory_allocated() / 2**20


def find_device(card, end):
    """Returns kind and name of the device that both frameworks see."""
    card.ask("devices")
    devices = card.answer(end - time.monotonic())
    kind, name = devices["jax"]
    if kind != devices["torch"][0]:
        sys.exit(
            "JAX and PyTorch must see the same device: install both with "
            f"support for the GPU, or hide it from both. Received: {devices}."
        )
    return kind, name


def measure(start_worker, card, options, end):
    """Measures the ways of one configuration in turns, until `end` at most.

    `start_worker` starts the process of a way. Returns, by way, the seconds of
    an update in each round, those of the first one, and MiB; and the speed of
    products in each round.
    """
    times, first, memory, peaks = {}, {}, {}, []
    with contextlib.ExitStack() as stack:
        workers = {
            way: stack.enter_context(start_worker(way)) for way in options.ways
        }
        now = time.monotonic()
        for worker in workers.values():
            worker.ask("updates", 1)
        for way in options.ways:
            compiled = now + COMPILE_SHARE * (end - now)
            first[way] = _answer(workers, way, compiled)
        for done in range(1 + options.rounds):
            if not workers:
                break
            if time.monotonic() > end:
                print(f"No time for more than {len(peaks)} rounds.")
                break
            if done:  # The first time is a warm-up.
                peaks.append(card("product"))
            for way in list(workers):
                workers[way].ask("updates", options.updates)
                seconds = _answer(workers, way, end)
                if done and seconds:
                    times.setdefault(way, []).append(seconds / options.updates)
        for way in list(workers):
            workers[way].ask("memory")
            memory[way] = _answer(workers, way, time.monotonic() + 10)
    return times, first, memory, peaks


def _answer(workers, way, end):
    """Returns a worker's answer; without one, `None`, and it is left out."""
    try:
        return workers[way].answer(end - time.monotonic())
    except (RuntimeError, TimeoutError) as error:
        print(f"{way} is left out from here on: {error}", flush=True)
        workers.pop(way).kill()


def make_rows(sizes, measured, common, flags):
    """Makes a row for each way that has been measured.

    `measured` is what `measure` returns, `common` the first columns of all
    rows, and `flags` has those of each way.
    """
    times, first, memory, peaks = measured
    tokens = sizes["batch_size"] * sizes["length"]
    flops = step_flops(sizes)
    rows = []
    for way, seconds in times.items():
        torch = times.get(TORCH, [])
        ratios = [t / s for t, s in zip(torch, seconds, strict=False)]
        fractions = [
            flops / s / peak for s, peak in zip(seconds, peaks, strict=False)
        ]
        has_target = way == BFLOAT16 and common["model"] != TRIAL and ratios
        reached = has_target and statistics.median(ratios) >= LEAST_RATIO
        rows.append(
            {
                **common,
                **sizes,
                "way": way,
                "flags": flags[way],
                "rounds": len(seconds),
                "seed": SEED,
                "first_seconds": round(first[way], 1),
                **range_columns("milliseconds", [1e3 * s for s in seconds]),
                "tokens_per_second": round(tokens / statistics.median(seconds)),
                **range_columns("speed_to_torch", ratios),
                "peak_tflops": round(statistics.median(peaks) / 1e12, 3),
                **range_columns("peak_fraction", fractions),
                "memory_mib": round(memory[way]) if memory.get(way) else "",
                "target": f"speed to torch >= {LEAST_RATIO}"
                if has_target
                else "",
                "met": reached if has_target else "",
            }
        )
    return rows


def main():
    """Measures the configurations, or runs as a worker process."""
    options = _read_options()
    if options.worker == CARD:
        run_card()
        return
    if options.worker:
        sizes = _sizes(options.only, options.batch)
        run_worker(options.worker, sizes, options.device, options.compile_torch)
        return
    end = time.monotonic() + options.seconds
    # Read first: should it fail, nothing measured is lost.
    origin = provenance("jax", "keras", "torch")
    script = Path(__file__).resolve()
    # Several processes share the device's memory.
    variables = {
        "KERAS_BACKEND": "jax",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
    names = [options.only] if options.only else ["base", "big"]
    with WorkerProcess(script, "--worker", CARD, **variables) as card:
        kind, device = find_device(card, end)
        output = options.output or (RESULTS if kind == "cuda" else None)
        xla_flags = options.xla_flags
        if xla_flags is None:
            default = SHORT_COMPILATION if kind == "cuda" else ""
            xla_flags = os.environ.get("XLA_FLAGS", default)
        torch_flags = "torch.compile" if options.compile_torch else ""
        flags = {way: xla_flags for way in WAYS} | {TORCH: torch_flags}
        print(f"Measuring on {device} ({kind}).", flush=True)
        for number, name in enumerate(names):
            left = end - time.monotonic()
            if left <= 0:
                print(f"{name} is left out: no time.")
                continue
            arguments = ["--only", name, "--device", kind]
            if options.batch:
                arguments += ["--batch", *options.batch]
            if not options.compile_torch:
                arguments += ["--no-compile-torch"]

            def start_worker(way, arguments=arguments):
                return WorkerProcess(
                    *(script, *arguments, "--worker", way),
                    **(variables | {"XLA_FLAGS": xla_flags}),
                )

            print(f"{name}: {left:.0f} s are left.", flush=True)
            share = left / (len(names) - number)
            measured = measure(
                start_worker, card, options, time.monotonic() + share
            )
            common = origin | {"device": device, "model": name}
            common |= {"updates": options.updates}
            sizes = _sizes(name, options.batch)
            rows = make_rows(sizes, measured, common, flags)
            if rows and output:
                append_rows(output, rows)
            print(json.dumps(rows, indent=2), flush=True)


def _sizes(name, batch):
    rows_and_length = zip(("batch_size", "length"), batch or (), strict=False)
    return SIZES[name] | dict(rows_and_length)


def _read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", choices=SIZES, help="one configuration; tiny: for trials"
    )
    parser.add_argument(
        "--ways", nargs="+", choices=WAYS, default=WAYS, help="what is compared"
    )
    parser.add_argument(
        "--batch",
        nargs=2,
        type=int,
        metavar=("ROWS", "TOKENS"),
        help="rows of a batch and tokens of a row; 256 and 32 for base and big",
    )
    parser.add_argument(
        "--rounds", type=int, default=12, help="measurements of each way"
    )
    parser.add_argument(
        "--updates", type=int, default=10, help="updates of each measurement"
    )
    parser.add_argument(
        "--seconds", type=float, default=540, help="limit of the time of all"
    )
    parser.add_argument(
        "--xla-flags",
        metavar="FLAGS",
        help="XLA_FLAGS of our processes; by default those of the environment, "
        f"else on a GPU {SHORT_COMPILATION}",
    )
    parser.add_argument(
        "--no-compile-torch",
        dest="compile_torch",
        action="store_false",
        help="without torch.compile, which needs a C++ compiler",
    )
    parser.add_argument(
        "--output",
        type=Path,
        help="CSV file to append rows to; by default results/training_gpu.csv "
        "on a GPU, and none without one",
    )
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--device", default="cpu", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
