"""Tests what the papers claim, on small models of the embedded corpus.

    python benchmarks/quality/claims.py
    python benchmarks/quality/claims.py --only positions --seeds 3

For every claim, variants of one small model are trained on the same batches in
the same order, with the same seeds:

*   `positions` (Song et al., 2018): an encoder without position encodings
    does not know the order of words. Hybrid self-attention with all four
    branches, whose outputs are summed with or without gates, is compared with
    plain attention, and with plain attention with positions. The decoder is
    plain in all variants; its causal mask shows it the order.
*   `roles` (Weissenborn et al., 2019): roles represent what a word does in a
    sentence. Measured is the V-measure of the most probable role of each
    German "der" and its grammatical function, which the corpus knows: for soft
    roles, for one-hot roles fine-tuned from them, and for a model before
    training, whose LSTM sees the context as well. `chance` is the V-measure of
    shuffled roles; that of the token alone is 0, because all "der" have one
    embedding.
*   `diversity` (Dou et al., 2018): with the diversity loss, the layers of a
    hierarchically aggregated model differ more. Layers of a model before
    training differ as well.

One row per seed, variant and metric is appended to `results/claims.csv`;
variants that have rows of the same commit and number of updates are skipped.
Means over the seeds, and means of the paired differences from a claim's first
variant, are written to `results/claims_summary.csv`, with 95 % intervals by
Student's t.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.quality.measuring.claims_summary import summarize
from benchmarks.shared.result_rows import (
    append_rows,
    git_commit,
    provenance,
    read_rows,
)

UPDATES = 1_500
NUM_ROLES = 16
# Updates of fine-tuning one-hot roles, per update of training soft roles.
FINE_TUNING = 0.5


def measure_positions(corpus, variant, seed, updates):
    """Trains one variant of the claim on positions."""
    from benchmarks.quality.measuring import claim_models

    options = {"position_encoding": None}
    if variant == "plain, positions":
        options = {}
    elif variant != "plain":
        from keras_deepnmt.layers import HybridSelfAttention

        options["encoder_self_attention"] = HybridSelfAttention(
            claim_models.DIMENSIONS["num_heads"],
            fusion=variant.removeprefix("hybrid, "),
            gate_reduction=8,
        )
    model = claim_models.make_model(corpus, seed, **options)
    seconds = claim_models.train(corpus, model, seed, updates)
    yield variant, model, seconds, claim_models.scores(corpus, model)


def measure_roles(corpus, variant, seed, updates):
    """Trains soft roles, then one-hot roles from them: all variants."""
    from benchmarks.quality.measuring import claim_models
    from keras_deepnmt.training import (
        Constant,
        TemperatureDecay,
        copy_shared_weights,
    )

    soft = claim_models.make_model(corpus, seed, **_roles("softmax"))
    yield "untrained", soft, 0.0, _agreement(corpus, soft, seed)
    seconds = claim_models.train(corpus, soft, seed, updates)
    values = _agreement(corpus, soft, seed) | claim_models.scores(corpus, soft)
    yield "softmax", soft, seconds, values
    hard = claim_models.make_model(corpus, seed, **_roles("onehot"))
    copy_shared_weights(soft, hard)
    updates = round(FINE_TUNING * updates)
    # The temperature falls from 5 to 0.5, as in the paper, in three quarters
    # of the updates.
    decay = TemperatureDecay(5.0, 0.1 ** (1 / (0.75 * updates)), 0.5)
    rate = Constant(claim_models.PEAK_RATE / 5)
    seconds += claim_models.train(
        corpus, hard, seed + 1_000, updates, rate, [decay]
    )
    values = _agreement(corpus, hard, seed) | claim_models.scores(corpus, hard)
    yield "onehot", hard, seconds, values


def _roles(assignment):
    from keras_deepnmt.layers import RoleInteraction

    return {
        "source_embedding_layer": RoleInteraction(
            NUM_ROLES, assignment, dropout=0.1
        ),
        "target_embedding_layer": RoleInteraction(
            NUM_ROLES, assignment, dropout=0.1, bidirectional=False
        ),
    }


def _agreement(corpus, model, seed):
    from benchmarks.quality.measuring import claim_models
    from keras_deepnmt.analysis import v_measure, v_measure_by_chance

    functions, roles = claim_models.roles_of_der(corpus, model)
    agreement = v_measure(functions, roles)
    chance = v_measure_by_chance(functions, roles, seed)
    return {
        "v_measure": agreement,
        "v_measure_chance": chance,
        "v_measure_over_chance": agreement - chance,
        "v_measure_token": v_measure(functions, ["der"] * len(functions)),
        "roles_played": len(set(roles)),
        "der_tokens": len(functions),
    }


def measure_diversity(corpus, variant, seed, updates):
    """Trains an aggregated model with one weight of the diversity loss."""
    from benchmarks.quality.measuring import claim_models
    from keras_deepnmt.layers import LayerAggregation, LayerDiversity

    weight = float(variant.removeprefix("weight ").removesuffix(", untrained"))
    model = claim_models.make_model(
        corpus,
        seed,
        num_encoder_layers=4,
        num_decoder_layers=4,
        encoder_aggregation=LayerAggregation("hierarchical", dropout=0.0),
        decoder_aggregation=LayerAggregation("hierarchical", dropout=0.0),
        layer_diversity=LayerDiversity(weight),
    )
    if variant.endswith("untrained"):
        diversity = claim_models.diversity_of_layers(corpus, model)
        yield variant, model, 0.0, diversity
        return
    seconds = claim_models.train(corpus, model, seed, updates)
    diversity = claim_models.diversity_of_layers(corpus, model)
    values = diversity | claim_models.scores(corpus, model)
    yield variant, model, seconds, values


# Variants of each claim; the others are compared with the first.
CLAIMS = {
    "positions": (
        measure_positions,
        ["plain", "hybrid, gated_sum", "hybrid, sum", "plain, positions"],
    ),
    "roles": (measure_roles, ["untrained", "softmax", "onehot"]),
    "diversity": (
        measure_diversity,
        ["weight 0", "weight 1", "weight 0, untrained"],
    ),
}
KEY = ("commit", "claim", "variant", "seed", "updates")


def missing_variants(rows, commit, claim, seed, updates):
    """Returns the variants of a claim that have no row yet."""
    done = {tuple(row[name] for name in KEY) for row in rows}
    return [
        variant
        for variant in CLAIMS[claim][1]
        if (commit, claim, variant, str(seed), str(updates)) not in done
    ]


def measure(corpus, claim, seed, updates, output):
    """Measures the missing variants of a claim and seed, and appends them."""
    import keras

    function, variants = CLAIMS[claim]
    missing = missing_variants(
        read_rows(output), git_commit(), claim, seed, updates
    )
    # One call measures all variants of roles.
    to_train = missing if claim != "roles" else missing[:1]
    for variant in to_train:
        for name, model, seconds, numbers in function(
            corpus, variant, seed, updates
        ):
            if name not in missing:
                continue
            append_rows(
                output,
                [
                    {
                        **provenance("tensorflow", "keras"),
                        "claim": claim,
                        "variant": name,
                        "seed": seed,
                        "updates": updates,
                        "parameters": model.count_params(),
                        "seconds": round(seconds, 1),
                        "metric": metric,
                        "value": round(value, 5),
                    }
                    for metric, value in numbers.items()
                ],
            )
            values = ", ".join(f"{k} {v:.4g}" for k, v in numbers.items())
            print(f"{claim}, {name}, seed {seed}, {seconds:.0f} s: {values}")
        keras.backend.clear_session()


def main():
    """Measures what is missing, and writes the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=CLAIMS)
    parser.add_argument(
        "--seeds", type=int, default=5, help="number of seeds: 1, 2, ... N"
    )
    parser.add_argument("--updates", type=int, default=UPDATES)
    parser.add_argument(
        "--folder",
        type=Path,
        help="where to keep the prepared corpus (default: a temporary folder)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "claims.csv",
    )
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from benchmarks.quality.measuring.claim_models import DemoCorpus

    with tempfile.TemporaryDirectory() as temporary:
        corpus = DemoCorpus(options.folder or Path(temporary))
        for seed in range(1, options.seeds + 1):
            for claim in options.only or CLAIMS:
                measure(corpus, claim, seed, options.updates, options.output)
    summary = options.output.with_name(f"{options.output.stem}_summary.csv")
    summary.unlink(missing_ok=True)
    variants_of = {claim: variants for claim, (_, variants) in CLAIMS.items()}
    rows = summarize(read_rows(options.output), variants_of)
    append_rows(summary, rows)


if __name__ == "__main__":
    main()
