"""Reads TMX, the format of translation memories.

A unit is translated if it has a text in the source language, and none in the
target language.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from keras_deepnmt.data.asked_sides import Asked
from keras_deepnmt.data.bilingual_files.contents import (
    Content,
    make_parts,
    read_content,
)
from keras_deepnmt.data.bilingual_files.entries import (
    Edit,
    Entry,
    Pair,
    base_language,
)
from keras_deepnmt.data.bilingual_files.xliff import replaced_element
from keras_deepnmt.data.bilingual_files.xml_reader import (
    END,
    START,
    TEXT,
    Element,
    XmlReader,
    escaped,
)
from keras_deepnmt.data.corpora import LineReader
from keras_deepnmt.errors import UserError

_SHOWN_LANGUAGES = 10


@dataclass(eq=False)
class _Variant:
    """A `tuv`: the text of a unit in one language."""

    element: Element
    language: str
    segment: Content | None = None
    after: int = 0
    indent: str = ""


@dataclass
class _Unit:
    element: Element
    variants: list[_Variant] = field(default_factory=list)

    def find(self, *languages: str) -> list[_Variant | None]:
        """Finds the texts of languages, or else of regions that have them.

        No text is that of two languages.
        """
        found: list[_Variant | None] = [None] * len(languages)
        rest = list(self.variants)
        for form in (str.lower, base_language):
            for side, language in enumerate(languages):
                fits = [v for v in rest if form(v.language) == form(language)]
                if found[side] is None and fits:
                    found[side] = fits[0]
                    rest.remove(fits[0])
        return found


class TmxFile:
    """The units of a TMX file, see `BilingualFile`.

    `asked` has at least the target language.
    """

    def __init__(self, file: LineReader, asked: Asked):
        self.left: Counter = Counter()
        self._file = file
        self._asked = asked
        self._header_language: str | None = None
        self._languages: Counter = Counter()

    def entries(self) -> Iterator[Entry]:
        for unit, source, target in self._matched():
            self._refuse_same_language(unit)
            if source is None:
                continue
            has_target = target is not None and target.segment is not None
            if has_target and not target.segment.is_blank:
                if not self._asked.replace_targets:
                    self.left["translated already"] += 1
                    continue
            yield self._entry(unit, source, target if has_target else None)

    def pairs(self) -> Iterator[Pair]:
        for unit, source, target in self._matched():
            if source is None:
                continue
            if (
                target is None
                or target.segment is None
                or target.segment.is_blank
            ):
                self.left[f"without {self._target_language}"] += 1
                continue
            yield Pair(
                unit.element.line, source.segment.plain, target.segment.plain
            )

    @property
    def _target_language(self):
        language = self._asked.target_language
        if not language:
            raise UserError(
                f"{self._file.path}: a TMX file has texts in any languages. "
                "Give `--target-language CODE`."
            )
        return language

    def _matched(self):
        """Yields the units with their two sides; the source may be missing."""
        self.left, self._languages = Counter(), Counter()
        target_language, has_source = self._target_language, False
        for unit in self._read():
            language = self._source_language(unit)
            source, target = unit.find(language, target_language)
            if source is None or source.segment is None:
                self.left[f"without {language}"] += 1
                source = None
            elif source.segment.is_blank:
                self.left[f"with an empty {language}"] += 1
                source = None
            has_source = has_source or source is not None
            yield unit, source, target
        if not has_source:
            found = [name for name, _ in self._languages.most_common()]
            shown = ", ".join(found[:_SHOWN_LANGUAGES]) or "none"
            raise UserError(
                f"{self._file.path}: has no text in "
                f"{self._asked.source_language or self._header_language}. Its "
                f"languages: {shown}. Give another `--source-language`."
            )

    def _refuse_same_language(self, unit):
        language = self._source_language(unit)
        if language.lower() == self._target_language.lower():
            raise UserError(
                f"{self._file.path}, line {unit.element.line}: the target "
                "language must be another one than the source language. "
                f"Received: {self._target_language} for both. Give another "
                "`--target-language`, or the `--source-language`."
            )

    def _source_language(self, unit):
        own = unit.element.attributes.get("srclang") or self._header_language
        asked = self._asked.source_language
        language = asked or (None if own == "*all*" else own)
        if not language:
            raise UserError(
                f"{self._file.path}, line {unit.element.line}: does not say "
                "the source language (`srclang`). Give "
                "`--source-language CODE`."
            )
        return language

    def _read(self) -> Iterator[_Unit]:
        xml = XmlReader(self._file)
        items = iter(xml)
        self._header_language = None
        for kind, what, _, _ in items:
            if kind != START:
                continue
            if what.parent is None:
                self._check_root(what)
            elif what.name == "header":
                self._header_language = what.attributes.get("srclang")
            elif what.name == "tu":
                xml.keep = what.begin
                unit = self._read_unit(xml, items, what)
                for variant in unit.variants:
                    self._languages[variant.language] += 1
                yield unit
                xml.keep = None

    def _check_root(self, root):
        version = root.attributes.get("version", "1")
        if root.name != "tmx" or not version.startswith("1"):
            found = f"<{root.name}>" if root.name != "tmx" else version
            raise UserError(
                f"{self._file.path}, line {root.line}: must be TMX 1, up to "
                f"1.4b. Received: {found}"
            )

    def _read_unit(self, xml, items, element):
        unit, space, variant = _Unit(element), "", None
        for kind, what, _, end in items:
            if kind == END:
                space = ""
                if what is element:
                    break
                if variant is not None and what is variant.element:
                    variant.after, variant = end, None
            elif kind == TEXT:
                space += what
            elif kind == START:
                if what.name == "tuv" and what.parent is element:
                    variant = _Variant(what, self._language_of(what))
                    variant.indent = "" if space.strip() else space
                    unit.variants.append(variant)
                elif (
                    what.name == "seg"
                    and variant is not None
                    and what.parent is variant.element
                ):
                    variant.segment = read_content(xml, items, what)
                space = ""
        return unit

    def _language_of(self, element):
        attributes = element.attributes
        language = attributes.get("xml:lang") or attributes.get("lang")
        if not language:
            raise UserError(
                f"{self._file.path}, line {element.line}: {element.describe()} "
                "must have `xml:lang`, the language of its text."
            )
        return language.lower()

    def _entry(self, unit, source, target):
        keeps_spaces = (
            source.segment.element.inherited("xml:space", "default")
            == "preserve"
        )
        parts = make_parts(source.segment, keeps_spaces)

        def edits(inside):
            if target is not None:
                tag = target.segment.element.tag
                return replaced_element(target.segment, tag, inside)
            last = unit.variants[-1]
            language = escaped(self._target_language)
            content = (
                f'{last.indent}<tuv xml:lang="{language}">'
                f"<seg>{inside}</seg></tuv>"
            )
            return [Edit(last.after, last.after, content)]

        return Entry(unit.element.line, parts, edits)
