"""The `training` part of a recipe: every key, its type and its default."""

from dataclasses import dataclass, field
from typing import Literal

from keras_deepnmt.recipes.training_parts import (
    DistillationRecipe,
    DivergenceRecipe,
    LearningRateRecipe,
    OptimizerRecipe,
    ScheduledSamplingRecipe,
    TemperatureRecipe,
)
from keras_deepnmt.recipes.value_checks import (
    check_above_zero,
    check_fractions,
    check_shares,
)


@dataclass(frozen=True)
class TrainingRecipe:
    """How the network is trained.

    Args:
        steps: updates of the whole run.
        batch_tokens: most tokens, padding included, on either side of a batch;
            or `auto`: those of `effective_batch_tokens`, computed in as few
            parts as fit in memory, which is found by trying.
        effective_batch_tokens: with `auto`, tokens of the batch of an update.
        max_shapes: most batch shapes, that is, compilations of the step.
        optimizer: the rule of the update.
        learning_rate: the rate over the updates.
        initialize_from: folder of another run on the same prepared data; the
            weights that both models share by name and shape begin with its
            values.
        freeze: patterns of weights that do not train, by path, such as
            `encoder*`.
        temperature: how the temperature of the layers that have one falls;
            null leaves it alone.
        label_smoothing: mass of the uniform distribution in the labels.
        r_drop: weight of the divergence between two forwards with different
            dropout (Liang et al., 2021); 0 makes one forward.
        scheduled_sampling: target inputs replaced by predictions.
        distillation: a teacher from another run.
        word_dropout: probability with which a word that the model reads, on
            either side, becomes the unknown word.
        subword_sampling: draws each segmentation anew: the exponent alpha of
            a unigram tokenizer, the merge dropout of a BPE one; null keeps the
            stored ones.
        strategy: `one_device`; `mirrored`, several devices of one machine; or
            `multi_worker`, the machines in TF_CONFIG: the same command is
            started on each, with a run folder that all of them can read.
        replicas: devices of `mirrored`; null takes all accelerators.
        gradient_accumulation_steps: parts of a batch that are computed one
            after another, so that larger batches fit in memory.
        dtype_policy: the type computed in; weights stay float32. With
            `mixed_float16` the loss is scaled, and an update whose gradient
            overflows is skipped.
        jit_compile: whether XLA compiles the step.
        validate_every: updates between two validations.
        validation_beams: beams of the BLEU while training; 1 is greedy.
        validation_budget: most of the wall time that this BLEU may take; where
            all sentences take more, seeded ones are drawn at the first
            validation and kept; null, and `multi_worker`, always take all.
        checkpoint_every: updates between two checkpoints, counted back from
            the last update.
        average_checkpoints: how many of the last checkpoints are averaged into
            the final model; 1 takes the last as it is.
        early_stopping_patience: validations without a better value before the
            run stops; null never stops early.
        early_stopping_metric: what must get better.
        divergence: what is done about a loss that is no number; with
            `multi_worker` the run ends without a rollback.
    """

    steps: int
    batch_tokens: int | Literal["auto"] = 4096
    effective_batch_tokens: int | None = None
    max_shapes: int = 8
    optimizer: OptimizerRecipe = field(default_factory=OptimizerRecipe)
    learning_rate: LearningRateRecipe = field(
        default_factory=LearningRateRecipe
    )
    initialize_from: str | None = None
    freeze: tuple[str, ...] = ()
    temperature: TemperatureRecipe | None = None
    label_smoothing: float = 0.1
    r_drop: float = 0.0
    scheduled_sampling: ScheduledSamplingRecipe | None = None
    distillation: DistillationRecipe | None = None
    word_dropout: float = 0.0
    subword_sampling: float | None = None
    strategy: Literal["one_device", "mirrored", "multi_worker"] = "one_device"
    replicas: int | None = None
    gradient_accumulation_steps: int = 1
    dtype_policy: Literal["float32", "mixed_bfloat16", "mixed_float16"] = (
        "float32"
    )
    jit_compile: bool = True
    validate_every: int = 1000
    validation_beams: int = 1
    validation_budget: float | None = 0.05
    checkpoint_every: int = 1000
    average_checkpoints: int = 1
    early_stopping_patience: int | None = None
    early_stopping_metric: Literal["val_bleu", "val_loss"] = "val_bleu"
    divergence: DivergenceRecipe = field(default_factory=DivergenceRecipe)

    def __post_init__(self):
        check_above_zero(
            self,
            *"steps effective_batch_tokens max_shapes validate_every "
            "validation_beams "
            "checkpoint_every average_checkpoints early_stopping_patience "
            "replicas gradient_accumulation_steps".split(),
        )
        check_fractions(self, "label_smoothing", "word_dropout")
        check_shares(self, "subword_sampling")
        self._check_batch()
        if self.validation_budget is not None:
            check_above_zero(self, "validation_budget")
            check_fractions(self, "validation_budget")
        if not self.r_drop >= 0:
            raise ValueError(
                f"`r_drop` must not be negative. Received: {self.r_drop}"
            )
        averaged = self.optimizer.average_momentum is not None
        if averaged and self.average_checkpoints > 1:
            raise ValueError(
                "`average_checkpoints` must be 1 with `optimizer."
                "average_momentum`, which is an average already. Received: "
                f"{self.average_checkpoints}. Leave one of them out."
            )

    def _check_batch(self):
        effective = self.effective_batch_tokens
        if self.batch_tokens != "auto":
            check_above_zero(self, "batch_tokens")
            if effective is not None:
                raise ValueError(
                    "`effective_batch_tokens` belongs to `batch_tokens: auto`. "
                    f"Received: {effective} with `batch_tokens: "
                    f"{self.batch_tokens}`. Leave it out."
                )
        elif effective is None:
            raise ValueError(
                "`effective_batch_tokens` must be given with `batch_tokens: "
                "auto`. Received: null. Give the tokens of an update's batch."
            )
        elif self.strategy == "multi_worker":
            raise ValueError(
                "`batch_tokens` must be a number with `strategy: "
                "multi_worker`. Received: auto. Find it on one machine."
            )
        elif self.gradient_accumulation_steps != 1:
            raise ValueError(
                "`gradient_accumulation_steps` is found by `batch_tokens: "
                f"auto`. Received: {self.gradient_accumulation_steps}. Leave "
                "it out."
            )
