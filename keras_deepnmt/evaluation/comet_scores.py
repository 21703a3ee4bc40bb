"""Scores of COMET models, which run in an environment of their own."""

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from packaging.version import Version

from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation.p_values import SEED
from keras_deepnmt.evaluation.scores import Score, check_lengths
from keras_deepnmt.files import file_sha256
from keras_deepnmt.json_files import read_json
from keras_deepnmt.processes import run_other_python
from keras_deepnmt.yaml_files import read_yaml

# The second one without references.
COMET_METRICS = ("comet", "comet-qe")

_PROGRAM = Path(__file__).with_name("comet_program.py")
_OLDEST = "2.0"
# By the `class_identifier` of a model, the only metric that it can compute.
_ONLY = {
    "regression_metric": "comet",
    "ranking_metric": "comet",
    "referenceless_regression_metric": "comet-qe",
}
# The metric of a unified model by the text that it reads besides the
# translation; one that reads both texts can compute both.
_OF_SEGMENT = {"ref": "comet", "src": "comet-qe"}


class CometModel:
    """A COMET model (Rei et al., 2020), by the package `unbabel-comet`.

    A COMET score is the mean of scores of sentences that a neural network
    predicts from source, translation and reference, or without the reference
    (`"comet-qe"`, an estimate of quality). Scores are given times 100.

    `unbabel-comet` needs versions of other packages that cannot be installed
    beside TensorFlow. So the model runs in a process of another Python. Nothing
    is downloaded, unless the variable `HF_HUB_OFFLINE` is 0: the tokenizer and
    the configuration of the encoder that the model names, such as
    `xlm-roberta-large`, must be in the cache of Hugging Face.

    Args:
        model: Folder of the model, which has `hparams.yaml` and
            `checkpoints/model.ckpt`, or such a `.ckpt` file.
        metric: `"comet"` or `"comet-qe"`.
        python: The Python of the environment in which `unbabel-comet` is
            installed. Defaults to the one that runs.
        batch_size: Number of sentences scored together.

    Attributes:
        signature: Metric, the model's name and the start of its hash, whether
            it sees references, and the version of `unbabel-comet`.
        sha256: Hash of the checkpoint.

    Raises:
        UserError: if there is no such model, it cannot compute the metric, or
            the package is missing or too old.

    Example:
    >>> model = CometModel("wmt22-comet-da", python="comet/bin/python")
    >>> model.sentence_scores(["Ein Hund."], ["A dog."], ["A dog."])

    Reference:
        - [Rei et al., 2020](https://aclanthology.org/2020.emnlp-main.213/).
    """

    def __init__(
        self,
        model: str | Path,
        metric: str = "comet",
        python: str | None = None,
        batch_size: int = 16,
    ):
        if metric not in COMET_METRICS:
            raise UserError(
                f"`metric` must be one of {', '.join(COMET_METRICS)}. "
                f"Received: metric={metric}"
            )
        self.metric = metric
        self._python = python or sys.executable
        self._batch_size = batch_size
        self._checkpoint = _checkpoint(Path(model))
        _check_kind(self._checkpoint, metric)
        self._version = _version(self._python)
        self.sha256 = file_sha256(self._checkpoint)
        fields = {
            "model": _name(self._checkpoint.absolute().parents[1]),
            "sha256": self.sha256[:12],
            "refs": "yes" if metric == "comet" else "no",
            "scale": "100",
            "unbabel-comet": self._version,
        }
        self.signature = "|".join(f"{k}:{v}" for k, v in fields.items())

    def sentence_scores(
        self,
        sources: Sequence[str],
        hypotheses: Sequence[str],
        references: Sequence[str] | None = None,
    ) -> list[float]:
        """Scores each translation, times 100.

        Args:
            sources: The sentences that were translated.
            hypotheses: Their translations.
            references: One reference for each sentence; for `"comet-qe"` they
                are ignored.

        Raises:
            UserError: if the model cannot be run.
            ValueError: if the lists differ in length or are empty.
        """
        texts = {"src": sources, "mt": hypotheses}
        if self.metric == "comet":
            texts["ref"] = references or []
        check_lengths(**texts)
        request = {
            "checkpoint": str(self._checkpoint),
            "batch_size": self._batch_size,
            "has_references": "ref" in texts,
            "samples": [
                dict(zip(texts, lines, strict=True))
                for lines in zip(*texts.values(), strict=True)
            ],
        }
        with tempfile.TemporaryDirectory() as folder:
            asked, answer = (Path(folder, name) for name in ("in", "out"))
            asked.write_text(json.dumps(request), encoding="utf-8")
            done = _run(self._python, "score", asked, answer)
            if done.returncode or not answer.is_file():
                raise UserError(
                    f"{self._checkpoint}: COMET failed: {_last_line(done)}"
                )
            result = read_json(answer)
        if "refused" in result:
            raise UserError(
                f"{self._checkpoint}: {result['refused']}; choose the metric "
                "comet."
            )
        return [100 * score for score in result["scores"]]

    def corpus_score(
        self, sentence_scores: Sequence[float], num_resamples: int = 1
    ) -> Score:
        """Returns the mean of scores of sentences, and its interval.

        Args:
            sentence_scores: Those that `sentence_scores` returned.
            num_resamples: Samples of the 95 % bootstrap interval, as in
                `corpus_scores`.
        """
        values = np.array(sentence_scores, "float64")
        interval = None
        if num_resamples > 1:
            draw = np.random.default_rng(SEED)
            means = sorted(
                values[draw.integers(len(values), size=len(values))].mean()
                for _ in range(num_resamples)
            )
            # As sacreBLEU does: half of what is between the outer 2.5 %.
            outer = num_resamples // 40
            interval = float(means[-1 - outer] - means[outer]) / 2
        return Score(float(values.mean()), self.signature, interval)


