"""A model that has learned several languages gets the tag of each request."""

import contextlib
import json
from types import SimpleNamespace

import pytest
from toy_server import Capitals

from keras_deepnmt.commands import serve
from keras_deepnmt.data.directions import Direction
from keras_deepnmt.documents.document_lines import LineTranslator
from keras_deepnmt.server.translator_engine import TranslatorEngine
from keras_deepnmt.serving.golden import EXPORT_FILE
from keras_deepnmt.translator.results import Hypothesis

BOTH = (
    Direction("de", "en", "<2en>"),
    Direction("en", "de", "<2de>"),
    Direction("fr", "en", "<2en>"),
)


@pytest.fixture
def server(make_server):
    return make_server(
        models=(("both", ("de", "en")),), directions={"both": BOTH}
    )


def test_the_target_decides_the_tag(server):
    answer = server.translate(["ein Hund", " ", ""], target="en")
    assert answer.json() == {"translatedText": ["<2EN> EIN HUND", " ", ""]}
    answer = server.translate("a dog", source="en", target="de")
    assert answer.json() == {"translatedText": "<2DE> A DOG"}
    # Two languages are translated to English, so it is not known which it is.
    assert server.translate("a", source="auto", target="de").is_success
    for unknown in ({"source": "auto"}, {"target": "fr"}):
        answer = server.translate("a", **unknown)
        assert answer.status_code == 400
        assert "de to en, en to de, fr to en" in answer.json()["error"]


def test_languages_that_no_corpus_had_have_the_tag_of_the_target(monkeypatch):
    """`--languages` names the pair."""
    monkeypatch.setattr(serve, "_known_directions", lambda *_: list(BOTH))
    for given, tag in (("fr-de", "<2de>"), ("en-de", "<2de>"), ("de-it", None)):
        pair = tuple(given.split("-"))
        found = serve._directions({"both": None}, [given])
        assert found == {"both": [Direction(*pair, tag)]}


def test_languages_are_those_of_all_directions(server):
    assert server.client.get("/languages").json() == [
        {"code": code, "name": code, "targets": targets}
        for code, targets in (("de", ["en"]), ("en", ["de"]), ("fr", ["en"]))
    ]


def test_the_page_offers_each_direction(server):
    offered = server.client.get("/page/models").json()["models"]
    found = [(m["id"], m["name"], m["into"], m["source"]) for m in offered]
    assert found == [
        ("both de-en", "both", "en", "de"),
        ("both en-de", "both", "de", "en"),
        ("both fr-en", "both", "en", "fr"),
    ]

    def ask(path, **content):
        content = {"model": "both", "into": "de", **content}
        return server.client.post(f"/page/{path}", json=content)

    found = ask("translate", text="a dog").json()["translations"]
    assert found[0]["text"] == "<2DE> A DOG"
    found = ask("translate", text="a dog", prefix="ein").json()["translations"]
    assert found[0]["text"].startswith("ein <2DE> A DOG")
    found = ask("inspect", source="a dog", target="ein Hund").json()
    assert found["source"][0][0] == "<2de>"
    found = server.client.post(
        "/page/document",
        params={"model": "both", "name": "a.txt", "into": "de"},
        content=b"a dog\n\na cat\n",
    )
    assert found.content == b"<2DE> A DOG\n\n<2DE> A CAT\n"
    refused = ask("translate", text="a dog", into="xx")
    assert refused.status_code == 400
    assert "translates into: en, de. Received: xx" in refused.json()["error"]


@pytest.mark.parametrize(
    "tags, expected",
    [
        (("<bt>", None), None),
        ((None, "<bt>"), None),
        (("<law>", "<news>"), "<law>"),
    ],
)
def test_a_pair_with_an_untagged_corpus_has_no_tag(tmp_path, tags, expected):
    export = tmp_path / "mine" / "1"
    (export / EXPORT_FILE).parent.mkdir(parents=True)
    (export / "saved_model.pb").touch()
    directions = [Direction("de", "en", tag)._asdict() for tag in tags]
    (export / EXPORT_FILE).write_text(json.dumps({"directions": directions}))
    for given in (None, ["de-en"]):
        found = serve._directions({"mine": export.parent}, given)
        assert found == {"mine": [Direction("de", "en", expected)]}


def test_a_text_keeps_its_own_tag_and_gets_no_other(server):
    server.engine.tags = ("<2en>", "<2de>", "<law>")
    answer = server.translate(["<law> ein Hund", "<b> ein Hund"], target="en")
    assert answer.json() == {
        "translatedText": ["<LAW> EIN HUND", "<2EN> <B> EIN HUND"]
    }
    asked = {"model": "both", "into": "en"}
    content = {**asked, "text": "<law> ein Hund"}
    answer = server.client.post("/page/translate", json=content)
    assert answer.json()["translations"][0]["text"] == "<LAW> EIN HUND"
    content = {**asked, "source": "<law> ein Hund", "target": "a dog"}
    answer = server.client.post("/page/inspect", json=content)
    assert answer.json()["source"][0][0] == "<law>"
    answer = server.client.post(
        "/page/document",
        params={**asked, "name": "a.txt"},
        content=b"<law> ein Hund\neine Katze\n",
    )
    assert answer.content == b"<LAW> EIN HUND\n<2EN> EINE KATZE\n"


class Copying(Capitals):
    """Copies the sentences of documents, and keeps what it has read."""

    run_task = TranslatorEngine.run_task

    def __init__(self):
        super().__init__()
        self.tasks = {"lines": LineTranslator()}
        self.reads = []

    @contextlib.contextmanager
    def _free_translator(self):
        tokenizer = SimpleNamespace(user_defined_symbols=())
        yield SimpleNamespace(
            source_tokenizer=tokenizer,
            target_tokenizer=tokenizer,
            training_tags=(),
            translate_nbest=self._copy,
        )

    def _copy(self, reads, number):
        self.reads += reads
        return [[Hypothesis(text, 0.0, 0.0, ())] for text in reads]


def test_a_document_is_split_by_the_rules_of_its_language(make_server):
    pytest.importorskip("sentencex", reason="needs the extra [sentences]")
    both = (Direction("en", "de", None), Direction("de", "en", None))
    server = make_server(
        engine=Copying(),
        models=(("both", ("en", "de")),),
        directions={"both": both},
    )
    # An abbreviation of German, after which no sentence ends.
    text = "Die Masse bzw. Gewichte. Ende."
    sentences = {
        "de": ["Die Masse bzw. Gewichte."],
        "en": ["Die Masse bzw.", "Gewichte."],
    }
    for into, source in (("en", "de"), ("de", "en")):
        server.engine.reads.clear()
        answer = server.client.post(
            "/page/document",
            params={"model": "both", "name": "a.txt", "into": into},
            content=text.encode(),
        )
        assert answer.text == text
        assert server.engine.reads == [*sentences[source], "Ende."]
