"""The `training` section of a recipe: its keys, their types and defaults."""

from dataclasses import field
from typing import Any, ClassVar, Literal

from pydantic import field_validator

from keras_deepnmt.recipes.changing_keys import (
    Fixed,
    Free,
    OfFinalModel,
    OnRequest,
)
from keras_deepnmt.recipes.choices import Choice
from keras_deepnmt.recipes.objective_schema import TermsRecipe
from keras_deepnmt.recipes.optimizer_schema import (
    LearningRateRecipe,
    OptimizerRecipe,
)
from keras_deepnmt.recipes.stage_schema import StageRecipe, check_stages
from keras_deepnmt.validation import (
    AboveOne,
    Count,
    Flag,
    Fraction,
    Natural,
    OpenFraction,
    OwnClass,
    Positive,
    Share,
    checked_dataclass,
    integer,
)


@checked_dataclass
class DivergenceRecipe:
    """When a run has diverged and goes back to an earlier checkpoint.

    Args:
        threshold: a loss above `threshold` times the running mean of the loss
            is too high; above 1. Null checks only for a non-finite loss.
        patience: number of consecutive updates with too high a loss after
            which training has diverged. Defaults to 10.
        decay: decay rate of the running mean of the loss, in (0, 1). Defaults
            to 0.99.
        rate_factor: factor on the learning rate at each rollback, in (0, 1).
            Defaults to 0.5.
        most_rollbacks: maximum number of rollbacks, after which a divergence
            ends the run. Defaults to 3.
        check_every: number of updates whose losses are read together, since
            reading one waits for the device. They are also read before each
            checkpoint and validation. Defaults to 10.
    """

    threshold: AboveOne | None = None
    patience: Count = 10
    decay: OpenFraction = 0.99
    rate_factor: OpenFraction = 0.5
    most_rollbacks: Natural = 3
    check_every: Count = 10


@checked_dataclass
class TemperatureRecipe:
    """How the temperature of relaxed samples (Gumbel-softmax) decreases.

    Args:
        start: temperature at the first update. Defaults to 5.
        factor: factor on it at each update, in (0, 1). Defaults to 0.9995.
        minimum: lowest temperature, above 0, at most `start`. Defaults to 0.5.
    """

    start: Positive = 5.0
    factor: OpenFraction = 0.9995
    minimum: Positive = 0.5

    @field_validator("minimum")
    def _check_minimum(cls, minimum, info):
        start = info.data.get("start", minimum)
        if minimum > start:
            raise ValueError(
                "`minimum` must be at most `start`. Received: "
                f"{minimum} with `start: {start}`"
            )
        return minimum


