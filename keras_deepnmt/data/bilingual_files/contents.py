"""What an element with inline markup has, and the texts that are in it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from keras_deepnmt.data.bilingual_files.xml_reader import (
    END,
    OTHER,
    TEXT,
    Element,
    XmlReader,
    escaped,
)
from keras_deepnmt.data.marked_text import MarkedText, separating_tags

OPEN, CLOSE, SINGLE = "open", "close", "single"
_SPACES = re.compile(r"[ \t\r\n]+")
# Not tried again at each space of many.
_BREAKS = re.compile(r"(?<![ \t])[ \t]*(?:\r?\n|\r)[ \t\r\n]*")
_AROUND_LINES = re.compile(rf"{_BREAKS.pattern}|\A[ \t]+|(?<![ \t])[ \t]+\Z")
# Elements around text that is translated, in XLIFF 1.2, XLIFF 2 and TMX.
_AROUND_TEXT = frozenset({"g", "mrk", "pc", "hi"})
# Codes that begin and end something, by the attributes that pair them.
_BEGINS = {
    "bpt": ("i", "rid", "id"),
    "bx": ("rid", "id"),
    "sc": ("id",),
    "sm": ("id",),
}
_ENDS = {
    "ept": ("bpt", ("i", "rid", "id")),
    "ex": ("bx", ("rid", "id")),
    "ec": ("sc", ("startRef",)),
    "em": ("sm", ("startRef",)),
}


@dataclass(eq=False)
class Code:
    """Markup in a text, which a translation has unchanged.

    Attributes:
        raw: The markup as it is in the file.
        kind: `"open"`, `"close"` or `"single"`.
        key: What an opening code and the closing one have in common.
        is_element: Whether it is a tag of an element around text.
        is_segment: Whether that element is a segment of its own.
    """

    raw: str
    kind: str = SINGLE
    key: object = None
    is_element: bool = False
    is_segment: bool = False


@dataclass
class Content:
    """What is in an element.

    Attributes:
        element: The element.
        begin: The place after its start tag.
        end: The place before its end tag.
        after: The place after its end tag.
        tokens: Texts and codes, in order.
    """

    element: Element
    begin: int
    end: int = 0
    after: int = 0
    tokens: list[str | Code] = field(default_factory=list)

    @property
    def plain(self) -> str:
        """The text without its codes, in one line.

        There are spaces in place of codes where a translator reads them.
        """
        if not _may_separate(self.tokens):
            texts = (token for token in self.tokens if isinstance(token, str))
            return one_line("".join(texts))
        text, codes = _tagged(_merged(self.tokens))
        spaces = {tag.begin for tag in separating_tags(MarkedText.of(text))}
        text = _any_of(codes).sub(
            lambda tag: " " if tag.start() in spaces else "", text
        )
        return one_line(text)

    @property
    def is_blank(self) -> bool:
        """Whether there is neither text nor a code but for marked segments."""
        return all(
            not one_line(token) if isinstance(token, str) else token.is_segment
            for token in self.tokens
        )

    @property
    def segments(self) -> "dict[object, Content]":
        """What is in each element that is marked as a segment, by its `mid`.

        One without a `mid` is the same segment as no other.
        """
        found, inside = {}, None
        for token in self.tokens:
            if isinstance(token, Code) and token.is_segment:
                inside = None
                if token.kind != CLOSE:
                    mid = token.key.attributes.get("mid", token.key)
                    content = found[mid] = Content(token.key, token.key.end)
                    inside = content if token.kind == OPEN else None
            elif inside is not None:
                inside.tokens.append(token)
        return found

    def as_xml(self) -> str:
        """The content in terms of XML, to compare it."""
        return one_line(_as_xml(self.tokens))


@dataclass
class Part:
    """A text in a content, or what is between two of them.

    Attributes:
        raw: What it is in the file.
        text: What is translated, a line; its codes are tags of one name, such
            as `<_1>`, `</_1>` and `<_2/>`. `None` of what is not translated.
        codes: The codes by these tags, in order.
    """

    raw: str
    text: str | None = None
    codes: dict[str, str] = field(default_factory=dict)

    def finished(self, translation: str) -> str:
        """Returns a translation in terms of XML, with all codes once.

        Where a translation has them not once, or not nested, they are put
        after it.
        """
        if self.text is None:
            return self.raw
        pattern = _any_of(self.codes)
        found = pattern.findall(translation)
        if sorted(found) != sorted(self.codes) or not _are_nested(found):
            text = one_line(pattern.sub(" ", translation))
            return escaped(text) + "".join(self.codes.values())
        pieces, place = [], 0
        for match in pattern.finditer(translation):
            pieces.append(escaped(translation[place : match.start()]))
            pieces.append(self.codes[match[0]])
            place = match.end()
        return "".join([*pieces, escaped(translation[place:])])


def one_line(text: str) -> str:
    """Returns a text with single spaces instead of white space of XML."""
    return _SPACES.sub(" ", text).strip(" ")


def read_content(
    xml: XmlReader, items: Iterator[tuple], element: Element
) -> Content:
    """Reads an element whose start tag was read, to its end tag.

    `items` are those of `xml`, the next one of which is in the element.
    """
    content = Content(element, element.end)
    tokens = content.tokens
    for kind, what, begin, end in items:
        if kind == TEXT:
            tokens.append(what)
        elif kind == OTHER:
            tokens.append(Code(xml.raw(begin, end)))
        elif kind == END:
            if what is element:
                content.end, content.after = begin, end
                break
            tokens.append(_tag(what, xml.raw(begin, end), CLOSE))
        elif _is_around_text(what):
            tokens.append(_tag(what, what.tag, OPEN))
        else:
            _, after = skip(items, what)
            raw = xml.raw(begin, after)
            code = Code(raw, *_role(what))
            if what.is_empty and _is_segment(what):
                code.is_segment, code.key = True, what
            tokens.append(code)
    return content


def skip(items: Iterator[tuple], element: Element) -> tuple[int, int]:
    """Reads to the end of an element, and returns the places of its end tag."""
    for kind, what, begin, end in items:
        if kind == END and what is element:
            return begin, end
    return element.end, element.end


def make_parts(content: Content, keeps_spaces: bool = False) -> list[Part]:
    """Finds the texts in a content.

    White space is one space, unless `keeps_spaces`: then each line of a text
    without codes is a text. Where elements are marked as segments, each of them
    is a text. A text without letters and digits is not translated. The parts,
    one after the other, are the content.
    """
    tokens = content.tokens
    is_marked = any(isinstance(t, Code) and t.is_segment for t in tokens)
    if not is_marked:
        return _parts_of(tokens, keeps_spaces)
    parts, inside = [], None
    for token in tokens:
        if isinstance(token, Code) and token.is_segment:
            if token.kind == SINGLE:
                parts.append(Part(token.raw))
            elif token.kind == OPEN:
                inside = []
                parts.append(Part(token.raw))
            else:
                parts += _parts_of(inside or [], keeps_spaces)
                parts.append(Part(token.raw))
                inside = None
        elif inside is None:
            parts.append(Part(_as_xml([token])))
        else:
            inside.append(token)
    return parts


def _parts_of(tokens, keeps_spaces):
    tokens = _merged(tokens)
    has_codes = any(isinstance(token, Code) for token in tokens)
    if keeps_spaces and has_codes:
        tokens = _with_breaks_as_codes(tokens)
    elif keeps_spaces:
        return _lines("".join(tokens))
    before, after = "", ""
    if tokens and isinstance(tokens[0], str):
        text = tokens[0]
        before = text[: len(text) - len(text.lstrip(" \t\r\n"))]
        tokens[0] = text[len(before) :]
    if tokens and isinstance(tokens[-1], str):
        text = tokens[-1]
        after = text[len(text.rstrip(" \t\r\n")) :]
        tokens[-1] = text[: len(text) - len(after)]
    parts = [Part(before), _text_part(tokens), Part(after)]
    return [part for part in parts if part.raw]


def _lines(text):
    return [
        _text_part([piece]) if is_text else Part(escaped(piece))
        for piece, is_text in cut_lines(text)
    ]


def cut_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yields the lines of a text, and the white space between and around them.

    Each piece comes with whether it is a line. All pieces together are the
    text.
    """
    place = 0
    for match in _AROUND_LINES.finditer(text):
        if place < match.start():
            yield text[place : match.start()], True
        yield match[0], False
        place = match.end()
    if place < len(text):
        yield text[place:], True


