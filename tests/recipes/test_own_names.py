"""A recipe names losses, terms and schedules in files of the user."""

import types

import numpy as np
import pytest
from own_code_process import new_process

from keras_deepnmt import UserError, import_code
from keras_deepnmt.recipes import load_recipe
from keras_deepnmt.runs.build import make_optimizer
from keras_deepnmt.runs.objective_options import make_loss, make_terms

FILE = """\
import keras
from keras import ops
from keras_deepnmt.losses import register_loss
from keras_deepnmt.models import ObjectiveTerm


class Focal(keras.losses.Loss):
    def __init__(self, gamma=1.0, **kwargs):
        super().__init__(**kwargs)
        self.gamma = gamma

    def call(self, labels, log_probs):
        chosen = ops.take_along_axis(log_probs, labels[..., None], axis=-1)
        chosen = ops.squeeze(chosen, axis=-1)
        return -((1.0 - ops.exp(chosen)) ** self.gamma) * chosen


class LengthBonus(ObjectiveTerm):
    def __init__(self, weight):
        self.weight = weight


class Triangle(keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, peak, width):
        self.peak, self.width = peak, width

    def __call__(self, step):
        return self.peak * (1.0 - ops.abs(step / self.width - 1.0))

    def get_config(self):
        return {"peak": self.peak, "width": self.width}


register_loss("focal", Focal)
"""


@pytest.fixture(autouse=True)
def file(tmp_path):
    (tmp_path / "mine.py").write_text(FILE)
    with new_process(tmp_path / "home", tmp_path):
        import_code("mine.py")
        yield


def training(**changes):
    changes.setdefault("label_smoothing", None)
    changes = {f"training.{key}": value for key, value in changes.items()}
    return load_recipe("transformer_tiny.demo_de_en", changes)


@pytest.mark.parametrize("name", ["Focal", "mine.Focal", "focal"])
def test_a_loss_is_named_by_its_class_or_as_it_is_registered(name):
    loss = make_loss(training(loss=name, loss_options={"gamma": 2.0}))
    log_probs = np.log([[[0.25, 0.75], [0.5, 0.5]]])
    found = loss.call(np.array([[1, 0]]), log_probs)
    expected = [0.25**2 * -np.log(0.75), 0.5**2 * -np.log(0.5)]
    np.testing.assert_allclose(np.asarray(found)[0], expected, rtol=1e-6)


def test_a_term_is_named_by_its_class():
    recipe = training(objective={"r_drop": {"alpha": 1}, "LengthBonus": {}})
    with pytest.raises(UserError, match="LengthBonus.*'weight'"):
        make_terms(recipe)
    recipe = training(objective={"mine.LengthBonus": {"weight": 0.2}})
    assert [term.weight for term in make_terms(recipe)] == [0.2]


@pytest.mark.parametrize(
    ("name", "options", "rates"),
    [
        ("Triangle", {"peak": 0.4, "width": 2}, [0.0, 0.2, 0.4, 0.2]),
        (
            "keras.optimizers.schedules.PolynomialDecay",
            {"initial_learning_rate": 0.6, "decay_steps": 2},
            [0.6, 0.30005, 1e-4, 1e-4],
        ),
    ],
)
def test_a_schedule_is_named_by_its_class(name, options, rates):
    changes = {"schedule": name, "schedule_options": options}
    recipe = training(learning_rate=changes)
    model = types.SimpleNamespace(get_config=dict)
    optimizer = make_optimizer(recipe.training, model)
    for rate in rates:
        found = float(np.asarray(optimizer.learning_rate))
        np.testing.assert_allclose(found, rate, rtol=1e-6, atol=1e-9)
        optimizer.iterations.assign(optimizer.iterations + 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": "Focla"}, 'Unknown loss "Focla". Did you mean "Focal"'),
        ({"loss": "Triangle"}, "must be a subclass of keras.*Loss"),
        ({"loss": "Focal", "loss_options": {"gama": 1}}, "argument 'gama'"),
        ({"objective": {"LengthBonsu": {}}}, 'mean "LengthBonus"'),
    ],
)
def test_a_mistake_in_a_loss_or_term_names_the_key(changes, message):
    with pytest.raises(UserError, match=f"`training.*{message}"):
        recipe = training(**changes)
        make_loss(recipe)
        make_terms(recipe)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedule": "linaer"}, 'Received: .linaer.. Did you mean "linear"'),
        ({"schedule": "linear", "schedule_options": {"a": 1}}, "class of your"),
        (
            {"schedule": "Triangle", "peak": 0.1},
            "`peak` must not.*as .sched",
        ),
    ],
)
def test_a_mistake_in_a_schedule_names_the_key(changes, message):
    with pytest.raises(UserError, match=f"learning_rate.*{message}"):
        training(learning_rate=changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedule": "Triangel"}, 'has "Triangel". Did you mean "Triangle"'),
        ({"schedule": "Focal"}, "must be a subclass of .*Schedule"),
    ],
)
def test_an_unknown_schedule_is_refused(changes, message):
    recipe = training(learning_rate=changes)
    with pytest.raises(ValueError, match=message):
        make_optimizer(recipe.training, types.SimpleNamespace(get_config=dict))
