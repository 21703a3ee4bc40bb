"""What clients get of a server that translates with CTranslate2: the same as of
one that translates with this package."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from fastapi.testclient import TestClient

from keras_deepnmt.cli import main
from keras_deepnmt.data.directions import Direction
from keras_deepnmt.errors import UserError
from keras_deepnmt.server.access import Access
from keras_deepnmt.server.api_keys import ApiKeys
from keras_deepnmt.server.ctranslate2_engine import CTranslate2Engine
from keras_deepnmt.server.http_app import make_app
from keras_deepnmt.server.metrics import Metrics
from keras_deepnmt.server.request_limits import RequestLimits
from keras_deepnmt.server.served_models import (
    ServedModel,
    ServedModels,
    Version,
)

pytestmark = pytest.mark.thorough(each_commit=True)

TEXTS = ["Ein Mann liest ein Buch.", "Zwei Hunde spielen im Schnee.", ""]
LONG = "Hund " * 200


@pytest.fixture(scope="module")
def client(ctranslate2_demo):
    limits = RequestLimits()
    engine = CTranslate2Engine(ctranslate2_demo)
    # Fewer than a request may have.
    engine._model.longest = 100
    model = ServedModel(
        "demo",
        [Direction("de", "en", None)],
        lambda number: Version(number, engine, limits),
    )
    models = ServedModels([model])
    model.current.queue.ready.result()
    app = make_app(models, limits, Access(ApiKeys([])), Metrics())
    yield TestClient(app)
    models.close(drop=True)


def ask(client, path, content):
    answer = client.post(path, json=content)
    return answer.status_code, answer.json()


def predict(client, signature, **inputs):
    content = {"signature_name": signature, "inputs": inputs}
    return ask(client, "/v1/models/demo:predict", content)


def test_translations_and_alternatives(client, demo):
    nbest = demo.translate_nbest(TEXTS, 3)
    content = {"q": TEXTS, "source": "de", "target": "en", "alternatives": 2}
    status, found = ask(client, "/translate", content)
    assert status == 200
    assert found["translatedText"] == [each[0].text for each in nbest]
    assert found["alternatives"] == [
        [other.text for other in each[1:]] for each in nbest
    ]


@pytest.mark.thorough
def test_scores_of_an_nbest_list(client, demo):
    plain = demo.replaced(
        options=demo.options.updated(length_penalty=0.3, length_offset=0.0)
    )
    nbest = plain.translate_nbest(TEXTS[:2], 2)
    status, answer = predict(
        client,
        "translate_nbest",
        text=TEXTS[:2],
        num_hypotheses=2,
        length_penalty=0.3,
    )
    assert status == 200
    found = answer["outputs"]
    assert found["text"] == [[h.text for h in each] for each in nbest]
    # CTranslate2 divides the probability of padding among the other tokens.
    for name in ("score", "log_prob"):
        expected = [getattr(h, name) for each in nbest for h in each]
        assert sum(found[name], []) == pytest.approx(expected, abs=2e-3)
    assert found["truncated"] == [[False] * 2] * 2


@pytest.mark.thorough
def test_scores_of_given_translations(client, demo):
    texts = demo.translate(TEXTS)
    status, answer = predict(client, "score", source=TEXTS, target=texts)
    assert status == 200
    for place, expected in enumerate(demo.score(TEXTS, texts)):
        found = {k: v[place] for k, v in answer["outputs"].items()}
        assert found["log_prob"] == pytest.approx(expected.total, abs=1e-4)
        number = found["num_tokens"]
        assert sum(found["token_log_prob"][:number]) == pytest.approx(
            expected.total, abs=1e-4
        )
    long = {"source": TEXTS[:1], "target": ["a b c d " * 400]}
    status, answer = predict(client, "score", **long)
    assert status == 400 and "tokens" in answer["error"]


def test_what_it_lacks_is_not_offered(client):
    described = client.get("/v1/models/demo/metadata").json()["metadata"]
    assert set(described["signature_def"]["signature_def"]) == {
        *("serving_default", "translate_nbest", "score"),
    }
    status, answer = predict(client, "translate_given", text=TEXTS)
    assert status == 400
    assert 'Serving signature name: "translate_given"' in answer["error"]


def test_a_long_source_is_marked(client):
    status, answer = predict(client, "serving_default", text=["a", LONG])
    assert status == 200
    assert answer["outputs"]["source_truncated"] == [False, True]
    content = {"q": LONG, "source": "de", "target": "en"}
    status, answer = ask(client, "/translate", content)
    assert status == 400 and "tokens" in answer["error"]


def test_a_damaged_folder_is_refused(ctranslate2_demo, tmp_path):
    copy = tmp_path / "demo_de_en"
    shutil.copytree(ctranslate2_demo, copy)
    file = copy / "model.bin"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"model.bin.*export the model again"):
        CTranslate2Engine(copy)


def test_other_engines_are_refused_by_name(tmp_path, capfd):
    (tmp_path / "export.json").write_text(json.dumps({"format": "onnx"}))
    assert main(["serve", str(tmp_path)]) == 2
    errors = capfd.readouterr().err
    assert "is a folder for ONNX Runtime, which is not served" in errors
    assert errors.count("\n") == 1


def test_its_log_has_lines_of_json_alone(ctranslate2_demo):
    """gRPC loads TensorFlow, which writes lines of its own."""
    model = f"demo={ctranslate2_demo}"
    program = [sys.executable, "-m", "keras_deepnmt", "serve", "--port", "0"]
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "TF_CPP_MIN_LOG_LEVEL"
    }
    with subprocess.Popen(
        [*program, model, "--languages", "de-en", "--grpc-port", "0"],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        lines = []
        for line in server.stderr:
            lines.append(line)
            if '"listening"' in line:
                server.kill()
    assert [json.loads(line)["event"] for line in lines][-1] == "listening"
