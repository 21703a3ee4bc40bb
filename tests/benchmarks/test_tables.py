"""How rows become tables: which values are shown, and which are not.

Rows stand together only if they were measured together.
"""

import re

import pytest

from benchmarks.quality.rows.row_list import CORPORA, presets_of
from benchmarks.shared.result_rows import append_rows, read_rows
from benchmarks.tables import (
    bfloat16_tables,
    decoding_tables,
    speed_tables,
    trained_tables,
)
from benchmarks.tables.letter_case_tables import letter_case_table
from benchmarks.tables.markdown import measured_when_and_where
from benchmarks.tables.scaling_tables import scaling_tables
from benchmarks.tables.trained_tables import (
    QUALITY,
    trained_summary,
    variant,
)
from benchmarks.tables.trained_tables import trained_tables as tables
from keras_deepnmt import list_models

GATED = "hybrid_self_attention_gated_tiny"


def row(preset, seed, bleu, corpus="multi30k", **columns):
    recipe = f"{preset}.{CORPORA[corpus].recipes}"
    return {
        "date": "2031-05-07",
        "machine": "p, 2 cores",
        "device": "CPU",
        "corpus": corpus,
        "preset": preset,
        "recipe": recipe,
        "recipe_sha256": "new",
        "seed": seed,
        "parameters": 1_963_520,
        "updates": 7_000,
        "target_tokens": 32_513_479,
        "training_minutes": 29.8,
        "valid_bleu": 38.5,
        "sentences": 1_000,
        "num_beams": 5,
        "length_penalty": 1.0,
        "bleu": bleu,
        "bleu_interval": 1.25,
        "bleu_signature": "nrefs:1|tok:none",
        "plain_recipe_sha256": "new",
        "other_settings": "",
        "p_value": "",
    } | columns


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Writes the made-up CSV file of the table, with differences."""
    monkeypatch.setattr(trained_tables, "RESULTS", tmp_path)
    monkeypatch.setattr(trained_tables, "_present_sha256", lambda *_: "new")

    def write(rows):
        (tmp_path / "table.csv").unlink(missing_ok=True)
        append_rows(
            tmp_path / "table.csv",
            [
                made | {"bleu_difference": difference(made, rows)}
                for made in rows
            ],
        )

    return write


def difference(made, rows):
    """The difference from the plain model's row, or "" if there is none."""
    plain = presets_of(made["corpus"])[made["preset"]]
    for other in rows:
        if (other["corpus"], other["preset"]) == (made["corpus"], plain) and (
            (other["seed"], other["recipe_sha256"])
            == (made["seed"], made["plain_recipe_sha256"])
        ):
            return f"{made['bleu'] - other['bleu']:+.2f}"
    return ""


def section(title):
    """The blocks of a section, and the cells of its tables by first cell."""
    blocks = tables()
    heading = f"### {title}"
    start = next(n for n, b in enumerate(blocks) if b.startswith(heading))
    found = [blocks[start]]
    for block in blocks[start + 1 :]:
        if block.startswith("### "):
            break
        found.append(block)
    cells = [
        {
            line.split(" | ")[0].strip("| `"): line.strip("|").split(" | ")[1:]
            for line in block.splitlines()
        }
        for block in found
        if block.startswith("|")
    ]
    return found, cells


def test_tables_have_a_line_for_every_model(results):
    results([row("transformer_tiny", 1, 40.61)])
    blocks, (scores, costs) = section("Multi30k")
    presets = presets_of("multi30k")
    assert set(presets) < set(scores)
    assert {len(cells) for cells in scores.values()} == {6}
    assert {len(cells) for cells in costs.values()} == {5}
    assert scores["transformer_tiny"][:2] == ["40.6 ± 1.2", "1"]
    assert scores[GATED][0] == "not run"
    assert scores[GATED][2] == "`transformer_tiny`"
    assert set(costs) == {"model", "---", "transformer_tiny"}
    assert [cell.strip() for cell in costs["transformer_tiny"]] == [
        "1.96 M",
        "7,000",
        "32.5",
        "29.8 (2 cores)",
        "38.5",
    ]
    assert "`nrefs:1|tok:none`" in blocks[2]
    assert "bootstrap interval" in blocks[2]
    assert blocks[-1] == "Measured 2031-05-07 on a CPU with 2 cores."


