"""Exports a translator as a SavedModel for TensorFlow Serving."""

import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import keras

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import DISK_FULL, StagedFolder, file_sha256
from keras_deepnmt.serving.allowed_ops import check_ops
from keras_deepnmt.serving.golden import (
    EXPORT_FILE,
    default_sources,
    golden_records,
    write_golden,
)
from keras_deepnmt.serving.verification import numbered_versions, verify
from keras_deepnmt.serving.warm_up import warm_up_requests, write_warm_up
from keras_deepnmt.translator.requests import refuse_one_sentence
from keras_deepnmt.translator.results import no_probabilities
from keras_deepnmt.version import __version__
from keras_deepnmt.xla.float32 import all_digits_of_float32

if TYPE_CHECKING:
    from keras_deepnmt.serving.serving_graph import ServingGraph
    from keras_deepnmt.translator import Translator

Dtype = Literal["float32", "bfloat16"]


def export(
    translator: "Translator",
    directory: str | Path,
    *,
    version: int | None = None,
    golden_sources: Sequence[str] | None = None,
    dtype: Dtype = "float32",
    **search_options: Any,
) -> Path:
    """Exports a translator as a SavedModel that takes and returns text.

    The SavedModel holds tokenizers, weights and search and needs only
    TensorFlow and TensorFlow-Text. Before the numbered folder appears, it is
    checked that the graph has no operation that a server lacks, and that a
    fresh process which cannot import this package computes the same
    translations and scores of the golden sentences. An interrupted export
    leaves no numbered folder. TensorFlow Serving runs the requests in
    `assets.extra/tf_serving_warmup_requests` when it loads the model, so that
    the first real one of each signature is as fast as later ones.

    Where the translator has a tag, the graph puts it before each source, so
    that the two translate alike; where the model has tags on the target side,
    it puts the tag at the beginning of each translation, and takes it out of
    the text. Otherwise a tag is a part of the text.

    Args:
        translator: Translator to export, with its current weights.
        directory: Model folder; the export becomes a numbered folder in it.
        version: The number. Defaults to one more than the largest there.
        golden_sources: Sentences stored with their translations beside the
            model, for `verify`. Defaults to random sequences of the
            tokenizer's pieces. They are run as one batch.
        dtype: Type of the stored weights. `"bfloat16"` takes half of the
            space and rounds them; each request computes in float32 with them.
        **search_options: Fields of `decoding.SearchOptions`, such as
            `num_beams=4`, that replace the translator's. A request can only
            change the length penalty.

    Returns:
        The folder of the new version.

    Raises:
        TypeError: if `golden_sources` is a string.
        UserError: if the version already exists, the translator has
            shortlists, the disk is full, Keras does not run on TensorFlow, the
            model computes NaN, or a golden sentence differs.
        ValueError: if the graph has a forbidden operation, or an argument is
            too small.

    Example:
    >>> export(translator, "served/demo", golden_sources=["a little dog"])
    PosixPath('served/demo/1')
    """
    _check(version, dtype)
    refuse_one_sentence(golden_sources, "golden_sources")
    directory = Path(directory)
    versions = numbered_versions(directory)
    if version is None:
        version = max(versions, default=0) + 1
    elif version in versions:
        raise UserError(
            f"{directory / str(version)}: this version already exists. "
            "Choose another number, or none for the next one."
        )
    if golden_sources is None:
        golden_sources = default_sources(translator.source_tokenizer)
    version_dir = directory / str(version)
    with _removed_if_empty(directory), StagedFolder(version_dir) as folder:
        with _full_disk_told(folder):
            graph = _save(translator, folder, dtype, **search_options)
        check_ops(folder)
        records = _run_golden(graph, golden_sources)
        requests = warm_up_requests(graph, records)
        write_warm_up(folder, directory.name, requests)
        _write_description(graph, translator, folder)
        write_golden(folder, records)
        verify(folder)
    return version_dir


