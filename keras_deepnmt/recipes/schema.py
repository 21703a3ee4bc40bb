"""What a recipe may say: every key, its type and its default."""

from dataclasses import dataclass, field
from typing import Any

from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.recipes.training_schema import TrainingRecipe
from keras_deepnmt.recipes.value_checks import check_above_zero


@dataclass(frozen=True)
class ModelRecipe:
    """Which network.

    Args:
        preset: a name from `keras_deepnmt.list_models()`.
        overrides: arguments of the model's class that replace the preset's.
    """

    preset: str
    overrides: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DecodingRecipe:
    """How the trained model searches.

    Args:
        num_beams: hypotheses kept; 1 is greedy.
        length_penalty: exponent of the length in a hypothesis' score, which is
            log-probability / ((length_offset + length) / (length_offset + 1))
            ** length_penalty.
        length_offset: 5 is GNMT's, 0 divides by a plain power of the length.
        batch_size: sentences translated together.
    """

    num_beams: int = 4
    length_penalty: float = 0.6
    length_offset: float = 5.0
    batch_size: int = 32

    def __post_init__(self):
        check_above_zero(self, "num_beams", "batch_size")
        if self.length_penalty < 0:
            raise ValueError(
                "`length_penalty` must not be negative. "
                f"Received: {self.length_penalty}"
            )
        if not 0 <= self.length_offset < float("inf"):
            raise ValueError(
                "`length_offset` must be a finite number of at least 0. "
                f"Received: {self.length_offset}. Take 5 for the length "
                "penalty of GNMT, 0 for a plain power of the length."
            )


@dataclass(frozen=True)
class EvaluationRecipe:
    """How translations are scored.

    Args:
        tokenize: sacreBLEU's tokenizer; `none` for text that is tokenised.
        lowercase: whether upper and lower case count as the same.
        metrics: which scores are written.
    """

    tokenize: str = "13a"
    lowercase: bool = False
    metrics: tuple[str, ...] = ("bleu", "chrf", "ter")


@dataclass(frozen=True)
class Recipe:
    """Everything that makes one number reproducible.

    Args:
        name: `<preset>.<corpus>_<source>_<target>`.
        model: which network.
        data: what the corpora are and how they are prepared.
        training: how it is trained.
        decoding: how it searches.
        evaluation: how it is scored.
        seed: seed of weights, dropout and data order.
        resolved: written into a run folder's copy (versions, hashes of the
            data); ignored when a recipe is read.

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
