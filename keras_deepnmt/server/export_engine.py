"""Translates for a server with the SavedModel of an export."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from keras_deepnmt.server.engine import Engine, Translation
from keras_deepnmt.server.signatures import Call, as_inputs, as_rows
from keras_deepnmt.serving import SavedModelClient

# An estimate, by which sentences are sorted.
_CHARACTERS_PER_TOKEN = 4


class ExportEngine(Engine):
    """Translates with the SavedModel in the folder of an export's version."""

    def __init__(self, version_dir: str | Path, batch_size: int | None = None):
        self._client = SavedModelClient(version_dir)
        self.batch_size = batch_size or type(self).batch_size
        description = self._client.description
        self.most_hypotheses = description["num_beams"]
        # A tag that the graph adds is not among them.
        tags = (one["tag"] for one in description.get("directions", ()))
        self.tags = [tag for tag in tags if tag is not None]

    def warm_up(self, is_stopped: Callable[[], bool] = lambda: False) -> None:
        # TensorFlow optimizes each graph when it runs first.
        self.translate(1, ["a", "a dog"])
        self.translate(self.most_hypotheses, ["a"])
        self.predict(Call("serving_default"), [("a",)])
        self.predict(Call("score"), [("a", "a")])
        if "translate_given" in self.signature_definitions():
            self.predict(Call("translate_given"), [("a", "a", ("",), 0)])

    def lengths(self, texts: Sequence[str]) -> list[int]:
        # The tokenizer is a part of the graph.
        return [math.ceil(len(t) / _CHARACTERS_PER_TOKEN) + 1 for t in texts]

    def translate(
        self, number: int, texts: Sequence[str]
    ) -> list[list[Translation]]:
        nbest = self._client.translate_nbest(list(texts), number)
        return [list(map(Translation.of, found)) for found in nbest]

    def predict(self, call: Call, rows: Sequence[tuple]) -> list[dict]:
        return as_rows(
            self._client.predict(call.signature, as_inputs(call, rows))
        )

    def signature_definitions(self) -> dict[str, Any]:
        from tensorflow.core.protobuf import saved_model_pb2

        file = self._client.version_dir / "saved_model.pb"
        saved_model = saved_model_pb2.SavedModel.FromString(file.read_bytes())
        signatures = saved_model.meta_graphs[0].signature_def
        return {
            name: signature
            for name, signature in signatures.items()
            # One of TensorFlow's own, which initializes tables.
            if not name.startswith("__")
        }
