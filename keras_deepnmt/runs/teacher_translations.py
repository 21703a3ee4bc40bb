"""Distillation of sentences: teachers translate the source of training text."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from keras_deepnmt.data.bilingual_files.pair_lines import PairLines
from keras_deepnmt.data.context import ends_document, in_context, mark_id
from keras_deepnmt.data.corpora import LineReader
from keras_deepnmt.data.known_corpora.finding import (
    find_corpus_files,
    find_named_corpus,
    name_of_file,
)
from keras_deepnmt.data.preparation.bad_lines import BadLines
from keras_deepnmt.data.preparation.options import HELD_OUT, PrepareOptions
from keras_deepnmt.data.tags import begins_with_tag
from keras_deepnmt.errors import UserError, UserErrors
from keras_deepnmt.translator import (
    Hypothesis,
    Run,
    Translator,
    join_translators,
    read_run,
)

# Sentences that are translated and kept together: what a process that is killed
# may lose.
_WINDOW = 500


class _Request(NamedTuple):
    """What teachers translate.

    Attributes:
        sources: the sentences; an empty one ends a document.
        tag: the tag that the teachers get with each, or `None`.
        context: how many sentences before each one they read with it.
    """

    sources: list[str]
    tag: str | None
    context: int


def with_translations(
    options: PrepareOptions,
    folder: Path,
    data_dir: str | Path | None = None,
    say: Callable[[str], None] = print,
    may_translate: bool = True,
) -> PrepareOptions:
    """Replaces the targets of corpora by the translations of their teachers.

    The corpora are those with `translated_by`. Their translations are written
    to `folder`, under a name that depends on the sentences and on the weights,
    search options and tag of the teachers. What is there already is not
    translated again, also if an earlier process was killed while it translated.
    A teacher of several languages translates into that of the corpus. With
    `context`, the ends of documents are kept, and a teacher that has learned to
    read a context gets it.

    `data_dir` has copies of named corpora. Without `may_translate`, sentences
    that have no translation yet are refused. In the options returned no corpus
    has `translated_by`.
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
        request = _Request(
            sources,
            _tag_of_all(teachers, corpus, options, sources),
            min(_context_of(one, options.context) for one in teachers),
        )
        file = folder / _file_name(corpus, request, teachers)
        if not file.exists():
            if not may_translate:
                raise UserError(
                    f"corpus {corpus.name or corpus.source}: its "
                    f"{len(sources):,} sentences have not been translated by "
                    f"{', '.join(map(str, _names(teachers)))}. `deepnmt train` "
                    "does it."
                )
            _check_others(options)
            _translate(request, teachers, file, say)
        return replace(
            corpus,
            source=None,
            target=None,
            name=corpus.name or name_of_file(corpus.source or corpus.file),
            file=str(file),
            source_column="source",
            target_column="target",
            translated_by=None,
        )

    return replace(options, train=list(map(translated, options.train)))


def _check_others(options):
    """Refuses what corpora lack, before hours of translation."""
    for split in ("train", *HELD_OUT):
        for corpus in options.corpora(split):
            if corpus.translated_by and split in HELD_OUT:
                find_corpus_files(corpus, split)  # raises
            files = corpus.source, corpus.target, corpus.file, corpus.alignments
            for file in filter(None, files):
                if not Path(file).exists():
                    LineReader(file)  # raises
            if not any(files):
                find_named_corpus(corpus.name)


def _sources(corpus, options, data_dir) -> Iterator[str]:
    """Yields the source sentences, and an empty one where a document ends."""
    bad_lines = BadLines(options.errors)
    if corpus.target is None and corpus.source is not None:
        reader = LineReader(corpus.source)
        lines, path = ((*one, b"") for one in enumerate(reader, 1)), reader.path
    else:
        files = find_corpus_files(
            replace(corpus, translated_by=None),
            "train",
            data_dir,
            languages=options.languages,
            context=options.context,
        )
        lines, path = PairLines(files), files.source
    for number, line, target in lines:
        text = bad_lines.decode(line, path, number)
        if text is not None and text.strip():
            yield text
        elif options.context and text is not None:
            if ends_document(text, target.decode("utf-8", "replace")):
                yield ""
    if problems := bad_lines.problems():
        raise UserErrors(problems)


def _tag_of_all(teachers, corpus, options, sources) -> str | None:
    """Returns the tag of all teachers for a corpus."""
    tags = [_tag_of(one, corpus, options, sources) for one in teachers]
    if len(set(tags)) > 1:
        raise UserError(
            f"{_place(corpus)}: teachers that translate together must have the "
            "same tag for a language. Received: "
            + ", ".join(
                f"{tag or 'none'} of {name}"
                for tag, name in zip(tags, _names(teachers), strict=True)
            )
        )
    return tags[0]


