"""What must be true of clones of a prototype layer.

* each clone is a layer of its own, with its own name and the options given
* a clone is made from its own configuration, also while a model is loaded,
  when Keras takes objects with equal marks for the same object
"""

import keras

from keras_deepnmt.layers.cloning import clone_prototype, prototype_config


def test_a_clone_is_a_layer_of_its_own():
    config = prototype_config(keras.layers.Dense(3, name="prototype"))
    first, second = (
        clone_prototype(config, name, "float32", units=units, unknown=1)
        for name, units in (("first", 3), ("second", 5))
    )
    assert first is not second
    assert (first.name, first.units) == ("first", 3)
    assert (second.name, second.units) == ("second", 5)


@keras.saving.register_keras_serializable(package="tests")
class ClonesOfMarkedPrototypes(keras.layers.Layer):
    """Clones two prototypes whose configurations bear the same mark."""

    def build(self, inputs_shape):
        self.clones = []
        for number, layer in enumerate(
            (keras.layers.Dense(3), keras.layers.Activation("relu"))
        ):
            config = prototype_config(layer) | {"shared_object_id": 7}
            clone = clone_prototype(config, f"clone_{number}", "float32")
            clone.build(inputs_shape)
            self.clones.append(clone)

    def call(self, inputs):
        for clone in self.clones:
            inputs = clone(inputs)
        return inputs


def test_a_clone_is_made_from_its_own_configuration(tmp_path):
    inputs = keras.Input((3,))
    model = keras.Model(inputs, ClonesOfMarkedPrototypes()(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    kinds = [type(clone).__name__ for clone in loaded.layers[-1].clones]
    assert kinds == ["Dense", "Activation"]
