"""Every script starts, from any folder, and writes rows of the right form."""

import csv
import runpy
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import keras_deepnmt
from benchmarks.memory import dense_memory
from benchmarks.scaling.measuring.update_time import (
    Compute,
    Network,
    all_reduce_seconds,
    fit_compute,
    fit_network,
    step_seconds,
)
from benchmarks.scaling.scaling import fit
from benchmarks.shared.parameter_counts import plain_model_of, timing_baseline
from benchmarks.shared.result_rows import (
    append_row,
    append_rows,
    read_rows,
    replace_row,
)
from benchmarks.shared.worker_process import WorkerProcess
from benchmarks.speed import (
    export_speed,
    preset_cost,
    quickstart,
    training_throughput,
)
from benchmarks.speed.measuring import training_steps
from benchmarks.speed.quickstart import bleu_of, stage_seconds
from keras_deepnmt.decoding import beam_search
from keras_deepnmt.masks import END_ID

REPOSITORY = Path(__file__).parents[2]
BENCHMARKS = REPOSITORY / "benchmarks"
FOLDERS = ("speed", "quality", "memory", "scaling")
SCRIPTS = [
    BENCHMARKS / "write_tables.py",
    *(path for name in FOLDERS for path in BENCHMARKS.glob(f"{name}/*.py")),
]


def columns_of(*place):
    with BENCHMARKS.joinpath(*place).open(encoding="utf-8") as file:
        return csv.DictReader(file).fieldnames