def _checkpoint(model):
    """The file of a model; it lies in a folder `checkpoints` of the model's."""
    file = (
        model if model.suffix == ".ckpt" else model / "checkpoints/model.ckpt"
    )
    if not file.is_file():
        raise UserError(
            f"{file}: no such file. A folder of a COMET model has hparams.yaml "
            "and checkpoints/model.ckpt."
        )
    return file


def _check_kind(checkpoint, metric):
    """Refuses a model that cannot compute the metric, before it is loaded."""
    file = checkpoint.absolute().parents[1] / "hparams.yaml"
    try:
        hparams = read_yaml(file)[0]
        kind = hparams["class_identifier"]
        known = _metrics_of(kind, hparams)
    except (OSError, LookupError, TypeError) as error:
        raise UserError(
            f"{file}: not the file of a COMET model, which has a line "
            f"class_identifier ({type(error).__name__})."
        ) from error
    if metric not in known:
        needs = "needs" if metric == "comet-qe" else "does not read"
        raise UserError(
            f"{checkpoint}: the model ({kind}) {needs} references; choose the "
            f"metric {' or '.join(known)}. Received: {metric}"
        )


def _metrics_of(kind, hparams):
    """The metrics that a model can compute."""
    if kind in _ONLY:
        return [_ONLY[kind]]
    if kind != "unified_metric":
        return COMET_METRICS
    # Those of COMET, unless others are named.
    segments = hparams.get("input_segments", ["mt", "src", "ref"])
    return [m for segment, m in _OF_SEGMENT.items() if segment in segments]


def _version(python):
    """The version of `unbabel-comet` in the environment of a Python."""
    done = _run(python, "version")
    version = done.stdout.strip()
    if done.returncode or Version(version) < Version(_OLDEST):
        raise UserError(
            f"{python} lacks unbabel-comet {_OLDEST} or newer, which COMET "
            "needs. It cannot be installed beside TensorFlow: install it in "
            "another environment (`python -m venv comet; comet/bin/pip install "
            "unbabel-comet 'setuptools<81'`) and name its Python, "
            "comet/bin/python."
        )
    return version


def _run(python, *words):
    try:
        return run_other_python(python, [_PROGRAM, *words])
    except OSError as error:
        raise UserError(f"{python}: cannot be run ({error}).") from error


def _last_line(done):
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"


def _name(folder):
    """The name of a model; that of a repository in Hugging Face's cache."""
    if folder.parent.name == "snapshots":
        folder = folder.parents[1]
    name = folder.name.removeprefix("models--").replace("--", "/")
    # What separates the fields of a signature.
    return name.replace("|", "_").replace(":", "_")
