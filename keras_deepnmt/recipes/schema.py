"""What a recipe may say: every key, its type and its default."""

from dataclasses import dataclass, field
from typing import Any, Literal

from keras_deepnmt.data.prepare_options import PrepareOptions


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
class TrainingRecipe:
    """How the network is trained.

    Args:
        steps: updates of the whole run.
        batch_tokens: most tokens, padding included, on either side of a batch.
        max_shapes: most batch shapes, that is, compilations of the step.
        peak_learning_rate: the rate at the end of the warm-up.
        warmup_steps: updates of the linear rise; the rate then falls with the
            square root of the update.
        adam_beta_1: decay of Adam's mean of gradients.
        adam_beta_2: decay of Adam's mean of squared gradients.
        adam_epsilon: Adam's epsilon.
        global_clipnorm: largest norm of the whole gradient; unlimited if null.
        label_smoothing: mass of the uniform distribution in the labels.
        strategy: `one_device`; or `mirrored`, several devices of one machine.
        replicas: devices of `mirrored`; null takes all accelerators.
        gradient_accumulation_steps: parts of a batch that are computed one
            after another, so that larger batches fit in memory.
        dtype_policy: the type computed in; weights stay float32.
        jit_compile: whether XLA compiles the step.
        validate_every: updates between two validations.
        validation_beams: beams of the BLEU while training; 1 is greedy.
        checkpoint_every: updates between two checkpoints, counted back from
            the last update.
        average_checkpoints: how many of the last checkpoints are averaged into
            the final model; 1 takes the last as it is.
        early_stopping_patience: validations without a better value before the
            run stops; null never stops early.
        early_stopping_metric: what must get better.
    """

    steps: int
    batch_tokens: int = 4096
    max_shapes: int = 8
    peak_learning_rate: float = 0.001
    warmup_steps: int = 4000
    adam_beta_1: float = 0.9
    adam_beta_2: float = 0.98
    adam_epsilon: float = 1e-9
    global_clipnorm: float | None = None
    label_smoothing: float = 0.1
    strategy: Literal["one_device", "mirrored"] = "one_device"
    replicas: int | None = None
    gradient_accumulation_steps: int = 1
    dtype_policy: Literal["float32", "mixed_bfloat16"] = "float32"
    jit_compile: bool = True
    validate_every: int = 1000
    validation_beams: int = 1
    checkpoint_every: int = 1000
    average_checkpoints: int = 1
    early_stopping_patience: int | None = None
    early_stopping_metric: Literal["val_bleu", "val_loss"] = "val_bleu"

    def __post_init__(self):
        for name in (
            "steps batch_tokens max_shapes peak_learning_rate warmup_steps "
            "adam_epsilon global_clipnorm validate_every validation_beams "
            "checkpoint_every average_checkpoints early_stopping_patience "
            "replicas gradient_accumulation_steps"
        ).split():
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(
                    f"`{name}` must be above zero. Received: {value}"
                )
        for name in ("adam_beta_1", "adam_beta_2", "label_smoothing"):
            value = getattr(self, name)
            if not 0 <= value < 1:
                raise ValueError(
                    f"`{name}` must lie in [0, 1). Received: {value}"
                )


@dataclass(frozen=True)
class DecodingRecipe:
    """How the trained model searches.

    Args:
        num_beams: hypotheses kept; 1 is greedy.
        length_penalty: exponent of the length in a hypothesis' score.
        batch_size: sentences translated together.
    """

    num_beams: int = 4
    length_penalty: float = 0.6
    batch_size: int = 32

    def __post_init__(self):
        for name in ("num_beams", "batch_size"):
            value = getattr(self, name)
            if value < 1:
                raise ValueError(
                    f"`{name}` must be above zero. Received: {value}"
                )
        if self.length_penalty < 0:
            raise ValueError(
                "`length_penalty` must not be negative. "
                f"Received: {self.length_penalty}"
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
