"""The sections of a recipe: their keys, types and defaults."""

from dataclasses import dataclass, field
from typing import Any

from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.decoding.options import SearchOptions
from keras_deepnmt.recipes.key_checks import check_above_zero
from keras_deepnmt.recipes.training_schema import TrainingRecipe


@dataclass(frozen=True)
class ModelRecipe:
    """The model.

    Args:
        preset: name of a preset, see `keras_deepnmt.list_models()`.
        overrides: arguments of the model's class that replace the preset's.
    """

    preset: str
    overrides: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DecodingRecipe(SearchOptions):
    """How the trained model translates: the search options and a batch size.

    Args:
        batch_size: Number of sentences translated together.
    """

    batch_size: int = 32

    def __post_init__(self):
        super().__post_init__()
        check_above_zero(self, "batch_size")

    def search_options(self) -> SearchOptions:
        """Returns the search options alone, without the batch size."""
        return SearchOptions(**self.as_dict())


@dataclass(frozen=True)
class EvaluationRecipe:
    """How translations are scored.

    Args:
        tokenize: sacreBLEU's tokenizer; `none` for text that is already
            tokenized.
        lowercase: whether case is ignored.
        metrics: names of the scores.
    """

    tokenize: str = "13a"
    lowercase: bool = False
    metrics: tuple[str, ...] = ("bleu", "chrf", "ter")


@dataclass(frozen=True)
class Recipe:
    """Everything that is needed to reproduce a result.

    Args:
        name: `<preset>.<corpus>_<source>_<target>`.
        model: the model.
        data: the corpora and how they are prepared.
        training: how the model is trained.
        decoding: how the model translates.
        evaluation: how translations are scored.
        seed: seed of initial weights, dropout and data order.
        resolved: versions and hashes of the data, written into a run folder's
            copy of the recipe; otherwise ignored.

    Example:
    >>> load_recipe("transformer_tiny.multi30k_en_de").training.steps
    8000
    """

    name: str
    model: ModelRecipe
    data: PrepareOptions
    training: TrainingRecipe
    decoding: DecodingRecipe = field(default_factory=DecodingRecipe)
    evaluation: EvaluationRecipe = field(default_factory=EvaluationRecipe)
    seed: int = 0
    resolved: dict[str, Any] = field(default_factory=dict, compare=False)
