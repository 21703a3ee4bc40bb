"""The tables of translation speed."""

import re
from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    count,
    decimals,
    markdown_table,
    measured_when_and_where,
    newest_rows,
    ratio,
    ratio_range,
    table_section,
)

REPOSITORY = Path(__file__).parents[2]
RESULTS = REPOSITORY / "benchmarks" / "speed" / "results"
COSTS = REPOSITORY / "keras_deepnmt" / "zoo" / "measured_costs.csv"
OURS = "keras_deepnmt"
ENGINES = {
    OURS: "keras_deepnmt",
    "keras_deepnmt_plain": "keras_deepnmt, plain graph",
    "keras_deepnmt_before": "keras_deepnmt, earlier commit",
    "ctranslate2_float32": "CTranslate2, float32",
    "ctranslate2_int8": "CTranslate2, int8",
    "huggingface": "Hugging Face Marian",
    "joeynmt": "JoeyNMT",
}
# A preset for each paper's layer, and the plain one of its kind.
PRESETS = (
    "transformer_tiny",
    "hybrid_self_attention_gated_tiny",
    "layer_aggregation_dense_tiny",
    "layer_aggregation_linear_tiny",
    "layer_aggregation_iterative_tiny",
    "layer_aggregation_hierarchical_tiny",
    "multi_layer_attention_k2_tiny",
    "multi_layer_attention_k3_tiny",
    "contextualized_embedding_tiny",
    "fine_grained_layer_attention_tiny",
    "surface_fusion_hard_tiny",
    "surface_fusion_soft_tiny",
    "role_interaction_dense_tiny",
    "role_interaction_softmax_tiny",
    "conv_seq2seq_tiny",
    "dense_nmt_1_tiny",
    "dense_nmt_2_tiny",
)
CASE = ("workload", "size", "batch_size", "num_beams", "steps")
# Workloads that are not recipes.
RANDOM, SEVERAL_LENGTHS = "random", "random, several lengths"


def decoding_tables():
    """Returns the Markdown blocks of the tables of translation speed."""
    random, lengths, runs = [], [], []
    kinds = {RANDOM: random, SEVERAL_LENGTHS: lengths}
    for row in _newest_rows_in_order():
        kinds.get(row["workload"], runs).append(row)
    return [
        *_engines(
            "Translation compared with other engines",
            random,
            {
                "model": lambda row: row["size"],
                "steps": lambda row: row["steps"],
            },
            "Random models and sources, equally many steps in every engine. "
            "Equal translations are those among the hypotheses of our search; "
            "JoeyNMT has random weights of its own.",
        ),
        *_engines(
            "Translation by a trained model, compared with other engines",
            runs,
            {
                "recipe": lambda row: f"`{row['workload']}`",
                "processor": _processor,
                "updates": lambda row: count(row["updates"]),
                "sentences": lambda row: count(row["sentences"]),
            },
            "Equal translations are those equal to ours.",
        ),
        *_steps(lengths),
        *_latency(),
        *_presets(),
    ]


def decoding_summary():
    """Returns a short table of translation speed, for the project's README.

    One row for each case of 4 beams that was measured with CTranslate2.
    """
    cases = {}
    for row in _newest_rows_in_order():
        cases.setdefault(_case(row), {})[row["engine"]] = row
    others = ("ctranslate2_float32", "huggingface")
    cases = [
        engines
        for engines in cases.values()
        if {OURS, others[0]} <= set(engines)
        and engines[OURS]["num_beams"] == "4"
    ]
    if not cases:
        return []
    cells = [
        [
            _described(engines[OURS]),
            count(engines[OURS]["tokens_per_second_median"]),
            *(
                ratio(engines[name]["ratio_median"]) if name in engines else ""
                for name in others
            ),
        ]
        for engines in cases
    ]
    headings = [
        "translation with 4 beams",
        "keras_deepnmt (target tokens/s)",
        *(f"relative to {ENGINES[name]}" for name in others),
    ]
    return [
        "Translation speed compared with other engines, with the same weights "
        "([more](benchmarks/speed/README.md)). "
        f"{measured_when_and_where([c[OURS] for c in cases])}",
        markdown_table(headings, cells),
    ]


def _described(row):
    """Names the model of a row of 4 beams, and its batches."""
    model = f"`{row['workload']}`"
    if row["size"]:
        layers, width = row["num_encoder_layers"], row["hidden_dim"]
        model = f"{layers}+{layers} layers, width {width}"
    batch = f"{model}, batch size {row['batch_size']}"
    return batch if row["size"] else f"{batch}, on {_processor(row)}"


def rows_of_newest_runs(rows):
    """Returns the rows of each case's newest measurement.

    Ratios compare engines of one measurement, so those of an older one, which
    may have had other engines, are left out.
    """
    newest = {_case(row): row["measurement"] for row in rows}
    return [row for row in rows if row["measurement"] == newest[_case(row)]]


