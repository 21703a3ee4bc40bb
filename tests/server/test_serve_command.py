"""`deepnmt serve` as a process of its own, with the model of the package.

The command line refuses wrong models and options in one line, too.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request

import pytest
from digit_run import environment
from forked_processes import ForkedProcess

from keras_deepnmt.cli import main
from keras_deepnmt.commands import serve
from keras_deepnmt.server import api_keys
from keras_deepnmt.trained import find_run_folder

pytestmark = pytest.mark.thorough(each_commit=True)

TEXTS = ["Ein Mann liest ein Buch.", "Zwei Hunde spielen im Schnee.", ""]


class Server:
    """The process, and the events of its log."""

    def __init__(self, *words):
        start = ["-m", "keras_deepnmt", "serve", "--port", "0", *words]
        self.process = ForkedProcess(
            start, env=environment(), stderr=subprocess.PIPE
        )
        self.events = []
        self.address = self.wait_for("listening")["address"]

    def wait_for(self, event):
        for line in self.process.stderr:
            self.events.append(json.loads(line))
            if self.events[-1]["event"] == event:
                return self.events[-1]
        raise AssertionError(f"no {event!r} after {self.events}")

    def ask(self, path, content=None):
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(
            self.address + path, data, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.__exit__()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Server("--no-compile", "--max-tokens", "40", "--num-beams", "4")
    yield server
    server.stop()


def test_it_serves_a_model_and_answers_all_before_it_stops(server):
    assert server.ask("/healthz")[0] == 200
    server.wait_for("ready")
    assert server.ask("/readyz")[0] == 200
    (model,) = json.loads(server.ask("/page/models")[1])["models"]
    assert model["most_translations"] == 4  # Its recipe has 5 beams.
    content = {"q": TEXTS, "source": "de", "target": "en", "alternatives": 3}
    status, answer = server.ask("/translate", content)
    found = json.loads(answer)
    assert status == 200
    assert found["translatedText"][0] == "A man reads a book."
    assert found["translatedText"][2] == ""
    assert len(set(found["alternatives"][0])) == 3
    # A sentence that is too long, and the server goes on.
    long = {"q": "Hund " * 100, "source": "auto", "target": "en"}
    status, answer = server.ask("/translate", long)
    assert status == 400 and "at most 40 tokens" in answer

    body = json.dumps({**content, "q": TEXTS * 10}).encode()
    host, port = server.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 300) as connection:
        connection.sendall(
            b"POST /translate HTTP/1.1\r\nHost: a\r\n"
            b"Content-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body)
        )
        # The server has begun to read it when it has answered another one.
        assert server.ask("/healthz")[0] == 200
        os.kill(server.process.pid, signal.SIGTERM)
        server.wait_for("stopping")
        connection.sendall(body)
        answer = b"".join(iter(lambda: connection.recv(2**16), b""))
    assert answer.startswith(b"HTTP/1.1 200"), answer[:300]
    translated = json.loads(answer.partition(b"\r\n\r\n")[2])["translatedText"]
    assert translated == found["translatedText"] * 10
    assert server.process.wait(300) == 0
    server.wait_for("stopped")
    log = json.dumps(server.events)
    assert "Hund" not in log and "Buch" not in log


def refused(capfd, *words):
    capfd.readouterr()
    assert main(["serve", *map(str, words)]) == 2
    err = capfd.readouterr().err
    assert err.count("\n") == 1, err
    return err


def test_wrong_models_and_options_are_one_line(capfd, tmp_path):
    assert "no such run folder" in refused(
        capfd, "nowhere_de_en", "--port", "0"
    )
    (tmp_path / "mine").mkdir()
    assert "not a finished run" in refused(capfd, tmp_path / "mine")
    # A run of an earlier version did not write its languages.
    shutil.copytree(
        find_run_folder("transformer_tiny.demo_de_en"), tmp_path / "earlier"
    )
    file = tmp_path / "earlier" / "translator.json"
    summary = json.loads(file.read_text())
    del summary["directions"]
    file.write_text(json.dumps(summary))
    assert "--languages de-en" in refused(capfd, tmp_path / "earlier")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert "NAME=" in refused(capfd, "a b")
    assert "name of its own" in refused(capfd, "a_de_en", "a_de_en")
    assert "one pair" in refused(capfd, "--languages", "de-en", "en-de")
    assert "65,535" in refused(capfd, "--port", "70000")
    for site in ("example.org", "https://example.org/app"):
        assert "without a path" in refused(capfd, "--allow-origins", site)
    assert "`--max-waiting`" in refused(capfd, "--max-waiting", "1")
    assert "no key" in refused(capfd, "--api-keys", os.devnull)
    assert "nowhere" in refused(capfd, "--api-keys", tmp_path / "nowhere")
    assert "`--patience`" in refused(capfd, "--patience", "-1")
    (tmp_path / "served" / "1").mkdir(parents=True)
    (tmp_path / "served" / "1" / "saved_model.pb").touch()
    words = ("--languages", "de-en", "--length-penalty", "0.6")
    err = refused(capfd, tmp_path / "served", *words)
    assert "`--length-penalty` is for runs" in err
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert "Choose another `--port`" in refused(capfd, "--port", port)


def test_a_slash_after_the_address_of_a_site_does_no_harm():
    sites = ["https://Example.org/", "http://localhost:3000", "*"]
    assert serve._origins(sites) == [
        *("https://example.org", "http://localhost:3000", "*")
    ]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
def test_it_may_be_stopped_while_it_loads(capfd, monkeypatch, number, code):
    monkeypatch.setattr(
        api_keys, "read_api_keys", lambda file: os.kill(os.getpid(), number)
    )
    assert main(["serve"]) == code
    err = capfd.readouterr().err
    assert err.endswith("interrupted. No request was being answered.\n")


def test_a_missing_package_is_one_line(capfd, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "uvicorn", None)
    assert 'pip install "keras_deepnmt[serve]"' in refused(capfd)
