"""Prepares this package's docstrings for the Google-style parser of the site.

The docstrings have sections that the parser does not know ("Call arguments:",
"Masking:", "Reference:"), examples that are not indented, and arguments that
share one description. Only the text that the site shows is changed.
"""

import re
import textwrap

import griffe

_SECTIONS = (
    "Args",
    "Call arguments",
    "Returns",
    "Raises",
    "Yields",
    "Attributes",
    "Masking",
    "Example",
    "Reference",
)
_HEADING = re.compile(rf"^({'|'.join(_SECTIONS)}):(?: +(.*))?$")
# Sentences of the description that get a paragraph of their own.
_LABEL = re.compile(r"^(Differs from the papers?|Cost):", re.MULTILINE)


class DocstringSections(griffe.Extension):
    """Rewrites all docstrings and lists the public names of each package."""

    def on_class_instance(self, *, cls, **kwargs):
        """Called by griffe for each class; shows the fields of dataclasses."""
        for decorator in cls.decorators:
            if str(decorator.value) == "checked_dataclass":
                decorator.value = griffe.ExprName("dataclasses.dataclass")

    def on_package(self, *, pkg, **kwargs):
        """Called by griffe once the whole package is read."""
        _rewrite(pkg)


def _rewrite(parent):
    if parent.docstring:
        parent.docstring.value = _rewrite_text(parent.docstring.value, parent)
    for member in parent.members.values():
        if not member.is_alias:
            _rewrite(member)
    if parent.is_module and parent.is_init_module:
        _export(parent)


def _export(package):
    """Makes public what `__init__` imports (`import Name as Name`)."""
    package.exports = []
    for name, path in package.imports.items():
        root, *names = path.split(".")
        if root != package.package.name or package.package[names].is_module:
            continue
        package.exports.append(name)
        if not package.members[name].is_alias:
            # A function hidden by the module of the same name that holds it.
            function = package.package[names]
            function.parent = package
            package.members[name] = function


def _rewrite_text(text, owner):
    sections = [("", [])]
    for line in text.splitlines():
        if match := _HEADING.match(line):
            sections.append((match[1], [match[2]] if match[2] else []))
        else:
            sections[-1][1].append(line)
    return "\n\n".join(
        _rewrite_section(title, "\n".join(lines).rstrip(), owner)
        for title, lines in sections
    )


def _rewrite_section(title, text, owner):
    if not title:
        return _LABEL.sub(r"\n**\1:**", _separate_equations(text))
    if title in ("Raises", "Attributes"):
        return f"{title}:\n{text}"
    if title == "Args":
        # A class without a constructor of its own has no known signature.
        kind = "Args" if owner.parameters else "Other Args: Args"
        return f"{kind}:\n{_separate_arguments(text, owner)}"
    if title == "Call arguments":
        return f"Other Args: Call arguments:\n{_separate_arguments(text, None)}"
    if title == "Example":
        return f"Examples: Example:\n{_indent(text)}"
    if title == "Reference":
        return f"**Reference:**\n\n{_dedent(text)}"
    return f"**{title}:** {_dedent(text)}"


def _separate_equations(text):
    """Puts blank lines around indented lines, which Markdown asks for."""
    # Neither a list item nor the rest of one comes before an equation.
    text = re.sub(
        r"^([^\s*-].*)\n(?= {4})", r"\1\n\n", text, flags=re.MULTILINE
    )
    return re.sub(r"^( {4}.*)\n(?=\S)", r"\1\n\n", text, flags=re.MULTILINE)


def _separate_arguments(text, owner):
    """Gives each of several arguments before one colon an entry."""
    entries = []
    for line in text.splitlines():
        is_new = re.match(r" {4}\S", line)
        # The names of one entry may need several lines.
        if is_new and (not entries or ":" in "".join(entries[-1])):
            entries.append([line])
        elif entries:
            entries[-1].append(line)
    lines = []
    for entry in entries:
        names, description = "\n".join(entry).split(":", 1)
        for name in _expand(re.findall(r"\*{0,2}\w+|\.{3}", names), owner):
            lines.append(f"    {name}:{description}")
    return "\n".join(lines)


def _expand(names, owner):
    """Replaces `first, ..., last` by all names of the signature between."""
    if "..." not in names:
        return names
    place = names.index("...")
    if owner is None:
        return [", ".join(names)]
    known = [parameter.name for parameter in owner.parameters]
    first, last = known.index(names[place - 1]), known.index(names[place + 1])
    return [*names[:place], *known[first + 1 : last], *names[place + 1 :]]


def _dedent(text):
    return re.sub(r"^ {1,4}", "", text, flags=re.MULTILINE).strip("\n")


def _indent(text):
    return textwrap.indent(textwrap.dedent(text.strip("\n")), "    ")
