"""The `training` section of a recipe: its keys, their types and defaults."""

from dataclasses import dataclass, field
from typing import Any, Literal


def check_above_zero(recipe, *names: str) -> None:
    """Checks values that must be above zero where they are given.

    Args:
        recipe: a part of a recipe.
        *names: its keys.

    Raises:
        ValueError: if one is zero or below.

    Example:
    >>> check_above_zero(LearningRateRecipe(), "peak", "warmup_steps")
    """
    for name in names:
        value = getattr(recipe, name)
        if value is not None and not value > 0:
            raise ValueError(f"`{name}` must be above zero. Received: {value}")


def check_fractions(recipe, *names: str) -> None:
    """Checks values that must lie in [0, 1) where they are given.

    Args:
        recipe: a part of a recipe.
        *names: its keys.

    Raises:
        ValueError: if one does not.

    Example:
    >>> check_fractions(OptimizerRecipe(), "beta_1", "beta_2")
    """
    for name in names:
        value = getattr(recipe, name)
        if value is not None and not 0 <= value < 1:
            raise ValueError(f"`{name}` must lie in [0, 1). Received: {value}")


def take_keys(recipe, choice, keys):
    """Fills in what a choice means by default, refuses other choices' keys.

    Args:
        recipe: a part of a recipe.
        choice: the key that chooses.
        keys: dict from each choice to the keys that belong to it, and their
            defaults.

    Raises:
        ValueError: if a key of another choice is given.

    Example:
    >>> take_keys(LearningRateRecipe("plateau"), "schedule", {"plateau": {}})
    """
    chosen = getattr(recipe, choice)
    for name in {name for names in keys.values() for name in names}:
        value = getattr(recipe, name)
        if name in keys[chosen]:
            if value is None:
                # A run's copy of its recipe says everything outright.
                object.__setattr__(recipe, name, keys[chosen][name])
        elif value is not None:
            owners = " or ".join(
                k for k, names in keys.items() if name in names
            )
            raise ValueError(
                f"`{name}` belongs to `{choice}: {owners}`. Received: "
                f"{value} with `{choice}: {chosen}`. Leave it out."
            )


def check_shares(recipe, *names: str) -> None:
    """Checks values that must lie in [0, 1] where they are given.

    Args:
        recipe: a part of a recipe.
        *names: its keys.

    Raises:
        ValueError: if one does not.

    Example:
    >>> check_shares(DistillationRecipe("runs/teacher"), "weight")
    """
    for name in names:
        value = getattr(recipe, name)
        if value is not None and not 0 <= value <= 1:
            raise ValueError(f"`{name}` must lie in [0, 1]. Received: {value}")


# The keys that mean something to one kind of optimizer or schedule alone, with
# the values they then have by default.
_OPTIMIZER_KEYS: dict[str, dict[str, Any]] = {
    "adam": {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9},
    "adamw": {
        "beta_1": 0.9,
        "beta_2": 0.98,
        "epsilon": 1e-9,
        "weight_decay": 0.01,
    },
    "nesterov": {"momentum": 0.99},
}
_SCHEDULE_KEYS: dict[str, dict[str, Any]] = {
    "inverse_square_root": {"peak": 0.001, "warmup_steps": 4000},
    "noam": {"scale": 1.0, "warmup_steps": 4000},
    "constant": {"peak": 0.001, "warmup_steps": 1},
    "plateau": {
        "peak": 0.001,
        "warmup_steps": 1,
        "divide_by": 10.0,
        "minimum": 1e-4,
        "keep_dividing": False,
    },
}


@dataclass(frozen=True)
class OptimizerRecipe:
    """The rule that turns gradients into updates.

    Args:
        name: `adam`; `adamw`, whose weights decay, biases and norms excepted;
            or `nesterov`, accelerated gradient descent.
        beta_1: decay of the mean of gradients of `adam` and `adamw`, 0.9 by
            default.
        beta_2: decay of their mean of squared gradients, 0.98 by default.
        epsilon: their epsilon, 1e-9 by default.
        weight_decay: share of the weights, times the rate, that an update of
            `adamw` takes away; 0.01 by default.
        momentum: share of the velocity that `nesterov` keeps; 0.99 by default.
        global_clipnorm: largest norm of the whole gradient; unlimited if null.
        average_momentum: if given, an exponential moving average of the
            weights is validated and becomes the final model; 0.999 averages
            the last thousand updates or so.
    """

    name: Literal["adam", "adamw", "nesterov"] = "adam"
    beta_1: float | None = None
    beta_2: float | None = None
    epsilon: float | None = None
    weight_decay: float | None = None
    momentum: float | None = None
    global_clipnorm: float | None = None
    average_momentum: float | None = None

    def __post_init__(self):
        take_keys(self, "name", _OPTIMIZER_KEYS)
        check_above_zero(
            self,
            *"epsilon weight_decay global_clipnorm average_momentum".split(),
        )
        check_fractions(
            self, "beta_1", "beta_2", "momentum", "average_momentum"
        )


