"""Names of files and folders."""

import collections

from package_tree import (
    PACKAGE,
    REPOSITORY,
    refuse,
    relative,
    source_files,
)

# Names that would fit any code.
CATCH_ALL_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}


def test_no_module_has_a_catch_all_name():
    refuse(
        [
            relative(path)
            for path in source_files()
            if CATCH_ALL_NAMES
            & {*path.relative_to(PACKAGE).with_suffix("").parts}
        ],
        "Name a module or package after what it does.",
    )


def test_no_two_files_of_the_tests_have_the_same_name():
    files = [
        path
        for path in (REPOSITORY / "tests").rglob("*.py")
        if path.name != "conftest.py"
    ]
    numbers = collections.Counter(path.name for path in files)
    refuse(
        sorted(relative(path) for path in files if numbers[path.name] > 1),
        "pytest imports the files of all folders by their names alone.",
    )
