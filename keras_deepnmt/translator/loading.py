"""Reads a run or preset folder, and refuses mismatched files."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from keras_deepnmt.data.directions import Directions
from keras_deepnmt.data.tags import TagSide
from keras_deepnmt.decoding.options import SearchOptions
from keras_deepnmt.errors import UserError, refused_values
from keras_deepnmt.file_tables import check_files
from keras_deepnmt.files import (
    PRESET_FILE,
    WEIGHTS_FILE,
    file_sha256,
    recover_folder,
)
from keras_deepnmt.json_files import read_json
from keras_deepnmt.own_code.recorded import recorded_entries, use_recorded
from keras_deepnmt.suggestions import did_you_mean
from keras_deepnmt.trained import find_run_folder, list_trained_models
from keras_deepnmt.weights_files import load_weights

if TYPE_CHECKING:
    from keras_deepnmt.data.tokenizers import Tokenizer
    from keras_deepnmt.models.seq2seq import Seq2Seq

RUN_FILE = "run.json"
MODEL_DIR = "model"
TOKENIZER_DIR = "tokenizer"
DECODING_OPTIONS = (
    *SearchOptions.names(),
    "batch_size",
    "batch_tokens",
    "max_source_length",
)


class _Score(BaseModel, extra="allow"):
    value: float
    signature: str
    interval: float | None = None


class _Device(BaseModel, extra="allow"):
    accelerators: list[str] | None = None
    processor: str | None = None
    cores: int | None = None


class _Summary(BaseModel, extra="allow"):
    """The values of `run.json` that are read, and their types."""

    preset: str
    overrides: dict[str, Any]
    source_vocabulary_size: int
    target_vocabulary_size: int
    tokenizer: dict[str, str]
    weights_sha256: str
    name: str = ""
    preset_version: int | None = None
    steps: int = 0
    seed: int | None = None
    parameters: int = 0
    tags: list[str | None] = []
    tag_side: TagSide = "source"
    directions: list[dict[str, str | None]] = []
    context: int | None = None
    code: list[dict[str, str]] = []
    decoding: dict[str, Any] = {}
    evaluation: dict[str, Any] = {}
    files: dict[str, dict[str, int | str]] = {}
    averaged_steps: list[int] = []
    best: dict[str, Any] | None = None
    training: dict[str, int | float | None] = {}
    valid: dict[str, _Score] = {}
    device: _Device | None = None
    versions: dict[str, str | None] = {}
    scores: list[dict[str, Any]] = []
    commit: str | None = None


@dataclass(frozen=True)
class Run:
    """The content of a finished run's folder; the weights are loaded later.

    A preset folder holds the model of a run in the layout of a Keras preset,
    with the tokenizers and with `translator.json` in place of `run.json`.

    Attributes:
        directory: the run folder or the preset folder.
        preset: name of the model's preset.
        overrides: arguments that replace the preset's.
        source_tokenizer: tokenizer of the source side.
        target_tokenizer: tokenizer of the target side.
        decoding: the run's own options of `Translator`.
        weights_sha256: SHA-256 of the weights file.
        preset_version: version of the presets that the run recorded.
        summary: all that `run.json` holds.
    """

    directory: Path
    preset: str
    overrides: dict
    source_tokenizer: "Tokenizer"
    target_tokenizer: "Tokenizer"
    decoding: dict
    weights_sha256: str
    preset_version: int | None = None
    summary: dict[str, Any] = field(default_factory=dict)

    @property
    def tags(self) -> list[str | None]:
        """The tags of the training corpora, `None` for those without."""
        return self.summary.get("tags", [])

    @property
    def tag_side(self) -> TagSide:
        """Where the model has its tags."""
        return self.summary.get("tag_side", "source")

    @property
    def directions(self) -> Directions:
        """The languages and tags of the training corpora."""
        return Directions(self.summary.get("directions", ()))

    @property
    def context(self) -> int | None:
        """Number of sentences before each one in training, `data.context`.

        `None` if an earlier version, which did not record it, made the run.
        """
        return self.summary.get("context")

    @property
    def is_preset_folder(self) -> bool:
        return is_preset_folder(self.directory)

    @property
    def file(self) -> Path:
        return summary_file(self.directory)

    @property
    def weights_file(self) -> Path:
        if self.is_preset_folder:
            return self.directory / WEIGHTS_FILE
        return self.directory / MODEL_DIR / WEIGHTS_FILE

    def load_model(self) -> "Seq2Seq":
        """Builds the model and loads the run's weights.

        Returns:
            The model.

        Raises:
            UserError: if the weights file is not the one that the run wrote,
                or does not fit the model.
        """
        weights_file = self.weights_file
        _check_hash(weights_file, self.weights_sha256, self.file)
        _check_files(self.directory, self.summary, of_model=True)
        model = self.build_model()
        try:
            with warnings.catch_warnings():
                # Keras only warns when a layer keeps its initial weights.
                warnings.simplefilter("error", UserWarning)
                load_weights(model, weights_file)
        except UserError:
            raise
        except (ValueError, OSError, KeyError, UserWarning) as error:
            raise UserError(
                f"{weights_file}: does not fit the model that {self.file} "
                f"describes ({self.preset}): {str(error).splitlines()[0]}"
            ) from error
        return model

    def use_code(self) -> None:
        """Runs the user's own code that the folder keeps, if it has any.

        Raises:
            UserError: if the user has not consented to it, or it is damaged.
        """
        records = self.summary.get("code", [])
        with refused_values(f"{self.file}: `code`"):
            entries = recorded_entries(records, self.directory)
        use_recorded(records, entries)

    def build_model(self) -> "Seq2Seq":
        """Builds the model with newly initialized weights.

        Raises:
            UserError: if the folder describes no model.
        """
        from keras_deepnmt.models.seq2seq import Seq2Seq
        from keras_deepnmt.zoo import create_model
        from keras_deepnmt.zoo.registry import check_preset_version

        self.use_code()
        if self.is_preset_folder:
            # Its configuration needs no definition of the preset.
            remedy = _remedy(PRESET_FILE)
            read_json(self.directory / "config.json", dict, remedy)
            with refused_values(f"{self.directory / 'config.json'}"):
                return Seq2Seq.from_preset(
                    str(self.directory), load_weights=False
                )
        check_preset_version(self.preset_version, self.file)
        with refused_values(f"{self.file}: the model"):
            return create_model(
                self.preset,
                self.source_tokenizer.vocabulary_size,
                self.target_tokenizer.vocabulary_size,
                **self.overrides,
            )


def is_preset_folder(directory: Path) -> bool:
    """Whether `deepnmt export --format preset` wrote the folder."""
    return (directory / PRESET_FILE).is_file()


def read_run(run_dir: str | Path) -> Run:
    """Reads the summary and the tokenizers of a run folder or preset folder.

    Args:
        run_dir: the folder of a finished run, as `deepnmt train` wrote it, a
            preset folder, as `deepnmt export --format preset` did, or the name
            of a trained model of the package.

    Returns:
        The content of the folder; `Run.load_model` reads the weights.

    Raises:
        UserError: if a file is missing, broken or not the one that the run was
            finished with.

    Example:
    >>> read_run("runs/demo").preset
    'transformer_tiny'
    """
    directory = find_run_folder(run_dir)
    summary = read_summary(directory)
    tokenizers = {
        side: _read_tokenizer(directory, side, summary)
        for side in ("source", "target")
    }
    _check_files(directory, summary, of_model=False)
    return Run(
        directory,
        summary["preset"],
        summary["overrides"],
        tokenizers["source"],
        tokenizers["target"],
        {
            name: value
            for name, value in summary.get("decoding", {}).items()
            if name in DECODING_OPTIONS
        },
        summary["weights_sha256"],
        summary.get("preset_version"),
        summary,
    )


def with_run_options(
    given: Mapping[str, Any], decoding: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns arguments of `Translator`: those given, otherwise a run's.

    `decoding` has the decoding options of the run. An argument that is `None`
    counts as not given. With `options` no search option of the run is taken.

    Example:
    >>> run = {"num_beams": 5, "batch_size": 16}
    >>> with_run_options({"batch_size": 8, "num_beams": None}, run)
    {'num_beams': 5, 'batch_size': 8}
    """
    given = {name: x for name, x in given.items() if x is not None}
    replaced = SearchOptions.names() if "options" in given else ()
    kept = {name: x for name, x in decoding.items() if name not in replaced}
    return {**kept, **given}


