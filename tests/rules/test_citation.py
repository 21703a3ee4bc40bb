"""CITATION.cff, the changelog and the package name the same version."""

import datetime
import re

import yaml
from package_tree import REPOSITORY

from keras_deepnmt.version import __version__


def test_the_citation_has_the_version_and_the_date_of_the_changelog():
    text = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    citation = yaml.safe_load(text)
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    version, date = re.search(
        r"^## (\d+\.\d+\.\d+) - (\S+)$", changelog, re.MULTILINE
    ).groups()
    assert citation["version"] == version == __version__
    assert citation["date-released"] == datetime.date.fromisoformat(date)