def _case(row):
    """What is measured; of a trained model also the kind of processor.

    How the engines compare for small models depends on it most of all.
    """
    case = tuple(row[name] for name in CASE)
    is_random = row["workload"] in (RANDOM, SEVERAL_LENGTHS)
    return case if is_random else (*case, _processor(row))


def _processor(row):
    """Names the processor: its maker's name and the family of models."""
    found = re.search(r"model name (.+), cpu family (\d+)", row["machine"])
    return f"{found[1]}, family {found[2]}" if found else row["machine"]


def _newest_rows_in_order():
    """Returns the rows of random models, from large to small, then the others.

    Rows of the same case stay in the order in which they were measured.
    """
    return sorted(
        rows_of_newest_runs(read_rows(RESULTS / "decoding.csv")),
        key=lambda row: (
            *(row["workload"] != RANDOM, row["workload"]),
            *(-int(row["hidden_dim"] or 0), row["size"]),
            *(int(row["batch_size"]), int(row["num_beams"])),
        ),
    )


def _engine(row):
    return ENGINES[row["engine"]]


def _engines(title, rows, first_columns, note):
    return table_section(
        title,
        rows,
        {
            **first_columns,
            "batch (sentences)": lambda row: row["batch_size"],
            "beams": lambda row: row["num_beams"],
            "engine": _engine,
            "sentences/s": lambda row: _short(
                row["sentences_per_second_median"]
            ),
            "target tokens/s": lambda row: count(
                row["tokens_per_second_median"]
            ),
            "range over rounds": lambda row: (
                f"{count(row['tokens_per_second_min'])} to "
                f"{count(row['tokens_per_second_max'])}"
            ),
            "keras_deepnmt relative to it": _ratio_of_ours,
            "peak memory (MiB)": lambda row: count(row["peak_mib"]),
            "equal translations": lambda row: _percent(
                row["equal_translations"]
            ),
        },
        note,
    )


def _ratio_of_ours(row):
    if row["engine"] == OURS:
        return ""
    return f"{ratio(row['ratio_median'])} ({ratio_range(row, 'ratio')})"


def _steps(rows):
    """The time of a step for each number of steps."""
    names = list(ENGINES)
    rows = sorted(
        rows,
        key=lambda row: (
            *(row["size"], int(row["batch_size"]), int(row["num_beams"])),
            *(names.index(row["engine"]), int(row["steps"])),
        ),
    )
    return table_section(
        "Time of a step by the number of steps",
        rows,
        {
            "model": lambda row: row["size"],
            "batch (sentences)": lambda row: row["batch_size"],
            "beams": lambda row: row["num_beams"],
            "engine": _engine,
            "steps": lambda row: row["steps"],
            "step (ms)": lambda row: decimals(row["ms_per_step"], 2),
        },
        "The encoder's time is in that of the steps.",
    )


def _latency():
    rows = read_rows(RESULTS / "decoding_latency.csv")
    return table_section(
        "First translation of a new process",
        newest_rows(rows, "size", "engine"),
        {
            "model": lambda row: row["size"],
            "engine": _engine,
            "from start to end (s)": lambda row: _short(row["seconds_median"]),
            "range over rounds": lambda row: (
                f"{_short(row['seconds_min'])} to {_short(row['seconds_max'])}"
            ),
            "peak memory (MiB)": lambda row: count(row["peak_mib"]),
        },
        "One sentence of 24 tokens, 4 beams, with imports, loading and "
        "compilation, without a cache of compilations.",
    )


def _presets():
    """Decoding time of each paper's layer, from the costs of the presets."""
    costs = {row["preset"]: row for row in read_rows(COSTS)}
    rows = [
        costs[name]
        for name in PRESETS
        # Older rows are of fewer sentences and steps.
        if costs.get(name, {}).get("decode_sentences")
    ]
    return table_section(
        "Translation time of the papers' layers",
        rows,
        {
            "model": lambda row: f"`{row['preset']}`",
            "translation time relative to the plain model": lambda row: ratio(
                row["decode_ratio"]
            ),
            "range over rounds": lambda row: ratio_range(row, "decode_ratio"),
        },
        "4 beams, "
        f"{rows[0]['decode_sentences']} sentences, {rows[0]['decode_steps']} "
        "steps. The plain model is `transformer_tiny` or `conv_seq2seq_tiny`."
        if rows
        else "",
    )


def _short(text):
    """Formats a number with three digits: 0.634, 12.3, 1,234."""
    value = float(text)
    return decimals(text, 0 if value >= 100 else 1 if value >= 10 else 2)


def _percent(text):
    return f"{float(text):.0%}" if text else ""
