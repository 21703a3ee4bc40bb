"""Scores a run on a test set and records the scores in `scores.json`."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from keras_deepnmt.data.context import without_context
from keras_deepnmt.data.corpora import LineReader, aligned_lines, decode_line
from keras_deepnmt.data.manifest import MANIFEST_FILE
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.data.tags import untagged_text
from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation import CometModel
from keras_deepnmt.evaluation.scores import make_metrics
from keras_deepnmt.evaluation.translation_scores import (
    check_metrics,
    translation_scores,
)
from keras_deepnmt.evaluation.word_tokenizers import (
    default_tokenizer,
    describe_choice,
    tokenizer_of_language,
    unfit_tokenizer,
)
from keras_deepnmt.files import (
    as_line,
    file_sha256,
    lines_sha256,
    write_text,
)
from keras_deepnmt.runs import provenance
from keras_deepnmt.runs.checkpoints import open_run
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.scores_file import (
    NOT_WRITTEN,
    add_scores,
    given_sha256,
    read_scores,
    why_unwritable,
    with_defaults,
)
from keras_deepnmt.trained import is_in_package
from keras_deepnmt.translator import Translator

_log = logging.getLogger(__name__)
# Sentences that a row keeps, for the model card.
_NUM_EXAMPLES = 5
# Those of the arguments of `evaluate` that need no check before.
RUN_OPTIONS = (
    *("num_resamples", "compiled", "prefixes", "constraints", "max_lengths"),
    *("on_loaded", "on_progress", "on_truncated"),
)


def evaluate(
    run_dir: str | Path,
    *,
    source_file: str | Path | None = None,
    target_file: str | Path | None = None,
    more_reference_files: Sequence[str | Path] = (),
    split: str = "test",
    tag: str | None = None,
    target_language: str | None = None,
    prepared_dir: str | Path | None = None,
    batch_size: int | None = None,
    batch_tokens: int | None = None,
    tokenize: str | None = None,
    lowercase: bool | None = None,
    metrics: tuple[str, ...] | None = None,
    comet_models: Mapping[str, CometModel] | None = None,
    num_resamples: int = 1_000,
    output_file: str | Path | None = None,
    checkpoint: str | int | None = None,
    compiled: bool = True,
    prefixes: Sequence[str] | None = None,
    constraints: Sequence[Sequence[str]] | None = None,
    max_lengths: Sequence[int] | None = None,
    on_loaded: Callable[[Translator, list[str]], None] | None = None,
    on_progress: Callable[[int], None] | None = None,
    on_truncated: Callable[[list[int]], None] | None = None,
    on_translated: Callable[..., None] | None = None,
    on_scored: Callable[[dict[str, list[float]]], None] | None = None,
    on_unrecorded: Callable[[str], None] | None = None,
    **search_options: Any,
) -> dict[str, Any]:
    """Translates a test set with a run's model and adds a row to `scores.json`.

    A row with the same test set, options, checkpoint, prefixes, constraints and
    maximum lengths is replaced. Mistakes are reported before the translation,
    which may take long. Where `scores.json` cannot be written, a warning says
    so before it, too.

    Args:
        run_dir: folder of a run; finished, unless `checkpoint` is given. Or
            the name of a trained model, to whose scores nothing is added.
        source_file: text to translate; with `target_file` instead of `split`.
        target_file: its reference translations, line by line.
        more_reference_files: further references of the same sentences, a file
            for each set of them. An empty line is not a reference.
        split: split of the run's own data: `test` or `valid`.
        tag: text to put before each line of `source_file`, as in training.
        target_language: code of the language to translate into. It chooses the
            tag for `source_file`, or the corpora of the split: only those with
            this target language are translated.
        prepared_dir: the prepared folder, if it was moved after training.
        batch_size: largest number of sentences translated together. Defaults
            to the run's, as do the next four options.
        batch_tokens: largest number of tokens translated together.
        tokenize: sacreBLEU's tokenizer. Where the run has none either, it is
            that of the target language, or of the references' script.
        lowercase: whether case is ignored.
        metrics: names of the scores: any of `bleu`, `chrf`, `ter`, `gleu` (of
            corrections), `comet`, `comet-qe` and your own metrics.
        comet_models: the models of COMET, by the name of the score; the row
            has the hashes of their files.
        num_resamples: samples of the bootstrap intervals.
        output_file: file to write the translations to. Defaults to none.
        checkpoint: `"latest"`, `"best"` or the step of the checkpoint to
            evaluate. Defaults to the final model of a finished run.
        compiled: whether XLA compiles the search.
        prefixes: what each translation begins with, as for
            `Translator.translate`; the row has the hash of the lines, as it has
            those of the next two. Defaults to none.
        constraints: phrases that each translation contains.
        max_lengths: maximum length of each translation.
        on_loaded: called with the translator and the sources, before they are
            translated.
        on_progress: called with the number of sentences just translated.
        on_truncated: called with the indices of the sources longer than the
            model's position range. Defaults to a warning.
        on_translated: called with the sources, the translations, the
            references, and a list for each set of further references.
        on_scored: called with the scores of single sentences, by the name of
            the score, which `comet` and `comet-qe` have.
        on_unrecorded: called with the reason if the row cannot be written to
            `scores.json` at the end, though it could before. Defaults to a
            warning.
        **search_options: fields of `decoding.SearchOptions`, such as
            `num_beams=4`, that replace the run's.

    Returns:
        The row: scores with signatures, test set with hashes, five sentences
        spread over it with their translations, decoding options, hashes of
        what was given, speed, training, seed, device, versions, commit.

    Raises:
        UserError: if the run is not finished, the files are not aligned, there
            is no such split, a metric, tokenizer or tag is unknown, a tag is
            given for the run's own data, which have tags of their own, or the
            number of prefixes, constraints or lengths is not that of the
            sentences.

    Example:
    >>> row = evaluate("runs/demo", num_beams=5)
    >>> sorted(row["scores"])
    ['bleu', 'chrf', 'ter']
    """
    evaluation = Evaluation(
        run_dir,
        source_file=source_file,
        target_file=target_file,
        more_reference_files=more_reference_files,
        split=split,
        tag=tag,
        target_language=target_language,
        prepared_dir=prepared_dir,
        batch_size=batch_size,
        batch_tokens=batch_tokens,
        tokenize=tokenize,
        lowercase=lowercase,
        metrics=metrics,
        comet_models=comet_models,
        output_file=output_file,
        checkpoint=checkpoint,
        **search_options,
    )
    return evaluation.run(
        num_resamples=num_resamples,
        compiled=compiled,
        prefixes=prefixes,
        constraints=constraints,
        max_lengths=max_lengths,
        on_loaded=on_loaded,
        on_progress=on_progress,
        on_truncated=on_truncated,
        on_translated=on_translated,
        on_scored=on_scored,
        on_unrecorded=on_unrecorded,
    )


class Evaluation:
    """What `evaluate` checks, and then does.

    The arguments are those of `evaluate`; a mistake in them raises a
    `UserError` at once. `needs_bleu` says that BLEU will be computed, whatever
    the metrics are: then a missing tokenizer is a mistake, too.

    Attributes:
        texts: the sources, the references, and a list for each set of further
            references.
        bare_sources: the sources without tags and context, which scores read.
        scoring: `tokenize`, `lowercase` and `metrics`.
    """

    def __init__(
        self,
        run_dir: str | Path,
        *,
        source_file: str | Path | None = None,
        target_file: str | Path | None = None,
        more_reference_files: Sequence[str | Path] = (),
        split: str = "test",
        tag: str | None = None,
        target_language: str | None = None,
        prepared_dir: str | Path | None = None,
        tokenize: str | None = None,
        lowercase: bool | None = None,
        metrics: tuple[str, ...] | None = None,
        comet_models: Mapping[str, CometModel] | None = None,
        output_file: str | Path | None = None,
        checkpoint: str | int | None = None,
        needs_bleu: bool = False,
        **decoding: Any,
    ):
        if tag is not None and source_file is None:
            raise UserError(
                "`tag` needs `source_file`: the run's own data have the tags "
                f"of their corpora already. Received: tag={tag}"
            )
        if tag is not None and target_language is not None:
            raise UserError(
                "`tag` and `target_language` both choose the tag of the "
                f"sources: give one of them. Received: {tag} and "
                f"{target_language}"
            )
        self._run, self._tag = RunFolder.find(run_dir), tag
        self._language = target_language
        self._loaded = open_run(run_dir, checkpoint)
        if target_language is not None and source_file is not None:
            self._tag = self._loaded.directions.tag_of(target_language)
        self._summary = self._loaded.summary
        if checkpoint is not None:
            step = self._summary.get("steps", 0)
            self._summary = self._summary | {"checkpoint": step}
        self._name, sources, references, more = _open_texts(
            self._run,
            *(source_file, target_file, more_reference_files),
            *(split, prepared_dir),
            None if source_file else target_language,
        )
        self.texts = sources, references, *more
        self.bare_sources = _bare_sentences(sources, self._loaded)
        self._decoding = with_defaults(self._loaded.decoding)
        self._decoding |= _given(**decoding)
        scoring = asdict(self._run.scoring_of(self._summary))
        of_run = tokenizer_of_language(_target_language(self._run))
        if target_language is not None and scoring["tokenize"] == of_run:
            # It was chosen for the run's target language.
            scoring["tokenize"] = None
        scoring |= _given(
            tokenize=tokenize, lowercase=lowercase, metrics=metrics
        )
        if scoring["tokenize"] is None:
            language = target_language or _target_language(self._run)
            scoring["tokenize"] = default_tokenizer(references, language)
            if choice := describe_choice(
                scoring["tokenize"], references, language
            ):
                _log.warning(
                    "%s, references: %s Another `tokenize` (--tokenize) "
                    "changes it.",
                    *(self._run.directory, choice),
                )
        scoring["metrics"] = tuple(scoring["metrics"])
        self.scoring, self._models = scoring, comet_models or {}
        self._loaded.use_code()  # may have the metrics
        check_metrics(
            *(scoring["metrics"], scoring["tokenize"], self._models),
            *(references, more),
        )
        if needs_bleu:
            make_metrics(["bleu"], scoring["tokenize"])
        if fault := unfit_tokenizer(scoring["tokenize"], references):
            _log.warning("%s: %s", self._run.directory, fault)
        self._output_file = output_file and Path(output_file)
        if self._output_file:
            _check_folder(self._output_file)
        read_scores(self._run.scores_file)
        self._is_recordable = True
        if is_in_package(self._run.directory):
            self._is_recordable = False
        elif fault := why_unwritable(self._run.scores_file):
            self._is_recordable = False
            _log.warning(
                "%s: cannot be written (%s). The scores will not be recorded.",
                *(self._run.scores_file, fault),
            )

    def run(
        self,
        num_resamples: int = 1_000,
        compiled: bool = True,
        on_loaded: Callable[[Translator, list[str]], None] | None = None,
        on_progress: Callable[[int], None] | None = None,
        on_truncated: Callable[[list[int]], None] | None = None,
        on_translated: Callable[..., None] | None = None,
        on_scored: Callable[[dict[str, list[float]]], None] | None = None,
        on_unrecorded: Callable[[str], None] | None = None,
        **given: Any,
    ) -> dict[str, Any]:
        """Translates, scores, records and returns the row, as `evaluate`."""
        sources, references, *more = self.texts
        translator = Translator.load(
            self._loaded,
            **self._decoding,
            compiled=compiled,
            on_truncated=on_truncated,
            tag=self._tag,
        )
        if on_loaded is not None:
            on_loaded(translator, sources)
        given = _given(**given)
        start = time.monotonic()
        hypotheses = translator.translate(
            sources, on_progress=on_progress, **given
        )
        seconds = time.monotonic() - start
        if self._output_file:
            lines = "".join(f"{as_line(text)}\n" for text in hypotheses)
            write_text(self._output_file, lines)
        if on_translated is not None:
            on_translated(sources, hypotheses, references, *more)
        pieces = translator.target_tokenizer.encode(hypotheses)
        tokens = sum(len(ids) + 1 for ids in pieces)
        scores, of_sentences = translation_scores(
            hypotheses,
            references,
            self.bare_sources,
            **self.scoring,
            num_resamples=num_resamples,
            more_references=more,
            comet_models=self._models,
        )
        if on_scored is not None:
            on_scored(of_sentences)
        hashes = {name: self._models[name].sha256 for name in of_sentences}
        row = {
            "name": self._summary.get("name", ""),
            "preset": self._summary["preset"],
            "test_set": _test_set(self._name, sources, references, more),
            "scores": {name: asdict(score) for name, score in scores.items()},
            "examples": _examples(sources, hypotheses, references),
            "decoding": self._decoding
            | _given(tag=self._tag, target_language=self._language),
            **({"given": given_sha256(**given)} if given else {}),
            "evaluation": {
                **self.scoring,
                "metrics": list(self.scoring["metrics"]),
                **({"comet_models": hashes} if hashes else {}),
            },
            "seconds": round(seconds, 2),
            "tokens_per_second": round(tokens / seconds, 1),
            "parameters": translator.model.count_params(),
            **_of_training(self._summary),
            "device": provenance.device(),
            "versions": provenance.versions(),
            "commit": provenance.commit(),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        if self._is_recordable:
            self._record(row, on_unrecorded or self._warn)
        return row

    def _record(self, row, on_unrecorded):
        """Adds the row; what prevents it must not lose the scores."""
        try:
            add_scores(self._run.scores_file, row)
        except (*NOT_WRITTEN, UserError) as error:
            on_unrecorded(str(getattr(error, "strerror", None) or error))

    def _warn(self, reason):
        _log.warning(
            "%s: the scores were not recorded: %s",
            *(self._run.scores_file, reason),
        )


def _examples(sources, hypotheses, references):
    """Some sentences, spread over the text and not chosen by their quality."""
    number = min(_NUM_EXAMPLES, len(sources))
    rows = {place * len(sources) // number for place in range(number)}
    return [
        {
            "source": sources[row],
            "translation": hypotheses[row],
            "reference": references[row],
        }
        for row in sorted(rows)
    ]


def read_pairs(
    source_file: str | Path, target_file: str | Path
) -> tuple[list[str], list[str]]:
    """Reads the lines of two aligned text files, plain or compressed."""
    files = Path(source_file), Path(target_file)
    pairs = [
        tuple(
            decode_line(line, file, number)
            for line, file in zip(pair, files, strict=True)
        )
        for number, pair in enumerate(
            aligned_lines(*(LineReader(file) for file in files)), start=1
        )
    ]
    sources, targets = zip(*pairs, strict=True)
    return list(sources), list(targets)


def _open_texts(
    run,
    source_file,
    target_file,
    more_reference_files,
    split,
    prepared_dir,
    language,
):
    """Returns name, sources, references and further ones of a test set."""
    if (source_file is None) != (target_file is None):
        raise UserError("Give both a source and a target file, or none.")
    if source_file is None:
        if more_reference_files:
            raise UserError(
                "Further references need a source and a target file."
            )
        data = open_data(run, prepared_dir)
        sources, references = data.texts(split)
        if language is not None:
            rows = _rows_of_language(data.manifest, split, language)
            sources = [sources[row] for row in rows]
            references = [references[row] for row in rows]
        return split, sources, references, []
    sources, references = read_pairs(source_file, target_file)
    more = [read_pairs(source_file, file)[1] for file in more_reference_files]
    return Path(source_file).name, sources, references, more


def _bare_sentences(sources, run):
    """Takes the tags and contexts off that a run's model reads."""
    if run.context != 0:  # it is not known of runs of earlier versions
        sources = map(without_context, sources)
    return [untagged_text(text, run.tags) for text in sources]


