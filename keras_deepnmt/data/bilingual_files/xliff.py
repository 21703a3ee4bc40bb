"""Reads XLIFF 1.2, 2.0 and 2.1.

A segment is translated if it may be (`translate`), is not approved, and has no
translation: no target, an empty one, one that is equal to the source, or one
whose state says so. A translation that is there is left as it is.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

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
    check_language,
)
from keras_deepnmt.data.bilingual_files.xml_reader import (
    END,
    START,
    TEXT,
    Element,
    XmlReader,
    with_attribute,
)
from keras_deepnmt.data.corpora import LineReader
from keras_deepnmt.errors import UserError

VERSIONS = ("1.2", "2.0", "2.1")
# A target in these states is no translation yet.
_OPEN_STATES = {"1.2": ("new", "needs-translation"), "2": ("initial",)}
# These stay, whatever is asked.
_FINAL_STATES = {"1.2": ("final", "signed-off"), "2": ("final", "reviewed")}


@dataclass
class _Unit:
    """A `trans-unit` of XLIFF 1.2, or a `segment` of XLIFF 2."""

    element: Element
    version: str
    source: Content | None = None
    segmented: Content | None = None
    target: Content | None = None
    indent: str = ""

    @property
    def state(self) -> str | None:
        if self.version == "2":
            return self.element.attributes.get("state")
        if self.target is None:
            return None
        return self.target.element.attributes.get("state")

    @property
    def is_approved(self) -> bool:
        return (
            self.element.attributes.get("approved") == "yes"
            or self.state in _FINAL_STATES[self.version]
        )

    @property
    def is_translated(self) -> bool:
        """Whether its target is a translation, as far as one can tell."""
        if self.target is None or self.target.is_blank:
            return False
        if self.state in _OPEN_STATES[self.version]:
            return False
        return self.state is not None or not self._is_copy

    @property
    def _is_copy(self):
        sources = [one for one in (self.source, self.segmented) if one]
        return self.target.as_xml() in [one.as_xml() for one in sources]


class XliffFile:
    """The units of an XLIFF file, see `BilingualFile`."""

    def __init__(self, file: LineReader, asked: Asked):
        self.left: Counter = Counter()
        self._file = file
        self._asked = asked
        self._languages: dict[str, tuple[str, int]] = {}

    def entries(self) -> Iterator[Entry]:
        self.left = Counter()
        for found in self._read():
            if isinstance(found, Entry):
                yield found
            elif reason := self._reason(found):
                self.left[reason] += 1
            elif found.source is not None and not found.source.is_blank:
                yield self._entry(found)

    def pairs(self) -> Iterator[Pair]:
        self.left = Counter()
        for found in self._read():
            if isinstance(found, Entry):
                continue
            if found.source is None or found.source.is_blank:
                self.left["without a source"] += 1
            elif not (found.is_translated or found.is_approved) or (
                found.target is None or found.target.is_blank
            ):
                self.left["without a translation"] += 1
            else:
                yield from self._pairs_of(found)

    def _pairs_of(self, unit):
        """Yields the pairs of a translated unit: one, or one a segment."""
        source, target = unit.segmented or unit.source, unit.target
        segments, translations = source.segments, target.segments
        if not translations or not translations.keys() <= segments.keys():
            # Which segments belong together is not known.
            if any(one.is_blank for one in translations.values()):
                self.left["without a translation"] += 1
            else:
                yield Pair(unit.element.line, unit.source.plain, target.plain)
            return
        may_be_copies = unit.is_approved or unit.state is not None
        for mid, segment in segments.items():
            translation = translations.get(mid)
            if segment.is_blank:
                self.left["without a source"] += 1
            elif (
                translation is None
                or translation.is_blank
                or not may_be_copies
                and translation.as_xml() == segment.as_xml()
            ):
                self.left["without a translation"] += 1
            else:
                yield Pair(unit.element.line, segment.plain, translation.plain)

    def _reason(self, unit):
        if unit.element.inherited("translate", "yes") == "no":
            return 'marked translate="no"'
        if unit.is_approved:
            return "approved or final"
        if unit.is_translated and not self._asked.replace_targets:
            return "translated already"
        return None

    def _read(self) -> Iterator[Entry | _Unit]:
        xml = XmlReader(self._file)
        items, version = iter(xml), None
        self._languages = {}
        for kind, what, _, _ in items:
            if kind != START:
                continue
            if what.parent is None:
                version = self._version(what)
                if version == "2":
                    yield from self._header(what, "srcLang", "trgLang")
            elif version == "1.2" and what.name == "file":
                yield from self._header(
                    what, "source-language", "target-language"
                )
            elif _is_unit(what, version):
                xml.keep = what.begin
                yield _read_unit(xml, items, what, version)
                xml.keep = None

    def _version(self, root):
        place = f"{self._file.path}, line {root.line}"
        version = root.attributes.get("version")
        if root.name != "xliff":
            raise UserError(
                f"{place}: is not XLIFF, but begins with <{root.name}>."
            )
        if version not in VERSIONS:
            raise UserError(
                f"{place}: <xliff> must have one of the versions "
                f"{', '.join(VERSIONS)}. Received: "
                f"{'none' if version is None else version}. Save it as one of "
                "them."
            )
        return version if version == "1.2" else "2"

    def _header(self, element, source_name, target_name):
        """Checks the languages; yields an entry that adds a missing one."""
        place = f"{self._file.path}, line {element.line}, <{element.name}>"
        for side, name in (("source", source_name), ("target", target_name)):
            found = element.attributes.get(name)
            language = check_language(
                place, side, found, getattr(self._asked, f"{side}_language")
            )
            before, line = self._languages.setdefault(
                side, (language, element.line)
            )
            if before.lower() != language.lower():
                raise UserError(
                    f"{place}: its {side} language is {language}, but that of "
                    f"line {line} is {before}. Split the file by languages."
                )
            if side == "target" and not found:
                tag = with_attribute(element.tag, name, language)
                edit = Edit(element.begin, element.end, tag)
                yield Entry(element.line, [], lambda _, edit=edit: [edit])

    def _entry(self, unit):
        source = unit.segmented or unit.source
        keeps_spaces = (
            unit.source.element.inherited("xml:space", "default") == "preserve"
        )
        return Entry(
            unit.element.line,
            make_parts(source, keeps_spaces),
            lambda inside: _edits(unit, inside),
        )


def _is_unit(element, version):
    if element.namespace != element.parent.namespace:
        return False
    if version == "1.2":
        return element.name == "trans-unit"
    return element.name == "segment" and element.parent.name == "unit"


def _read_unit(xml, items, element, version) -> _Unit:
    unit, space = _Unit(element, version), ""
    for kind, what, _, _ in items:
        if kind == END:
            space = ""
            if what is element:
                break
        elif kind == TEXT:
            space += what
        elif kind == START:
            # Those of `alt-trans` and of matches are in other elements.
            is_own = (
                what.parent is element and what.namespace == element.namespace
            )
            if is_own and what.name in ("source", "seg-source", "target"):
                name = what.name.replace("seg-source", "segmented")
                setattr(unit, name, read_content(xml, items, what))
                if name == "source" and not space.strip():
                    unit.indent = space
            space = ""
    return unit


def _edits(unit, inside) -> list[Edit]:
    edits = []
    is_old = unit.version == "1.2"
    if not is_old:
        tag = with_attribute(unit.element.tag, "state", "translated")
        # It would describe the state before.
        tag = with_attribute(tag, "subState", None)
        edits.append(Edit(unit.element.begin, unit.element.end, tag))
    if unit.target is None:
        name = f"{unit.source.element.prefix}target"
        state = ' state="translated"' if is_old else ""
        place = (unit.segmented or unit.source).after
        content = f"{unit.indent}<{name}{state}>{inside}</{name}>"
        return [*edits, Edit(place, place, content)]
    element = unit.target.element
    tag = element.tag
    if is_old:
        tag = with_attribute(tag, "state", "translated")
        tag = with_attribute(tag, "state-qualifier", None)
    return sorted([*edits, *replaced_element(unit.target, tag, inside)])


def replaced_element(content: Content, tag: str, inside: str) -> list[Edit]:
    """Returns the changes for another start tag and content."""
    element = content.element
    if element.is_empty:
        name = f"{element.prefix}{element.name}"
        tag = f"{tag.removesuffix('/>').rstrip()}>"
        return [Edit(element.begin, element.end, f"{tag}{inside}</{name}>")]
    return [
        Edit(element.begin, element.end, tag),
        Edit(content.begin, content.end, inside),
    ]