def _text_part(tokens):
    raw = _as_xml(tokens)
    texts = [token for token in tokens if isinstance(token, str)]
    if not any(letter.isalnum() for text in texts for letter in text):
        return Part(raw)
    return Part(raw, *_tagged(tokens))


def _tagged(tokens):
    """The text with tags for codes, and the codes by these tags."""
    texts = [token for token in tokens if isinstance(token, str)]
    name = "_"
    while any(f"<{name}" in text or f"</{name}" in text for text in texts):
        name += "_"
    pairs = _paired(tokens)
    pieces, codes, numbers = [], {}, {}
    for token in tokens:
        if isinstance(token, str):
            pieces.append(_SPACES.sub(" ", token))
            continue
        other = pairs.get(token)
        number = numbers.get(other) or len(set(numbers.values())) + 1
        numbers[token] = number
        tag = f"<{name}{number}/>"
        if other is not None:
            tag = f"<{'/' * (other in numbers)}{name}{number}>"
        codes[tag] = token.raw
        pieces.append(tag)
    return "".join(pieces), codes


def _may_separate(tokens):
    """Whether there are codes with a letter on both sides, as few texts have.

    Such a letter may also come after tags in the text itself.
    """
    before, has_code = " ", False
    for token in tokens:
        if isinstance(token, Code):
            has_code = True
        elif token:
            is_letter = token[0].isalnum() or token[0] == "<"
            if has_code and is_letter and not before.isspace():
                return True
            before, has_code = token[-1], False
    return False


