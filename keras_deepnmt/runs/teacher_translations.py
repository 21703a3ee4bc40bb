"""Distillation of sentences: teachers translate the source of training text."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from keras_deepnmt.data.bilingual_files.pair_lines import PairLines
from keras_deepnmt.data.corpora import LineReader
from keras_deepnmt.data.known_corpora.finding import find_corpus_files
from keras_deepnmt.data.preparation.bad_lines import BadLines
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.errors import UserError, UserErrors
from keras_deepnmt.translator import (
    Run,
    Translator,
    join_translators,
    read_run,
)

# Sentences that are translated and kept together: what a process that is killed
# may lose.
_WINDOW = 500


def with_translations(
    options: PrepareOptions,
    folder: Path,
    data_dir: str | Path | None = None,
    say: Callable[[str], None] = print,
    may_translate: bool = True,
) -> PrepareOptions:
    """Replaces the targets of corpora by the translations of their teachers.

    The corpora are those with `translated_by`. Their translations are written
    to `folder`, under a name that depends on the sentences and on the weights
    and search options of the teachers. What is there already is not translated
    again, also if an earlier process was killed while it translated.

    Args:
        options: the options of `prepare_corpus`.
        folder: where translations are kept.
        data_dir: folder with copies of the named corpora.
        say: function that prints a line.
        may_translate: whether sentences may be translated.

    Returns:
        Options in which no corpus has `translated_by`.

    Raises:
        UserError: if a teacher or a corpus cannot be read, or there is
            something to translate that may not be translated.
    """

    def translated(corpus):
        if not corpus.translated_by:
            return corpus
        given = corpus.translated_by
        try:
            teachers = [
                read_run(one)
                for one in ([given] if isinstance(given, str) else given)
            ]
        except UserError as error:
            raise UserError(
                f"`data.train`, `translated_by`: {error}"
            ) from error
        sources = list(_sources(corpus, options, data_dir))
        file = folder / _file_name(corpus, sources, teachers)
        if not file.exists():
            if not may_translate:
                raise UserError(
                    f"corpus {corpus.name or corpus.source}: its "
                    f"{len(sources):,} sentences have not been translated by "
                    f"{', '.join(map(str, _names(teachers)))}. `deepnmt train` "
                    "does it."
                )
            _translate(sources, teachers, file, say)
        return replace(
            corpus,
            source=None,
            target=None,
            name=corpus.name or Path(corpus.source or corpus.file).stem,
            file=str(file),
            source_column="source",
            target_column="target",
            translated_by=None,
        )

    return replace(options, train=list(map(translated, options.train)))


def _sources(corpus, options, data_dir) -> Iterator[str]:
    """Yields the source sentences that are not empty."""
    bad_lines = BadLines(options.errors)
    if corpus.target is None and corpus.source is not None:
        reader = LineReader(corpus.source)
        lines, path = enumerate(reader, start=1), reader.path
    else:
        files = find_corpus_files(
            replace(corpus, translated_by=None),
            "train",
            data_dir,
            languages=options.languages,
        )
        lines, path = (line[:2] for line in PairLines(files)), files.source
    for number, line in lines:
        text = bad_lines.decode(line, path, number)
        if text is not None and text.strip():
            yield text
    if problems := bad_lines.problems():
        raise UserErrors(problems)


def _file_name(corpus, sources, teachers: Sequence[Run]) -> str:
    digest = hashlib.sha256()
    for teacher in teachers:
        digest.update(teacher.weights_sha256.encode())
    digest.update(json.dumps(teachers[0].decoding, sort_keys=True).encode())
    for source in sources:
        digest.update(source.encode() + b"\n")
    name = corpus.name or Path(corpus.source or corpus.file).name.split(".")[0]
    return f"{name}-{digest.hexdigest()[:16]}.jsonl"


def _names(teachers):
    return [teacher.directory for teacher in teachers]


def _translate(sources, teachers, file: Path, say):
    """Appends the translations to `FILE.part`, which gets its name at last."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.part")
    done = _finished_lines(part)
    names = ", ".join(map(str, _names(teachers)))
    after = f", after the {done:,} that are finished" if done else ""
    say(f"Translating {len(sources):,} sentences by {names}{after}.")
    translators = [Translator.load(one) for one in teachers]
    translator = translators[0]
    if len(translators) > 1:
        translator = join_translators(translators)
    state = translator.steady_search_state()
    with open(part, "a", encoding="utf-8", newline="\n") as output:
        for start in range(done, len(sources), _WINDOW):
            window = sources[start : start + _WINDOW]
            # The same translations in each process that goes on.
            translator.search_state = state
            targets = translator.translate(window)
            output.writelines(
                json.dumps(
                    {"source": source, "target": target}, ensure_ascii=False
                )
                + "\n"
                for source, target in zip(window, targets, strict=True)
            )
            output.flush()
            os.fsync(output.fileno())
            done = start + len(window)
            say(f"{done:,} of {len(sources):,} sentences are translated.")
    os.replace(part, file)


def _finished_lines(part: Path) -> int:
    """Counts the finished lines, in whole windows, and drops what follows."""
    if not part.exists():
        return 0
    with open(part, "rb+") as file:
        position, number, kept = 0, 0, (0, 0)
        for line in file:
            if not line.endswith(b"\n"):
                break
            position, number = position + len(line), number + 1
            if number % _WINDOW == 0:
                kept = position, number
        file.truncate(kept[0])
    return kept[1]
