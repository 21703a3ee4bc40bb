"""The stages of a training, in a recipe."""

from dataclasses import field

from keras_deepnmt.validation import (
    Count,
    NotNegative,
    Share,
    checked_dataclass,
)

# The keys of a stage that say when it ends.
ENDS = ("epochs", "until_update", "patience")


@checked_dataclass
class ModifiersRecipe:
    """How often pairs are changed before the model reads them.

    Each is the share of the pairs that are drawn; together they are at most 1.

    Args:
        typos: share of the pairs whose source gets typing errors: in about a
            tenth of its words two letters are swapped, or one is typed in
            the place of its neighbour. Defaults to 0.
        upper_case: share of the pairs that are in capitals. Defaults to 0.
        title_case: share of the pairs whose words begin with a capital.
            Defaults to 0.
        merge: share of the pairs that are joined with the next pair of their
            corpus, as two sentences in one line. Defaults to 0.
        terms: share of the pairs in whose source a word, or about a tenth of
            them, gets its translation beside it, `<term> Hund <is> dog
            </term>`, so that `deepnmt translate --terms` can ask for a
            translation. The words are those of `data.train[].alignments`, and
            the three marks must be among `data.user_defined_symbols`. Defaults
            to 0.
    """

    typos: Share = 0.0
    upper_case: Share = 0.0
    title_case: Share = 0.0
    merge: Share = 0.0
    terms: Share = 0.0

    def __post_init__(self):
        total = sum(self.shares().values())
        if total > 1 + 1e-9:
            raise ValueError(
                "`modifiers` must be at most 1 together, since a pair is "
                f"changed by one of them. Received: {total:g}"
            )

    def shares(self) -> dict[str, float]:
        """Returns the share of each modifier that changes any pair."""
        found = {name: getattr(self, name) for name in self.names()}
        return {name: share for name, share in found.items() if share}

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Returns the names of all modifiers."""
        return tuple(cls.__dataclass_fields__)


@checked_dataclass
class StageRecipe:
    """A stage of training: which corpora are drawn from, and until when.

    Args:
        weights: how often each pair of a corpus is drawn per epoch, by the
            name of the corpus, in place of the weights of the data; 0 leaves a
            corpus out. Corpora that are not named keep their weight.
        modifiers: how often pairs are changed before the model reads them.
        epochs: number of epochs after which the next stage begins; an epoch
            is one of the stage's weights.
        until_update: number of the update, counted over the whole run, after
            which the next stage begins.
        patience: validations in the stage without a better value of
            `early_stopping_metric` after which the next stage begins.
    """

    weights: dict[str, NotNegative] = field(default_factory=dict)
    modifiers: ModifiersRecipe = field(default_factory=ModifiersRecipe)
    epochs: Count | None = None
    until_update: Count | None = None
    patience: Count | None = None

    def ends(self) -> list[str]:
        """Returns the keys that say when it ends."""
        return [name for name in ENDS if getattr(self, name) is not None]


def check_stages(stages: list[StageRecipe]) -> None:
    """Refuses stages that do not follow each other, by a `ValueError`.

    Each stage but the last one must end in one way, and after the one before
    it; the last one must not end.
    """
    begun = 0
    for number, stage in enumerate(stages, start=1):
        is_last = number == len(stages)
        ends = stage.ends()
        if is_last and ends:
            raise ValueError(
                "`stages` must end with one that lasts until the last update "
                f"of the run. Received: {ends[0]} in stage {number}, the last "
                "one. Leave it out, or add a stage `{}`."
            )
        if not is_last and len(ends) != 1:
            raise ValueError(
                "`stages` must each say by one of epochs, until_update and "
                "patience when the next one begins. Received: "
                f"{' and '.join(ends) or 'none'} in stage {number}"
            )
        if stage.until_update is not None:
            if stage.until_update <= begun:
                raise ValueError(
                    "`stages` must end one after another: `until_update` is "
                    "the number of an update of the whole run. Received: "
                    f"{stage.until_update} in stage {number}, after {begun} in "
                    "a stage before it. Give a greater number."
                )
            begun = stage.until_update
