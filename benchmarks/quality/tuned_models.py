r"""Compares the papers' models, each with its own learning rate and dropout.

    python benchmarks/quality/tuned_models.py --work-folder FOLDER
    python benchmarks/quality/tuned_models.py --work-folder FOLDER \
        --corpus iwslt14 --models plain "HySAN, gated sum" --seeds 1 2 3

Every model has the small size of Weissenborn et al. (2019), 3 + 3 layers of
width 256; the convolutional ones that of Shen et al. (2018) with 4 layers. With
the first seed it is trained with each of three settings. The one with the
lowest loss on the validation set is trained with the other seeds, too. The test
set is translated with every model and chooses nothing.

Each run is a row of `results/tuned_models.csv`. A row that is there is not
measured again, and a run that was broken off goes on in its folder.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.quality.rows.row_list import CORPORA
from benchmarks.shared.result_rows import append_row, provenance, read_rows

RESULTS = Path(__file__).parent / "results" / "tuned_models.csv"
# What is not changed below: its optimizer, search and vocabulary of 8,000.
RECIPE = "transformer_small.tatoeba_en_de"
SIZE = {
    "hidden_dim": 256,
    "intermediate_dim": 512,
    "num_heads": 4,
    "num_encoder_layers": 3,
    "num_decoder_layers": 3,
}
# The presets' own size is used for convolutions, the one above for all others.
MODELS = {
    "plain": "transformer_tiny",
    "HySAN, gated sum": "hybrid_self_attention_gated_tiny",
    "layer aggregation, hierarchical": "layer_aggregation_hierarchical_tiny",
    "layer aggregation, hierarchical, diversity": (
        "layer_aggregation_hierarchical_diversity_tiny"
    ),
    "layer aggregation, linear": "layer_aggregation_linear_tiny",
    "fine-grained layer attention": "fine_grained_layer_attention_tiny",
    "SurfaceFusion, hard": "surface_fusion_hard_tiny",
    "SurfaceFusion, soft": "surface_fusion_soft_tiny",
    "role interaction, softmax": "role_interaction_softmax_tiny",
    # Wider, with the number of parameters of role interaction.
    "plain, matched": "transformer_tiny",
    "ConvS2S": "conv_seq2seq_4l",
    "DenseNMT-2": "dense_nmt_2_4l",
}
CONVOLUTIONAL = ("ConvS2S", "DenseNMT-2")
# Peak of the learning rate, and dropout. IWSLT14 has fewer pairs, of which a
# model sees each more often.
SETTINGS = {
    "tatoeba": ((0.003, 0.1), (0.003, 0.2), (0.0015, 0.1)),
    "iwslt14": ((0.003, 0.2), (0.003, 0.3), (0.0015, 0.2)),
}
# What each corpus changes in the recipe.
CORPUS_CHANGES = {
    "tatoeba": {},
    "iwslt14": {
        "data.source_language": "de",
        "data.target_language": "en",
        "data.valid": None,
        **CORPORA["iwslt14"].changes,
    },
}


def main(arguments: list[str] | None = None) -> None:
    """Trains the models that have no rows yet, and appends their rows."""
    options = _parse(arguments)
    for model in options.models:
        for setting in SETTINGS[options.corpus]:
            _add_row(model, setting, options.seeds[0], options)
        setting = chosen_setting(
            read_rows(options.output), options.corpus, model, options.updates
        )
        for seed in options.seeds[1:]:
            _add_row(model, setting, seed, options)


def chosen_setting(
    rows: list[dict], corpus: str, model: str, updates: int
) -> tuple[float, float] | None:
    """Returns the setting with the lowest loss on the validation set.

    The losses are those of the first seed that has every setting; it is `None`
    as long as there is none.
    """
    losses = {}
    for row in rows:
        if (row["corpus"], row["model"]) == (corpus, model) and (
            int(row["updates"]) == updates
        ):
            setting = float(row["peak_rate"]), float(row["dropout"])
            of_seed = losses.setdefault(row["seed"], {})
            of_seed[setting] = float(row["valid_loss"])
    for of_seed in losses.values():
        if set(SETTINGS[corpus]) <= set(of_seed):
            return min(SETTINGS[corpus], key=of_seed.get)
    return None


def _add_row(model, setting, seed, options):
    peak, dropout = setting
    key = (options.corpus, model, seed, options.updates, peak, dropout)
    done = {
        (
            *(row["corpus"], row["model"], int(row["seed"])),
            *(int(row["updates"]), float(row["peak_rate"])),
            float(row["dropout"]),
        )
        for row in read_rows(options.output)
    }
    if key not in done:
        row = measure(model, setting, seed, options)
        append_row(options.output, row)
        print(row, flush=True)


def measure(
    model: str, setting: tuple[float, float], seed: int, options
) -> dict:
    """Trains and scores a model, unless it is there, and returns its row."""
    from benchmarks.quality.measuring.trained_run import TrainedRun

    peak, dropout = setting
    preset, overrides = MODELS[model], {"dropout": dropout}
    if model not in CONVOLUTIONAL:
        overrides |= SIZE
    if model == "plain, matched":
        overrides |= _matched_dimensions()
    changes = {
        "name": f"{preset}.{options.corpus}",
        "seed": seed,
        "model.preset": preset,
        "model.overrides": overrides,
        "training.precision": "mixed_bfloat16",
        "training.steps": options.updates,
        "training.batch_tokens": 2048,
        "training.max_shapes": 6,
        "training.validate_every": options.updates,
        "training.learning_rate.peak": peak,
        "training.learning_rate.warmup_steps": options.updates // 10,
        **CORPUS_CHANGES[options.corpus],
    }
    folder = options.work_folder
    directory = (
        folder
        / options.corpus
        / f"{model}, {options.updates} updates, {peak}, {dropout}, seed {seed}"
    )
    run = TrainedRun(RECIPE, directory, folder, changes)
    summary, bleu = run.summary, run.test_bleu()
    last, splits = run.validations()[-1], run.data.manifest["splits"]
    return {
        **provenance("keras", "tensorflow", "sacrebleu"),
        "corpus": options.corpus,
        "train_pairs": splits["train"]["pairs"],
        "test_pairs": splits["test"]["pairs"],
        "model": model,
        "preset": preset,
        "parameters": summary["parameters"],
        "seed": seed,
        "updates": summary["steps"],
        "peak_rate": peak,
        "dropout": dropout,
        "target_tokens": summary["training"]["target_tokens"],
        "minutes": round(summary["training"]["seconds"] / 60, 1),
        "valid_loss": round(float(last["val_loss"]), 4),
        "valid_bleu": round(float(last["val_bleu"]), 2),
        "test_bleu": round(bleu["value"], 2),
        "test_bleu_interval": round(bleu["interval"], 2),
        "bleu_signature": bleu["signature"],
    }


def _matched_dimensions():
    """Width of the plain model with the parameters of role interaction."""
    from keras_deepnmt.recipes import load_recipe
    from keras_deepnmt.zoo.matched import count_role_parameters
    from keras_deepnmt.zoo.matched_baseline import (
        count_parameters,
        matched_dimensions,
    )
    from keras_deepnmt.zoo.role_interaction import NUM_ROLES

    sizes = [load_recipe(RECIPE).data.vocabulary_size] * 2
    plain = {**SIZE, "share_embeddings": True}
    roles = sum(
        count_role_parameters(SIZE["hidden_dim"], NUM_ROLES, directions)
        for directions in (1, 2)
    )
    number = count_parameters(*sizes, **plain) + roles
    return matched_dimensions(number, *sizes, **plain)


def _parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work-folder", type=Path, required=True)
    parser.add_argument("--corpus", choices=SETTINGS, default="tatoeba")
    parser.add_argument(
        "--models", nargs="+", choices=MODELS, default=list(MODELS)
    )
    parser.add_argument(
        "--seeds",
        type=int,
        nargs="+",
        default=[1, 2],
        help="the first one has all settings",
    )
    parser.add_argument("--updates", type=int, default=3000)
    parser.add_argument("--output", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
