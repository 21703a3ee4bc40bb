"""The options of the bundled terms of the objective, in a recipe."""

from dataclasses import dataclass

from keras_deepnmt.recipes.key_checks import check_not_negative, check_shares


@dataclass(frozen=True)
class RDropRecipe:
    """R-Drop: two forwards with different dropout must agree.

    Args:
        alpha: weight of the divergence between the two forwards (Liang et al.,
            2021), at least 0.
    """

    alpha: float

    def __post_init__(self):
        check_not_negative(self, "alpha")


@dataclass(frozen=True)
class ScheduledSamplingRecipe:
    """Scheduled sampling: target inputs replaced by the model's predictions.

    The probability of replacing an input rises linearly from 0 at `start_step`
    to `probability` at `end_step`.

    Args:
        probability: highest probability of replacing an input, in [0, 1].
        start_step: update at which the rise begins. Defaults to 0.
        end_step: update at which it ends, at least `start_step`. Defaults to 0.
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
    """Word-level knowledge distillation from the model of a finished run.

    Args:
        teacher: run folder of the teacher, which must have the tokenizers of
            the data.
        weight: weight of the teacher's term in the loss, in [0, 1]; the
            compiled loss has the weight `1 - weight`. Defaults to 0.5.
    """

    teacher: str
    weight: float = 0.5

    def __post_init__(self):
        check_shares(self, "weight")


# Terms that users register have a mapping of their arguments instead.
TERM_SECTIONS = {
    "r_drop": RDropRecipe,
    "scheduled_sampling": ScheduledSamplingRecipe,
    "distillation": DistillationRecipe,
}
