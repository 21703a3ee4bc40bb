"""The sections of a recipe: their keys, types and defaults."""

from dataclasses import field, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from typing_extensions import is_typeddict

from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.decoding.options import SearchOptions
from keras_deepnmt.recipes.changing_keys import (
    Fixed,
    Free,
    OfFinalModel,
    OnRequest,
)
from keras_deepnmt.recipes.training_schema import TrainingRecipe
from keras_deepnmt.validation import Count, Flag, Seed, checked_dataclass


@checked_dataclass
class ModelRecipe:
    """The model.

    Args:
        preset: name of a preset, see `keras_deepnmt.list_models()`.
        overrides: arguments of the model's class that replace the preset's.
    """

    preset: str
    overrides: dict[str, Any] = field(default_factory=dict)


@checked_dataclass
class DecodingRecipe(SearchOptions):
    """How the trained model translates: search options and size of a batch.

    Args:
        batch_size: Largest number of sentences translated together.
        batch_tokens: Largest number of tokens translated together, padding
            included; `null` is 256 times `batch_size`.
    """

    batch_size: Count = 32
    batch_tokens: Count | None = None

    def search_options(self) -> SearchOptions:
        """Returns the search options alone, without the size of a batch."""
        return SearchOptions(**self.as_dict())


@checked_dataclass
class EvaluationRecipe:
    """How translations are scored.

    Args:
        tokenize: sacreBLEU's tokenizer; `none` for text that is already
            tokenized. `null` is that of `data.target_language` or, without
            one, of the script of the references: `zh`, `ja-mecab` (needs
            `pip install keras_deepnmt[ja]`), `ko-mecab` (`[ko]`), `flores200`
            (downloads a model) for other languages without spaces, and `13a`.
        lowercase: whether case is ignored.
        metrics: names of the scores, of `bleu`, `chrf`, `ter`, metrics in
            files of `import`, such as `WordRecall`, and, for corrections of
            tokenized text, `gleu`.
    """

    tokenize: str | None = None
    lowercase: Flag = False
    metrics: tuple[str, ...] = ("bleu", "chrf", "ter")


@checked_dataclass
class Recipe:
    """Everything that is needed to reproduce a result.

    Args:
        name: name of the recipe and of its run folder; for a bundled recipe
            `<preset>.<corpus>_<source>_<target>`. A recipe file that gives
            none has the name of the file.
        extends: bundled recipe, or file relative to this one, whose values
            this recipe takes over where it has none. Sections are merged key
            by key, also `model.overrides`; lists, corpora and single values
            are replaced. With another optimizer, schedule or loss its options
            are not taken over. Null extends none.
        model: the model. With `--from-preset` it may be left out.
        data: the corpora and how they are prepared. With a prepared folder
            (`--prepared`) they are those of the folder.
        training: how the model is trained.
        decoding: how the model translates.
        evaluation: how translations are scored.
        seed: seed of initial weights, dropout and data order.
        import_: Python files with your own classes, which the recipe may name:
            layers, losses, terms of the objective, schedules, callbacks,
            metrics and filters. A file is relative to the recipe file; or an
            installed module, such as `my_package.layers`. They are run.
        resolved: versions and hashes of the data, written into a run folder's
            copy of the recipe; otherwise ignored.

    Example:
    >>> from keras_deepnmt.recipes import load_recipe
    >>> load_recipe("transformer_tiny.multi30k_en_de").training.steps
    7500
    """

    name: OfFinalModel[str] = field(
        metadata={"when_left_out": "the file's name"}
    )
    model: Fixed[ModelRecipe] = field(
        metadata={
            "remedy": "Name a preset, or a preset folder to fine-tune "
            "(`--from-preset DIR`)."
        }
    )
    data: Fixed[PrepareOptions] = field(
        metadata={
            "remedy": "Name the corpora, or a folder that was prepared "
            "(`--prepared DIR`)."
        }
    )
    training: TrainingRecipe
    decoding: OfFinalModel[DecodingRecipe] = field(
        default_factory=DecodingRecipe
    )
    evaluation: OfFinalModel[EvaluationRecipe] = field(
        default_factory=EvaluationRecipe
    )
    seed: Fixed[Seed] = 0
    # The key `import`, which is no name in Python.
    import_: OnRequest[list[str]] = field(default_factory=list)
    extends: Free[str | None] = field(default=None, compare=False)
    resolved: Free[dict[str, Any]] = field(default_factory=dict, compare=False)


def sections_of(kind: type) -> dict[str, type]:
    """Returns the sections and mappings in a section, by key.

    A mapping is `dict`. A corpus is not a section: another one replaces it as
    a whole.

    Example:
    >>> sections_of(Recipe)["evaluation"].__name__
    'EvaluationRecipe'
    """
    found = {}
    for key, hint in get_type_hints(kind).items():
        for part in (hint, *get_args(hint)):
            if get_origin(part) is dict:
                found[key] = dict
            elif is_dataclass(part) or is_typeddict(part):
                found[key] = part
    return {k: part for k, part in found.items() if part is not CorpusOptions}