def run_script(place, *arguments):
    """Runs a script as a process; returns nothing, as rows are in its file."""
    done = subprocess.run(
        [sys.executable, BENCHMARKS / place, *map(str, arguments)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_script_starts_in_any_folder_without_a_search_path(
    script, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    path = [p for p in sys.path if Path(p or ".").resolve() != REPOSITORY]
    monkeypatch.setattr(sys, "path", path)
    monkeypatch.setattr(sys, "argv", [str(script), "--help"])
    for name in [name for name in sys.modules if name.startswith("benchmarks")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(script), run_name="__main__")
    assert not end.value.code
    assert "usage:" in capsys.readouterr().out


@pytest.mark.parametrize("folder", FOLDERS)
def test_both_readmes_name_every_script(folder):
    names = {path.name for path in (BENCHMARKS / folder).glob("*.py")}
    for page in (BENCHMARKS / "README.md", BENCHMARKS / folder / "README.md"):
        text = page.read_text(encoding="utf-8")
        # A table's cell may give the arguments after the name.
        missing = {name for name in names if f"`{name}" not in text}
        assert not missing, f"{page} does not name {missing}."


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_page_names_every_file_of_rows(folder):
    """Those of scripts that are kept are in the tables of scripts by name."""
    text = (BENCHMARKS / folder / "README.md").read_text(encoding="utf-8")
    scripts = {path.stem for path in (BENCHMARKS / folder).glob("*.py")}
    scripts |= {"decoding_latency", "scaling_measured"}
    for file in (BENCHMARKS / folder / "results").glob("*.csv"):
        assert file.stem in scripts or f"`{file.name}`" in text, file.name


# Rows, and the processes that measure.


def test_old_rows_stay_when_columns_are_added(tmp_path):
    path = tmp_path / "results" / "speed.csv"
    append_row(path, {"date": "1", "speed": 5})
    append_rows(
        path,
        [{"date": d, "replicas": 2, "speed": 7} for d in ("2", "3")],
    )
    assert read_rows(path) == [
        {"date": "1", "replicas": "", "speed": "5"},
        {"date": "2", "replicas": "2", "speed": "7"},
        {"date": "3", "replicas": "2", "speed": "7"},
    ]


def test_no_column_is_lost(tmp_path):
    path = tmp_path / "speed.csv"
    append_row(path, {"date": "1", "speed": 5})
    with pytest.raises(ValueError, match="other columns"):
        append_row(path, {"date": "2"})
    assert read_rows(path) == [{"date": "1", "speed": "5"}]


def test_one_row_stays_for_each_preset(tmp_path):
    path = tmp_path / "costs.csv"
    for name, number in (("a", 1), ("b", 2), ("a", 3)):
        replace_row(path, {"preset": name, "parameters": number}, "preset")
    assert read_rows(path) == [
        {"preset": "a", "parameters": "3"},
        {"preset": "b", "parameters": "2"},
    ]


def test_a_worker_answers_in_order_and_tells_why_it_died(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from benchmarks.shared.worker_process import answer_questions\n"
        "def divide(a, b):\n"
        "    print('this is no answer')\n"
        "    return a / b\n"
        "answer_questions({'divide': divide})\n"
    )
    with WorkerProcess(script) as worker:
        worker.ask("divide", 3, 4)
        worker.ask("divide", 6, 4)
        assert [worker.answer(), worker.answer()] == [0.75, 1.5]
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            worker("divide", 1, 0)


def test_a_worker_is_given_up_when_its_time_is_over(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import time\n"
        "from benchmarks.shared.worker_process import answer_questions\n"
        "answer_questions({'sleep': time.sleep})\n"
    )
    with WorkerProcess(script) as worker:
        worker.ask("sleep", 0)
        assert worker.answer(60) is None
        worker.ask("sleep", 60)
        with pytest.raises(TimeoutError, match="No answer"):
            worker.answer(0.01)


# Training steps.


class StepInThisProcess:
    """Answers as a worker process does; our step stands in for PyTorch's."""

    def __init__(self, *arguments, PYTHONPATH):
        assert arguments[0].is_relative_to(PYTHONPATH)
        sizes = training_throughput.CONFIGURATIONS["tiny"]
        functions = training_steps.keras_steps(sizes)
        self._functions = functions
        assert arguments[1:4] == ("--only", "tiny", "--worker")

    def __call__(self, request, name):
        assert request == "time"
        start = time.perf_counter()
        self._functions[name]()
        return time.perf_counter() - start

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.mark.thorough
def test_training_steps_are_timed_in_turns(monkeypatch):
    sizes = dict(hidden_dim=8, intermediate_dim=16, num_heads=2, num_layers=1)
    sizes |= dict(vocabulary_size=11, batch_size=2, length=3)
    monkeypatch.setitem(training_throughput.CONFIGURATIONS, "tiny", sizes)
    monkeypatch.setattr(training_throughput, "WorkerProcess", StepInThisProcess)
    monkeypatch.setattr(training_steps, "PEAK_SIZE", 8)
    provenance = training_throughput.provenance
    monkeypatch.setattr(
        training_throughput,
        "provenance",
        lambda *names: {**provenance(), **dict.fromkeys(names, "")},
    )
    (row,) = training_throughput.measure("tiny", ["plain"], 3)
    columns = columns_of("speed", "results", "training_throughput.csv")
    assert set(row) == set(columns)
    assert row["ratio_to_plain_median"] == 1.0
    assert row["keras_tokens_per_second"] > 0 and row["ratio_min"] > 0
    rows = training_throughput.measure_checkouts("tiny", REPOSITORY, 3)
    assert [row["variant"] for row in rows] == ["plain", "plain before"]
    for row in rows:
        assert set(row) == set(columns)
        assert row["torch_tokens_per_second"] == row["ratio_median"] == ""


def preset_row(preset, seconds):
    steps = {"conv_seq2seq_4l": [1.0, 4.0, 2.0], preset: seconds}
    return training_throughput.make_preset_row("conv_4l", preset, steps, 3)


def test_a_dense_model_is_compared_with_the_baseline_of_its_round():
    found = preset_row("dense_nmt_2_4l", [1.25, 16.0, 2.0])
    assert found["ratio_to_plain_median"] == 0.8
    assert found["ratio_to_plain_min"] == 0.25
    assert found["ratio_to_plain_max"] == 1.0
    assert found["keras_tokens_per_second"] == 64 * 32 / 2
    assert found["target"] and found["met"] is False
    assert preset_row("dense_nmt_2_4l", [1.0, 4.5, 2.2])["met"] is True
    baseline = preset_row("conv_seq2seq_4l", [1.0, 4.0, 2.0])
    assert baseline["target"] == baseline["met"] == ""
    columns = columns_of("speed", "results", "training_throughput.csv")
    assert set(found) == set(columns)


def test_the_presets_of_the_convolutional_configurations_exist():
    for name in training_steps.GROUPS["conv"]:
        presets = training_steps.PRESET_CONFIGURATIONS[name]["presets"]
        assert set(presets) <= set(keras_deepnmt.list_models())
        assert presets[0].startswith("conv_seq2seq")


# Costs of presets.


def test_counting_makes_no_weights_and_counts_them_all():
    overrides = dict(num_encoder_layers=1, num_decoder_layers=1)
    count = preset_cost.ParameterCounter(overrides)
    for name, size in (("transformer_tiny", 8_000), ("transformer_base", 11)):
        model = keras_deepnmt.create_model(name, size, size, **overrides)
        sizes = preset_cost.vocabulary_size(name) - size
        # Both share one matrix.
        assert count(name) - model.count_params() == sizes * 512


@pytest.mark.parametrize(
    ("name", "plain", "beside"),
    [
        ("dense_nmt_1_tiny", "conv_seq2seq_tiny", "conv_seq2seq_tiny"),
        ("dense_attention_4l", "conv_seq2seq_4l", "conv_seq2seq_tiny"),
        ("dense_nmt_2_8l_embed_64", "conv_seq2seq_8l_embed_64", None),
        ("conv_seq2seq_15l", "conv_seq2seq_15l", None),
        ("layer_attention_base", "layer_attention_base", "transformer_tiny"),
        ("transformer_big_matched", "role_interaction_dense_big", None),
    ],
)
def test_a_preset_stands_beside_the_plain_one_of_its_backbone(
    name, plain, beside
):
    found, empty = plain_model_of(name)
    assert found == plain
    # A Transformer is plain with empty slots.
    assert bool(empty) != name.startswith(("conv", "dense"))
    assert beside in (None, timing_baseline(name))


def test_a_measured_search_never_ends_early():
    model = keras_deepnmt.create_model(
        "transformer_tiny", 13, 13, num_encoder_layers=1, num_decoder_layers=1
    )
    source_ids = np.array([[5, 6, 3], [7, 3, 0]], "int32")
    # The end is by far the likeliest token of this model.
    embedding = np.asarray(model.target_embedding.embeddings)
    model.target_embedding.embeddings.assign(
        embedding * (1 + 1e3 * (np.arange(13) == END_ID))[:, None]
    )
    ids = beam_search(
        model,
        source_ids,
        options=preset_cost.fixed_length_options(5),
        max_length=5,
    )["ids"]
    ended = np.asarray(ids) == END_ID
    assert np.all(ended[..., -1]) and not np.any(ended[..., :-1])


def test_presets_with_a_row_of_this_commit_are_not_counted_again(
    tmp_path, monkeypatch
):
    path = tmp_path / "costs.csv"
    monkeypatch.setattr(
        preset_cost, "provenance", lambda *_: {"date": "1", "commit": "abc"}
    )
    counted = []
    monkeypatch.setattr(
        preset_cost.ParameterCounter,
        "__call__",
        lambda self, name, **slots: counted.append(name) or 7,
    )
    arguments = ["--output", str(path), "--only"]
    preset_cost.main([*arguments, "layer_attention_base"])
    assert set(counted) == {"layer_attention_base"}
    counted.clear()
    preset_cost.main([*arguments, "layer_attention_b*"])
    assert set(counted) == {"layer_attention_big"}
    found = {row["preset"]: row["parameters"] for row in read_rows(path)}
    assert found == {"layer_attention_base": "7", "layer_attention_big": "7"}
    counted.clear()
    preset_cost.main([*arguments, "layer_attention_base", "--again"])
    assert set(counted) == {"layer_attention_base"}
    assert preset_cost.measured_presets(path, "abc+") == set()


@pytest.mark.thorough
def test_a_preset_is_measured_beside_the_plain_model(tmp_path):
    path = tmp_path / "costs.csv"
    preset_cost.main(
        [
            *("--output", str(path), "--size", "smoke", "--rounds", "1"),
            *("--only", "transformer_tiny"),
        ]
    )
    (row,) = read_rows(path)
    assert list(row) == columns_of(
        "..", "keras_deepnmt", "zoo", "measured_costs.csv"
    )
    assert row["extra_parameters"] == "0"
    for way in ("step", "decode"):
        assert float(row[f"{way}_ratio"]) > 0
        assert float(row[f"{way}_compile_seconds"]) > 0
    assert row["decode_ratio_min"] == row["decode_ratio_max"]
    assert (row["decode_sentences"], row["decode_steps"]) == ("2", "3")


# Exports and quickstart.


class Client:
    """Translates each sentence in a given time, as something."""

    def __init__(self, seconds, translation):
        self.sizes = []
        self._seconds = seconds
        self._translation = translation

    def translate(self, texts):
        self.sizes.append(len(texts))
        time.sleep(self._seconds * len(texts))
        return [self._translation for _ in texts]


def test_the_faster_export_has_a_ratio_above_1():
    clients = {"new": Client(0.01, "a"), "old": Client(0.03, "a")}
    found = export_speed.measure(clients, [["x", "y"], ["z", "w"]], rounds=3)
    assert set(found) < set(columns_of("speed", "results", "export_speed.csv"))
    assert found["batch"] == 2
    assert found["sentences"] == found["same_translations"] == 4
    assert 2 < found["speed_min"] <= found["speed_median"] < 4
    # Once to begin with, then in each round.
    assert clients["new"].sizes == [2] * 2 * 4
    clients["old"] = Client(0.001, "b")
    found = export_speed.measure(clients, [["x", "y"]], rounds=1)
    assert found["same_translations"] == 0


def test_a_stage_of_the_quickstart_ends_where_the_next_begins():
    messages = (
        "\n[    0 s] Writing a German-English corpus to quickstart/corpus\n"
        "\n[    1 s] Preparing: filtering, training a tokenizer, encoding\n"
        "Reading test\n"
        "\n[    3 s] Training (the first updates are slow)\n"
        "update 5/1430: loss 2.748\n"
        "\n[  120 s] Translating the test set, which training does not use\n"
        "\n[  130 s] Exporting a SavedModel and running it\n"
        "\n[  145 s] Done. Try:\n"
    )
    seconds = stage_seconds(messages)
    assert seconds == {
        "corpus_seconds": 1,
        "preparation_seconds": 2,
        "training_seconds": 117,
        "evaluation_seconds": 10,
        "export_seconds": 15,
    }
    bleu = bleu_of("test bleu 88.97 (nrefs:1|tok:13a)\ntest chrf 93.1 (x)\n")
    assert bleu == {"bleu": 88.97, "bleu_signature": "nrefs:1|tok:13a"}
    columns = columns_of("speed", "results", "quickstart.csv")
    assert set(seconds) | set(bleu) < set(columns)


def test_a_quickstart_has_a_row(tmp_path, monkeypatch):
    ended = SimpleNamespace(
        stderr="".join(
            f"\n[ {second:4} s] {beginning} ...\n"
            for second, beginning in enumerate(quickstart.STAGES.values())
        ),
        stdout="test bleu 88.97 (nrefs:1|tok:13a)\n",
    )
    process = SimpleNamespace(run=lambda *_, **__: ended)
    monkeypatch.setattr(quickstart, "subprocess", process)
    file = tmp_path / "quickstart.csv"
    quickstart.main(["--rounds", "1", "--output", str(file)])
    (row,) = read_rows(file)
    assert list(row) == columns_of("speed", "results", "quickstart.csv")


# Slow: the command itself is run by tests/system/test_quickstart.py.
@pytest.mark.slow
def test_the_quickstart_is_timed(tmp_path):
    file = tmp_path / "quickstart.csv"
    run_script(
        "speed/quickstart.py",
        *("--scale", "smoke", "--rounds", 1, "--output", file),
    )
    (row,) = read_rows(file)
    assert list(row) == columns_of("speed", "results", "quickstart.csv")


# Memory.

DEPTHS = [4, 8, 12, 16]


@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.0])
def test_the_exponent_of_a_power_is_found(exponent):
    values = [7.0 * depth**exponent for depth in DEPTHS]
    found = dense_memory.growth_exponent(DEPTHS, values)
    assert found == pytest.approx(exponent)


def test_every_row_of_a_stack_has_its_fit():
    rows = [{"layers": d, "kib_per_token": 2 + 3 * d + d**2} for d in DEPTHS]
    dense_memory.add_fits(rows)
    for row in rows:
        assert row["fit_constant"] == pytest.approx(2)
        assert row["fit_linear"] == pytest.approx(3)
        assert row["fit_quadratic"] == pytest.approx(1)
        # A constant and a linear part lower the exponent.
        assert 1.5 < row["exponent"] < 2
    # Two depths have no square.
    assert np.isnan(dense_memory.growth_terms([4, 8], [1.0, 2.0])).all()


@pytest.mark.thorough
def test_memory_is_read_from_what_xla_plans(tmp_path):
    file = tmp_path / "memory.csv"
    name = list(dense_memory.STACKS)[1]
    run_script(
        "memory/dense_memory.py",
        *("--size", "smoke", "--only", name, "--output", file),
    )
    rows = read_rows(file)
    assert list(rows[0]) == columns_of("memory", "results", "dense_memory.csv")
    memory = [int(row["scratch_bytes"]) for row in rows]
    assert 0 < memory[0] < memory[1] < memory[2]
    assert {row["stack"] for row in rows} == {name}


# Several workers.

COMPUTE = Compute(overhead=0.011, per_token=3e-5)
NETWORK = Network(latency=7e-4, bandwidth=3e8)


def test_compute_and_network_are_found_again():
    tokens = [100, 700, 1_300]
    found = fit_compute(tokens, [0.011 + 3e-5 * t for t in tokens])
    assert found.overhead == pytest.approx(0.011)
    assert found.per_token == pytest.approx(3e-5)
    # Two workers: 2 stages of a half; four: 6 stages of a quarter.
    sizes = [1e3, 1e6, 5e6]
    seconds = [2 * (7e-4 + b / 2 / 3e8) for b in sizes]
    seconds += [6 * (7e-4 + b / 4 / 3e8) for b in sizes]
    found = fit_network([2] * 3 + [4] * 3, sizes * 2, seconds)
    assert found.latency == pytest.approx(7e-4)
    assert found.bandwidth == pytest.approx(3e8)


def test_noise_makes_no_negative_time():
    # The line through these has a negative overhead; through zero it is flat.
    found = fit_compute([1, 2, 3], [0.5, 2.0, 3.5])
    assert found.overhead == 0
    # Least squares of 1 - f x with x = 2, 1, 6/7.
    slope = (2 + 1 + 6 / 7) / (4 + 1 + 36 / 49)
    assert found.per_token == pytest.approx(slope)
    found = fit_compute([1, 2, 3], [3.0, 2.0, 1.5])
    assert found.per_token == 0


def scaling_rows():
    """Rows that follow the formula; four workers on two cores."""
    rows = []
    for n, shared in ((1, 1), (2, 1), (4, 2)):
        for tokens in (96, 480):
            num_bytes = 5_000_000 if n > 1 else 0
            seconds = step_seconds(
                n, tokens, num_bytes, COMPUTE, NETWORK, 5 if n > 1 else 1
            ) + (shared - 1) * COMPUTE.seconds(tokens)
            rows.append(
                {
                    "quantity": "step",
                    "workers": n,
                    "workers_per_core": shared,
                    "tokens_per_replica": tokens,
                    "bytes": num_bytes,
                    "collectives": 5 if n > 1 else 0,
                    "ms_median": 1e3 * seconds,
                }
            )
        for num_bytes in (1_024, 4_000_000) if n > 1 else ():
            seconds = all_reduce_seconds(n, num_bytes, NETWORK)
            rows.append(
                dict.fromkeys(rows[0], "")
                | {"quantity": "all_reduce", "workers": n}
                | {"bytes": num_bytes, "ms_median": 1e3 * seconds}
            )
    return rows


def test_rows_that_follow_the_formula_are_met():
    # One worker sends nothing.
    assert all_reduce_seconds(1, 1e9, NETWORK) == 0
    rows = scaling_rows()
    fit(rows)
    for row in rows:
        assert row["model_ms"] == pytest.approx(row["ms_median"])
        assert row["fit_latency_us"] == pytest.approx(700)
        assert row["fit_mb_per_second"] == pytest.approx(300)
    is_fitted = [row["is_fitted"] for row in rows if row["quantity"] == "step"]
    assert is_fitted == [True, True, *(False,) * 4]


# Slow: rows and fit are tested above, training of two workers and its result by
# tests/runs/test_replica_runs.py.
@pytest.mark.slow
def test_two_workers_are_measured(tmp_path):
    run_script(
        "scaling/scaling.py",
        *("--workers", 1, 2, "--rows", 2, "--length", 3),
        *("--rounds", 1, "--updates", 2, "--output", tmp_path),
    )
    rows = read_rows(tmp_path / "scaling_measured.csv")
    columns = columns_of("scaling", "results", "scaling_measured.csv")
    assert list(rows[0]) == columns
    steps = [row for row in rows if row["quantity"] == "step"]
    assert len(steps) == 2
    found = {(row["workers"], row["collectives"]) for row in steps}
    assert found == {("1", "0"), ("2", "5")}
    assert all(float(row["ms_median"]) > 0 for row in rows)
