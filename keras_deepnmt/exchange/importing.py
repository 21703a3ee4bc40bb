"""Writes a model of another toolkit as a preset folder."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange import (
    ctranslate2_import,
    eole,
    joeynmt,
    marian_hf,
    marian_npz,
    opennmt_py,
    torch_transformer,
)
from keras_deepnmt.exchange.imported_model import PRESET, ImportedModel
from keras_deepnmt.file_tables import file_table
from keras_deepnmt.files import (
    PRESET_FILE,
    WEIGHTS_FILE,
    StagedFolder,
    file_sha256,
    write_json,
    write_text,
)
from keras_deepnmt.json_files import read_json
from keras_deepnmt.suggestions import did_you_mean
from keras_deepnmt.translator.loading import TOKENIZER_DIR
from keras_deepnmt.translator.translator import Translator
from keras_deepnmt.version import __version__
from keras_deepnmt.weights_files import check_room
from keras_deepnmt.zoo.registry import PRESET_VERSION


@dataclasses.dataclass(frozen=True)
class Format:
    """A format that models are read from.

    Attributes:
        recognizes: whether a path is of this format.
        load: reads it; takes a path, and `source_tokenizer` and
            `target_tokenizer`, files to use in place of those of the model, or
            `None`.
        summary: what it is.
    """

    recognizes: Callable[[Path], bool]
    load: Callable[..., ImportedModel]
    summary: str


FORMATS = {
    marian_hf.FORMAT: Format(
        marian_hf.is_marian,
        marian_hf.load_marian,
        "a folder of Hugging Face's MarianMT, such as OPUS-MT's models",
    ),
    marian_npz.FORMAT: Format(
        marian_npz.is_marian_npz,
        marian_npz.load_marian_npz,
        "an .npz file of Marian, or a folder with one",
    ),
    ctranslate2_import.FORMAT: Format(
        ctranslate2_import.is_ctranslate2,
        ctranslate2_import.load_ctranslate2,
        "a folder of CTranslate2, as its converters write",
    ),
    torch_transformer.FORMAT: Format(
        torch_transformer.is_torch_transformer,
        torch_transformer.load_torch_transformer,
        "a YAML file that describes a model around torch.nn.Transformer",
    ),
    joeynmt.FORMAT: Format(
        joeynmt.is_joeynmt,
        joeynmt.load_joeynmt,
        "a folder of JoeyNMT 2, or a checkpoint in it",
    ),
    opennmt_py.FORMAT: Format(
        opennmt_py.is_opennmt_py,
        opennmt_py.load_opennmt_py,
        "a checkpoint .pt of OpenNMT-py 3",
    ),
    eole.FORMAT: Format(eole.is_eole, eole.load_eole, "a folder of eole"),
}


def import_model(
    path: str | Path,
    directory: str | Path,
    format: str | None = None,
    source_tokenizer: str | Path | None = None,
    target_tokenizer: str | Path | None = None,
) -> Path:
    """Writes a model of another toolkit as a preset folder.

    `Translator.load`, `deepnmt train --from-preset` and the other commands take
    the folder. It appears when it is complete and has been loaded.

    Args:
        path: the model, a file or folder of one of the formats in `FORMATS`.
        directory: the preset folder to write; it must not exist yet.
        format: name of the format. By default it is recognized.
        source_tokenizer: the source side's tokenizer, a SentencePiece model or
            codes of subword-nmt. By default it is the one that comes with the
            model.
        target_tokenizer: the target side's.

    Returns:
        The folder.

    Raises:
        UserError: if the format is not known, the model is damaged or of a
            kind that this package does not have, or the folder exists.

    Example:
    >>> from keras_deepnmt.exchange import import_model
    >>> import_model("opus-mt-de-en", "presets/opus-mt-de-en")
    PosixPath('presets/opus-mt-de-en')
    """
    path, directory = Path(path), Path(directory)
    if directory.exists():
        raise UserError(f"{directory}: exists already. Give a new folder.")
    for tokenizer in (source_tokenizer, target_tokenizer):
        if tokenizer is not None and not Path(tokenizer).is_file():
            raise UserError(f"{tokenizer}: no such file.")
    imported = _find_format(path, format).load(
        path,
        source_tokenizer=source_tokenizer,
        target_tokenizer=target_tokenizer,
    )
    model = imported.build()
    with StagedFolder(directory) as folder:
        check_room(folder, model.variables)
        model.save_to_preset(str(folder))
        tokenizers = folder / TOKENIZER_DIR
        tokenizers.mkdir()
        protos = {
            "source": imported.source_proto,
            "target": imported.target_proto,
        }
        for side, proto in protos.items():
            (tokenizers / f"{side}.model").write_bytes(proto)
        write_json(folder / PRESET_FILE, _summary(imported, model, folder))
        write_text(folder / "README.md", _card(imported, directory.name))
        _verify(folder, directory, model)
    return directory


def _find_format(path, name) -> Format:
    if not path.exists():
        raise UserError(f"{path}: no such file or folder.")
    if name is not None:
        if name not in FORMATS:
            raise UserError(
                f"`format` must be one of {', '.join(FORMATS)}. Received: "
                f"{name}.{did_you_mean(name, FORMATS)}"
            )
        return FORMATS[name]
    for found in FORMATS.values():
        if found.recognizes(path):
            return found
    known = "; ".join(f"{n}: {f.summary}" for n, f in FORMATS.items())
    raise UserError(
        f"{path}: is of no format that can be imported{_why(path)}. These can: "
        f"{known}."
    )


def _why(path):
    """Says in brackets what a path is that no format knows, if that is seen."""
    config = path / "config.json"
    if config.is_file():
        content = read_json(config)
        if isinstance(content, dict) and "model_type" in content:
            kind = content["model_type"]
            return f" (`model_type` of config.json is {kind!r:.40})"
    if path.is_file() and not path.stat().st_size:
        return " (the file is empty)"
    return ""


def _summary(imported, model, folder):
    from keras_deepnmt.data.tokenizers import Tokenizer

    tokenizers = {
        side: Tokenizer(folder / TOKENIZER_DIR / f"{side}.model")
        for side in ("source", "target")
    }
    return {
        "name": imported.facts["name"],
        "preset": PRESET,
        "overrides": imported.overrides,
        "preset_version": PRESET_VERSION,
        **{
            f"{side}_vocabulary_size": tokenizer.vocabulary_size
            for side, tokenizer in tokenizers.items()
        },
        "tokenizer": {
            side: tokenizer.sha256 for side, tokenizer in tokenizers.items()
        },
        "weights_sha256": file_sha256(folder / WEIGHTS_FILE),
        "tags": [],
        "decoding": dict(imported.decoding),
        "evaluation": {},
        "steps": 0,  # updates by this package
        "averaged_steps": [],
        "training": {},
        "seed": None,
        "parameters": model.count_params(),
        "imported": {"format": imported.format, "version": __version__},
        "scores": [],
        "files": file_table(folder),
    }


def _card(imported, name):
    """Returns a model card with what the folder itself says."""
    languages = [imported.facts[s] for s in ("source", "target")]
    listed = "".join(f"- {one}\n" for one in languages if one)
    languages = f"language:\n{listed}" if listed else ""
    return (
        "---\nlibrary_name: keras_deepnmt\npipeline_tag: translation\n"
        f"{languages}---\n\n# {name}\n\n"
        f"The model {imported.facts['name']}, imported by keras_deepnmt "
        f"{__version__} from the format {imported.format}. Its license and its "
        "training data are those of the original model.\n"
    )


def _verify(folder, directory, model):
    """Loads the written folder, and compares its weights."""
    saved = Translator.load(folder).model
    pairs = zip(model.get_weights(), saved.get_weights(), strict=True)
    if not all(np.array_equal(one, other) for one, other in pairs):
        raise UserError(
            f"{directory}: the saved weights are not those of the model, so "
            "nothing was kept. Check the disk, and run again."
        )
