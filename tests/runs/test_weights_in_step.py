"""On JAX the weights stay in the training step from update to update.

Keras copies all of them back to the model whenever a callback asks for its
model within an epoch, and takes them out again for the next update.
"""

import backend_program
import pytest

pytestmark = pytest.mark.thorough


def test_callbacks_ask_for_the_weights_as_often_in_few_updates_as_in_many(
    recipe_file,
):
    script = str(backend_program.FOLDER / "runs" / "weights_on_jax.py")
    few, many = backend_program.found_by(script, str(recipe_file), "jax")
    assert few == many > 0
