"""What the web page gets from a server."""

import asyncio
import base64
import json
import re
import threading
from importlib import resources

import pytest
from toy_server import MODELS, SECONDS, Capitals, look_inside

from keras_deepnmt.data.bilingual_files.document import ENDINGS, WITH_MARKUP
from keras_deepnmt.data.directions import Direction
from keras_deepnmt.server.page_documents import _TEXT_ENDS, PageDocument
from keras_deepnmt.server.request_limits import RequestLimits

XLIFF = """<?xml version="1.0" encoding="utf-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="a" source-language="de" target-language="en"
 datatype="plaintext"><body>
<trans-unit id="1"><source>ein Hund</source></trans-unit>
</body></file></xliff>
"""
TMX = """<?xml version="1.0" encoding="utf-8"?>
<tmx version="1.4"><header creationtool="a" creationtoolversion="1"
 segtype="sentence" o-tmf="a" adminlang="en" srclang="de" datatype="plaintext"/>
<body><tu><tuv xml:lang="de"><seg>ein Hund</seg></tuv></tu></body></tmx>
"""


def ask(server, path, headers=None, **content):
    content = {"model": "one", **content}
    return server.client.post(f"/page/{path}", json=content, headers=headers)


def hand_in(server, content, name, model="one", **given):
    return server.client.post(
        "/page/document",
        params={"model": model, "name": name, **given},
        content=content.encode() if isinstance(content, str) else content,
    )


def error(answer, status):
    assert answer.status_code == status, answer.text
    return answer.json()["error"]


def test_the_page_and_all_that_it_loads_come_from_the_server(server):
    loaded, waiting = set(), ["/"]
    while waiting:
        path = waiting.pop()
        loaded.add(path)
        answer = server.client.get(path)
        assert answer.status_code == 200, path
        found = re.findall(
            r"""(?:href|src)="(?!\#)([^"]+)"|from "\./([^"]+)";""", answer.text
        )
        for linked, imported in found:
            path = f"/{linked}" if linked else f"/page/files/{imported}"
            if path not in loaded:
                waiting.append(path)
        assert "://" not in answer.text.replace("http://www.w3.org/", "")
    files = resources.files("keras_deepnmt.server").joinpath("page").iterdir()
    assert len(loaded) == 1 + len(list(files)) - 1


def test_a_browser_is_told_to_load_nothing_from_elsewhere(server):
    headers = server.client.get("/").headers
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy and "://" not in policy
    assert headers["Referrer-Policy"] == "no-referrer"
    assert error(server.client.get("/page/files/..%2fengine.py"), 404)
    assert error(server.client.get("/page/files/none.js"), 404)


def test_a_server_may_have_no_page(make_server):
    server = make_server(has_page=False)
    for path in ("/", "/page/models", "/page/files/main.js"):
        error(server.client.get(path), 404)
    assert server.translate("a").status_code == 200


def test_the_page_knows_the_models(make_server):
    server = make_server(keys=["a key"])
    answer = server.client.get("/page/models").json()
    assert answer["needs_key"] is True
    assert answer["models"][0] == {
        "id": "one",
        "name": "one",
        "into": None,
        "source": "de",
        "target": "en",
        "is_ready": True,
        "most_translations": 3,
        "tasks": ["complete", "inspect", "lines"],
    }


def test_translations_have_scores(server):
    answer = ask(server, "translate", text="ein Hund", number=9).json()
    # The third one has a probability of zero: it is no translation.
    assert answer["translations"][0] == {
        "text": "EIN HUND",
        "score": 0.0,
        "log_prob": -1.0,
        "truncated": False,
    }
    texts = [one["text"] for one in answer["translations"]]
    assert texts == ["EIN HUND", "EIN HUND!"]
    assert ask(server, "translate", text=" ").json() == {"translations": []}


def test_a_translation_goes_on_from_what_is_given(server):
    answer = ask(server, "translate", text="a", prefix="Two", number=2)
    assert answer.json()["translations"][0]["text"].startswith("Two A")
    message = error(ask(server, "translate", text="refused", prefix="x"), 400)
    assert "prefix is too long" in message


