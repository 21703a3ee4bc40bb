"""A stand-in for `unbabel-comet` 2.2 and its models, in an environment.

Its `comet` has the functions that a program needs, with the arguments of the
package; the score of a sentence is told by its texts. It takes part of the
noise of the package, too: what it prints is no result.
"""

import os
import sys
from pathlib import Path

PACKAGE = '''
import os
from importlib.util import find_spec
from pathlib import Path

import yaml

if find_spec("precision_recall"):
    raise ImportError("modules of keras_deepnmt hide those of other packages")

print("Lightning automatically upgraded your loaded checkpoint")


class Prediction(dict):
    __getattr__ = dict.__getitem__


def load_from_checkpoint(
    checkpoint_path, reload_hparams=False, strict=False, local_files_only=False
):
    checkpoint_path = Path(checkpoint_path)
    hparams = checkpoint_path.parents[1] / "hparams.yaml"
    if os.environ.get("HF_HUB_OFFLINE") != "1":
        raise OSError("the encoder would be downloaded")
    if checkpoint_path.read_text() == "broken":
        raise RuntimeError("not a checkpoint\\nInvalid magic number")
    return Model(yaml.safe_load(hparams.read_text())["class_identifier"])


class Model:
    def __init__(self, kind):
        self.kind = kind

    def requires_references(self):
        return self.kind != "referenceless_regression_metric"

    def predict(
        self,
        samples,
        batch_size=16,
        gpus=1,
        devices=None,
        mc_dropout=0,
        progress_bar=True,
        accelerator="auto",
        num_workers=None,
        length_batching=True,
    ):
        print("GPU available: False")
        scores = [self.score(sample) for sample in samples]
        return Prediction(
            scores=scores, system_score=sum(scores) / len(scores)
        )

    def score(self, sample):
        side = "ref" if self.requires_references() else "src"
        return share(sample["mt"], sample[side])


def share(text, other):
    """The share of the words of a text that another one has, too."""
    words = text.split()
    return sum(word in other.split() for word in words) / max(len(words), 1)
'''


def share(text, other):
    """The score of the stand-in, times 100."""
    words = text.split()
    return 100 * sum(w in other.split() for w in words) / max(len(words), 1)


def make_environment(folder: Path, version: str = "2.2.7") -> str:
    """Makes an environment that has the stand-in; returns its Python."""
    package = folder / "site" / "comet"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(PACKAGE)
    metadata = folder / "site" / f"unbabel_comet-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: unbabel-comet\nVersion: {version}\n"
    )
    python = folder / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="{folder}/site" exec "{sys.executable}" "$@"\n'
    )
    os.chmod(python, 0o755)
    return str(python)


def make_model(
    folder: Path, kind: str = "regression_metric", content: str = "weights"
) -> str:
    """Makes the folder of a model as it is downloaded; returns it."""
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints" / "model.ckpt").write_text(content)
    (folder / "hparams.yaml").write_text(f"class_identifier: {kind}\n")
    return str(folder)
