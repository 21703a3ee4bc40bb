"""Scores a run on a test set and records the scores in `scores.json`."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from keras_deepnmt.data.corpora import LineReader, aligned_lines, decode_line
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation import CometModel
from keras_deepnmt.evaluation.translation_scores import (
    check_metrics,
    translation_scores,
)
from keras_deepnmt.evaluation.word_tokenizers import (
    default_tokenizer,
    unfit_tokenizer,
)
from keras_deepnmt.files import lines_sha256, write_text
from keras_deepnmt.recipes.schema import EvaluationRecipe
from keras_deepnmt.runs import provenance
from keras_deepnmt.runs.checkpoints import open_run
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.scores_file import (
    add_scores,
    given_sha256,
    read_scores,
    with_defaults,
)
from keras_deepnmt.translator import Translator

_log = logging.getLogger(__name__)
# Sentences that a row keeps, for the model card.
_NUM_EXAMPLES = 5


def evaluate(
    run_dir: str | Path,
    *,
    source_file: str | Path | None = None,
    target_file: str | Path | None = None,
    more_reference_files: Sequence[str | Path] = (),
    split: str = "test",
    tag: str | None = None,
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
    **search_options: Any,
) -> dict[str, Any]:
    """Translates a test set with a run's model and adds a row to `scores.json`.

    A row with the same test set, options, checkpoint, prefixes, constraints and
    maximum lengths is replaced.

    Args:
        run_dir: folder of a run; finished, unless `checkpoint` is given.
        source_file: text to translate; with `target_file` instead of `split`.
        target_file: its reference translations, line by line.
        more_reference_files: further references of the same sentences, a file
            for each set of them. An empty line is not a reference.
        split: split of the run's own data: `test` or `valid`.
        tag: text to put before each line of `source_file`, as in training.
        prepared_dir: the prepared folder, if it was moved after training.
        batch_size: largest number of sentences translated together. Defaults
            to the run's, as do the next four options.
        batch_tokens: largest number of tokens translated together.
        tokenize: sacreBLEU's tokenizer. Where the run has none either, it is
            that of the target language, or of the references' script.
        lowercase: whether case is ignored.
        metrics: names of the scores: any of `bleu`, `chrf`, `ter`, `gleu` (of
            corrections), `comet` and `comet-qe`.
        comet_models: the models of the last two, by the name of the score; the
            row has the hashes of their files.
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
    if tag is not None and source_file is None:
        raise UserError(
            "`tag` needs `source_file`: the run's own data have the tags of "
            f"their corpora already. Received: tag={tag}"
        )
    run, loaded = RunFolder(run_dir), open_run(run_dir, checkpoint)
    summary = loaded.summary
    if checkpoint is not None:
        summary = summary | {"checkpoint": summary.get("steps", 0)}
    name, sources, references, more = _open_texts(
        run, source_file, target_file, more_reference_files, split, prepared_dir
    )
    decoding = with_defaults(loaded.decoding) | _given(
        batch_size=batch_size, batch_tokens=batch_tokens, **search_options
    )
    scoring = asdict(EvaluationRecipe()) | summary.get("evaluation", {})
    scoring |= _given(tokenize=tokenize, lowercase=lowercase, metrics=metrics)
    if scoring["tokenize"] is None:
        scoring["tokenize"] = default_tokenizer(
            references, _target_language(run)
        )
    # Mistakes are reported before the translation, which may take long.
    models = comet_models or {}
    check_metrics(
        scoring["metrics"], scoring["tokenize"], models, references, more
    )
    if fault := unfit_tokenizer(scoring["tokenize"], references):
        _log.warning("%s: %s", run.directory, fault)
    read_scores(run.scores_file)
    if output_file is not None:
        _check_folder(Path(output_file))
    translator = Translator.load(
        loaded,
        **decoding,
        compiled=compiled,
        on_truncated=on_truncated,
        tag=tag,
    )
    if on_loaded is not None:
        on_loaded(translator, sources)
    given = _given(
        prefixes=prefixes, constraints=constraints, max_lengths=max_lengths
    )
    start = time.monotonic()
    hypotheses = translator.translate(sources, on_progress=on_progress, **given)
    seconds = time.monotonic() - start
    if output_file is not None:
        write_text(output_file, "".join(f"{line}\n" for line in hypotheses))
    if on_translated is not None:
        on_translated(sources, hypotheses, references, *more)
    pieces = translator.target_tokenizer.encode(hypotheses)
    tokens = sum(len(ids) + 1 for ids in pieces)
    scores, of_sentences = translation_scores(
        hypotheses,
        references,
        sources,
        **scoring,
        num_resamples=num_resamples,
        more_references=more,
        comet_models=models,
    )
    if on_scored is not None:
        on_scored(of_sentences)
    hashes = {name: models[name].sha256 for name in of_sentences}
    row = {
        "name": summary.get("name", ""),
        "preset": summary["preset"],
        "test_set": _test_set(name, sources, references, more),
        "scores": {metric: asdict(score) for metric, score in scores.items()},
        "examples": _examples(sources, hypotheses, references),
        "decoding": decoding | _given(tag=tag),
        **({"given": given_sha256(**given)} if given else {}),
        "evaluation": {
            **scoring,
            "metrics": list(scoring["metrics"]),
            **({"comet_models": hashes} if hashes else {}),
        },
        "seconds": round(seconds, 2),
        "tokens_per_second": round(tokens / seconds, 1),
        "parameters": translator.model.count_params(),
        **_of_training(summary),
        "device": provenance.device(),
        "versions": provenance.versions(),
        "commit": provenance.commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    add_scores(run.scores_file, row)
    return row


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
    """Reads the lines of two aligned text files, plain or gzipped.

    Raises:
        UserError: if a file is missing, empty, not UTF-8, or longer than the
            other.
    """
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
    run, source_file, target_file, more_reference_files, split, prepared_dir
):
    """Returns name, sources, references and further ones of a test set."""
    if (source_file is None) != (target_file is None):
        raise UserError("Give both a source and a target file, or none.")
    if source_file is None:
        if more_reference_files:
            raise UserError(
                "Further references need a source and a target file."
            )
        return split, *open_data(run, prepared_dir).texts(split), []
    sources, references = read_pairs(source_file, target_file)
    more = [read_pairs(source_file, file)[1] for file in more_reference_files]
    return Path(source_file).name, sources, references, more


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
    """Opens the prepared folder of a run, or the given one if it was moved."""
    if prepared_dir is None:
        recorded = run.recipe().resolved.get("prepared")
        moved = recorded is None or not Path(recorded).is_dir()
        prepared_dir = run.data_dir if moved else recorded
    return PreparedData(prepared_dir)


def _target_language(run):
    """The target language of a run; `None` if its folder lacks the recipe."""
    if not run.recipe_file.is_file():
        return None
    return run.recipe().data.target_language


def _given(**options):
    return {k: v for k, v in options.items() if v is not None}