def test_the_words_of_a_translation_are_aligned(server):
    answer = ask(server, "inspect", source="ein Hund", target="A DOG").json()
    assert answer["links"] == [[0, 0], [1, 1]]
    assert answer["source"] == [["ein", 0], [" ", None], ["Hund", 1]]
    assert answer["attention"]["values"] == [[0.9, None], [None, 0.9]]
    error(ask(server, "inspect", source=" ", target="A"), 400)


@pytest.mark.parametrize("path", ["translate", "inspect", "document"])
def test_requests_of_the_page_have_limits_and_keys(make_server, path):
    limits = RequestLimits(max_bytes=300, max_tokens=5)
    server = make_server(limits=limits, keys=["a key"])
    bodies = {
        "translate": {"text": "a"},
        "inspect": {"source": "a", "target": "b"},
    }
    if path == "document":
        error(hand_in(server, "a", "a.txt"), 401)
        error(hand_in(server, "a" * 301, "a.txt"), 413)
        return
    key = {"X-API-Key": "a key"}
    error(ask(server, path, **bodies[path]), 401)
    assert ask(server, path, key, **bodies[path]).status_code == 200
    long = dict.fromkeys(bodies[path], "a b c d e")
    assert "at most 5 tokens" in error(ask(server, path, key, **long), 400)
    if path == "translate":
        long = bodies[path] | {"prefix": "a b c d e"}
        assert "at most 5 tokens" in error(ask(server, path, key, **long), 400)
    error(ask(server, path, key, **dict.fromkeys(long, "a" * 300)), 413)
    unknown = bodies[path] | {"model": "none"}
    error(ask(server, path, key, **unknown), 404)


def test_looks_into_a_model_are_tried_before_it_is_ready(make_server):
    class Looking:
        """Needs long for its first rows."""

        warm_up_rows = (("a", "a"),)
        seen = ()
        may_go = threading.Event()

        def __call__(self, pairs):
            self.seen += tuple(pairs)
            assert self.may_go.wait(SECONDS)
            return look_inside(pairs)

    engine, looking = Capitals(), Looking()
    engine.tasks = {"inspect": looking}
    engine.is_warm.clear()
    server = make_server(engine=engine, models=MODELS[:1])
    engine.is_warm.set()
    assert server.client.get("/readyz").status_code == 503
    looking.may_go.set()
    server.wait_until_ready()
    assert looking.seen == (("a", "a"),)
    assert server.client.get("/readyz").status_code == 200


def test_an_export_only_translates(make_server):
    engine = Capitals()
    engine.tasks = {}
    server = make_server(engine=engine)
    assert ask(server, "translate", text="a").status_code == 200
    message = error(ask(server, "inspect", source="a", target="b"), 400)
    assert "is an export" in message
    assert "is an export" in error(hand_in(server, "a", "a.txt"), 400)


def test_some_engines_complete_no_beginning(make_server):
    engine = Capitals()
    engine.signatures = ("serving_default", "translate_nbest")
    server = make_server(engine=engine)
    models = server.client.get("/page/models").json()["models"]
    assert models[0]["tasks"] == ["inspect", "lines"]
    found = ask(server, "translate", text="a", prefix="B")
    assert "cannot complete a given beginning" in error(found, 400)
    assert ask(server, "translate", text="a").status_code == 200


def test_a_text_comes_back_line_by_line(make_server):
    # Two lines at a time: a document may have more than a request of others.
    server = make_server(limits=RequestLimits(max_sentences=2))
    text = "\ufeffein Hund\r\n\n  zwei\u2028drei~  \nvier\nfünf\nende"
    answer = hand_in(server, text, "Notes.TXT")
    assert answer.status_code == 200, answer.text
    assert answer.content.decode() == (
        "\ufeffEIN HUND\r\n\n  ZWEI\u2028DREI~  \nVIER\nFÜNF\nENDE"
    )
    assert answer.headers["X-Texts"] == "5"
    assert answer.headers["X-Texts-Cut"] == "1"
    assert all(len(batch) <= 2 for batch in server.engine.batches)
    assert not any("\ufeff" in t for b in server.engine.batches for t in b)


def test_a_translation_with_line_ends_stays_one_line():
    """As from pieces for bytes."""

    async def translate(texts):
        return [(f"{text}\na\rb", False) for text in texts]

    async def translated(document):
        await document.read()
        async for _ in document.translate(translate, RequestLimits(), 4):
            pass
        return await document.written()

    document = PageDocument(b"ein\n\nzwei\r\n", "a.txt", ("de", "en"))
    found = asyncio.run(translated(document))
    assert found == b"ein a b\n\nzwei a b\r\n"