def _tag_of(teacher: Run, corpus, options, sources) -> str | None:
    """Returns the tag with which a teacher translates a corpus."""
    known = list(filter(None, teacher.tags))
    if all(begins_with_tag(source, known) for source in filter(None, sources)):
        return None  # each line has its own
    source, target = corpus.direction(options.languages)
    targets = teacher.directions.targets
    tags = list(dict.fromkeys(teacher.tags)) or [None]
    if targets:
        if target is None and len(targets) == 1:
            (target,) = targets
        if target not in targets:
            raise UserError(
                f"{_place(corpus)}: the target must be in a language that "
                f"{teacher.directory} has learned to write: "
                f"{', '.join(targets)}. Received: {target or 'none'}. Set "
                "`target_language` of the corpus or `data.target_language`, or "
                "name another teacher."
            )
        into = [o for o in teacher.directions.known if o.target == target]
        # Those of the pair, if the teacher has learned it.
        found = [one for one in into if one.source == source] or into
        tags = list(dict.fromkeys(one.tag for one in found))
    if corpus.tag in tags:
        return corpus.tag
    if len(tags) == 1:
        return tags[0]
    raise UserError(
        f"{_place(corpus)}: {teacher.directory} needs one of the tags "
        f"{', '.join(filter(None, tags))} before each source. Received: "
        f"{corpus.tag or 'none'}. Set `tag` of the corpus to one of them, or "
        "write one before each line."
    )


def _context_of(teacher: Run, size: int) -> int:
    """Returns how many of `size` sentences a teacher has learned to read."""
    if mark_id(teacher.source_tokenizer) is None:
        return 0
    return size if teacher.context is None else min(size, teacher.context)


def _place(corpus):
    name = corpus.name or corpus.source or corpus.file
    return f"corpus {name}, `translated_by`"


def _file_name(corpus, request: _Request, teachers: Sequence[Run]) -> str:
    digest = hashlib.sha256(b"whole")  # see `_whole`
    for teacher in teachers:
        digest.update(teacher.weights_sha256.encode())
    digest.update(json.dumps(teachers[0].decoding, sort_keys=True).encode())
    if request.tag or request.context:
        digest.update(json.dumps(request[1:]).encode())
    for source in request.sources:
        digest.update(source.encode() + b"\n")
    name = corpus.name or Path(corpus.source or corpus.file).name.split(".")[0]
    return f"{name}-{digest.hexdigest()[:16]}.jsonl"


def _names(teachers):
    return [teacher.directory for teacher in teachers]


def _translate(request: _Request, teachers, file: Path, say):
    """Appends the translations to `FILE.part`, which gets its name at last."""
    sources = request.sources
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.part")
    done = _finished_lines(part)
    names = ", ".join(map(str, _names(teachers)))
    after = f", after the {done:,} that are finished" if done else ""
    say(f"Translating {len(sources):,} sentences by {names}{after}.")
    translators = [Translator.load(one, tag=request.tag) for one in teachers]
    translator = translators[0]
    if len(translators) > 1:
        translator = join_translators(translators)
    texts = sources
    if request.context:
        texts = in_context(sources, request.context, translator.training_tags)
    # Their translations are left out.
    translator = translator.replaced(on_truncated=lambda numbers: None)
    state = translator.steady_search_state()
    with open(part, "a", encoding="utf-8", newline="\n") as output:
        for start in range(done, len(sources), _WINDOW):
            window = sources[start : start + _WINDOW]
            # The same translations in each process that goes on.
            translator.search_state = state
            nbest = translator.translate_nbest(
                texts[start : start + _WINDOW], 1
            )
            output.writelines(
                json.dumps(
                    {"source": source, "target": _whole(best)},
                    ensure_ascii=False,
                )
                + "\n"
                for source, (best,) in zip(window, nbest, strict=True)
            )
            output.flush()
            os.fsync(output.fileno())
            done = start + len(window)
            say(f"{done:,} of {len(sources):,} sentences are translated.")
    if number := _count_untranslated(part):
        say(
            f"{number:,} of {len(sources):,} sentences are left out: they are "
            "longer than the teacher reads, or their translation is empty or "
            "was broken off at its maximum length."
        )
    os.replace(part, file)


def _whole(found: Hypothesis) -> str:
    """Returns a translation, or an empty text if a part of it is missing.

    `prepare` leaves such a pair out, and its source still is a context.
    """
    return "" if found.truncated or found.source_truncated else found.text


def _count_untranslated(part: Path) -> int:
    with open(part, encoding="utf-8", newline="\n") as lines:
        pairs = map(json.loads, lines)
        return sum(bool(p["source"]) and not p["target"] for p in pairs)


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
