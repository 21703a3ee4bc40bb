"""A server whose engine writes in capitals, without any model."""

import threading

from fastapi.testclient import TestClient

from keras_deepnmt.server.access import Access
from keras_deepnmt.server.api_keys import ApiKeys
from keras_deepnmt.server.engine import Engine, Translation
from keras_deepnmt.server.http_app import make_app
from keras_deepnmt.server.metrics import Metrics
from keras_deepnmt.server.request_limits import RequestLimits
from keras_deepnmt.server.served_models import ServedModel, ServedModels

SECONDS = 20


class Capitals(Engine):
    """Translates to capitals; a word is a token."""

    most_hypotheses = 3
    batch_size = 4

    def __init__(self):
        self.batches = []
        self.is_warm, self.may_go = threading.Event(), threading.Event()
        self.has_begun = threading.Event()
        self.is_warm.set()
        self.may_go.set()

    def warm_up(self):
        assert self.is_warm.wait(SECONDS)

    def lengths(self, texts):
        return [len(text.split()) + 1 for text in texts]

    def translate(self, number, texts):
        self.batches.append(list(texts))
        self.has_begun.set()
        assert self.may_go.wait(SECONDS)
        if "fault" in texts:
            raise ValueError("a secret text")
        return [
            [
                Translation(text.upper() + "!" * n, -n, "endless" in text)
                for n in range(number)
            ]
            for text in texts
        ]


class ToyServer:
    """The application with a client of it."""

    def __init__(self, limits=None, keys=(), origins=(), engine=None):
        limits = limits or RequestLimits()
        self.engine = engine or Capitals()
        self.metrics = Metrics()
        self.models = ServedModels(
            [
                ServedModel(
                    name,
                    pair,
                    self.engine,
                    limits,
                    0.001,
                    self.metrics.note_batch,
                )
                for name, pair in (
                    ("one", ("de", "en")),
                    ("two", ("en", "de")),
                    ("three", ("fr", "de")),
                )
            ]
        )
        self.app = make_app(
            self.models,
            limits,
            Access(ApiKeys(list(keys))),
            self.metrics,
            origins,
        )
        self.client = TestClient(self.app)

    def wait_until_ready(self):
        for model in self.models.by_name.values():
            model.queue.ready.result(SECONDS)

    def translate(self, q, headers=None, **fields):
        content = {"q": q, "source": "de", "target": "en", **fields}
        return self.client.post("/translate", json=content, headers=headers)

    def close(self):
        self.engine.is_warm.set()
        self.engine.may_go.set()
        self.models.close(drop=True)