def test_minutes_are_said_with_the_device_that_took_them(results):
    results(
        [
            row("transformer_tiny", 1, 40.6),
            row(GATED, 1, 41.0, machine="p, 1 cores", training_minutes=60.0),
            row(GATED, 2, 41.0, machine="p, 1 cores", training_minutes=64.0),
            row(GATED, 3, 41.0, device="Some GPU", training_minutes=4.0),
        ]
    )
    _, (_, costs) = section("Multi30k")
    assert costs["transformer_tiny"][3] == "29.8 (2 cores)"
    assert costs[GATED][3] == "62.0 (1 core), 4.0 (Some GPU)"
    assert "62.0 (1 core), 4.0 (Some GPU)" in trained_summary()[1]


def test_papers_stand_beside_their_models_but_not_beside_a_part_of_their_data(
    results,
):
    results(
        [
            row("transformer_tiny", 1, 40.6),
            row("transformer_small", 1, 25.0, "iwslt14"),
        ]
    )
    _, (scores, _) = section("Multi30k")
    assert scores[GATED][-1].strip() == (
        "IWSLT14 De-En: 31.27 → 32.28; WMT14 En-De: 27.3 → 27.9 "
        "(Song et al., 2018, Table 2)"
    )
    assert "paper" in scores["model"][-1]
    blocks, (scores, _) = section("IWSLT14")
    assert "with 47,047 training pairs" in blocks[0]
    assert len(scores["model"]) == 5
    assert "32.28" not in "".join(blocks)
    assert "not comparable" in blocks[2]


def test_differences_have_an_interval_if_there_are_several_seeds(results):
    plain = [row("transformer_tiny", seed, 40.0 + seed) for seed in (1, 2, 3)]
    results([*plain, row(GATED, 2, 49.0, p_value="0.0010")])
    _, (scores, _) = section("Multi30k")
    # 49 - 42, of the same seed.
    assert scores[GATED][3:5] == ["+7.0", "0.0010"]
    # 41, 42 and 43.
    assert scores["transformer_tiny"][:2] == ["42.0 ± 2.5", "3"]
    assert scores["transformer_tiny"][3] == ""
    better = [
        row(GATED, seed, 40.5 + seed + 0.1 * seed, p_value=f"0.0{seed}")
        for seed in (1, 2, 3)
    ]
    worse = [row("dense_nmt_1_tiny", seed, 30.0 + seed) for seed in (1, 2)]
    conv = [row("conv_seq2seq_tiny", seed, 33.0 + 2 * seed) for seed in (1, 2)]
    results([*plain, *better, *worse, *conv])
    _, (scores, _) = section("Multi30k")
    assert scores[GATED][3:5] == ["+0.70 ± 0.25", "0.0100 to 0.0300"]
    # -4 and -5.
    assert scores["dense_nmt_1_tiny"][3] == "-4.5 ± 6.4"
    assert scores["everything_tiny"][3] == ""


def test_only_rows_of_the_present_recipe_count(results):
    old = {"recipe_sha256": "old"}
    results(
        [
            row("transformer_tiny", 1, 30.0, **old),
            row("transformer_tiny", 1, 40.0),
            # Added last, as when an old run folder is read again.
            row("transformer_tiny", 2, 31.0, **old),
        ]
    )
    blocks, (scores, _) = section("Multi30k")
    assert scores["transformer_tiny"][:2] == ["40.0 ± 1.2", "1"]
    assert "¹" not in "".join(blocks)


def test_models_of_an_earlier_recipe_are_marked_and_left_out_of_the_summary(
    results,
):
    old = {"recipe_sha256": "old", "plain_recipe_sha256": "old"}
    results(
        [
            row("transformer_tiny", 1, 30.0, **old),
            row(GATED, 1, 32.0, **old),
            row("transformer_tiny", 1, 40.0),
            row("everything_tiny", 1, 41.0),
        ]
    )
    blocks, (scores, _) = section("Multi30k")
    assert scores[f"{GATED}` ¹"][:4] == [
        *("32.0 ± 1.2", "1"),
        *("`transformer_tiny`", "+2.0"),
    ]
    assert "¹ Trained before the recipe was changed" in blocks[2]
    assert scores["everything_tiny"][3] == "+1.0"
    assert re.findall(r"`(.*?)`", trained_summary()[1]) == [
        "transformer_tiny.multi30k_en_de",
        "everything_tiny.multi30k_en_de",
    ]


