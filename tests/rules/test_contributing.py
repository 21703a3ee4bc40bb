"""CONTRIBUTING.md shows the folders that exist, and the rule of imports."""

import re

from package_tree import PACKAGE, REPOSITORY, package_of, refuse, source_files
from test_imports import LEVELS

PAGE = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAP, CHAIN = re.findall(r"(?ms)^```text\n(.*?)^```", PAGE)
# Every Python package has these; a reader need not look for them.
NOT_SHOWN = {"__init__", "__main__", "version"}


def shown_paths():
    """The paths in the map; an indented name belongs to the one above it."""
    folders, paths = {}, []
    for line in MAP.splitlines():
        indent, name = re.match(r"( *)(\S+)", line).groups()
        depth = len(indent) // 2
        parent = folders.get(depth - 1, REPOSITORY)
        folders[depth] = parent / name
        paths.append(parent / name)
    return paths


def test_the_map_shows_every_package_and_nothing_else():
    shown = shown_paths()
    refuse(
        [str(path) for path in shown if not path.exists()],
        "Remove these from the map in CONTRIBUTING.md; they do not exist.",
    )
    packages = {package_of(path) for path in source_files()} - NOT_SHOWN
    names = {path.stem for path in shown if path.parent == PACKAGE}
    refuse(
        sorted(packages - names),
        "Add these to the map in CONTRIBUTING.md, with a few words each.",
    )


def test_the_chain_is_the_rule_of_imports():
    levels = [level - {"__init__", "__main__"} for level in LEVELS]
    chain = [set(re.findall(r"\w+", part)) for part in CHAIN.split("→")]
    refuse(
        [] if chain == levels else [" → ".join(map(", ".join, levels))],
        "The chain of imports in CONTRIBUTING.md must be that of `LEVELS` in "
        "test_imports.py:",
    )
