"""The translations of a test set by several systems, and their scores."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from keras_deepnmt.data.corpora import LineReader, decode_line
from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation import (
    AnnotatedSentence,
    CometModel,
    Comparison,
    compare_gleu,
    compare_sentence_scores,
    compare_systems,
)
from keras_deepnmt.evaluation.scores import Score, make_metrics
from keras_deepnmt.evaluation.translation_scores import (
    check_metrics,
    translation_scores,
)
from keras_deepnmt.evaluation.word_statistics import word_frequencies
from keras_deepnmt.evaluation.word_tokenizers import (
    default_tokenizer,
    describe_choice,
)
from keras_deepnmt.recipes.schema import EvaluationRecipe
from keras_deepnmt.runs.evaluate import RUN_OPTIONS, Evaluation, open_data
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.seed_groups import SeedGroup, group_by_recipe

# Sentences of the training data that are decoded at once.
_CHUNK = 10_000


@dataclass(frozen=True)
class TestTranslations:
    """Translations of the same sentences by several systems.

    Attributes:
        sources: The sentences, without tags and context; `None` if they are
            not known.
        references: One reference for each sentence.
        systems: The translations of each system, by its name.
        scores: The scores of each system, by its name and the metric's.
        scoring: `tokenize`, `lowercase` and `metrics`.
        count_training_words: Function that counts the words on the target side
            of the training data; `None` if it is not known.
        language: The target language; `None` if it is not known.
        more_references: Further references: for each set of them a list with
            one for each sentence.
        recipes: The runs of each recipe by their seeds, the first run's recipe
            first; none for translations in files.
        sentence_scores: For each system the scores of its sentences, by the
            metric, for metrics that are means of them: COMET's.
        unrecorded: Why the scores could not be recorded, by the name of each
            system of which they could not.
    """

    __test__ = False  # pytest: not a class of tests

    sources: list[str] | None
    references: list[str]
    systems: dict[str, list[str]]
    scores: dict[str, dict[str, Score]]
    scoring: dict[str, Any]
    count_training_words: Callable[[], Counter[str]] | None = None
    language: str | None = None
    more_references: tuple[list[str], ...] = ()
    recipes: Sequence[SeedGroup] = ()
    sentence_scores: dict[str, dict[str, list[float]]] = field(
        default_factory=dict
    )
    unrecorded: Mapping[str, str] = field(default_factory=dict)

    @property
    def bleu_options(self) -> dict[str, Any]:
        """The options of BLEU: tokenizer and case."""
        return {k: self.scoring[k] for k in ("tokenize", "lowercase")}

    def compare(
        self, system: str, baseline: str, num_resamples: int
    ) -> dict[str, Comparison]:
        """Compares two systems in each metric by the paired tests."""
        metrics = self.scoring["metrics"]
        of_sentences = {
            name: compare_sentence_scores(
                scores, self.sentence_scores[baseline][name], num_resamples
            )
            for name, scores in self.sentence_scores.get(system, {}).items()
        }
        compared = of_sentences
        if "gleu" in metrics:
            compared["gleu"] = compare_gleu(
                self.systems[system],
                self.systems[baseline],
                self.sources or [],
                self.references,
                self.more_references,
                num_resamples,
            )
        counted = [name for name in metrics if name not in compared]
        if counted:
            compared |= compare_systems(
                self.systems[system],
                self.systems[baseline],
                self.references,
                counted,
                **self.bleu_options,
                num_resamples=num_resamples,
                more_references=self.more_references,
            )
        return {name: compared[name] for name in metrics}


def translate_runs(
    run_dirs: Sequence[str],
    prepared_dir: str | None = None,
    on_translated: Callable[[list[str]], None] | None = None,
    **options: Any,
) -> TestTranslations:
    """Translates a test set with several runs; see `runs.evaluate`.

    The scores are added to the `scores.json` of each run. Tokenizer, case and
    metrics are those of the first run unless they are given.

    Args:
        run_dirs: folders of runs.
        prepared_dir: the prepared folder, if it was moved after training.
        on_translated: function that gets the translations of each run before
            they are scored.
        **options: arguments of `runs.evaluate`, and `needs_bleu` of its
            `Evaluation`.

    Returns:
        Texts, translations and scores.

    Raises:
        UserError: if a run cannot be evaluated, or the runs have different
            test sets.
    """
    # All mistakes are found before the first translation, which may take long.
    running = {k: options.pop(k) for k in RUN_OPTIONS if k in options}
    first, scoring, evaluations = RunFolder.find(run_dirs[0]), {}, {}
    # An imported model has no recipe.
    recipe, recipes = first.started(), group_by_recipe(run_dirs)
    for name in run_dirs:
        evaluation = Evaluation(
            name, prepared_dir=prepared_dir, **{**options, **scoring}
        )
        evaluations[name], scoring = evaluation, evaluation.scoring
        if evaluation.texts != evaluations[run_dirs[0]].texts:
            raise UserError(
                f"{name} and {run_dirs[0]} have different test sets, and "
                "cannot be compared. Give one with `--source` and `--target`."
            )
        # All scores are of the same sources, whatever tags the models know.
        evaluation.bare_sources = evaluations[run_dirs[0]].bare_sources
    systems, scores, sentence_scores, unrecorded = {}, {}, {}, {}

    def keep(name, sources, hypotheses, *references):
        systems[name] = hypotheses
        if on_translated is not None:
            on_translated(hypotheses)

    for name, evaluation in evaluations.items():
        row = evaluation.run(
            **running,
            on_translated=partial(keep, name),
            on_scored=partial(sentence_scores.__setitem__, name),
            on_unrecorded=partial(unrecorded.__setitem__, name),
        )
        scores[name] = {
            metric: Score(score["value"], score["signature"], score["interval"])
            for metric, score in row["scores"].items()
        }
    _, references, *more = evaluations[run_dirs[0]].texts
    language = options.get("target_language")
    if language is None and recipe is not None:
        language = recipe.data.target_language
    return TestTranslations(
        evaluations[run_dirs[0]].bare_sources,
        references,
        systems,
        scores,
        scoring,
        _training_words(first, prepared_dir, scoring),
        language,
        tuple(more),
        recipes,
        sentence_scores,
        unrecorded,
    )


def read_translations(
    files: Sequence[str],
    reference_files: Sequence[str],
    source_file: str | None,
    scoring: Mapping[str, Any],
    num_resamples: int,
    language: str | None = None,
    say: Callable[[str], None] = print,
    comet_models: Mapping[str, CometModel] | None = None,
    needs_bleu: bool = False,
) -> TestTranslations:
    """Reads translations from files, one for each system, and scores them.

    There is one reference file for each set of references, and `scoring` has
    any of `tokenize`, `lowercase` and `metrics`. Without a `language` and
    without `tokenize`, the script of the references decides how BLEU and TER
    count words, and `say` prints a line about it. `num_resamples` is that of
    the bootstrap intervals; `comet_models` are as for `runs.evaluate`, and
    `needs_bleu` as for `Evaluation`.
    """
    scoring = asdict(EvaluationRecipe()) | dict(scoring)
    # Reported before files are read.
    models = comet_models or {}
    check_metrics(
        scoring["metrics"],
        scoring["tokenize"],
        models,
        more_references=reference_files[1:],
    )
    reference_file, *others = reference_files
    references = read_lines(reference_file)
    if not references:
        raise UserError(f"{reference_file}: has no lines.")
    if scoring["tokenize"] is None:
        scoring["tokenize"] = default_tokenizer(references, language)
        choice = describe_choice(scoring["tokenize"], references, language)
        if choice is not None:
            say(
                f"{reference_file}: {choice} Another --language or --tokenize "
                "changes it."
            )
    if needs_bleu:
        make_metrics(["bleu"], scoring["tokenize"])
    others += [*files, source_file] if source_file else files
    texts = {name: read_lines(name) for name in others}
    for name, lines in texts.items():
        if len(lines) != len(references):
            raise UserError(
                f"{name} must have as many lines as {reference_file}. "
                f"Received: {len(lines)} and {len(references)} lines."
            )
    systems = {name: texts[name] for name in files}
    more = tuple(texts[name] for name in reference_files[1:])
    sources = texts.get(source_file)
    scores, sentence_scores = {}, {}
    for name, lines in systems.items():
        scores[name], sentence_scores[name] = translation_scores(
            lines,
            references,
            sources,
            **scoring,
            num_resamples=num_resamples,
            more_references=more,
            comet_models=models,
        )
    return TestTranslations(
        sources,
        references,
        systems,
        scores,
        scoring,
        language=language,
        more_references=more,
        sentence_scores=sentence_scores,
    )


def read_lines(file: str) -> list[str]:
    """Reads the lines of a text file, plain or compressed."""
    return [
        decode_line(line, Path(file), number)
        for number, line in enumerate(LineReader(file), start=1)
    ]


def read_corrections(
    files: Sequence[str], gold: Sequence[AnnotatedSentence], gold_file: str
) -> dict[str, list[str]]:
    """Reads corrected sentences from files, one file for each system.

    Each must have as many lines as `gold_file` has sentences.
    """
    systems = {file: read_lines(file) for file in files}
    for file, lines in systems.items():
        if len(lines) != len(gold):
            raise UserError(
                f"{file} must have a line for each sentence of {gold_file}. "
                f"Received: {len(lines)} lines and {len(gold)} sentences."
            )
    return systems


def _training_words(run, prepared_dir, scoring):
    """A function that counts the target words of the training data, if any."""
    try:
        data = open_data(run, prepared_dir)
        store = data.store("train")
    except UserError:
        return None  # the prepared data was deleted after the training

    def lines():
        tokenizer = data.target_tokenizer
        for start in range(0, len(store), _CHUNK):
            rows = range(start, min(start + _CHUNK, len(store)))
            yield from tokenizer.decode([pair[1] for pair in store.read(rows)])

    def count():
        return word_frequencies(
            lines(), scoring["tokenize"], scoring["lowercase"]
        )

    return count
