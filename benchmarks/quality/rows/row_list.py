"""The rows of `table.py`: which presets are trained on which corpus."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Corpus:
    """A corpus of the table.

    Args:
        title: heading of its table.
        recipes: last part of the names of its recipes, `<preset>.<recipes>`.
        changes: values that replace the recipes', by dotted key.
        note: sentences below its table.
        has_paper_column: whether results of papers may stand beside its rows.
        most_pairs: number of training pairs that a row may have at most.
    """

    title: str
    recipes: str
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    note: str = ""
    has_paper_column: bool = True
    most_pairs: int | None = None


def _iwslt14(split):
    """The two files of a split, in the folder of corpora."""
    return {
        "source": f"iwslt14-de-en/{split}.de",
        "target": f"iwslt14-de-en/{split}.en",
    }


_PAPERS_NOTE = (
    "The papers' data, model sizes and tokenization differ: only the "
    "differences from their plain models can be compared with those here. "
    "Their ± is the standard deviation over several runs."
)
CORPORA = {
    "multi30k": Corpus(
        "Multi30k, English to German", "multi30k_en_de", note=_PAPERS_NOTE
    ),
    "demo": Corpus(
        "Embedded corpus, German to English", "demo_de_en", note=_PAPERS_NOTE
    ),
    # The recipes name the whole corpus, of 160,239 pairs, on which the papers
    # train: their scores are those of another task.
    "iwslt14": Corpus(
        "IWSLT14, German to English, with 47,047 training pairs",
        "iwslt14_de_en",
        changes={
            "data.train": [_iwslt14("train")],
            "data.valid_pairs": 1_000,
            "data.test": _iwslt14("valid"),
            "evaluation.tokenize": "none",
        },
        note="The text is lower-cased and tokenized; the test set is the usual "
        "validation set, and 1,000 of the training pairs are used for "
        "validation. The papers train on all pairs of this corpus; their "
        "scores are not comparable and not shown.",
        has_paper_column=False,
        most_pairs=47_047,
    ),
}
_MULTI30K = (
    "transformer_tiny",
    "conv_seq2seq_tiny",
    "transformer_tiny_matched",
    "layer_aggregation_hierarchical_tiny",
    "layer_aggregation_hierarchical_diversity_tiny",
    "multi_layer_attention_k2_tiny",
    "hybrid_self_attention_sum_tiny",
    "hybrid_self_attention_gated_tiny",
    "fine_grained_layer_attention_tiny",
    "surface_fusion_hard_tiny",
    "surface_fusion_soft_tiny",
    "role_interaction_softmax_tiny",
    "role_interaction_onehot_tiny",
    "everything_tiny",
    "dense_nmt_1_tiny",
    "dense_nmt_2_tiny",
)
_IWSLT14 = (
    "transformer_small",
    # The plain models of the papers.
    "hybrid_self_attention_baseline_small",
    "role_interaction_baseline_small",
    "conv_seq2seq_4l",
    "hybrid_self_attention_gated_small",
    "role_interaction_softmax_small",
    "dense_nmt_1_4l",
    "dense_nmt_2_4l",
)


@dataclasses.dataclass(frozen=True)
class TableRow:
    """One model of the table, trained once.

    Args:
        corpus: key of `CORPORA`.
        preset: preset of the model.
        plain: preset that it is compared with, or `None`.
        seed: seed of the training.
    """

    corpus: str
    preset: str
    plain: str | None
    seed: int

    @property
    def recipe(self) -> str:
        """Name of the bundled recipe."""
        return f"{self.preset}.{CORPORA[self.corpus].recipes}"

    @property
    def plain_recipe(self) -> str | None:
        """Name of the bundled recipe of the plain model."""
        if self.plain is None:
            return None
        return f"{self.plain}.{CORPORA[self.corpus].recipes}"

    def __str__(self):
        return f"{self.recipe}, seed {self.seed}"


def presets_of(corpus: str) -> dict[str, str | None]:
    """Maps each preset of a corpus' table to its plain model, or `None`.

    The plain ones come first, since the others are tested against their
    translations.
    """
    from keras_deepnmt import list_models
    from keras_deepnmt.recipes.bundled import plain_presets

    plain_of = plain_presets()
    presets = {
        "multi30k": _MULTI30K,
        "demo": list_models("*_tiny*"),
        "iwslt14": _IWSLT14,
    }[corpus]
    return {
        name: plain_of.get(name)
        for name in sorted(presets, key=lambda name: name in plain_of)
    }


def table_rows(
    corpus: str, presets: list[str] | None, seeds: int
) -> list[TableRow]:
    """Returns the rows of some presets, or of all, with the seeds 1 to `seeds`.

    All presets are trained with the first seed before the second one.
    """
    plain_of = presets_of(corpus)
    chosen = [name for name in plain_of if presets is None or name in presets]
    return [
        TableRow(corpus, preset, plain_of[preset], seed)
        for seed in range(1, seeds + 1)
        for preset in chosen
    ]


def recipe_sha256(name: str, changes: Mapping[str, Any]) -> str | None:
    """Returns a hash of the values of a bundled recipe, without its seed.

    `changes` are values that replace the recipe's, by dotted key. Values that
    are their defaults do not count, so that a new key with a default changes no
    hash. If there is no such recipe, it is `None`.
    """
    from keras_deepnmt.recipes import list_recipes, load_recipe

    if name not in list_recipes():
        return None
    recipe = load_recipe(name, {**changes, "seed": 0})
    text = json.dumps(recipe, sort_keys=True, default=_changed_values)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _changed_values(made):
    """The values of a dataclass instance that are not their defaults."""
    changed = {}
    for field in dataclasses.fields(made):
        value, default = getattr(made, field.name), field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if value != default:
            changed[field.name] = value
    return changed