@contextmanager
def _removed_if_empty(directory: Path) -> Iterator[None]:
    """Removes the folders that a failed export made and left empty."""
    new = [
        folder
        for folder in (directory, *directory.parents)
        if not folder.exists()
    ]
    try:
        yield
    except BaseException:
        for folder in new:
            with suppress(OSError):
                folder.rmdir()
        raise


@contextmanager
def _full_disk_told(folder: Path) -> Iterator[None]:
    """Raises TensorFlow's errors about a full disk as `OSError`."""
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        for number in DISK_FULL:
            if os.strerror(number) in str(error):
                raise OSError(
                    number, os.strerror(number), str(folder)
                ) from error
        raise


def _check(version, dtype):
    if keras.config.backend() != "tensorflow":
        raise UserError(
            "An export needs Keras on TensorFlow. Received: "
            f"KERAS_BACKEND={keras.config.backend()}. Run the same command "
            "with KERAS_BACKEND=tensorflow; the same weights can be used."
        )
    if version is not None and version < 1:
        raise ValueError(
            f"`version` must be at least 1. Received: version={version}"
        )
    if dtype not in get_args(Dtype):
        raise UserError(
            f"`dtype` must be one of {', '.join(get_args(Dtype))} in a "
            f"SavedModel. Received: {dtype}"
        )


def _save(translator, folder, dtype, **search_options) -> "ServingGraph":
    import tensorflow as tf

    from keras_deepnmt.serving.serving_graph import ServingGraph

    graph = ServingGraph(translator, dtype, **search_options)
    tf.saved_model.save(
        graph.module(), str(folder), signatures=graph.signatures
    )
    return graph


def _run_golden(graph, sources):
    if not sources:
        raise ValueError(
            "`golden_sources` must hold at least one sentence. "
            f"Received: golden_sources={sources!r}"
        )

    def call(signature, **inputs):
        import tensorflow as tf

        outputs = graph.signatures[signature](
            **{name: tf.constant(value) for name, value in inputs.items()}
        )
        return {name: value.numpy() for name, value in outputs.items()}

    # A text has at most one piece per character and one for its beginning; the
    # end id is added.
    max_characters = graph.model.max_length
    if max_characters is not None:
        max_characters = max(max_characters - 2 - graph.num_tag_tokens, 0)
    # They are compared with what a CPU computes.
    with all_digits_of_float32():
        records = golden_records(
            sources,
            graph.num_beams,
            call,
            max_characters,
            graph.finds_phrases,
        )
    if not all(math.isfinite(record["score"]) for record in records):
        raise no_probabilities(graph.model)
    return records


def _directions(tag, known):
    """The languages of an export, and the tags that sources still need."""
    return [
        {
            "source": one.source,
            "target": one.target,
            "tag": one.tag if tag is None else None,
        }
        for one in known
        if tag in (None, one.tag)
    ]


def _write_description(graph, translator, folder):
    import tensorflow as tf
    import tensorflow_text

    description = {
        "format": 1,
        **graph.options.as_dict(),
        "dtype": graph.dtype,
        "max_source_length": graph.max_source_length,
        "tag": graph.tag,
        "tag_side": graph.tag_side,
        "directions": _directions(graph.tag, translator.directions.known),
        "model": type(graph.model).__name__,
        "source_tokenizer_sha256": translator.source_tokenizer.sha256,
        "target_tokenizer_sha256": translator.target_tokenizer.sha256,
        # TensorFlow's own errors about a damaged file do not name it.
        "sha256": {
            file.relative_to(folder).as_posix(): file_sha256(file)
            for file in sorted(folder.rglob("*"))
            if file.is_file()
        },
        "versions": {
            "keras_deepnmt": __version__,
            "keras": keras.__version__,
            "tensorflow": tf.__version__,
            "tensorflow-text": tensorflow_text.__version__,
            "python": sys.version.split()[0],
        },
    }
    file = folder / EXPORT_FILE
    os.makedirs(file.parent, exist_ok=True)
    file.write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