@checked_dataclass
class TrainingRecipe:
    """How the model is trained.

    Args:
        steps: number of updates of the whole run.
        batch_tokens: maximum number of tokens, padding included, on either
            side of a batch; or `auto`: batches of `effective_batch_tokens`,
            computed in as few parts as fit in memory, found by trying.
            Defaults to 4096.
        effective_batch_tokens: tokens in the batch of an update; required with
            `batch_tokens: auto`, refused otherwise.
        max_shapes: maximum number of batch shapes; the step is compiled once
            per shape. Null takes the square root of `steps / 100` at the start
            of a run, rounded down, from 1 to 16.
        optimizer: the optimizer.
        learning_rate: the learning rate schedule.
        initialize_from: folder of another run on the same prepared data, or a
            preset folder with the tokenizers of the data. Weights that are the
            same part of both models and have the same shape start with its
            values, and a report lists them; null starts from random weights.
        freeze: patterns of weight paths, such as `encoder*`; matching weights
            are not trained.
        temperature: how the temperature of one-hot roles decreases; `{}` is the
            schedule of Weissenborn et al. (2019), null leaves it unchanged.
        loss: loss of each token: `label_smoothed_cross_entropy`,
            `cross_entropy`, a name given to `losses.register_loss`, or a class
            in a file of `import`. Defaults to `label_smoothed_cross_entropy`.
        loss_options: arguments of such a loss, such as `{gamma: 2}`.
        label_smoothing: probability mass that `label_smoothed_cross_entropy`
            moves from the label to the uniform distribution, in [0, 1).
            Defaults to 0.1.
        objective: terms that change the loss, in their order: a mapping from
            each name to the term's options, such as `{r_drop: {alpha: 5.0}}`.
            The names are `r_drop`, `scheduled_sampling`, `distillation`,
            `guided_alignment`, `minimum_risk`, those given to
            `models.register_objective_term`, and classes in files of `import`.
            Null in the place of the options leaves a term out.
        word_dropout: probability, in [0, 1), of replacing a token of the source
            or the target input by the unknown token; tags and other
            user-defined symbols are kept. Defaults to 0.
        subword_sampling: samples a new segmentation each time a sentence is
            used, with this exponent alpha of a unigram tokenizer or this merge
            dropout of a BPE tokenizer, in [0, 1]; null uses the stored
            segmentations.
        strategy: `one_device`; `mirrored`, several devices of one machine; or
            `multi_worker`, the machines in TF_CONFIG: start the same command
            on each, with a run folder that all of them can read. Defaults to
            `one_device`.
        replicas: number of devices of `mirrored`; null takes all accelerators.
        gradient_accumulation_steps: number of parts of a batch whose gradients
            are computed one after another, so that larger batches fit in
            memory. Defaults to 1.
        activation_checkpointing: whether an update keeps only the inputs of the
            encoder's and decoder's blocks and computes each block again in the
            backward pass, so that larger batches and deeper models fit in
            memory; updates are the same, and take longer. Defaults to false.
        precision: data type of the computation: `float32`, `mixed_bfloat16`
            or `mixed_float16`; weights stay float32. `auto` is `mixed_bfloat16`
            where products in it are faster, on GPUs since Ampere and, with
            TensorFlow, on processors with AVX512-BF16 or AMX, and `float32`
            elsewhere; a run keeps what it began with. With `mixed_float16` the
            loss is scaled, and an update whose gradient overflows is skipped;
            a run cannot change to it, or from it. Defaults to `float32`.
        jit_compile: whether XLA compiles the step and the searches of the run.
            Defaults to true.
        validate_every: updates between two validations. Defaults to 1000.
        validation_beams: number of beams for the BLEU score during training; 1
            is greedy search. Defaults to 1.
        validation_budget: maximum fraction of the wall time, in (0, 1), spent
            on this BLEU score. If translating all sentences takes longer, a
            seeded sample is drawn at the first validation and kept. Null always
            translates all sentences, as `multi_worker` does. Defaults to 0.05.
        checkpoint_every: number of updates between two checkpoints, counted
            back from the last update. Defaults to 1000.
        final_model: which weights become the final model: `best`, the
            checkpoint of the best validation; `average_last`, the mean of the
            last `average_checkpoints` checkpoints; or `average_best`, the mean
            of the `average_checkpoints` checkpoints with the best validations,
            wherever in the run they are. Defaults to `best` with
            `early_stopping_patience`, which allows no `average_last`, and to
            `average_last` without.
        average_checkpoints: number of checkpoints that `average_last` and
            `average_best` take the mean of; 1 takes the last one, or the best.
            Defaults to 1.
        early_stopping_patience: validations without a better value before the
            run stops; null: never.
        early_stopping_metric: the value that must improve: `val_bleu` or
            `val_loss`; the best validation is the one with the best value.
            Defaults to `val_bleu`.
        divergence: when a run has diverged and goes back to an earlier
            checkpoint; with `multi_worker` it ends instead.
        stages: stages of training that follow each other, each with weights of
            the corpora and changes to their text; the last one lasts until the
            last update. Defaults to one stage, of the data as they are.
        callbacks: your own Keras callbacks, in the order in which they are
            called: class names, or mappings from a name to the arguments of its
            class, such as `{PrintRate: {every: 100}}`. A class is in a file of
            `import`, or in an installed package and named with its module. An
            epoch of a callback ends with a validation. Defaults to none.
    """

    choice: ClassVar = Choice(
        "loss",
        {
            "label_smoothed_cross_entropy": {"label_smoothing": 0.1},
            "cross_entropy": {},
        },
        others=("loss_options",),
    )

    alternatives: ClassVar = {"batch_tokens": ("effective_batch_tokens",)}
    # Keys whose default another key decides.
    causes: ClassVar = {"final_model": "early_stopping_patience"}

    steps: Free[Count]
    batch_tokens: OnRequest[Count | Literal["auto"]] = 4096
    effective_batch_tokens: OnRequest[Count | None] = None
    max_shapes: OnRequest[integer(1, 255) | None] = None
    optimizer: OnRequest[OptimizerRecipe] = field(
        default_factory=OptimizerRecipe
    )
    learning_rate: OnRequest[LearningRateRecipe] = field(
        default_factory=LearningRateRecipe
    )
    initialize_from: Fixed[str | None] = None
    freeze: Fixed[tuple[str, ...]] = ()
    temperature: OnRequest[TemperatureRecipe | None] = None
    loss: OnRequest[str] = "label_smoothed_cross_entropy"
    loss_options: OnRequest[dict[str, Any]] = field(default_factory=dict)
    label_smoothing: OnRequest[Fraction | None] = None
    objective: OnRequest[TermsRecipe] = field(default_factory=dict)
    word_dropout: OnRequest[Fraction] = 0.0
    subword_sampling: OnRequest[Share | None] = None
    strategy: OnRequest[Literal["one_device", "mirrored", "multi_worker"]] = (
        "one_device"
    )
    replicas: OnRequest[Count | None] = None
    gradient_accumulation_steps: OnRequest[Count] = 1
    activation_checkpointing: OnRequest[Flag] = False
    precision: OnRequest[
        Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"]
    ] = "float32"
    jit_compile: OnRequest[Flag] = True
    validate_every: Free[Count] = 1000
    validation_beams: Free[Count] = 1
    validation_budget: Free[OpenFraction | None] = 0.05
    checkpoint_every: Free[Count] = 1000
    final_model: OfFinalModel[
        Literal["best", "average_last", "average_best"] | None
    ] = field(
        default=None,
        metadata={
            "when_left_out": "`best` with `early_stopping_patience`, otherwise "
            "`average_last`"
        },
    )
    average_checkpoints: OfFinalModel[Count] = 1
    early_stopping_patience: Free[Count | None] = None
    early_stopping_metric: OfFinalModel[Literal["val_bleu", "val_loss"]] = (
        "val_bleu"
    )
    divergence: OnRequest[DivergenceRecipe] = field(
        default_factory=DivergenceRecipe
    )
    stages: Fixed[list[StageRecipe]] = field(default_factory=list)
    callbacks: Free[list[OwnClass]] = field(default_factory=list)

    _check_choice = choice.validator()

    @field_validator("average_checkpoints")
    def _check_average(cls, number, info):
        optimizer = info.data.get("optimizer")
        if number > 1 and optimizer and optimizer.average_momentum is not None:
            raise ValueError(
                "`average_checkpoints` must be 1 with `optimizer."
                "average_momentum`, which is an average already. Received: "
                f"{number}. Leave one of them out."
            )
        return number

    @field_validator("stages")
    def _check_stages(cls, stages):
        check_stages(stages)
        return stages

    def __post_init__(self):
        self._check_batch()
        self._choose_final_model()

    def _choose_final_model(self):
        stops_early = self.early_stopping_patience is not None
        if self.final_model is None:
            default = "best" if stops_early else "average_last"
            # The run folder's copy of the recipe holds every value.
            object.__setattr__(self, "final_model", default)
        elif stops_early and self.final_model == "average_last":
            raise ValueError(
                "`final_model` must be best or average_best with "
                "`early_stopping_patience`, since the last checkpoints come "
                "after the best validation. Received: average_last"
            )

    def _check_batch(self):
        effective = self.effective_batch_tokens
        if self.batch_tokens != "auto":
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
