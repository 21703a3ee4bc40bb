"""A server whose engine writes in capitals, without any model."""

import threading
from math import inf
from types import MappingProxyType

from fastapi.testclient import TestClient

from keras_deepnmt.data.directions import Direction
from keras_deepnmt.errors import UserError
from keras_deepnmt.server.access import Access
from keras_deepnmt.server.api_keys import ApiKeys
from keras_deepnmt.server.engine import Engine, Translation
from keras_deepnmt.server.http_app import make_app
from keras_deepnmt.server.metrics import Metrics
from keras_deepnmt.server.request_limits import RequestLimits
from keras_deepnmt.server.served_models import (
    ServedModel,
    ServedModels,
    Version,
)

SECONDS = 20
MODELS = (("one", ("de", "en")), ("two", ("en", "de")), ("three", ("fr", "de")))


def word_parts(text):
    """The words of a text with their numbers, and the spaces between them."""
    words = text.split()
    parts = [(" ", None)] * (2 * len(words) - 1)
    parts[::2] = [(word, number) for number, word in enumerate(words)]
    return parts


def look_inside(pairs):
    """Aligns the words in their order, with one map of attention."""
    found = []
    for source, target in pairs:
        size = min(len(source.split()), len(target.split()))
        attention = {
            "title": "Attention to the source",
            "caption": "In their order.",
            "row_label": "translation",
            "column_label": "source",
            "unit": "weight",
            "row_names": target.split()[:size],
            "column_names": source.split()[:size],
            "values": [
                [0.9 if row == column else None for column in range(size)]
                for row in range(size)
            ],
            "limits": [0.0, 1.0],
        }
        roles = attention | {
            "title": "Roles of the source tokens",
            "row_names": ["ein"],
            "column_names": [str(role) for role in range(11)],
            "values": [[role / 10 for role in range(11)]],
        }
        found.append(
            {
                "source": word_parts(source),
                "target": word_parts(target),
                "links": [(number, number) for number in range(size)],
                "attention": attention,
                "panels": [{"title": "Role interaction", "maps": [roles]}],
            }
        )
    return found


def write_lines(texts):
    """Writes texts of a document in capitals; those with a ~ are cut."""
    return [(text.upper(), "~" in text) for text in texts]


class Capitals(Engine):
    """Translates to capitals; a word is a token."""

    most_hypotheses = 3
    batch_size = 4

    def __init__(self):
        self.batches = []
        self.tasks = {"inspect": look_inside, "lines": write_lines}
        self.is_warm, self.may_go = threading.Event(), threading.Event()
        self.has_begun = threading.Event()
        self.is_warm.set()
        self.may_go.set()

    def warm_up(self, is_stopped=None):
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

    def run_task(self, task, rows):
        self.batches.append(list(rows))
        return self.tasks[task.name](rows)

    def predict(self, call, rows):
        self.batches.append(list(rows))
        self.has_begun.set()
        assert self.may_go.wait(SECONDS)
        number = call.num_hypotheses or self.most_hypotheses
        if call.signature == "score":
            return [
                {
                    "log_prob": -1.0,
                    "num_tokens": len(target.split()) + 1,
                    "token_log_prob": [-0.5] * 9,
                    "source_truncated": False,
                }
                for _, target in rows
            ]
        made = []
        for text, *given in rows:
            if text == "refused":
                raise UserError("the prefix is too long")
            texts = [text.upper() + "!" * n for n in range(number)]
            if given:
                prefix, phrases, max_length = given
                texts = [
                    " ".join([prefix, t, *phrases, str(max_length)])
                    for t in texts
                ]
            made.append(
                {
                    "text": texts,
                    "score": [-float(n) for n in range(number)],
                    "log_prob": [-1.0] * (number - 1) + [-inf],
                    "truncated": [False] * number,
                    "source_truncated": False,
                }
            )
            if given:
                made[-1]["constraints_met"] = [True] * number
            if call.signature == "serving_default":
                made[-1] |= {
                    name: made[-1][name][0]
                    for name in ("text", "score", "truncated")
                }
                del made[-1]["log_prob"]
        return made


class ToyServer:
    """The application with a client of it."""

    def __init__(
        self,
        limits=None,
        keys=(),
        origins=(),
        engine=None,
        models=MODELS,
        has_page=True,
        directions=MappingProxyType({}),
    ):
        limits = limits or RequestLimits()
        self.engine = engine or Capitals()
        self.metrics = Metrics()
        self.models = ServedModels(
            [
                ServedModel(
                    name,
                    directions.get(name, [Direction(*pair, None)]),
                    lambda number, name=name: Version(
                        number,
                        self.engine,
                        limits,
                        0.001,
                        self.metrics.of_model(name),
                    ),
                )
                for name, pair in models
            ]
        )
        self.app = make_app(
            self.models,
            limits,
            Access(ApiKeys(list(keys))),
            self.metrics,
            origins,
            has_page,
        )
        self.client = TestClient(self.app)

    def wait_until_ready(self):
        for model in self.models.by_name.values():
            model.current.queue.ready.result(SECONDS)

    def translate(self, q, headers=None, **fields):
        content = {"q": q, "source": "de", "target": "en", **fields}
        return self.client.post("/translate", json=content, headers=headers)

    def close(self):
        self.engine.is_warm.set()
        self.engine.may_go.set()
        self.models.close(drop=True)
