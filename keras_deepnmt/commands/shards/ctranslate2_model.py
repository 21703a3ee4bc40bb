"""A folder for CTranslate2 that translates many files."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jsonargparse import Namespace

from keras_deepnmt.commands.options.decoding import (
    given_decoding_options,
    option_name,
)
from keras_deepnmt.errors import UserError

_EXPORT_FILE = "export.json"
# What CTranslate2 lacks, with the only values that it may have here.
_LACKS = {
    "num_groups": (1,),
    "diversity_penalty": (),
    "length_offset": (0.0,),
    "coverage_penalty": (0.0,),
    "sampling": (False,),
    "sampling_temperature": (),
    "sampling_top_k": (),
    "sampling_top_p": (),
    "sampling_seed": (),
    "batch_tokens": (),
    "tag": (),
    "target_language": (),
    "checkpoint": (),
    "compile": (),
    "import": ([],),
}
_REMEDIES = {
    "batch_tokens": "Use --batch-size.",
    "tag": "Write it before the lines of the files.",
    "target_language": "Write its tag before the lines of the files.",
}


def is_engine_folder(path: str) -> bool:
    """Whether an export for another engine wrote a folder.

    Example:
    >>> is_engine_folder("runs/demo")
    False
    """
    return (Path(path) / _EXPORT_FILE).is_file()


class CTranslate2Model:
    """A folder that `deepnmt export --format ctranslate2` wrote.

    `options` are those of `deepnmt translate-files`. `sha256` is a hash of what
    the model computes, and `versions` has those of packages, which translations
    depend on.
    """

    def __init__(self, options: Namespace):
        # A missing package is reported before a worker starts.
        import ctranslate2  # noqa: F401

        from keras_deepnmt.exchange.engine_folders import check_engine_files
        from keras_deepnmt.files import file_sha256
        from keras_deepnmt.json_files import read_json

        _refuse_lacking(options)
        self._options = options
        check_engine_files(Path(options.run))
        self.versions = {"ctranslate2": version("ctranslate2")}
        # It has the hashes of the other files.
        file = Path(options.run) / _EXPORT_FILE
        self.sha256 = file_sha256(file)
        self._export = read_json(file, dict)

    def made_of(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what translations depend on, by the names of options.

        `given` are the decoding options of the command.
        """
        from keras_deepnmt.exchange.ctranslate2_export import search_options

        arguments = {**self._export["search"], **self._changes(given)}
        return {
            **search_options(arguments),
            "batch_size": given.get("batch_size"),
        }

    def load(self) -> None:
        """Gets ready to translate."""
        from keras_deepnmt.server.ctranslate2_engine import CTranslate2Engine

        self._engine = CTranslate2Engine(
            self._options.run, threads=self._options.cores_per_worker
        )
        self._given = self._changes(given_decoding_options(self._options))
        self.max_source_length = self._export["max_source_length"]

    def translate(
        self, texts: Sequence[str]
    ) -> tuple[list[list[Any]], list[int]]:
        """Returns the hypotheses of each text, and the places of texts cut."""
        nbest = self._engine.nbest(
            texts, self._options.num_hypotheses, **self._given
        )
        cut = [n for n, found in enumerate(nbest) if found[0].source_truncated]
        return nbest, cut

    def _changes(self, given):
        """The arguments that differ from those of the export."""
        from keras_deepnmt.exchange.ctranslate2_export import search_arguments

        changes = search_arguments(given)
        beams = changes.get("beam_size", self._export["search"]["beam_size"])
        changes["beam_size"] = max(beams, self._options.num_hypotheses)
        if given.get("batch_size") is not None:
            changes["max_batch_size"] = given["batch_size"]
        return changes


def _refuse_lacking(options):
    for name, possible in _LACKS.items():
        value = options[name]
        if value is None or value in possible:
            continue
        remedy = _REMEDIES.get(name, "Translate with the run itself.")
        shown = " ".join(map(str, value)) if name == "import" else value
        raise UserError(
            f"`{option_name(name)}` cannot be used with {options.run}, a "
            f"folder for CTranslate2. Received: {shown}. {remedy}"
        )
    if options.patience is not None and options.patience < 1:
        raise UserError(
            f"`--patience` must be at least 1 with {options.run}, a folder for "
            f"CTranslate2. Received: {options.patience:g}"
        )
