"""Every client gives what the translator gives."""

import http.server
import json
import threading
import urllib.request
from types import SimpleNamespace

import pytest
from model_server import model_server
from tiny_translator import all_pairs

from keras_deepnmt.analysis import align_words
from keras_deepnmt.errors import UserError
from keras_deepnmt.serving.clients import RestClient, SavedModelClient

pytestmark = pytest.mark.thorough(each_commit=True)

SOURCES = [source for source, _ in all_pairs()][:4]


@pytest.fixture(scope="module")
def saved_model_client(version_dir):
    return SavedModelClient(version_dir)


@pytest.fixture(scope="module")
def rest_client(saved_model_client):
    class Handler(http.server.BaseHTTPRequestHandler):
        """Answers as TensorFlow Serving does."""

        def do_POST(self):
            length = int(self.headers["Content-Length"])
            body = json.loads(self.rfile.read(length))
            if self.path != "/v1/models/tiny:predict":
                return self.answer(404, {"error": "Could not find model"})
            try:
                outputs = saved_model_client.predict(
                    body["signature_name"], body["inputs"]
                )
            except UserError as error:
                return self.answer(400, {"error": str(error)})
            self.answer(200, {"outputs": outputs})

        def answer(self, code, content):
            content = json.dumps(content).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield RestClient(f"http://127.0.0.1:{server.server_port}/v1/models/tiny/")
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def own_server(version_dir, translator):
    """The address of this package's server, with an export and a run."""
    from keras_deepnmt.analysis.inspection import Inspector
    from keras_deepnmt.documents.document_lines import LineTranslator
    from keras_deepnmt.server.export_engine import ExportEngine
    from keras_deepnmt.server.translator_engine import TranslatorEngine

    with model_server(
        export=lambda number: ExportEngine(version_dir),
        run=lambda number: TranslatorEngine(
            translator,
            99,
            {"inspect": Inspector(), "lines": LineTranslator()},
        ),
    ) as (_, address):
        yield address


