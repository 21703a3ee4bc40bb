r"""Speed of translation, compared with CTranslate2, Hugging Face and JoeyNMT.

    python benchmarks/speed/decoding.py --engines ENGINES/bin/python
    python benchmarks/speed/decoding.py --engines ENGINES/bin/python \
        --run RUN --text FILE
    python benchmarks/speed/decoding.py --batches 32 --beams 4 \
        --steps 16 32 64 128
    python benchmarks/speed/decoding.py --engines ENGINES/bin/python --latency

The engines are timed in turns, each in its own process on all cores. Ours is
the translator, compiled by XLA; it also turns text into tokens and back in that
time, which the others do not. CTranslate2 computes in float32 and in int8,
Hugging Face is `generate` of the Marian model. With `--old PATH`, another
checkout of this repository takes part.

First command: a Transformer with random weights, after random sources of 24
tokens and the end token. All engines do equal work: every translation has the
same number of steps. Ours takes the end token in the last one, the others an
ordinary token.

Second command: a trained run of a plain Transformer and its real lengths. The
sentences of FILE are sorted by length and translated in batches, with 4 beams.
All engines stop a sentence as soon as 4 hypotheses have finished, and divide
its sum of log-probabilities by its length to the power of 0.6.

Third command: our translator alone, with different numbers of steps. The time
of a step should grow by that of attention alone.

Fourth command: seconds from the start of a process to the end of its first
translation, one sentence with 4 beams, with what it imports, loads and
compiles. The first round is not counted, since it reads the files into memory.

CTranslate2 and Marian get our weights. Before anything is timed, they score our
best translations; the script stops if the sums of log-probabilities differ from
those of our search by more than 0.1 %. int8 is not checked, and JoeyNMT keeps
random weights of its own. The rows also have the shares of an engine's
translations, and of their tokens, that are among the hypotheses which our
search ends with (for a run, our best ones). Those of a run also have our
log-probabilities of the engine's translations divided by those of ours: above 1
is worse.

Each engine translates before the first round, so that compilation is not
counted. An engine that has used up `--seconds` takes part in no further round.
Peak memory is that of the process, compilation included. If something else runs
on the machine, set OMP_WAIT_POLICY=passive: otherwise threads of OpenMP wait
actively, which then makes other engines many times slower.

The other engines need other packages than ours. `ENGINES` is a virtual
environment:

    python -m venv ENGINES
    ENGINES/bin/python -m pip install joeynmt==2.3.0 sentencepiece==0.2.0 \
        importlib_metadata ctranslate2==4.8.5 transformers==5.23.0
"""

import argparse
import contextlib
import datetime
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

# Nothing large is imported here: the peak memory of a process is at least that
# of the process that starts it.
from benchmarks.shared.result_rows import (
    append_rows,
    git_commit,
    provenance,
)
from benchmarks.shared.worker_process import WorkerProcess, worker_environment
from benchmarks.speed.measuring.decoding_cases import (
    SIZES,
    random_case,
    run_case,
)
from benchmarks.speed.measuring.decoding_rows import (
    BEFORE,
    OTHER_WEIGHTS,
    OURS,
    SAME_MODEL,
    case_rows,
    check_lengths,
    check_same_model,
    measure_in_turns,
    some_numbers,
    spread,
    summary,
)

MEASURING = Path(__file__).parent / "measuring"
SEARCH = MEASURING / "decoding_search.py"
ENGINES = MEASURING / "decoding_engines.py"
RESULTS = Path(__file__).parent / "results"
OTHERS = ("ctranslate2_float32", "ctranslate2_int8", "huggingface", "joeynmt")
# The threads of an engine still wait for work shortly after it has ended.
PAUSE_SECONDS = 0.3
NO_NETWORK = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}


def commands_of(options, folder):
    """Returns the arguments of `WorkerProcess` for each engine, ours first."""
    commands = {OURS: ((SEARCH, folder, "compiled"), {})}
    if options.old:
        path = {"PYTHONPATH": str(options.old.resolve())}
        commands[BEFORE] = ((SEARCH, folder, "compiled"), path)
    for name in options.only:
        other = {"python": options.engines, **NO_NETWORK}
        commands[name] = ((ENGINES, folder, name), other)
    return commands


