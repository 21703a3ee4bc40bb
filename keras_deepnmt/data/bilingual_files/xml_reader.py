"""Reads XML as a stream, with the places of all tags in the file.

Nothing that a document says is followed: entities of its own are refused, and
no other file is read. Places count the bytes of the document in UTF-8, which
other encodings are converted to while they are read.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from keras_deepnmt.data.corpora import LineReader
from keras_deepnmt.errors import UserError

START, END, TEXT, OTHER = "start", "end", "text", "other"
# What is kept in memory: one entry of a document.
_MOST_BYTES = 1 << 24
_MOST_LEVELS = 100
_PIECE = 1 << 16
_HEAD_BYTES = 1 << 10
_XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"
_TAG = re.compile(rb"<(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>")
_LINE_END = re.compile(rb"\r\n?")
_PREFIX = re.compile(r"</?([^\s:/>]+:)?")
_DECLARED = re.compile(
    rb"(?:\xef\xbb\xbf)?<\?xml\s[^>]*?\sencoding\s*=\s*[\"']([\w.:-]+)[\"']"
)
_BEGINNINGS = {
    b"\xff\xfe\x00\x00": "utf-32-le",
    b"\x00\x00\xfe\xff": "utf-32-be",
    b"\xff\xfe": "utf-16-le",
    b"\xfe\xff": "utf-16-be",
    b"<\x00": "utf-16-le",
    b"\x00<": "utf-16-be",
}


@dataclass(eq=False)
class Element:
    """An element whose start tag was read.

    Attributes:
        name: Its name without a prefix.
        namespace: The namespace of its name.
        attributes: The values of its attributes by their names, which are
            `xml:lang` and `xml:space` for these.
        tag: The start tag as it is in the file.
        begin: The place of the start tag.
        end: The place after it.
        line: The number of its line, from 1.
        parent: The element that it is in.
    """

    name: str
    namespace: str
    attributes: dict[str, str]
    tag: str
    begin: int
    end: int
    line: int
    parent: "Element | None" = field(repr=False)

    @property
    def prefix(self) -> str:
        """The prefix of the name with its colon, or nothing."""
        return _PREFIX.match(self.tag)[1] or ""

    @property
    def is_empty(self) -> bool:
        """Whether the start tag is also the end tag."""
        return self.tag.endswith("/>")

    def inherited(self, name: str, default: str) -> str:
        """Returns an attribute of it, or of the nearest element around it."""
        element = self
        while element is not None:
            if name in element.attributes:
                return element.attributes[name]
            element = element.parent
        return default

    def describe(self) -> str:
        """Names it for a message, with the nearest identifier."""
        element = self
        while element is not None:
            for name in ("id", "tuid", "original"):
                if name in element.attributes:
                    value = element.attributes[name]
                    found = f'<{element.name} {name}="{value}">'
                    if element is self:
                        return found
                    return f"<{self.name}> of {found}"
            element = element.parent
        return f"<{self.name}>"


class XmlReader:
    """Iterates over what an XML file has, in order.

    Each item is a tuple of a kind, what it is, and the places where it begins
    and ends. `START` and `END` have an `Element`, `TEXT` a text whose entities
    are replaced, with the line ends of the file, and `OTHER`, of comments and
    instructions, `None`.

    `keep` is the place from which `raw` can be asked, set by who reads; `None`
    is that of the last item. A file that is not well-formed, declares entities,
    is nested too deep or has an entry that is too long is refused.
    """

    def __init__(self, file: LineReader):
        self.path = file.path
        self.keep: int | None = None
        self._file = file
        self._buffer = bytearray()
        self._start = 0
        self._last = 0
        self._items: list[tuple] = []
        self._open: list[Element] = []
        self._parser = None

    def raw(self, begin: int, end: int) -> str:
        """Returns a part of the document as it is."""
        place = begin - self._start
        return self._buffer[place : place + end - begin].decode("utf-8")

    def __iter__(self) -> Iterator[tuple]:
        self._parser = parser = self._make_parser()
        self._file.lines = 0
        try:
            for block in utf8_blocks(self._file, self._line):
                for place in range(0, len(block), _PIECE):
                    piece = block[place : place + _PIECE]
                    self._add(piece)
                    parser.Parse(piece, False)
                    yield from self._taken()
                # For a message about the file itself.
                self._file.lines = self._line() - 1
            parser.Parse(b"", True)
            yield from self._taken()
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            inside = f" in {self._open[-1].describe()}" if self._open else ""
            raise UserError(
                f"{self.path}, line {error.lineno}: not well-formed "
                f"XML{inside} ({reason})."
            ) from error

    def _make_parser(self):
        parser = expat.ParserCreate("utf-8", namespace_separator=" ")
        parser.ordered_attributes = True
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.StartElementHandler = self._on_start
        parser.EndElementHandler = self._on_end
        parser.CharacterDataHandler = self._on_text
        parser.CommentHandler = lambda text: self._on_other(b"-->")
        parser.ProcessingInstructionHandler = lambda *words: self._on_other(
            b"?>"
        )
        parser.EntityDeclHandler = self._refuse_entity
        parser.SkippedEntityHandler = self._refuse_entity
        return parser

    def _line(self):
        return self._parser.CurrentLineNumber

    def _refuse_entity(self, name, *_):
        raise UserError(
            f"{self.path}, line {self._line()}: has the entity `{name}`, but "
            "only those of XML itself are read, such as &amp;. Put its text in "
            "its place."
        )

    def _add(self, piece):
        low = self._last if self.keep is None else self.keep
        del self._buffer[: low - self._start]
        self._start = low
        self._buffer += piece
        if len(self._buffer) > _MOST_BYTES:
            inside = (
                self._open[-1].describe() if self._open else "its beginning"
            )
            raise UserError(
                f"{self.path}, line {self._line()}: {inside} has more than "
                f"{_MOST_BYTES:,} bytes without an end. Is it such a document?"
            )

    def _taken(self):
        items, self._items = self._items, []
        return items

    def _tag(self, begin):
        return _TAG.match(self._buffer, begin - self._start)[0]

    def _on_start(self, name, attributes):
        self._last = begin = self._parser.CurrentByteIndex
        tag = self._tag(begin)
        namespace, _, local = name.rpartition(" ")
        element = Element(
            name=local,
            namespace=namespace,
            attributes={
                key.replace(f"{_XML_NAMESPACE} ", "xml:"): value
                for key, value in zip(
                    attributes[::2], attributes[1::2], strict=True
                )
            },
            tag=tag.decode("utf-8"),
            begin=begin,
            end=begin + len(tag),
            line=self._line(),
            parent=self._open[-1] if self._open else None,
        )
        if len(self._open) == _MOST_LEVELS:
            raise UserError(
                f"{self.path}, line {element.line}: {element.describe()} is in "
                f"more than {_MOST_LEVELS} other elements."
            )
        self._open.append(element)
        self._items.append((START, element, begin, element.end))

    def _on_end(self, name):
        self._last = begin = self._parser.CurrentByteIndex
        element = self._open.pop()
        if element.is_empty:
            begin = end = element.end
        else:
            end = begin + len(self._tag(begin))
        self._items.append((END, element, begin, end))

    def _on_text(self, text):
        self._last = begin = self._parser.CurrentByteIndex
        if text == "\n":
            # The parser gives each line end by itself, and always as this one.
            match = _LINE_END.match(self._buffer, begin - self._start)
            text = match[0].decode() if match else text
        self._items.append((TEXT, text, begin, begin))

    def _on_other(self, ending):
        self._last = begin = self._parser.CurrentByteIndex
        place = self._buffer.index(ending, begin - self._start + 2)
        end = self._start + place + len(ending)
        self._items.append((OTHER, None, begin, end))


def encoding_of(file: LineReader) -> str:
    """Returns the encoding of an XML file, as it begins or says.

    One that is not known, or that the file cannot have, is refused.
    """
    head = file.head(_HEAD_BYTES)
    for beginning, encoding in _BEGINNINGS.items():
        if head.startswith(beginning):
            return encoding
    declared = _DECLARED.match(head)
    if declared is None:
        return "utf-8"
    name = declared[1].decode()
    try:
        is_possible = "<".encode(name) == b"<"
        encoding = codecs.lookup(name).name
    except LookupError:
        is_possible = False
    if not is_possible:
        raise UserError(
            f"{file.path}, line 1: says that its encoding is {name}, which it "
            "cannot be or which is not known. Correct its first line, or "
            "convert it to UTF-8."
        )
    return encoding


def utf8_blocks(
    file: LineReader, line=lambda: 1, encoding: str | None = None
) -> Iterator[bytes]:
    """Iterates over the content of an XML file, converted to UTF-8.

    `line` returns the number of the line that an error names. `encoding` is
    that of the file, by default `encoding_of` it.
    """
    encoding = encoding or encoding_of(file)
    if encoding == "utf-8":
        yield from file.blocks()
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for block in file.blocks():
            yield decoder.decode(block).encode("utf-8")
        yield decoder.decode(b"", final=True).encode("utf-8")
    except UnicodeError as error:
        raise UserError(
            f"{file.path}, after line {line()}: not {encoding} ({error})."
        ) from error


def with_attribute(tag: str, name: str, value: str | None) -> str:
    """Returns a start tag with another value of an attribute; `None` drops it.

    Example:
    >>> with_attribute('<target state="new"/>', "state", "translated")
    '<target state="translated"/>'
    """
    found = re.search(rf"\s+{name}\s*=\s*(\"[^\"]*\"|'[^']*')", tag)
    new = "" if value is None else f' {name}="{escaped(value)}"'
    if found:
        return tag[: found.start()] + new + tag[found.end() :]
    place = re.search(r"\s*/?>$", tag).start()
    return tag[:place] + new + tag[place:]


def escaped(text: str) -> str:
    """Returns a text as XML has it, also in an attribute.

    Characters that XML forbids are left out.

    Example:
    >>> escaped("a < b & c")
    'a &lt; b &amp; c'
    """
    text = _FORBIDDEN.sub("", text)
    for letter, entity in _ENTITIES.items():
        text = text.replace(letter, entity)
    return text


_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_FORBIDDEN = re.compile(
    "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