def _rows_of_language(manifest, split, language):
    """Lists the rows of a split whose target language is the one given."""
    corpora = [c for c in manifest["corpora"] if c["split"] == split]
    # Folders of earlier versions have no directions.
    targets = [c.get("direction", (None, None))[1] for c in corpora]
    rows = [
        row
        for corpus, target in zip(corpora, targets, strict=True)
        if target == language
        for row in range(*corpus["rows"])
    ]
    if not rows:
        known = ", ".join(dict.fromkeys(filter(None, targets))) or "not known"
        raise UserError(
            "`target_language` must be that of a corpus of the split "
            f"`{split}`, whose languages are: {known}. Received: {language}. "
            "Give text by `source_file` and `target_file`."
        )
    return rows


def _test_set(name, sources, references, more):
    """Identifies a test set by its name, size and hashes."""
    found = {
        "name": name,
        "sentences": len(sources),
        "source_sha256": lines_sha256(sources),
        "target_sha256": lines_sha256(references),
    }
    if more:
        found["more_references_sha256"] = [
            lines_sha256(lines) for lines in more
        ]
    return found


def _of_training(summary):
    """The columns of a row that tell how the model was trained."""
    names = ["steps", "averaged_steps", "weights_sha256", "training", "seed"]
    if "checkpoint" in summary:
        names.append("checkpoint")
    return {name: summary[name] for name in names}


