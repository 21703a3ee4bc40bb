"""Translates files that have texts and their translations."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from keras_deepnmt.data.asked_sides import Asked
from keras_deepnmt.data.bilingual_files.document import WITH_MARKUP, Document
from keras_deepnmt.data.compression import packed
from keras_deepnmt.documents.segments import translate_segments
from keras_deepnmt.documents.sentences import SentenceSplitter
from keras_deepnmt.files import atomic_file, writable_file

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator

_BATCHES_PER_WINDOW = 64


@dataclass(frozen=True)
class TranslatedDocument:
    """What became of a document.

    Attributes:
        num_texts: How many of its texts were translated.
        left: Why others were left as they are, and how many.
    """

    num_texts: int
    left: dict[str, int] = field(default_factory=dict)


def translate_document(
    translator: "Translator",
    path: str | Path,
    output: str | Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    replace_targets: bool = False,
    format: str | None = None,
    keep_markup: bool = False,
    splitter: SentenceSplitter | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> TranslatedDocument:
    r"""Translates a document of XLIFF, TMX, TSV or JSON Lines.

    The output is the same document with targets, variants or a column for the
    translations; all else stays as it is. Texts are read, translated and
    written a few batches at a time.

    Args:
        translator: Translator.
        path: The document, plain or compressed.
        output: The file to write, compressed if its name ends with `.gz`,
            `.xz`, `.zst` or `.bz2`. It may be the document itself.
        source_language: Code of the language of the texts, such as `de`, in
            XLIFF and TMX. Defaults to what the document says.
        target_language: Code of the language of the translations. TMX needs it.
            A translator of several languages that has no tag translates into
            it, as `Translator.translate` does.
        source_column: Name of the column to translate. Tables need it.
        target_column: Name of the column for the translations. Defaults to
            `translation`.
        replace_targets: Whether texts of XLIFF and TMX that have a translation
            are translated again, unless it is approved or final.
        format: `xliff`, `tmx`, `tsv` or `jsonl`. Defaults to what the document
            begins with, or its name says.
        keep_markup: Whether the markup of the texts of a table is kept, see
            `translate_segments`; in XLIFF and TMX it is in any case.
        splitter: Splits a text into sentences. Defaults to one sentence a text.
        on_progress: called with the number of sentences just translated.

    Returns:
        How many texts were translated, and how many were left.

    Raises:
        UserError: if the document is damaged or not what was asked for, or an
            argument is not for its format, or a model of several languages has
            not learned the target language or has several tags for it, or the
            output is a folder or in none that exists; all before anything is
            translated.
        OSError: if the output cannot be written for another reason.

    Example:
    >>> from keras_deepnmt import Translator
    >>> translator = Translator.from_preset("transformer_tiny.demo_de_en")
    >>> written = Path("a.tsv").write_text("de")
    >>> translate_document(translator, "a.tsv", "b.tsv", source_column="de")
    TranslatedDocument(num_texts=0, left={})
    >>> Path("b.tsv").read_text().split("\t")
    ['de', 'translation']
    """
    destination = writable_file(output)
    asked = Asked(
        *(source_language, target_language, source_column, target_column),
        replace_targets,
    )
    document = Document(path, asked, format)
    num_texts = sum(1 for _ in document.texts())
    left = dict(document.left)
    keep_markup = keep_markup or document.format in WITH_MARKUP
    # A model of one language may have another code for it, or none.
    targets = translator.directions.targets
    has_choice = translator.tag is None and len(targets) > 1

    def translations() -> Iterator[str]:
        # Another reader: the document is written at the same time.
        texts = (text.text for text in Document(path, asked, format).texts())
        size = _BATCHES_PER_WINDOW * translator.batch_size
        while window := list(itertools.islice(texts, size)):
            yield from translate_segments(
                translator,
                window,
                keep_markup=keep_markup,
                splitter=splitter,
                on_progress=on_progress,
                target_language=target_language if has_choice else None,
            )

    with (
        atomic_file(destination) as temporary,
        open(temporary, "wb") as file,
        packed(file, output) as content,
    ):
        document.write(translations(), content)
    return TranslatedDocument(num_texts, left)