@dataclass(frozen=True)
class LearningRateRecipe:
    """The learning rate over the updates.

    Args:
        schedule: `inverse_square_root`: from the end of the warm-up the rate
            falls with the square root of the update; `noam`: the same, with
            the peak `scale / sqrt(hidden_dim * warmup_steps)` (Vaswani et al.,
            2017, Equation 3); `constant`: it stays; or `plateau`: it is
            divided each time the validation loss increases.
        peak: the rate at the end of the warm-up; 0.001 by default.
        scale: factor on the rate of `noam`; 1 by default.
        warmup_steps: updates of the linear rise; by default 4000 of
            `inverse_square_root` and `noam`, and 1, that is none, of the
            others.
        divide_by: what `plateau` divides by; 10 by default.
        minimum: rate under which `plateau` ends the run; 1e-4 by default.
        keep_dividing: whether `plateau` divides at every validation after the
            first increase; false by default.
    """

    schedule: Literal["inverse_square_root", "noam", "constant", "plateau"] = (
        "inverse_square_root"
    )
    peak: float | None = None
    scale: float | None = None
    warmup_steps: int | None = None
    divide_by: float | None = None
    minimum: float | None = None
    keep_dividing: bool | None = None

    def __post_init__(self):
        take_keys(self, "schedule", _SCHEDULE_KEYS)
        check_above_zero(self, "peak", "scale", "warmup_steps", "minimum")
        if self.divide_by is not None and not self.divide_by > 1:
            raise ValueError(
                f"`divide_by` must be above 1. Received: {self.divide_by}"
            )


@dataclass(frozen=True)
class DivergenceRecipe:
    """What is done about a loss that is no number, or far too high.

    Args:
        threshold: times its running mean that a loss is too high; null looks
            only for a loss that is not finite.
        patience: updates one after another whose loss is too high.
        decay: decay of the running mean.
        rate_factor: what a rollback multiplies the learning rate by.
        most_rollbacks: rollbacks after which the run ends.
    """

    threshold: float | None = None
    patience: int = 10
    decay: float = 0.99
    rate_factor: float = 0.5
    most_rollbacks: int = 3

    def __post_init__(self):
        check_above_zero(self, "patience", "decay", "rate_factor")
        check_fractions(self, "decay", "rate_factor")
        if self.threshold is not None and not self.threshold > 1:
            raise ValueError(
                f"`threshold` must be above 1. Received: {self.threshold}"
            )
        if self.most_rollbacks < 0:
            raise ValueError(
                "`most_rollbacks` must not be negative. "
                f"Received: {self.most_rollbacks}"
            )


@dataclass(frozen=True)
class TemperatureRecipe:
    """A temperature of relaxed samples that falls with the updates.

    Args:
        start: temperature of the first update.
        factor: what each update multiplies it by.
        minimum: what it does not fall below.
    """

    start: float = 5.0
    factor: float = 0.9995
    minimum: float = 0.5

    def __post_init__(self):
        check_above_zero(self, "start", "factor", "minimum")
        check_fractions(self, "factor")
        if self.minimum > self.start:
            raise ValueError(
                "`minimum` must be at most `start`. Received: "
                f"{self.minimum} with `start: {self.start}`"
            )


@dataclass(frozen=True)
class ScheduledSamplingRecipe:
    """Target inputs replaced by the model's own predictions.

    Args:
        probability: the largest share that is replaced.
        start_step: update from which on the share grows linearly.
        end_step: update from which on it stays.
    """

    probability: float
    start_step: int = 0
    end_step: int = 0

    def __post_init__(self):
        check_shares(self, "probability")
        if not 0 <= self.start_step <= self.end_step:
            raise ValueError(
                "`end_step` must not be before `start_step`, nor that below "
                f"zero. Received: start_step {self.start_step}, end_step "
                f"{self.end_step}"
            )


@dataclass(frozen=True)
class DistillationRecipe:
    """Learning from the distributions of a finished run's model.

    Args:
        run: the teacher's run folder; its tokenizers must be those of the
            data.
        weight: share of the teacher's term in the loss.
    """

    run: str
    weight: float = 0.5

    def __post_init__(self):
        check_shares(self, "weight")


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