def write_models(options, folder, *source):
    """Writes our model, and converts it for the other engines.

    `source` are the arguments of `decoding_search.py`.
    """
    _run(sys.executable, SEARCH, folder, *source)
    sizes = json.loads((folder / "model.json").read_text())
    if sizes["normalize_first"] and "huggingface" in options.only:
        options.only.remove("huggingface")
        print("Without huggingface: its model cannot normalize first.")
    for name in options.only:
        # Both compute types of CTranslate2 read the same files.
        if not (name.startswith("ctranslate2") and _is_converted(folder)):
            _run(options.engines, ENGINES, folder, name, "build")


def measure_case(options, folder, case, first_columns):
    """Measures one case; returns its rows."""
    with contextlib.ExitStack() as stack:
        workers = {
            name: stack.enter_context(WorkerProcess(*arguments, **keywords))
            for name, (arguments, keywords) in commands_of(
                options, folder
            ).items()
        }
        engines = {
            name: worker("prepare", case) for name, worker in workers.items()
        }
        _check(workers, engines, case)

        def timed(worker):
            def seconds():
                time.sleep(PAUSE_SECONDS)
                return worker("seconds")

            return seconds

        seconds = measure_in_turns(
            {name: timed(worker) for name, worker in workers.items()},
            options.rounds,
            options.seconds,
        )
        commits = {OURS: first_columns["commit"]}
        if options.old:
            commits[BEFORE] = git_commit(options.old)
        for name, worker in workers.items():
            engines[name] |= {
                "seconds": seconds[name],
                "peak_mib": worker("peak_mib"),
                "version": commits.get(name) or worker("version"),
            }
    measurement = datetime.datetime.now(datetime.UTC).isoformat("T", "seconds")
    return case_rows(
        {**first_columns, "measurement": measurement}, case, engines
    )


def _check(workers, engines, case):
    """Checks the work of all engines, and scores it by our model."""
    ours = engines[OURS]
    numbers = some_numbers(len(case["sources"]))
    sources = [case["sources"][number] for number in numbers]
    log_probs = [ours["log_probs"][number] for number in numbers]
    steps = case["steps"]
    for name, worker in workers.items():
        engine = engines[name]
        if steps:
            # Our last step is the end token, that of others an ordinary one.
            length = steps - 1 if name in (OURS, BEFORE) else steps
            check_lengths(name, engine["ids"], length)
        if name in SAME_MODEL:
            targets = [ours["ids"][number] for number in numbers]
            check_same_model(name, log_probs, worker("score", sources, targets))
        if name == OURS or not steps:
            targets = [engine["ids"][number] for number in numbers]
            scores = workers[OURS]("score", sources, targets)
            if name == OURS:
                check_same_model("our own scoring", log_probs, scores)
            if not steps:
                ratio = round(sum(scores) / sum(log_probs), 5)
                engine["log_prob_ratio"] = ratio


def measure_latency(options, folder, size, first_columns):
    """Times new processes that translate one sentence; returns rows."""
    case = random_case(size, 1, 4, *options.steps)
    commands = commands_of(options, folder)
    plain = ((SEARCH, folder, "plain"), {})
    commands = {OURS: commands.pop(OURS), f"{OURS}_plain": plain, **commands}
    peaks = {name: [] for name in commands}

    def timed(name):
        arguments, keywords = commands[name]

        def seconds():
            found, peak = _translate_once(case, *arguments, **keywords)
            peaks[name].append(peak)
            return found

        return seconds

    seconds = measure_in_turns(
        {name: timed(name) for name in commands},
        options.rounds + 1,
        options.seconds,
    )
    return [
        {
            **first_columns,
            "engine": name,
            "rounds": len(values) - 1,
            **spread("seconds", values[1:], 3),
            "peak_mib": round(max(peaks[name])),
        }
        for name, values in seconds.items()
    ]


