"""Documents that are handed to the web page, and handed back translated."""

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

from keras_deepnmt.data.asked_sides import Asked
from keras_deepnmt.data.bilingual_files.document import (
    WITH_MARKUP,
    Document,
    format_of_name,
)
from keras_deepnmt.data.compression import HEAD_BYTES, compression_of
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import as_line
from keras_deepnmt.server.request_errors import RequestError
from keras_deepnmt.server.request_limits import RequestLimits

# Not at other line ends, such as U+2028.
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_BYTE_ORDER_MARK = "\ufeff"
# A user sees how far it is.
_FEWEST_STEPS = 4
_SMALLEST_STEP = 8
_TEXT_ENDS = (".txt", ".text")
# A translation, and whether a part of the text was not read.
TranslatedLine = tuple[str, bool]
TranslateLines = Callable[[list[str]], Awaitable[Sequence[TranslatedLine]]]


class PageDocument:
    """A document that was handed in, and is translated in steps.

    Its name says what it is; `languages` are codes of the languages of the
    model. Once it has been read, `num_texts` is how many of its texts are
    translated. Of `num_cut` of them a part was not read, since a sentence is
    longer than the model allows.
    """

    def __init__(self, content: bytes, name: str, languages: tuple[str, str]):
        self.num_texts = self.num_cut = 0
        self._content = content
        self._name = name
        self._kind = format_of_name(name)
        self._languages = languages
        self._lines: list[str] = []
        self._texts: list[str] = []
        self._translations: list[str] = []

    async def read(self) -> None:
        """Finds the texts of the document.

        Raises a `RequestError` if the document is damaged, or of another kind.
        """
        content, kind = self._content, self._kind
        if self._name.lower().endswith(_TEXT_ENDS):
            self._lines = _LINE.findall(_decoded(content))
            # A mark before the first line stays where it is.
            self._texts = [
                line.removeprefix(_BYTE_ORDER_MARK).strip()
                for line in self._lines
            ]
        elif kind in WITH_MARKUP and not compression_of(content[:HEAD_BYTES]):
            self._texts = await _in_thread(
                _texts, content, kind, self._languages
            )
        else:
            raise RequestError(
                400,
                "a document must be plain text (.txt), XLIFF (.xlf, .xliff) or "
                "TMX (.tmx), and not compressed.",
            )
        self._translations = list(self._texts)
        self.num_texts = sum(map(bool, self._texts))

    async def translate(
        self,
        translate_lines: TranslateLines,
        limits: RequestLimits,
        num_at_once: int,
    ) -> AsyncIterator[int]:
        """Translates the texts; yields how many are done, after each step.

        `translate_lines` gets only so many texts at a time as one request may
        have, each time with a time of its own; a model translates `num_at_once`
        of them at once. Raises a `RequestError` if there is no place for the
        texts, or no time.
        """
        texts = self._texts
        # Those of like length together, as a model computes them.
        places = sorted(
            (place for place, text in enumerate(texts) if text),
            key=lambda place: len(texts[place]),
            reverse=True,
        )
        size = min(limits.max_sentences, _step_size(len(places), num_at_once))
        for start in range(0, len(places), size):
            step = places[start : start + size]
            found = await _patiently(
                translate_lines, [texts[place] for place in step], limits
            )
            for place, (text, is_cut) in zip(step, found, strict=True):
                self._translations[place] = text
                self.num_cut += is_cut
            yield start + len(step)

    async def written(self) -> bytes:
        """Returns the document with its translations.

        Raises a `RequestError` if they cannot be written into it.
        """
        if self._kind in WITH_MARKUP:
            return await _in_thread(
                *(_written, self._content, self._kind, self._languages),
                self._translations,
            )
        return "".join(
            line.replace(text, as_line(translation)) if text else line
            for line, text, translation in zip(
                self._lines, self._texts, self._translations, strict=True
            )
        ).encode()


def _step_size(number, num_at_once):
    """How many texts to translate in a step; less where there are few."""
    few = max(_SMALLEST_STEP, -(-number // _FEWEST_STEPS))
    return min(num_at_once, few)


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
        return content.decode("utf-8")
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
