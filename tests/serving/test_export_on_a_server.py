"""An export behind this package's server, beside what its clients get.

Of its answers see test_serving_clients.py.
"""

import json
import shutil
import time
import urllib.request

import pytest
from model_server import SECONDS, model_server

from keras_deepnmt.cli import main
from keras_deepnmt.errors import UserError
from keras_deepnmt.serving import RestClient, verify_endpoint


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def get(url):
    with urllib.request.urlopen(url, timeout=SECONDS) as answer:
        return json.load(answer)


def signatures(address, name):
    """The types and numbers of axes of all inputs and outputs of a model."""
    found = get(f"{address}/v1/models/{name}/metadata")
    assert found["model_spec"]["name"] == name
    defined = found["metadata"]["signature_def"]["signature_def"]
    for signature in defined.values():
        assert signature["method_name"] == "tensorflow/serving/predict"
    return {
        (name, side, field): (
            info["dtype"],
            len(info["tensor_shape"].get("dim", [])),
        )
        for name, signature in defined.items()
        for side in ("inputs", "outputs")
        for field, info in signature[side].items()
    }


@pytest.mark.thorough
def test_it_is_verified_described_and_replaced(
    version_dir, translator, tmp_path, capsys
):
    from keras_deepnmt.server.api_keys import ApiKeys
    from keras_deepnmt.server.export_engine import ExportEngine
    from keras_deepnmt.server.grpc_services import GrpcServer
    from keras_deepnmt.server.metrics import Metrics
    from keras_deepnmt.server.request_limits import RequestLimits
    from keras_deepnmt.server.translator_engine import TranslatorEngine
    from keras_deepnmt.server.version_watch import VersionWatch

    folder = tmp_path / "mine"
    shutil.copytree(version_dir, folder / "1")
    with model_server(
        mine=lambda number: ExportEngine(folder / str(number)),
        run=lambda number: TranslatorEngine(translator, 99),
    ) as (models, address):
        url = f"{address}/v1/models/mine"
        client = RestClient(url)
        found = verify_endpoint(version_dir, client)
        assert found.num_sentences > 10 and found.largest_difference < 1e-5
        assert main(["verify", str(version_dir), url]) == 0
        assert "golden sentences of" in capsys.readouterr().out

        options = RequestLimits(), ApiKeys([]), Metrics(), "127.0.0.1:0"
        grpc_server = GrpcServer(models, *options)
        grpc_server.start()
        grpc_url = f"grpc://127.0.0.1:{grpc_server.port}/mine"
        assert main(["verify", str(version_dir), grpc_url]) == 0
        grpc_server.stop()

        described = signatures(address, "mine")
        assert len(described) > 20
        assert described == signatures(address, "run")

        # A version that is copied just now is taken once it is whole.
        shutil.copytree(version_dir, folder / "2")
        file = folder / "2" / "variables" / "variables.index"
        content = file.read_bytes()
        file.write_bytes(content[:-1])
        model = models.by_name["mine"]
        watch = VersionWatch({model: folder}, every_s=0.05)
        try:
            time.sleep(0.5)
            assert client.translate("a")
            assert model.current.number == 1
            file.write_bytes(content)
            end = time.monotonic() + SECONDS
            while model.current.number != 2 and time.monotonic() < end:
                client.translate("a")
        finally:
            watch.stop()
        assert get(url)["model_version_status"][0]["version"] == "2"
        assert client.translate("a")


@pytest.mark.thorough
def test_a_server_with_other_answers_is_found(version_dir):
    from keras_deepnmt.server.export_engine import ExportEngine

    class Other(ExportEngine):
        def predict(self, call, rows):
            found = super().predict(call, rows)
            for row, output in zip(rows, found, strict=True):
                if call.signature == "score" and not row[0]:
                    output["log_prob"] -= 0.01
            return found

    with model_server(other=lambda number: Other(version_dir)) as (_, address):
        client = RestClient(f"{address}/v1/models/other")
        with pytest.raises(UserError, match="1 of .* golden sentences differ"):
            verify_endpoint(version_dir, client)
    with pytest.raises(UserError, match="no server answers"):
        verify_endpoint(version_dir, client)
