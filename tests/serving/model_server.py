"""This package's server in a thread, with models by name and engine."""

import contextlib

from threaded_server import threaded_server

from keras_deepnmt.data.directions import Direction
from keras_deepnmt.server.access import Access
from keras_deepnmt.server.api_keys import ApiKeys
from keras_deepnmt.server.http_app import make_app
from keras_deepnmt.server.metrics import Metrics
from keras_deepnmt.server.request_limits import RequestLimits
from keras_deepnmt.server.served_models import (
    ServedModel,
    ServedModels,
    Version,
)

SECONDS = 120


@contextlib.contextmanager
def model_server(**engines):
    """Yields the models and the address of a server that is ready.

    `engines` are functions from the number of a version to its engine.
    """
    limits = RequestLimits(max_tokens=1_024)
    models = ServedModels(
        [
            ServedModel(
                name,
                [Direction("de", "en", None)],
                lambda number, make=make: Version(number, make(number), limits),
            )
            for name, make in engines.items()
        ]
    )
    try:
        for model in models.by_name.values():
            model.current.queue.ready.result(SECONDS)
        app = make_app(models, limits, Access(ApiKeys([])), Metrics())
        with threaded_server(app) as address:
            yield models, address
    finally:
        models.close(drop=True)
