"""The container files on `docs/deployment.md` name only what exists.

* arguments are options of `deepnmt serve`, and ports those of its options
* probes ask for paths of the server, and the health check is a program
* environment variables are those that are read
* a stopped container has more time than a request may take
"""

import json
import re

import pytest
import yaml
from package_tree import REPOSITORY

from keras_deepnmt.cli import make_parser
from keras_deepnmt.server import api_keys
from keras_deepnmt.server.http_app import make_app
from keras_deepnmt.server.served_models import ServedModels
from keras_deepnmt.xla import cache

PAGE = REPOSITORY / "docs" / "deployment.md"
VARIABLES = {api_keys.VARIABLE, cache.USER_VARIABLE, "TF_CPP_MIN_LOG_LEVEL"}


def block(title):
    text = PAGE.read_text(encoding="utf-8")
    pattern = rf'^```\w+ title="{re.escape(title)}"\n(.*?)^```'
    return re.search(pattern, text, re.DOTALL | re.MULTILINE)[1]


def parsed(arguments):
    return make_parser("serve").parse_args(arguments)


@pytest.fixture(scope="module")
def entry_point():
    """The arguments of `deepnmt serve` in the image."""
    line = re.search(r"^ENTRYPOINT (.*)$", block("Dockerfile"), re.M)[1]
    program, verb, *arguments = json.loads(line)
    assert (program, verb) == ("deepnmt", "serve")
    return arguments


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load(block("compose.yaml"))["services"]["translator"]


@pytest.fixture(scope="module")
def container():
    pod = yaml.safe_load(block("translator.yaml"))["spec"]["template"]["spec"]
    (only,) = pod["containers"]
    return {**only, "seconds": pod["terminationGracePeriodSeconds"]}


def test_arguments_are_those_of_the_command(entry_point, compose, container):
    assert parsed(entry_point).host == "0.0.0.0"
    for arguments in (compose["command"], container["args"]):
        options = parsed([*entry_point, *arguments])
        assert options.models == ["de_en=/models/de_en"]


def test_ports_are_those_of_the_server(entry_point, compose, container):
    options = parsed(entry_point)
    ports = [options.port, options.grpc_port]
    exposed = re.search(r"^EXPOSE (.*)$", block("Dockerfile"), re.M)[1]
    assert list(map(int, exposed.split())) == ports
    assert [each["containerPort"] for each in container["ports"]] == ports
    assert [int(each.split(":")[-1]) for each in compose["ports"]] == ports


def test_probes_ask_for_paths_of_the_server(container):
    app = make_app(ServedModels([]), *[None] * 3)
    paths = set(app.openapi()["paths"])
    names = {each["name"] for each in container["ports"]}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["path"] in paths and asked["port"] in names
    assert "/metrics" in paths
    # No annotation could give the key that it needs where there are keys.
    assert "prometheus.io" not in block("translator.yaml")
    check = re.search(
        r'CMD (\["python".*?\])$', block("Dockerfile"), re.M | re.S
    )
    *_, code = json.loads(check[1].replace("\\\n", ""))
    compile(code, "HEALTHCHECK", "exec")
    assert "http://127.0.0.1:8501/readyz" in code


def test_variables_are_those_that_are_read(compose, container):
    image = re.search(r"^ENV (.*)$", block("Dockerfile"), re.M)[1]
    names = {each.split("=")[0] for each in image.split()}
    names |= set(compose["environment"])
    names |= {each["name"] for each in container["env"]}
    assert names == VARIABLES


def test_a_stopped_container_has_time_for_its_requests(
    entry_point, compose, container
):
    grace = int(compose["stop_grace_period"].removesuffix("s"))
    assert grace > parsed([*entry_point, *compose["command"]]).timeout
    seconds = parsed([*entry_point, *container["args"]]).timeout
    assert container["seconds"] > seconds