def read_summary(run_dir: str | Path) -> dict[str, Any]:
    """Reads `run.json`, the summary that a run writes when it has finished.

    In a preset folder it is `translator.json`. A folder or file that is
    missing, or is not what it should be, raises a `UserError`.
    """
    directory = find_run_folder(run_dir)
    check_run_folder(directory)
    file = summary_file(directory)
    if not file.is_file():
        has_checkpoint = any(file.parent.glob("checkpoints/step-*"))
        other = (
            ", or use its last checkpoint by `--checkpoint latest`"
            if has_checkpoint
            else ""
        )
        raise UserError(
            f"{file}: missing, so this is not a finished run. Run the same "
            f"`deepnmt train` again to continue it{other}."
        )
    return read_json(file, _Summary, _remedy(file.name))


def check_run_folder(directory: Path) -> None:
    """Refuses a folder that is missing, or that another command wrote.

    Such a folder has prepared data or an exported model.
    """
    if not directory.is_dir():
        near = did_you_mean(str(directory), list_trained_models())
        raise UserError(
            f"{directory}: no such run folder, and no trained model of the "
            f"package, which `deepnmt models --trained` lists.{near}"
        )
    recover_folder(directory / MODEL_DIR)
    if (directory / RUN_FILE).is_file() or is_preset_folder(directory):
        return
    kind = None
    if (directory / "manifest.json").is_file():
        kind = "a folder of prepared data, which `deepnmt prepare` writes"
    elif any(directory.glob("saved_model.pb")) or any(
        directory.glob("*/saved_model.pb")
    ):
        kind = "an exported model, which `deepnmt export` writes"
    if kind is not None:
        raise UserError(
            f"{directory}: is {kind}. A run folder is needed, which `deepnmt "
            "train` writes."
        )