def test_other_settings_than_the_plain_model_has_are_told(results):
    temperature = "training.temperature.start; training.steps"
    results(
        [
            row(GATED, 1, 40.0, other_settings=temperature),
            row("everything_tiny", 1, 40.0, other_settings="training.steps"),
            row("dense_nmt_1_tiny", 1, 40.0, other_settings="training.steps"),
            row("dense_nmt_2_tiny", 1, 40.0, other_settings="training.steps"),
        ]
    )
    blocks, _ = section("Multi30k")
    assert (
        f"The recipe of `{GATED}` has other values of "
        "`training.temperature.start` and `training.steps`. The recipes of "
        "`everything_tiny`, `dense_nmt_1_tiny` and `dense_nmt_2_tiny` have "
        "other values of `training.steps`."
    ) in blocks[2]


def test_the_summary_has_at_most_six_lines(results):
    results([row("transformer_tiny", 1, 40.0)])
    assert trained_summary()[1].count("\n") == 2
    presets = [name for name in presets_of("multi30k") if "conv" not in name]
    rows = [
        row(preset, 1, 40.0 + place) for place, preset in enumerate(presets)
    ]
    demo = [
        row("conv_seq2seq_tiny", 1, 85.0, "demo"),
        row("transformer_tiny", 1, 80.0, "demo"),
        row("everything_tiny", 1, 90.0, "demo"),
    ]
    # The convolutional model gains less than those shown.
    conv = [row("conv_seq2seq_tiny", 1, 45.0), row("dense_nmt_2_tiny", 1, 47.0)]
    results([*rows, *demo, *conv])
    _, table = trained_summary()
    assert re.findall(r"`(.*?)`", table) == [
        "transformer_tiny.multi30k_en_de",
        "everything_tiny.multi30k_en_de",
        "role_interaction_onehot_tiny.multi30k_en_de",
        "role_interaction_softmax_tiny.multi30k_en_de",
        "transformer_tiny.demo_de_en",
        "everything_tiny.demo_de_en",
    ]


def test_the_summary_shows_the_largest_gains_below_their_plain_models(results):
    results(
        [
            row("transformer_tiny", 1, 41.0),
            row("conv_seq2seq_tiny", 1, 37.7),
            row("everything_tiny", 1, 39.0, p_value=0.01),
            row(GATED, 1, 40.6, p_value=0.467),
            row("role_interaction_softmax_tiny", 1, 40.0, p_value=0.039),
            row("dense_nmt_2_tiny", 1, 39.4, p_value=9.999e-05),
        ]
    )
    _, table = trained_summary()
    lines = [line.split(" | ") for line in table.splitlines()[2:]]
    shown = [(x[0].split("`")[1].split(".")[0], *x[-2:]) for x in lines]
    assert [(name, gain, p.rstrip(" |")) for name, gain, p in shown] == [
        ("transformer_tiny", "", ""),
        (GATED, "-0.4", "0.4670"),
        ("conv_seq2seq_tiny", "", ""),
        ("dense_nmt_2_tiny", "+1.7", "< 0.0001"),
    ]


def test_the_summary_prefers_gains_that_an_interval_over_seeds_supports(
    results,
):
    seeds = (1, 2, 3)
    plain = [row("transformer_tiny", seed, 80.0, "demo") for seed in seeds]
    better = [
        row(GATED, seed, 82.9 + 0.1 * seed - 0.1, "demo") for seed in seeds
    ]
    worse = [
        row("layer_attention_tiny", seed, 70.0 + 0.1 * seed, "demo")
        for seed in seeds
    ]
    larger = [
        row(
            "everything_tiny",
            seed,
            95.0 + 0.1 * seed,
            "demo",
            other_settings="model.overrides.num_encoder_layers",
        )
        for seed in seeds
    ]
    one_seed = [row("role_interaction_softmax_tiny", 1, 90.0, "demo")]
    results([*plain, *one_seed, *worse, *larger, *better])
    _, table = trained_summary()
    lines = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    assert [line[0] for line in lines] == [
        "`transformer_tiny.demo_de_en`",
        f"`{GATED}.demo_de_en`",
    ]
    assert lines[1][6:8] == ["3", "+3.00 ± 0.25"]
    # A supported loss is not a gain.
    results([*plain, *one_seed, *worse])
    _, table = trained_summary()
    assert "role_interaction_softmax_tiny" in table
    assert "layer_attention_tiny" not in table


