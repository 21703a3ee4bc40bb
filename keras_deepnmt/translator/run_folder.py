"""Reads a run folder, and refuses one whose files do not belong together."""

import hashlib
import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from keras_deepnmt.errors import UserError

if TYPE_CHECKING:
    from keras_deepnmt.data.tokenizers import Tokenizer
    from keras_deepnmt.models.seq2seq import Seq2Seq

WEIGHTS_FILE = Path("model", "model.weights.h5")
DECODING_OPTIONS = (
    "num_beams",
    "length_penalty",
    "length_offset",
    "batch_size",
    "max_source_length",
)


@dataclass(frozen=True)
class Run:
    """What a run folder holds.

    Attributes:
        directory: the run folder.
        preset: name of the model.
        overrides: what the run changed in the preset.
        source_tokenizer: tokenizer of the source side.
        target_tokenizer: tokenizer of the target side.
        decoding: the run's own options of `Translator`.
        weights_sha256: hash of the weights file.
    """

    directory: Path
    preset: str
    overrides: dict
    source_tokenizer: "Tokenizer"
    target_tokenizer: "Tokenizer"
    decoding: dict
    weights_sha256: str

    def load_model(self) -> "Seq2Seq":
        """Builds the model and loads the run's weights.

        Returns:
            The model.

        Raises:
            UserError: if the weights file is not the one that the run wrote,
                or does not fit the model.
        """
        from keras_deepnmt.zoo import create_model

        weights_file = self.directory / WEIGHTS_FILE
        _check_hash(
            weights_file, _file_sha256(weights_file), self.weights_sha256
        )
        model = create_model(
            self.preset,
            self.source_tokenizer.vocabulary_size,
            self.target_tokenizer.vocabulary_size,
            **self.overrides,
        )
        try:
            with warnings.catch_warnings():
                # What Keras warns of is a layer left at its initial weights.
                warnings.simplefilter("error", UserWarning)
                model.load_weights(weights_file)
        except (ValueError, OSError, KeyError, UserWarning) as error:
            raise UserError(
                f"{weights_file}: does not fit the model that "
                f"{self.directory / 'run.json'} describes "
                f"({self.preset}): {str(error).splitlines()[0]}"
            ) from error
        return model


def read_run(run_dir: str | Path) -> Run:
    """Reads a run folder's description and tokenizers.

    Args:
        run_dir: the run folder, as `deepnmt train` wrote it.

    Returns:
        What it holds; the weights are read by `Run.load_model`.

    Raises:
        UserError: if a file is missing or broken, or a tokenizer is not the
            one that the run was trained with.

    Example:
    >>> read_run("runs/demo").preset
    'transformer_tiny'
    """
    directory = Path(run_dir)
    description = _read_description(directory / "run.json")
    tokenizers = {}
    for side in ("source", "target"):
        tokenizers[side] = _read_tokenizer(directory, side, description)
    return Run(
        directory,
        description["preset"],
        description["overrides"],
        tokenizers["source"],
        tokenizers["target"],
        {
            name: value
            for name, value in description.get("decoding", {}).items()
            if name in DECODING_OPTIONS
        },
        description["weights_sha256"],
    )


def _read_description(file):
    if not file.parent.is_dir():
        raise UserError(f"{file.parent}: no such run folder.")
    if not file.is_file():
        raise UserError(
            f"{file}: missing, so this is no finished run. Run the same "
            "`deepnmt train` again; it continues."
        )
    try:
        description = json.loads(file.read_text("utf-8"))
    except ValueError as error:
        raise UserError(f"{file}: not valid JSON ({error}).") from error
    needed = {
        "preset",
        "overrides",
        "source_vocabulary_size",
        "target_vocabulary_size",
        "tokenizer",
        "weights_sha256",
    }
    missing = sorted(needed.difference(description))
    if missing:
        raise UserError(f"{file}: lacks {', '.join(missing)}.")
    return description


def _read_tokenizer(directory, side, description):
    from keras_deepnmt.data.tokenizers import Tokenizer

    file = directory / "tokenizer" / f"{side}.model"
    tokenizer = Tokenizer(file)
    _check_hash(file, tokenizer.sha256, description["tokenizer"].get(side))
    size = description[f"{side}_vocabulary_size"]
    if tokenizer.vocabulary_size != size:
        raise UserError(
            f"{file}: must have the vocabulary that "
            f"{directory / 'run.json'} names. Received: "
            f"{tokenizer.vocabulary_size} pieces instead of {size}"
        )
    return tokenizer


def _file_sha256(file):
    try:
        with open(file, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise UserError(
            f"{file}: cannot be read ({error.strerror})."
        ) from error


def _check_hash(file, received, expected):
    if received != expected:
        raise UserError(
            f"{file}: not the file that this run was finished with; its "
            f"SHA-256 must be that in run.json. Received: {received} "
            f"instead of {expected}"
        )
