"""Runs the golden sentences of an export against a server."""

from pathlib import Path
from typing import Any

import numpy as np

from keras_deepnmt.serving.clients import ServingClient
from keras_deepnmt.serving.golden import read_golden
from keras_deepnmt.serving.standalone import verify_golden
from keras_deepnmt.serving.verification import (
    Verification,
    find_version,
    refuse_differences,
)


def verify_endpoint(
    directory: str | Path, client: ServingClient
) -> Verification:
    """Checks that a server gives the outputs of an export when it was made.

    Args:
        directory: A version folder of the export, or a model folder, whose
            newest version is used.
        client: A client of the server, such as `RestClient`.

    Returns:
        A `Verification`.

    Raises:
        UserError: as `verify`, or if the server does not answer.

    Example:
    >>> from keras_deepnmt.serving import RestClient
    >>> client = RestClient("http://localhost:8501/v1/models/demo")
    >>> verify_endpoint("served/demo", client).num_sentences
    16
    """
    version_dir = find_version(directory)
    read_golden(version_dir)

    def call(signature, **inputs):
        given = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in inputs.items()
        }
        outputs = client.predict(signature, given)
        return {name: _as_array(values) for name, values in outputs.items()}

    report = verify_golden(call, str(version_dir))
    refuse_differences(version_dir, report)
    return Verification(
        version_dir, report["sentences"], report["largest_difference"]
    )


def _as_array(values: Any) -> np.ndarray:
    """Returns outputs as TensorFlow has them: texts as bytes."""
    encoded = _with_bytes(values)
    array = np.array(encoded, dtype=object)
    is_text = any(isinstance(value, bytes) for value in array.flat)
    return array if is_text else np.array(encoded)


def _with_bytes(values):
    if isinstance(values, list):
        return [_with_bytes(value) for value in values]
    return values.encode() if isinstance(values, str) else values