def test_without_rows_there_is_no_summary_and_all_is_not_run(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(trained_tables, "RESULTS", tmp_path)
    assert trained_summary() == []
    blocks = tables()
    assert len(blocks) == 6
    assert blocks[1].startswith("Not run: `transformer_tiny`, ")


def test_what_papers_report_is_of_variants_and_has_its_source():
    rows = read_rows(QUALITY / "published_scores.csv")
    variants = {variant(preset) for preset in list_models()}
    assert {row["variant"] for row in rows} <= variants
    for published in rows:
        assert re.fullmatch(r".* et al., \d{4}", published["paper"])
        assert re.search("Table|section|results", published["source"])
        assert published["data"] and published["bleu"]


def test_a_machine_is_named_by_its_number_of_cores():
    rows = [
        {"date": "2026-11-22", "machine": "an EPYC, 1 cores"},
        {"date": "2026-11-23", "machine": "an EPYC, 2 cores"},
    ]
    assert measured_when_and_where(rows) == (
        "Measured 2026-11-22 to 2026-11-23 on a CPU with 1 core and a CPU with "
        "2 cores."
    )


# Training steps.


def step(commit, variant, tokens, ratio_to_plain):
    return {
        "date": "2031-05-07",
        "commit": commit,
        "machine": "p, 2 cores",
        "model": "3+3x256",
        "hidden_dim": 256,
        "num_layers": 3,
        "variant": variant,
        "keras_tokens_per_second": tokens,
        "torch_tokens_per_second": 1_000,
        "ratio_median": tokens / 1_000,
        "ratio_min": 1,
        "ratio_max": 2,
        "peak_fraction_median": 0.7,
        "ratio_to_plain_median": ratio_to_plain,
        "ratio_to_plain_min": 1,
        "ratio_to_plain_max": 2,
    }


def test_a_training_step_stands_beside_the_plain_step_of_its_measurement(
    tmp_path, monkeypatch
):
    rows = [
        step("first", "plain", 2_000, 1),
        step("first", "2 parts", 2_200, 1.1),
        step("second", "plain", 1_500, 1),
    ]
    append_rows(tmp_path / "training_throughput.csv", rows)
    monkeypatch.setattr(speed_tables, "RESULTS", tmp_path)
    text = "\n".join(speed_tables.speed_tables())
    # The newest one, and the fraction of the peak.
    plain = (
        "| 3+3 layers, width 256 | 1,500 | 1,000 | 1.50 | 1.00 to 2.00 | 70% |"
    )
    assert plain in text
    other = "| gradients accumulated over 2 parts | 2,200 | 2,000 | 1.10 |"
    assert other in text


def test_each_precision_stands_beside_pytorch_in_it(tmp_path, monkeypatch):
    def step_row(way, milliseconds, tokens):
        sizes = {"hidden_dim": 256, "num_layers": 3}
        sizes |= {"batch_size": 128, "length": 32}
        device = {"date": "2031-05-07", "machine": "m, 2 cores"}
        speed = {"milliseconds_median": milliseconds}
        speed |= {"tokens_per_second": tokens}
        return {"model": "3+3x256", "way": way, **device, **sizes, **speed}

    rows = [
        step_row("float32", 1_000, 4_000),
        step_row("bfloat16", 500, 8_000),
        step_row("torch float32", 1_250, 3_200),
        step_row("torch bfloat16", 900, 4_444),
    ]
    append_rows(tmp_path / "training_bfloat16.csv", rows)
    monkeypatch.setattr(bfloat16_tables, "RESULTS", tmp_path)
    _, table = bfloat16_tables.training_speed_summary()
    assert "128 x 32 tokens | float32 | 4,000 | 3,200 | 1.25 |" in table
    assert "128 x 32 tokens | bfloat16 | 8,000 | 4,444 | 1.80 |" in table


def test_the_page_of_scaling_says_what_the_newest_rows_say(tmp_path):
    def rows(run, milliseconds):
        common = {"run": run, "date": "2031-05-07", "machine": "m, 2 cores"}
        common |= {"tensorflow": "2", "keras": "3", "model": "toy"}
        common |= {"parameters": 1_250_000, "rounds": 3, "updates": 7}
        common |= {"fit_overhead_ms": 11, "fit_us_per_token": 30}
        common |= {"fit_latency_us": 700, "fit_mb_per_second": 300}
        common |= {"workers_per_core": 1, "model_ms": 22, "ring_bytes": 30e6}
        return [
            common
            | {"quantity": kind, "workers": n, "tokens_per_replica": 480}
            | {"ms_median": milliseconds, "tokens_per_second": 96}
            | {"loopback_bytes": bytes_}
            for kind, n, bytes_ in (
                ("step", 1, 0),
                ("step", 2, 31.5e6),
                ("step", 4, 33e6),
                ("all_reduce", 2, 0),
            )
        ]

    assert scaling_tables(tmp_path) == []
    append_rows(tmp_path / "scaling_measured.csv", rows("first", 11))
    append_rows(tmp_path / "scaling_measured.csv", rows("second", 20))
    page = "\n\n".join(scaling_tables(tmp_path))
    assert "| 2 | 1 | 480 | 20.0 | 22.0 | 96 |" in page
    assert "latency 700 µs per stage and 300 MB/s" in page
    assert "by +10% to +10%" in page
    assert "5.0% to 10.0% more" in page


# Translation.


def random_row(name, steps="32", measurement="12:00", **columns):
    return {
        "date": "2026-01-01",
        "measurement": measurement,
        "commit": "abc",
        "machine": "x86_64, model name Fast, cpu family 6, model 7, 2 cores",
        **dict(workload="random", updates="", size="tiny", sentences="32"),
        **dict(num_encoder_layers="4", hidden_dim="128"),
        **dict(batch_size="32", num_beams="4", steps=steps, engine=name),
        **{
            f"{key}_{part}": "2.5"
            for key in ("sentences_per_second", "tokens_per_second", "ratio")
            for part in ("median", "min", "max")
        },
        **dict(ms_per_step="12.5", peak_mib="1234", equal_translations="0.5"),
        **columns,
    }


def test_without_rows_there_are_no_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(decoding_tables, "RESULTS", tmp_path)
    monkeypatch.setattr(decoding_tables, "COSTS", tmp_path / "costs.csv")
    assert decoding_tables.decoding_tables() == []


def test_engines_of_an_older_measurement_are_left_out():
    rows = [
        random_row("keras_deepnmt"),
        random_row("joeynmt"),
        random_row("keras_deepnmt", steps="64"),
        random_row("keras_deepnmt", measurement="13:00"),
        random_row("huggingface", measurement="13:00"),
    ]
    kept = decoding_tables.rows_of_newest_runs(rows)
    assert kept == [rows[2], rows[3], rows[4]]


def test_rows_of_a_trained_model_on_another_processor_stay():
    machine = "x86_64, model name Slow, cpu family 5, model 1, 2 cores"
    rows = [
        random_row("keras_deepnmt", workload="a.recipe", machine=machine),
        random_row("keras_deepnmt", workload="a.recipe", measurement="13:00"),
    ]
    assert decoding_tables.rows_of_newest_runs(rows) == rows


def test_the_tables_show_engines_and_steps(tmp_path, monkeypatch):
    lengths = decoding_tables.SEVERAL_LENGTHS
    rows = [
        random_row("keras_deepnmt"),
        random_row("ctranslate2_float32", ratio_median="1.25"),
        random_row("keras_deepnmt", steps="128", workload=lengths),
        random_row("keras_deepnmt", steps="16", workload=lengths),
        random_row(
            "keras_deepnmt",
            **dict(workload="a.recipe", updates="2400", steps="", size=""),
        ),
    ]
    latency = {
        **random_row("keras_deepnmt_plain"),
        **dict(seconds_median="12.34", seconds_min="9.87", seconds_max="123.4"),
    }
    found = {"decoding.csv": rows, "decoding_latency.csv": [latency]}
    monkeypatch.setattr(
        decoding_tables, "read_rows", lambda path: found.get(path.name, [])
    )
    text = "\n".join(decoding_tables.decoding_tables())
    assert "| CTranslate2, float32 | 2.50 | 2 |" in text
    assert "| 1.25 (2.50 to 2.50) | 1,234 | 50% |" in text
    steps = "| tiny | 32 | 4 | keras_deepnmt | {} | 12.50 |"
    assert "\n".join(map(steps.format, (16, 128))) in text
    line = (
        "| `a.recipe` | Fast, family 6 | 2,400 | 32 | 32 | 4 | keras_deepnmt |"
    )
    assert line in text
    assert "| keras_deepnmt, plain graph | 12.3 | 9.87 to 123 |" in text


def test_the_summary_has_the_cases_measured_with_ctranslate2(monkeypatch):
    rows = [
        random_row(name, batch_size=batch, num_beams=beams)
        for batch, beams in (("32", "4"), ("32", "1"))
        for name in ("keras_deepnmt", "ctranslate2_float32", "huggingface")
    ]
    for name in ("keras_deepnmt", "ctranslate2_float32"):
        rows.append(random_row(name, batch_size="1", num_beams="4"))
    rows += [
        random_row(name, workload="a.recipe", size="", hidden_dim="")
        for name in ("keras_deepnmt", "ctranslate2_float32")
    ]
    rows += [
        random_row(name, size="base", hidden_dim="512")
        for name in ("keras_deepnmt", "ctranslate2_float32")
    ]
    rows.append(random_row("keras_deepnmt", batch_size="128"))
    monkeypatch.setattr(decoding_tables, "read_rows", lambda path: rows)
    _, table = decoding_tables.decoding_summary()
    assert table.splitlines()[2:] == [
        "| 4+4 layers, width 512, batch size 32 | 2 | 2.50 |  |",
        "| 4+4 layers, width 128, batch size 1 | 2 | 2.50 |  |",
        "| 4+4 layers, width 128, batch size 32 | 2 | 2.50 | 2.50 |",
        "| `a.recipe`, batch size 32, on Fast, family 6 | 2 | 2.50 |  |",
    ]
    monkeypatch.setattr(decoding_tables, "read_rows", lambda path: rows[-1:])
    assert decoding_tables.decoding_summary() == []


def test_the_presets_of_the_table_are_measured_ones():
    costs = decoding_tables.read_rows(decoding_tables.COSTS)
    names = {row["preset"] for row in costs if row["decode_ratio"]}
    assert set(decoding_tables.PRESETS) <= names


def test_the_table_of_case_has_shares_of_the_ordinary_score(tmp_path):
    assert letter_case_table(tmp_path) == []
    rows = [
        {
            "date": "2026-01-02",
            "machine": "AMD EPYC, 2 cores",
            "recipe": "tiny",
            "updates": "2000" if "2000" in changes else "1000",
            "sentences": "500",
            "bleu_signature": "tok:13a",
            "batch_tokens": "1330",
            "case": "factored",
            "seed": seed,
            "form": form,
            "bleu": bleu,
            "changes": changes,
        }
        for seed, form, bleu, changes in (
            ("1", "ordinary", "80", ""),
            ("2", "ordinary", "82", ""),
            ("1", "all_caps", "40", ""),
            ("2", "all_caps", "41", ""),
            ("1", "capitalized", "81", ""),
            ("2", "capitalized", "81", ""),
            ("1", "ordinary", "70", '{"training.steps": 9}'),
            ("1", "ordinary", "90", '{"training.steps": 2000}'),
            ("1", "all_caps", "81", '{"training.steps": 2000}'),
            ("1", "capitalized", "90", '{"training.steps": 2000}'),
        )
    ]
    append_rows(tmp_path / "letter_case.csv", rows)
    table, note = letter_case_table(tmp_path)
    assert table.splitlines()[2:] == [
        "| 1,000 | `factored` | 2 | 1,330 | 81 ± 13 | 40.5 ± 6.4 (50.0 %) | "
        "81 (100.0 %) |",
        "| 2,000 | `factored` | 1 | 1,330 | 90 | 81 (90.0 %) | 90 (100.0 %) |",
    ]
    assert "500 sentences" in note and "`tok:13a`" in note
