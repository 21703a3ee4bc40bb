"""The data of the page of features can be followed.

* each cell is a mark, with the file that shows it where there is something
* each page and heading of a feature of this package exists, and so does its
  test, which is not only run on request (marker `slow`)
* each toolkit has a version and a commit
"""

import ast
import re
import runpy
from collections import Counter

import pytest
from markdown.extensions.toc import slugify
from package_tree import REPOSITORY, refuse, syntax_tree

DOCS = REPOSITORY / "docs"
SCRIPT = runpy.run_path(str(DOCS / "write_features.py"))
FACTS = SCRIPT["read"]()
TOOLKITS = FACTS["toolkits"]
FEATURES = FACTS["features"]
COMPARED = {name for name, kit in TOOLKITS.items() if "column" in kit}
OWN = {"feature", "group", "here", "page", "test", "note", "searched"}


def headings(page):
    """The anchors of a page, as the site makes them."""
    text = (DOCS / page).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    found = re.findall(r"^#{1,3} (.*)$", text, re.MULTILINE)
    return {slugify(heading.replace("`", ""), "-") for heading in found}


def marks(node):
    """Names of the markers in a test's decorators, or in `pytestmark`."""
    names = [ast.unparse(mark) for mark in node]
    return set(re.findall(r"pytest\.mark\.(\w+)", " ".join(names)))


def what_is_wrong_with_the_test(test):
    path, _, name = test.partition("::")
    if not name:
        return "names no function"
    if not (REPOSITORY / path).is_file():
        return "has no such file"
    body = syntax_tree(REPOSITORY / path).body
    functions = [node for node in body if getattr(node, "name", "") == name]
    if not functions:
        return "has no such function"
    whole_file = [
        node.value
        for node in body
        if isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    if "slow" in marks(functions[0].decorator_list) | marks(whole_file):
        return "is slow"
    return ""


def test_each_toolkit_has_a_version_and_a_commit():
    for name, toolkit in TOOLKITS.items():
        assert re.match(r"\d+\.\d+", toolkit["version"]), name
        assert re.fullmatch(
            rf"[0-9a-f]{{40}}|v{re.escape(toolkit['version'])}",
            toolkit["commit"],
        ), name
        assert toolkit["repository"].startswith("https://github.com/"), name


def test_each_feature_has_a_cell_for_each_toolkit():
    counts = Counter(feature["feature"] for feature in FEATURES)
    assert [name for name, count in counts.items() if count > 1] == []
    for feature in FEATURES:
        assert set(feature) - OWN == COMPARED, feature["feature"]


@pytest.mark.parametrize("name", sorted(COMPARED))
def test_each_cell_is_a_mark_with_its_evidence(name):
    offenders = []
    for feature in FEATURES:
        mark, path, note = SCRIPT["split_cell"](feature[name])
        there = mark in ("yes", "partly")
        if (
            mark not in SCRIPT["MARKS"]
            or bool(path) != there
            or bool(note) != (mark == "partly")
            or " " in path
        ):
            offenders.append(f"{feature['feature']}: {feature[name]}")
    refuse(offenders, "Write yes PATH, partly PATH: what, no or not checked.")


def test_few_cells_are_not_checked():
    cells = [feature[name] for feature in FEATURES for name in COMPARED]
    assert cells.count("not checked") <= len(cells) / 100


def test_what_was_searched_can_be_searched():
    for feature in FEATURES:
        assert re.compile(feature["searched"], re.IGNORECASE)


def test_features_of_this_package_lead_to_a_page_and_a_test():
    offenders = []
    for feature in FEATURES:
        name = feature["feature"]
        if feature["here"] == "no":
            if {"page", "test"} & set(feature) or not feature.get("note"):
                offenders.append(f"{name}: `no` has a note alone")
            continue
        if ("note" in feature) != (feature["here"] == "partly"):
            offenders.append(f"{name}: `partly` has a note, `yes` has none")
        page, _, anchor = feature["page"].partition("#")
        if not (DOCS / page).is_file():
            offenders.append(f"{name}: no page {page}")
        elif anchor and anchor not in headings(page):
            offenders.append(f"{name}: no heading {feature['page']}")
        wrong = what_is_wrong_with_the_test(feature["test"])
        if wrong:
            offenders.append(f"{name}: {feature['test']} {wrong}")
    refuse(offenders, "Correct docs/features.yaml.")