def _read_tokenizer(directory, side, summary):
    from keras_deepnmt.data.tokenizers import Tokenizer

    file = directory / TOKENIZER_DIR / f"{side}.model"
    description = summary_file(directory)
    _check_hash(file, summary["tokenizer"].get(side), description)
    tokenizer = Tokenizer(file)
    size = summary[f"{side}_vocabulary_size"]
    if tokenizer.vocabulary_size != size:
        raise UserError(
            f"{file}: must have the vocabulary that {description} names. "
            "Received: "
            f"{tokenizer.vocabulary_size} pieces instead of {size}"
        )
    return tokenizer


def _check_files(directory, summary, of_model):
    """Compares the folder with its table of files, if there is one.

    `of_model` chooses those of `model/`, of which the weights also have a hash
    of their own.
    """
    table = {
        name: row
        for name, row in summary.get("files", {}).items()
        if of_model == name.startswith((f"{MODEL_DIR}/", WEIGHTS_FILE))
    }
    description = summary_file(directory).name
    check_files(directory, table, description, _remedy(description))


def summary_file(directory: Path) -> Path:
    """Returns the file that `read_summary` reads."""
    name = PRESET_FILE if is_preset_folder(directory) else RUN_FILE
    return directory / name


def _check_hash(file, expected, description):
    """Refuses a file that is not the one of the run, with the remedy."""
    remedy = _remedy(description.name)
    try:
        received = file_sha256(file)
    except OSError as error:
        raise UserError(
            f"{file}: cannot be read ({error.strerror}). {remedy}"
        ) from error
    if received != expected:
        raise UserError(
            f"{file}: not the file that this run was finished with; its "
            f"SHA-256 must be that in {description.name}. Received: {received} "
            f"instead of {expected}. {remedy}"
        )


def _remedy(description):
    if description != RUN_FILE:
        return "Copy the folder again."
    return (
        "Copy the folder again or, if it was trained here, run the same "
        "`deepnmt train` again, which makes the final model anew."
    )
