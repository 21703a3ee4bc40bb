"""Translation speed beside other engines: the same model, the same work, and
rows that compare only what was measured together."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.shared.result_rows import read_rows
from benchmarks.shared.worker_process import worker_environment
from benchmarks.speed import decoding
from benchmarks.speed.measuring import decoding_rows
from benchmarks.speed.measuring.decoding_cases import random_case
from benchmarks.speed.measuring.decoding_search import (
    Search,
    random_translator,
    score,
)
from benchmarks.speed.measuring.decoding_weights import (
    MAX_LENGTH,
    plain_sizes,
    transformer_arrays,
    write_model,
)
from benchmarks.speed.measuring.engines import rows_of_ids
from keras_deepnmt.models import Transformer

REPOSITORY = Path(__file__).parents[2]
SIZES = {
    "vocabulary_size": 23,
    "hidden_dim": 8,
    "intermediate_dim": 16,
    "num_heads": 2,
    "num_encoder_layers": 2,
    "num_decoder_layers": 1,
}
SOURCES = [[5, 9, 7, 3], [11, 6, 8, 3], [21, 4, 5, 3]]
CASE = {
    "sources": SOURCES,
    "batch_size": 2,
    "num_beams": 2,
    "steps": 4,
    "length_penalty": 0.0,
}


def tiny_model(**changes):
    arguments = [23, 23, 8, 16, 2, 2, 1]
    return Transformer(*arguments, **{"share_embeddings": True, **changes})


@pytest.fixture(scope="module")
def model():
    return tiny_model()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, model):
    folder = tmp_path_factory.mktemp("model")
    write_model(model, folder)
    return folder


@pytest.fixture(scope="module")
def search(folder):
    search = Search(random_translator(folder, is_compiled=False))
    search.prepare(CASE)
    return search


@pytest.fixture(scope="module")
def translated(search):
    return search.translate()


# The model that the other engines get.


@pytest.mark.parametrize("normalize_first", [False, True])
def test_the_arrays_are_all_weights_of_the_model(normalize_first, model):
    if normalize_first:
        model = tiny_model(normalize_first=True)
    arrays = transformer_arrays(model)
    key_biases = [arrays.pop(n) for n in list(arrays) if "key.bias" in n]
    assert len(key_biases) == 2 + 2 * 1 and not np.any(key_biases)
    assert arrays.pop("positions").shape == (MAX_LENGTH, 8)
    assert sum(map(np.size, arrays.values())) == model.count_params()
    kernel = arrays["decoder.0.cross_attention.query.kernel"]
    projection = model.decoder_blocks[0].cross_attention.query_projection
    assert np.array_equal(kernel, np.asarray(projection.kernel))


def test_the_sizes_are_written_beside_the_arrays(folder):
    assert rows_of_ids.read_sizes(folder) == {
        **SIZES,
        "layer_norm_epsilon": 1e-6,
        "normalize_first": False,
    }
    with np.load(folder / "model.npz") as arrays:
        assert arrays["embedding"].shape == (23, 8)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"share_embeddings": False}, "share_embeddings"),
        ({"activation": "gelu"}, "activation"),
        (
            {"encoder_aggregation": {"LayerAggregation": {}}},
            "encoder_aggregation",
        ),
    ],
)
def test_a_model_that_other_engines_lack_is_refused(model, changes, name):
    config = {**model.get_config(), **changes}
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        plain_sizes(config)
    with pytest.raises(ValueError, match="not a Transformer"):
        plain_sizes({})


# The work of our search.


@pytest.mark.thorough
def test_our_translations_have_the_steps_of_the_case(translated):
    assert len(translated["ids"]) == 3
    decoding_rows.check_lengths("ours", translated["ids"], 3)
    assert [len(rows) for rows in translated["hypotheses"]] == [2] * 3
    assert [rows[0] for rows in translated["hypotheses"]] == translated["ids"]


@pytest.mark.thorough
def test_greedy_search_takes_part_too(folder):
    search = Search(random_translator(folder, is_compiled=False))
    search.prepare({**CASE, "num_beams": 1})
    found = search.translate()
    assert [len(rows) for rows in found["hypotheses"]] == [1] * 3
    decoding_rows.check_lengths("ours", found["ids"], 3)


@pytest.mark.thorough
def test_scores_are_the_log_probabilities_of_the_search(search, translated):
    scores = score(search.model, SOURCES, translated["ids"])
    assert scores == pytest.approx(translated["log_probs"], abs=1e-4)


def test_random_cases_end_with_the_end_id_and_are_always_the_same():
    case = random_case("tiny", 5, 4, 32)
    assert case == random_case("tiny", 5, 4, 32)
    assert {(len(row), row[-1]) for row in case["sources"]} == {(25, 3)}
    assert min(min(row[:-1]) for row in case["sources"]) >= 4


def test_rows_of_ids_are_batched_padded_and_cut():
    case = {"sources": [[5, 3], [5, 6, 3], [7, 3]], "batch_size": 2}
    first, second = rows_of_ids.batches(case)
    assert rows_of_ids.padded(first).tolist() == [[5, 3, 0], [5, 6, 3]]
    assert second == [[7, 3]]
    rows = [[5, 6, 3, 0], [5, 6, 7, 8], [3, 0, 0, 0]]
    cut = [rows_of_ids.without_end(np.array(row)) for row in rows]
    assert cut == [[5, 6], [5, 6, 7, 8], []]


# What is compared.


def test_another_model_is_refused_before_anything_is_timed():
    decoding_rows.check_same_model("huggingface", [-10.0, -20.0], [-10.01, -20])
    for theirs in ([-10.1, -20.0], [-9.9, -20.0], [float("nan"), -20.0]):
        with pytest.raises(RuntimeError, match="huggingface computes another"):
            decoding_rows.check_same_model(
                "huggingface", [-10.0, -20.0], theirs
            )


def test_unequal_work_is_refused():
    message = re.escape("joeynmt must make translations of 2 tokens")
    with pytest.raises(RuntimeError, match=message):
        decoding_rows.check_lengths("joeynmt", [[5, 6], [7]], 2)


def test_translations_are_compared_with_all_our_hypotheses():
    ours = [[[4, 5, 6], [4, 9, 9]], [[7, 7, 7]]]
    theirs = [[4, 9, 9], [7, 7, 8]]
    assert decoding_rows.equal_translations(ours, theirs) == 0.5
    assert decoding_rows.equal_tokens(ours, theirs) == 5 / 6
    # A longer one: what only one of them has is different.
    assert decoding_rows.equal_tokens([[[4]]], [[4, 5, 6, 7]]) == 1 / 4
    assert decoding_rows.equal_tokens([[[]], [[4]]], [[], [4]]) == 1


@pytest.mark.parametrize(
    ("number", "numbers"),
    [(1, [0]), (8, list(range(8))), (1_000, list(range(0, 1_000, 125)))],
)
def test_a_few_sentences_are_scored(number, numbers):
    assert list(decoding_rows.some_numbers(number)) == numbers


def test_engines_are_timed_in_turns_and_slow_ones_less_often():
    order = []

    def timed(name, seconds):
        return lambda: order.append(name) or seconds

    functions = {name: timed(name, s) for name, s in (("a", 1), ("b", 9))}
    found = decoding_rows.measure_in_turns(functions, 3, 10)
    assert order == ["a", "b", "b", "a", "a"]
    assert found == {"a": [1, 1, 1], "b": [9, 9]}


def engine(seconds, *ids, **more):
    found = {"ids": list(ids), "hypotheses": [[row] for row in ids]}
    return {**found, "seconds": seconds, "peak_mib": 7.3, "version": 1, **more}


def test_a_ratio_compares_seconds_of_the_same_round():
    engines = {
        "keras_deepnmt": engine([1.0, 4.0, 2.0], [5, 6, 7]),
        "ctranslate2_int8": engine([2.0, 2.0], [5, 6, 8, 9]),
        "joeynmt": engine([8.0, 8.0, 8.0], [1, 1, 1, 1]),
    }
    case = {"batch_size": 1, "steps": 4}
    ours, int8, joeynmt = decoding_rows.case_rows({"size": "x"}, case, engines)
    assert ours["ratio_median"] == 1 and ours["ms_per_step"] == 500
    # Twice as fast in the first round, half as fast in the second.
    assert (int8["ratio_min"], int8["ratio_max"]) == (0.5, 2.0)
    assert (int8["rounds"], int8["tokens_per_second_median"]) == (2, 2.0)
    assert (int8["equal_tokens"], int8["equal_translations"]) == (0.6667, 0.0)
    assert joeynmt["equal_tokens"] == joeynmt["log_prob_ratio"] == ""
    assert joeynmt["ratio_median"] == 4.0
    columns = {"size": "tiny", "batch_size": 1, "num_beams": 4, "steps": 4}
    line = decoding_rows.summary({**joeynmt, **columns})
    assert line.startswith("tiny, batch 1, beams 4, steps 4: joeynmt 0.5 tok")
    assert "ours 4.0 times as fast" in line


def test_real_translations_are_counted_with_their_end():
    ours = engine([2.0], [5, 6, 7], [8], log_prob_ratio=1.01)
    engines = {"keras_deepnmt": ours}
    case = {"batch_size": 2, "steps": 0}
    (row,) = decoding_rows.case_rows({}, case, engines)
    assert row["tokens_per_second_median"] == (4 + 2) / 2
    assert row["sentences_per_second_median"] == 1.0
    assert row["ms_per_step"] == "" and row["log_prob_ratio"] == 1.01


# The command line.


def test_without_other_engines_only_ours_is_measured(tmp_path):
    options = decoding.parse_options(["--steps", "16", "32"])
    assert options.only == [] and options.batches == [1, 32, 128]
    assert list(decoding.commands_of(options, tmp_path)) == ["keras_deepnmt"]


def test_a_run_is_measured_without_joeynmt_which_has_random_weights():
    arguments = ["--engines", "python", "--run", "run", "--text", "text"]
    options = decoding.parse_options(arguments)
    assert "joeynmt" not in options.only and len(options.only) == 3
    assert (options.batches, options.beams) == ([32, 128], [4])


def test_an_earlier_checkout_is_found_by_its_process(tmp_path):
    options = decoding.parse_options(["--old", str(tmp_path)])
    _, keywords = decoding.commands_of(options, tmp_path)[decoding.BEFORE]
    environment = worker_environment(**keywords)
    assert environment["PYTHONPATH"] == str(tmp_path.resolve())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--run", "run"], "--text"),
        (["--latency", "--run", "run", "--text", "text"], "without --run"),
        (["--latency", "--steps", "16", "32"], "one number of --steps"),
        (["--only", "joeynmt"], "--engines"),
    ],
)
def test_options_that_exclude_each_other_are_refused(
    arguments, message, capsys
):
    with pytest.raises(SystemExit):
        decoding.parse_options(arguments)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([decoding_rows.OURS], marks=pytest.mark.thorough),
        # Slow: one process more, started and asked as the first one is.
        pytest.param(
            [decoding_rows.OURS, decoding_rows.BEFORE], marks=pytest.mark.slow
        ),
    ],
    ids=["alone", "with an earlier checkout"],
)
def test_our_search_is_measured_by_processes(tmp_path, names):
    output = tmp_path / "decoding.csv"
    script = REPOSITORY / "benchmarks" / "speed" / "decoding.py"
    sizes = ("--sizes", "tiny", "--batches", "2", "--beams", "2")
    old = ("--old", REPOSITORY) if decoding_rows.BEFORE in names else ()
    subprocess.run(
        [
            *(sys.executable, script, *sizes, *old),
            *("--steps", "2", "3", "--rounds", "1", "--output", output),
        ],
        check=True,
        capture_output=True,
    )
    rows = read_rows(output)
    results = REPOSITORY / "benchmarks" / "speed" / "results"
    assert list(rows[0]) == list(read_rows(results / "decoding.csv")[0])
    assert [row["engine"] for row in rows] == names * 2
    steps = [row["steps"] for row in rows]
    assert steps == ["2"] * len(names) + ["3"] * len(names)
    assert {row["equal_translations"] for row in rows} == {"1.0"}
    assert all(float(row["ms_per_step"]) > 0 for row in rows)
