"""The options of the bundled terms of the objective, in a recipe."""

from typing import Annotated, Any

from pydantic import ConfigDict, WrapValidator, field_validator
from typing_extensions import TypedDict

from keras_deepnmt.validation import (
    Count,
    Natural,
    NotNegative,
    Positive,
    Share,
    checked_dataclass,
)


@checked_dataclass
class RDropRecipe:
    """R-Drop: two forwards with different dropout must agree.

    Args:
        alpha: weight of the divergence between the two forwards (Liang et al.,
            2021), at least 0.
    """

    alpha: NotNegative


@checked_dataclass
class ScheduledSamplingRecipe:
    """Scheduled sampling: target inputs replaced by the model's predictions.

    The probability of replacing an input rises linearly from 0 at `start_step`
    to `probability` at `end_step`. The tags that targets begin with by
    `data.tag_side: target` are kept.

    Args:
        probability: highest probability of replacing an input, in [0, 1].
        start_step: update at which the rise begins. Defaults to 0.
        end_step: update at which it ends, at least `start_step`. Defaults to 0.
    """

    probability: Share
    start_step: Natural = 0
    end_step: Natural = 0

    @field_validator("end_step")
    def _check_end(cls, end, info):
        start = info.data.get("start_step", 0)
        if end < start:
            raise ValueError(
                "`end_step` must not be before `start_step`. Received: "
                f"start_step {start}, end_step {end}"
            )
        return end


@checked_dataclass
class DistillationRecipe:
    """Word-level knowledge distillation from the model of a finished run.

    Args:
        teacher: run folder of the teacher, which must have the tokenizers of
            the data.
        weight: weight of the teacher's term in the loss, in [0, 1]; the
            compiled loss has the weight `1 - weight`. Defaults to 0.5.
    """

    teacher: str
    weight: Share = 0.5


@checked_dataclass
class GuidedAlignmentRecipe:
    """Guided alignment: attention to the source that follows word alignments.

    The alignments are those that `data.train` names, in `alignments`. Without
    them they are those of a statistical model that is learned from the training
    pairs when the run starts.

    Args:
        weight: weight of the alignments in the loss (Chen et al., 2016), at
            least 0. Defaults to 0.05.
        layer: decoder block whose attention is guided, from 1; null guides the
            one that alignments are read from: the last but one, or the last of
            two.
    """

    weight: NotNegative = 0.05
    layer: Count | None = None


@checked_dataclass
class MinimumRiskRecipe:
    """Minimum risk training: the expected cost of the model's translations.

    Start from a trained model (`training.initialize_from`), with a small
    learning rate.

    Args:
        num_samples: translations that are drawn for each source, beside the
            reference, at least 1 (Shen et al., 2016). Defaults to 8.
        alpha: sharpness of the distribution over the candidates, above 0.
            Defaults to 0.005.
        weight: weight of the risk in the loss, in [0, 1]; the compiled loss has
            the weight `1 - weight`. Defaults to 1.
        temperature: sampling temperature, above 0. Defaults to 1.
        max_length_ratio: length of the longest translation that is drawn,
            relative to the longest reference of a batch, above 0. Defaults to
            1.5.
    """

    num_samples: Count = 8
    alpha: Positive = 0.005
    weight: Share = 1.0
    temperature: Positive = 1.0
    max_length_ratio: Positive = 1.5


class _Terms(TypedDict, total=False):
    """Terms of the objective."""

    __pydantic_config__ = ConfigDict(extra="allow")

    r_drop: RDropRecipe | None
    scheduled_sampling: ScheduledSamplingRecipe | None
    distillation: DistillationRecipe | None
    guided_alignment: GuidedAlignmentRecipe | None
    minimum_risk: MinimumRiskRecipe | None


def _check_terms(value: Any, check: Any) -> dict[str, Any]:
    """Keeps the order of the terms, which is that of their computation."""
    made = check(value)
    for name, options in made.items():
        if name not in _Terms.__annotations__ and not isinstance(
            options, dict | None
        ):
            raise ValueError(
                f"`{name}` must be a mapping of the term's arguments. "
                f"Received: {options!r}"
            )
    return {name: made[name] for name in value if made[name] is not None}


TermsRecipe = Annotated[_Terms, WrapValidator(_check_terms)]