def _translate_once(case, *arguments, python=sys.executable, **environment):
    """Returns the seconds and the peak memory in MiB of a new process."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [python, *map(str, arguments), json.dumps(case)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=worker_environment(**environment),
    )
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(errors.decode()[-4000:])
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def _run(python, *arguments):
    done = subprocess.run(
        [python, *map(str, arguments)],
        env=worker_environment(**NO_NETWORK),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-4000:])


def _is_converted(folder):
    return (folder / "ctranslate2").exists()


def measure_random(options, folder, size):
    """Measures a random model; yields lists of rows."""
    sizes = SIZES[size]
    write_models(options, folder, "create", json.dumps(sizes))
    workload = "random"
    if len(options.steps) > 1:
        workload = "random, several lengths"
    columns = {
        **_first_columns(),
        "workload": workload,
        "updates": "",
        "size": size,
        **sizes,
    }
    if options.latency:
        yield measure_latency(options, folder, size, columns)
        return
    for batch_size, num_beams, steps in itertools.product(
        options.batches, options.beams, options.steps
    ):
        yield measure_case(
            options,
            folder,
            random_case(size, batch_size, num_beams, steps),
            {
                **columns,
                "sentences": batch_size,
                "batch_size": batch_size,
                "num_beams": num_beams,
                "steps": steps,
            },
        )


def measure_run(options, folder):
    """Measures a trained run; yields lists of rows."""
    write_models(options, folder, "read", options.run, options.text)
    text = json.loads((folder / "text.json").read_text())
    sizes = json.loads((folder / "model.json").read_text())
    for batch_size, num_beams in itertools.product(
        options.batches, options.beams
    ):
        yield measure_case(
            options,
            folder,
            run_case(text, batch_size, num_beams),
            {
                **_first_columns(),
                "workload": text["name"],
                "updates": text["updates"],
                "size": "",
                **{name: sizes[name] for name in SIZES["tiny"]},
                "sentences": len(text["lines"]),
                "batch_size": batch_size,
                "num_beams": num_beams,
                "steps": "",
            },
        )


def _first_columns():
    return {
        **provenance("tensorflow", "keras"),
        "threads": len(os.sched_getaffinity(0)),
        "seed": 0,
    }


def parse_options(arguments=None):
    """Parses and checks the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--engines",
        metavar="PYTHON",
        help="Python of an environment with the other engines; without it only "
        "our search is measured",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=OTHERS,
        help="other engines to measure; all by default",
    )
    parser.add_argument(
        "--old",
        type=Path,
        metavar="PATH",
        help="another checkout of this repository, measured as well",
    )
    parser.add_argument(
        "--sizes", nargs="+", choices=SIZES, default=list(SIZES)
    )
    parser.add_argument("--batches", type=int, nargs="+", metavar="SENTENCES")
    parser.add_argument("--beams", type=int, nargs="+")
    parser.add_argument(
        "--steps",
        type=int,
        nargs="+",
        default=[32],
        help="tokens of all translations of random models",
    )
    parser.add_argument("--run", type=Path, help="folder of a trained run")
    parser.add_argument("--text", type=Path, help="sentences for --run")
    parser.add_argument(
        "--latency",
        action="store_true",
        help="measure the first translation of a new process instead",
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--seconds",
        type=float,
        default=300.0,
        help="time of an engine in a case after which it is left out",
    )
    parser.add_argument("--output", type=Path, help="CSV file to append to")
    options = parser.parse_args(arguments)
    if (options.run is None) != (options.text is None):
        parser.error("--run and --text are needed together.")
    if options.run and options.latency:
        parser.error("--latency is measured with random models, without --run.")
    if options.latency and len(options.steps) > 1:
        parser.error("--latency takes one number of --steps.")
    if options.only and not options.engines:
        parser.error("--only needs --engines.")
    options.only = options.only or (list(OTHERS) if options.engines else [])
    if options.run:
        # It has random weights.
        options.only = [n for n in options.only if n != OTHER_WEIGHTS]
    options.batches = options.batches or (
        [32, 128] if options.run else [1, 32, 128]
    )
    options.beams = options.beams or ([4] if options.run else [1, 4])
    name = "decoding_latency.csv" if options.latency else "decoding.csv"
    options.output = options.output or RESULTS / name
    return options


def main():
    """Measures and appends the rows."""
    options = parse_options()
    for size in [None] if options.run else options.sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if options.run:
                found = measure_run(options, folder)
            else:
                found = measure_random(options, folder, size)
            for rows in found:
                append_rows(options.output, rows)
                print("\n".join(map(summary, rows)), flush=True)


if __name__ == "__main__":
    main()
