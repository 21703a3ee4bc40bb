"""What must be true of reading JSON, which may come from a stranger.

* it is read as it is; numbers, texts and nesting are not changed
* what is no JSON, too large, too deep or of another form is one line that names
  the file and the key
"""

import json
import re

import pytest
from pydantic import BaseModel

from keras_deepnmt.errors import UserError
from keras_deepnmt.json_files import parse_json, read_json


class Form(BaseModel, extra="allow"):
    steps: int
    hashes: dict[str, str] = {}


@pytest.fixture
def read(tmp_path):
    def read(content, form=None):
        file = tmp_path / "run.json"
        file.write_text(content, encoding="utf-8")
        return read_json(file, form)

    return read


def nested(levels):
    return "[" * levels + "]" * levels


def test_what_is_read_is_what_was_written(read):
    content = {"steps": 7, "more": [1.5, None, "ä😀", {"deep": [[[True]]]}]}
    for text in (json.dumps(content), json.dumps(content, ensure_ascii=False)):
        assert read(text, Form) == content
    deepest = f"{'[' * 100}7{']' * 100}"
    assert read(deepest) == json.loads(deepest)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not valid JSON"),
        ("", "not valid JSON"),
        (nested(101), "at most 100 levels"),
        (nested(100_000), "at most 100 levels"),
        ('{"a": ' * 101 + "1" + "}" * 101, "at most 100 levels"),
        ('{"name": "\\ud83d"}', "it escapes halves of characters"),
        ("[1]", "run.json: must be an object with keys. Received: [1]"),
        ("{}", "lacks steps."),
        ('{"steps": "7"}', "`steps` must be an integer. Received: "),
        ('{"steps": true}', "`steps` must be an integer. Received: "),
        (
            '{"steps": 1, "hashes": {"a": 7}}',
            "`hashes.a` must be text. Received: 7",
        ),
        (f'{{"steps": "{"x" * 999}"}}', f"Received: '{'x' * 59}..."),
    ],
)
def test_another_content_is_one_line_with_the_file_and_the_key(
    read, content, said
):
    with pytest.raises(UserError, match=re.escape(said)) as info:
        read(content, Form)
    assert "run.json" in str(info.value) and "\n" not in str(info.value)
    assert len(str(info.value)) < 300


def test_a_file_that_is_too_large_is_not_parsed(read, monkeypatch):
    monkeypatch.setattr("keras_deepnmt.json_files._MOST_BYTES", 10)
    assert read("[" + " " * 8 + "]") == []
    with pytest.raises(UserError, match="run.json: must have at most 10 bytes"):
        read("[" + " " * 9 + "]")


def test_bytes_that_are_not_utf_8_are_named(tmp_path):
    with pytest.raises(UserError, match="here: not valid JSON"):
        parse_json(b'{"a": "\xff"}', "here")