def _check_folder(file):
    if file.is_dir() or not file.parent.is_dir():
        raise UserError(
            f"{file}: cannot be written. Give a file in an existing folder."
        )


def open_data(run: RunFolder, prepared_dir: str | Path | None) -> PreparedData:
    """Opens the prepared folder of a run, or the given one if it was moved.

    Raises a `UserError` if another run has prepared other data in its place.
    """
    if prepared_dir is not None:
        return PreparedData(prepared_dir)
    resolved = run.recipe().resolved
    folders = [run.data_dir]
    if recorded := resolved.get("prepared"):
        folders.insert(0, Path(recorded))
    others = []
    for folder in folders:
        file = folder / MANIFEST_FILE
        if file.is_file():
            # Earlier versions have not recorded it.
            recorded = resolved.get("manifest_sha256")
            if not recorded or file_sha256(file) == recorded:
                return PreparedData(folder)
            others.append(folder)
    if others:
        raise UserError(
            f"{others[0]}: holds other prepared data than those that "
            f"{run.directory} was trained on. Give the folder to which they "
            "were moved by `--prepared` (`prepared_dir`)."
        )
    return PreparedData(run.data_dir)


def _target_language(run):
    """The target language of a run; `None` if its folder lacks the recipe."""
    if not run.recipe_file.is_file():
        return None
    return run.recipe().data.target_language


def _given(**options):
    return {k: v for k, v in options.items() if v is not None}