@pytest.fixture(
    params=[
        "saved_model",
        "rest",
        pytest.param("served_export", marks=pytest.mark.thorough),
        pytest.param("served_run", marks=pytest.mark.thorough),
    ]
)
def client(request, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    kind, _, name = request.param.partition("served_")
    if name:
        address = request.getfixturevalue("own_server")
        return RestClient(f"{address}/v1/models/{name}")
    return request.getfixturevalue(f"{kind}_client")


def test_translates(client, translator):
    sources = [*SOURCES, "", "Löwe ﬁ"]
    assert client.translate(sources) == translator.translate(sources)


def test_gives_existing_translations_best_first(client, translator):
    found = client.translate_nbest([*SOURCES, ""])
    assert [[h.text for h in row] for row in found] == [
        [h.text for h in row]
        for row in translator.translate_nbest([*SOURCES, ""], 3)
    ]
    assert [len(row) for row in found] == [3, 3, 3, 3, 1]
    found = client.translate_nbest(SOURCES, 2, length_penalty=0.0)
    assert [len(row) for row in found] == [2, 2, 2, 2]
    assert found[0][0].score == pytest.approx(found[0][0].log_prob)


def test_translates_with_what_is_given(client, translator):
    given = {
        "prefixes": ["Łódź is", "", "the", ""],
        "constraints": [[], ["Ż", "dog"], ["tree"], ["lion"]],
        "max_lengths": [0, 0, 20, 4],
    }
    assert client.translate(SOURCES, **given) == translator.translate(
        SOURCES, **given
    )
    found = client.translate_nbest(SOURCES, 2, **given)
    expected = translator.translate_nbest(SOURCES, 3, **given)
    for row, hypotheses in zip(found, expected, strict=True):
        assert [h.text for h in row] == [h.text for h in hypotheses[:2]]
        for name in ("constraints_met", "truncated"):
            values = [getattr(h, name) for h in hypotheses[:2]]
            assert [getattr(h, name) for h in row] == values
    assert found[0][0].text.startswith("Łódź is")
    # One sentence, and one argument alone.
    asked = {"prefixes": "Łódź"}
    assert client.translate(SOURCES[0], **asked).startswith("Łódź")
    (best,) = client.translate_nbest(SOURCES[0], 1, constraints=["Ż dog"])
    assert best.constraints_met and "Ż dog" in best.text
    with pytest.raises(UserError, match="`prefixes` must have one value"):
        client.translate(SOURCES, prefixes=["a"])
    with pytest.raises(TypeError, match="`constraints` must hold sentences"):
        client.translate(SOURCES[:1], constraints=["a"])


@pytest.mark.thorough
def test_an_older_export_has_nothing_given(saved_model_client, monkeypatch):
    signatures = dict(saved_model_client._loaded.signatures)
    del signatures["translate_given"]
    older = SimpleNamespace(signatures=signatures)
    monkeypatch.setattr(saved_model_client, "_loaded", older)
    assert saved_model_client.translate(SOURCES[0])
    with pytest.raises(UserError, match="has no signature translate_given"):
        saved_model_client.translate(SOURCES[0], prefixes="a")


@pytest.mark.thorough
def test_scores(client, translator):
    targets = ["the dog", "", "the man sees the tree .", "x"]
    found = client.score(SOURCES, targets)
    for score, expected in zip(
        found, translator.score(SOURCES, targets), strict=True
    ):
        assert score.log_prob == pytest.approx(expected.total, rel=1e-5)
        assert score.token_log_probs == pytest.approx(
            expected.log_probs, rel=1e-5, abs=1e-5
        )


def test_a_string_is_one_sentence(client):
    source, target = SOURCES[0], "the dog"
    assert client.translate(source) == client.translate([source])[0]
    assert client.translate_nbest(source) == client.translate_nbest([source])[0]
    assert client.score(source, target) == client.score([source], [target])[0]
    with pytest.raises(TypeError, match="two strings or two lists"):
        client.score(source, [target])
    with pytest.raises(TypeError, match="`texts` must be a string or a list"):
        client.translate([1])


@pytest.mark.thorough
def test_sources_that_are_cut_are_marked(client):
    sources = [SOURCES[0], " ".join([SOURCES[0]] * 30)]
    nbest = client.translate_nbest(sources, 2)
    assert [row[0].source_truncated for row in nbest] == [False, True]
    assert not nbest[0][0].truncated
    scores = client.score(sources, ["x", "x"])
    assert [score.source_truncated for score in scores] == [False, True]


def test_nothing_in_gives_nothing_out(client):
    assert client.translate([]) == []
    assert client.translate_nbest([]) == []
    assert client.score([], []) == []


def test_a_refusal_is_one_line(client):
    with pytest.raises(UserError, match="1..3") as caught:
        client.translate_nbest(SOURCES, 9)
    assert "\n" not in str(caught.value)


def test_a_model_that_the_server_lacks_is_named(rest_client):
    client = RestClient(rest_client.url + "er")
    with pytest.raises(UserError, match="Could not find model"):
        client.translate(["a"])


def test_a_server_that_is_not_there_is_named():
    client = RestClient("http://127.0.0.1:1/v1/models/tiny")
    with pytest.raises(UserError, match="127.0.0.1:1.* no server answers"):
        client.translate(["a"])


def test_the_page_looks_into_a_run_and_translates_documents(
    own_server, translator, monkeypatch
):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    best = translator.translate(SOURCES)

    def ask(path, content):
        address = f"{own_server}/page/{path}"
        with urllib.request.urlopen(address, content) as answer:
            return answer.read().decode()

    pair = {"source": SOURCES[0], "target": best[0]}
    found = json.loads(
        ask("inspect", json.dumps({"model": "run", **pair}).encode())
    )
    links = align_words(translator, [SOURCES[0]], [best[0]])[0]
    assert [tuple(link) for link in found["links"]] == links
    text = "\n".join(SOURCES)
    assert ask("document?model=run&name=a.txt", text.encode()) == "\n".join(
        best
    )
