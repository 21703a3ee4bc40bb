"""The table of the papers' claims: their number, ours and a verdict."""

from pathlib import Path
from typing import NamedTuple

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    markdown_table,
    measured_when_and_where,
    with_interval,
)
from benchmarks.tables.trained_tables import models_of, variant
from benchmarks.tables.tuned_tables import (
    TITLES,
    chosen_rows,
    differences,
    plain_of,
)
from keras_deepnmt.evaluation import seed_statistics

QUALITY = Path(__file__).parents[1] / "quality"
RESULTS = QUALITY / "results"
SHOWN = "shown"
NOT_SHOWN = "not shown at this size"
CONTRADICTED = "contradicted at this size"
ONE_SEED = "open: one seed"
_CORPORA = {"demo": "embedded", "multi30k": "Multi30k"}
# What raises BLEU, by the variants of `published_scores.csv`.
_RAISES_BLEU = {
    "hybrid_self_attention_gated": "HySAN, gated sum",
    "hybrid_self_attention_sum": "HySAN, sum",
    "hybrid_self_attention_concat": "HySAN, concatenation",
    "layer_aggregation_hierarchical": "hierarchical aggregation of layers",
    "layer_aggregation_iterative": "iterative aggregation of layers",
    "fine_grained_layer_attention": "fine-grained layer attention",
    "surface_fusion_hard": "SurfaceFusion, hard",
    "surface_fusion_soft": "SurfaceFusion, soft",
    "role_interaction_dense": "role interaction, dense",
    "role_interaction_softmax": "role interaction, softmax",
    "role_interaction_onehot": "role interaction, one-hot",
    "contextualized_embedding": "contextualized embeddings, without roles",
    "transformer_matched": "a larger plain model",
    "dense_nmt_1": "DenseNMT-1",
    "dense_nmt_2": "DenseNMT-2",
}
# Other claims, that a number rises: the claim, its paper, and in
# `claims_summary.csv` the claim, metric, variant and what it is compared with;
# at the end what the paper prints.
_MEASURES = (
    (
        "HySAN, gated sum, learns word order without positions: BLEU",
        "Song et al., 2018",
        ("positions", "valid_bleu", "hybrid, gated_sum", "plain"),
        "IWSLT14 De-En more than +15",
    ),
    (
        "HySAN, sum, learns word order without positions: BLEU",
        "Song et al., 2018",
        ("positions", "valid_bleu", "hybrid, sum", "plain"),
        "",
    ),
    (
        'roles agree with the functions of "der": V-measure above chance, '
        "gain by training",
        "Weissenborn et al., 2019",
        ("roles", "v_measure_over_chance", "softmax", "untrained"),
        "",
    ),
    (
        "the diversity loss makes layers differ: diversity of the encoder",
        "Dou et al., 2018",
        ("diversity", "encoder_diversity", "weight 1", "weight 0"),
        "",
    ),
    (
        "the diversity loss raises BLEU",
        "Dou et al., 2018",
        ("diversity", "valid_bleu", "weight 1", "weight 0"),
        "",
    ),
)
# Percent of updates; Shen et al. (2018) say how many dense models save.
_SAVED = 35


class Finding(NamedTuple):
    """A claim with our number, and the rows that it comes from."""

    claim: str
    paper: str
    published: str
    corpus: str
    ours: str
    seeds: int
    verdict: str
    rows: list


def claims_table():
    """Returns the Markdown blocks of the papers' claims."""
    findings = [*_scores(), *_measures(), *_updates()]
    if not findings:
        return []
    findings.sort(key=lambda found: found.paper)
    headings = [
        "paper",
        "claim",
        "in the paper",
        "corpus",
        "here",
        "seeds",
        "verdict",
    ]
    lines = [
        [
            found.paper,
            found.claim,
            found.published,
            found.corpus,
            found.ours,
            str(found.seeds),
            found.verdict,
        ]
        for found in findings
    ]
    rows = [row for found in findings for row in found.rows]
    return [
        markdown_table(headings, lines),
        "Numbers are differences from the plain model with the same seeds and "
        'batches (for roles of "der" from the model before training, for '
        "diversity from the same model without its loss), or percent of its "
        "updates, and their 95 % interval over the seeds; of a single seed the "
        "difference alone, which decides nothing. Shown or contradicted means "
        "that the interval lies on one side of zero. Models are tiny and have "
        "the plain model's learning rate and dropout, if the corpus does not "
        "say that they are small or have settings of their own; that of "
        "Tatoeba alone is small, too. A difference that the papers report for "
        "larger models and more text need not appear here. All models begin "
        "with random weights, but Dou et al. begin with a trained plain model, "
        "and Weissenborn et al. train one-hot roles from a model with softmax "
        "roles. "
        f"{measured_when_and_where(rows)}",
    ]