def _any_of(codes):
    return re.compile("|".join(map(re.escape, codes)) or r"(?!)")


def _paired(tokens) -> dict[Code, Code]:
    """Finds the codes that belong together and cross no others."""
    places = {t: n for n, t in enumerate(tokens) if isinstance(t, Code)}
    opened, candidates = {}, []
    for code in places:
        if code.kind == OPEN:
            opened[code.key] = code
        elif code.kind == CLOSE and code.key in opened:
            candidates.append((opened.pop(code.key), code))
    # Elements are nested; other pairs may cross them.
    candidates.sort(key=lambda pair: not pair[0].is_element)
    pairs, taken = {}, []
    for one, other in candidates:
        begin, end = places[one], places[other]
        if all(_is_nested(begin, end, *range_) for range_ in taken):
            taken.append((begin, end))
            pairs |= {one: other, other: one}
    return pairs


def _is_nested(begin, end, other_begin, other_end):
    inside = other_begin < begin and end < other_end
    around = begin < other_begin and other_end < end
    return inside or around or end < other_begin or other_end < begin


def _are_nested(tags: Sequence[str]) -> bool:
    opened = []
    for tag in tags:
        if tag.endswith("/>"):
            continue
        if not tag.startswith("</"):
            opened.append(tag[1:])
        elif not opened or opened.pop() != tag[2:]:
            return False
    return not opened


def _merged(tokens):
    merged: list[str | Code] = []
    for token in tokens:
        if isinstance(token, str) and merged and isinstance(merged[-1], str):
            merged[-1] += token
        else:
            merged.append(token)
    return merged


def _with_breaks_as_codes(tokens):
    found: list[str | Code] = []
    for number, token in enumerate(tokens):
        if isinstance(token, Code):
            found.append(token)
            continue
        before, text, after = "", token, ""
        if number == 0:
            text = token.lstrip(" \t\r\n")
            before = token[: len(token) - len(text)]
        if number == len(tokens) - 1:
            after = text[len(text.rstrip(" \t\r\n")) :]
            text = text[: len(text) - len(after)]
        pieces, place = [before], 0
        for match in _BREAKS.finditer(text):
            pieces += [text[place : match.start()], Code(escaped(match[0]))]
            place = match.end()
        found += [p for p in [*pieces, text[place:], after] if p != ""]
    return _merged(found)


def _as_xml(tokens):
    return "".join(
        escaped(token) if isinstance(token, str) else token.raw
        for token in tokens
    )


def _is_around_text(element):
    attributes = element.attributes
    return (
        element.name in _AROUND_TEXT
        and element.namespace == element.parent.namespace
        and not element.is_empty
        and attributes.get("translate") != "no"
        and attributes.get("mtype") != "protected"
    )


def _tag(element, raw, kind):
    return Code(raw, kind, element, True, _is_segment(element))


def _is_segment(element):
    return element.name == "mrk" and element.attributes.get("mtype") == "seg"


def _role(element):
    """The kind of a code, and its key."""
    attributes = element.attributes
    if element.name in _BEGINS:
        kind, name, keys = OPEN, element.name, _BEGINS[element.name]
    elif element.name in _ENDS:
        kind, (name, keys) = CLOSE, _ENDS[element.name]
    else:
        return SINGLE, None
    for key in keys:
        if key in attributes:
            return kind, (name, attributes[key])
    return SINGLE, None
