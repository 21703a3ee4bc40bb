"""The options of the commands that score translations by other runs."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jsonargparse import Namespace

from keras_deepnmt.commands.options.compilation import LazilyCompiled
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.errors import UserError

if TYPE_CHECKING:
    from keras_deepnmt.recipes.schema import EvaluationRecipe
    from keras_deepnmt.reranking import Reranker
    from keras_deepnmt.translator import Translator


def add_rerankers(parser: VerbParser) -> None:
    """Adds `--rerank` and `--rerank-reverse`."""
    parser.add_argument(
        "--rerank",
        nargs="+",
        metavar="RUN",
        help="Runs of the same direction whose scores sort the --num-beams "
        "translations of a sentence anew. They may have other vocabularies. "
        "Default: none.",
    )
    parser.add_argument(
        "--rerank-reverse",
        nargs="+",
        metavar="RUN",
        help="Runs of the other direction, target to source, that do the same "
        "by their scores of the source. Default: none.",
    )


def add_reranking_weights(parser: VerbParser) -> None:
    """Adds `--rerank-weights`."""
    parser.add_argument(
        "--rerank-weights",
        nargs="+",
        metavar="FILE|W",
        help="File of weights written by `deepnmt tune`, or a number for each "
        "model: the one that translates, those of --rerank and those of "
        "--rerank-reverse. Default: 1 for each.",
    )


def is_reranked(options: Namespace) -> bool:
    """Whether other runs score the translations.

    Weights without such runs are refused.
    """
    given = bool(options.rerank or options.rerank_reverse)
    if options.get("rerank_weights") and not given:
        raise UserError("--rerank-weights needs --rerank or --rerank-reverse.")
    return given


class RerankingRuns:
    """The runs that score the translations of a translator, loaded.

    `models` has the run folder of each model and its direction, that of the
    translator first; several folders of an ensemble are joined by `+`.
    `weights` has a number for each model, and `feature_names` the name of each
    model's score in n-best lists.
    """

    def __init__(self, options: Namespace, translator: "Translator"):
        from keras_deepnmt.reranking.reranker import as_weights

        forward, reverse = options.rerank or [], options.rerank_reverse or []
        languages = _languages(options.runs[0], translator.tag)
        for run in forward:
            _check_direction(languages, run, is_reverse=False)
        for run in reverse:
            _check_direction(languages, run, is_reverse=True)
        self.models = [
            ("+".join(options.runs), "search"),
            *((run, "forward") for run in forward),
            *((run, "reverse") for run in reverse),
        ]
        self.feature_names = [
            "Search",
            *(f"Forward{n}" for n in range(1, len(forward) + 1)),
            *(f"Reverse{n}" for n in range(1, len(reverse) + 1)),
        ]
        weights = self._read_weights(options.get("rerank_weights"), translator)
        self.weights = as_weights(weights, len(self.models))
        batches = {
            name: options[name]
            for name in ("batch_size", "batch_tokens")
            if options.get(name) is not None
        }
        self._forward = [
            _load(run, batches, options.compile, languages[1], translator.tag)
            for run in forward
        ]
        self._reverse = [
            _load(run, batches, options.compile, languages[0])
            for run in reverse
        ]

    @property
    def translators(self) -> list[LazilyCompiled]:
        """The translators of the runs, without that of the search."""
        return [*self._forward, *self._reverse]

    def reranker(
        self,
        translator: "Translator",
        sources: Sequence[str],
        warn: Callable[[int, str], None],
    ) -> "Reranker":
        """Returns what scores the translations of the next sources.

        `warn` is called with the place of a source that a model did not score,
        and the reason.
        """
        from keras_deepnmt.reranking import Reranker

        # Each model scores `num_beams` translations of each source.
        texts = list(sources) * translator.num_beams

        def warn_unscored(number, places):
            run, _ = self.models[number]
            for place in places:
                warn(
                    place,
                    "it or a translation is longer than the position range of "
                    f"{run}, whose score was not used.",
                )

        return Reranker(
            translator,
            [translators.choose(texts) for translators in self._forward],
            [translators.choose(texts) for translators in self._reverse],
            self.weights,
            warn_unscored,
        )

    def _read_weights(self, words, translator):
        if not words:
            return None
        try:
            return [float(word) for word in words]
        except ValueError:
            if len(words) > 1:
                raise UserError(
                    "`--rerank-weights`: must be one file, or numbers. "
                    f"Received: {' '.join(words)}"
                ) from None
        from keras_deepnmt.reranking.weights_file import read_weights

        directions = [direction for _, direction in self.models]
        return read_weights(words[0], directions, translator.options)


def scoring_of(run: str) -> "EvaluationRecipe":
    """Returns how the recipe of a run says that translations are scored."""
    from keras_deepnmt.recipes.schema import EvaluationRecipe

    recipe = _recipe(run)
    return EvaluationRecipe() if recipe is None else recipe.evaluation


def _load(run, batches, compiled, target, tag=None):
    from keras_deepnmt.translator import Translator

    translator = Translator.load(run, **batches)
    tokenizer = getattr(translator, f"{translator.tag_side}_tokenizer")
    # A model of one language or domain may know no tags.
    if tag not in tokenizer.user_defined_symbols:
        known = translator.directions.known
        tags = {one.tag for one in known if one.target == target}
        tag = tags.pop() if len(tags) == 1 else None
    if tag is not None:
        translator = translator.replaced(tag=tag)
    return LazilyCompiled(translator, compiled)


def _recipe(run):
    from keras_deepnmt.runs.run_folder import RunFolder

    folder = RunFolder.find(run)
    # A folder that lacks it can be used: only the model is needed.
    return folder.recipe() if folder.recipe_file.is_file() else None


def _directions(run):
    """Those of a run, as far as its recipe names the languages."""
    from keras_deepnmt.data.directions import Directions

    recipe = _recipe(run)
    return Directions(() if recipe is None else recipe.data.directions())


def _languages(run, tag):
    """The languages that a run translates with a tag, where they are known."""
    directions = _directions(run)
    found = [one for one in directions.known if one.tag == tag]
    targets = {one.target for one in found or directions.known}
    if len(targets) != 1:
        return None, None
    (target,) = targets
    return directions.source_of(target), target


def _check_direction(languages, run, is_reverse):
    """Refuses a run of other languages, as far as the recipes name them."""
    directions = _directions(run)
    option, others = "--rerank", "--rerank-reverse"
    expected = languages
    if is_reverse:
        option, others, expected = others, option, languages[::-1]
    if is_reverse and expected[1] is None and len(directions.targets) > 1:
        raise UserError(
            f"`{option}`: {run} translates into several languages, "
            f"{', '.join(directions.targets)}, and which of them the source is "
            "in is not known. Name a run of one direction."
        )
    theirs = [one[:2] for one in directions.known]
    if None in expected or not theirs or expected in theirs:
        return
    if len(directions.targets) > 1 and expected[1] in directions.targets:
        return  # which no training corpus had
    hint = f" Give it to {others}." if expected[::-1] in theirs else ""
    found = " and ".join(f"{a} to {b}" for a, b in dict.fromkeys(theirs))
    raise UserError(
        f"`{option}`: {run} translates {found}, not {expected[0]} to "
        f"{expected[1]}.{hint}"
    )
