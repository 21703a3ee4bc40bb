"""Random requests get what the OpenAPI document of the server promises.

Schemathesis draws requests that follow the document and others that do not. No
answer is a fault of the server, each has a status, a type and a content that
the document describes, and what does not follow the document is not accepted.

Its tests for pytest fail on pytest 9.2, so requests are drawn by Hypothesis
alone.
"""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import booleans
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance
from toy_server import ToyServer

from keras_deepnmt.server.request_limits import RequestLimits

EXAMPLES = 100


@pytest.fixture(scope="module")
def operations():
    """The operations of a server without a model, by their names."""
    # The first request for metadata would wait for it, beyond the time limit.
    import tensorflow.core.protobuf.meta_graph_pb2  # noqa: F401

    server = ToyServer(limits=RequestLimits(max_sentences=3, max_tokens=9))
    server.wait_until_ready()
    document = schemathesis.openapi.from_asgi("/openapi.json", server.app)
    found = [result.ok() for result in document.get_all_operations()]
    yield {operation.label: operation for operation in found}
    server.close()


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_answers_are_those_of_the_document(operations, mode):
    assert {"POST /translate", "GET /readyz"} < operations.keys()
    for operation in operations.values():
        if mode is GenerationMode.NEGATIVE and not operation.body:
            continue  # Any text is a path.

        @given(
            case=operation.as_strategy(generation_mode=mode),
            is_for_a_model=booleans(),
        )
        @settings(
            max_examples=EXAMPLES,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def check(case, is_for_a_model):
            if is_for_a_model:
                address_a_model(case)
            # Languages and models are not in the document, nor are limits.
            case.call_and_validate(excluded_checks=[positive_data_acceptance])

        check()


def address_a_model(case):
    """Gives a request the languages or the name of a model."""
    if isinstance(case.body, dict):
        for name, value in (("source", "de"), ("target", "en")):
            if isinstance(case.body.get(name), str):
                case.body[name] = value
    if isinstance(case.path_parameters.get("name"), str):
        case.path_parameters["name"] = "one"
