"""Documents that are handed to the web page, and handed back translated."""

import asyncio
import re
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from keras_deepnmt.data.asked_sides import Asked
from keras_deepnmt.data.bilingual_files.document import (
    WITH_MARKUP,
    Document,
    format_of_name,
)
from keras_deepnmt.data.compression import HEAD_BYTES, compression_of
from keras_deepnmt.errors import UserError
from keras_deepnmt.server.request_errors import RequestError
from keras_deepnmt.server.request_limits import RequestLimits

# Not at other line ends, such as U+2028.
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_TEXT_ENDS = (".txt", ".text")
# A translation, and whether a part of the text was not read.
TranslatedLine = tuple[str, bool]
TranslateLines = Callable[[list[str]], Awaitable[Sequence[TranslatedLine]]]


@dataclass(frozen=True)
class PageDocument:
    """A translated document.

    Attributes:
        content: its bytes.
        num_texts: how many of its texts were translated.
        num_cut: of how many of them a part was not read, since a sentence is
            longer than the model allows.
    """

    content: bytes
    num_texts: int
    num_cut: int


async def translated_document(
    content: bytes,
    name: str,
    languages: tuple[str, str],
    translate_lines: TranslateLines,
    limits: RequestLimits,
) -> PageDocument:
    """Translates a document.

    Args:
        content: the bytes of the document.
        name: its name, which says what it is.
        languages: codes of the languages of the model.
        translate_lines: translates some of the texts.
        limits: limits of the server. Only so many texts as one request may
            have are asked for at a time, each with a time of its own.

    Raises:
        RequestError: if the document is damaged, or of another kind.
    """
    kind = format_of_name(name)
    if name.lower().endswith(_TEXT_ENDS):
        lines = _LINE.findall(_decoded(content))
        texts = [line.strip() for line in lines]
    elif kind in WITH_MARKUP and not compression_of(content[:HEAD_BYTES]):
        texts = await _in_thread(_texts, content, kind, languages)
    else:
        raise RequestError(
            400,
            "a document must be plain text (.txt), XLIFF (.xlf, .xliff) or "
            "TMX (.tmx), and not compressed.",
        )
    places = [place for place, text in enumerate(texts) if text]
    translations, num_cut = list(texts), 0
    for start in range(0, len(places), limits.max_sentences):
        window = places[start : start + limits.max_sentences]
        found = await _patiently(
            translate_lines, [texts[place] for place in window], limits
        )
        for place, (text, is_cut) in zip(window, found, strict=True):
            translations[place] = text
            num_cut += is_cut
    if kind in WITH_MARKUP:
        made = await _in_thread(
            _written, content, kind, languages, translations
        )
    else:
        made = "".join(
            line.replace(text, translation) if text else line
            for line, text, translation in zip(
                lines, texts, translations, strict=True
            )
        ).encode()
    return PageDocument(made, len(places), num_cut)


async def _patiently(translate_lines, texts, limits):
    """Waits until there is room in the queue, for as long as a request may."""
    waited = 0.0
    while True:
        try:
            return await translate_lines(texts)
        except RequestError as error:
            pause = float(error.headers.get("Retry-After", 0))
            waited += pause
            if error.status != 429 or waited > limits.timeout_s:
                raise
            await asyncio.sleep(pause)


def _decoded(content):
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RequestError(
            400, "the document is not UTF-8. Save it in this encoding."
        ) from error


async def _in_thread(function, content, kind, languages, *others):
    try:
        return await asyncio.to_thread(
            function, content, kind, languages, *others
        )
    except UserError as error:
        # Readers name the file that they were given.
        path = rf"\S*{re.escape(_name(kind))}"
        message = re.sub(path, "the document", str(error))
        raise RequestError(400, message) from error


def _name(kind):
    return f"document.{kind}"


def _texts(content, kind, languages):
    with tempfile.TemporaryDirectory() as folder:
        document = _document(folder, content, kind, languages)
        return [text.text for text in document.texts()]


def _written(content, kind, languages, translations):
    with tempfile.TemporaryDirectory() as folder:
        document = _document(folder, content, kind, languages)
        output = Path(folder) / "translated"
        with open(output, "wb") as file:
            document.write(iter(translations), file)
        return output.read_bytes()


def _document(folder, content, kind, languages):
    path = Path(folder) / _name(kind)
    path.write_bytes(content)
    return Document(path, Asked(*languages), kind)