def test_lines_of_progress_come_before_the_document(server):
    text = "".join(f"wort {'x' * (n % 5)}\n\n" for n in range(30)) + "b~"
    answer = hand_in(server, text, "a.txt", progress=True)
    lines = [json.loads(line) for line in answer.text.splitlines()]
    document = base64.b64decode(lines[-1].pop("document")).decode()
    assert document == text.upper()
    assert lines.pop() == {"done": 31, "texts": 31, "cut": 1}
    # A batch at a time, each with texts of like length.
    assert lines == [
        {"done": min(done, 31), "texts": 31} for done in range(0, 35, 4)
    ]
    lengths = [len(t) for batch in server.engine.batches for t in batch]
    assert lengths == sorted(lengths, reverse=True)
    # What is known before the first line has its status.
    error(hand_in(server, "a", "a.docx", progress=True), 400)


def test_an_error_after_the_first_line_is_the_last_line(server):
    server.models.by_name["one"].current.queue.close()
    answer = hand_in(server, "a", "a.txt", progress=True)
    first, last = map(json.loads, answer.text.splitlines())
    assert answer.status_code == 200 and first == {"done": 0, "texts": 1}
    assert last == {"error": "the server stops.", "status": 503}


def test_xliff_and_tmx_come_back_with_translations(server):
    answer = hand_in(server, XLIFF, "a.xlf").text
    assert "<source>ein Hund</source>" in answer
    assert re.search(r"<target[^>]*>EIN HUND</target>", answer)
    answer = hand_in(server, TMX, "a.tmx").text
    assert "<seg>EIN HUND</seg>" in answer and "<seg>ein Hund</seg>" in answer


def test_the_page_lets_all_documents_be_chosen_that_the_server_takes(server):
    [offered] = re.findall('accept="(.*)"', server.client.get("/").text)
    endings = [f".{end}" for kind in WITH_MARKUP for end in ENDINGS[kind]]
    assert sorted(offered.split(",")) == sorted([*_TEXT_ENDS, *endings])


def test_a_document_has_one_of_several_source_languages(make_server):
    both = (Direction("fr", "en", None), Direction("de", "en", None))
    server = make_server(directions={"one": both})
    answer = hand_in(server, XLIFF, "a.xlf", into="en", source="de")
    assert "EIN HUND" in answer.text
    given = {"into": "en", "source": "fr"}
    message = error(hand_in(server, XLIFF, "a.xlf", **given), 400)
    assert "is de, but fr is asked" in message
    given["source"] = "it"
    message = error(hand_in(server, XLIFF, "a.xlf", **given), 400)
    assert "`source` must be a language that one translates into en" in message


def test_a_wrong_parameter_is_an_error_like_others(server):
    message = error(hand_in(server, "a", "a.txt", progress="secret"), 400)
    assert "`progress` in the address is wrong" in message
    assert "secret" not in message
    answer = server.client.post("/page/document", params={"name": "a.txt"})
    assert "`model` in the address" in error(answer, 400)


@pytest.mark.parametrize(
    "content, name, words",
    [
        ("a", "a.docx", "must be plain text"),
        ("a", "a.tsv", "must be plain text"),
        (b"\xff\xfe", "a.txt", "not UTF-8"),
        (b"\x1f\x8b\x08", "a.xlf", "not compressed"),
        ("<xliff", "a.xlf", "the document"),
        (XLIFF.replace('"de"', '"fr"'), "a.xlf", "is fr, but de is asked"),
        ("", "a.tmx", "the document"),
    ],
)
def test_a_document_that_cannot_be_read_is_refused(
    server, content, name, words
):
    message = error(hand_in(server, content, name), 400)
    assert words in message and "/" not in message.replace("XLIFF", "")


def test_the_description_has_the_requests_of_the_page(server):
    paths = server.client.get("/openapi.json").json()["paths"]
    assert {
        "/page/models",
        "/page/translate",
        "/page/inspect",
        "/page/document",
    } <= set(paths)
    assert "/" not in paths
