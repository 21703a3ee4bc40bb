"""Weights & Biases, MLflow and Aim log a run by their own callbacks, offline.

These packages are in no extra: a test runs where its package is installed.
"""

import numpy as np
import pytest
from own_code_process import new_process

from keras_deepnmt.runs.run_folder import RunFolder

pytestmark = [
    pytest.mark.usefixtures("without_search"),
    # Those of the packages themselves.
    pytest.mark.filterwarnings("ignore"),
]
WANDB = """\
import wandb
from wandb.integration.keras import WandbMetricsLogger


class Wandb(WandbMetricsLogger):
    def __init__(self, project):
        wandb.init(project=project)
        super().__init__()

    def on_train_end(self, logs=None):
        self.model.logged = dict(wandb.run.summary)
        wandb.finish()
"""

AIM = """\
from aim.keras import AimCallback


class Aim(AimCallback):
    def on_train_end(self, logs=None):
        self.close()  # otherwise when the process ends
"""


def needed(package):
    return pytest.importorskip(package, reason=f"needs the package {package}")


@pytest.fixture
def folder(tmp_path):
    with new_process(tmp_path / "home", tmp_path):
        yield tmp_path


def validations(folder):
    """The BLEU and the loss of each validation, from the log of the run."""
    logs = [logs for _, logs in RunFolder(folder / "run").history()]
    return [(log["val_bleu"], log["val_loss"]) for log in logs]


def test_weights_and_biases_gets_the_last_validation(
    folder, train_in, monkeypatch
):
    needed("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    (folder / "trackers.py").write_text(
        WANDB.replace("self.model.", "type(self).")
    )
    changes = {"import": ["trackers.py"]}
    changes["training.callbacks"] = [{"Wandb": {"project": "mine"}}]
    train_in(changes)
    import trackers

    logged = trackers.Wandb.logged
    found = logged["epoch/val_bleu"], logged["epoch/val_loss"]
    np.testing.assert_allclose(found, validations(folder)[-1], rtol=1e-5)
    assert logged["epoch/epoch"] == 1
    assert list(folder.glob("wandb/offline-run-*/*.wandb"))


def test_mlflow_gets_every_validation(folder, train_in):
    mlflow = needed("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.set_experiment("mine")
    train_in({"training.callbacks": ["mlflow.keras.MlflowCallback"]})
    run_id = mlflow.last_active_run().info.run_id
    mlflow.end_run()
    history = mlflow.MlflowClient().get_metric_history
    for number, name in enumerate(("val_bleu", "val_loss")):
        found = [value.value for value in history(run_id, name)]
        expected = [row[number] for row in validations(folder)]
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_aim_gets_every_validation(folder, train_in):
    aim = needed("aim")
    (folder / "trackers.py").write_text(AIM)
    options = {"repo": str(folder), "experiment": "mine"}
    options["capture_terminal_logs"] = False
    changes = {"import": ["trackers.py"]}
    train_in({**changes, "training.callbacks": [{"Aim": options}]})
    (name,) = aim.Repo(str(folder)).list_all_runs()
    run = aim.Run(name, repo=str(folder), system_tracking_interval=None)
    found = {
        metric.name: list(metric.values.sparse_numpy()[1])
        for metric in run.metrics()
        if metric.context.to_dict().get("subset") == "val"
    }
    run.close()
    for number, name in enumerate(("bleu", "loss")):
        expected = [row[number] for row in validations(folder)]
        np.testing.assert_allclose(found[name], expected, rtol=1e-5)