def _scores():
    """Differences in test BLEU from the plain model, by corpus."""
    published = {}
    for row in read_rows(QUALITY / "published_scores.csv"):
        published.setdefault(row["variant"], []).append(row)
    table = read_rows(RESULTS / "table.csv")
    for corpus, title in _CORPORA.items():
        for preset, rows in models_of(corpus, table).items():
            name = variant(preset)
            differences = [
                float(row["bleu_difference"])
                for row in rows
                if row["bleu_difference"]
            ]
            if name in _RAISES_BLEU and differences:
                yield Finding(
                    f"{_RAISES_BLEU[name]}: test BLEU",
                    published[name][0]["paper"],
                    "; ".join(map(_published, published[name])),
                    title,
                    *_with_verdict(differences),
                    rows,
                )
    yield from _on_tatoeba(published)
    yield from _with_own_settings(published)


def _on_tatoeba(published):
    """The trained models of the package on the test set of Tatoeba."""
    corpus, plain = "tatoeba_de_en", "transformer_small.tatoeba_de_en"
    rows = {
        row["model"]: row
        for row in read_rows(RESULTS / "trained_models.csv")
        if row["test_set"] == corpus
    }
    for model, row in rows.items():
        name = variant(model.partition(".")[0])
        if name in _RAISES_BLEU and plain in rows:
            difference = float(row["bleu"]) - float(rows[plain]["bleu"])
            yield Finding(
                f"{_RAISES_BLEU[name]}: test BLEU",
                published[name][0]["paper"],
                "; ".join(map(_published, published[name])),
                "Tatoeba",
                *_with_verdict([difference]),
                [row, rows[plain]],
            )


def _with_own_settings(published):
    """Small models, each with a learning rate and dropout of its own."""
    for corpus, title in TITLES.items():
        chosen = chosen_rows(corpus)
        for model, rows in chosen.items():
            name = variant(rows[0]["preset"])
            if model == "plain, matched":
                name = "transformer_matched"
            plain = chosen.get(plain_of(model), [])
            found = differences(rows, plain)
            if name in _RAISES_BLEU and found:
                yield Finding(
                    f"{_RAISES_BLEU[name]}: test BLEU",
                    published[name][0]["paper"],
                    "; ".join(map(_published, published[name])),
                    f"{title.partition(',')[0]}, small, own settings",
                    *_with_verdict(found),
                    [*rows, *plain],
                )


def _published(row):
    """The difference that a paper prints, such as IWSLT14 De-En +1.01."""
    scores = [row[name].partition(" ± ")[0] for name in ("plain_bleu", "bleu")]
    if not scores[0]:
        return f"{row['data']} {scores[1]}"
    return f"{row['data']} {float(scores[1]) - float(scores[0]):+.2f}"


def _with_verdict(differences):
    """Returns the text of the differences, their number and the verdict."""
    if len(differences) == 1:
        return f"{differences[0]:+.1f}", 1, ONE_SEED
    found = seed_statistics(differences)
    return (
        _signed(found.mean, found.interval),
        len(differences),
        _verdict(found.mean, found.interval),
    )


def _signed(mean, interval):
    return ("+" if mean > 0 else "") + with_interval(mean, interval)


def _verdict(mean, interval):
    if abs(mean) <= interval:
        return NOT_SHOWN
    return SHOWN if mean > 0 else CONTRADICTED


def _measures():
    """Differences that were measured in other ways than on a test set."""
    columns = ("claim", "metric", "variant", "against")
    rows = {
        tuple(row[column] for column in columns): row
        for row in read_rows(RESULTS / "claims_summary.csv")
    }
    for claim, paper, key, published in _MEASURES:
        row = rows[key]
        mean, interval = (
            float(row[name]) for name in ("difference", "difference_interval")
        )
        yield Finding(
            claim,
            paper,
            published,
            _CORPORA["demo"],
            _signed(mean, interval),
            int(row["seeds"]),
            _verdict(mean, interval),
            [row],
        )


def _updates():
    """Percent of the updates that dense models save."""
    for row in read_rows(RESULTS / "updates_saved.csv"):
        if row["level"] != "baseline's best":
            continue
        saved, interval = (
            100 * float(row[name]) for name in ("saved", "saved_interval")
        )
        verdict = _verdict(saved, interval)
        if verdict == SHOWN and saved + interval < _SAVED:
            verdict += ", but less"
        yield Finding(
            f"{_RAISES_BLEU[variant(row['model'])]} saves updates",
            "Shen et al., 2018",
            f"WMT14 En-De {_SAVED} %",
            _CORPORA[row["corpus"]],
            f"{with_interval(saved, interval)} %",
            int(row["seeds"]),
            verdict,
            [row],
        )
